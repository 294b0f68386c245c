//! `toolhost backup` and `toolhost restore`.

use std::os::unix::fs::PermissionsExt;

use toolhost_testkit::{Program, TempWorkspace};

use crate::room::program;

fn titles(program: &Program) -> Vec<String> {
    let listed = program.run(&["--json", "ticket", "list"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let items = listed.json()["data"]["items"].as_array().unwrap().clone();
    items.iter().map(|item| item["title"].as_str().unwrap().to_owned()).collect()
}

fn add(program: &Program, title: &str) {
    let made = program.run(&["ticket", "create", title]);
    assert_eq!(made.code, Some(0), "{made:?}");
}

#[test]
fn a_copy_brings_a_project_back_as_it_was_with_an_audit_that_holds() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    add(&program, "before");
    let copy = workspace.beside("copy.db");
    let copy = copy.to_str().unwrap();
    let made = program.run(&["backup", copy]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(std::fs::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600);
    let inside = workspace.root().join("copy.db");
    let inside = program.run(&["backup", inside.to_str().unwrap()]);
    assert!(inside.code == Some(2) && inside.stderr.contains("in the workspace"), "{inside:?}");
    let again = program.run(&["backup", copy]);
    assert!(again.code == Some(1) && again.stderr.contains("is there already"), "{again:?}");
    add(&program, "after");
    let refused = program.run(&["restore", copy]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--replace"), "{refused:?}");
    assert_eq!(titles(&program).len(), 2);
    let restored = program.run(&["restore", copy, "--replace"]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert!(restored.stdout.contains("what this folder had is in"), "{restored:?}");
    assert_eq!(titles(&program), ["before"]);
    for (path, mode) in [(workspace.state(), 0o700), (workspace.state().join("toolhost.db"), 0o600)] {
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
    }
    assert_eq!(program.run(&["audit", "verify"]).code, Some(0));
}

#[test]
fn a_copy_of_one_folder_becomes_the_project_of_another() {
    let (first, second) = (TempWorkspace::new(), TempWorkspace::new());
    let (of_first, of_second) = (program(&first), program(&second));
    add(&of_first, "taken along");
    let copy = first.beside("copy.db");
    assert_eq!(of_first.run(&["backup", copy.to_str().unwrap()]).code, Some(0));
    let restored = of_second.run(&["restore", copy.to_str().unwrap()]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(titles(&of_second), ["taken along"]);
    add(&of_second, "goes on");
    assert_eq!((titles(&of_second).len(), titles(&of_first).len()), (2, 1));
}

#[test]
fn what_is_no_whole_copy_changes_nothing() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    add(&program, "kept");
    let copy = workspace.beside("copy.db");
    assert_eq!(program.run(&["backup", copy.to_str().unwrap()]).code, Some(0));
    let whole = std::fs::read(&copy).unwrap();
    let half = workspace.beside("half.db");
    std::fs::write(&half, &whole[..whole.len() / 2]).unwrap();
    let text = workspace.beside("text.db");
    std::fs::write(&text, "no database").unwrap();
    for wrong in [half, text, workspace.beside("none.db")] {
        let ran = program.run(&["restore", wrong.to_str().unwrap(), "--replace"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(titles(&program), ["kept"], "{}", wrong.display());
    }
}

#[test]
fn an_audit_that_was_changed_is_not_restored() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    add(&program, "a secret deed");
    let copy = workspace.beside("copy.db");
    assert_eq!(program.run(&["backup", copy.to_str().unwrap()]).code, Some(0));
    let mut bytes = std::fs::read(&copy).unwrap();
    // In the audit and in the record: the text has the same length, so the database is whole.
    let mut changed = 0;
    for at in 0..bytes.len() - 13 {
        if &bytes[at..at + 13] == b"a secret deed" {
            bytes[at..at + 13].copy_from_slice(b"a public deed");
            changed += 1;
        }
    }
    assert!(changed > 0);
    std::fs::write(&copy, &bytes).unwrap();
    let ran = program.run(&["restore", copy.to_str().unwrap(), "--replace"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("the audit of"), "{ran:?}");
    assert_eq!(titles(&program), ["a secret deed"]);
}

#[test]
fn a_database_that_is_lost_is_brought_back_as_the_error_says() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    add(&program, "kept");
    let copy = workspace.beside("copy.db");
    assert_eq!(program.run(&["backup", copy.to_str().unwrap()]).code, Some(0));
    for file in ["toolhost.db", "toolhost.db-wal", "toolhost.db-shm"] {
        let _ = std::fs::remove_file(workspace.state().join(file));
    }
    let lost = program.run(&["ticket", "list"]);
    assert!(lost.code == Some(1) && lost.stderr.contains("toolhost restore FILE"), "{lost:?}");
    assert_eq!(program.run(&["restore", copy.to_str().unwrap(), "--replace"]).code, Some(0));
    assert_eq!(titles(&program), ["kept"]);
}

#[expect(clippy::disallowed_methods, reason = "whoever prepares a copy")]
fn prepared(copy: &std::path::Path, sql: &str) {
    let code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.commit()";
    let ran = std::process::Command::new("python3").args(["-c", code, copy.to_str().unwrap(), sql]).status().unwrap();
    assert!(ran.success());
}

#[test]
fn a_copy_with_anything_that_runs_by_itself_is_refused() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    add(&program, "kept");
    for (name, sql) in [
        ("trigger", "CREATE TRIGGER e AFTER INSERT ON token BEGIN UPDATE token SET scopes = 'call approve'; END"),
        ("audit", "CREATE TRIGGER e AFTER INSERT ON audit BEGIN DELETE FROM member; END"),
        ("view", "ALTER TABLE member RENAME TO m; CREATE VIEW member AS SELECT * FROM m"),
        ("table", "CREATE TABLE more (a)"),
        ("index", "CREATE INDEX more ON member (role)"),
    ] {
        let copy = workspace.beside(&format!("{name}.db"));
        assert_eq!(program.run(&["backup", copy.to_str().unwrap()]).code, Some(0));
        prepared(&copy, sql);
        let ran = program.run(&["restore", copy.to_str().unwrap(), "--replace"]);
        assert!(ran.code == Some(1) && ran.stderr.contains("not a database of toolhost"), "{name}: {ran:?}");
        assert_eq!(titles(&program), ["kept"], "{name}");
    }
}

#[test]
fn a_shared_database_is_for_its_server_s_own_tools() {
    let workspace = TempWorkspace::new();
    let ran = program(&workspace).bare().run(&["--database", "postgres://u@127.0.0.1:1/x", "--project", "p", "backup"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("pg_dump"), "{ran:?}");
}
