//! No line is left to the terminal to break: the rest of it would stand where the host's own lines begin.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, Program, TempWorkspace};

use crate::room::program;

const COLUMNS: u16 = 64;
const ALONE: &str = "{} </dev/tty 2>&1";
/// What an agent would like to be read as a row of the host's.
const ROW: &str = "99  2026-11-22T15:00:00Z  git.push  ok 812 ms";

/// Wherever its line begins, some part of this begins where a terminal begins its next row.
fn padded() -> String {
    (0..u32::from(COLUMNS)).map(|n| format!("x{}{ROW}", " ".repeat(n as usize))).collect()
}

/// Columns, where a character may be wide.
fn columns(line: &str) -> usize {
    line.chars().map(|c| if c == '日' { 2 } else { 1 }).sum()
}

#[track_caller]
fn check(what: &str, lines: &[String]) {
    let text = lines.join("\n");
    assert!(text.contains("99  2026"), "{what}: the row is there at all: {text}");
    for line in lines {
        // What was there before it was written over.
        let line = line.rsplit('\r').next().unwrap_or_default();
        assert!(columns(line) <= usize::from(COLUMNS), "{what}: {line}");
        assert!(!line.starts_with(&ROW[..8]), "{what}: {text}");
    }
}

fn shown(program: &Program, arguments: &[&str]) -> Vec<String> {
    program.run_at_terminal(COLUMNS, ALONE, arguments)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_wrote_begins_no_row_of_a_listing() {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\n")]);
    workspace.write_beside("operator.toml", "[approvals]\nhold_seconds = 0\n");
    let program = program(&workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    let mut host = McpProcess::open(&program, &["--profile", "all"], Era::Session).await;
    let text = padded();
    for (tool, arguments) in [
        ("bash", json!({ "command": format!(": '{text}'") })),
        ("bash", json!({ "command": format!(": '{}日{ROW}'", "日".repeat(40)) })),
        ("human_ask", json!({ "question": &text })),
        ("ticket_create", json!({ "title": text.chars().take(190).collect::<String>(), "description": &text })),
        ("file_write", json!({ "path": "b.txt", "content": &text })),
        ("file_write", json!({ "path": "c.txt", "content": "x\n" })),
    ] {
        let outcome = host.call(tool, arguments).await["structuredContent"].clone();
        assert_eq!(outcome["ok"], true, "{tool}: {outcome}");
    }
    check("audit show", &shown(&program, &["audit", "show"]));
    check("review list", &shown(&program, &["review", "list"]));
    check("review show", &shown(&program, &["review", "show", "ask-1"]));
    check("ticket read", &shown(&program, &["ticket", "read", "TKT-001"]));
    check("file.read", &shown(&program, &["call", "file.read", r#"{"path":"b.txt"}"#]));
    check("an error", &shown(&program, &["call", &text]));
    check("undo", &shown(&program, &["undo", "--since", "1h"]));
    let json = shown(&program, &["--json", "audit", "show"]).concat();
    let parts = serde_json::Deserializer::from_str(&json).into_iter::<Value>();
    assert!(parts.last().is_some_and(|part| part.is_ok()), "JSON is as it is: {json}");
}

#[test]
fn what_a_model_says_and_calls_has_the_mark_of_its_lines() {
    let workspace = TempWorkspace::new();
    let text = padded();
    let story = json!({ "turns": [
        { "text": format!("\napproval needed ask-1\n{text}"), "calls": [{ "tool": "file.read", "arguments": { "path": text } }] },
        { "text": format!("{ROW}\ndone") },
    ] });
    workspace.write_beside("story.json", &story.to_string());
    let model = format!("script:{}", workspace.beside("story.json").display());
    let program = program(&workspace);
    for around in [ALONE, "{} </dev/tty | tee /dev/null"] {
        let lines = program.run_at_terminal(COLUMNS, around, &["run", "go", "--model", &model, "--profile", "all"]);
        check(around, &lines);
        let own = lines.iter().filter(|line| line.starts_with("approval needed")).count();
        assert_eq!(own, 0, "{around}: {lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("| approval needed ask-1")), "{around}: {lines:?}");
    }
    let plain = program.run(&["run", "go", "--model", &model, "--profile", "all"]);
    assert!(plain.stdout.contains(&format!("\n{ROW}\ndone")), "a program is given the text alone: {plain:?}");
}

/// Between two writes of one line, `tee` could print its own, which would then stand where a line of the host begins.
#[test]
fn each_line_beside_the_output_is_one_write() {
    let workspace = TempWorkspace::new();
    let story = json!({ "turns": [{ "calls": [{ "tool": "file.list", "arguments": {} }] }, { "text": "done" }] });
    workspace.write_beside("story.json", &story.to_string());
    let model = format!("script:{}", workspace.beside("story.json").display());
    // A socket of datagrams keeps each write apart.
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let end = theirs.try_clone().unwrap();
    let mut command = program(&workspace).command(&["run", "go", "--model", &model, "--profile", "all"]);
    let mut child = command.stdout(Stdio::null()).stderr(OwnedFd::from(theirs)).spawn().unwrap();
    let reading = std::thread::spawn(move || {
        let (mut writes, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            let length = ours.recv(&mut buffer).unwrap();
            match &buffer[..length] {
                b"end" => return writes,
                write => writes.push(String::from_utf8(write.to_vec()).unwrap()),
            }
        }
    });
    assert!(child.wait().unwrap().success());
    end.send(b"end").unwrap();
    let writes = reading.join().unwrap();
    assert!(writes.iter().any(|write| write.contains("file.list")), "{writes:?}");
    let parts: Vec<&String> = writes.iter().filter(|write| !write.ends_with('\n')).collect();
    assert!(parts.is_empty(), "{parts:?}");
}

/// Listings show a file whose name holds a line break on one line, to people and to models.
#[test]
fn a_line_break_in_a_name_begins_no_line() {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\n")]);
    workspace.write("b.txt\nsecrets", "needle\n");
    let program = program(&workspace);
    for (tool, arguments, told) in [
        ("file.list", "{}", "b.txt\\u{a}secrets (7 bytes)"),
        ("file.search", r#"{"pattern":"needle"}"#, "b.txt\\u{a}secrets:1:needle"),
        ("git.status", "{}", "?? b.txt\\u{a}secrets"),
    ] {
        let text = program.run(&["call", tool, arguments]).stdout;
        assert!(text.lines().any(|line| line == told), "{tool}: {text}");
        assert!(!text.lines().any(|line| line.starts_with("secrets")), "{tool}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_is_looked_at_shows_what_stands_there() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let mut host = McpProcess::open(&program, &["--profile", "all"], Era::Session).await;
    let written = host.call("memory_save_learning", json!({ "content": "a\u{202e}b\u{9b}2Jc" })).await;
    assert_eq!(written["isError"], false, "{written}");
    assert!(host.close().await.success());
    for arguments in [&["export"][..], &["audit", "export"]] {
        let shown = shown(&program, arguments).join("\n");
        assert!(shown.contains(r"a\u202eb\u009b2Jc"), "{arguments:?}: {shown}");
        assert!(!shown.contains(['\u{202e}', '\u{9b}']), "{arguments:?}: {shown}");
        let plain = program.run(arguments).stdout;
        assert!(plain.contains('\u{202e}'), "a program is given the bytes: {plain}");
    }
}

/// A pipe may lead to a terminal, through `head` or `less -R`; a file is another copy.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_moves_no_cursor_through_a_pipe_and_is_exact_in_a_file() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let text = "red \u{1b}[31m, back \r, turned \u{202e}, \u{9b}2J\n";
    workspace.write("odd.txt", text);
    let read = ["call", "file.read", r#"{"path":"odd.txt"}"#];
    let piped = program.run(&read).stdout;
    assert_eq!(piped, "red \\u{1b}[31m, back \\u{d}, turned \\u{202e}, \\u{9b}2J\n");
    let into = format!("{{}} > {}", workspace.path("copy").display());
    program.run_at_terminal(80, &into, &read);
    assert_eq!(workspace.read("copy"), text);
}
