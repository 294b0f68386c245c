//! A pretended provider refuses to be lied to.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolhost_testkit::{ModelFormat, ModelServer, Turn};

/// Sends a request by hand and returns what was wrong with it.
async fn wrong(format: ModelFormat, key: &str, body: &Value) -> Vec<String> {
    let server = ModelServer::start(format, vec![Turn::text("Fine.")]).await;
    let address = server.url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let (path, auth) = match format {
        ModelFormat::Anthropic => ("/v1/messages", format!("anthropic-version: 2023-06-01\r\nx-api-key: {key}")),
        _ => ("/v1/chat/completions", format!("authorization: Bearer {key}")),
    };
    let body = body.to_string();
    let request = format!("POST {path} HTTP/1.1\r\n{auth}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 200");
    server.violations()
}

/// Puts a value at a place of a body.
fn with(mut body: Value, place: &str, value: Value) -> Value {
    match body.pointer_mut(place) {
        Some(there) => *there = value,
        None => {
            let (parent, name) = place.rsplit_once('/').unwrap();
            body.pointer_mut(parent).unwrap()[name] = value;
        }
    }
    body
}

fn mark() -> Value {
    json!({ "type": "ephemeral" })
}

fn anthropic() -> Value {
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "file_read", "input": {} });
    let result = |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": "x" });
    let mut last = result("b");
    last["cache_control"] = mark();
    json!({
        "model": "m", "max_tokens": 10, "stream": true,
        "system": [{ "type": "text", "text": "Build.", "cache_control": mark() }],
        "tools": [{
            "name": "file_read", "description": "Reads.", "cache_control": mark(),
            "input_schema": { "type": "object", "properties": { "path": {} }, "required": ["path"] }
        }],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "Hi" }] },
            { "role": "assistant", "content": [{ "type": "text", "text": "Two." }, call("a"), call("b")] },
            { "role": "user", "content": [result("a"), last] }
        ]
    })
}

fn openai() -> Value {
    let function = json!({ "name": "file_read", "arguments": "{}" });
    let call = |id: &str| json!({ "id": id, "type": "function", "function": function });
    let parameters = json!({ "type": "object", "properties": {} });
    json!({
        "model": "m", "stream": true, "stream_options": { "include_usage": true },
        "messages": [
            { "role": "system", "content": "Build." },
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "tool_calls": [call("a"), call("b")] },
            { "role": "tool", "tool_call_id": "a", "content": "" },
            { "role": "tool", "tool_call_id": "b", "content": "" }
        ],
        "tools": [{ "type": "function", "function": { "name": "file_read", "parameters": parameters } }]
    })
}

#[tokio::test]
async fn a_good_request_is_not_complained_of() {
    for (format, body) in [(ModelFormat::Anthropic, anthropic()), (ModelFormat::OpenAi, openai())] {
        assert_eq!(wrong(format, ModelServer::KEY, &body).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn each_lie_to_the_messages_format_is_found() {
    let good = anthropic();
    for (place, value, part) in [
        ("/max_tokens", json!(0), "no max_tokens"),
        ("/stream", json!(false), "no stream"),
        ("/unknown", json!(1), "`unknown` is no field"),
        ("/messages", json!([]), "no messages"),
        ("/messages/0/content", json!([]), "message 0 is empty"),
        ("/messages/0/content/0/text", json!(" "), "a text without text"),
        ("/messages/0/role", json!("assistant"), "not of the role user"),
        ("/messages/1/content/1/id", json!("b c"), "the call \"b c\" is none"),
        ("/messages/1/content/1/id", json!("b"), "is there twice"),
        ("/messages/1/content/1/name", json!("file.read"), "\"file.read\" is none"),
        ("/messages/1/content/1/input", json!("{}"), "its input is no object"),
        ("/messages/2/content/0/tool_use_id", json!("z"), "are answered right behind it"),
        ("/messages/2/content/0", json!({ "type": "text", "text": "Hm" }), "something before its answers"),
        ("/messages/2/content/1/cache_control", json!(null), "an unknown mark"),
        (
            "/messages/1/content/0",
            json!({ "type": "thinking", "thinking": "Hm", "signature": "" }),
            "without its signature",
        ),
        ("/tools/0/input_schema/type", json!("string"), "not that of an object"),
        ("/tools/0/input_schema/anyOf", json!([]), "`anyOf` at its top"),
        ("/tools/0/input_schema/required", json!(["x"]), "requires \"x\""),
        ("/tools/0/name", json!("a".repeat(65)), "is none"),
        ("/tools", json!([]), "list of tools is empty"),
    ] {
        let found = wrong(ModelFormat::Anthropic, ModelServer::KEY, &with(good.clone(), place, value)).await;
        assert!(found.iter().any(|what| what.contains(part)), "{place}: {found:?}");
    }
    let many = json!([0, 1, 2].map(|_| json!({ "type": "text", "text": "Build.", "cache_control": mark() })));
    let found = wrong(ModelFormat::Anthropic, ModelServer::KEY, &with(good, "/system", many)).await;
    assert!(found.iter().any(|what| what.contains("it has 5 marks")), "{found:?}");
}

#[tokio::test]
async fn each_lie_to_the_chat_completions_format_is_found() {
    let good = openai();
    for (place, value, part) in [
        ("/stream_options", json!({}), "no usage"),
        ("/messages/1/content", json!(""), "a user who says nothing"),
        ("/messages/1/cache_control", mark(), "marks that the format does not know"),
        ("/messages/2/tool_calls", json!([]), "says nothing"),
        ("/messages/2/tool_calls/0/function/arguments", json!("{"), "the arguments are no object"),
        ("/messages/2/tool_calls/0/function/arguments", json!({}), "the arguments are no object"),
        ("/messages/2/tool_calls/0/id", json!("c"), "are answered right behind it"),
        ("/messages/3/tool_call_id", json!("b"), "are answered right behind it"),
        ("/messages/4/role", json!("user"), "are answered right behind it"),
        ("/messages/2/role", json!("user"), "an answer to nothing"),
        ("/tools/0/function/parameters", json!({}), "not that of an object"),
    ] {
        let found = wrong(ModelFormat::OpenAi, ModelServer::KEY, &with(good.clone(), place, value)).await;
        assert!(found.iter().any(|what| what.contains(part)), "{place}: {found:?}");
    }
}

#[tokio::test]
async fn a_key_is_where_it_belongs_and_nowhere_else() {
    for (format, body, place) in [
        (ModelFormat::Anthropic, anthropic(), "/messages/0/content/0/text"),
        (ModelFormat::OpenAi, openai(), "/messages/1/content"),
    ] {
        let found = wrong(format, "another", &body).await;
        assert!(found.iter().any(|what| what.contains("its header")), "{found:?}");
        let found = wrong(format, ModelServer::KEY, &with(body, place, json!(ModelServer::KEY))).await;
        assert!(found.iter().any(|what| what.contains("where no key belongs")), "{found:?}");
    }
}
