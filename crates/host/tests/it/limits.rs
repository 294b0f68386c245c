//! Step 5: how much one session may ask.

use std::num::NonZeroU32;

use serde_json::json;
use toolhost_contract::ErrorKind;
use toolhost_host::Limits;

use crate::probes::house;

/// Rules: 002.84.
#[tokio::test(flavor = "multi_thread")]
async fn an_alias_may_be_called_so_often_in_a_session() {
    let (builder, watched) = house();
    let house = builder.build().await;
    for n in 1..=10 {
        assert!(house.call("echo_with_limit", json!({ "text": "hi" })).await.ok, "call {n}");
    }
    let error = house.call("echo_with_limit", json!({ "text": "hi" })).await.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Limit);
    assert!(error.message.contains("10") && error.hint.is_some(), "{error:?}");
    assert_eq!(watched.runs(), 10);
    assert!(house.call("probe.echo", json!({ "text": "hi" })).await.ok, "other names of the tool have no such limit");
    let mut other = house.request("echo_with_limit", json!({ "text": "hi" }));
    other.scope.session_id = Some("s2".to_owned());
    assert!(house.run(other).await.ok, "another session has its own count");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_do_not_fit_do_not_use_up_the_budget() {
    let (builder, _) = house();
    let house = builder.build().await;
    for _ in 0..20 {
        assert_eq!(house.call("echo_with_limit", json!({})).await.error.unwrap().kind, ErrorKind::Validation);
    }
    assert!(house.call("echo_with_limit", json!({ "text": "hi" })).await.ok);
}

/// Rules: 002.84.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_may_limit_the_calls_of_a_session() {
    let (builder, watched) = house();
    let operator = "[profiles.short]\ntools = ['probe.*']\nlimits = { calls_per_session = 3 }";
    let house = builder.operator(operator).profile("short").build().await;
    for _ in 0..3 {
        assert!(house.call("probe.echo", json!({ "text": "hi" })).await.ok);
    }
    let error = house.call("probe.echo", json!({ "text": "hi" })).await.error.unwrap();
    assert_eq!((error.kind, watched.runs()), (ErrorKind::Limit, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_cannot_call_faster_than_the_rate() {
    let (builder, watched) = house();
    let limits = Limits { calls_per_minute: NonZeroU32::MIN, ..Limits::default() };
    let house = builder.limits(limits).build().await;
    assert!(house.call("probe.echo", json!({ "text": "hi" })).await.ok);
    let error = house.call("probe.echo", json!({ "text": "hi" })).await.error.unwrap();
    assert_eq!((error.kind, watched.runs()), (ErrorKind::Limit, 1));
    assert!(error.message.contains("1 calls in a minute"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_of_many_sessions_stay_bounded() {
    let (builder, _) = house();
    let house = builder.limits(Limits { sessions: 3, ..Limits::default() }).build().await;
    for n in 0..20 {
        let mut call = house.request("probe.echo", json!({ "text": "hi" }));
        call.scope.session_id = Some(format!("session-{n}"));
        assert!(house.run(call).await.ok, "session {n}");
    }
}
