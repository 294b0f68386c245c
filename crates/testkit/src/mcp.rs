//! An MCP client that speaks newline-delimited JSON-RPC by hand, so that a test sees every byte and may send any.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::program::Program;

/// Past this, a silent host is a failed test rather than one that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The two ways to speak MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: a session, opened by `initialize`.
    Session,
    /// 2026-07-28: every request says who asks.
    Stateless,
}

/// A host in a process of its own and the client's end of its pipes. Killed when dropped.
pub struct McpProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    era: Era,
    /// What the client says it is able to do.
    capabilities: Value,
    last_id: u64,
    /// Requests of the host's own that nobody has looked at.
    asked: VecDeque<Value>,
    /// Read while something else was waited for.
    held: VecDeque<Value>,
    /// Notifications, in the order they came.
    pub notifications: Vec<Value>,
}

impl McpProcess {
    /// Starts `mcp` with these further arguments; says nothing yet.
    pub fn start(program: &Program, arguments: &[&str], era: Era) -> Self {
        Self::start_logging(program, arguments, era, Stdio::null())
    }

    /// As [`McpProcess::start`], with somewhere for its log.
    pub fn start_logging(program: &Program, arguments: &[&str], era: Era, log: Stdio) -> Self {
        let mut command = tokio::process::Command::from(program.command(&[&["mcp"], arguments].concat()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        Self {
            child,
            stdin,
            stdout,
            era,
            capabilities: json!({}),
            last_id: 0,
            asked: VecDeque::new(),
            held: VecDeque::new(),
            notifications: Vec::new(),
        }
    }

    /// Starts it and opens a session, where the era has sessions.
    pub async fn open(program: &Program, arguments: &[&str], era: Era) -> Self {
        Self::open_with(program, arguments, era, json!({})).await
    }

    /// As [`McpProcess::open`], by a client that says it is able to do this.
    pub async fn open_with(program: &Program, arguments: &[&str], era: Era, capabilities: Value) -> Self {
        let mut process = Self::start(program, arguments, era);
        process.capabilities = capabilities;
        if era == Era::Session {
            let answer = process.initialize().await;
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        }
        process
    }

    pub async fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": self.capabilities,
            "clientInfo": { "name": "testkit", "version": "1" },
        });
        let answer = self.request("initialize", params).await;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// A request as this era writes it, with an id of its own.
    pub fn message(&mut self, method: &str, mut params: Value) -> (u64, Value) {
        self.last_id += 1;
        if self.era == Era::Stateless {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            let meta = meta.as_object_mut().unwrap();
            for (name, value) in [
                ("protocolVersion", json!("2026-07-28")),
                ("clientCapabilities", self.capabilities.clone()),
                ("clientInfo", json!({ "name": "testkit", "version": "1" })),
            ] {
                meta.insert(format!("io.modelcontextprotocol/{name}"), value);
            }
        }
        (self.last_id, json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }))
    }

    /// Sends a request without waiting for its answer; tells its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> u64 {
        let (id, message) = self.message(method, params);
        self.send(&message).await;
        id
    }

    pub async fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.begin("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.answer_to(id).await
    }

    /// The result of `tools/call`, which must not be a protocol error.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    pub async fn send(&mut self, message: &Value) {
        assert!(self.try_send_line(message.to_string().as_bytes()).await, "the host does not read");
    }

    /// Sends bytes and a line's end; says whether the host still reads.
    pub async fn try_send_line(&mut self, line: &[u8]) -> bool {
        self.try_send_bytes(&[line, b"\n"].concat()).await
    }

    pub async fn try_send_bytes(&mut self, bytes: &[u8]) -> bool {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).await.is_ok() && stdin.flush().await.is_ok()
    }

    /// The answer to this request; what comes before it is kept for those who ask later.
    pub async fn answer_to(&mut self, id: u64) -> Value {
        if let Some(at) = self.held.iter().position(|message| message["id"] == id) {
            return self.held.remove(at).unwrap();
        }
        loop {
            let message = self.next_message().await;
            assert!(message.is_some(), "the host ended without an answer to {id}");
            let message = message.unwrap();
            if message["id"] == id {
                return message;
            }
            self.held.push_back(message);
        }
    }

    /// The next answer on the wire; `None` once the host has closed its side.
    pub async fn next_message(&mut self) -> Option<Value> {
        loop {
            let message = self.read().await?;
            if let Some(answer) = self.sort(message) {
                return Some(answer);
            }
        }
    }

    /// Reads until some notification fits, and gives it.
    pub async fn until_notified(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(found) = self.notifications.iter().find(|note| fits(note)) {
                return found.clone();
            }
            let message = self.read().await;
            assert!(message.is_some(), "the host ended without such a notification");
            let answer = self.sort(message.unwrap());
            self.held.extend(answer);
        }
    }

    /// Reads until the host asks something of its own, and gives that request.
    pub async fn until_asked(&mut self) -> Value {
        loop {
            if let Some(request) = self.asked.pop_front() {
                return request;
            }
            let message = self.read().await;
            assert!(message.is_some(), "the host ended without asking");
            let answer = self.sort(message.unwrap());
            assert!(answer.is_none(), "the host did not ask, and said: {answer:?}");
        }
    }

    /// Answers a request of the host's.
    pub async fn respond(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    /// The next line; `None` once the host has closed its side.
    async fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let stdout = self.stdout.as_mut().unwrap();
        let read = tokio::time::timeout(PATIENCE, stdout.read_line(&mut line)).await;
        assert!(read.is_ok(), "the host has been silent for a minute");
        // A host that was killed may leave half a line.
        if read.unwrap().unwrap() == 0 || !line.ends_with('\n') {
            return None;
        }
        let parsed = serde_json::from_str(&line);
        assert!(parsed.is_ok(), "not a message: {line}");
        Some(parsed.unwrap())
    }

    /// Puts what the host says of itself where it is looked for, and gives back what is an answer.
    fn sort(&mut self, message: Value) -> Option<Value> {
        match (message.get("id").is_some(), message.get("method").is_some()) {
            (true, false) => return Some(message),
            (true, true) => self.asked.push_back(message),
            (false, _) => self.notifications.push(message),
        }
        None
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn close_stdout(&mut self) {
        self.stdout = None;
    }

    /// SIGKILL, now.
    pub async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits for the host to end by itself.
    pub async fn wait(&mut self) -> ExitStatus {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        assert!(ended.is_ok(), "the host has not ended within a minute");
        ended.unwrap().unwrap()
    }

    /// Closes the client's side and waits for the host to end.
    pub async fn close(mut self) -> ExitStatus {
        self.close_stdin();
        self.wait().await
    }
}
