//! What a reply holds, however it comes.

use serde_json::{Value, json};
use toolhost_agent::model::{Arguments, ModelError, Stop, Usage};
use toolhost_testkit::{Fault, ModelFormat, ModelServer, Tokens, Turn};

use crate::talk::{BOTH, Heard, Told, answer, ask, config, hi, provider, said, user};

#[tokio::test]
async fn text_comes_in_pieces_and_whole() {
    for format in BOTH {
        let tokens = Tokens { input: 100, cached: 60, written: 30, output: 7 };
        let server = ModelServer::start(format, vec![Turn::text("Well, hello there.").costing(tokens)]).await;
        let heard = Heard::default();
        let reply = hi(&provider(config(format, server.url())), &heard).await.unwrap();
        assert_eq!(reply.text, "Well, hello there.");
        assert_eq!((reply.stop, reply.calls.len()), (Stop::Done, 0));
        let pieces = ["Well, ", "hello ", "there."].map(|piece| Told::Text(piece.to_owned()));
        assert_eq!(heard.all(), pieces);
        let cache_write_tokens = if format == ModelFormat::Anthropic { 30 } else { 0 };
        let usage =
            Usage { input_tokens: 100, cached_tokens: 60, cache_write_tokens, output_tokens: 7, estimated: false };
        assert_eq!(reply.usage, usage, "{format:?}");
    }
}

#[tokio::test]
async fn text_thoughts_and_parallel_calls_come_in_one_reply() {
    for format in BOTH {
        for interleaved in [false, true] {
            let turn = Turn::text("Let me look.")
                .thinking("Hm, two files.", "sig-1")
                .and_call("file_read", &json!({ "path": "ä.txt" }))
                .and_call("file_search", &json!({ "pattern": "\"{\\" }))
                .arguments_by(1);
            let turn = if interleaved { turn.interleaved() } else { turn };
            let server = ModelServer::start(format, vec![turn]).await;
            let heard = Heard::default();
            let reply = hi(&provider(config(format, server.url())), &heard).await.unwrap();
            assert_eq!((reply.text.as_str(), reply.stop), ("Let me look.", Stop::Calls));
            assert_eq!(heard.thought(), "Hm, two files.");
            let expected = [("file_read", json!({ "path": "ä.txt" })), ("file_search", json!({ "pattern": "\"{\\" }))];
            assert_eq!(reply.calls.len(), 2);
            for (place, (call, (name, arguments))) in reply.calls.iter().zip(expected).enumerate() {
                assert_eq!(call.name, name);
                assert_eq!(heard.arguments(place), arguments.to_string(), "{format:?} {interleaved}");
                assert_eq!(call.arguments, Arguments::Json(arguments), "{format:?} {interleaved}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_torn_at_any_byte_is_the_same_reply() {
    for format in BOTH {
        let turn = Turn::text("ä€😀 é").and_call("file_read", &json!({ "path": "日本/ü😀" }));
        let whole = ModelServer::answering(format, {
            let turn = turn.clone();
            move |_| turn.clone()
        });
        let whole = whole.await;
        let model = provider(config(format, whole.url()));
        let expected = hi(&model, &Heard::default()).await.unwrap();
        assert_eq!(expected.text, "ä€😀 é");
        let bytes = 4000;
        let server = ModelServer::answering(format, {
            let places = std::sync::atomic::AtomicUsize::new(0);
            move |_| turn.clone().torn_at(places.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
        });
        let server = server.await;
        let model = provider(config(format, server.url()));
        for place in 0..bytes {
            assert_eq!(hi(&model, &Heard::default()).await.unwrap(), expected, "{format:?} torn at {place}");
        }
        // But for one that was closed because the machine stood still at the end of its reply.
        assert!(server.connections() < bytes / 100, "one connection serves many: {}", server.connections());
    }
}

#[tokio::test]
async fn a_stream_of_single_bytes_is_the_same_reply() {
    for format in BOTH {
        let turn = Turn::text("ä€😀").and_call("file_read", &json!({ "path": "😀" })).arguments_by(1).torn_by(1);
        let server = ModelServer::start(format, vec![turn]).await;
        let reply = hi(&provider(config(format, server.url())), &Heard::default()).await.unwrap();
        assert_eq!(reply.text, "ä€😀");
        assert_eq!(reply.calls[0].arguments, Arguments::Json(json!({ "path": "😀" })));
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_are_kept_as_they_came_and_go_back_in_one() {
    for format in BOTH {
        for raw in ["{\"path\": \"a", "[1]", "\"a.txt\"", "7", "{\"a\":1}}", "{'path': 'a'}"] {
            let turns = vec![Turn::default().and_raw_call("file_read", raw), Turn::text("Sorry.")];
            let server = ModelServer::start(format, turns).await;
            let model = provider(config(format, server.url()));
            let reply = hi(&model, &Heard::default()).await.unwrap();
            assert_eq!(reply.calls[0].arguments, Arguments::Malformed(raw.to_owned()), "{format:?}");
            // The server checks that what comes back is an object.
            let id = &reply.calls[0].id;
            let messages = [user("Hi?"), said(&reply), answer(id, "file_read", "that is not a JSON object", true)];
            ask(&model, &messages, &Heard::default()).await.unwrap();
            let again = server.requests()[1].body.to_string();
            assert!(again.contains("malformed_arguments"), "{again}");
        }
    }
}

#[tokio::test]
async fn no_arguments_are_an_empty_object() {
    for format in BOTH {
        for raw in ["", "  ", "null", "{}"] {
            let server = ModelServer::start(format, vec![Turn::default().and_raw_call("file_read", raw)]).await;
            let reply = hi(&provider(config(format, server.url())), &Heard::default()).await.unwrap();
            assert_eq!(reply.calls[0].arguments, Arguments::Json(json!({})), "{format:?} {raw:?}");
        }
    }
}

#[tokio::test]
async fn calls_without_an_id_of_their_own_get_one_that_the_conversation_does_not_know() {
    for format in BOTH {
        let calls = |ids: &[&str]| {
            let call = json!({ "path": "a" });
            Turn::call("file_read", &call).and_call("file_read", &call).and_call("file_read", &call).with_ids(ids)
        };
        // Missing, twice the same, not as ids are; then all of them once more.
        let turns = vec![calls(&["", "", ""]), calls(&["a", "a", "b c"]), calls(&["a", "", "a"]), Turn::text("Done.")];
        let server = ModelServer::start(format, turns).await;
        let model = provider(config(format, server.url()));
        let mut messages = vec![user("Hi?")];
        let mut ids = std::collections::BTreeSet::new();
        for _ in 0..3 {
            let reply = ask(&model, &messages, &Heard::default()).await.unwrap();
            messages.push(said(&reply));
            assert_eq!(reply.calls.len(), 3, "{format:?}: {reply:?}");
            for call in &reply.calls {
                assert!(ids.insert(call.id.clone()), "{} is there twice", call.id);
                messages.push(answer(&call.id, &call.name, "fine", false));
            }
        }
        assert!(ids.contains("a"), "a good id is kept");
        ask(&model, &messages, &Heard::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_reason_to_stop_that_nobody_knows_is_judged_by_what_came() {
    for format in BOTH {
        let call = json!({ "path": "a" });
        let length = if format == ModelFormat::Anthropic { "max_tokens" } else { "length" };
        let refused = if format == ModelFormat::Anthropic { "refusal" } else { "content_filter" };
        for (turn, stop) in [
            (Turn::text("Hm.").stopping("tired"), Stop::Done),
            (Turn::call("file_read", &call).stopping("tired"), Stop::Calls),
            (Turn::text("Hm.").stopping("tool_calls"), Stop::Done),
            (Turn::text("Hm.").stopping(length), Stop::Length),
            (Turn::text("Hm.").stopping(refused), Stop::Refused),
        ] {
            let server = ModelServer::start(format, vec![turn]).await;
            let reply = hi(&provider(config(format, server.url())), &Heard::default()).await.unwrap();
            assert_eq!(reply.stop, stop, "{format:?}");
        }
    }
}

#[tokio::test]
async fn signed_thoughts_go_back_as_they_came() {
    for format in BOTH {
        let turns = vec![
            Turn::call("file_read", &json!({ "path": "a" })).thinking("Let me see.", "c2lnbmF0dXJl"),
            Turn::text("Done."),
        ];
        let server = ModelServer::start(format, turns).await;
        let model = provider(config(format, server.url()));
        let reply = hi(&model, &Heard::default()).await.unwrap();
        let messages = [user("Hi?"), said(&reply), answer(&reply.calls[0].id, "file_read", "text", false)];
        ask(&model, &messages, &Heard::default()).await.unwrap();
        let body = server.requests()[1].body.clone();
        if format == ModelFormat::Anthropic {
            let thought = json!({ "type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmF0dXJl" });
            assert_eq!(body["messages"][1]["content"][0], thought);
        } else {
            assert_eq!(body["messages"][2]["reasoning_content"], "Let me see.");
        }
    }
}

#[tokio::test]
async fn thoughts_of_one_provider_are_not_sent_to_another() {
    let turn = Turn::call("file_read", &json!({ "path": "a" })).thinking("Let me see.", "c2lnbmF0dXJl");
    for (from, to) in [(BOTH[0], BOTH[1]), (BOTH[1], BOTH[0])] {
        let first = ModelServer::start(from, vec![turn.clone()]).await;
        let reply = hi(&provider(config(from, first.url())), &Heard::default()).await.unwrap();
        assert_eq!(reply.signatures.len(), 1);
        let second = ModelServer::start(to, vec![Turn::text("Done.")]).await;
        let messages = [user("Hi?"), said(&reply), answer(&reply.calls[0].id, "file_read", "text", false)];
        ask(&provider(config(to, second.url())), &messages, &Heard::default()).await.unwrap();
        assert!(!second.requests()[0].body.to_string().contains("Let me see"));
    }
}

#[tokio::test]
async fn a_reply_longer_than_allowed_is_refused_and_not_asked_for_again() {
    for format in BOTH {
        let turn = Turn::text("Hello").but(Fault::Flood(10_000_000));
        let server = ModelServer::start(format, vec![turn]).await;
        let error = hi(&provider(config(format, server.url())), &Heard::default()).await.unwrap_err();
        assert_eq!(error, ModelError::Broken("it is longer than 8388608 bytes".to_owned()));
        assert_eq!(server.asked(), 1);
    }
}

/// Some compatible servers say calls otherwise: all under one number, without a number, whole, or as an object.
#[tokio::test]
async fn calls_of_careless_servers_are_understood() {
    let chunk = |calls: Value| json!({ "choices": [{ "delta": { "tool_calls": calls } }] }).to_string();
    let function = |arguments: Value| json!({ "name": "file_read", "arguments": arguments });
    let raw = "{\"path\":\"a\"}";
    let cases = [
        vec![
            chunk(json!([{ "index": 0, "id": "a", "function": function(json!(raw)) }])),
            chunk(json!([{ "index": 0, "id": "b", "function": function(json!(raw)) }])),
        ],
        vec![chunk(
            json!([{ "id": "a", "function": function(json!(raw)) }, { "id": "b", "function": function(json!(raw)) }]),
        )],
        vec![
            chunk(json!([{ "index": 0, "id": "a", "function": function(json!("{\"path\"")) }])),
            chunk(json!([{ "index": 1, "id": "b", "function": function(json!(raw)) }])),
            chunk(json!([{ "index": 0, "id": "a", "function": { "arguments": ":\"a\"}" } }])),
        ],
        vec![chunk(json!([
            { "index": 0, "id": "a", "function": function(json!({ "path": "a" })) },
            { "index": 1, "id": "b", "function": function(json!({ "path": "a" })) }
        ]))],
    ];
    for events in cases {
        let stop = json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] }).to_string();
        let body = events.iter().chain([&stop]).map(|event| format!("data:{event}\r\n\r\n")).collect::<String>();
        let turn = Turn::fault(Fault::Raw { content_type: "text/event-stream".to_owned(), body });
        let server = ModelServer::start(ModelFormat::OpenAi, vec![turn]).await;
        let reply = hi(&provider(config(ModelFormat::OpenAi, server.url())), &Heard::default()).await.unwrap();
        let ids = reply.calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>();
        assert_eq!(ids, ["a", "b"], "{events:?}");
        for call in &reply.calls {
            assert_eq!(call.arguments, Arguments::Json(json!({ "path": "a" })), "{events:?}");
        }
    }
}
