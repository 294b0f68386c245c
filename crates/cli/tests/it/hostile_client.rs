//! A client that sends what no client should: the host answers or ignores it, and serves the next call.

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, TempWorkspace, until};

use crate::room::program;

async fn open(workspace: &TempWorkspace) -> McpProcess {
    McpProcess::open(&program(workspace), &[], Era::Session).await
}

async fn assert_serves(host: &mut McpProcess, after: &str) {
    let result = host.call("file_list", json!({})).await;
    assert_eq!(result["isError"], false, "after {after}: {result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_no_messages_do_not_end_the_service() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_call = format!(
        r#"{{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{{"name":"file_list","arguments":{{"path":{deep}}}}}}}"#
    );
    let cases: [(&str, &[u8]); 12] = [
        ("an empty line", b""),
        ("white space", b"   \t"),
        ("no JSON", b"hello"),
        ("half of an object", b"{\"jsonrpc\":\"2.0\",\"id\":901"),
        ("invalid UTF-8", b"\xff\xfe\x80{\"jsonrpc\":\"2.0\"}"),
        (
            "invalid UTF-8 in a call",
            b"{\"jsonrpc\":\"2.0\",\"id\":902,\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}}",
        ),
        ("a number", b"42"),
        ("an empty batch", b"[]"),
        ("another version", b"{\"jsonrpc\":\"1.0\",\"id\":903,\"method\":\"tools/list\"}"),
        ("an answer nobody asked for", b"{\"jsonrpc\":\"2.0\",\"id\":904,\"result\":{}}"),
        ("deep brackets", deep.as_bytes()),
        ("a deep argument", deep_call.as_bytes()),
    ];
    for (what, line) in cases {
        assert!(host.try_send_line(line).await, "{what}: the host has gone");
        assert_serves(&mut host, what).await;
    }
    for (id, code) in [(900, -32700), (902, -32700), (903, -32600)] {
        let answer = host.answer_to(id).await;
        assert_eq!(answer["error"]["code"], code, "whose id can be told is answered: {answer}");
    }
    assert!(host.close().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_answered_without_an_id_and_no_answer_is_answered() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    for (line, code) in [
        (&b"hello"[..], -32700),
        (b"{\"jsonrpc\":\"2.0\",\"method\":\"x\"", -32700),
        (b"\xff\xfe\x80{}", -32700),
        (b"42", -32600),
        (b"[]", -32600),
        (b"{\"id\":{}}", -32600),
    ] {
        let name = String::from_utf8_lossy(line);
        assert!(host.try_send_line(line).await, "{name}");
        let answer = host.next_message().await.unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(code)), "{name}: {answer}");
        // Its own answer comes back, as from a peer of its kind, and worse ones.
        for reply in [
            answer,
            json!({ "jsonrpc": "2.0", "id": null, "result": 3 }),
            json!({ "jsonrpc": "2.0", "id": {}, "error": "x" }),
            json!({ "error": 7 }),
        ] {
            host.send(&reply).await;
        }
        let id = host.begin("tools/list", json!({})).await;
        let next = host.next_message().await.unwrap();
        assert_eq!(next["id"], id, "{name}: nothing came between: {next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_before_initialize_is_told_what_comes_first() {
    let workspace = TempWorkspace::new();
    let mut host = McpProcess::start(&program(&workspace), &[], Era::Session);
    let early = host.request("tools/list", json!({})).await;
    let said = early["error"]["message"].as_str().unwrap();
    assert!(said.starts_with("send `initialize` before any other request"), "{said}");
    assert!(said.contains("`_meta`") && said.contains("io.modelcontextprotocol/protocolVersion"), "{said}");
    assert!(host.initialize().await["result"].is_object(), "and it can still begin");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_session_opens_where_a_client_without_one_has_begun() {
    let workspace = TempWorkspace::new();
    let mut host = McpProcess::open(&program(&workspace), &[], Era::Stateless).await;
    assert!(host.request("tools/list", json!({})).await["result"].is_object());
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let refused = host.request("initialize", params).await;
    assert!(refused["error"]["message"].as_str().is_some_and(|said| said.contains("another connection")), "{refused}");
    assert!(host.request("tools/list", json!({})).await["result"].is_object(), "and it goes on as before");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_ends_no_host_before_the_first_one() {
    let workspace = TempWorkspace::new();
    let mut host = McpProcess::start(&program(&workspace), &[], Era::Session);
    for early in [
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 4, "result": {} }),
    ] {
        host.send(&early).await;
    }
    assert!(host.initialize().await["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opening_that_is_none_is_told_what_is_wrong_with_it() {
    let workspace = TempWorkspace::new();
    let mut host = McpProcess::start(&program(&workspace), &[], Era::Session);
    for (capabilities, told) in
        [(json!({ "elicitation": false }), "invalid type: boolean"), (json!(null), "invalid type: null")]
    {
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": { "name": "strange", "version": "1" } });
        let answer = host.request("initialize", params).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(
            message.starts_with("the parameters of `initialize` do not fit: ") && message.contains(told),
            "{answer}"
        );
    }
    assert!(host.initialize().await["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn strange_parameters_are_answered_with_an_error() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    for params in [
        json!({}),
        json!({ "name": 5 }),
        json!({ "name": "file_list", "arguments": [] }),
        json!({ "name": "file_list", "arguments": "path" }),
        json!({ "name": "" }),
        json!({ "name": "x".repeat(100_000) }),
        json!({ "name": "file_list", "arguments": { "path": "x\u{0}y" } }),
    ] {
        let answer = host.request("tools/call", params.clone()).await;
        let refused = answer["error"].is_object() || answer["result"]["isError"] == true;
        assert!(refused, "{params}: {answer}");
        // Not `-32601`, which says that there is no such method.
        assert!(answer["error"].is_null() || answer["error"]["code"] == -32602, "{params}: {answer}");
        assert!(answer.to_string().len() < 10_000, "the answer echoes what was sent");
        assert_serves(&mut host, &params.to_string()[..20.min(params.to_string().len())]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_beyond_the_limit_changes_nothing_and_the_next_call_is_served() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    let write = |megabytes: usize| json!({ "name": "file_write", "arguments": { "path": "big.txt", "content": "x".repeat(megabytes << 20) } });
    let refused = host.request("tools/call", write(100)).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("16777216 is the most"), "{refused}");
    assert_serves(&mut host, "100 MB").await;
    assert!(!workspace.has("big.txt"));
    let answer = host.request("tools/call", write(15)).await;
    assert_eq!(answer["result"]["isError"], false, "{}", &answer.to_string()[..200]);
    assert_eq!(workspace.read_bytes("big.txt").len(), 15 << 20);
    assert!(host.close().await.success());
    let database = workspace.state().join("toolhost.db");
    assert!(std::fs::metadata(database).unwrap().len() < 4 << 20, "the audit keeps the head and the hash");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_line_and_the_end_of_input_ends_the_host() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    assert_serves(&mut host, "nothing").await;
    assert!(host.try_send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/ca").await);
    assert!(host.close().await.success());
    for first in [&b""[..], b"{\"jsonrpc\":", b"nonsense\n"] {
        let mut host = McpProcess::start(&program(&workspace), &[], Era::Session);
        assert!(host.try_send_bytes(first).await);
        host.close_stdin();
        // With or without an error; but it ends.
        host.wait().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_cannot_hang_the_host() {
    let workspace = TempWorkspace::new();
    workspace.write("big.txt", "a line of some length for the pipe\n".repeat(3000));
    let mut host = open(&workspace).await;
    host.close_stdout();
    for _ in 0..20 {
        let (_, message) =
            host.message("tools/call", json!({ "name": "file_read", "arguments": { "path": "big.txt" } }));
        if !host.try_send_line(message.to_string().as_bytes()).await {
            break;
        }
    }
    host.close_stdin();
    host.wait().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_handshake_or_none_does_not_end_the_service() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    let again: Value = host.initialize().await;
    assert!(again["error"].is_object() || again["result"].is_object(), "{again}");
    assert_serves(&mut host, "a second handshake").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_any_kind_come_back_as_they_were() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    for id in [json!("text"), json!(9_007_199_254_740_991_i64), json!("")] {
        host.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" })).await;
        let answer = host.next_message().await.unwrap();
        assert_eq!(answer["id"], id, "{answer}");
    }
}

/// Of two requests with one id, one would run without an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_the_id_of_one_that_is_under_way_is_refused_and_does_not_run() {
    let workspace = TempWorkspace::new();
    let mut host = McpProcess::open(&program(&workspace), &["--profile", "developer"], Era::Session).await;
    let call = |command: &str| {
        json!({
            "jsonrpc": "2.0", "id": 70, "method": "tools/call",
            "params": { "name": "bash", "arguments": { "command": command } },
        })
    };
    host.send(&call("echo first > d1; until [ -e go ]; do sleep 0.05; done")).await;
    until("the first call runs", || workspace.root().join("d1").exists()).await;
    host.send(&call("echo second > d2")).await;
    let refused = host.next_message().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(70), &json!(-32600)), "{refused}");
    workspace.write("go", b"");
    let answer = host.next_message().await.unwrap();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(70), &json!(false)), "{answer}");
    // It is free again.
    host.send(&call("echo third > d3")).await;
    assert_eq!(host.next_message().await.unwrap()["result"]["isError"], false);
    assert!(!workspace.root().join("d2").exists() && workspace.root().join("d3").exists());
}
