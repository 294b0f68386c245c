//! Gemini and Ollama where they speak `OpenAI`'s format, in bodies written by hand as they write them.

use std::time::Duration;

use serde_json::{Value, json};
use toolhost_agent::model::{Arguments, ModelError, Phase, ProviderConfig, ProviderKind, Retry, Secret, Stop};
use toolhost_testkit::{Fault, ModelFormat, ModelServer, Turn};

use crate::talk::{Heard, answer, ask, full_queue, hi, provider, said, user};

const BOTH: [ProviderKind; 2] = [ProviderKind::Gemini, ProviderKind::Ollama];

fn model(kind: ProviderKind, server: &ModelServer) -> ProviderConfig {
    let mut config = ProviderConfig::new(kind, "mock-1");
    config.base_url = Some(server.url().to_owned());
    config.key = Secret::new(ModelServer::KEY);
    config.retry = Retry { attempts: 3, base: Duration::from_millis(2), max: Duration::from_millis(20) };
    config
}

fn stream(chunks: &[Value]) -> Turn {
    let mut body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    body.push_str("data: [DONE]\n\n");
    raw(body)
}

fn raw(body: String) -> Turn {
    Turn::fault(Fault::Raw { content_type: "text/event-stream".to_owned(), body })
}

fn piece(delta: &Value, reason: Option<&str>) -> Value {
    json!({
        "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "mock-1",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        "usage": { "prompt_tokens": 40, "completion_tokens": 5, "total_tokens": 45 },
    })
}

fn fine() -> Turn {
    stream(&[piece(&json!({ "role": "assistant", "content": "Fine." }), Some("stop"))])
}

#[tokio::test]
async fn gemini_s_calls_have_no_number_and_get_back_what_it_added_to_them() {
    let call = |id: &str, path: &str| json!({ "id": id, "type": "function", "function": { "name": "file_read", "arguments": json!({ "path": path }).to_string() } });
    let mut signed = call("first", "ä");
    signed["extra_content"] = json!({ "google": { "thought_signature": "c2ln" } });
    let turns = vec![
        stream(&[
            piece(&json!({ "role": "assistant", "content": "Let me" }), None),
            piece(
                &json!({ "role": "assistant", "content": " see.", "tool_calls": [signed, call("second", "b")] }),
                None,
            ),
            piece(&json!({ "role": "assistant" }), Some("stop")),
        ]),
        fine(),
    ];
    let server = ModelServer::start(ModelFormat::Raw, turns).await;
    let model = provider(model(ProviderKind::Gemini, &server));
    let heard = Heard::default();
    let reply = hi(&model, &heard).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.stop, reply.calls.len()), ("Let me see.", Stop::Calls, 2));
    let arguments: Vec<_> = reply.calls.iter().map(|call| call.arguments.clone()).collect();
    assert_eq!(arguments, ["ä", "b"].map(|path| Arguments::Json(json!({ "path": path }))));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (40, 5));
    let answers = reply.calls.iter().map(|call| answer(&call.id, &call.name, "text", false));
    let messages = [user("Hi?"), said(&reply)].into_iter().chain(answers).collect::<Vec<_>>();
    assert_eq!(ask(&model, &messages, &heard).await.unwrap().text, "Fine.");
    let calls = &server.requests()[1].body["messages"][2]["tool_calls"];
    assert_eq!(calls[0]["extra_content"]["google"]["thought_signature"], "c2ln", "{calls}");
    assert_eq!(calls[1].get("extra_content"), None, "{calls}");
    let (authorization, key) = ("authorization".to_owned(), format!("Bearer {}", ModelServer::KEY));
    assert!(server.requests()[0].headers.contains(&(authorization, key)));
    assert_eq!(server.requests()[0].path, "/v1/chat/completions");
}

#[tokio::test]
async fn ollama_speaks_thinks_and_calls() {
    let call = json!({ "index": 0, "id": "call_x", "type": "function", "function": { "name": "file_read", "arguments": "{\"path\":\"ä\"}" } });
    let turns = vec![stream(&[
        piece(&json!({ "role": "assistant", "content": "", "reasoning": "Hm." }), None),
        piece(&json!({ "role": "assistant", "content": "Let me see." }), None),
        piece(&json!({ "role": "assistant", "content": "", "tool_calls": [call] }), None),
        piece(&json!({ "role": "assistant", "content": "" }), Some("tool_calls")),
    ])];
    let server = ModelServer::start(ModelFormat::Raw, turns).await;
    let heard = Heard::default();
    let mut config = model(ProviderKind::Ollama, &server);
    config.key = Secret::none();
    let reply = hi(&provider(config), &heard).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.stop, heard.thought().as_str()), ("Let me see.", Stop::Calls, "Hm."));
    assert_eq!(reply.calls[0].arguments, Arguments::Json(json!({ "path": "ä" })));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (40, 5));
    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1/chat/completions");
    assert!(request.headers.iter().all(|(name, _)| name != "authorization"));
}

#[tokio::test]
async fn a_call_that_gemini_cannot_write_is_asked_for_again_and_what_it_refuses_is_refused() {
    let malformed =
        stream(&[piece(&json!({ "role": "assistant" }), Some("function_call_filter: MALFORMED_FUNCTION_CALL"))]);
    let server = ModelServer::start(ModelFormat::Raw, vec![malformed, fine()]).await;
    assert_eq!(hi(&provider(model(ProviderKind::Gemini, &server)), &Heard::default()).await.unwrap().text, "Fine.");
    let refused = stream(&[piece(&json!({ "role": "assistant" }), Some("content_filter: PROHIBITED_CONTENT"))]);
    let server = ModelServer::start(ModelFormat::Raw, vec![refused]).await;
    let reply = hi(&provider(model(ProviderKind::Gemini, &server)), &Heard::default()).await.unwrap();
    assert_eq!(reply.stop, Stop::Refused);
}

#[tokio::test]
async fn their_streams_that_end_early_are_no_replies_either() {
    for kind in BOTH {
        let cut = raw(format!("data: {}\n\n", piece(&json!({ "content": "Let me" }), None)));
        let server = ModelServer::start(ModelFormat::Raw, vec![cut.clone(), cut.clone(), cut]).await;
        let error = hi(&provider(model(kind, &server)), &Heard::default()).await.unwrap_err();
        assert!(matches!(error, ModelError::Broken(_)), "{kind:?}: {error}");
        assert_eq!(server.asked(), 3);
    }
}

#[tokio::test]
async fn they_are_retried_timed_and_limited_as_the_others() {
    for kind in BOTH {
        let turns = vec![Turn::status(503), Turn::status(429), fine()];
        let server = ModelServer::start(ModelFormat::Raw, turns).await;
        assert_eq!(hi(&provider(model(kind, &server)), &Heard::default()).await.unwrap().text, "Fine.");
        // Gemini puts what it says into a list.
        let body = format!("[{{\"error\":{{\"code\":401,\"message\":\"bad key {}\"}}}}]", ModelServer::KEY);
        let refusal = Turn::fault(Fault::Status { code: 401, headers: Vec::new(), body });
        let server = ModelServer::start(ModelFormat::Raw, vec![refusal]).await;
        let error = hi(&provider(model(kind, &server)), &Heard::default()).await.unwrap_err();
        let message = "bad key ***".to_owned();
        assert_eq!(error, ModelError::Provider { status: Some(401), message, retry_after: None });
        let server = ModelServer::answering(ModelFormat::Raw, |_| Turn::fault(Fault::Silence)).await;
        let mut config = model(kind, &server);
        config.timeouts.first_byte = Duration::from_millis(30);
        let limit = config.timeouts.first_byte;
        let error = hi(&provider(config), &Heard::default()).await.unwrap_err();
        assert_eq!(error, ModelError::Timeout { phase: Phase::FirstByte, limit });
        let server = ModelServer::start(ModelFormat::Raw, vec![fine()]).await;
        let mut config = model(kind, &server);
        config.reply_bytes_max = 20;
        let error = hi(&provider(config), &Heard::default()).await.unwrap_err();
        assert_eq!(error, ModelError::Broken("it is longer than 20 bytes".to_owned()));
    }
}

#[tokio::test]
async fn they_are_late_and_extended_as_the_others() {
    let full = full_queue().await;
    for kind in BOTH {
        let server = ModelServer::start(ModelFormat::Raw, vec![fine()]).await;
        let mut late = model(kind, &server);
        late.base_url = Some(format!("http://{}/v1", full.address));
        late.timeouts.connect = Duration::from_millis(30);
        let limit = late.timeouts.connect;
        let error = hi(&provider(late), &Heard::default()).await.unwrap_err();
        assert_eq!(error, ModelError::Timeout { phase: Phase::Connect, limit });
        // A setting of the provider's own is sent; the conversation is not the settings'.
        let extra = json!({ "reasoning_effort": "low", "messages": [], "tools": [] });
        let mut extended = model(kind, &server);
        extended.extra = extra.as_object().unwrap().clone();
        hi(&provider(extended), &Heard::default()).await.unwrap();
        let body = server.requests().last().unwrap().body.clone();
        assert!(body["reasoning_effort"] == "low" && body["messages"].to_string().contains("Hi?"), "{body}");
        assert!(body["tools"].to_string().contains("file_read"), "{body}");
    }
}
