//! What agents do can be watched while they do it: `toolhost audit follow`, and the log of `toolhost mcp`.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, Program, TempWorkspace, until};

use crate::room::program;

/// `toolhost audit follow` in a process of its own.
struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(program: &Program, arguments: &[&str]) -> Self {
        let mut command = program.command(&[&["--json", "audit", "follow"], arguments].concat());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next row: its event, its tool, how it ended, and whether it says how long it took.
    fn next(&mut self) -> (String, String, Value, bool) {
        let row: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
        let text = |field: &str| row[field].as_str().unwrap().to_owned();
        (text("event"), text("tool"), row["outcome"]["ok"].clone(), row["durationMs"].is_u64())
    }

    fn end(mut self, workspace: &TempWorkspace) -> Option<i32> {
        let kill = Program::new("/bin/kill", workspace).bare().run(&["-INT", &self.child.id().to_string()]);
        assert_eq!(kill.code, Some(0), "{kill:?}");
        self.child.wait().unwrap().code()
    }
}

fn row(event: &str, tool: &str, ok: Value) -> (String, String, Value, bool) {
    (event.to_owned(), tool.to_owned(), ok, event == "finished")
}

/// Rules: 002.80.
#[tokio::test(flavor = "multi_thread")]
async fn rows_are_followed_while_calls_run() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    workspace.write("a.txt", "a");
    for path in ["none.txt", "a.txt"] {
        program.run(&["call", "file.read", &json!({ "path": path }).to_string()]);
    }
    let mut all = Follower::start(&program, &["-n", "1"]);
    assert_eq!(all.next(), row("finished", "file.read", json!(true)), "it begins with the last row");
    let mut failed = Follower::start(&program, &["--failed", "--tool", "bash", "-n", "0"]);
    let mut host = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
    // The row of its beginning is seen while it runs: it waits for a file that is written only then.
    let call = host.begin_call("bash", json!({ "command": "until [ -e go ]; do sleep 0.05; done" })).await;
    assert_eq!(all.next(), row("started", "bash", Value::Null));
    workspace.write("go", "");
    assert_eq!(host.answer_to(call).await["result"]["structuredContent"]["data"]["exitCode"], 0);
    assert_eq!(all.next(), row("finished", "bash", json!(true)));
    host.call("file_read", json!({ "path": "none.txt" })).await;
    assert_eq!(all.next(), row("finished", "file.read", json!(false)));
    host.call("bash", json!({ "command": "vim" })).await;
    assert_eq!(all.next(), row("started", "bash", Value::Null));
    assert_eq!(all.next(), row("finished", "bash", json!(false)));
    assert_eq!(failed.next(), row("finished", "bash", json!(false)), "nothing else fits what is asked for");
    host.call("file_read", json!({ "path": "a.txt" })).await;
    assert_eq!(all.next(), row("finished", "file.read", json!(true)), "each row once");
    assert_eq!((all.end(&workspace), failed.end(&workspace)), (Some(0), Some(0)));
    // For people the same rows are lines with the outcome and the time.
    let shown = program.run(&["audit", "show", "-n", "5"]).stdout;
    assert!(shown.contains("bash") && shown.contains("ok ") && shown.contains(" ms"), "{shown}");
}

/// Rules: 002.80.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_the_door_has_each_call_as_it_begins_and_ends() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "a-secret-of-the-file");
    for (level, expected) in [("info", true), ("warn", false)] {
        let program = program(&workspace).variable("TOOLHOST_LOG", level);
        let path = workspace.beside(&format!("{level}.log"));
        let log = File::create(&path).unwrap();
        let mut host = McpProcess::start_logging(&program, &["--profile", "developer"], Era::Session, log.into());
        host.initialize().await;
        let said = || std::fs::read_to_string(&path).unwrap();
        let call = host.begin_call("bash", json!({ "command": "until [ -e go ]; do sleep 0.05; done" })).await;
        if expected {
            until("the beginning is logged", || said().contains("a call began")).await;
            assert!(!said().contains("a call ended"), "{}", said());
        }
        workspace.write("go", "");
        host.answer_to(call).await;
        workspace.remove("go");
        host.call("file_read", json!({ "path": "a.txt" })).await;
        host.call("file_read", json!({ "path": "none.txt" })).await;
        host.call("no\nsuch\u{1b}[31m", json!({})).await;
        assert!(host.close().await.success());
        let said = said();
        if !expected {
            assert_eq!(said, "", "{level}");
            continue;
        }
        let ends: Vec<&str> = said.lines().filter(|line| line.contains("a call ended")).collect();
        let parts = [("bash", "ok"), ("file.read", "ok"), ("file.read", "not_found"), ("no\\nsuch", "not_found")];
        assert_eq!((ends.len(), said.lines().count()), (parts.len(), 2 * parts.len()), "{said}");
        for (line, (tool, outcome)) in ends.iter().zip(parts) {
            let has = |part: &str| line.contains(part);
            assert!(has(" INFO ") && has("call=") && has("duration_ms=") && has(tool), "{line}");
            assert!(has(&format!("outcome=\"{outcome}\"")), "{line}");
        }
        assert!(!said.contains("secret") && !said.contains('\u{1b}'), "arguments and contents stay out: {said}");
    }
}

/// The audit does not call an answer what a person still has to give.
#[test]
fn a_call_that_waits_for_a_person_is_no_success_yet() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let asked = program.run(&["call", "human.ask", r#"{"question":"Which one?"}"#]);
    assert_eq!(asked.code, Some(3), "{asked:?}");
    let rows = program.run(&["audit", "show"]).stdout;
    let row = rows.lines().rfind(|row| row.contains("human.ask")).unwrap();
    assert!(row.contains("waits for a person") && !row.contains(" ok"), "{rows}");
}
