//! The state machines as an agent meets them: every step that is allowed and every one that is not, and who may take it.

use std::time::Duration;

use serde_json::{Value, json};
use toolhost_contract::Outcome;
use toolhost_testkit::House;
use toolhost_testkit::engines::{engines, exported, refusal};

/// Each state, its way from the beginning, and what may follow.
type States = [(&'static str, &'static [&'static str], &'static [&'static str])];

const TICKET: &States = &[
    ("backlog", &[], &["research"]),
    ("research", &["research"], &["plan_approval", "backlog"]),
    ("plan_approval", &["research", "plan_approval"], &["in_progress", "research"]),
    ("in_progress", &["research", "plan_approval", "in_progress"], &["verification", "research"]),
    ("verification", &["research", "plan_approval", "in_progress", "verification"], &["done", "in_progress"]),
    ("done", &["research", "plan_approval", "in_progress", "verification", "done"], &[]),
];
const TASK: &States = &[
    ("pending", &[], &["in_progress"]),
    ("in_progress", &["in_progress"], &["completed", "blocked"]),
    ("completed", &["in_progress", "completed"], &[]),
    ("blocked", &["in_progress", "blocked"], &["in_progress"]),
];
const FEATURE: &States = &[
    ("pending", &[], &["in_progress"]),
    ("in_progress", &["in_progress"], &["completed", "blocked"]),
    ("completed", &["in_progress", "completed"], &["in_progress"]),
    ("blocked", &["in_progress", "blocked"], &["in_progress"]),
];
const ITERATION: &States = &[
    ("draft", &[], &["running"]),
    ("running", &["running"], &["paused", "completed", "failed"]),
    ("paused", &["running", "paused"], &["running"]),
    ("failed", &["running", "failed"], &["running"]),
    ("completed", &["running", "completed"], &[]),
];

/// A tool that moves records of one kind.
struct Mover {
    tool: &'static str,
    id: &'static str,
    to: &'static str,
    /// The field of the record that says where it stands.
    state: &'static str,
    /// The argument that says where it is believed to be.
    expected: Option<&'static str>,
    states: &'static States,
}

const MOVERS: [Mover; 4] = [
    Mover {
        tool: "ticket.update_state",
        id: "ticketId",
        to: "newState",
        state: "state",
        expected: Some("expectedState"),
        states: TICKET,
    },
    Mover {
        tool: "task.update_status",
        id: "id",
        to: "newStatus",
        state: "status",
        expected: Some("expectedStatus"),
        states: TASK,
    },
    Mover {
        tool: "feature.update_status",
        id: "id",
        to: "newStatus",
        state: "status",
        expected: Some("expectedStatus"),
        states: FEATURE,
    },
    Mover {
        tool: "iteration.update_status",
        id: "id",
        to: "newStatus",
        state: "status",
        expected: None,
        states: ITERATION,
    },
];

impl Mover {
    async fn go(&self, house: &House, id: &str, to: &str) -> Outcome {
        house.call(self.tool, json!({ (self.id): id, (self.to): to, "why": format!("to {to}") })).await
    }

    /// A new record, walked to a state.
    async fn at(&self, house: &House, way: &[&str]) -> String {
        let id = match self.id {
            "ticketId" => made(house, "ticket.create", json!({ "title": "x" })).await,
            _ if self.tool.starts_with("task") => task(house, &[]).await,
            _ if self.tool.starts_with("feature") => made(house, "feature.add", a_feature()).await,
            _ => made(house, "iteration.create", json!({ "title": "x" })).await,
        };
        for step in way {
            let outcome = self.go(house, &id, step).await;
            assert!(outcome.ok, "{} {id} to {step}: {outcome:?}", self.tool);
            assert_eq!(outcome.data[self.state], *step);
        }
        id
    }
}

async fn made(house: &House, tool: &str, arguments: Value) -> String {
    house.data(tool, arguments).await["id"].as_str().unwrap().to_owned()
}

fn a_feature() -> Value {
    json!({ "name": "f", "description": "", "requirementIds": [], "completionCriteria": [], "iteration": 0 })
}

/// A feature and a component that tasks can be made for.
async fn plan(house: &House) {
    house.data("feature.add", a_feature()).await;
    let component = json!({ "name": "c", "componentType": "other", "responsibilities": ["x"], "technology": "" });
    house.data("component.add", component).await;
}

async fn task(house: &House, dependencies: &[&str]) -> String {
    let arguments = json!({
        "title": "t", "description": "", "featureId": "FEAT-001", "componentId": "COMP-001", "acceptanceCriteria": [],
        "dependencies": dependencies, "iteration": 0,
    });
    made(house, "task.create", arguments).await
}

/// A call of another session than the house's own.
async fn call_in(house: &House, session: &str, tool: &str, arguments: Value) -> Outcome {
    let mut call = house.request(tool, arguments);
    call.scope.session_id = Some(session.to_owned());
    house.run(call).await
}

/// Rules: 002.20, 002.61, 002.62, 004.8, 004.21, 004.24, 004.25, 004.26, 004.27, 004.28, 004.29.
#[tokio::test(flavor = "multi_thread")]
async fn every_step_is_taken_or_refused_as_the_machine_says() {
    for engine in engines() {
        let house = engine.house().await;
        plan(&house).await;
        for mover in &MOVERS {
            let (mut taken, mut refused) = (0, 0);
            for (from, way, next) in mover.states {
                for (to, ..) in mover.states {
                    let id = mover.at(&house, way).await;
                    let before = exported(&house.store, house.project.id).await;
                    let outcome = mover.go(&house, &id, to).await;
                    let place = format!("{}: {from} to {to}", mover.tool);
                    if next.contains(to) {
                        assert!(outcome.ok && outcome.data[mover.state] == *to, "{place}: {outcome:?}");
                        taken += 1;
                        continue;
                    }
                    let (code, kind, message) = refusal(&outcome);
                    let allowed = if next.is_empty() {
                        format!("{from} is final")
                    } else {
                        format!("allowed is {}", next.join(" or "))
                    };
                    assert_eq!((code, kind), ("AI_TOOL_EXECUTION_ERROR", "conflict"), "{place}");
                    assert_eq!(message, format!("{id} cannot go from {from} to {to}: {allowed}"), "{place}");
                    let details = outcome.error.as_ref().unwrap().details.clone().unwrap();
                    assert_eq!(details, json!({ "id": id, "from": from, "to": to, "allowed": next }), "{place}");
                    refused += 1;
                    assert_eq!(exported(&house.store, house.project.id).await, before, "{place}");
                }
            }
            let steps: usize = mover.states.iter().map(|(.., next)| next.len()).sum();
            assert_eq!(taken, steps);
            assert!(refused >= mover.states.len(), "{}: {refused}", mover.tool);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_expected_must_be_so() {
    for engine in engines() {
        let house = engine.house().await;
        plan(&house).await;
        for mover in &MOVERS {
            let Some(expected) = mover.expected else { continue };
            let (start, _, next) = mover.states[0];
            for (believed, ..) in mover.states {
                let id = mover.at(&house, &[]).await;
                let arguments = json!({ (mover.id): id, (mover.to): next[0], (expected): believed });
                let outcome = house.call(mover.tool, arguments).await;
                assert_eq!(outcome.ok, *believed == start, "{} believed to be {believed}: {outcome:?}", mover.tool);
                if !outcome.ok {
                    let told = (refusal(&outcome).1, refusal(&outcome).2);
                    assert_eq!(told, ("conflict", format!("{id} is {start}, not {believed}")));
                    let hint = outcome.error.unwrap().hint.unwrap();
                    assert!(hint.contains("read") && hint.contains("nothing was changed"), "{hint}");
                }
            }
            let id = mover.at(&house, &[]).await;
            let stale = json!({ (mover.id): id, (mover.to): next[0], "expectedVersion": 7 });
            let stale = house.call(mover.tool, stale).await;
            assert_eq!(refusal(&stale).2, format!("{id} has changed: it is at version 1, not 7"));
            assert_eq!(stale.error.unwrap().details.unwrap()["version"], 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_waits_for_every_one_it_depends_on() {
    for engine in engines() {
        let house = engine.house().await;
        plan(&house).await;
        let (one, two) = (task(&house, &[]).await, task(&house, &[]).await);
        let last = task(&house, &[&one, &two]).await;
        let start =
            async |id: &str| house.call("task.update_status", json!({ "id": id, "newStatus": "in_progress" })).await;
        let finish = async |id: &str| {
            assert!(start(id).await.ok);
            house.data("task.update_status", json!({ "id": id, "newStatus": "completed" })).await;
        };
        let ready = async || {
            let items = house.data("task.ready", json!({})).await["items"].clone();
            items.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        for waits_for in [vec![one.clone(), two.clone()], vec![two.clone()]] {
            assert_eq!(ready().await, waits_for, "and not the one that waits");
            for refused in [start(&last).await, house.call("task.claim", json!({ "id": last })).await] {
                assert_eq!(refusal(&refused).2, format!("{last} waits for {}", waits_for.join(", ")));
                assert_eq!(refused.error.unwrap().details.unwrap(), json!({ "waitsFor": waits_for }));
            }
            finish(&waits_for[0]).await;
        }
        assert_eq!(ready().await.join(" "), last);
        assert!(start(&last).await.ok);
        // One that depends on what is done already is ready at once, and one whose dependency is dropped, too.
        let fourth = task(&house, &[&one]).await;
        let fifth = task(&house, &[&fourth]).await;
        assert_eq!(ready().await.join(" "), fourth);
        house.data("task.update", json!({ "id": fifth, "dependencies": [] })).await;
        assert_eq!(ready().await, [fourth, fifth]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_session_holds_no_other_moves_until_the_lease_ends() {
    for engine in engines() {
        let house = engine.house().await;
        plan(&house).await;
        let id = task(&house, &[]).await;
        let claim =
            |session: &'static str| call_in(&house, session, "task.claim", json!({ "id": id, "leaseSeconds": 60 }));
        let complete = |session: &'static str| {
            call_in(&house, session, "task.update_status", json!({ "id": id, "newStatus": "completed" }))
        };
        let first = claim("first").await;
        assert_eq!((&first.data["task"]["status"], &first.data["takenOver"]), (&json!("in_progress"), &json!(false)));
        let held = |left: u64| format!("{id} is held by Test Agent for another {left} s");
        for refused in [complete("second").await, claim("second").await] {
            assert_eq!((refusal(&refused).1, refusal(&refused).2), ("conflict", held(60)));
        }
        house.clock.advance(Duration::from_secs(59));
        assert_eq!(refusal(&complete("second").await).2, held(1));
        assert_eq!(house.data("task.ready", json!({})).await["items"], json!([]), "it is held to its last second");
        // Whoever holds it may hold it for longer.
        assert!(claim("first").await.ok);
        house.clock.advance(Duration::from_secs(59));
        assert_eq!(refusal(&claim("second").await).2, held(1));
        house.clock.advance(Duration::from_secs(1));
        assert_eq!(house.data("task.ready", json!({})).await["items"][0]["id"], id.as_str(), "its lease has run out");
        let taken = claim("second").await;
        assert_eq!((&taken.data["takenOver"], &taken.data["task"]["id"]), (&json!(true), &json!(id)), "{taken:?}");
        assert!(taken.text.contains("their lease ended"), "{}", taken.text);
        assert_eq!(refusal(&complete("first").await).2, held(60), "who was late has lost it");
        let done = complete("second").await;
        assert!(done.ok && done.data["holder"].is_null() && done.data["completedAtMs"].is_number(), "{done:?}");
        assert_eq!(refusal(&claim("first").await).2, format!("{id} is completed, not pending"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_stuck_is_nobody_s_and_keeps_the_time_it_began() {
    for engine in engines() {
        let house = engine.house().await;
        plan(&house).await;
        let id = task(&house, &[]).await;
        let go = |session: &'static str, to: &'static str| {
            call_in(&house, session, "task.update_status", json!({ "id": id, "newStatus": to, "why": "so it is" }))
        };
        let claimed = call_in(&house, "first", "task.claim", json!({})).await;
        let began = claimed.data["task"]["startedAtMs"].clone();
        assert!(began.is_number());
        house.clock.advance(Duration::from_secs(5));
        let stuck = go("first", "blocked").await;
        assert!(stuck.ok && stuck.data["holder"].is_null(), "{stuck:?}");
        let on = call_in(&house, "second", "task.claim", json!({ "id": id })).await;
        assert_eq!((&on.data["task"]["startedAtMs"], &on.data["takenOver"]), (&began, &json!(true)), "{on:?}");
        let done = go("second", "completed").await;
        assert_eq!((done.ok, &done.data["startedAtMs"]), (true, &began), "{done:?}");
        let history = house.data("record.history", json!({ "id": id })).await;
        let changes: Vec<&str> =
            history["versions"].as_array().unwrap().iter().map(|one| one["change"].as_str().unwrap()).collect();
        assert_eq!(changes, ["state", "claim", "state", "claim", "create"], "{history}");
        assert_eq!(history["versions"][0]["why"], "so it is");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_tool_passes_a_machine_by() {
    for engine in engines() {
        let house = engine.house().await;
        plan(&house).await;
        let id = task(&house, &[]).await;
        for status in ["in_progress", "completed"] {
            house.data("task.update_status", json!({ "id": id, "newStatus": status })).await;
        }
        // Its first version was pending, and it stays completed.
        let back = house.data("record.restore", json!({ "id": id, "version": 1 })).await;
        assert_eq!(back["content"]["status"], "completed", "{back}");
        house.data("task.delete", json!({ "id": id })).await;
        let back = house.data("record.restore", json!({ "id": id, "version": 1 })).await;
        assert_eq!(back["content"]["status"], "completed", "{back}");
        let ticket = MOVERS[0].at(&house, &["research", "plan_approval"]).await;
        let back = house.data("record.restore", json!({ "id": ticket, "version": 1 })).await;
        assert_eq!(back["content"]["state"], "plan_approval", "{back}");
        for (tool, arguments) in [
            ("task.update", json!({ "id": id, "status": "pending" })),
            ("ticket.update", json!({ "ticketId": ticket, "state": "done" })),
            ("ticket.create", json!({ "title": "x", "state": "done" })),
        ] {
            assert_eq!(refusal(&house.call(tool, arguments).await).1, "validation", "{tool}");
        }
    }
}
