//! What goes wrong, and what is done about it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolhost_agent::model::{Model, ModelError, Phase, Provider, ProviderConfig, Reply, Secret, Stop};
use toolhost_testkit::{FakeClock, Fault, ModelFormat, ModelServer, Turn};

use crate::talk::{BOTH, Heard, Told, ask_until, config, full_queue, hi, provider, provider_at, user};

const SOON: Duration = Duration::from_millis(30);

/// The waits that a test's settings allow at most.
const MAX_MS: u64 = 20;

async fn asked(server: &ModelServer, format: ModelFormat, heard: &Heard) -> Result<Reply, ModelError> {
    hi(&provider(config(format, server.url())), heard).await
}

fn status(code: u16, headers: &[(&str, &str)], body: &str) -> Turn {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Turn::fault(Fault::Status { code, headers, body: body.to_owned() })
}

#[tokio::test]
async fn a_server_that_is_busy_or_failing_is_asked_again() {
    for format in BOTH {
        for code in [429, 500, 502, 503, 504, 529] {
            let server = ModelServer::start(format, vec![Turn::status(code), Turn::text("Here.")]).await;
            let heard = Heard::default();
            assert_eq!(asked(&server, format, &heard).await.unwrap().text, "Here.");
            let [Told::Again { attempt: 2, wait_ms, why }, Told::Text(_)] = &heard.all()[..] else {
                unreachable!("{:?}", heard.all())
            };
            assert!(*wait_ms <= MAX_MS && why.contains(&code.to_string()), "{why}");
        }
    }
}

#[tokio::test]
async fn a_request_that_is_wrong_is_not_sent_again() {
    for format in BOTH {
        for code in [400, 401, 403, 404, 422, 301, 307] {
            let server = ModelServer::start(format, vec![Turn::status(code)]).await;
            let error = asked(&server, format, &Heard::default()).await.unwrap_err();
            let message = format!("status {code} it is");
            assert_eq!(error, ModelError::Provider { status: Some(code), message, retry_after: None });
            assert_eq!(server.asked(), 1);
        }
    }
}

#[tokio::test]
async fn attempts_come_to_an_end() {
    for format in BOTH {
        let server = ModelServer::answering(format, |_| Turn::status(529)).await;
        let heard = Heard::default();
        let error = asked(&server, format, &heard).await.unwrap_err();
        assert!(matches!(error, ModelError::Provider { status: Some(529), .. }), "{error}");
        assert_eq!((server.asked(), heard.waits_ms().len()), (3, 2));
    }
}

#[tokio::test]
async fn who_has_no_money_left_is_not_asked_again() {
    let body = r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#;
    let server = ModelServer::start(ModelFormat::OpenAi, vec![status(429, &[], body)]).await;
    asked(&server, ModelFormat::OpenAi, &Heard::default()).await.unwrap_err();
    assert_eq!(server.asked(), 1);
}

/// The clock of these tests stands at 2026-01-01T00:00:00Z, a Thursday.
#[tokio::test]
async fn a_server_that_says_when_is_heard_up_to_a_limit() {
    for (name, value, expected_ms) in [
        ("retry-after", "3", 3000),
        ("retry-after", "0.25", 250),
        ("retry-after-ms", "1500", 1500),
        ("retry-after", "Thu, 01 Jan 2026 00:00:07 GMT", 7000),
        ("retry-after", "100000", 10_000),
        ("retry-after", "Fri, 02 Jan 2026 00:00:00 GMT", 10_000),
    ] {
        for format in BOTH {
            let server = ModelServer::start(format, vec![status(429, &[(name, value)], "{}")]).await;
            let mut config = config(format, server.url());
            config.retry.max = Duration::from_secs(10);
            let cancel = CancellationToken::new();
            let heard = Heard { cancels_on_again: Some(cancel.clone()), ..Heard::default() };
            let model = provider_at(config, Arc::new(FakeClock::default()));
            let error = ask_until(&model, &[user("Hi?")], &heard, &cancel).await.unwrap_err();
            assert_eq!(error, ModelError::Cancelled, "a wait ends with the request");
            assert_eq!(heard.waits_ms(), [expected_ms], "{name}: {value}");
        }
    }
    // What is past, or no time at all, asks for nothing.
    for value in ["Wed, 31 Dec 2025 23:59:59 GMT", "0", "-5", "soon", "NaN", "1e300"] {
        let server =
            ModelServer::start(BOTH[0], vec![status(429, &[("retry-after", value)], "{}"), Turn::text("Ok.")]).await;
        let heard = Heard::default();
        asked(&server, BOTH[0], &heard).await.unwrap();
        assert!(heard.waits_ms()[0] <= MAX_MS, "{value}");
    }
}

#[tokio::test]
async fn an_error_among_the_events_is_what_it_would_have_been_before_them() {
    for format in BOTH {
        for after in [0, 1, 4] {
            let fault = Fault::ErrorAfter(after, "overloaded_error".to_owned(), "Overloaded".to_owned());
            let long = Turn::text("one two three four five six").but(fault);
            let server = ModelServer::start(format, vec![long, Turn::text("Here.")]).await;
            let heard = Heard::default();
            let reply = asked(&server, format, &heard).await.unwrap();
            assert_eq!((reply.text.as_str(), heard.text().as_str()), ("Here.", "Here."), "what came first is void");
            assert_eq!(heard.waits_ms().len(), 1);
        }
        let fault = Fault::ErrorAfter(3, "invalid_request_error".to_owned(), "No.".to_owned());
        let server = ModelServer::start(format, vec![Turn::text("one two three").but(fault)]).await;
        let error = asked(&server, format, &Heard::default()).await.unwrap_err();
        assert_eq!(error, ModelError::Provider { status: Some(400), message: "No.".to_owned(), retry_after: None });
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_no_reply() {
    for format in BOTH {
        let turn = Turn::text("Let me see.").and_call("file_read", &json!({ "path": "a" }));
        // Wherever it ends: cut, reset, or ended as if all were well.
        for after in 0..7 {
            for fault in [Fault::CutAfter(after), Fault::EndAfter(after), Fault::ResetAfter(after)] {
                let name = format!("{format:?} {fault:?}");
                let bad = turn.clone().but(fault);
                let server = ModelServer::start(format, vec![bad.clone(), bad.clone(), bad.clone()]).await;
                let heard = Heard::default();
                let error = asked(&server, format, &heard).await.unwrap_err();
                assert!(matches!(error, ModelError::Broken(_) | ModelError::Unreachable(_)), "{name}: {error}");
                assert_eq!(server.asked(), 3, "{name}");
                let server = ModelServer::start(format, vec![bad, turn.clone()]).await;
                let reply = asked(&server, format, &Heard::default()).await.unwrap();
                assert_eq!(
                    (reply.text.as_str(), reply.stop, reply.calls.len()),
                    ("Let me see.", Stop::Calls, 1),
                    "{name}"
                );
            }
        }
    }
}

#[tokio::test]
async fn events_that_are_none_are_no_reply() {
    let raw = |content_type: &str, body: &str| {
        Turn::fault(Fault::Raw { content_type: content_type.to_owned(), body: body.to_owned() })
    };
    for format in BOTH {
        for body in ["data: {\"type\": \n\n", "data: 7\n\n", "hello", "", "data: [DONE]\n\n"] {
            let turn = raw("text/event-stream", body);
            let server = ModelServer::answering(format, move |_| turn.clone()).await;
            let error = asked(&server, format, &Heard::default()).await.unwrap_err();
            assert!(matches!(error, ModelError::Broken(_)), "{format:?} {body:?}: {error}");
        }
        let server = ModelServer::start(format, vec![raw("application/json", "{\"choices\": []}")]).await;
        let error = asked(&server, format, &Heard::default()).await.unwrap_err();
        assert_eq!(error, ModelError::Broken("it is no stream of events".to_owned()));
        let body = "{\"error\": {\"message\": \"boom\"}}";
        let server = ModelServer::start(format, vec![raw("application/json", body), Turn::text("Ok.")]).await;
        assert_eq!(asked(&server, format, &Heard::default()).await.unwrap().text, "Ok.");
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_called_that() {
    for (code, message) in [
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "This model's maximum context length is 128000 tokens."),
        (400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"),
        (413, "Request exceeds the maximum size"),
    ] {
        for format in BOTH {
            let body = json!({ "error": { "message": message } }).to_string();
            let server = ModelServer::start(format, vec![status(code, &[], &body)]).await;
            let error = asked(&server, format, &Heard::default()).await.unwrap_err();
            assert_eq!(error, ModelError::TooLong(message.to_owned()));
            assert_eq!(server.asked(), 1);
        }
    }
}

async fn timed_out(format: ModelFormat, turn: Turn, change: fn(&mut ProviderConfig)) -> (ModelError, usize) {
    let server = ModelServer::answering(format, move |_| turn.clone()).await;
    let mut config = config(format, server.url());
    change(&mut config);
    let error = hi(&provider(config), &Heard::default()).await.unwrap_err();
    (error, server.asked())
}

#[tokio::test]
async fn a_server_that_goes_quiet_is_left_in_the_phase_it_was_in() {
    for format in BOTH {
        let (error, asked) =
            timed_out(format, Turn::fault(Fault::Silence), |config| config.timeouts.first_byte = SOON).await;
        assert_eq!((error, asked), (ModelError::Timeout { phase: Phase::FirstByte, limit: SOON }, 3));
        // The head of a reply is not its first byte.
        let head = Turn::fault(Fault::StallAfter(0));
        let (error, asked) = timed_out(format, head, |config| config.timeouts.first_byte = SOON).await;
        assert_eq!((error, asked), (ModelError::Timeout { phase: Phase::FirstByte, limit: SOON }, 3));
        let turn = Turn::fault(Fault::StallAfter(3));
        let (error, asked) = timed_out(format, turn, |config| config.timeouts.stall = SOON).await;
        assert_eq!((error, asked), (ModelError::Timeout { phase: Phase::Stall, limit: SOON }, 3));
        // However often it gives a sign of life; the next one would take as long, and is paid for.
        let turn = Turn::fault(Fault::StallAfter(3));
        let (error, asked) = timed_out(format, turn, |config| config.timeouts.whole = SOON).await;
        assert_eq!((error, asked), (ModelError::Timeout { phase: Phase::Whole, limit: SOON }, 1));
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    for format in BOTH {
        // Free a moment ago, so nobody listens.
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let heard = Heard::default();
        let error = hi(&provider(config(format, &format!("http://{address}/v1"))), &heard).await.unwrap_err();
        assert!(matches!(&error, ModelError::Unreachable(why) if why.contains("refused")), "{error}");
        assert_eq!(heard.waits_ms().len(), 2);
    }
}

#[tokio::test]
async fn a_server_that_takes_no_connection_is_late() {
    let full = full_queue().await;
    for format in BOTH {
        let mut config = config(format, &format!("http://{}/v1", full.address));
        config.timeouts.connect = SOON;
        let error = hi(&provider(config), &Heard::default()).await.unwrap_err();
        assert_eq!(error, ModelError::Timeout { phase: Phase::Connect, limit: SOON });
    }
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_ends_in_every_phase() {
    for format in BOTH {
        for fault in [Fault::Silence, Fault::StallAfter(0), Fault::StallAfter(3)] {
            let server = ModelServer::start(format, vec![Turn::fault(fault)]).await;
            let model = provider(config(format, server.url()));
            let cancel = CancellationToken::new();
            let (heard, hello) = (Heard::default(), [user("Hi?")]);
            let stop = async {
                server.arrived(1).await;
                cancel.cancel();
            };
            let (reply, ()) = tokio::join!(ask_until(&model, &hello, &heard, &cancel), stop);
            assert_eq!(reply, Err(ModelError::Cancelled));
        }
        // In the middle of the text; and before anything is sent.
        let turn = Turn::text("one two three").but(Fault::StallAfter(6));
        let server = ModelServer::start(format, vec![turn]).await;
        let cancel = CancellationToken::new();
        let heard = Heard { cancels_on_text: Some(cancel.clone()), ..Heard::default() };
        let model = provider(config(format, server.url()));
        assert_eq!(ask_until(&model, &[user("Hi?")], &heard, &cancel).await, Err(ModelError::Cancelled));
        assert_eq!(ask_until(&model, &[user("Hi?")], &heard, &cancel).await, Err(ModelError::Cancelled));
        assert_eq!(server.asked(), 1);
    }
}

#[tokio::test]
async fn no_error_holds_a_key_or_the_value_of_a_header() {
    const GATEWAY: &str = "gateway-token-77";
    for (format, key) in BOTH.into_iter().flat_map(|format| [(format, ModelServer::KEY), (format, GATEWAY)]) {
        let quoted = json!({ "error": { "message": format!("Incorrect API key provided: {key}") } }).to_string();
        let faults = [
            Fault::Status { code: 401, headers: Vec::new(), body: quoted.clone() },
            Fault::Status { code: 529, headers: Vec::new(), body: format!("<html>{key}</html>") },
            Fault::Status { code: 400, headers: Vec::new(), body: format!("prompt is too long: {key}") },
            Fault::ErrorAfter(2, "api_error".to_owned(), format!("key {key} failed")),
            Fault::Raw { content_type: "application/json".to_owned(), body: quoted },
            Fault::Raw { content_type: "text/event-stream".to_owned(), body: format!("data: {{\"{key}\"\n\n") },
        ];
        for fault in faults {
            let turn = Turn::fault(fault.clone());
            let server = ModelServer::answering(format, move |_| turn.clone()).await;
            let heard = Heard::default();
            let mut config = config(format, server.url());
            config.headers = vec![("x-gateway".to_owned(), Secret::new(GATEWAY))];
            let error = hi(&provider(config), &heard).await.unwrap_err();
            let shown = format!("{error} {error:?} {:?}", heard.all());
            assert!(!shown.contains(key), "{fault:?}: {shown}");
        }
    }
}

#[tokio::test]
async fn a_key_that_stands_where_a_message_is_cut_is_not_shown_by_half() {
    let key = ModelServer::KEY;
    for format in BOTH {
        let message = format!("{}{key}", "x".repeat(1_000 - key.len() / 2));
        let body = json!({ "error": { "message": message } }).to_string();
        let server = ModelServer::answering(format, move |_| status(400, &[], &body)).await;
        let error = asked(&server, format, &Heard::default()).await.unwrap_err();
        assert!(!error.to_string().contains(&key[..key.len() / 2]), "{error}");
    }
}

fn raw(body: &str) -> Turn {
    Turn::fault(Fault::Raw { content_type: "text/event-stream".to_owned(), body: body.to_owned() })
}

#[tokio::test]
async fn a_reply_of_parts_without_end_is_refused() {
    let parts: String =
        (0..3_000).map(|n| format!("data: {{\"type\":\"content_block_start\",\"index\":{n}}}\n\n")).collect();
    let server = ModelServer::start(ModelFormat::Anthropic, vec![raw(&parts)]).await;
    let error = asked(&server, ModelFormat::Anthropic, &Heard::default()).await.unwrap_err();
    assert!(error.to_string().contains("1024 parts"), "{error}");
}

#[tokio::test]
async fn a_reply_is_read_whose_numbers_and_halves_of_characters_are_odd() {
    let body = concat!(
        r#"data: {"choices":[{"delta":{"content":"x\ud83d"}}]}"#,
        "\n\n",
        r#"data: {"choices":[{"delta":{"content":"\ude00y"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1.5,"completion_tokens":"12"}}"#,
        "\n\ndata: [DONE]\n\n",
    );
    let server = ModelServer::start(ModelFormat::OpenAi, vec![raw(body)]).await;
    let reply = asked(&server, ModelFormat::OpenAi, &Heard::default()).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.usage.total(), reply.stop), ("x\u{fffd}\u{fffd}y", 0, Stop::Done));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for format in BOTH {
        let elsewhere = ModelServer::start(format, Vec::new()).await;
        let location = format!("{}/messages", elsewhere.url());
        let server = ModelServer::start(format, vec![status(307, &[("location", &location)], "")]).await;
        asked(&server, format, &Heard::default()).await.unwrap_err();
        assert_eq!(elsewhere.asked(), 0);
    }
}

#[tokio::test]
async fn settings_that_would_show_a_key_make_no_model() {
    let made = |url: &str| Provider::new(config(BOTH[0], url), Arc::new(FakeClock::default()));
    for url in ["http://models.example/v1", "https://me:secret@models.example/v1", "ftp://models.example", "models"] {
        assert!(matches!(made(url), Err(ModelError::Disabled(_))), "{url}");
    }
    for url in ["https://models.example/v1", "http://localhost:8080/v1", "http://[::1]:8080/v1", "http://127.9.9.9"] {
        assert_eq!(made(url).unwrap().facts().name, "anthropic::mock-1", "{url}");
    }
}
