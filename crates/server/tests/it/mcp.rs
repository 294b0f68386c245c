//! MCP over HTTP, of both eras.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_server::http::HttpLimits;
use toolhost_testkit::{HttpReply, HttpStream, request};

use crate::metrics::{self, value};
use crate::rig::{Rig, house};

const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

fn initialize() -> String {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

/// Opens a session; its id.
async fn opened(rig: &Rig, token: &str) -> String {
    let reply = rig.send_with(token, ("POST", "/mcp"), &[ACCEPT], &initialize()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.header("mcp-session-id").unwrap().to_owned()
}

async fn in_session(rig: &Rig, token: &str, session: &str, message: Value) -> HttpReply {
    let headers = [ACCEPT, ("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")];
    rig.send_with(token, ("POST", "/mcp"), &headers, &message.to_string()).await
}

fn read(path: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "file_read", "arguments": { "path": path } } })
}

#[tokio::test]
async fn a_client_of_2025_has_a_session() {
    let rig = Rig::one().await;
    rig.houses[0].workspace.write("a.txt", b"hello");
    let token = rig.token(&["call"]).await;
    let session = opened(&rig, &token).await;
    let reply = in_session(&rig, &token, &session, read("a.txt")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.body.contains("hello"), "{reply:?}");
    let headers = [ACCEPT, ("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert!(rig.send_with(&token, ("DELETE", "/mcp"), &headers, "").await.status < 300);
    assert_eq!(in_session(&rig, &token, &session, read("a.txt")).await.status, 404);
}

#[tokio::test]
async fn a_client_of_2026_needs_none() {
    let rig = Rig::one().await;
    rig.houses[0].workspace.write("a.txt", b"hello");
    let token = rig.token(&["call"]).await;
    let mut message = read("a.txt");
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let headers =
        [ACCEPT, ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "file_read")];
    let reply = rig.send_with(&token, ("POST", "/mcp/p0/all"), &headers, &message.to_string()).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{reply:?}");
    assert!(reply.header("mcp-session-id").is_none());
    assert_eq!(reply.json()["result"]["structuredContent"]["data"]["content"], "hello", "{reply:?}");
    let rows = rig.houses[0].rows().await;
    let row = rows.last().unwrap();
    assert_eq!((&row["caller"]["door"], &row["caller"]["persona"]), (&json!("mcp"), &json!("agent")), "{row}");
}

#[tokio::test]
async fn a_session_of_another_token_is_an_unknown_one() {
    let rig = Rig::one().await;
    let (token, other) = (rig.token(&["call"]).await, rig.token_of(0, "other", &["all"], &["call"]).await);
    let session = opened(&rig, &token).await;
    let theirs = in_session(&rig, &other, &session, read("a.txt")).await;
    let unknown = in_session(&rig, &other, "d44f3231-4f9d-44d9-9620-69c9496acdfc", read("a.txt")).await;
    assert_eq!((theirs.status, &theirs.body), (404, &unknown.body), "{theirs:?}");
    let headers = [ACCEPT, ("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert_eq!(rig.send_with(&other, ("DELETE", "/mcp"), &headers, "").await.status, 404);
    let listened = rig.send_with(&other, ("GET", "/mcp"), &headers, "").await;
    assert_eq!(listened.status, 404, "{listened:?}");
    assert_eq!(in_session(&rig, &token, &session, read("a.txt")).await.status, 200, "it is still there for its own");
}

#[tokio::test]
async fn what_is_no_message_is_answered_with_an_error_of_json_rpc() {
    let rig = Rig::one().await;
    let token = rig.token(&["call"]).await;
    for body in ["", "[]", "{}", "null", r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "{", "\u{0}"] {
        let reply = rig.send_with(&token, ("POST", "/mcp"), &[ACCEPT], body).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32600)), "{body:?}: {reply:?}");
    }
    let reply = rig.send_with(&token, ("POST", "/mcp"), &[("accept", "text/html")], &initialize()).await;
    assert_eq!((reply.status, &reply.json()["jsonrpc"]), (406, &json!("2.0")), "{reply:?}");
    let reply = rig.send(&token, ("TRACE", "/mcp"), "").await;
    assert!(reply.status == 405 && reply.header("allow").is_some(), "{reply:?}");
}

#[tokio::test]
async fn sessions_of_a_token_and_of_all_are_limited() {
    let limits = HttpLimits { sessions_of_token: 2, sessions: 3, ..HttpLimits::default() };
    let rig = Rig::start(vec![house()], limits).await;
    let (token, other) = (rig.token(&["call"]).await, rig.token_of(0, "other", &["all"], &["call"]).await);
    let first = opened(&rig, &token).await;
    opened(&rig, &token).await;
    let third = rig.send_with(&token, ("POST", "/mcp"), &[ACCEPT], &initialize()).await;
    assert_eq!((third.status, third.header("retry-after")), (429, Some("1")), "{third:?}");
    opened(&rig, &other).await;
    assert_eq!(rig.send_with(&other, ("POST", "/mcp"), &[ACCEPT], &initialize()).await.status, 429);
    let headers = [ACCEPT, ("mcp-session-id", first.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert!(rig.send_with(&token, ("DELETE", "/mcp"), &headers, "").await.status < 300);
    opened(&rig, &token).await;
}

#[tokio::test]
async fn an_idle_session_ends_and_one_with_a_listener_does_not() {
    let limits = HttpLimits { session_idle: Duration::from_millis(1), ..HttpLimits::default() };
    let rig = Rig::start(vec![house()], limits).await;
    let (idle, listening) = (rig.token(&["call"]).await, rig.token_of(0, "other", &["all"], &["call"]).await);
    let (idle_session, session) = (opened(&rig, &idle).await, opened(&rig, &listening).await);
    let bearer = format!("Bearer {listening}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("accept", "text/event-stream"),
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let mut stream = HttpStream::open(rig.address, request(("GET", "/mcp"), &headers, "").as_bytes()).await;
    assert!(stream.until("text/event-stream").await.1);
    while in_session(&rig, &idle, &idle_session, read("a.txt")).await.status != 404 {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(in_session(&rig, &listening, &session, read("a.txt")).await.status, 200);
}

/// Waits until so many sessions are in this state.
async fn sessions_are(rig: &Rig, state: &str, count: f64) {
    while value(&metrics::page(rig).await, "toolhost_mcp_sessions", &[state]) != count {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn bash(arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": { "name": "bash", "arguments": arguments } })
}

/// The data of a call that was answered in a session.
fn data_of(reply: &HttpReply) -> Value {
    let mut events = reply.body.lines().filter_map(|line| line.strip_prefix("data: {"));
    let last = events.next_back().map(|event| serde_json::from_str::<Value>(&format!("{{{event}")).unwrap());
    last.map(|event| event["result"]["structuredContent"]["data"].clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_session_that_rests_goes_on_as_it_was() {
    let limits = HttpLimits { session_rest: Duration::from_millis(1), ..HttpLimits::default() };
    let rig = Rig::start(vec![house().helper(toolhost_testkit::fence_helper("tools_fence"))], limits).await;
    rig.houses[0].workspace.write("a.txt", b"hello");
    let token = rig.token(&["call"]).await;
    let session = opened(&rig, &token).await;
    let begun = in_session(
        &rig,
        &token,
        &session,
        bash(json!({ "command": "echo kept > /tmp/k; sleep 600", "background": true })),
    );
    let begun = begun.await;
    let handle = data_of(&begun)["handle"].as_str().map(str::to_owned);
    let handle = handle.unwrap_or_else(|| unreachable!("{begun:?}"));
    sessions_are(&rig, "resting", 1.0).await;
    // Many at once wake it once.
    let many = (10..18).map(|id| {
        let mut message = read("a.txt");
        message["id"] = json!(id);
        in_session(&rig, &token, &session, message)
    });
    for reply in futures::future::join_all(many).await {
        assert!(reply.status == 200 && reply.body.contains("hello"), "{reply:?}");
    }
    let kept = in_session(&rig, &token, &session, bash(json!({ "command": "cat /tmp/k" }))).await;
    assert!(kept.body.contains("kept"), "its private folder is there: {kept:?}");
    let params = json!({ "name": "bash_output", "arguments": { "handle": handle } });
    let output = json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": params });
    let output = data_of(&in_session(&rig, &token, &session, output).await);
    assert_eq!(output["running"], true, "its command in the background runs: {output}");
    let again = in_session(&rig, &token, &session, serde_json::from_str(&initialize()).unwrap()).await;
    assert!(again.body.contains("initialized already"), "{again:?}");
    sessions_are(&rig, "resting", 1.0).await;
    let headers = [ACCEPT, ("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert!(rig.send_with(&token, ("DELETE", "/mcp"), &headers, "").await.status < 300);
    assert_eq!(in_session(&rig, &token, &session, read("a.txt")).await.status, 404);
    sessions_are(&rig, "resting", 0.0).await;
    sessions_are(&rig, "awake", 0.0).await;
    // Its command has ended with it.
    while rig.houses[0].gate.load().open > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_session_that_rests_ends_when_nobody_comes_back() {
    let (rest, idle) = (Duration::from_millis(1), Duration::from_secs(3));
    let limits = HttpLimits { session_rest: rest, session_idle: idle, ..HttpLimits::default() };
    let rig = Rig::start(vec![house()], limits).await;
    let token = rig.token(&["call"]).await;
    let session = opened(&rig, &token).await;
    sessions_are(&rig, "resting", 1.0).await;
    while rig.tidied.load(Ordering::Acquire) == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    sessions_are(&rig, "resting", 0.0).await;
    assert_eq!(in_session(&rig, &token, &session, read("a.txt")).await.status, 404);
}

#[tokio::test]
async fn a_session_with_a_call_under_way_does_not_end_though_its_client_has_gone() {
    let limits = HttpLimits { session_idle: Duration::from_millis(1), ..HttpLimits::default() };
    let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n";
    let rig = Rig::start(vec![house().project_policy(policy)], limits).await;
    let (idle, busy) = (rig.token(&["call"]).await, rig.token_of(0, "busy", &["all"], &["call"]).await);
    let asked = rig.call(&busy, "file.write", json!({ "path": "a.txt", "content": "x" })).await.json();
    let params = json!({ "name": "approval_wait", "arguments": { "approvalId": asked["data"]["approvalId"], "timeoutMs": 600_000 } });
    let waits = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params }).to_string();
    let (session, bearer) = (opened(&rig, &busy).await, format!("Bearer {busy}"));
    let headers = [
        ("authorization", bearer.as_str()),
        ACCEPT,
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let mut waiting = HttpStream::open(rig.address, request(("POST", "/mcp"), &headers, &waits).as_bytes()).await;
    assert!(waiting.until("text/event-stream").await.1);
    drop(waiting);
    // It has been looked for idle sessions since.
    let idle_session = opened(&rig, &idle).await;
    while in_session(&rig, &idle, &idle_session, read("a.txt")).await.status != 404 {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(in_session(&rig, &busy, &session, read("a.txt")).await.status, 200);
}
