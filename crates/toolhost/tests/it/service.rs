//! The example, as a program of its own.

use std::path::PathBuf;

use toolhost::package_format::to_zip;

use crate::room::{engines, folder, sample};

/// `cargo test` builds the examples of a crate beside its tests.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples/service");
    assert!(program.exists(), "{} is missing: run `cargo test -p toolhost`", program.display());
    program
}

#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test writes its own file and starts the example"
)]
#[test]
fn the_example_goes_all_the_way() {
    let place = folder();
    let zip = place.path().join("package.zip");
    std::fs::write(&zip, to_zip(&sample())).unwrap();
    for engine in engines() {
        let ran = std::process::Command::new(program()).arg(engine.address()).arg(&zip).output().unwrap();
        let told = String::from_utf8(ran.stdout).unwrap();
        assert!(ran.status.success(), "{engine}: {told}{}", String::from_utf8_lossy(&ran.stderr));
        let expected = [
            "imported 22 files",
            "called builder.asset.read, ok: true",
            "called builder.change.stage, ok: true",
            "the session ended: Completed",
            "+The answer stands in the first sentence.",
            "cs-1 is applied as change 2: asset:assets/style-guide.md",
            "change 2 is taken back by change 3: assets/style-guide.md",
        ];
        let mut rest = told.as_str();
        for line in expected {
            let found = rest.find(line);
            assert!(found.is_some(), "{engine}: `{line}` is missing in what is left of:\n{told}");
            rest = &rest[found.unwrap_or_default() + line.len()..];
        }
    }
}

#[test]
fn the_example_is_short() {
    let lines = include_str!("../../examples/service.rs").lines().count();
    assert!(lines <= 60, "{lines} lines");
}
