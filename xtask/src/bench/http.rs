//! Our server over HTTP: a client by hand, on connections that are kept.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::bench::rows::Stage;
use crate::shell;

/// The newest protocol, which needs no session.
const STATELESS: &str = "2026-07-28";
const SESSIONS: &str = "2025-11-25";

/// A server, and tokens for it. Dropped, it ends.
pub(crate) struct HttpServer {
    child: Child,
    address: String,
    tokens: Vec<String>,
}

/// A connection that is kept.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    token: String,
}

impl HttpServer {
    /// Serves the pages to so many tokens.
    pub(crate) fn start(stage: &Stage, tokens: usize) -> Result<Self> {
        let (root, state) = (stage.playground.pages(), stage.playground.state("http"));
        let ours = || {
            let mut command = Command::new(&stage.program);
            command.arg("--root").arg(&root).arg("--state").arg(&state).arg("--json");
            command
        };
        let token = |number: usize| -> Result<String> {
            let made = shell::stdout_of(ours().args(["token", "create", &format!("bench-{number}")]))?;
            let made: Value = serde_json::from_str(&made).context("the token")?;
            Ok(made["token"].as_str().context("there is no token")?.to_owned())
        };
        let tokens = (0..tokens).map(token).collect::<Result<Vec<_>>>()?;
        let mut child = ours().args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(child.stdout.take().context("its output was piped above")?);
        let mut text = String::new();
        let told: Value = loop {
            ensure!(said.read_line(&mut text)? > 0, "the server ended: {text}");
            if let Ok(told) = serde_json::from_str(&text) {
                break told;
            }
        };
        let address = told["address"].as_str().context("the server says no address")?.to_owned();
        Ok(Self { child, address, tokens })
    }

    pub(crate) fn connect(&self, token: usize) -> Result<Connection> {
        let stream = TcpStream::connect(&self.address).context("the server takes no connection")?;
        stream.set_nodelay(true)?;
        let token = self.tokens.get(token).context("there is no such token")?.clone();
        Ok(Connection { stream: BufReader::new(stream), token })
    }

    /// Resident memory, KiB.
    pub(crate) fn memory_kib(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS in /proc")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // Where it has ended before, nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Connection {
    /// Reads a file by a call without a session.
    pub(crate) fn read(&mut self, path: &str) -> Result<Duration> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "toolhost-bench", "version": "1" },
        });
        let params = json!({ "name": "file_read", "arguments": { "path": path }, "_meta": meta });
        let headers = [("mcp-protocol-version", STATELESS), ("mcp-method", "tools/call"), ("mcp-name", "file_read")];
        let (_, body, took) = self.post(&message("tools/call", &params), &headers)?;
        ensure!(body.contains("\"ok\":true"), "the file was not read: {body:.300}");
        Ok(took)
    }

    /// Opens a session, and leaves it.
    pub(crate) fn open_session(&mut self) -> Result<()> {
        let client = json!({ "name": "toolhost-bench", "version": "1" });
        let params = json!({ "protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": client });
        let (head, body, _) = self.post(&message("initialize", &params), &[])?;
        ensure!(head.to_ascii_lowercase().contains("mcp-session-id:"), "no session was opened: {body:.300}");
        Ok(())
    }

    fn post(&mut self, message: &str, headers: &[(&str, &str)]) -> Result<(String, String, Duration)> {
        let mut request = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, \
             text/event-stream\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n",
            self.token,
            message.len()
        );
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n")?;
        }
        write!(request, "\r\n{message}")?;
        let began = Instant::now();
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (head, body) = self.answer()?;
        Ok((head, body, began.elapsed()))
    }

    fn answer(&mut self) -> Result<(String, String)> {
        let (mut head, mut length, mut is_chunked) = (String::new(), 0, false);
        loop {
            let mut line = String::new();
            ensure!(self.stream.read_line(&mut line)? > 0, "the server closed the connection after {head:?}");
            if line == "\r\n" {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse()?,
                "transfer-encoding" => is_chunked = true,
                _ => {}
            }
            head.push_str(&line);
        }
        let mut body = Vec::new();
        if is_chunked {
            loop {
                let mut size = String::new();
                self.stream.read_line(&mut size)?;
                let size = usize::from_str_radix(size.trim(), 16).context("a chunk has no size")?;
                let start = body.len();
                body.resize(start + size + 2, 0);
                self.stream.read_exact(&mut body[start..])?;
                body.truncate(start + size);
                if size == 0 {
                    break;
                }
            }
        } else {
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        }
        if !head.contains(" 200 ") {
            bail!("the server answered {head:?}: {:.300}", String::from_utf8_lossy(&body));
        }
        Ok((head, String::from_utf8(body)?))
    }
}

fn message(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}
