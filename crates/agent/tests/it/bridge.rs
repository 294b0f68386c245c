//! Gemini and Ollama: what they send, in bodies written by hand.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_agent::model::{
    Arguments, ModelError, Phase, Provider, ProviderConfig, ProviderKind, Retry, Secret, Stop,
};
use toolhost_testkit::{FakeClock, Fault, ModelFormat, ModelServer, Turn};

use crate::talk::{Heard, answer, ask, full_queue, hi, provider, said, user};

fn model(kind: ProviderKind, server: &ModelServer) -> ProviderConfig {
    let mut config = ProviderConfig::new(kind, "mock-1");
    config.base_url = Some(server.url().to_owned());
    config.key = Secret::new(ModelServer::KEY);
    config.retry = Retry { attempts: 3, base: Duration::from_millis(2), max: Duration::from_millis(20) };
    config
}

fn gemini(chunks: &[Value]) -> Turn {
    let body = chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect();
    Turn::fault(Fault::Raw { content_type: "text/event-stream".to_owned(), body })
}

fn ollama(lines: &[Value]) -> Turn {
    let body = lines.iter().map(|line| format!("{line}\n")).collect();
    Turn::fault(Fault::Raw { content_type: "application/x-ndjson".to_owned(), body })
}

fn parts(parts: &Value, reason: Option<&str>) -> Value {
    let usage = json!({ "promptTokenCount": 40, "candidatesTokenCount": 5, "cachedContentTokenCount": 30, "totalTokenCount": 45 });
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(reason) = reason {
        candidate["finishReason"] = json!(reason);
    }
    json!({ "candidates": [candidate], "usageMetadata": usage })
}

fn line(message: &Value, done: bool) -> Value {
    let mut line = json!({ "model": "mock-1", "message": message, "done": done });
    if done {
        line["done_reason"] = json!("stop");
        line["prompt_eval_count"] = json!(40);
        line["eval_count"] = json!(5);
    }
    line
}

#[tokio::test]
async fn gemini_speaks_calls_and_gets_its_signatures_back() {
    let call = json!({ "functionCall": { "name": "file_read", "args": { "path": "ä" } }, "thoughtSignature": "c2ln" });
    let second = json!({ "functionCall": { "name": "file_read", "args": { "path": "b" } } });
    let turns = vec![
        gemini(&[
            parts(&json!([{ "text": "Let me" }]), None),
            parts(&json!([{ "text": " see." }, call, second]), Some("STOP")),
        ]),
        gemini(&[parts(&json!([{ "text": "Done." }]), Some("STOP"))]),
    ];
    let server = ModelServer::start(ModelFormat::Raw, turns).await;
    let model = provider(model(ProviderKind::Gemini, &server));
    let heard = Heard::default();
    let reply = hi(&model, &heard).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.stop, reply.calls.len()), ("Let me see.", Stop::Calls, 2));
    assert_eq!(reply.calls[0].arguments, Arguments::Json(json!({ "path": "ä" })));
    assert_ne!(reply.calls[0].id, reply.calls[1].id);
    assert_eq!((reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.output_tokens), (40, 30, 5));
    let answers = reply.calls.iter().map(|call| answer(&call.id, &call.name, "text", false));
    let messages = [user("Hi?"), said(&reply)].into_iter().chain(answers).collect::<Vec<_>>();
    assert_eq!(ask(&model, &messages, &heard).await.unwrap().text, "Done.");
    let contents = &server.requests()[1].body["contents"];
    assert!(contents[1].to_string().contains("c2ln"), "{contents}");
    assert_eq!(contents[2]["parts"].as_array().unwrap().len(), 2, "both answers in one message");
    assert!(server.requests()[0].headers.contains(&("x-goog-api-key".to_owned(), ModelServer::KEY.to_owned())));
    assert!(!server.requests()[0].path.contains(ModelServer::KEY));
}

#[tokio::test]
async fn ollama_speaks_and_calls() {
    let call = json!([{ "function": { "name": "file_read", "arguments": { "path": "ä" } } }]);
    let turns = vec![ollama(&[
        line(&json!({ "role": "assistant", "content": "Let me", "thinking": "Hm." }), false),
        line(&json!({ "role": "assistant", "content": " see.", "tool_calls": call }), false),
        line(&json!({ "role": "assistant", "content": "" }), true),
    ])];
    let server = ModelServer::start(ModelFormat::Raw, turns).await;
    let heard = Heard::default();
    let reply = hi(&provider(model(ProviderKind::Ollama, &server)), &heard).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.stop, heard.thought().as_str()), ("Let me see.", Stop::Calls, "Hm."));
    assert_eq!(reply.calls[0].arguments, Arguments::Json(json!({ "path": "ä" })));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (40, 5));
    assert_eq!(server.requests()[0].path, "/v1/api/chat");
}

#[tokio::test]
async fn their_streams_that_end_early_are_no_replies_either() {
    let cut = [
        (ProviderKind::Gemini, gemini(&[parts(&json!([{ "text": "Let me" }]), None)])),
        (ProviderKind::Ollama, ollama(&[line(&json!({ "role": "assistant", "content": "Let me" }), false)])),
    ];
    for (kind, turn) in cut {
        let server = ModelServer::start(ModelFormat::Raw, vec![turn.clone(), turn.clone(), turn]).await;
        let error = hi(&provider(model(kind, &server)), &Heard::default()).await.unwrap_err();
        assert!(matches!(error, ModelError::Broken(_)), "{kind:?}: {error}");
        assert_eq!(server.asked(), 3);
    }
}

#[tokio::test]
async fn they_are_retried_timed_and_limited_as_the_others() {
    let good = [
        (ProviderKind::Gemini, gemini(&[parts(&json!([{ "text": "Fine." }]), Some("STOP"))])),
        (ProviderKind::Ollama, ollama(&[line(&json!({ "role": "assistant", "content": "Fine." }), true)])),
    ];
    for (kind, turn) in good {
        let server =
            ModelServer::start(ModelFormat::Raw, vec![Turn::status(503), Turn::status(429), turn.clone()]).await;
        assert_eq!(hi(&provider(model(kind, &server)), &Heard::default()).await.unwrap().text, "Fine.");
        let body = format!("{{\"error\":{{\"message\":\"bad key {}\"}}}}", ModelServer::KEY);
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
        let server = ModelServer::start(ModelFormat::Raw, vec![turn]).await;
        let mut config = model(kind, &server);
        config.reply_bytes_max = 20;
        let error = hi(&provider(config), &Heard::default()).await.unwrap_err();
        assert_eq!(error, ModelError::Broken("it is longer than 20 bytes".to_owned()));
    }
}

#[tokio::test]
async fn they_are_late_and_extended_as_the_others() {
    let full = full_queue().await;
    let fine = gemini(&[parts(&json!([{ "text": "Fine." }]), Some("STOP"))]);
    let server = ModelServer::start(ModelFormat::Raw, vec![fine]).await;
    for kind in [ProviderKind::Gemini, ProviderKind::Ollama] {
        let mut late = model(kind, &server);
        late.base_url = Some(format!("http://{}/v1", full.address));
        late.timeouts.connect = Duration::from_millis(30);
        let limit = late.timeouts.connect;
        let error = hi(&provider(late), &Heard::default()).await.unwrap_err();
        assert_eq!(error, ModelError::Timeout { phase: Phase::Connect, limit });
    }
    // A setting of the provider's own is sent; the conversation is not the settings'.
    let extra = json!({ "labels": { "team": "a" }, "contents": [], "tools": [] });
    let mut extended = model(ProviderKind::Gemini, &server);
    extended.extra = extra.as_object().unwrap().clone();
    hi(&provider(extended.clone()), &Heard::default()).await.unwrap();
    let body = server.requests().last().unwrap().body.clone();
    assert!(body["labels"]["team"] == "a" && body["contents"].to_string().contains("Hi?"), "{body}");
    assert!(body["tools"].to_string().contains("file_read"), "{body}");
    extended.provider = ProviderKind::Ollama;
    let none = Provider::new(extended, Arc::new(FakeClock::default())).err();
    assert!(matches!(&none, Some(ModelError::Disabled(text)) if text.contains("extra")), "{none:?}");
}
