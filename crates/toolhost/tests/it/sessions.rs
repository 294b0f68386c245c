//! Sessions: started, told more, stopped, and resumed by another host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Handle;
use toolhost::agent::session::{Answer as SessionAnswer, Event, LoopResult, Status, Watch};
use toolhost::contract::Answer;
use toolhost::gate::{Asking, Decision};
use toolhost::package_format::envelope::{Mode, TargetType};
use toolhost::store::{Role, SessionState};
use toolhost::{Error, Models, OpenModel, SessionRequest};

use crate::room::{ASSET, as_somebody, engines, rows, sample};

/// Reads, stages and answers, once for each text.
fn model(texts: &[&str]) -> OpenModel {
    let mut turns = Vec::new();
    for text in texts {
        turns.push(json!({ "calls": [{ "tool": "builder_asset_read", "arguments": { "path": ASSET } }] }));
        let set = json!({
            "schemaVersion": "1.0", "targetType": "asset", "mode": "optimize", "revisions": "{{last.data.revisions}}",
            "operations": [{
                "op": "upsert", "targetType": "asset", "target": { "path": ASSET }, "payload": { "content": text },
            }],
        });
        turns.push(json!({ "calls": [{ "tool": "builder_change_stage", "arguments": { "changeSet": set } }] }));
        let staged = json!({ "changeSetId": "{{last.data.changeSetId}}" });
        let answer = json!({ "responseType": "change", "assistantSummary": "It is shorter.", "changeSet": staged });
        turns.push(json!({ "text": answer.to_string() }));
    }
    Models::new().script("turns", json!({ "turns": turns }).to_string()).open("script:turns").unwrap()
}

fn request() -> SessionRequest {
    SessionRequest::builder("Make it shorter.", Mode::Optimize, TargetType::Asset, ASSET)
}

fn staged(result: &LoopResult) -> &str {
    match &result.answer {
        Some(SessionAnswer::Change { change_set_id, .. }) => change_set_id,
        other => unreachable!("{other:?}: {result:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_tells_its_events_and_goes_on_with_what_happened_meanwhile() {
    for engine in engines() {
        let host = engine.host().await;
        host.packages().import(sample(), false).await.unwrap();
        let session = host.start(request(), &model(&["Short.\n", "Shorter.\n"])).await.unwrap();
        let mut run = session.run();
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        let result = run.result().await.unwrap();
        assert_eq!((result.status, staged(&result)), (Status::Completed, "cs-1"), "{engine}: {result:?}");
        assert!(matches!(events.first(), Some(Event::Opened { .. })), "{engine}: {events:?}");
        assert!(matches!(events.last(), Some(Event::Ended { .. })), "{engine}: {events:?}");
        // It has given its answer: it goes on with something to do.
        assert!(matches!(session.run().result().await, Err(Error::SessionDone { .. })), "{engine}");
        assert!(matches!(session.say(" ").result().await, Err(Error::EmptyMessage)), "{engine}");

        host.changes().apply("cs-1", &Default::default()).await.unwrap();
        let result = session.say("Even shorter.").result().await.unwrap();
        assert_eq!((result.status, staged(&result)), (Status::Completed, "cs-2"), "{engine}: {result:?}");
        let steps = host.store().sessions();
        let steps = steps.steps(host.connection().project().id, session.id(), -1, i64::MAX).await.unwrap();
        let said = steps.iter().find(|row| row.step.starts_with("say_")).unwrap();
        assert_eq!(said.body["text"], "Even shorter.");
        assert!(said.body["since"].as_str().is_some_and(|since| since.contains("cs-1")), "{engine}: {}", said.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_session_is_resumed_by_another_host_and_a_cancelled_one_is_not() {
    for engine in engines() {
        let host = engine.host().await;
        host.packages().import(sample(), false).await.unwrap();
        let model = model(&["Short.\n"]);
        let session = host.start(request(), &model).await.unwrap();
        session.control().pause.cancel();
        let result = session.run().result().await.unwrap();
        assert_eq!(result.status, Status::Paused, "{engine}: {result:?}");
        let id = session.id().to_owned();
        let row = host.session(&id).await.unwrap();
        assert_eq!((row.state, row.model.as_str()), (SessionState::Paused, "script:turns"), "{engine}");
        drop(session);
        host.close().await.unwrap();

        let host = engine.host().await;
        let stranger = as_somebody(&host, "edith", Some(Role::Editor)).await;
        assert!(matches!(stranger.resume(&id, &model).await, Err(Error::SessionOfOther { .. })), "{engine}");
        assert!(stranger.cancel(&id).await.is_err_and(|error| error.is_denied()), "{engine}");
        let session = host.resume(&id, &model).await.unwrap();
        let result = session.run().result().await.unwrap();
        assert_eq!((result.status, staged(&result)), (Status::Completed, "cs-1"), "{engine}: {result:?}");

        let session = host.start(request(), &model).await.unwrap();
        let row = host.cancel(session.id()).await.unwrap();
        assert_eq!(row.state, SessionState::Cancelled, "{engine}");
        assert!(matches!(host.resume(session.id(), &model).await, Err(Error::SessionCancelled { .. })), "{engine}");
        assert!(matches!(session.run().result().await, Err(Error::SessionCancelled { .. })), "{engine}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_does_with_a_session_is_recorded_with_the_session() {
    for engine in engines() {
        let host = engine.host().await.through("desk");
        host.packages().import(sample(), false).await.unwrap();
        let model = model(&["Short.\n", "Shorter.\n"]);
        let secret = "ghp_abcdefGHIJ0123456789xyz";
        let goal = format!("Make it shorter, with {secret}.");
        let request = SessionRequest::builder(goal, Mode::Optimize, TargetType::Asset, ASSET);
        let session = host.start(request, &model).await.unwrap();
        session.control().pause.cancel();
        session.run().result().await.unwrap();
        let resumed = host.resume(session.id(), &model).await.unwrap();
        resumed.run().result().await.unwrap();
        resumed.say("Even shorter.").result().await.unwrap();
        let forked = host.connection().fork(session.id(), Some(1)).await.unwrap().session.id;
        host.pause(&forked).await.unwrap();
        host.cancel(&forked).await.unwrap();
        // What is refused is not done, and no row says so.
        let vera = as_somebody(&host, "vera", Some(Role::Viewer)).await;
        assert!(vera.cancel(session.id()).await.is_err());
        let rows = rows(&host).await;
        let deeds = rows.iter().filter(|row| row["tool"].as_str().is_some_and(|tool| tool.starts_with("session.")));
        let deeds: Vec<_> = deeds.filter(|row| row["event"] == "finished").collect();
        let told: Vec<_> =
            deeds.iter().map(|row| (row["tool"].as_str().unwrap(), row["sessionId"].as_str().unwrap())).collect();
        let (of, on) = (session.id(), &*forked);
        let expected = [
            ("session.start", of),
            ("session.resume", of),
            ("session.say", of),
            ("session.fork", on),
            ("session.pause", on),
            ("session.cancel", on),
        ];
        assert_eq!(told, expected, "{engine}");
        for row in &deeds {
            let (caller, outcome) = (&row["caller"], &row["outcome"]);
            assert_eq!(
                (&caller["door"], &caller["kind"], &outcome["ok"]),
                (&json!("desk"), &json!("person"), &json!(true)),
                "{row}"
            );
            assert!(!row.to_string().contains(secret), "{row}");
        }
        assert!(deeds[0]["arguments"]["goal"].as_str().unwrap().contains("Make it shorter"), "{}", deeds[0]);
        assert_eq!(deeds[2]["arguments"]["text"], "Even shorter.");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_goes_on_is_told_which_of_its_questions_were_answered() {
    for engine in engines() {
        let asking = Asking { hold: Duration::ZERO, ..Asking::default() };
        let host = engine.builder().asking(asking).open().await.unwrap();
        let turns = json!([
            { "calls": [{ "tool": "human_ask", "arguments": { "question": "Which name?" } }] },
            { "text": "I have asked." },
            { "text": "Nothing new." },
            { "text": "Thank you.", "expect": { "user": ["ask-1 (human_ask)", "`approval_wait`", "Go on"] } },
            { "text": "Again.", "expect": { "user": "And now" } },
        ]);
        let model = Models::new().script("asks", json!({ "turns": turns }).to_string()).open("script:asks").unwrap();
        let session = host.start(SessionRequest::plain("Ask for a name.").profile("developer"), &model).await.unwrap();
        let result = session.run().result().await.unwrap();
        assert_eq!(result.status, Status::Completed, "{engine}: {result:?}");
        // An open question is no answer.
        session.say("Anything?").result().await.unwrap();
        let queue = host.connection().queue();
        let answer = Answer::Text { text: "Ada".to_owned() };
        queue.decide(&host.connection().person(), 1, Decision { answer, rule: None }, "test").await.unwrap();
        let result = session.say("Go on.").result().await.unwrap();
        assert_eq!(result.status, Status::Completed, "{engine}: {result:?}");
        let steps = host.connection().steps(session.id()).await.unwrap();
        let said: Vec<_> = steps.iter().filter(|row| row.step.starts_with("say_")).collect();
        assert_eq!(said[0].body.get("since"), None, "{engine}: {}", said[0].body);
        assert!(
            said[1].body["since"].as_str().unwrap().starts_with("People have answered meanwhile: ask-1"),
            "{engine}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_while_a_call_waits_is_heard_before_the_next_turn() {
    for engine in engines() {
        let host = engine.host().await;
        let turns = json!([
            { "calls": [{ "tool": "human_ask", "arguments": { "question": "Which name?" } }] },
            { "text": "Named.", "expect": { "user": "And write it in capitals" } },
        ]);
        let model = Models::new().script("said", json!({ "turns": turns }).to_string()).open("script:said").unwrap();
        let session = host.start(SessionRequest::plain("Ask for a name.").profile("developer"), &model).await.unwrap();
        let run = session.run();
        let queue = host.connection().queue();
        while queue.get(host.connection().project().id, 1).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for blank in [" ", "\u{200b}\n\u{feff}"] {
            let empty = host.leave_message(session.id(), blank).await.unwrap_err();
            assert!(matches!(empty, Error::EmptyMessage), "{engine}: {empty}");
        }
        let long = host.leave_message(session.id(), &"ä".repeat(100_001)).await.unwrap_err();
        assert!(matches!(long, Error::SaidTooLong { chars: 100_001, .. }), "{engine}: {long}");
        assert!(host.leave_message(session.id(), "And write it in capitals.").await.unwrap().running, "{engine}");
        let answer = Answer::Text { text: "Ada".to_owned() };
        queue.decide(&host.connection().person(), 1, Decision { answer, rule: None }, "test").await.unwrap();
        let result = run.result().await.unwrap();
        assert_eq!(result.status, Status::Completed, "{engine}: {result:?}");
        let steps = host.connection().steps(session.id()).await.unwrap();
        let names: Vec<&str> = steps.iter().map(|row| &*row.step).filter(|step| !step.starts_with("check")).collect();
        assert_eq!(names, ["open", "turn_0", "call_0_0", "say_1_0", "turn_1"], "{engine}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_stopped_hears_nothing_more_and_the_audit_says_why_a_deed_failed() {
    for engine in engines() {
        let host = engine.host().await;
        let turns = json!([{ "calls": [{ "tool": "human_ask", "arguments": { "question": "Which name?" } }] }]);
        let model = Models::new().script("waits", json!({ "turns": turns }).to_string()).open("script:waits").unwrap();
        let session = host.start(SessionRequest::plain("Ask for a name.").profile("developer"), &model).await.unwrap();
        let (run, project) = (session.run(), host.connection().project().id);
        while host.connection().queue().get(project, 1).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        host.leave_message(session.id(), "And hurry.").await.unwrap();
        host.cancel(session.id()).await.unwrap();
        assert_eq!(run.result().await.unwrap().status, Status::Cancelled, "{engine}");
        let unheard = host.store().sessions().unheard(project, session.id()).await.unwrap();
        assert_eq!(unheard.len(), 1, "{engine}: {unheard:?}");
        assert!(host.cancel(session.id()).await.is_err(), "{engine}");
        let rows = rows(&host).await;
        let failed = rows.iter().find(|row| row["outcome"]["ok"] == false && row["tool"] == "session.cancel").unwrap();
        let why = failed["outcome"]["message"].as_str().unwrap();
        assert!(why.contains("has ended: it is cancelled"), "{engine}: {failed}");
    }
}

/// Says something to the session when its run has ended, and before it is let go of.
struct Late(toolhost::Host, String, AtomicBool);

impl Watch for Late {
    fn event(&self, event: &Event) {
        if matches!(event, Event::Ended { .. }) && !self.2.swap(true, Ordering::Relaxed) {
            let said = self.0.leave_message(&self.1, "One more thing.");
            let row = tokio::task::block_in_place(|| Handle::current().block_on(said)).unwrap();
            assert!(row.running, "it is still held");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_at_the_very_end_of_a_run_is_heard_in_another_one() {
    for engine in engines() {
        let host = engine.host().await;
        let turns = json!([
            { "text": "Done." },
            { "text": "And that, too.", "expect": { "user": "One more thing." } },
        ]);
        let model = Models::new().script("late", json!({ "turns": turns }).to_string()).open("script:late").unwrap();
        let session = host.start(SessionRequest::plain("Do it.").profile("developer"), &model).await.unwrap();
        let late = Late(host.clone(), session.id().to_owned(), AtomicBool::default());
        let watch: Arc<dyn Watch> = Arc::new(late);
        let result = session.run_watched(None, &watch).await.unwrap();
        assert_eq!((result.status, result.iterations), (Status::Completed, 2), "{engine}: {result:?}");
        assert_eq!(host.session(session.id()).await.unwrap().state, SessionState::Done, "{engine}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_hosts_are_told_at_once_is_heard_by_the_one_that_runs() {
    for engine in engines() {
        let (host, other) = (engine.host().await, engine.host().await);
        let turns = json!([{ "text": "Done." }, { "text": "Two." }, { "text": "Three." }, { "text": "Four." }]);
        let model = Models::new().script("two", json!({ "turns": turns }).to_string()).open("script:two").unwrap();
        let session = host.start(SessionRequest::plain("Do it.").profile("developer"), &model).await.unwrap();
        session.run().result().await.unwrap();
        let beside = other.resume(session.id(), &model).await.unwrap();
        let (one, two) = (session.say("One of two."), beside.say("Two of two."));
        // One of them may find that the other runs it.
        let (one, two) = tokio::join!(one.result(), two.result());
        assert!(one.is_ok() || two.is_ok(), "{engine}: {one:?} {two:?}");
        while host.session(session.id()).await.unwrap().running {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if !host.store().sessions().unheard(host.connection().project().id, session.id()).await.unwrap().is_empty() {
            session.run().result().await.unwrap();
        }
        let steps = host.connection().steps(session.id()).await.unwrap();
        let mut said: Vec<&str> = steps.iter().filter_map(|row| row.body["text"].as_str()).collect();
        said.sort_unstable();
        assert_eq!(said, ["One of two.", "Two of two."], "{engine}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_read_starts_no_session() {
    for engine in engines() {
        let host = engine.host().await;
        host.packages().import(sample(), false).await.unwrap();
        let viewer = as_somebody(&host, "vera", Some(Role::Viewer)).await;
        let started = viewer.start(request(), &model(&["Short.\n"])).await;
        assert!(matches!(started, Err(Error::Denied { role: Role::Editor, .. })), "{engine}");
        assert_eq!(host.store().sessions().list(host.connection().project().id, 10).await.unwrap(), []);
    }
}
