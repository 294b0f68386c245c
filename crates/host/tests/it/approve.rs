//! Step 7: a person is asked. Only a clear yes is one, and every answer is written down.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolhost_contract::{ErrorCode, ErrorKind};
use toolhost_host::{ApprovalRequest, Approver, Decision, Hooks};
use toolhost_sandbox::BoxFuture;
use toolhost_testkit::{SaysNo, SaysYes};

use crate::probes::house;

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_is_the_answer_is_no() {
    let (builder, watched) = house();
    let house = builder.build().await;
    let outcome = house.call("probe.send", json!({ "text": "x" })).await;
    let error = outcome.error.clone().unwrap();
    assert_eq!((error.code, error.kind), (ErrorCode::ToolForbidden, ErrorKind::Denied));
    assert_eq!(house.events_of(&outcome).await, ["decision", "finished"]);
    let rows = house.rows().await;
    assert_eq!((&rows[0]["decision"]["allowed"], &rows[0]["decision"]["place"]), (&json!(false), &json!("nobody")));
    assert_eq!(watched.runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_comes_back_with_its_comment() {
    let (builder, watched) = house();
    let house = builder.approver(SaysNo("use the other remote")).build().await;
    let outcome = house.call("probe.send", json!({ "text": "x" })).await;
    assert!(outcome.text.contains("use the other remote"), "{}", outcome.text);
    assert_eq!(house.rows().await[0]["decision"]["comment"], "use the other remote");
    assert_eq!(watched.runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_is_written_down_before_the_call_starts() {
    let (builder, watched) = house();
    let house = builder.approver(SaysYes).build().await;
    let outcome = house.call("probe.send", json!({ "text": "x" })).await;
    assert!(outcome.ok);
    assert_eq!(house.events_of(&outcome).await, ["decision", "started", "finished"]);
    let rows = house.rows().await;
    assert_eq!((&rows[0]["decision"]["allowed"], &rows[0]["digest"]), (&json!(true), &rows[1]["digest"]));
    assert_eq!(rows[1]["decision"]["place"], "test");
    assert_eq!(watched.runs(), 1);
}

/// Remembers what it was asked, and never answers.
#[derive(Clone, Default)]
struct Silent {
    asked: Arc<Mutex<Vec<ApprovalRequest>>>,
    told: Arc<tokio::sync::Notify>,
}

impl Approver for Silent {
    fn place(&self) -> &'static str {
        "silence"
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        self.asked.lock().unwrap().push(request.clone());
        self.told.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_no_yes_and_a_cancelled_question_runs_nothing() {
    let (builder, watched) = house();
    let silent = Silent::default();
    let house = builder.approver(silent.clone()).host_variable("DEPLOY_TOKEN", "hunter2hunter2").build().await;
    let hooks = Hooks::default();
    let call = house.request("probe.send", json!({ "text": "with hunter2hunter2" }));
    let running = tokio::spawn({
        let (gate, hooks) = (Arc::clone(&house.gate), hooks.clone());
        async move { gate.call(call, hooks).await }
    });
    silent.told.notified().await;
    hooks.cancel.cancel();
    let outcome = running.await.unwrap();
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Cancelled);
    assert_eq!(watched.runs(), 0);
    let asked = silent.asked.lock().unwrap();
    assert_eq!((asked[0].tool.as_str(), asked[0].persona.as_str()), ("probe.send", "Test Agent"));
    assert_eq!(asked[0].arguments, json!({ "text": "with [redacted]" }), "a secret is not shown to whoever approves");
}
