//! A state folder that is deleted or moved: nobody is told that all is well.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, Program, TempWorkspace};

use crate::room::program;

/// A host that has written a ticket, and the arguments that it was given.
async fn host_with_a_ticket(program: &Program) -> (McpProcess, Value) {
    let mut host = McpProcess::open(program, &["--profile", "all"], Era::Session).await;
    let ticket = json!({ "title": "t" });
    let made = host.call("ticket_create", ticket.clone()).await;
    assert_eq!(made["isError"], false, "{made}");
    (host, ticket)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_state_folder_was_deleted_refuses_every_call_and_says_why() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let (mut host, ticket) = host_with_a_ticket(&program).await;
    toolhost_sandbox::remove_folder(&workspace.state()).unwrap();
    let write = json!({ "path": "a.txt", "content": "a" });
    for (tool, arguments) in [("ticket_create", ticket), ("file_write", write), ("ticket_list", json!({}))] {
        let refused = host.call(tool, arguments).await;
        assert_eq!(refused["isError"], true, "{tool}: {refused}");
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("state folder") && text.contains("moved or deleted"), "{tool}: {text}");
        assert!(text.contains("nothing was changed") && text.contains("hint: "), "{tool}: {text}");
        assert!(text.contains("stop the host") && text.contains("`toolhost init --new`"), "{tool}: {text}");
    }
    assert!(!workspace.root().join("a.txt").exists());
    assert!(!workspace.state().exists(), "and nothing is made in its place");
    // What the hint names, in its order.
    host.close().await;
    assert_eq!(program.run(&["init", "--new"]).code, Some(0));
    host_with_a_ticket(&program).await;
}

#[test]
fn the_log_says_in_a_sentence_that_the_state_folder_is_gone() {
    let workspace = TempWorkspace::new();
    let mut command = program(&workspace).command(&["mcp", "--profile", "all"]);
    let mut host = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (host.stdin.take().unwrap(), BufReader::new(host.stdout.take().unwrap()));
    let mut ask = |id: u64, method: &str, params: Value| {
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).unwrap();
        output.read_line(&mut String::new()).unwrap();
    };
    let client = json!({ "name": "a", "version": "1" });
    ask(1, "initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }));
    toolhost_sandbox::remove_folder(&workspace.state()).unwrap();
    ask(2, "tools/call", json!({ "name": "ticket_create", "arguments": { "title": "t" } }));
    drop(input);
    let log = String::from_utf8(host.wait_with_output().unwrap().stderr).unwrap();
    let line = log.lines().find(|line| line.contains("the database could not be used: ")).unwrap_or(&log);
    assert!(line.contains(&format!("the state folder {} was moved or deleted", workspace.state().display())), "{log}");
    for rust in ["Audit {", "why:", "Some(", "\\\""] {
        assert!(!log.contains(rust), "{rust}: {log}");
    }
}

#[test]
fn a_known_projects_missing_database_is_an_error_until_somebody_wants_a_new_one() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let create = ["ticket", "create", "t"];
    assert_eq!(program.run(&create).code, Some(0));
    let early = program.run(&["init", "--new"]);
    assert_eq!(early.code, Some(1), "{early:?}");
    assert!(early.stderr.contains("has a database") && early.stderr.contains("move the folder away"), "{early:?}");
    let elsewhere = workspace.beside("elsewhere");
    std::fs::rename(workspace.state(), &elsewhere).unwrap();
    for arguments in [&["ticket", "list"][..], &create, &["audit", "verify"], &["init"]] {
        let refused = program.run(arguments);
        assert_eq!(refused.code, Some(1), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains(workspace.state().to_str().unwrap()), "{refused:?}");
        assert!(refused.stderr.contains("toolhost init --new"), "{refused:?}");
        assert!(!workspace.state().exists(), "nothing is made in its place");
    }
    // Back in its place, all is as it was.
    std::fs::rename(&elsewhere, workspace.state()).unwrap();
    assert!(program.run(&["ticket", "list"]).stdout.contains("TKT-001"));
    std::fs::rename(workspace.state(), &elsewhere).unwrap();
    assert_eq!(program.run(&["init", "--new"]).code, Some(0));
    let list = program.run(&["ticket", "list"]);
    assert!(list.code == Some(0) && !list.stdout.contains("TKT-001"), "{list:?}");
}

const BESIDE: [&str; 2] = ["toolhost.db-wal", "toolhost.db-shm"];

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_database_log_was_deleted_refuses_every_call_and_saves_what_was_written() {
    for deleted in [&BESIDE[..], &BESIDE[..1], &BESIDE[1..]] {
        let workspace = TempWorkspace::new();
        let program = program(&workspace);
        let (mut host, ticket) = host_with_a_ticket(&program).await;
        for file in deleted {
            std::fs::remove_file(workspace.state().join(file)).unwrap();
        }
        let write = json!({ "path": "a.txt", "content": "a" });
        for (tool, arguments) in [("ticket_create", ticket), ("file_write", write), ("ticket_list", json!({}))] {
            let refused = host.call(tool, arguments).await;
            assert_eq!(refused["isError"], true, "{deleted:?} {tool}: {refused}");
            let text = refused["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("was deleted or replaced") && text.contains("nothing was changed"), "{tool}: {text}");
            assert!(text.contains("end every host of this project"), "{tool}: {text}");
        }
        assert!(!workspace.has("a.txt"));
        // Whoever comes meanwhile would begin another log, and find nothing.
        for arguments in [&["ticket", "create", "other"][..], &["ticket", "list"], &["audit", "verify"]] {
            let refused = program.run(arguments);
            assert_eq!(refused.code, Some(1), "{deleted:?} {arguments:?}: {refused:?}");
            let names = refused.stderr.contains(workspace.state().join(deleted[0]).to_str().unwrap());
            assert!(names && refused.stderr.contains("End every host"), "{refused:?}");
        }
        // What the error asks for. That calls were refused is not in the audit, and the host says so by its exit code.
        assert!(!host.close().await.success());
        assert!(program.run(&["ticket", "list"]).stdout.contains("TKT-001"), "{deleted:?}");
        assert!(program.run(&["ticket", "create", "next"]).stdout.contains("TKT-002"), "{deleted:?}");
        assert_eq!(program.run(&["audit", "verify"]).code, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_database_log_was_replaced_leaves_the_other_one_s_changes_alone() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    assert_eq!(program.run(&["ticket", "create", "before"]).code, Some(0));
    let mut host = McpProcess::open(&program, &["--profile", "all"], Era::Session).await;
    let made = host.call("ticket_create", json!({ "title": "lost with its file" })).await;
    assert_eq!(made["isError"], false, "{made}");
    // More is deleted than the log, so that the next host knows nothing of this one.
    for file in BESIDE {
        std::fs::remove_file(workspace.state().join(file)).unwrap();
    }
    toolhost_sandbox::remove_folder(&workspace.state().join("hosts")).unwrap();
    assert_eq!(program.run(&["ticket", "create", "from the other"]).code, Some(0));
    let refused = host.call("ticket_create", json!({ "title": "again" })).await;
    assert_eq!(refused["isError"], true, "{refused}");
    host.close().await;
    let list = program.run(&["ticket", "list"]);
    assert!(list.stdout.contains("before") && list.stdout.contains("from the other"), "{list:?}");
    assert_eq!(program.run(&["audit", "verify"]).code, Some(0));
}
