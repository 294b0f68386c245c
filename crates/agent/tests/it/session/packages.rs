//! A session that works on a package: its answer is a change set, whoever staged it and wherever the host died.

use std::time::Duration;

use serde_json::{Value, json};
use toolhost_agent::model::{Reply, Stop, Usage};
use toolhost_agent::session::{Answer, LoopResult, Status, TurnStep, step};
use toolhost_agent::start::{BuilderTarget, Task};
use toolhost_builder::Package;
use toolhost_builder::envelope::{Mode, TargetType};
use toolhost_builder::limits::Size;
use toolhost_contract::{Answer as Allowed, CallId, Effect, Signal};
use toolhost_host::{Asking, Decision, Unattended};
use toolhost_store::Event as Row;
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::{house_with_sample, in_session, sample, shelf_of};
use toolhost_testkit::session::{Sitting, script};
use toolhost_testkit::{House, TempWorkspace};

const ASSET: &str = "assets/review-checklist.md";

fn task() -> Task {
    Task::Builder(BuilderTarget {
        goal: "make it clearer".to_owned(),
        target_type: TargetType::Asset,
        target_id: ASSET.to_owned(),
        mode: Mode::Optimize,
        workflow_id: None,
        context_budget: None,
        reserve_for_response: None,
        all_tools: false,
    })
}

/// Sets made on what is there: one that may be applied, and one that takes away what others refer to.
async fn sets(house: &House) -> (Value, Value) {
    let read = in_session(house, "reader", "builder.asset.read", json!({ "path": ASSET })).await;
    let set = |operation: Value| {
        json!({
            "schemaVersion": "1.0", "targetType": "asset", "mode": "optimize", "operations": [operation],
            "revisions": read.data["revisions"],
        })
    };
    let target = json!({ "path": ASSET });
    let good =
        json!({ "op": "upsert", "targetType": "asset", "target": target, "payload": { "content": "Clearer.\n" } });
    (set(good), set(json!({ "op": "delete", "targetType": "asset", "target": target })))
}

fn answer(set: &Value) -> Value {
    json!({ "responseType": "change", "assistantSummary": "The checklist is clearer.", "changeSet": set })
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "calls": [{ "tool": tool, "arguments": arguments }] })
}

/// The one set that is left, which is the answer's.
async fn left(sitting: &Sitting<'_>, result: &LoopResult) -> String {
    let Some(Answer::Change { change_set_id, .. }) = &result.answer else { unreachable!("{result:?}") };
    let shelf = shelf_of(sitting.house, sitting.house.project.id);
    let open = shelf.change_sets(Some(&sitting.id), true).await.unwrap();
    let open: Vec<(&str, &str)> = open.iter().map(|set| (set.change_set_id.as_str(), set.status.as_str())).collect();
    assert_eq!(open, [(change_set_id.as_str(), "validated")]);
    change_set_id.clone()
}

/// Rules: 001.31.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_the_model_has_staged_itself_is_its_answer() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let (good, bad) = sets(&house).await;
        let stage = |set: &Value| call("builder_change_stage", json!({ "changeSet": set }));
        let validate = || call("builder_change_validate", json!({}));
        let told = |set: &Value| json!({ "text": answer(set).to_string() });
        let ways = [
            ("cs-1", vec![stage(&good), validate(), told(&good)]),
            ("cs-2", vec![stage(&good), validate(), told(&json!({ "changeSetId": "cs-2" }))]),
            (
                "cs-4",
                vec![
                    stage(&bad),
                    validate(),
                    call("builder_change_discard", json!({ "changeSetId": "cs-3" })),
                    stage(&good),
                    validate(),
                    told(&good),
                ],
            ),
            // What it has discarded is staged anew.
            ("cs-6", vec![stage(&good), call("builder_change_discard", json!({ "changeSetId": "cs-5" })), told(&good)]),
        ];
        for (id, turns) in ways {
            let sitting = Sitting::new(&house, "builder");
            let result = sitting.play(&script(&json!(turns)), &task()).await;
            assert_eq!((result.status, result.repairs), (Status::Completed, 0), "{engine} {id}: {result:?}");
            assert!(result.calls.iter().all(|call| call.ok), "{engine} {id}: {:?}", result.calls);
            assert_eq!(left(&sitting, &result).await, id, "{engine}");
            in_session(&house, &sitting.id, "builder.change.discard", json!({ "changeSetId": id })).await;
        }
    }
}

/// An envelope's meta without what is another in each call.
fn lasting(meta: &Value) -> Value {
    let mut meta = meta.clone();
    let fields = meta.as_object_mut().unwrap();
    for name in ["callId", "durationMs"] {
        assert!(fields.remove(name).is_some(), "`{name}` is missing: {fields:?}");
    }
    meta
}

/// Rules: 000.26.
#[tokio::test(flavor = "multi_thread")]
async fn the_meta_of_a_call_is_whole_and_the_same_in_the_loop_as_at_other_doors() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let (good, _) = sets(&house).await;
        let calls = [
            ("builder.asset.read", json!({ "path": ASSET })),
            ("builder.asset.read", json!({ "path": "assets/nowhere.md" })),
            ("builder.change.stage", json!({ "changeSet": good })),
            ("builder.change.validate", json!({})),
        ];
        let turns: Vec<Value> = calls.iter().map(|(tool, arguments)| call(tool, arguments.clone())).collect();
        let chat = json!({ "responseType": "chat", "assistantSummary": "It is staged." });
        let turns = [turns, vec![json!({ "text": chat.to_string() })]].concat();
        let sitting = Sitting::new(&house, "builder");
        let result = sitting.play(&script(&json!(turns)), &task()).await;
        assert_eq!(result.status, Status::Completed, "{result:?}");
        let told = sitting.contents().await;
        assert_eq!(told.len(), calls.len());
        for ((tool, arguments), (step, body)) in calls.iter().zip(&told) {
            let in_loop: Value = serde_json::from_str(body["content"].as_str().unwrap()).unwrap();
            let elsewhere = in_session(&house, &sitting.id, tool, arguments.clone()).await;
            let elsewhere = serde_json::to_value(elsewhere).unwrap();
            let meta = lasting(&in_loop["meta"]);
            // What was staged is seen by reads that come later.
            if !matches!(*tool, "builder.asset.read") {
                assert_eq!(meta, lasting(&elsewhere["meta"]), "{step}");
            }
            let names: Vec<&str> = meta.as_object().unwrap().keys().map(String::as_str).collect();
            let whole: Vec<&str> = elsewhere["meta"]
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .filter(|name| names.contains(name))
                .collect();
            assert_eq!((names.len(), whole.len()), (8, 8), "{step}: {meta}");
            assert_eq!((&meta["tool"], &meta["sessionId"]), (&json!(tool), &json!(sitting.id)));
            assert_eq!((&meta["userId"], &meta["projectId"]), (&json!(1), &json!(house.project.id)));
            assert_eq!(meta["allowWrite"], tool.starts_with("builder.change"), "{step}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_loop_says_of_a_call_itself_has_a_whole_meta_too() {
    let house = house_with_sample(&engines().next().unwrap()).await;
    let (good, _) = sets(&house).await;
    let read = json!({ "tool": "builder_asset_read", "arguments": { "path": ASSET } });
    let stage = json!({ "tool": "builder_change_stage", "arguments": { "changeSet": good } });
    let chat = json!({ "responseType": "chat", "assistantSummary": "Nothing is staged." });
    let model = script(&json!([{ "calls": [read, stage] }, { "text": chat.to_string() }]));
    let mut sitting = Sitting::new(&house, "builder");
    sitting.limits.calls_per_turn = 1;
    sitting.play(&model, &task()).await;
    let told = sitting.contents().await;
    let envelope: Value = serde_json::from_str(told[1].1["content"].as_str().unwrap()).unwrap();
    assert_eq!(envelope["error"]["code"], "AI_TOOL_LOOP_LIMIT_EXCEEDED");
    let meta = lasting(&envelope["meta"]);
    assert_eq!(meta.as_object().unwrap().len(), 8, "{meta}");
    assert_eq!((&meta["tool"], &meta["allowWrite"]), (&json!("builder.change.stage"), &json!(true)));
    assert_eq!(meta["sessionId"], sitting.id);
}

/// What the model said in a turn whose host died while it looked at the answer.
fn said(set: &Value) -> Value {
    let text = answer(set).to_string();
    let reply = Reply { text, calls: vec![], stop: Stop::Done, usage: Usage::default(), signatures: vec![] };
    let call_ids = ["call-stage", "call-validate", "call-discard"].map(CallId::new).to_vec();
    serde_json::to_value(TurnStep { reply, call_ids, cost: None, ms: 0, elapsed_ms: 0 }).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_dies_while_an_answer_is_looked_at_leaves_no_bad_set_behind() {
    for engine in engines() {
        // While it was being staged, after that, when it was found to be bad, and while it was being discarded.
        for (died, steps_kept) in [("staging", 1), ("just staged", 1), ("staged", 2), ("found", 3), ("discarding", 3)] {
            let house = house_with_sample(&engine).await;
            let (good, bad) = sets(&house).await;
            let bad_said = if died == "staged" {
                "<untrusted source=\"builder.change.validate\""
            } else {
                "is not valid and was discarded"
            };
            let sitting = Sitting::new(&house, "builder");
            let model = script(&json!([
                { "text": answer(&bad).to_string() },
                { "expect": { "user": bad_said }, "text": answer(&good).to_string() },
            ]));
            let opening = sitting.opening(&model, &task()).await.unwrap();
            let staged = in_session(&house, &sitting.id, "builder.change.stage", json!({ "changeSet": bad })).await;
            let set = &staged.data["changeSetId"];
            let found = json!({ "bad": {
                "code": "AI_VALIDATION_FAILED", "findings": "It is not valid and was discarded.", "discard": set,
            } });
            let steps = [(step::turn(0), said(&bad)), (step::staged(0), set.clone()), (step::check(0), found)];
            sitting.killed_after(&opening, &steps[..steps_kept]).await;
            let under_way = match died {
                "staging" | "just staged" => Some(("builder.change.stage", "call-stage")),
                "discarding" => Some(("builder.change.discard", "call-discard")),
                _ => None,
            };
            if let Some((tool, id)) = under_way {
                let (tool, id) = ((tool, Effect::Writes), CallId::new(id));
                sitting.noted(tool, Row::Started, &id, None).await;
                if died == "just staged" {
                    sitting.noted(tool, Row::Finished, &id, Some(json!({ "ok": true }))).await;
                }
            }
            let result = sitting.go_on(&model).await;
            assert_eq!((result.status, result.repairs), (Status::Completed, 1), "{engine} {died}: {result:?}");
            assert_eq!(left(&sitting, &result).await, "cs-2", "{engine} {died}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_is_asked_about_an_answer_is_waited_for_and_survives_a_pause() {
    let rules: String = ["stage", "validate", "discard"]
        .map(|tool| format!("[[profiles.builder.rules]]\ntool = 'builder.change.{tool}'\ndecide = 'ask'\n"))
        .concat();
    // A call of a model would come back as pending at once.
    let asking = Asking { unattended: Unattended::Wait, hold: Duration::ZERO, ..Asking::default() };
    let house = super::house(TempWorkspace::new()).operator(&rules).asking(asking).build().await;
    shelf_of(&house, house.project.id).import(&Package::read(sample()), false, Size::default()).await.unwrap();
    let (good, bad) = sets(&house).await;
    let model = script(&json!([
        { "text": answer(&bad).to_string() },
        { "expect": { "user": "is not valid and was discarded" }, "text": answer(&good).to_string() },
    ]));
    let sitting = Sitting::new(&house, "builder");
    sitting.begin(&sitting.opening(&model, &task()).await.unwrap()).await;
    let (queue, project) = (house.gate.queue(), house.project.id);
    let asked = async |number: i64| {
        while queue.get(project, number).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // To stage, to validate and to discard the bad one; to stage and to validate the good one.
    for number in 1..=5 {
        let held = sitting.hold().await;
        let pauses = async {
            asked(number).await;
            house.store.sessions().want(project, &sitting.id, Signal::Pause).await.unwrap();
        };
        let (result, ()) = tokio::join!(sitting.go_on_with(&held, &model), pauses);
        assert_eq!(result.status, Status::Paused, "{number}: {result:?}");
        let decision = Decision { answer: Allowed::Allow, rule: None };
        queue.decide(&house.owner(), number, decision, "test").await.unwrap();
    }
    let result = sitting.go_on(&model).await;
    assert_eq!((result.status, result.repairs), (Status::Completed, 1), "{result:?}");
    left(&sitting, &result).await;
    assert!(queue.get(project, 6).await.is_err(), "each was asked once");
}
