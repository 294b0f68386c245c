//! Cassettes: a session plays back as it was, and no other does.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolhost_agent::model::{Lines, Message, Model, ModelError, Recorder, Replay, Reply};
use toolhost_testkit::{Fault, ModelServer, Turn};

use crate::talk::{BOTH, Heard, answer, ask, config, provider, said, user};

#[derive(Clone, Default)]
struct Tape(Arc<Mutex<String>>);

impl Lines for Tape {
    fn line(&self, line: &str) -> std::io::Result<()> {
        assert!(!line.contains('\n'));
        self.0.lock().unwrap().push_str(&format!("{line}\n"));
        Ok(())
    }
}

impl Tape {
    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

/// A session of three replies, the second with a call.
async fn session(model: &dyn Model) -> (Vec<Message>, Vec<Reply>, Heard) {
    let heard = Heard::default();
    let mut messages = vec![user("Hi?")];
    let mut replies = Vec::new();
    for question in ["Read it.", "Thanks.", ""] {
        let reply = ask(model, &messages, &heard).await.unwrap();
        messages.push(said(&reply));
        messages.extend(reply.calls.iter().map(|call| answer(&call.id, &call.name, "text", false)));
        messages.push(user(question));
        replies.push(reply);
    }
    (messages, replies, heard)
}

fn turns() -> Vec<Turn> {
    let call = Turn::text("Let me see.").and_call("file_read", &json!({ "path": "a" })).thinking("Hm, a file.", "sig");
    vec![Turn::text("Hello there."), call, Turn::text("Welcome.")]
}

#[tokio::test]
async fn a_recorded_session_plays_back_as_it_was_without_its_key() {
    for format in BOTH {
        let server = ModelServer::start(format, turns()).await;
        let tape = Tape::default();
        let recorder = Recorder::new(provider(config(format, server.url())), Box::new(tape.clone()));
        let (_, replies, heard) = session(&recorder).await;
        assert!(!tape.text().contains(ModelServer::KEY));
        let replay = Replay::parse(&tape.text()).unwrap();
        assert_eq!((replay.replies(), replay.facts()), (3, recorder.facts()));
        let (_, again, heard_again) = session(&replay).await;
        assert_eq!(again, replies);
        assert_eq!((heard_again.text(), heard_again.thought()), (heard.text(), heard.thought()));
        assert_eq!(server.asked(), 3);
    }
}

async fn recorded() -> (String, Vec<Message>) {
    let server = ModelServer::start(BOTH[0], turns()).await;
    let tape = Tape::default();
    let recorder = Recorder::new(provider(config(BOTH[0], server.url())), Box::new(tape.clone()));
    let (messages, ..) = session(&recorder).await;
    (tape.text(), messages)
}

#[tokio::test]
async fn a_request_that_differs_is_told_where() {
    let (tape, messages) = recorded().await;
    let replay = Replay::parse(&tape).unwrap();
    ask(&replay, &messages[..1], &Heard::default()).await.unwrap();
    let mut other = messages[..3].to_vec();
    other[1] = said(&Reply {
        text: "Hello, you.".to_owned(),
        ..ask(&replay, &messages[..1], &Heard::default()).await.unwrap()
    });
    let error = ask(&replay, &other, &Heard::default()).await.unwrap_err();
    let expected = "request 2 is not the recorded one: message 2 differs, now assistant: `Hello, you.`";
    assert_eq!(error, ModelError::Script(expected.to_owned()));
    let error = ask(&replay, &messages[..2], &Heard::default()).await.unwrap_err();
    assert!(error.to_string().contains("it has 2 messages, 3 were recorded, up to user: `Read it.`"), "{error}");
    let longer = [&messages[..3], &[user("More")]].concat();
    let error = ask(&replay, &longer, &Heard::default()).await.unwrap_err();
    assert!(
        error.to_string().contains("it has 4 messages, 3 were recorded; the first further one: user: `More`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_session_that_another_process_resumes_plays_on() {
    let (tape, messages) = recorded().await;
    let replay = Replay::parse(&tape).unwrap();
    let reply = ask(&replay, &messages[..3], &Heard::default()).await.unwrap();
    assert_eq!(reply.text, "Let me see.");
    // Asked again, as after a kill before the journal had it.
    assert_eq!(ask(&replay, &messages[..3], &Heard::default()).await.unwrap(), reply);
}

#[tokio::test]
async fn failures_play_back_too() {
    let fault = Fault::Status { code: 401, headers: Vec::new(), body: "{\"error\":{\"message\":\"no\"}}".to_owned() };
    let server = ModelServer::start(BOTH[0], vec![Turn::fault(fault)]).await;
    let tape = Tape::default();
    let recorder = Recorder::new(provider(config(BOTH[0], server.url())), Box::new(tape.clone()));
    let error = ask(&recorder, &[user("Hi?")], &Heard::default()).await.unwrap_err();
    let replay = Replay::parse(&tape.text()).unwrap();
    assert_eq!(ask(&replay, &[user("Hi?")], &Heard::default()).await.unwrap_err(), error);
}

#[tokio::test]
async fn a_cassette_that_a_kill_tore_plays_what_is_whole() {
    let (tape, messages) = recorded().await;
    let torn = Replay::parse(&tape[..tape.len() - 10]).unwrap();
    assert_eq!(torn.replies(), 2);
    assert_eq!(ask(&torn, &messages[..1], &Heard::default()).await.unwrap().text, "Hello there.");
    for text in ["", "{}", "hello\n"] {
        assert!(Replay::parse(text).is_err(), "{text:?}");
    }
    let lines = tape.lines().collect::<Vec<_>>();
    let holed = [lines[0], "nonsense", lines[2]].join("\n");
    assert!(Replay::parse(&holed).err().unwrap().to_string().contains("line 2"));
}

struct Full;

impl Lines for Full {
    fn line(&self, _: &str) -> std::io::Result<()> {
        Err(std::io::ErrorKind::StorageFull.into())
    }
}

#[tokio::test]
async fn a_reply_that_cannot_be_recorded_is_no_reply() {
    let server = ModelServer::start(BOTH[0], vec![Turn::text("Hello.")]).await;
    let recorder = Recorder::new(provider(config(BOTH[0], server.url())), Box::new(Full));
    let error = ask(&recorder, &[user("Hi?")], &Heard::default()).await.unwrap_err();
    assert!(error.to_string().starts_with("the cassette cannot be written"), "{error}");
}
