//! `file.edit`: literal, all or nothing, in the file's own encoding.

use serde_json::{Value, json};
use toolhost_contract::ErrorKind;

use crate::room::{house, refused};

fn one(path: &str, search: &str, replace: &str) -> Value {
    json!({ "path": path, "edits": [{ "search": search, "replace": replace }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_replaces_is_taken_literally() {
    let house = house(&[("a.txt", b"price: X\n")]).await;
    for (search, replace) in [("X", "$& $1 $$ $` $'"), ("$& $1", r"\0 \1 \n ${x}"), (r"\n", ".*")] {
        house.data("file.edit", one("a.txt", search, replace)).await;
    }
    assert_eq!(house.workspace.read("a.txt"), "price: \\0 \\1 .* ${x} $$ $` $'\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_searched_is_taken_literally() {
    let house = house(&[("a.txt", b"a.c abc [x] (y) ^z$\n")]).await;
    house.data("file.edit", one("a.txt", "a.c", "1")).await;
    house.data("file.edit", one("a.txt", "[x] (y) ^z$", "2")).await;
    assert_eq!(house.workspace.read("a.txt"), "1 abc 2\n");
}

/// Rules: 004.19.
#[tokio::test(flavor = "multi_thread")]
async fn all_edits_are_made_or_none() {
    let house = house(&[("a.txt", b"one\ntwo\n")]).await;
    let edits = json!([{ "search": "one", "replace": "1" }, { "search": "three", "replace": "3" }]);
    let error = refused(&house, "file.edit", json!({ "path": "a.txt", "edits": edits }), ErrorKind::Validation).await;
    assert!(error.message.starts_with("edit 2: "), "{error:?}");
    let edits = json!([{ "search": "one", "replace": "two" }, { "search": "two", "replace": "2", "all": true }]);
    let data = house.data("file.edit", json!({ "path": "a.txt", "edits": edits })).await;
    assert_eq!((house.workspace.read("a.txt").as_str(), &data["replacements"]), ("2\n2\n", &json!(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_there_twice_is_told_with_its_lines() {
    let house = house(&[("a.txt", b"x\ny\nx\n")]).await;
    let error = refused(&house, "file.edit", one("a.txt", "x", "z"), ErrorKind::Validation).await;
    assert!(error.message.contains("2 times") && error.message.contains("lines 1, 3"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_not_there_is_told_its_nearest_line() {
    let house = house(&[("a.rs", b"fn alpha() {}\nfn total_price(items: &[Item]) -> u32 {\n}\n")]).await;
    let error =
        refused(&house, "file.edit", one("a.rs", "fn total_prize(items: &[Item])", "x"), ErrorKind::Validation).await;
    assert!(error.message.contains("2: fn total_price(items: &[Item]) -> u32 {"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_has_the_line_ends_of_the_file() {
    let house = house(&[("dos.txt", b"one\r\ntwo\r\n"), ("both.txt", b"one\r\ntwo\nthree\n")]).await;
    let data = house.data("file.edit", one("dos.txt", "one\ntwo", "1\n2\n3")).await;
    assert_eq!(house.workspace.read("dos.txt"), "1\r\n2\r\n3\r\n");
    assert!(data["read"][0].as_str().unwrap().contains(r"\r\n"), "{data}");
    // A new line in a text of one line, too.
    house.data("file.edit", one("dos.txt", "2", "2\n2b")).await;
    assert_eq!(house.workspace.read("dos.txt"), "1\r\n2\r\n2b\r\n3\r\n");
    let data = house.data("file.edit", one("dos.txt", "1\r\n2", "x\r\ny")).await;
    assert_eq!(data.get("read"), None, "{data}");
    // Where a file has both kinds, nobody knows which is meant.
    let error = refused(&house, "file.edit", one("both.txt", "one\ntwo", "x"), ErrorKind::Validation).await;
    assert!(error.hint.unwrap().contains(r"\r\n"), "{}", error.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_numbers_that_a_reader_shows_before_lines_are_no_part_of_an_edit() {
    let house = house(&[("a.txt", b"one\ntwo\n"), ("b.txt", b"1: one\none\n")]).await;
    let data = house.data("file.edit", one("a.txt", "1\tone\n2\ttwo", "1\tONE\n2\tTWO")).await;
    assert_eq!(house.workspace.read("a.txt"), "ONE\nTWO\n");
    assert!(data["read"][0].as_str().unwrap().contains("numbers"), "{data}");
    // Where they stand in the file they are.
    house.data("file.edit", one("b.txt", "1: one", "1: two")).await;
    assert_eq!(house.workspace.read("b.txt"), "1: two\none\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_keeps_its_encoding() {
    let utf16 = |text: &str, big: bool| -> Vec<u8> {
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
    };
    let latin = b"caf\xe9 na\xefve d\xe9j\xe0 vu\n".to_vec();
    let house = house(&[
        ("le.txt", &utf16("grün one\n", false)),
        ("be.txt", &utf16("grün one\n", true)),
        ("latin.txt", &latin),
        ("bom.txt", b"\xef\xbb\xbfone\n"),
    ])
    .await;
    for path in ["le.txt", "be.txt", "bom.txt"] {
        house.data("file.edit", one(path, "one", "zwölf 漢")).await;
    }
    assert_eq!(house.workspace.read_bytes("le.txt"), utf16("grün zwölf 漢\n", false));
    assert_eq!(house.workspace.read_bytes("be.txt"), utf16("grün zwölf 漢\n", true));
    assert_eq!(house.workspace.read_bytes("bom.txt"), "\u{feff}zwölf 漢\n".as_bytes());
    house.data("file.edit", one("latin.txt", "café", "thé")).await;
    assert_eq!(house.workspace.read_bytes("latin.txt"), b"th\xe9 na\xefve d\xe9j\xe0 vu\n");
    let error = refused(&house, "file.edit", one("latin.txt", "vu", "漢"), ErrorKind::Validation).await;
    assert!(error.message.contains("windows-1252"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_the_diff_and_writes_nothing() {
    let house = house(&[("a.txt", b"one\n")]).await;
    let before = house.workspace.snapshot();
    let arguments = json!({ "path": "a.txt", "edits": [{ "search": "one", "replace": "two" }], "dryRun": true });
    let data = house.data("file.edit", arguments.clone()).await;
    assert_eq!((&data["written"], data["diff"].as_str().unwrap().contains("-one\n+two\n")), (&json!(false), true));
    assert_eq!(house.workspace.snapshot(), before);
    let mut real = arguments;
    real["dryRun"] = json!(false);
    assert_eq!(house.data("file.edit", real).await["sha256"], data["sha256"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_meanwhile_is_not_overwritten() {
    let house = house(&[("a.txt", b"one\n")]).await;
    let read = house.data("file.read", json!({ "path": "a.txt" })).await;
    house.workspace.write("a.txt", "one and more\n");
    let mut arguments = one("a.txt", "one", "two");
    arguments["expectedSha256"] = read["sha256"].clone();
    let error = refused(&house, "file.edit", arguments.clone(), ErrorKind::Conflict).await;
    assert!(error.message.contains("`a.txt` has changed"), "{error:?}");
    arguments["expectedSha256"] = house.data("file.read", json!({ "path": "a.txt" })).await["sha256"].clone();
    assert!(house.call("file.edit", arguments).await.ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_changes_nothing_is_an_error() {
    let house = house(&[("a.txt", b"one\n")]).await;
    refused(&house, "file.edit", one("a.txt", "one", "one"), ErrorKind::Validation).await;
}
