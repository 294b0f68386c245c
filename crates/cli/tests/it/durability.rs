//! What waits for the disk, and what does not: seen from the C library, which the program asks for it.

use std::path::PathBuf;

use serde_json::json;
use toolhost_testkit::{Era, McpProcess, TempWorkspace, until};

use crate::room::program;

/// The library that notes each wait, built beside the workspace.
fn noting(workspace: &TempWorkspace) -> PathBuf {
    let library = workspace.beside("synced.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/synced.c");
    #[expect(clippy::disallowed_methods, reason = "this test builds the library with the machine's own compiler")]
    let mut compiler = std::process::Command::new("cc");
    let built =
        compiler.args(["-shared", "-fPIC", "-Wall", "-o"]).args([&library, &PathBuf::from(source)]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    library
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_is_asked_waits_for_the_disk_and_everything_does_if_the_operator_says_so() {
    for (durability, waits) in [("process", false), ("power", true)] {
        let workspace = TempWorkspace::new();
        let log = workspace.beside("synced");
        let program = program(&workspace)
            .variable("LD_PRELOAD", noting(&workspace))
            .variable("SYNCED", &log)
            .variable("TOOLHOST_DURABILITY", durability);
        let mut host = McpProcess::open(&program, &["--profile", "all"], Era::Session).await;
        // The first call makes what later ones find.
        host.call("memory_save_learning", json!({ "content": "first" })).await;
        let so_far = || std::fs::read_to_string(&log).unwrap_or_default();
        let before = so_far();
        let calls = [
            ("file_write", json!({ "path": "a.txt", "content": "one" })),
            ("file_move", json!({ "from": "a.txt", "to": "b.txt" })),
            ("memory_save_learning", json!({ "content": "second" })),
            ("bash", json!({ "command": "true" })),
        ];
        for (tool, arguments) in calls {
            let answer = host.call(tool, arguments).await;
            assert_eq!(answer["isError"], false, "{tool}: {answer}");
        }
        let after = so_far();
        let synced = &after[before.len()..];
        let (log_of_database, files) =
            (synced.contains("toolhost.db-wal"), synced.contains(workspace.root().to_str().unwrap()));
        assert_eq!((log_of_database, files), (waits, waits), "{durability}: {synced}");
        // Nobody answers: what was asked is kept.
        let _ = host.begin_call("review_content", json!({ "title": "t", "content": "c" })).await;
        until("the question is on the disk", || so_far()[after.len()..].contains("toolhost.db-wal")).await;
        host.kill().await;
    }
}
