//! The package that we show to people.

use std::path::Path;

use toolhost_builder::{Files, NodeKind, Package, from_zip, to_zip, validate};

/// The files of `examples/research-report`.
pub(crate) fn files() -> Files {
    files_below("../../examples/research-report")
}

/// Two workflows that share agents and assets.
pub(crate) fn two() -> Files {
    files_below("tests/edits/packages/two")
}

#[expect(clippy::disallowed_methods, reason = "the samples are in the repository, not in a workspace")]
fn files_below(folder: &str) -> Files {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = Files::new();
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn the_sample_has_no_findings() {
    let package = Package::read(files());
    assert_eq!(validate(&package), []);
}

#[test]
fn the_sample_shows_what_a_package_can_be() {
    let package = Package::read(files());
    let workflow = package.workflow("research-report").unwrap();
    let count = |kind| workflow.nodes.iter().filter(|node| node.kind == Some(kind)).count();
    assert_eq!((workflow.nodes.len(), workflow.steps.len()), (12, 12));
    assert_eq!((count(NodeKind::Decision), count(NodeKind::Merge), count(NodeKind::End)), (2, 1, 1));
    assert_eq!((package.agents().len(), package.assets().count()), (4, 6));
}

#[test]
fn the_sample_survives_reading_and_a_zip_byte_for_byte() {
    let files = files();
    assert_eq!(Package::read(files.clone()).into_files(), files);
    let zip = to_zip(&files);
    assert_eq!(zip, to_zip(&files));
    assert_eq!(from_zip(&zip).unwrap(), files);
}
