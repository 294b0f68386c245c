//! A client for MCP over stdio, by hand: one line of JSON each way, so that what is measured is the server.
//!
//! Every wait ends: a watchdog kills a server that outlives its limit, and the read then fails with what it complained.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

const PROTOCOL: &str = "2025-11-25";
/// Longer than any row takes, the one that prints 10 GB included.
const LIFE_MAX: Duration = Duration::from_secs(300);
/// How much of a server's complaints goes into an error.
const COMPLAINT_BYTES_MAX: i64 = 600;
const METHOD_NOT_FOUND: i32 = -32601;

/// How to start a server.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    program: OsString,
    arguments: Vec<OsString>,
}

impl Server {
    pub(crate) fn new(name: &'static str, program: impl AsRef<Path>) -> Self {
        Self { name, program: program.as_ref().into(), arguments: Vec::new() }
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<Path>) -> Self {
        self.arguments.push(argument.as_ref().into());
        self
    }
}

/// A connection to a server that has answered `tools/list`. Dropping it ends the server.
pub(crate) struct Client {
    name: &'static str,
    child: Arc<Mutex<Child>>,
    process_id: u32,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    complaints: fs::File,
    tools: Value,
    /// From before the start of the process until the tools were listed.
    pub(crate) ready_after: Duration,
    last_id: u64,
    allows: bool,
    /// Dropped with the client, which tells the watchdog to stop.
    _alive: Sender<()>,
}

/// A line of the server, and when it was complete.
struct Line {
    text: String,
    at: Instant,
}

impl Client {
    /// Starts the server, shakes hands and lists its tools.
    pub(crate) fn start(server: &Server) -> Result<Self> {
        Self::start_as(server, false)
    }

    /// A client that can be asked, and allows everything at once.
    pub(crate) fn start_allowing(server: &Server) -> Result<Self> {
        Self::start_as(server, true)
    }

    fn start_as(server: &Server, allows: bool) -> Result<Self> {
        let complaints = tempfile::tempfile().context("cannot make a temporary file")?;
        let began = Instant::now();
        let mut child = Command::new(&server.program)
            .args(&server.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints.try_clone()?)
            .spawn()
            .with_context(|| format!("cannot start {}", server.name))?;
        let stdin = child.stdin.take().context("the server's stdin was piped above")?;
        let stdout = BufReader::new(child.stdout.take().context("the server's stdout was piped above")?);
        let process_id = child.id();
        let child = Arc::new(Mutex::new(child));
        let alive = watch(child.clone());
        let mut client = Self {
            name: server.name,
            child,
            process_id,
            stdin,
            stdout,
            complaints,
            tools: Value::Null,
            ready_after: Duration::ZERO,
            allows,
            last_id: 0,
            _alive: alive,
        };
        client.shake_hands()?;
        let (listed, at) = client.request("tools/list", json!({}))?;
        client.ready_after = at - began;
        client.tools = listed["tools"].clone();
        Ok(client)
    }

    /// Calls a tool; returns its result and how long it took.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<(Value, Duration)> {
        let line = self.call_line(tool, arguments)?;
        let began = Instant::now();
        self.send(&line)?;
        let (result, at) = self.answer_to(self.last_id)?;
        self.must_succeed(tool, &result)?;
        Ok((result, at - began))
    }

    /// Makes many calls with `window` of them in flight; returns how long all took.
    ///
    /// The window's requests must fit in a pipe (64 KiB): the server may stop reading until we take its answers.
    pub(crate) fn pipeline(&mut self, tool: &str, arguments: &Value, count: usize, window: usize) -> Result<Duration> {
        let lines = (0..count).map(|_| self.call_line(tool, arguments)).collect::<Result<Vec<_>>>()?;
        let mut waiting = lines.iter();
        let began = Instant::now();
        for line in waiting.by_ref().take(window) {
            self.send(line)?;
        }
        let mut answers = Vec::with_capacity(count);
        while answers.len() < count {
            let line = self.receive()?;
            // Looking for the key is enough here, parsing would be our time: what an answer says is checked below.
            if line.text.contains("\"result\"") || line.text.contains("\"error\"") {
                answers.push(line);
                if let Some(next) = waiting.next() {
                    self.send(next)?;
                }
            }
        }
        let took = answers.last().map_or(began, |line| line.at) - began;
        for line in answers {
            let message = parse(&line.text)?;
            self.must_succeed(tool, message.get("result").unwrap_or(&message))?;
        }
        Ok(took)
    }

    /// The largest value that a tool's published schema allows for an integer argument, if it says.
    pub(crate) fn maximum_of(&self, tool: &str, argument: &str) -> Option<u64> {
        let tool = self.tools.as_array()?.iter().find(|listed| listed["name"] == tool)?;
        tool["inputSchema"]["properties"][argument]["maximum"].as_u64()
    }

    /// A figure the kernel keeps of the server, in KiB: `VmRSS` or `VmHWM`.
    pub(crate) fn memory_kib(&self, figure: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process_id))?;
        let value = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
        let kib = value
            .and_then(|value| value.trim().strip_suffix(" kB"))
            .with_context(|| format!("no {figure} in /proc"))?;
        Ok(kib.parse()?)
    }

    fn shake_hands(&mut self) -> Result<()> {
        let capabilities = if self.allows { json!({"elicitation": {}}) } else { json!({}) };
        let client = json!({"name": "toolhost-bench", "version": env!("CARGO_PKG_VERSION")});
        self.request(
            "initialize",
            json!({"protocolVersion": PROTOCOL, "capabilities": capabilities, "clientInfo": client}),
        )?;
        self.send(&line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})))
    }

    fn request(&mut self, method: &str, params: Value) -> Result<(Value, Instant)> {
        let line = self.request_line(method, params)?;
        self.send(&line)?;
        self.answer_to(self.last_id)
    }

    fn call_line(&mut self, tool: &str, arguments: &Value) -> Result<String> {
        self.request_line("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    fn request_line(&mut self, method: &str, params: Value) -> Result<String> {
        self.last_id = self.last_id.checked_add(1).context("out of request ids")?;
        Ok(line(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})))
    }

    fn send(&mut self, line: &str) -> Result<()> {
        self.stdin.write_all(line.as_bytes()).map_err(|error| self.died(&error.to_string()))
    }

    fn receive(&mut self) -> Result<Line> {
        let mut text = String::new();
        let read = self.stdout.read_line(&mut text).map_err(|error| self.died(&error.to_string()))?;
        let at = Instant::now();
        if read == 0 {
            return Err(self.died("it closed the connection"));
        }
        Ok(Line { text, at })
    }

    /// Waits for one answer. Notifications are passed over; what the server asks of us, we do not know.
    fn answer_to(&mut self, id: u64) -> Result<(Value, Instant)> {
        loop {
            let line_read = self.receive()?;
            let mut message = parse(&line_read.text)?;
            if message.get("method").is_some() {
                if let Some(asked) = message.get("id").filter(|_| self.allows) {
                    let result = json!({"action": "accept", "content": {"decision": "allow"}});
                    self.send(&line(&json!({"jsonrpc": "2.0", "id": asked, "result": result})))?;
                } else if let Some(asked) = message.get("id") {
                    let error = json!({"code": METHOD_NOT_FOUND, "message": "this client only calls tools"});
                    self.send(&line(&json!({"jsonrpc": "2.0", "id": asked, "error": error})))?;
                }
            } else if message["id"] == id {
                if let Some(error) = message.get("error") {
                    bail!("{} answered {error}", self.name);
                }
                return Ok((message["result"].take(), line_read.at));
            }
        }
    }

    /// A fast refusal is no result: neither an error of the protocol, nor one of the tool, nor a question to a person.
    fn must_succeed(&self, tool: &str, result: &Value) -> Result<()> {
        let structured = &result["structuredContent"];
        let failed = result.get("content").is_none()
            || result["isError"] == true
            || structured["ok"] == false
            || structured["data"]["status"] == "pending_approval";
        if failed {
            let told: String = result.to_string().chars().take(400).collect();
            bail!("{} did not run `{tool}`: {told}", self.name);
        }
        Ok(())
    }

    fn died(&mut self, what: &str) -> anyhow::Error {
        let mut complaints = Vec::new();
        // Only ever the end of an error's text: if it cannot be read, the error stands without it.
        let _ =
            self.complaints.seek(SeekFrom::End(-COMPLAINT_BYTES_MAX)).or_else(|_| self.complaints.rewind().map(|()| 0));
        let _ = self.complaints.read_to_end(&mut complaints);
        anyhow!("lost {}: {what}; {}", self.name, String::from_utf8_lossy(&complaints).trim())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        end(&self.child);
    }
}

/// Kills the server when its time is over, unless the client is dropped before.
fn watch(child: Arc<Mutex<Child>>) -> Sender<()> {
    let (alive, dropped) = channel();
    thread::spawn(move || {
        if dropped.recv_timeout(LIFE_MAX) == Err(RecvTimeoutError::Timeout) {
            end(&child);
        }
    });
    alive
}

fn end(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    // It may have ended by itself, which is what both calls are for.
    let _ = child.kill();
    let _ = child.wait();
}

fn line(message: &Value) -> String {
    format!("{message}\n")
}

fn parse(line: &str) -> Result<Value> {
    serde_json::from_str(line).with_context(|| {
        let shown: String = line.chars().take(200).collect();
        format!("not JSON: {shown}")
    })
}
