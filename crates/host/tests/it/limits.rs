//! Step 5: how much one session may ask.

use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::json;
use toolhost_contract::ErrorKind;
use toolhost_host::Limits;
use toolhost_store::Quota;

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

#[tokio::test(flavor = "multi_thread")]
async fn a_project_has_its_quota_of_a_minute_whatever_the_session() {
    let (builder, watched) = house();
    let house = builder.build().await;
    let quotas = house.store.quotas();
    quotas.set(house.project.id, Quota::new(Some(3), None).unwrap()).await.unwrap();
    let call = |session: &str| {
        let mut call = house.request("probe.echo", json!({ "text": "hi" }));
        call.scope.session_id = Some(session.to_owned());
        house.run(call)
    };
    for session in ["s1", "s2", "s3"] {
        assert!(call(session).await.ok, "{session}");
        house.clock.advance(Duration::from_secs(10));
    }
    let error = call("s4").await.error.unwrap();
    assert_eq!(
        (error.kind, &error.details),
        (ErrorKind::Limit, &Some(json!({ "retryAfterSeconds": 30 }))),
        "{error:?}"
    );
    assert!(error.message.contains("quota") && error.hint.unwrap().contains("30 seconds"));
    house.clock.advance(Duration::from_secs(30));
    assert!(call("s4").await.ok, "the first call is a minute ago");
    assert!(!call("s4").await.ok);
    assert_eq!(watched.runs(), 4);
    // What every host of the database finds in the audit: the four that ran, reads among them, and none that was refused.
    house.rows().await;
    let ended = async |back| quotas.ended(house.project.id, back).await.unwrap();
    assert_eq!((ended(3).await.is_some(), ended(4).await), (true, None));
    // Another quota holds within a second.
    quotas.set(house.project.id, Quota::default()).await.unwrap();
    house.clock.advance(Duration::from_secs(1));
    assert!(call("s4").await.ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_come_in_one_moment_are_counted_before_they_are_written_down() {
    let (builder, watched) = house();
    let house = builder.build().await;
    house.store.quotas().set(house.project.id, Quota::new(Some(5), None).unwrap()).await.unwrap();
    let calls = (0..20).map(|_| house.call("probe.echo", json!({ "text": "hi" })));
    let ran = futures::future::join_all(calls).await.into_iter().filter(|outcome| outcome.ok).count();
    assert_eq!((ran, watched.runs()), (5, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_has_so_many_calls_open_and_no_more() {
    let (builder, watched) = house();
    let house = builder.build().await;
    house.store.quotas().set(house.project.id, Quota::new(None, Some(1)).unwrap()).await.unwrap();
    for _ in 0..3 {
        assert!(house.call("probe.echo", json!({ "text": "hi" })).await.ok, "what has ended is not open");
    }
    let another = async {
        watched.waiting.notified().await;
        house.call("probe.echo", json!({ "text": "hi" })).await
    };
    let error = tokio::select! {
        ended = house.call("probe.wait", json!({})) => panic!("{ended:?}"),
        refused = another => refused.error.unwrap(),
    };
    assert_eq!((error.kind, error.details), (ErrorKind::Limit, Some(json!({ "retryAfterSeconds": 1 }))));
    assert!(error.message.contains("quota"), "{}", error.message);
}
