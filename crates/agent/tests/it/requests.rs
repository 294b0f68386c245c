//! What is sent. The pretended servers check each request against the rules of its format, and fail the test.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolhost_agent::model::{Arguments, Message, Model, Request, Secret, ToolCall, Unfollowed};
use toolhost_testkit::{ModelFormat, ModelServer, Seed, Turn};

use crate::talk::{BOTH, Heard, answer, ask, assistant, config, hi, provider, user};

/// The body that these messages become.
async fn sent(format: ModelFormat, messages: &[Message]) -> Value {
    let server = ModelServer::start(format, vec![Turn::text("Fine.")]).await;
    ask(&provider(config(format, server.url())), messages, &Heard::default()).await.unwrap();
    server.requests()[0].body.clone()
}

fn two_calls() -> Message {
    let first = ("a", "file_read", json!({ "path": "1" }));
    assistant("Two.", &[first, ("b", "file_read", json!({ "path": "2" }))])
}

#[tokio::test]
async fn the_results_of_parallel_calls_are_one_message_with_failures_marked() {
    let messages =
        [user("Hi"), two_calls(), answer("a", "file_read", "one", false), answer("b", "file_read", "no", true)];
    let body = sent(ModelFormat::Anthropic, &messages).await;
    let results = &body["messages"][2]["content"];
    assert_eq!(results.as_array().unwrap().len(), 2);
    assert_eq!((&results[0]["tool_use_id"], &results[0].get("is_error")), (&json!("a"), &None));
    assert_eq!((&results[1]["tool_use_id"], &results[1]["is_error"]), (&json!("b"), &json!(true)));
    let body = sent(ModelFormat::OpenAi, &messages).await;
    let roles = body["messages"].as_array().unwrap().iter().map(|line| line["role"].as_str().unwrap());
    assert_eq!(roles.collect::<Vec<_>>(), ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(body["messages"][2]["tool_calls"][1]["function"]["arguments"], "{\"path\":\"2\"}");
}

#[tokio::test]
async fn marks_stand_where_the_next_request_finds_them() {
    let messages = [user("Hi"), assistant("Yes?", &[]), user("Well"), two_calls()];
    let results = [answer("a", "file_read", "one", false), answer("b", "file_read", "two", false)];
    let body = sent(ModelFormat::Anthropic, &[&messages[..], &results].concat()).await;
    let marked = |value: &Value| value.get("cache_control").is_some();
    let system = body["system"].as_array().unwrap().iter().map(marked).collect::<Vec<_>>();
    assert_eq!(system, [false, true, false], "the last instruction that stays");
    let tools = body["tools"].as_array().unwrap().iter().map(marked).collect::<Vec<_>>();
    assert_eq!(tools, [false, true]);
    let said = body["messages"].as_array().unwrap();
    let ends = said.iter().map(|message| message["content"].as_array().unwrap().iter().map(marked).collect::<Vec<_>>());
    let expected: [&[bool]; 5] = [&[false], &[false], &[true], &[false, false, false], &[false, true]];
    assert_eq!(ends.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn whatever_a_conversation_lacks_a_provider_takes_it() {
    let malformed = ToolCall {
        id: "call with spaces".to_owned(),
        name: "fïle.read/now".to_owned(),
        arguments: Arguments::Malformed("{\"a".to_owned()),
    };
    let odd = Message::Assistant { content: " ".to_owned(), calls: vec![malformed], signatures: vec!["?".to_owned()] };
    let conversations = [
        // No answer, half of the answers, an answer to nothing, one twice.
        vec![user("Hi"), two_calls(), user("And?")],
        vec![user("Hi"), two_calls(), answer("b", "file_read", "two", false)],
        vec![user("Hi"), answer("z", "file_read", "nothing", false), two_calls()],
        vec![
            user("Hi"),
            two_calls(),
            answer("a", "x", "1", false),
            answer("a", "x", "2", false),
            answer("q", "x", "3", true),
        ],
        // Nobody says anything.
        vec![user(""), assistant("  ", &[]), user("\n")],
        vec![user("Hi"), assistant("", &[])],
        // Twice the same role, the wrong one first, the wrong one last.
        vec![user("Hi"), user("there"), assistant("Yes", &[]), assistant("please?", &[]), user("Go")],
        vec![assistant("Hello!", &[]), user("Hi")],
        vec![user("Hi"), assistant("Hello!", &[])],
        // A call that no provider would have made, answered with nothing.
        vec![user("Hi"), odd, answer("call with spaces", "fïle.read/now", "", true)],
        vec![],
    ];
    for messages in conversations {
        sent(ModelFormat::Anthropic, &messages).await;
        if !messages.is_empty() {
            sent(ModelFormat::OpenAi, &messages).await;
        }
    }
}

#[tokio::test]
async fn an_unanswered_call_is_said_to_be_of_unknown_result() {
    let body = sent(ModelFormat::Anthropic, &[user("Hi"), two_calls(), answer("b", "file_read", "two", false)]).await;
    let results = &body["messages"][2]["content"];
    assert_eq!(results[0]["content"], "no result is known of this call: it may or may not have run");
    assert_eq!((&results[0]["is_error"], &results[1]["content"]), (&json!(true), &json!("two")));
}

#[tokio::test]
async fn a_model_without_tools_or_instructions_is_asked_without_them() {
    for format in BOTH {
        let server = ModelServer::start(format, vec![Turn::text("Fine.")]).await;
        let model = provider(config(format, server.url()));
        let messages = [user("Hi")];
        let request = Request { system: &[], messages: &messages, tools: &[], output_tokens_max: None, json: false };
        model.reply(request, &Unfollowed, &CancellationToken::new()).await.unwrap();
        let body = &server.requests()[0].body;
        assert!(body.get("tools").is_none() && body.get("system").is_none(), "{body}");
        let tokens = body.get("max_tokens").and_then(Value::as_u64);
        assert_eq!(tokens, (format == ModelFormat::Anthropic).then_some(16_384), "only one must be told");
    }
}

#[tokio::test]
async fn a_model_that_may_call_nothing_more_is_shown_what_it_called() {
    for format in BOTH {
        let server = ModelServer::start(format, vec![Turn::text("Fine.")]).await;
        let model = provider(config(format, server.url()));
        let messages =
            [user("Hi"), two_calls(), answer("a", "file_read", "1", false), answer("b", "file_read", "2", false)];
        let request = Request { system: &[], messages: &messages, tools: &[], output_tokens_max: None, json: false };
        model.reply(request, &Unfollowed, &CancellationToken::new()).await.unwrap();
        let body = &server.requests()[0].body;
        if format == ModelFormat::Anthropic {
            assert_eq!(
                (&body["tools"][0]["name"], &body["tool_choice"]["type"]),
                (&json!("file_read"), &json!("none"))
            );
        } else {
            assert!(body.get("tools").is_none());
        }
    }
}

#[tokio::test]
async fn further_fields_and_headers_are_sent_but_ours_hold() {
    for format in BOTH {
        let server = ModelServer::start(format, vec![Turn::text("Fine.")]).await;
        let mut config = config(format, server.url());
        config.extra = json!({ "temperature": 0.5, "stream": false, "model": "other" }).as_object().unwrap().clone();
        config.headers = vec![("x-gateway".to_owned(), Secret::new("open sesame"))];
        let shown = format!("{config:?}");
        assert!(!shown.contains("sesame") && !shown.contains(ModelServer::KEY), "{shown}");
        hi(&provider(config), &Heard::default()).await.unwrap();
        let request = &server.requests()[0];
        assert_eq!(request.body["temperature"], 0.5);
        assert_eq!((&request.body["stream"], &request.body["model"]), (&json!(true), &json!("mock-1")));
        assert!(request.headers.contains(&("x-gateway".to_owned(), "open sesame".to_owned())));
    }
}

#[tokio::test]
async fn a_server_without_a_key_is_sent_none() {
    for format in BOTH {
        let server = ModelServer::start(format, vec![Turn::text("Fine.")]).await;
        server.expect_no_key();
        let mut config = config(format, server.url());
        config.key = Secret::none();
        hi(&provider(config), &Heard::default()).await.unwrap();
    }
}

#[tokio::test]
async fn one_connection_serves_a_whole_session() {
    for format in BOTH {
        let server = ModelServer::answering(format, |_| Turn::text("Fine.")).await;
        let model = provider(config(format, server.url()));
        for _ in 0..20 {
            hi(&model, &Heard::default()).await.unwrap();
        }
        // But for one that was closed because the machine stood still at the end of its reply.
        assert!(server.asked() == 20 && server.connections() < 5, "{format:?}: {}", server.connections());
    }
}

/// A message as a session may have kept it: well made, or left by a kill, a trim, or another provider.
fn any_message(seed: &mut Seed) -> Message {
    let words = ["", " ", "Hi", "a\u{0}b", "日本", "\"{}\n"];
    let ids = ["a", "b", "c", "call 7", "", "é"];
    let names = ["file_read", "file.read", "", "日本"];
    let mut pick = |from: &[&str]| from[usize::try_from(seed.below(from.len() as u64)).unwrap()].to_owned();
    let (content, id, other, name) = (pick(&words), pick(&ids), pick(&ids), pick(&names));
    let call = |id: String, arguments| ToolCall { id, name: name.clone(), arguments };
    let kept = pick(&["{\"anthropic\":null}", "{\"anthropic\":{\"type\":\"redacted_thinking\",\"data\":\"x\"}}", "?"]);
    match seed.below(5) {
        0 => Message::User { content },
        1 => Message::Assistant { content, calls: Vec::new(), signatures: vec![kept] },
        2 if id != other => {
            let calls = vec![call(id, Arguments::Malformed("{".to_owned())), call(other, Arguments::Json(json!({})))];
            Message::Assistant { content, calls, signatures: Vec::new() }
        }
        2 => Message::Assistant { content, calls: vec![call(id, Arguments::Json(json!([1])))], signatures: Vec::new() },
        _ => Message::Tool { tool_call_id: id, name, content, failed: seed.below(2) == 0 },
    }
}

#[tokio::test]
async fn whatever_a_session_kept_a_provider_takes_it() {
    let mut seed = Seed::of_this_run();
    for format in BOTH {
        let server = ModelServer::answering(format, |_| Turn::text("Fine.")).await;
        let model = provider(config(format, server.url()));
        for round in 0..400 {
            let mut messages = vec![user("Go")];
            for _ in 0..seed.below(12) {
                messages.push(any_message(&mut seed));
            }
            ask(&model, &messages, &Heard::default()).await.unwrap();
            let violations = server.violations();
            assert_eq!(violations, Vec::<String>::new(), "seed {}, round {round}: {messages:#?}", seed.value());
        }
    }
}
