//! Zips: those of ours come back as they were, those of others are not believed.

use std::io::{Cursor, Write};

use proptest::prelude::*;
use toolhost_builder::{Files, from_zip, to_zip};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::small;

fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Puts other bytes of the same length wherever a name stands in a zip.
fn renamed(mut zip: Vec<u8>, from: &str, to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> = (0..zip.len() - from.len()).filter(|at| zip[*at..].starts_with(from.as_bytes())).collect();
    assert_eq!(places.len(), 2, "a name stands before its entry and in the directory");
    for at in places {
        zip[at..at + to.len()].copy_from_slice(to);
    }
    zip
}

fn codes(zip: &[u8]) -> Vec<String> {
    from_zip(zip).unwrap_err().into_iter().map(|finding| finding.code).collect()
}

#[test]
fn files_come_back_from_a_zip_and_the_zip_is_always_the_same() {
    let files = small::files();
    assert_eq!(from_zip(&to_zip(&files)).unwrap(), files);
    assert_eq!(to_zip(&files), to_zip(&files));
    assert_eq!(from_zip(&to_zip(&Files::new())).unwrap(), Files::new());
}

#[test]
fn what_is_at_the_top_may_be_named_by_its_folder() {
    let zip = to_zip(&Files::from([("abcdefgh.md".to_owned(), b"x".to_vec())]));
    let files = from_zip(&renamed(zip, "abcdefgh.md", b"./abcdef.md")).unwrap();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["abcdef.md"]);
}

#[test]
fn names_that_lead_out_are_refused() {
    for name in [
        "../abcde.md",
        "a/../../b.md",
        "/abcdefg.md",
        "C:/abcde.md",
        "c:abcdef.md",
        "..\\abcde.md",
        "a\\b\\c\\d.md",
        "a//bcdef.md",
        "abc\0def.md",
        "a/b/c/d/.",
        "abcdefgh/..",
        "\\\\host\\a.md",
    ] {
        let plain = "x".repeat(name.len());
        let zip = renamed(zip_of(&[(&plain, b"content")]), &plain, name.as_bytes());
        assert_eq!(codes(&zip), ["PATH_UNSAFE"], "{name:?}");
    }
    let not_text = renamed(zip_of(&[("xxxx", b"content")]), "xxxx", b"a\xff\xfe.");
    assert!(from_zip(&not_text).is_err());
}

#[test]
fn a_link_is_refused() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("assets/a.md", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    assert_eq!(codes(&writer.finish().unwrap().into_inner()), ["ZIP_SYMLINK"]);
}

#[test]
fn a_name_may_stand_in_a_zip_once() {
    let zip = renamed(zip_of(&[("aaaa.md", b"one"), ("bbbb.md", b"two")]), "bbbb.md", b"aaaa.md");
    assert_eq!(codes(&zip), ["ZIP_DUPLICATE_NAME"]);
}

#[test]
fn folders_hold_nothing() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_directory("assets/", SimpleFileOptions::default()).unwrap();
    assert_eq!(from_zip(&writer.finish().unwrap().into_inner()).unwrap(), Files::new());
}

#[test]
fn bombs_are_refused_before_they_blow_up() {
    let zeros = vec![0; 10 * 1024 * 1024];
    assert_eq!(codes(&zip_of(&[("a.md", &zeros)])), ["FILE_TOO_LARGE"]);
    // Small enough for a file, but far too well compressed.
    assert_eq!(codes(&zip_of(&[("a.md", &zeros[..3 * 1024 * 1024])])), ["ZIP_RATIO"]);
    // One that lies about its size: the field in the directory and the one before the entry say 10 bytes.
    let mut lying = zip_of(&[("a.md", &zeros)]);
    let size = (10 * 1024 * 1024_u32).to_le_bytes();
    let places: Vec<usize> = (0..lying.len() - 4).filter(|at| lying[*at..].starts_with(&size)).collect();
    assert!(!places.is_empty());
    for at in places {
        lying[at..at + 4].copy_from_slice(&10_u32.to_le_bytes());
    }
    assert!(from_zip(&lying).is_err());
    // Many of them.
    let names: Vec<String> = (0..100).map(|number| format!("{number}.md")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), zeros.as_slice())).collect();
    assert_eq!(codes(&zip_of(&many)).len(), 100);
}

#[test]
fn what_inflates_to_too_much_in_all_is_refused() {
    // Each file is fine alone, and compresses badly enough: 70 of 4 MiB are more than a package may have.
    let mut state = 1_u32;
    let noise: Vec<u8> = (0..4 * 1024 * 1024)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // A few values only, so that it compresses to about an eighth.
            if state >> 24 < 8 { b'x' } else { b' ' }
        })
        .collect();
    let names: Vec<String> = (0..70).map(|number| format!("{number:02}.md")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), noise.as_slice())).collect();
    assert_eq!(codes(&zip_of(&many)), ["PACKAGE_TOO_LARGE"]);
}

#[test]
fn entries_are_counted() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for number in 0..=toolhost_builder::limits::FILES_MAX {
        writer.start_file(format!("{number}.md"), stored).unwrap();
    }
    assert_eq!(codes(&writer.finish().unwrap().into_inner()), ["TOO_MANY_FILES"]);
}

#[test]
fn a_zip_that_is_none_is_said_to_be_none() {
    for bytes in [&b""[..], b"PK", b"not a zip at all"] {
        assert_eq!(codes(bytes), ["ZIP_UNREADABLE"]);
    }
    let whole = to_zip(&small::files());
    for end in (0..whole.len()).step_by(97) {
        assert!(from_zip(&whole[..end]).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_zip_or_findings(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = from_zip(&bytes);
    }

    #[test]
    fn a_zip_with_changed_bytes_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let mut zip = to_zip(&small::files());
        for (at, byte) in changes {
            let at = at.index(zip.len());
            zip[at] = byte;
        }
        let _ = from_zip(&zip);
    }
}
