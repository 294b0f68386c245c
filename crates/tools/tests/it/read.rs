//! `file.read`: parts of files, and files that are not simply text.

use serde_json::json;
use toolhost_contract::ErrorKind;

use crate::room::{house, refused};

fn numbered(lines: usize) -> String {
    (1..=lines).map(|n| format!("line {n}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_lines_cover_a_file_without_repeats() {
    let text = numbered(1234);
    let house = house(&[("a.txt", text.as_bytes())]).await;
    for limit in [1000, 100, 7] {
        let mut read = String::new();
        let mut offset = json!(1);
        while !offset.is_null() {
            let data = house.data("file.read", json!({ "path": "a.txt", "offset": offset, "limit": limit })).await;
            read.push_str(data["content"].as_str().unwrap());
            offset = data["nextOffset"].clone();
        }
        assert_eq!(read, text, "pages of {limit}");
    }
}

/// Rules: 002.83.
#[tokio::test(flavor = "multi_thread")]
async fn the_byte_cap_holds_and_says_where_to_go_on() {
    let text = numbered(1000);
    let house = house(&[("a.txt", text.as_bytes()), ("long.txt", "ä".repeat(5000).as_bytes())]).await;
    let data = house.data("file.read", json!({ "path": "a.txt", "maxBytes": 100 })).await;
    let content = data["content"].as_str().unwrap();
    assert!(content.len() <= 100 && content.ends_with('\n') && text.starts_with(content), "{content}");
    assert_eq!(data["nextOffset"], json!(content.lines().count() + 1));
    let long = house.data("file.read", json!({ "path": "long.txt", "maxBytes": 101 })).await;
    assert_eq!(long["content"].as_str().unwrap(), "ä".repeat(50));
    assert!(long["note"].as_str().unwrap().contains("line 1 is cut after 100 bytes"), "{long}");
    assert_eq!(long["truncated"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ends_of_a_file_are_shown_with_what_lies_between() {
    let house = house(&[("a.txt", numbered(1000).as_bytes()), ("short.txt", b"1\n2\n3\n")]).await;
    let data = house.data("file.read", json!({ "path": "a.txt", "view": "headTail", "limit": 2 })).await;
    assert_eq!(data["content"], "line 1\nline 2\n[... 996 lines left out ...]\nline 999\nline 1000\n");
    assert_eq!((&data["totalLines"], &data["truncated"]), (&json!(1000), &json!(true)));
    let short = house.data("file.read", json!({ "path": "short.txt", "view": "headTail", "limit": 2 })).await;
    assert_eq!((&short["content"], &short["truncated"]), (&json!("1\n2\n3\n"), &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_file_is_shown_by_its_ends_and_not_read_whole() {
    let text = numbered(2_000_000);
    assert!(text.len() > 16 << 20);
    let house = house(&[("huge.txt", text.as_bytes())]).await;
    let data = house.data("file.read", json!({ "path": "huge.txt", "view": "headTail", "limit": 1 })).await;
    assert_eq!(data["content"], "line 1\n[... the middle is left out ...]\nline 2000000\n");
    assert_eq!((&data["totalLines"], &data["sha256"]), (&json!(null), &json!(null)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offset_beyond_the_end_is_told_how_long_the_file_is() {
    let house = house(&[("a.txt", b"1\n2\n"), ("empty.txt", b"")]).await;
    let error = refused(&house, "file.read", json!({ "path": "a.txt", "offset": 9 }), ErrorKind::Validation).await;
    assert!(error.message.contains("has 2 lines"), "{error:?}");
    assert_eq!(house.data("file.read", json!({ "path": "empty.txt" })).await["content"], "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_file_is_told_with_its_kind_and_size() {
    let house = house(&[
        ("prog", b"\x7fELF\x02\x01\x01\0\0\0\0\0"),
        ("pic.png", b"\x89PNG\r\n\x1a\n\0\0\0\r"),
        ("data.bin", b"abc\0def"),
    ])
    .await;
    for (path, kind, size) in
        [("prog", "an ELF program", 12), ("pic.png", "a PNG image", 12), ("data.bin", "unknown kind", 7)]
    {
        for view in ["full", "headTail", "outline"] {
            let error =
                refused(&house, "file.read", json!({ "path": path, "view": view }), ErrorKind::Validation).await;
            assert_eq!(error.message, format!("`{path}` is binary ({kind}, {size} bytes)"));
        }
    }
}

/// Rules: 002.2, 002.49, 002.68, 002.75.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_file_is_refused_at_once() {
    let house = house(&[("folder/a.txt", b"a")]).await;
    house.workspace.link("/etc/hostname", "out");
    house.workspace.link("loop", "loop");
    house.workspace.link("/dev/zero", "zero");
    for (path, kind) in [
        ("folder", ErrorKind::Validation),
        ("missing.txt", ErrorKind::NotFound),
        ("folder/a.txt/b", ErrorKind::NotFound),
        ("out", ErrorKind::Security),
        ("loop", ErrorKind::Security),
        ("zero", ErrorKind::Security),
        ("/etc/passwd", ErrorKind::Security),
        ("folder/../../x", ErrorKind::Security),
        ("C:\\Windows\\win.ini", ErrorKind::Security),
        ("\\\\server\\share", ErrorKind::Security),
        ("a\u{0}b", ErrorKind::Security),
        ("", ErrorKind::Validation),
    ] {
        refused(&house, "file.read", json!({ "path": path }), kind).await;
    }
}

/// Rules: 002.9.
#[tokio::test(flavor = "multi_thread")]
async fn text_is_decoded_and_its_encoding_told() {
    let house = house(&[
        ("utf8.txt", "grün".as_bytes()),
        ("utf16.txt", b"\xff\xfeg\0r\0\xfc\0n\0"),
        ("latin.txt", b"caf\xe9 na\xefve d\xe9j\xe0 vu\n"),
    ])
    .await;
    for (path, text, encoding) in [
        ("utf8.txt", "grün", "UTF-8"),
        ("utf16.txt", "grün", "UTF-16LE"),
        ("latin.txt", "café naïve déjà vu\n", "windows-1252"),
    ] {
        let data = house.data("file.read", json!({ "path": path })).await;
        assert_eq!((&data["content"], &data["encoding"]), (&json!(text), &json!(encoding)));
    }
}

/// Rules: 002.48.
#[tokio::test(flavor = "multi_thread")]
async fn dots_in_names_are_no_way_out() {
    let house = house(&[("app/[...slug]/page.tsx", b"slug"), ("src/iterations/x.rs", b"x"), ("..hidden", b"h")]).await;
    for (path, content) in [("app/[...slug]/page.tsx", "slug"), ("src/iterations/x.rs", "x"), ("..hidden", "h")] {
        assert_eq!(house.data("file.read", json!({ "path": path })).await["content"], content);
    }
    assert_eq!(
        house.data("file.read", json!({ "path": "./src//iterations/./x.rs" })).await["path"],
        "src/iterations/x.rs"
    );
}

/// Rules: 002.11.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_read_ten_times_by_the_name_that_counts() {
    let house = house(&[("a.txt", b"one")]).await;
    let arguments = json!({ "path": "a.txt" });
    for n in 1..=10 {
        assert!(house.call("read_file_with_limit", arguments.clone()).await.ok, "call {n}");
    }
    refused(&house, "read_file_with_limit", arguments.clone(), ErrorKind::Limit).await;
    assert!(house.call("file.read", arguments).await.ok, "its other names do not count");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_files_are_read_in_one_call_and_a_bad_one_stops_no_other() {
    let house = house(&[("a.txt", b"one\ntwo\n"), ("b.txt", b"three"), ("c.bin", b"\0\x01")]).await;
    let call = json!({ "paths": ["a.txt", "b.txt", "d.txt", "c.bin", "../x"], "limit": 1 });
    let outcome = house.call("file.read", call).await;
    let text = outcome.text.clone();
    let files = &outcome.data["files"];
    assert_eq!((&files[0]["content"], &files[0]["nextOffset"]), (&json!("one\n"), &json!(2)));
    assert_eq!((&files[1]["content"], &files[1]["truncated"]), (&json!("three"), &json!(false)));
    for (n, part) in [(2, "`d.txt`"), (2, "did you mean `a.txt`"), (3, "binary"), (4, "`..`")] {
        assert!(files[n]["error"].as_str().unwrap().contains(part), "{n} {part}: {files}");
    }
    let start =
        "==> a.txt <==\none\n[lines 1-1 of 2; read on with offset=2]\n==> b.txt <==\nthree\n==> d.txt <==\n[not read: ";
    assert!(text.starts_with(start), "{text}");
    for call in [json!({ "paths": ["d.txt"] }), json!({}), json!({ "path": "a.txt", "paths": ["b.txt"] })] {
        assert!(!house.call("file.read", call.clone()).await.ok, "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_files_of_a_call_share_its_bytes() {
    let house = house(&[("a.txt", b"123456\n"), ("b.txt", b"123456\n"), ("c.txt", b"1\n")]).await;
    let data = house.data("file.read", json!({ "paths": ["a.txt", "b.txt", "c.txt"], "maxBytes": 10 })).await;
    let files = &data["files"];
    assert_eq!((&files[0]["content"], &files[1]["content"]), (&json!("123456\n"), &json!("123")));
    assert!(files[2]["error"].as_str().unwrap().contains("maxBytes"), "{files}");
}
