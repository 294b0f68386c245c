//! `toolhost mcp --server`: a client that starts a program gets a server that runs already. What either says goes to the other as it is;
//! here are only the transport's own words: headers, sessions, and a session that the server has forgotten.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhost_outbound::mcp::{Answer, Error, Remote};

/// Longest message of a client, bytes.
const MESSAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Messages that wait to be written.
const WRITING_MAX: usize = 64;
/// Where the protocol stands in a request of 2026-07-28.
const VERSION_OF_REQUEST: &str = "io.modelcontextprotocol/protocolVersion";
/// How long after a lost connection it is listened again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// How long requests under way may take when the client has gone.
const DRAIN: Duration = Duration::from_secs(10);
/// JSON-RPC 2.0, section 5.1.
const PARSE_ERROR: i32 = -32700;
const INTERNAL_ERROR: i32 = -32603;

struct Bridge {
    remote: Remote,
    session: Mutex<Option<Open>>,
    /// Held while a session is begun anew.
    renewing: tokio::sync::Mutex<()>,
    /// Requests under way, by their id as text, and what gives each up.
    under_way: Mutex<HashMap<String, CancellationToken>>,
    out: mpsc::Sender<String>,
    life: CancellationToken,
}

/// A session of a protocol that has them.
#[derive(Clone)]
struct Open {
    id: String,
    version: String,
    /// What the client has begun it with.
    initialize: String,
}

/// Carries messages until the client's output ends or it is stopped.
///
/// # Errors
/// If the address or the token is none, or standard input or output fails.
pub(crate) async fn run(server: &str, token: &str, stop: CancellationToken) -> anyhow::Result<()> {
    let (out, mut writing) = mpsc::channel::<String>(WRITING_MAX);
    let life = CancellationToken::new();
    let bridge = Arc::new(Bridge {
        remote: Remote::new(server, token)?,
        session: Mutex::default(),
        renewing: tokio::sync::Mutex::default(),
        under_way: Mutex::default(),
        out,
        life: life.clone(),
    });
    let writer = tokio::spawn(async move {
        let mut output = tokio::io::stdout();
        while let Some(message) = writing.recv().await {
            output.write_all(message.as_bytes()).await?;
            output.write_all(b"\n").await?;
            output.flush().await?;
        }
        std::io::Result::Ok(())
    });
    let tasks = TaskTracker::new();
    let mut input = BufReader::new(tokio::io::stdin());
    loop {
        let mut line = Vec::new();
        let mut limited = tokio::io::AsyncReadExt::take(&mut input, MESSAGE_BYTES_MAX);
        let read = tokio::select! {
            read = limited.read_until(b'\n', &mut line) => read.context("standard input cannot be read")?,
            () = stop.cancelled() => 0,
        };
        if read == 0 {
            break;
        }
        anyhow::ensure!(
            line.ends_with(b"\n") || u64::try_from(read)? < MESSAGE_BYTES_MAX,
            "a message of the client is longer than {MESSAGE_BYTES_MAX} bytes"
        );
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        if !text.is_empty() {
            bridge.take(text, &tasks).await;
        }
    }
    tasks.close();
    // Whoever has closed its output may still read.
    let _ = tokio::time::timeout(DRAIN, tasks.wait()).await;
    life.cancel();
    if let Some(open) = bridge.open_session() {
        let _ = bridge.remote.end(&open.headers()).await;
    }
    drop(bridge);
    if let Ok(written) = tokio::time::timeout(DRAIN, writer).await {
        written?.context("standard output cannot be written")?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Open {
    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("mcp-session-id", self.id.clone()), ("mcp-protocol-version", self.version.clone())]
    }
}

impl Bridge {
    fn open_session(&self) -> Option<Open> {
        lock(&self.session).clone()
    }

    async fn take(self: &Arc<Self>, text: String, tasks: &TaskTracker) {
        let Ok(message) = serde_json::from_str::<Value>(&text) else {
            let error = json!({ "code": PARSE_ERROR, "message": "the message is no JSON" });
            self.write(json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string()).await;
            return;
        };
        let method = message["method"].as_str().unwrap_or_default();
        let is_modern = message["params"]["_meta"].get(VERSION_OF_REQUEST).is_some();
        if method == "notifications/cancelled" && self.open_session().is_none() {
            // Without sessions a request is given up by closing it.
            if let Some(given_up) = lock(&self.under_way).get(&message["params"]["requestId"].to_string()) {
                given_up.cancel();
            }
            return;
        }
        let bridge = Arc::clone(self);
        let carried = carry(bridge, text, message.clone());
        if method == "initialize" || (method.starts_with("notifications/") && !is_modern) {
            // What follows needs the session, and to be heard in this order.
            carried.await;
        } else {
            tasks.spawn(carried);
        }
        if method == "notifications/initialized" {
            tasks.spawn(listen(Arc::clone(self)));
        }
    }

    async fn write(&self, message: String) {
        // Whoever reads no more has gone.
        let _ = self.out.send(message.replace(['\n', '\r'], " ")).await;
    }

    /// The headers that a message needs.
    fn headers(&self, message: &Value) -> Vec<(&'static str, String)> {
        if let Some(version) = message["params"]["_meta"][VERSION_OF_REQUEST].as_str() {
            let mut headers = vec![("mcp-protocol-version", version.to_owned())];
            if let Some(method) = message["method"].as_str() {
                headers.push(("mcp-method", method.to_owned()));
            }
            let name = ["name", "uri"].into_iter().find_map(|field| message["params"][field].as_str());
            headers.extend(name.map(|name| ("mcp-name", name.to_owned())));
            return headers;
        }
        match self.open_session() {
            Some(open) if message["method"] != "initialize" => open.headers(),
            _ => Vec::new(),
        }
    }

    /// Sends a message. If the server does not know the session, because it was restarted or another server answers, begins a new session
    /// and sends the message again.
    async fn post(&self, text: &str, message: &Value) -> Result<Answer, Error> {
        let before = self.open_session();
        let answer = self.remote.post(text.to_owned(), &self.headers(message)).await?;
        let Some(before) = before.filter(|_| answer.status() == 404 && message["method"] != "initialize") else {
            return Ok(answer);
        };
        self.renew(&before).await?;
        self.remote.post(text.to_owned(), &self.headers(message)).await
    }

    async fn renew(&self, before: &Open) -> Result<(), Error> {
        let _alone = self.renewing.lock().await;
        if self.open_session().is_some_and(|now| now.id != before.id) {
            return Ok(());
        }
        let answer = self.remote.post(before.initialize.clone(), &[]).await?;
        if let Some(id) = answer.session() {
            let open = Open { id: id.to_owned(), ..before.clone() };
            let headers = open.headers();
            *lock(&self.session) = Some(open);
            let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            self.remote.post(initialized.to_string(), &headers).await?;
        }
        Ok(())
    }

    /// Notes the session that an answer to `initialize` has begun.
    fn note_session(&self, answer: &Answer, initialize: &str, reply: &str) {
        let Some(id) = answer.session() else { return };
        let version = serde_json::from_str::<Value>(reply).ok();
        let version = version.and_then(|reply| reply["result"]["protocolVersion"].as_str().map(str::to_owned));
        *lock(&self.session) =
            Some(Open { id: id.to_owned(), version: version.unwrap_or_default(), initialize: initialize.to_owned() });
    }
}

/// Sends one message and writes what comes back.
async fn carry(bridge: Arc<Bridge>, text: String, message: Value) {
    let id = message.get("id").filter(|_| message.get("method").is_some()).cloned();
    let given_up = CancellationToken::new();
    if let Some(id) = &id {
        lock(&bridge.under_way).insert(id.to_string(), given_up.clone());
    }
    let told = tokio::select! {
        told = answered(&bridge, &text, &message) => told,
        () = given_up.cancelled() => Ok(true),
        () = bridge.life.cancelled() => Ok(true),
    };
    if let Some(id) = &id {
        lock(&bridge.under_way).remove(&id.to_string());
    }
    let why = match told {
        Ok(true) => return,
        Ok(false) => "the server has given no answer".to_owned(),
        Err(why) => why,
    };
    match id {
        Some(id) => {
            let error = json!({ "code": INTERNAL_ERROR, "message": why });
            bridge.write(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()).await;
        }
        None => tracing::warn!("a message was not taken: {why}"),
    }
}

/// Whether what came back has the answer; a notification needs none.
async fn answered(bridge: &Bridge, text: &str, message: &Value) -> Result<bool, String> {
    let mut answer = bridge.post(text, message).await.map_err(|error| error.to_string())?;
    let is_request = message.get("id").is_some() && message.get("method").is_some();
    let (status, mut has_answer) = (answer.status(), !is_request);
    while let Some(reply) = answer.next().await.map_err(|error| error.to_string())? {
        if !(200..300).contains(&status) && !is_json_rpc(&reply) {
            return Err(refusal(status, &reply));
        }
        if !is_message(&reply) {
            return Err("the server's answer is not an MCP message".to_owned());
        }
        if message["method"] == "initialize" {
            bridge.note_session(&answer, text, &reply);
        }
        has_answer |= is_answer(&reply, message);
        bridge.write(reply).await;
    }
    if has_answer || (200..300).contains(&status) { Ok(has_answer) } else { Err(refusal(status, "")) }
}

fn is_message(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|message| message["jsonrpc"] == "2.0")
}

fn is_json_rpc(reply: &str) -> bool {
    serde_json::from_str::<Value>(reply).is_ok_and(|reply| reply["jsonrpc"] == "2.0" && !reply["id"].is_null())
}

fn is_answer(reply: &str, message: &Value) -> bool {
    serde_json::from_str::<Value>(reply)
        .is_ok_and(|reply| reply.get("method").is_none() && reply["id"] == message["id"])
}

/// What a server that refuses says, and what helps.
fn refusal(status: u16, body: &str) -> String {
    let said = serde_json::from_str::<Value>(body).ok();
    let said = said.and_then(|said| said["error"]["message"].as_str().map(str::to_owned));
    let said = said.map(|said| format!(": {}", toolhost_contract::visible_line(&said))).unwrap_or_default();
    let hint = match status {
        401 => "; look whether TOOLHOST_TOKEN is a token of this server that has not ended",
        404 => "; look whether the address is right, such as http://127.0.0.1:7420/mcp",
        _ => "",
    };
    format!("the server answered with the status {status}{said}{hint}")
}

/// Writes what the server sends by itself, for as long as the session is there.
async fn listen(bridge: Arc<Bridge>) {
    loop {
        let Some(open) = bridge.open_session() else { return };
        let listening = async {
            let mut answer = bridge.remote.listen(&open.headers()).await?;
            if answer.status() != 200 {
                return Ok(answer.status());
            }
            while let Some(message) = answer.next().await? {
                if is_message(&message) {
                    bridge.write(message).await;
                } else {
                    tracing::warn!("the server sent something that is not an MCP message");
                }
            }
            Ok::<_, Error>(200)
        };
        let ended = tokio::select! {
            ended = listening => ended,
            () = bridge.life.cancelled() => return,
        };
        // A server that sends nothing by itself says so (405); a session that is gone is begun anew by the next request.
        if ended.is_ok_and(|status| status == 405) {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(LISTEN_AGAIN) => {}
            () = bridge.life.cancelled() => return,
        }
    }
}
