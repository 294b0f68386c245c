//! A host that is told to end, ends: also where its client does not read, or has not opened a session.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::process::{Child, ChildStdin, Stdio};

use serde_json::{Value, json};
use toolhost_testkit::{Program, TempWorkspace, until};

use crate::room::program;

/// What Linux gives a pipe.
const PIPE_BYTES: usize = 65_536;
const SIGNALS: [&str; 4] = ["-TERM", "-INT", "-HUP", "-QUIT"];

/// A host, and both ends of the pipe it answers on.
struct Unread {
    workspace: TempWorkspace,
    child: Child,
    stdin: Option<ChildStdin>,
    output: PipeReader,
    input: PipeWriter,
}

impl Unread {
    fn start() -> Self {
        let workspace = TempWorkspace::new();
        let (output, input) = std::io::pipe().unwrap();
        let mut command = program(&workspace).command(&["mcp"]);
        command.stdin(Stdio::piped()).stdout(input.try_clone().unwrap()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        Self { workspace, child, stdin, output, input }
    }

    fn send(&mut self, message: &Value) {
        self.stdin.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn open(&mut self) {
        self.send(&json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } }));
    }

    /// Reads the answer to [`Unread::open`], then no more: the pipe is full.
    fn read_one_answer(&mut self) {
        let mut line = String::new();
        BufReader::new(&self.output).read_line(&mut line).unwrap();
        assert!(line.contains("\"open\""), "{line}");
        self.fill();
    }

    fn fill(&mut self) {
        self.input.write_all(&vec![b' '; PIPE_BYTES]).unwrap();
    }

    /// The second call was made after the answer to the first one.
    async fn make_calls(&mut self) {
        for path in ["first", "second"] {
            let params = json!({ "name": "file_write", "arguments": { "path": path, "content": "x" } });
            self.send(&json!({ "jsonrpc": "2.0", "id": path, "method": "tools/call", "params": params }));
            let workspace = &self.workspace;
            until("the call was made", || workspace.has(path)).await;
        }
    }

    async fn end(&mut self, how: &str) {
        if how == "stdin" {
            self.stdin = None;
        } else {
            let pid = self.child.id();
            // SIGTERM is 15.
            let caught = || {
                let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
                let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
                u64::from_str_radix(&mask, 16).unwrap() >> 14 & 1 == 1
            };
            until("signals are handled", caught).await;
            let kill = Program::new("/bin/kill", &self.workspace).bare().run(&[how, &pid.to_string()]);
            assert_eq!(kill.code, Some(0));
        }
        let child = &mut self.child;
        until(&format!("it ends by {how}"), || child.try_wait().unwrap().is_some()).await;
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{how}");
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        // It has ended, or the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_answers_nobody_reads_ends_when_it_is_told_to() {
    let mut hosts = Vec::new();
    for how in SIGNALS.into_iter().chain(["stdin"]) {
        let mut host = Unread::start();
        host.open();
        host.read_one_answer();
        host.make_calls().await;
        host.end(how).await;
        hosts.push(host);
    }
    // What was done was recorded.
    for host in hosts {
        let rows = program(&host.workspace).run(&["audit", "show"]).stdout;
        assert!(rows.contains("file.write") && !rows.contains("unknown"), "{rows}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_refusals_nobody_reads_ends_when_it_is_told_to() {
    let mut host = Unread::start();
    host.open();
    host.read_one_answer();
    // The first of them is refused before the calls are made.
    host.send(&json!([]));
    host.make_calls().await;
    host.end("-TERM").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_a_session_ends_when_it_is_told_to() {
    for how in SIGNALS {
        Unread::start().end(how).await;
        // Its answer to `initialize` waits for the client.
        let mut host = Unread::start();
        host.fill();
        host.open();
        host.end(how).await;
    }
}

/// Nobody can take the answers any more, so that nothing more is done for them.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_client_was_killed_begins_none_of_the_calls_that_it_holds() {
    const CALLS: usize = 5_000;
    let workspace = TempWorkspace::new();
    let mut command = program(&workspace).command(&["mcp"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut text = json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } })
    .to_string();
    text.push_str("\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    for id in 0..CALLS {
        let params = json!({ "name": "file_write", "arguments": { "path": format!("made/{id}"), "content": "x" } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        text.push_str(&format!("{call}\n"));
    }
    // All of it fits into what the host holds back.
    stdin.write_all(text.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    drop(stdin);
    until("the host has ended", || child.try_wait().unwrap().is_some()).await;
    let made = std::fs::read_dir(workspace.path("made")).map_or(0, Iterator::count);
    // Those whose answers a pipe holds, and those under way.
    assert!(made < CALLS / 2, "{made}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_too_many_values_is_refused_and_the_next_one_is_answered() {
    let workspace = TempWorkspace::new();
    let mut command = program(&workspace).command(&["mcp"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let open = json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } });
    let many = format!(
        r#"{{"jsonrpc":"2.0","id":"many","method":"ping","params":{{"_meta":{{"x":[{}0]}}}}}}"#,
        "0,".repeat(400_000)
    );
    let ping = r#"{"jsonrpc":"2.0","id":"next","method":"ping"}"#;
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    stdin.write_all(format!("{open}\n{initialized}\n{many}\n{ping}\n").as_bytes()).unwrap();
    let mut answers = std::collections::BTreeMap::new();
    let mut lines = BufReader::new(stdout).lines();
    while answers.len() < 3 {
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        answers.insert(answer["id"].as_str().unwrap().to_owned(), answer);
    }
    assert_eq!(answers["many"]["error"]["message"], "the message has 400008 values; 262144 is the most");
    assert_eq!(answers["next"]["result"], json!({}));
    drop(stdin);
    child.wait().unwrap();
}
