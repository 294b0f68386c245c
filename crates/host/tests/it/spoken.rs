//! A yes said where the call shows its ask: it is written with the start of the call, and never over what somebody else
//! said before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use toolhost_contract::{Answer, BoxFuture, ErrorKind, Outcome};
use toolhost_host::{Decision, Hooks, Limits, Person, Presented, Presenter, Queue, Redactor, Shown};
use toolhost_store::{Ask, AskState};
use toolhost_testkit::{House, HouseBuilder, SaysYes, said};

use crate::probes::{Watched, house};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says yes, after somebody at another host has said something.
struct Outrun {
    elsewhere: Queue,
    person: Person,
    first: Answer,
    told: AtomicU64,
}

impl Presenter for Outrun {
    fn place(&self) -> &'static str {
        "here"
    }

    fn person(&self) -> Person {
        self.person.clone()
    }

    fn present<'a>(&'a self, ask: &'a Ask, _: &'a Shown) -> BoxFuture<'a, Presented> {
        Box::pin(async move {
            let decision = Decision { answer: self.first.clone(), rule: None };
            self.elsewhere.decide(&self.person, ask.number, decision, "elsewhere").await.unwrap();
            said(Answer::Allow)
        })
    }

    fn ended(&self, _: &Ask) {
        self.told.fetch_add(1, Ordering::SeqCst);
    }
}

/// What becomes of a call whose person was outrun by `first`.
async fn outrun(house: &House, first: Answer) -> (Outcome, Arc<Outrun>) {
    let redactor = Arc::new(Redactor::new([]));
    let elsewhere = Queue::new(house.store.asks(), house.store.audit(), house.store.people(), redactor);
    let person = Arc::new(Outrun { elsewhere, person: house.owner(), first, told: AtomicU64::new(0) });
    let hooks = Hooks { presenter: Some(Arc::<Outrun>::clone(&person)), ..Hooks::default() };
    let call = house.request("probe.send", json!({ "text": "x" }));
    let outcome = tokio::time::timeout(PATIENCE, house.gate.call(call, hooks)).await.unwrap();
    (outcome, person)
}

async fn ask_of(house: &House) -> Ask {
    house.gate.queue().get(house.project.id, 1).await.unwrap().0
}

/// A house with one place for calls, and a call in it that ends when the hooks are cancelled.
async fn full(builder: HouseBuilder, watched: &Watched) -> (Arc<House>, Hooks, tokio::task::JoinHandle<Outcome>) {
    let house = builder.limits(Limits { concurrent_calls: 1, ..Limits::default() }).build().await;
    let (house, hooks) = (Arc::new(house), Hooks::default());
    let occupant = tokio::spawn({
        let (gate, call, hooks) = (Arc::clone(&house.gate), house.request("probe.wait", json!({})), hooks.clone());
        async move { gate.call(call, hooks).await }
    });
    toolhost_testkit::until("the place is taken", || watched.runs() == 1).await;
    (house, hooks, occupant)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_stands_before_the_start_and_the_outcome_is_kept_with_it() {
    let (builder, watched) = house();
    let house = builder.person(SaysYes).build().await;
    let outcome = house.call("probe.send", json!({ "text": "x" })).await;
    assert!(outcome.ok, "{outcome:?}");
    let rows = house.rows().await;
    let events: Vec<_> = rows.iter().map(|row| row["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["decision", "started", "finished"]);
    assert_eq!(rows[1]["decision"]["answer"], "allow");
    assert_eq!(
        (&rows[1]["decision"]["ask"], &rows[1]["decision"]["by"]),
        (&rows[0]["decision"]["ask"], &json!(house.owner().name))
    );
    assert_eq!(rows[0]["atMs"], rows[1]["atMs"], "one commit, one moment");
    let ask = ask_of(&house).await;
    assert_eq!((ask.state, ask.used_by.as_deref()), (AskState::Used, Some(outcome.meta.call_id.as_str())));
    assert_eq!((ask.answered_by, ask.answered_at_ms.is_some()), (Some(house.owner().name), true));
    assert_eq!(ask.outcome.unwrap()["data"], outcome.data);
    assert!(house.verify().await.problems.is_empty());
    assert_eq!(watched.runs(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_that_comes_after_a_no_runs_nothing() {
    let (builder, watched) = house();
    let house = builder.build().await;
    let (outcome, person) = outrun(&house, Answer::Deny { comment: Some("not today".to_owned()) }).await;
    assert_eq!(outcome.error.as_ref().unwrap().kind, ErrorKind::Denied, "{outcome:?}");
    assert!(outcome.text.contains("not today"), "{}", outcome.text);
    assert_eq!((watched.runs(), person.told.load(Ordering::SeqCst)), (0, 1));
    let decisions = house.rows().await.into_iter().filter(|row| row["event"] == "decision");
    let places: Vec<_> = decisions.map(|row| row["decision"]["place"].clone()).collect();
    assert_eq!(places, ["elsewhere"], "the later answer is written nowhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_that_comes_after_another_one_runs_the_call_once() {
    let (builder, watched) = house();
    let house = builder.build().await;
    let (outcome, person) = outrun(&house, Answer::Allow).await;
    assert!(outcome.ok, "{outcome:?}");
    assert_eq!((watched.runs(), person.told.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(ask_of(&house).await.used_by.as_deref(), Some(outcome.meta.call_id.as_str()));
    assert_eq!(house.events_of(&outcome).await, ["decision", "started", "finished"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_that_comes_after_edited_arguments_runs_those() {
    let (builder, watched) = house();
    let house = builder.build().await;
    let (outcome, _) = outrun(&house, Answer::AllowEdited { arguments: json!({ "text": "edited" }) }).await;
    assert!(outcome.ok, "{outcome:?}");
    assert_eq!((outcome.data["text"].as_str(), watched.runs()), (Some("edited"), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_written_while_its_call_waits_for_a_place() {
    let (builder, watched) = house();
    let (house, hooks, occupant) = full(builder.person(SaysYes), &watched).await;
    let asking = tokio::spawn({
        let house = Arc::clone(&house);
        async move { house.call("probe.send", json!({ "text": "x" })).await }
    });
    let answered = async {
        while house.rows().await.iter().all(|row| row["event"] != "decision") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.unwrap();
    assert_eq!((ask_of(&house).await.state, watched.runs()), (AskState::Answered, 1));
    hooks.cancel.cancel();
    assert!(!occupant.await.unwrap().ok);
    assert!(asking.await.unwrap().ok);
    assert_eq!((ask_of(&house).await.state, watched.runs()), (AskState::Used, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_from_elsewhere_holds_for_a_call_that_would_wait_for_a_place() {
    let (builder, watched) = house();
    let (house, hooks, occupant) = full(builder, &watched).await;
    let (outcome, _) = outrun(&house, Answer::Deny { comment: None }).await;
    assert_eq!(outcome.error.as_ref().unwrap().kind, ErrorKind::Denied, "{outcome:?}");
    assert_eq!(watched.runs(), 1, "only the one whose place it is");
    hooks.cancel.cancel();
    occupant.await.unwrap();
}
