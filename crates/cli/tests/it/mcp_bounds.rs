//! What a client may cost: calls at once, what waits behind them, and memory once it is quiet again.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use toolhost_testkit::{Era, McpProcess, Program, TempWorkspace, until};

use crate::room::program;

const ASKING: &str = "[approvals]\nclient = true\n[[profiles.developer.rules]]\ntool = 'bash'\ndecide = 'ask'\n";
/// What may stay of a burst: half of what an idle host may have.
const KEPT_KIB_MAX: u64 = 12 * 1024;
/// What a client may cost that reads nothing: requests (32 MiB), answers (16 MiB) and what is kept of output (8 MiB) together, and about
/// a mebibyte in a debug build for each of the 40 threads that 64 commands at once have been seen to start.
const COST_KIB_MAX: u64 = 96 * 1024;

fn asking(workspace: &TempWorkspace) -> Program {
    workspace.write_beside("operator.toml", ASKING);
    program(workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"))
}

async fn able(program: &Program, calls_max: &str) -> McpProcess {
    let arguments = ["--calls-max", calls_max];
    McpProcess::open_with(program, &arguments, Era::Session, json!({ "elicitation": {} })).await
}

fn mark(line: &str) -> Value {
    json!({ "command": format!("echo {line} >> ran.txt") })
}

fn allow() -> Value {
    json!({ "action": "accept", "content": { "decision": "allow" } })
}

/// Memory of a process in use, KiB, without the pages of the program's own file, which are read as its code is first run.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A host that was opened, has answered one read, and its two pipes.
async fn raw(
    program: &Program,
) -> (tokio::process::Child, tokio::process::ChildStdin, BufReader<tokio::process::ChildStdout>) {
    let mut command = tokio::process::Command::from(program.command(&["mcp"]));
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut stdout = BufReader::new(stdout);
    let open = json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" } } });
    stdin.write_all(format!("{open}\n{}\n", read(0)).as_bytes()).await.unwrap();
    for _ in 0..2 {
        stdout.read_line(&mut String::new()).await.unwrap();
    }
    (child, stdin, stdout)
}

fn read(id: usize) -> Value {
    request(id, "file_read", &json!({ "path": "big.txt" }))
}

fn request(id: usize, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Sends requests beside whatever else happens.
fn send_all(
    mut stdin: tokio::process::ChildStdin,
    requests: Vec<Value>,
) -> tokio::task::JoinHandle<tokio::process::ChildStdin> {
    tokio::spawn(async move {
        for request in requests {
            stdin.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        }
        stdin.flush().await.unwrap();
        stdin
    })
}

/// Reads so many answers, each once.
async fn take(stdout: &mut BufReader<tokio::process::ChildStdout>, count: usize) {
    let mut seen = vec![false; count + 1];
    let mut line = Vec::new();
    for _ in 0..count {
        line.clear();
        let read = tokio::time::timeout(Duration::from_secs(60), stdout.read_until(b'\n', &mut line));
        assert!(read.await.is_ok_and(|read| read.unwrap() > 0), "the host fell silent");
        let head = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
        let id = head.split("\"id\":").nth(1).and_then(|rest| rest.split([',', '}']).next()?.parse::<usize>().ok());
        let id = id.or_else(|| {
            let tail = String::from_utf8_lossy(&line[line.len().saturating_sub(200)..]).into_owned();
            tail.rsplit("\"id\":").next()?.split([',', '}']).next()?.trim().parse().ok()
        });
        assert!(!std::mem::replace(&mut seen[id.unwrap()], true), "answered twice: {head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_costs_little_and_then_gets_every_answer() {
    const READS: usize = 2000;
    let workspace = TempWorkspace::new();
    workspace.write("big.txt", "0123456789abcde\n".repeat(3750));
    unread(&workspace, (1..=READS).map(read).collect()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_are_bounded_however_long_each_is() {
    const CALLS: usize = 100;
    let workspace = TempWorkspace::new();
    // The most that a read gives, and the most that JSON makes of a byte.
    workspace.write("long.txt", "0123456789abcde\n".repeat(65_536));
    workspace.write("hostile.txt", "\u{1}\u{2}\u{3}\n".repeat(150_000));
    for (path, bytes) in [("long.txt", 1 << 20), ("hostile.txt", 600_000)] {
        let read = json!({ "path": path, "maxBytes": bytes, "limit": 100_000 });
        unread(&workspace, (1..=CALLS).map(|id| request(id, "file_read", &read)).collect()).await;
    }
    // More matches than a search counts, short and long, and some with all of their context.
    workspace.write("8mb/long.txt", format!("{}\n", "0123456789".repeat(100)).repeat(8_000));
    workspace.write("8mb/line.txt", "0123456789".repeat(800_000));
    workspace.write("8mb/context.txt", format!("match\n{}", format!("{}\n", "a".repeat(900)).repeat(40)).repeat(200));
    for (path, pattern) in [("long.txt", "0"), ("8mb", "0"), ("8mb/context.txt", "match")] {
        let search = json!({ "pattern": pattern, "path": path, "limit": 1000, "context": 20 });
        unread(&workspace, (1..=CALLS).map(|id| request(id, "file_search", &search)).collect()).await;
    }
    let print = json!({ "command": "yes 0123456789abcdefghijklmnopqrstuvwxyz | head -c 3000000" });
    unread(&workspace, (1..=CALLS).map(|id| request(id, "bash", &print)).collect()).await;
}

/// Sends requests to a host of its own and reads nothing until it costs no more; then every answer comes once.
async fn unread(workspace: &TempWorkspace, requests: Vec<Value>) {
    let count = requests.len();
    let (child, stdin, mut stdout) = raw(&program(workspace)).await;
    let pid = child.id().unwrap();
    let before = resident_kib(pid);
    let sending = send_all(stdin, requests);
    // It has come to rest when it costs no more for a second.
    let (mut last, mut same, mut most) = (0, 0, 0);
    until("the host rests", || {
        let now = resident_kib(pid);
        same = if now == last { same + 1 } else { 0 };
        (last, most) = (now, most.max(now));
        same > 100
    })
    .await;
    assert!(most < before + COST_KIB_MAX, "{before} KiB before, then {most} KiB");
    take(&mut stdout, count).await;
    drop(sending.await.unwrap());
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty(), "no answer came twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_burst_the_memory_goes_back() {
    let workspace = TempWorkspace::new();
    workspace.write("big.txt", "0123456789abcde\n".repeat(256));
    burst(&workspace, 3000, read).await;
    workspace.write("all/match.txt", "0123456789abcde\n".repeat(60_000));
    // Each read goes through the whole file.
    workspace.write("large.txt", "0123456789abcde\n".repeat(130_000));
    burst(&workspace, 100, |id| request(id, "file_read", &json!({ "path": "large.txt", "limit": 20 }))).await;
    burst(&workspace, 100, |id| request(id, "file_search", &json!({ "pattern": "0", "path": "all" }))).await;
}

/// Sends many requests thrice, takes every answer, and waits until the host has given its memory back.
async fn burst(workspace: &TempWorkspace, count: usize, request: fn(usize) -> Value) {
    let (child, mut stdin, mut stdout) = raw(&program(workspace)).await;
    let pid = child.id().unwrap();
    let before = resident_kib(pid);
    for _ in 0..3 {
        let sending = send_all(stdin, (1..=count).map(request).collect());
        take(&mut stdout, count).await;
        stdin = sending.await.unwrap();
    }
    // Five seconds.
    for _ in 0..500 {
        if resident_kib(pid) <= before + KEPT_KIB_MAX {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(resident_kib(pid) <= before + KEPT_KIB_MAX, "{before} KiB before, {} KiB after", resident_kib(pid));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_call_passes_the_calls_that_are_held() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = able(&program, "2").await;
    let first = host.begin_call("bash", mark("first")).await;
    let first_form = host.until_asked().await;
    let second = host.begin_call("bash", mark("second")).await;
    let second_form = host.until_asked().await;
    // Both slots are taken; neither of these is begun.
    let third = host.begin_call("bash", mark("third")).await;
    let fourth = host.begin_call("bash", mark("fourth")).await;
    assert!(host.request("ping", json!({})).await["result"].is_object());
    host.notify("notifications/cancelled", json!({ "requestId": fourth })).await;
    assert!(host.request("tools/list", json!({})).await["result"]["tools"].is_array());
    let open = program.run(&["--json", "review", "list"]).json();
    assert_eq!(open.as_array().unwrap().len(), 2, "only those in a slot ask: {open}");
    // An answer to a form passes as well, and makes room.
    host.respond(&first_form, allow()).await;
    assert_eq!(host.answer_to(first).await["result"]["structuredContent"]["ok"], true);
    let third_form = host.until_asked().await;
    host.respond(&third_form, allow()).await;
    assert_eq!(host.answer_to(third).await["result"]["structuredContent"]["ok"], true);
    host.respond(&second_form, allow()).await;
    assert_eq!(host.answer_to(second).await["result"]["structuredContent"]["ok"], true);
    // One that was cancelled while it was held never ran and holds nothing up.
    let last = host.begin_call("bash", mark("last")).await;
    let last_form = host.until_asked().await;
    host.respond(&last_form, allow()).await;
    assert_eq!(host.answer_to(last).await["result"]["structuredContent"]["ok"], true);
    assert_eq!(workspace.read("ran.txt"), "first\nthird\nsecond\nlast\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_gives_its_slot_back() {
    let workspace = TempWorkspace::new();
    workspace.write("big.txt", "x\n");
    let program = program(&workspace).variable("TOOLHOST_CALLS_MAX", "1");
    let mut host = McpProcess::open(&program, &[], Era::Session).await;
    for n in 0..5 {
        let command = json!({ "command": format!("touch begun-{n}; sleep 600") });
        let id = host.begin_call("bash", command).await;
        until("it has begun", || workspace.has(&format!("begun-{n}"))).await;
        host.notify("notifications/cancelled", json!({ "requestId": id })).await;
    }
    let read = host.call("file_read", json!({ "path": "big.txt" })).await;
    assert_eq!(read["structuredContent"]["ok"], true, "{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_every_call_waits_for_the_client_its_answer_is_read_however_much_comes_first() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = able(&program, "1").await;
    let first = host.begin_call("bash", mark("first")).await;
    let form = host.until_asked().await;
    // More than is held: what comes after it is refused, and not left unread.
    let mut held = Vec::new();
    let sending = async {
        for n in 0..7 {
            let content = "x".repeat(1 << 20);
            held.push(host.begin_call("file_write", json!({ "path": format!("{n}.txt"), "content": content })).await);
        }
        host.respond(&form, allow()).await;
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), sending).await.is_ok(), "the host reads no more");
    assert_eq!(host.answer_to(first).await["result"]["structuredContent"]["ok"], true);
    let (mut written, mut busy) = (0, 0);
    for id in held {
        let answer = host.answer_to(id).await;
        written += usize::from(answer["result"]["structuredContent"]["ok"] == true);
        busy += usize::from(answer["error"]["code"] == -32000);
    }
    assert_eq!((written, busy), (4, 3));
    assert_eq!(workspace.read("ran.txt"), "first\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_script_has_sent_is_answered_after_it_closed_its_side() {
    let workspace = TempWorkspace::new();
    workspace.write("big.txt", "x\n");
    let mut host = McpProcess::open(&program(&workspace), &["--calls-max", "1"], Era::Session).await;
    let mut ids = Vec::new();
    for _ in 0..200 {
        ids.push(host.begin_call("file_read", json!({ "path": "big.txt" })).await);
    }
    host.close_stdin();
    for id in ids {
        assert_eq!(host.answer_to(id).await["result"]["structuredContent"]["ok"], true);
    }
    assert!(host.wait().await.success());
}

#[test]
fn how_many_calls_at_once_is_the_operator_s_to_say() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    for bad in ["0", "1025", "-1", "many"] {
        let ran = program.run(&["mcp", &format!("--calls-max={bad}")]);
        assert!(ran.code == Some(2) && ran.stderr.contains("a number from 1 to 1024"), "{bad}: {ran:?}");
    }
    workspace.write_beside("operator.toml", "[mcp]\ncalls_max = 0\n");
    let ran = program.variable("TOOLHOST_CONFIG", workspace.beside("operator.toml")).run(&["mcp"]);
    assert!(ran.stderr.contains("mcp.calls_max is 0; it goes from 1 to 1024"), "{ran:?}");
}

/// An agent has put a FIFO in the place of an ignore file, and git waits for it. The test stops git (SIGSTOP), so that the host
/// cannot end it meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn git_that_waits_keeps_no_other_call_from_its_answer() {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\n")]);
    assert!(workspace.shell("mkfifo .gitignore"));
    let (mut child, mut stdin, mut stdout) = raw(&program(&workspace)).await;
    for id in 1..=20 {
        let call = json!({ "jsonrpc": "2.0", "id": format!("git-{id}"), "method": "tools/call",
            "params": { "name": "git_status", "arguments": {} } });
        stdin.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    }
    let root = workspace.root().to_owned();
    let gits = move || {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let is_git =
            |folder: &std::path::Path| std::fs::read_to_string(folder.join("comm")).is_ok_and(|name| name == "git\n");
        let is_here = |folder: &std::path::Path| std::fs::read_link(folder.join("cwd")).is_ok_and(|cwd| cwd == root);
        entries.map(|entry| entry.path()).filter(|folder| is_git(folder) && is_here(folder)).collect::<Vec<_>>()
    };
    until("as many wait as may run at once", || {
        let waiting = gits();
        for folder in &waiting {
            let pid = folder.file_name().unwrap().to_str().unwrap();
            workspace.shell(&format!("kill -STOP {pid}"));
        }
        waiting.len() >= 8
    })
    .await;
    let read = request(1, "file_read", &json!({ "path": "a.txt" }));
    stdin.write_all(format!("{read}\n").as_bytes()).await.unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    let first: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&first["id"], &first["result"]["isError"]), (&json!(1), &json!(false)), "{first}");
    child.kill().await.unwrap();
}
