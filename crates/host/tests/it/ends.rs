//! Step 9: however a tool ends, the call ends in an outcome and a row, and the host goes on.

use serde_json::json;
use toolhost_contract::{BoxFuture, ErrorKind, Outcome};
use toolhost_host::{Hooks, Limits};

use crate::probes::house;

/// Rules: 004.31.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_an_internal_error_that_keeps_its_words() {
    let (builder, watched) = house();
    let house = builder.build().await;
    let outcome = house.call("probe.panic", json!({})).await;
    let error = outcome.error.clone().unwrap();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert!(error.message.contains(outcome.meta.call_id.as_str()), "{error:?}");
    for text in [serde_json::to_string(&outcome).unwrap(), outcome.text.clone(), format!("{:?}", house.rows().await)] {
        assert!(!text.contains("private words") && !text.contains("words of the panic"), "{text}");
    }
    assert_eq!(house.events_of(&outcome).await, ["started", "finished"]);
    assert!(house.call("probe.put", json!({ "text": "after" })).await.ok);
    assert_eq!((watched.runs(), house.workspace.read("made.txt").as_str()), (2, "after"));
}

/// Rules: 002.83.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_beyond_the_cap_is_refused_text_and_data_alike() {
    let (builder, _) = house();
    let house = builder.limits(Limits { answer_bytes: 1000, ..Limits::default() }).build().await;
    assert!(house.call("probe.grow", json!({ "text": 1000, "data": 900 })).await.ok);
    for size in [json!({ "text": 1001, "data": 1 }), json!({ "text": 1, "data": 1001 })] {
        let outcome = house.call("probe.grow", size.clone()).await;
        let error = outcome.error.clone().unwrap_or_else(|| unreachable!("{size} was answered"));
        assert_eq!(error.kind, ErrorKind::Limit, "{size}");
        assert!(serde_json::to_string(&outcome).unwrap().len() < 2000 && outcome.text.len() < 1000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_ends_and_says_so() {
    let (builder, watched) = house();
    let house = builder.build().await;
    let hooks = Hooks::default();
    let call = house.request("probe.wait", json!({}));
    let running = tokio::spawn({
        let (gate, hooks) = (std::sync::Arc::clone(&house.gate), hooks.clone());
        async move { gate.call(call, hooks).await }
    });
    watched.waiting.notified().await;
    hooks.cancel.cancel();
    let outcome = running.await.unwrap();
    assert_eq!(outcome.error.as_ref().unwrap().kind, ErrorKind::Cancelled);
    assert_eq!(house.events_of(&outcome).await, ["finished"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_leaves_a_finished_call() {
    for is_here in [false, true] {
        let (builder, watched) = house();
        let house = builder.build().await;
        let hooks = Hooks::default();
        let call = house.request("probe.wait", json!({}));
        {
            let calling: BoxFuture<'_, Outcome> = match is_here {
                true => Box::pin(house.gate.call_here(call, hooks.clone())),
                false => Box::pin(house.gate.call(call, hooks.clone())),
            };
            tokio::pin!(calling);
            tokio::select! {
                _ = &mut calling => unreachable!("it waits to be cancelled"),
                () = watched.waiting.notified() => {}
            }
            // Dropped here, halfway.
        }
        hooks.cancel.cancel();
        // Whoever waits for all calls waits for this one.
        house.gate.settle().await;
        let rows = house.rows().await;
        assert_eq!((&rows[0]["event"], &rows[0]["outcome"]["kind"]), (&json!("finished"), &json!("cancelled")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_ignores_its_deadline_is_dropped() {
    let (builder, watched) = house();
    let house = builder.limits(Limits { call_timeout_ms: 20, ..Limits::default() }).build().await;
    let stuck = house.call("probe.stuck", json!({})).await;
    assert_eq!(stuck.error.as_ref().unwrap().kind, ErrorKind::Timeout, "{stuck:?}");
    assert_eq!(house.events_of(&stuck).await, ["started", "finished"]);
    let waits = house.call("probe.wait", json!({})).await;
    assert_eq!(waits.error.as_ref().unwrap().kind, ErrorKind::Timeout, "{waits:?}");
    assert_eq!(watched.runs(), 2);
}

/// Rules: 002.43, 002.82.
#[tokio::test(flavor = "multi_thread")]
async fn no_more_calls_run_at_once_than_the_limit_says() {
    let (builder, watched) = house();
    let house = builder.limits(Limits { concurrent_calls: 2, ..Limits::default() }).build().await;
    let hooks = Hooks::default();
    let start = |tool: &str| {
        let (gate, hooks) = (std::sync::Arc::clone(&house.gate), hooks.clone());
        let arguments = if tool == "probe.echo" { json!({ "text": "x" }) } else { json!({}) };
        let call = house.request(tool, arguments);
        tokio::spawn(async move { gate.call(call, hooks).await })
    };
    let (one, two) = (start("probe.wait"), start("probe.wait"));
    watched.waiting.notified().await;
    toolhost_testkit::until("both run", || watched.runs() == 2).await;
    let third = start("probe.echo");
    // Another call's whole way to the disk is time enough for the third one, if it were let in.
    assert!(!house.call("no.such", json!({})).await.ok);
    house.rows().await;
    assert_eq!(watched.runs(), 2, "it waits behind two calls that end only when they are cancelled");
    hooks.cancel.cancel();
    assert!(!one.await.unwrap().ok && !two.await.unwrap().ok);
    third.await.unwrap();
}
