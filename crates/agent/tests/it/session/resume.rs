//! A session that goes on where another process left it: what it may do again, and what it may not.

use std::time::Duration;

use serde_json::{Value, json};
use toolhost_agent::model::{Arguments, Reply, Script, Stop, ToolCall, Usage};
use toolhost_agent::session::{Answer, LoopResult, SayStep, Status, TurnStep, step};
use toolhost_agent::start::{self, Task};
use toolhost_contract::{Answer as Allowed, CallId, Effect, ErrorCode, Journal, Signal};
use toolhost_host::{Asking, Decision, Unattended};
use toolhost_store::{AskState, Event as Row, SessionState, StepRow};
use toolhost_testkit::engines::engines;
use toolhost_testkit::session::{Sitting, script, work};
use toolhost_testkit::{House, HouseBuilder, TempWorkspace};

async fn house() -> House {
    house_on(None).await
}

async fn house_on(database: Option<String>) -> House {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "alpha\n");
    HouseBuilder::of(toolhost::tools).workspace(workspace).database(database).build().await
}

/// A turn that asks for one edit, which finds its place again in what it has made.
fn asks_for_an_edit(id: &CallId) -> TurnStep {
    let edits = json!([{ "search": "alpha", "replace": "alpha alpha" }]);
    let call = ToolCall {
        id: step::call(0, 0),
        name: "file_edit".to_owned(),
        arguments: Arguments::Json(json!({ "path": "a.txt", "edits": edits })),
    };
    let reply = Reply {
        text: String::new(),
        calls: vec![call],
        stop: Stop::Calls,
        usage: Usage::default(),
        signatures: vec![],
    };
    TurnStep { reply, call_ids: vec![id.clone()], cost: None, ms: 0, elapsed_ms: 0 }
}

/// A session that was killed with these steps kept.
async fn killed(sitting: &Sitting<'_>, steps: &[(String, Value)]) {
    let opening = sitting.opening(&script(&json!([{ "text": "not asked" }])), &work("edit")).await.unwrap();
    sitting.killed_after(&opening, steps).await;
}

async fn noted(sitting: &Sitting<'_>, event: Row, id: &CallId, outcome: Option<Value>) {
    sitting.noted(("file.edit", Effect::Writes), event, id, outcome).await;
}

async fn steps(sitting: &Sitting<'_>) -> Vec<StepRow> {
    sitting.house.store.sessions().steps(sitting.house.project.id, &sitting.id, -1, 100).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_begun_again_is_known_by_its_new_id_when_that_run_is_killed_too() {
    for engine in engines() {
        let house = house_on(engine.url.clone()).await;
        let model = script(&json!([{ "text": "not asked" }, { "text": "Edited." }]));
        let (first, turn) = (CallId::new("call-first"), step::turn(0));
        let said = serde_json::to_value(asks_for_an_edit(&first)).unwrap();
        let sitting = Sitting::new(&house, "developer");
        killed(&sitting, &[(turn.clone(), said.clone())]).await;
        // The first run had come as far as the row before it runs, and had written down no change.
        noted(&sitting, Row::Started, &first, None).await;
        let result = sitting.go_on(&model).await;
        assert_eq!((result.status, result.calls[0].ok), (Status::Completed, true), "{result:?}");
        assert_eq!(house.workspace.read("a.txt"), "alpha alpha\n");
        let again = steps(&sitting).await.into_iter().find(|row| row.step == step::again(0, 0, 0)).unwrap();
        let second = serde_json::to_value(&result.calls[0].call_id).unwrap();
        assert!(again.body == second && second != serde_json::to_value(&first).unwrap());
        // A run that was killed between that call and its step: the audit knows the new id.
        let next = Sitting::new(&house, "developer");
        killed(&next, &[(turn, said), (again.step, again.body)]).await;
        noted(&next, Row::Started, &first, None).await;
        noted(&next, Row::Started, &result.calls[0].call_id, None).await;
        noted(&next, Row::Finished, &result.calls[0].call_id, Some(json!({ "ok": true }))).await;
        let result = next.go_on(&model).await;
        assert_eq!(result.status, Status::Completed, "{result:?}");
        let told = next.contents().await[0].1["content"].as_str().unwrap().to_owned();
        assert!(told.contains("ran and succeeded"), "{told}");
        assert_eq!(house.workspace.read("a.txt"), "alpha alpha\n", "it ran once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_an_earlier_run_sent_back_do_not_count_against_the_limit_of_this_one() {
    let house = house().await;
    let schema = json!({ "type": "object", "required": ["count"] });
    let task = Task::Workspace { goal: "count".to_owned(), schema: Some(schema) };
    let mut sitting = Sitting::new(&house, "developer");
    let mut turns: Vec<Value> = ["a", "b", "c", "d", "e"].iter().map(|text| json!({ "text": text })).collect();
    turns.push(json!({ "expect": { "user": "not JSON" }, "text": "{\"count\": 2}" }));
    let model = script(&json!(turns));
    sitting.limits.max_repairs = 3;
    let failed = sitting.play(&model, &task).await;
    assert_eq!((failed.status, failed.iterations, failed.repairs), (Status::Failed, 4, 3), "{failed:?}");
    sitting.limits.max_repairs = 0;
    let failed = sitting.go_on(&model).await;
    assert_eq!((failed.status, failed.iterations, failed.repairs), (Status::Failed, 5, 4), "{failed:?}");
    let done = sitting.go_on(&model).await;
    assert_eq!(done.answer, Some(Answer::Json { value: json!({ "count": 2 }) }), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_says_after_a_wrong_answer_comes_after_what_is_wrong_with_it() {
    let house = house().await;
    let task = Task::Workspace { goal: "count".to_owned(), schema: Some(json!({ "type": "object" })) };
    let mut sitting = Sitting::new(&house, "developer");
    sitting.limits.max_repairs = 0;
    let model = script(&json!([{ "text": "one" }, { "expect": { "user": "Say {}" }, "text": "{}" }]));
    assert_eq!(sitting.play(&model, &task).await.status, Status::Failed);
    let held = sitting.hold().await;
    let say = SayStep { text: "Say {}".to_owned(), since: None };
    held.say(&step::say(1, 0), serde_json::to_value(say).unwrap()).await.unwrap();
    let result = sitting.go_on_with(&held, &model).await;
    assert_eq!((result.status, result.repairs), (Status::Completed, 1), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_say_what_it_takes_is_no_way_round_a_limit() {
    let house = house().await;
    let read = json!({ "tool": "file_read", "arguments": { "path": "a.txt" } });
    let model = script(&json!([{ "calls": [read] }, { "calls": [read] }, { "text": "Read." }]));
    let mut sitting = Sitting::new(&house, "developer");
    sitting.limits.tokens_max = Some(100);
    let limited = sitting.play(&model, &work("read")).await;
    assert_eq!((limited.status, limited.error.unwrap().code), (Status::Limited, ErrorCode::TokenLimit));
    assert!(limited.iterations == 1 && limited.usage.estimated, "{:?}", limited.usage);
    assert!(limited.usage.input_tokens > 1_000 && limited.usage.output_tokens > 5, "{:?}", limited.usage);
    // Without a limit nothing is counted; with one again, all of it is, what came without one included.
    sitting.limits.tokens_max = None;
    let done = sitting.go_on(&model).await;
    assert_eq!((done.status, done.iterations), (Status::Completed, 3));
    assert_eq!(done.usage, limited.usage);
    sitting.limits.tokens_max = Some(1_000_000);
    let again = sitting.go_on(&model).await;
    assert!(again.status == Status::Completed && again.usage.total() > 3 * limited.usage.total(), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_is_for_the_session_that_asked_whenever_it_goes_on() {
    let rule = "[[profiles.developer.rules]]\ntool = 'file.write'\ndecide = 'ask'\n";
    let asking = Asking { unattended: Unattended::Wait, hold: Duration::ZERO, ..Asking::default() };
    for engine in engines() {
        let house = HouseBuilder::of(toolhost::tools).operator(rule).asking(asking);
        a_yes_for_one(&house.database(engine.url.clone()).build().await).await;
    }
}

async fn a_yes_for_one(house: &House) {
    let write = json!({ "tool": "file_write", "arguments": { "path": "new.txt", "content": "new" } });
    let wait = json!({ "tool": "approval_wait", "arguments": { "approvalId": "ask-1", "timeoutMs": 0 } });
    let model = script(&json!([{ "calls": [write] }, { "calls": [wait] }, { "text": "Written." }]));
    let mut asks = Sitting::new(house, "developer");
    // One that has given its answer asks nobody any more; this one waits at a limit.
    asks.limits.max_iterations = 1;
    assert_eq!(asks.play(&model, &work("write")).await.status, Status::Limited);
    asks.limits.max_iterations = 9;
    let decision = Decision { answer: Allowed::Allow, rule: None };
    house.gate.queue().decide(&house.owner(), 1, decision, "test").await.unwrap();
    let other = Sitting::new(house, "developer");
    let pries = script(&json!([{ "calls": [wait] }, { "text": "It is not mine." }]));
    other.play(&pries, &work("pry")).await;
    let told = other.contents().await[0].1["content"].as_str().unwrap().to_owned();
    assert!(told.contains("no `ask-1` of yours") && !house.workspace.has("new.txt"), "{told}");
    let held = asks.hold().await;
    held.say(&step::say(1, 0), json!({ "text": "It is allowed." })).await.unwrap();
    let result = asks.go_on_with(&held, &model).await;
    assert_eq!((result.status, house.workspace.read("new.txt").as_str()), (Status::Completed, "new"), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_leads_to_another_call_runs_alone() {
    let house = house().await;
    let tools = Sitting::new(&house, "developer").tools;
    for (name, reads) in [("file_read", true), ("approval_wait", false), ("approval.wait", false), ("bash", false)] {
        assert_eq!(tools.only_reads(name), reads, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conventions_that_cannot_be_read_keep_nobody_from_working() {
    let house = house().await;
    house.workspace.link("/etc/hostname", "AGENTS.md");
    house.workspace.make_folder("CLAUDE.md");
    let model = script(&json!([{ "text": "Here." }]));
    let result = Sitting::new(&house, "developer").play(&model, &work("say")).await;
    assert_eq!(result.status, Status::Completed, "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_person_has_not_been_read_when_a_session_begins() {
    let rules = "[[profiles.developer.rules]]\ntool = 'file.read'\ndecide = 'ask'\n
                 [[profiles.developer.rules]]\ntool = 'ticket.read'\ndecide = 'ask'\n";
    let asking = Asking { unattended: Unattended::Wait, hold: Duration::ZERO, ..Asking::default() };
    let workspace = TempWorkspace::new();
    workspace.write("AGENTS.md", "Two spaces.\n");
    let house = HouseBuilder::of(toolhost::tools).workspace(workspace).operator(rules).asking(asking).build().await;
    let sitting = Sitting::new(&house, "developer");
    let model = script(&json!([{ "text": "x" }]));
    let opening = sitting.opening(&model, &work("say")).await.unwrap();
    let prompt = serde_json::to_string(&opening.system).unwrap();
    assert!(!prompt.contains("AGENTS.md") && !prompt.contains("waits for a person's approval as"), "{prompt}");
    let about = sitting.about(Some("T-1"));
    let refused = start::opening(&sitting.tools, &model, &work("say"), &about).await.unwrap_err();
    assert!(refused.to_string().contains("waits for a person's approval"), "{refused}");
}

/// A house where a person is asked, and takes their time.
async fn house_that_asks(database: Option<String>) -> House {
    let rule = "[[profiles.developer.rules]]\ntool = 'file.write'\ndecide = 'ask'\n";
    let asking = Asking { unattended: Unattended::Wait, hold: Duration::from_secs(600), ..Asking::default() };
    HouseBuilder::of(toolhost::tools).operator(rule).asking(asking).database(database).build().await
}

/// Sessions whose first call waits for a person: the profile, the model, what the person says.
fn that_wait() -> [(&'static str, Value, Allowed); 2] {
    let write = json!({ "tool": "file_write", "arguments": { "path": "new.txt", "content": "new" } });
    let ask = json!({ "tool": "human_ask", "arguments": { "question": "May it go?", "kind": "yes_no" } });
    [("developer", write, Allowed::Allow), ("planner", ask, Allowed::Yes)]
}

async fn state(house: &House, ask: i64) -> AskState {
    house.gate.queue().get(house.project.id, ask).await.unwrap().0.state
}

/// Runs a new session until its call waits, and stops it then.
async fn stopped(sitting: &Sitting<'_>, call: &Value, ask: i64, stop: Option<Signal>) -> (Script, LoopResult) {
    let model = script(&json!([{ "calls": [call] }, { "text": "Done." }]));
    sitting.begin(&sitting.opening(&model, &work("do it")).await.unwrap()).await;
    let held = sitting.hold().await;
    let (queue, project) = (sitting.house.gate.queue(), sitting.house.project.id);
    let stops = async {
        while queue.get(project, ask).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if let Some(signal) = stop {
            sitting.house.store.sessions().want(project, &sitting.id, signal).await.unwrap();
        }
    };
    let (result, ()) = tokio::join!(sitting.go_on_with(&held, &model), stops);
    held.release(SessionState::Paused, None).await.unwrap();
    (model, result)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_waits_for_nobody_and_the_call_asks_again_when_the_session_goes_on() {
    for engine in engines() {
        let house = house_that_asks(engine.url.clone()).await;
        for (ask, (profile, call, says)) in (1..).zip(that_wait()) {
            let sitting = Sitting::new(&house, profile);
            let (model, paused) = stopped(&sitting, &call, ask, Some(Signal::Pause)).await;
            assert_eq!((paused.status, paused.calls.len()), (Status::Paused, 0), "{paused:?}");
            assert_eq!(state(&house, ask).await, AskState::Open);
            let decision = Decision { answer: says, rule: None };
            house.gate.queue().decide(&house.owner(), ask, decision, "test").await.unwrap();
            let result = Sitting::of(&house, profile, &sitting.id).go_on(&model).await;
            assert_eq!(
                (result.status, result.calls.len(), result.calls[0].ok),
                (Status::Completed, 1, true),
                "{result:?}"
            );
            let told = sitting.contents().await[0].1["content"].as_str().unwrap().to_owned();
            assert!(told.contains(if profile == "planner" { "yes" } else { "created new.txt" }), "{told}");
            assert!(house.gate.queue().get(house.project.id, ask + 1).await.is_err(), "it was asked once");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_time_leaves_what_a_person_had_not_answered_to_be_asked_again() {
    for (profile, call, says) in that_wait() {
        let house = house_that_asks(None).await;
        let mut sitting = Sitting::new(&house, profile);
        sitting.limits.time_max = Some(Duration::from_millis(300));
        let (model, late) = stopped(&sitting, &call, 1, None).await;
        assert_eq!((late.status, late.calls.len()), (Status::Limited, 0), "{late:?}");
        sitting.limits.time_max = None;
        let held = sitting.hold().await;
        let answers = async {
            while house.gate.queue().get(house.project.id, 2).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let decision = Decision { answer: says, rule: None };
            house.gate.queue().decide(&house.owner(), 2, decision, "test").await.unwrap();
        };
        let (result, ()) = tokio::join!(sitting.go_on_with(&held, &model), answers);
        assert_eq!((result.status, result.calls[0].ok), (Status::Completed, true), "{result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_cancelled_asks_nobody_any_more() {
    for engine in engines() {
        let house = house_that_asks(engine.url.clone()).await;
        for (ask, (profile, call, _)) in (1..).zip(that_wait()) {
            let sitting = Sitting::new(&house, profile);
            stopped(&sitting, &call, ask, Some(Signal::Pause)).await;
            house.store.sessions().want(house.project.id, &sitting.id, Signal::Cancel).await.unwrap();
            assert_eq!(state(&house, ask).await, AskState::Withdrawn, "{profile}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_was_open_when_the_host_died_is_found_again_with_its_answer() {
    let asking = Asking { unattended: Unattended::Wait, hold: Duration::ZERO, ..Asking::default() };
    let house = HouseBuilder::of(toolhost::tools).asking(asking).build().await;
    let question = json!({ "question": "May the old API go?", "kind": "yes_no" });
    let model = script(&json!([
        { "calls": [{ "tool": "human_ask", "arguments": question }] }, { "text": "not asked" }, { "text": "It may." },
    ]));
    let mut sitting = Sitting::new(&house, "planner");
    // A session that has its answer asks nobody any more; one that a limit stopped does.
    sitting.limits.max_iterations = 1;
    assert_eq!(sitting.play(&model, &work("ask")).await.status, Status::Limited);
    sitting.limits.max_iterations = 9;
    let decision = Decision { answer: Allowed::Yes, rule: None };
    house.gate.queue().decide(&house.owner(), 1, decision, "test").await.unwrap();
    // The same question in a turn whose host died before it had the answer.
    let turn = steps(&sitting).await.into_iter().find(|row| row.step == step::turn(0)).unwrap().body;
    let dead = CallId::new("call-dead");
    let mut said: TurnStep = serde_json::from_value(turn).unwrap();
    said.call_ids = vec![dead.clone()];
    let held = sitting.hold().await;
    held.say(&step::say(2, 0), json!({ "text": "Ask again." })).await.unwrap();
    held.keep(&step::turn(1), serde_json::to_value(&said).unwrap(), None).await.unwrap();
    held.settle().await.unwrap();
    drop(held);
    sitting.noted(("human.ask", Effect::Asks), Row::Started, &dead, None).await;
    let result = sitting.go_on(&model).await;
    assert_eq!((result.status, result.calls[1].ok), (Status::Completed, true), "{result:?}");
    let told = sitting.contents().await[1].1["content"].as_str().unwrap().to_owned();
    assert!(told.contains("yes"), "{told}");
}
