//! Scripts: the turns are played in their places, and a conversation that is another is noticed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolhost_agent::model::{Arguments, Message, ModelError, Script, Stop};

use crate::talk::{Heard, answer, ask, said, user};

fn script(turns: &Value) -> Script {
    Script::parse("script", &json!({ "turns": turns }).to_string()).unwrap()
}

#[tokio::test]
async fn turns_are_played_by_how_often_the_model_has_spoken() {
    let turns = json!([
        { "thought": "Make it.", "text": "A ticket first.", "calls": [{ "tool": "ticket_create", "arguments": { "title": "Login" } }] },
        {
            "expect": { "contains": "T-7", "at": { "/ok": true, "/data/ticketId": "T-7" }, "failed": false },
            "calls": [
                { "tool": "ticket_read", "arguments": { "ticketId": "{{last.data.ticketId}}", "n": "{{last.data.n}}", "say": "is {{last.data.ticketId}}, {{last.data.list.1}}" } },
                { "tool": "file_read", "raw": "{\"path\": \"a" }
            ]
        },
        { "text": "Made {{ticket_create.data.ticketId}} of {{last.n}}.", "stop": "length", "usage": { "inputTokens": 5, "cachedTokens": 0, "cacheWriteTokens": 0, "outputTokens": 2 } }
    ]);
    let result = json!({ "ok": true, "data": { "ticketId": "T-7", "n": 3, "list": [1, 2] } }).to_string();
    let mut messages = vec![user("Go")];
    let heard = Heard::default();
    let first = ask(&script(&turns), &messages, &heard).await.unwrap();
    assert_eq!(
        (first.text.as_str(), first.stop, first.calls[0].name.as_str()),
        ("A ticket first.", Stop::Calls, "ticket_create")
    );
    assert_eq!((heard.text().as_str(), heard.thought().as_str()), ("A ticket first.", "Make it."));
    assert!(heard.all().len() >= 6, "word by word");
    assert_eq!(heard.arguments(0), "{\"title\":\"Login\"}");
    messages.extend([said(&first), answer(&first.calls[0].id, "ticket_create", &result, false)]);
    // Another process, later: the same place.
    let model = script(&turns);
    let second = ask(&model, &messages, &Heard::default()).await.unwrap();
    let filled = json!({ "ticketId": "T-7", "n": 3, "say": "is T-7, 2" });
    assert_eq!(second.calls[0].arguments, Arguments::Json(filled));
    assert_eq!(second.calls[1].arguments, Arguments::Malformed("{\"path\": \"a".to_owned()));
    messages.push(said(&second));
    messages.extend(second.calls.iter().map(|call| answer(&call.id, &call.name, "{\"n\": 4}", false)));
    let third = ask(&model, &messages, &Heard::default()).await.unwrap();
    assert_eq!((third.text.as_str(), third.stop, third.usage.input_tokens), ("Made T-7 of 4.", Stop::Length, 5));
    let ids: BTreeSet<_> = first.calls.iter().chain(&second.calls).map(|call| &call.id).collect();
    assert_eq!(ids.len(), 3, "no id twice");
    messages.push(said(&third));
    let error = ask(&model, &messages, &Heard::default()).await.unwrap_err();
    assert_eq!(error, ModelError::Script("there is no turn 4 of the script: it has 3".to_owned()));
}

#[tokio::test]
async fn a_conversation_that_is_not_as_expected_is_an_error_that_says_how() {
    let conversation = |content: &str, failed| {
        let call = ("c", "file_read", json!({}));
        vec![user("Fix the login"), crate::talk::assistant("", &[call]), answer("c", "file_read", content, failed)]
    };
    let good = conversation("{\"data\": {\"lines\": 3}}", false);
    for (expect, messages, part) in [
        (json!({ "contains": "lines" }), &good, None),
        (json!({ "contains": ["lines", "words"] }), &good, Some("lacks `words`")),
        (json!({ "lacks": "lines" }), &good, Some("holds `lines`")),
        (json!({ "at": { "/data/lines": 3 } }), &good, None),
        (json!({ "at": { "/data/lines": 4 } }), &good, Some("has 3 at `/data/lines`, not 4")),
        (json!({ "at": { "/data/words": 4 } }), &good, Some("has nothing at `/data/words`")),
        (json!({ "failed": true }), &good, Some("is not a failure")),
        (json!({ "failed": true }), &conversation("no file", true), None),
        (json!({ "at": { "/a": 1 } }), &conversation("no JSON", false), Some("is not JSON")),
        (json!({ "tool": "file_read", "contains": "lines" }), &good, None),
        (json!({ "tool": "file_write" }), &good, Some("no result of `file_write`")),
        (json!({ "user": "login" }), &good, None),
        (
            json!({ "user": "logout" }),
            &good,
            Some("the user's last message lacks `logout`; it begins with: Fix the login"),
        ),
    ] {
        let model = script(&json!([{ "text": "one" }, { "text": "two", "expect": expect }]));
        match (ask(&model, messages, &Heard::default()).await, part) {
            (Ok(reply), None) => assert_eq!(reply.text, "two"),
            (Err(ModelError::Script(why)), Some(part)) => {
                assert!(why.starts_with("turn 2 of the script") && why.contains(part), "{why}");
            }
            (other, _) => unreachable!("{expect}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_place_that_is_not_there_is_an_error_that_names_the_turn() {
    for text in ["{{last.data.x}}", "{{file_write.data}}", "{{last", "{{last.0}}"] {
        let model = script(&json!([{ "text": "one" }, { "text": format!("It is {text}") }]));
        let call = ("c", "file_read", json!({}));
        let messages =
            [user("Go"), crate::talk::assistant("", &[call]), answer("c", "file_read", "{\"data\": {}}", false)];
        let error = ask(&model, &messages, &Heard::default()).await.unwrap_err();
        assert!(error.to_string().starts_with("turn 2 of the script: "), "{error}");
    }
}

#[tokio::test]
async fn a_turn_may_fail_as_providers_do() {
    let turns = json!([{ "text": "Here.", "error": { "code": 529, "message": "busy", "times": 2 } }, { "error": { "code": 401 } }]);
    let model = script(&turns);
    let mut messages = vec![user("Go")];
    for _ in 0..2 {
        let error = ask(&model, &messages, &Heard::default()).await.unwrap_err();
        assert_eq!(error, ModelError::Provider { status: Some(529), message: "busy".to_owned(), retry_after: None });
    }
    let reply = ask(&model, &messages, &Heard::default()).await.unwrap();
    assert_eq!(reply.text, "Here.");
    messages.extend([said(&reply), user("And?")]);
    for _ in 0..3 {
        let error = ask(&model, &messages, &Heard::default()).await.unwrap_err();
        assert!(matches!(error, ModelError::Provider { status: Some(401), .. }), "{error}");
    }
}

#[test]
fn a_script_that_makes_no_sense_is_told_where() {
    for (text, part) in [
        ("{", "the script is no script"),
        (r#"{"turns": [{"text": "a"}, {"txt": "b"}]}"#, "turn 2 of the script: unknown field `txt`"),
        (r#"{"turns": [{}]}"#, "turn 1 of the script: it says nothing"),
        (r#"{"turns": [{"calls": [{"tool": " "}]}]}"#, "names no tool"),
        (r#"{"turns": [{"calls": [{"tool": "a", "raw": "{", "arguments": {"a": 1}}]}]}"#, "both `arguments` and `raw`"),
        (r#"{"turns": [{"calls": [{"tool": "a", "arguments": 7}]}]}"#, "turn 1 of the script"),
    ] {
        let error = Script::parse("script", text).err().unwrap();
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[tokio::test]
async fn several_sessions_play_one_script_at_once() {
    let model = script(&json!([{ "text": "one" }, { "text": "two" }]));
    let (mut a, mut b) = (vec![user("A")], vec![user("B")]);
    for expected in ["one", "two"] {
        for messages in [&mut a, &mut b] {
            let reply = ask(&model, messages, &Heard::default()).await.unwrap();
            assert_eq!(reply.text, expected);
            messages.push(said(&reply));
            messages.push(Message::User { content: "And?".to_owned() });
        }
    }
}
