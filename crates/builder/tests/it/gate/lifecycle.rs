//! The life of a change set: staged, then validated, then applied; on both engines.

use serde_json::{Value, json};
use toolhost_contract::Outcome;
use toolhost_testkit::House;
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::{
    FLOW, STEP, apply, data, files, house_with_sample, in_session, person, refused, sample, set, shelf_of,
    step_operation,
};

async fn status(house: &House, number: i64) -> String {
    shelf_of(house, house.project.id).preview(number).await.unwrap().line.status
}

async fn read_step(house: &House, session: &str) -> Value {
    let read = in_session(house, session, "builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})).await;
    data(&read).clone()
}

async fn stage(house: &House, session: &str, operations: Value, revisions: &Value) -> Outcome {
    in_session(house, session, "builder.change.stage", set(operations, revisions.clone())).await
}

async fn validate(house: &House, session: &str, id: &str) -> Value {
    data(&in_session(house, session, "builder.change.validate", json!({"changeSetId": id})).await).clone()
}

fn asset(path: &str) -> Value {
    json!({"op": "upsert", "targetType": "asset", "target": {"path": path}, "payload": {"content": "Text.\n"}})
}

/// The step, with an agent that is not there and without a part that each step has.
fn broken(text: &str) -> String {
    text.replace("agentId: critic", "agentId: nobody").replace("## Goal", "## Aim")
}

/// The step, with a mention of this asset.
fn mentioning(read: &Value, asset: &str) -> Value {
    let text = format!("{}\nSee `{asset}`.\n", read["step_markdown"].as_str().unwrap());
    json!([step_operation(STEP, &text)])
}

/// Stages and findings that a refusal tells.
fn findings(outcome: &Outcome) -> (Value, Vec<(String, String)>) {
    let details = outcome.error.as_ref().unwrap().details.clone().unwrap();
    let told =
        |found: &Value| (found["stage"].as_str().unwrap().to_owned(), found["code"].as_str().unwrap().to_owned());
    (details["stages"].clone(), details["findings"].as_array().unwrap().iter().map(told).collect())
}

/// Rules: 001.65.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_is_staged_then_validated_then_applied() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let staged = stage(&house, "s1", json!([asset("assets/a.md")]), &json!({})).await;
        assert_eq!((&data(&staged)["status"], status(&house, 1).await.as_str()), (&json!("staged"), "staged"));
        let told = validate(&house, "s1", "cs-1").await;
        assert_eq!((&told["status"], status(&house, 1).await.as_str()), (&json!("validated"), "validated"));
        assert_eq!(told["stages"], json!(["schema", "bmad", "reference", "impact", "security"]));
        assert_eq!(data(&apply(&house, "cs-1").await)["status"], "applied");
        assert_eq!(status(&house, 1).await, "applied");
        // Each state is left once: what is applied is neither validated nor applied again.
        let again = in_session(&house, "s1", "builder.change.validate", json!({"changeSetId": "cs-1"})).await;
        assert_eq!(refused(&again).1, "conflict");
        assert_eq!(refused(&apply(&house, "cs-1").await).1, "conflict");
    }
}

/// Rules: 001.65.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_nobody_validated_is_validated_by_its_apply() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let read = read_step(&house, "s1").await;
        let text = broken(read["step_markdown"].as_str().unwrap());
        let operations = json!([step_operation(STEP, &text)]);
        data(&stage(&house, "s1", operations, &read["revisions"]).await);
        let blocked = apply(&house, "cs-1").await;
        assert_eq!(refused(&blocked), ("AI_VALIDATION_FAILED", "validation"));
        let (stages, found) = findings(&blocked);
        assert_eq!(stages, json!(["schema", "bmad", "reference", "impact", "security"]));
        let expected = [("bmad", "SECTION_MISSING"), ("reference", "AGENT_NOT_FOUND")];
        let found: Vec<(&str, &str)> = found.iter().map(|(stage, code)| (stage.as_str(), code.as_str())).collect();
        assert_eq!(found, expected, "{engine}: {blocked:?}");
        assert!(blocked.error.as_ref().unwrap().message.contains("bmad: "), "{blocked:?}");
        assert_eq!(files(&house).await, sample(), "nothing is written");
        let kept = shelf_of(&house, house.project.id).preview(1).await.unwrap();
        assert_eq!((kept.line.status.as_str(), kept.report.unwrap().errors.len()), ("staged", 2));
        assert_eq!(validate(&house, "s1", "cs-1").await["errors"], blocked.error.unwrap().details.unwrap()["findings"]);
        // One that is right passes the same way, and what was found of it is kept.
        data(&stage(&house, "s2", json!([asset("assets/b.md")]), &json!({})).await);
        data(&apply(&house, "cs-2").await);
        let kept = shelf_of(&house, house.project.id).preview(2).await.unwrap();
        assert_eq!((kept.line.status.as_str(), kept.report.unwrap().valid), ("applied", true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_valid_is_validated_again_when_the_package_has_changed() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        data(&stage(&house, "s0", json!([asset("assets/extra.md")]), &json!({})).await);
        data(&apply(&house, "cs-1").await);
        let read = read_step(&house, "s1").await;
        data(&stage(&house, "s1", mentioning(&read, "assets/extra.md"), &read["revisions"]).await);
        assert_eq!(validate(&house, "s1", "cs-2").await["status"], "validated");
        // Nothing of the package refers to it yet, so another session may delete it.
        let gone = json!([{"op": "delete", "targetType": "asset", "target": {"path": "assets/extra.md"}}]);
        let of_asset = in_session(&house, "s2", "builder.asset.read", json!({"path": "assets/extra.md"})).await;
        data(&stage(&house, "s2", gone, &data(&of_asset)["revisions"]).await);
        let confirmed = json!({"changeSetId": "cs-3", "confirmSource": "ui_manual_apply",
            "confirmDeletes": ["asset:assets/extra.md"]});
        data(&person(&house, "builder.change.apply", confirmed).await);
        assert_eq!(status(&house, 2).await, "staged", "{engine}: what was said of it is no longer known to be true");
        let before = files(&house).await;
        let blocked = apply(&house, "cs-2").await;
        assert_eq!(refused(&blocked).0, "AI_VALIDATION_FAILED", "{engine}");
        assert_eq!(findings(&blocked).1, [("reference".to_owned(), "ASSET_NOT_FOUND".to_owned())]);
        assert_eq!(files(&house).await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_that_are_left_are_validated_by_themselves() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let operations = json!([asset("assets/a.md"), asset("assets/b.md")]);
        data(&stage(&house, "s1", operations, &json!({})).await);
        assert_eq!(validate(&house, "s1", "cs-1").await["status"], "validated");
        let one = json!({"changeSetId": "cs-1", "confirmSource": "ui_manual_apply", "operations": [1]});
        assert_eq!(data(&person(&house, "builder.change.apply", one).await)["status"], "staged");
        assert_eq!(status(&house, 1).await, "staged", "{engine}");
        assert_eq!(data(&apply(&house, "cs-1").await)["status"], "applied");
    }
}
