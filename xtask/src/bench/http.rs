//! Servers over HTTP, ours and peers: a client by hand, on connections that are kept.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::bench::rows::Stage;
use crate::shell;

/// The newest protocol, which needs no session.
const STATELESS: &str = "2026-07-28";
const SESSIONS: &str = "2025-11-25";
/// No event takes longer.
const EVENT_MAX: Duration = Duration::from_secs(10);

/// A server, and tokens for it. Dropped, it ends.
pub(crate) struct HttpServer {
    child: Child,
    address: String,
    tokens: Vec<String>,
    /// The project's key.
    project: String,
}

/// A connection that is kept.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    path: &'static str,
    /// Headers of each request.
    headers: String,
}

/// Hears the events of a project. Dropped, it goes on until its server ends.
pub(crate) struct Subscriber {
    heard: Receiver<(String, Instant)>,
}

impl HttpServer {
    /// Serves the pages to so many tokens.
    pub(crate) fn start(stage: &Stage, tokens: usize) -> Result<Self> {
        Self::start_on(stage, tokens, None)
    }

    /// The same with this PostgreSQL database.
    pub(crate) fn start_on(stage: &Stage, tokens: usize, database: Option<&str>) -> Result<Self> {
        let (root, state) = (stage.playground.pages(), stage.playground.state("http"));
        Self::serve(tokens, || {
            let mut command = Command::new(&stage.program);
            command.arg("--root").arg(&root).arg("--json");
            match database {
                Some(url) => command.arg("--database").arg(url),
                None => command.arg("--state").arg(&state),
            };
            command
        })
    }

    /// Serves the project that `ours` is about, with tokens.
    pub(crate) fn serve(tokens: usize, ours: impl Fn() -> Command) -> Result<Self> {
        let mut project = String::new();
        let mut token = |number: usize| -> Result<String> {
            let made = shell::stdout_of(ours().args(["token", "create", &format!("bench-{number}")]))?;
            let made: Value = serde_json::from_str(&made).context("the token")?;
            made["project"].as_str().context("there is no project")?.clone_into(&mut project);
            Ok(made["token"].as_str().context("there is no token")?.to_owned())
        };
        let tokens = (0..tokens).map(&mut token).collect::<Result<Vec<_>>>()?;
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
        Ok(Self { child, address, tokens, project })
    }

    pub(crate) fn connect(&self, token: usize) -> Result<Connection> {
        let token = self.tokens.get(token).context("there is no such token")?;
        Connection::open(&self.address, "/mcp", format!("authorization: Bearer {token}\r\n"))
    }

    /// Hears what happens from now on.
    pub(crate) fn subscribe(&self) -> Result<Subscriber> {
        let mut stream = TcpStream::connect(&self.address).context("the server takes no connection")?;
        let token = self.tokens.first().context("there is no token")?;
        let path = format!("/api/v1/projects/{}/events", self.project);
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n")?;
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next().context("the server closed the connection")??;
        ensure!(status.contains(" 200 "), "the server answered {status:?}");
        // After the empty line it listens.
        for line in lines.by_ref() {
            if line?.is_empty() {
                break;
            }
        }
        let (tell, heard) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let at = Instant::now();
                let Some(row) = line.strip_prefix("data: ").and_then(|row| serde_json::from_str::<Value>(row).ok())
                else {
                    continue;
                };
                let call = row["callId"].as_str().filter(|_| row["event"] == "finished");
                if call.is_some_and(|call| tell.send((call.to_owned(), at)).is_err()) {
                    return;
                }
            }
        });
        Ok(Subscriber { heard })
    }

    /// Makes a call over the JSON API. Its number, and when it was answered.
    pub(crate) fn call(&self, connection: &mut Connection, tool: &str, arguments: &Value) -> Result<(String, Instant)> {
        let body = json!({ "tool": tool, "arguments": arguments }).to_string();
        let path = format!("/api/v1/projects/{}/calls", self.project);
        let (_, answer, _) = connection.send(&path, &body, &[])?;
        let at = Instant::now();
        let answer: Value = serde_json::from_str(&answer)?;
        ensure!(answer["ok"] == true, "`{tool}` did not run: {answer:.300}");
        Ok((answer["meta"]["callId"].as_str().context("the answer names no call")?.to_owned(), at))
    }

    /// The project's key.
    pub(crate) fn project(&self) -> &str {
        &self.project
    }

    pub(crate) fn token(&self) -> Result<&str> {
        Ok(self.tokens.first().context("there is no token")?)
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
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

impl Subscriber {
    /// When the end of a call was heard.
    pub(crate) fn heard(&self, call: &str) -> Result<Instant> {
        loop {
            let (heard, at) = self.heard.recv_timeout(EVENT_MAX).context("the event was not heard")?;
            if heard == call {
                return Ok(at);
            }
        }
    }
}

impl Connection {
    fn open(address: &str, path: &'static str, headers: String) -> Result<Self> {
        let stream = TcpStream::connect(address).context("the server takes no connection")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), path, headers })
    }

    /// A connection to a peer with a session of its own.
    pub(crate) fn to_peer(address: &str, path: &'static str) -> Result<Self> {
        let mut connection = Self::open(address, path, String::new())?;
        let session = connection.open_session()?;
        connection.headers = format!("mcp-session-id: {session}\r\nmcp-protocol-version: {SESSIONS}\r\n");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        connection.post(&initialized.to_string(), &[])?;
        Ok(connection)
    }

    /// Calls a peer's tool.
    pub(crate) fn call_peer(&mut self, tool: &str, arguments: &Value) -> Result<Duration> {
        let (_, body, took) =
            self.post(&message("tools/call", &json!({ "name": tool, "arguments": arguments })), &[])?;
        let is_answered = body.contains("\"content\"") && !body.contains("\"isError\":true");
        ensure!(is_answered, "the peer did not run `{tool}`: {body:.300}");
        Ok(took)
    }

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

    /// Opens a session, and leaves it. Its number.
    pub(crate) fn open_session(&mut self) -> Result<String> {
        let client = json!({ "name": "toolhost-bench", "version": "1" });
        let params = json!({ "protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": client });
        let (head, body, _) = self.post(&message("initialize", &params), &[])?;
        let named = head.lines().filter_map(|line| line.split_once(':'));
        let session =
            named.filter(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")).map(|(_, id)| id.trim()).next();
        Ok(session.with_context(|| format!("no session was opened: {body:.300}"))?.to_owned())
    }

    fn post(&mut self, message: &str, headers: &[(&str, &str)]) -> Result<(String, String, Duration)> {
        self.send(self.path, message, headers)
    }

    /// A browser's connection, in which somebody has signed in with a link.
    pub(crate) fn signed_in(address: &str, link: &str) -> Result<Self> {
        let path = link.find("/login/").map(|at| &link[at..]).context("the link leads nowhere")?;
        let mut stream = TcpStream::connect(address).context("the server takes no connection")?;
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\nconnection: close\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: 0\r\n\r\n"
        )?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let cookie =
            reply.lines().find_map(|line| line.strip_prefix("set-cookie: ")).and_then(|set| set.split(';').next());
        let cookie = cookie.with_context(|| format!("nobody was signed in: {reply:.300}"))?;
        Self::open(address, "/", format!("cookie: {cookie}\r\n"))
    }

    /// Opens the stream that a page of this browser hears changes from, on a connection of its own.
    pub(crate) fn live(&self, address: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(address).context("the server takes no connection")?;
        write!(stream, "GET /live HTTP/1.1\r\nhost: localhost\r\n{}\r\n", self.headers)?;
        let mut status = String::new();
        BufReader::new(&stream).read_line(&mut status)?;
        ensure!(status.contains(" 200 "), "the server answered {status:?}");
        Ok(stream)
    }

    /// A page, and how long it took.
    pub(crate) fn page(&mut self, path: &str) -> Result<(String, Duration)> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/html\r\n{}\r\n", self.headers);
        let began = Instant::now();
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (_, body) = self.answer().with_context(|| path.to_owned())?;
        Ok((body, began.elapsed()))
    }

    fn send(&mut self, path: &str, message: &str, headers: &[(&str, &str)]) -> Result<(String, String, Duration)> {
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, \
             text/event-stream\r\n{}content-length: {}\r\n",
            self.headers,
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
        if !head.contains(" 200 ") && !head.contains(" 202 ") {
            bail!("the server answered {head:?}: {:.300}", String::from_utf8_lossy(&body));
        }
        Ok((head, String::from_utf8(body)?))
    }
}

fn message(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}
