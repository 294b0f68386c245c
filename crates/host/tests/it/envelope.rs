//! The outcome, letter by letter, and the rows a call leaves.

use serde_json::{Value, json};

use crate::probes::house;

fn check(outcome: &toolhost_contract::Outcome, expected: &str) {
    assert_eq!(serde_json::to_string(outcome).unwrap(), expected);
}

/// Rules: 000.3, 000.16.
#[tokio::test(flavor = "multi_thread")]
async fn a_success_is_this_json() {
    let (builder, _) = house();
    let house = builder.build().await;
    check(
        &house.call("echo_text", json!({ "text": "hi" })).await,
        r#"{"ok":true,"data":{"text":"hi"},"error":null,"meta":{"tool":"probe.echo","callId":"call-1","sessionId":"s1","userId":1,"projectId":1,"workflowId":null,"revision":null,"allowWrite":false,"durationMs":0,"fence":"refused"}}"#,
    );
}

/// Rules: 000.3, 000.29, 001.48, 002.45.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_this_json() {
    let (builder, _) = house();
    let house = builder.build().await;
    let outcome = house.call("probe.fail", json!({ "text": "x" })).await;
    check(
        &outcome,
        r#"{"ok":false,"data":null,"error":{"code":"AI_TOOL_EXECUTION_ERROR","kind":"conflict","message":"message x","hint":"hint x","details":{"text":"x"}},"meta":{"tool":"probe.fail","callId":"call-1","sessionId":"s1","userId":1,"projectId":1,"workflowId":null,"revision":null,"allowWrite":false,"durationMs":0,"fence":"refused"}}"#,
    );
    assert_eq!(outcome.text, "message x (conflict, AI_TOOL_EXECUTION_ERROR)\nhint: hint x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_outside_any_session_says_so() {
    let (builder, _) = house();
    let house = builder.build().await;
    let mut call = house.request("probe.put", json!({ "text": "hi" }));
    call.scope.session_id = None;
    call.scope.workflow_id = Some(2);
    let outcome = serde_json::to_value(house.run(call).await).unwrap();
    assert_eq!(outcome["meta"]["sessionId"], Value::Null);
    assert_eq!((&outcome["meta"]["workflowId"], &outcome["meta"]["allowWrite"]), (&json!(2), &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_started_row_is_committed_before_the_tool_runs() {
    let (builder, watched) = house();
    let house = builder.build().await;
    *watched.reader.lock().unwrap() = Some(house.store.reader());
    let outcome = house.call("probe.look", json!({})).await;
    assert_eq!(outcome.text, "started", "{outcome:?}");
    assert_eq!(house.events_of(&outcome).await, ["started", "finished"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_may_change_something_leaves_two_rows_and_another_one() {
    let (builder, _) = house();
    let house = builder.build().await;
    let wrote = house.call("probe.put", json!({ "text": "hi" })).await;
    let read = house.call("probe.echo", json!({ "text": "hi" })).await;
    let refused = house.call("probe.put", json!({ "text": 5 })).await;
    assert_eq!(house.events_of(&wrote).await, ["started", "finished"]);
    assert_eq!(house.events_of(&read).await, ["finished"]);
    assert_eq!(house.events_of(&refused).await, ["finished"], "what never ran never started");
    let rows = house.rows().await;
    let started = &rows[0];
    assert_eq!(
        *started,
        json!({
            "seq": 1, "atMs": 1_767_225_600_000_i64, "event": "started", "callId": "call-1", "sessionId": "s1",
            "userId": 1, "projectId": 1,
            "caller": { "door": "test", "kind": "model", "profile": "all", "persona": "Test Agent" },
            "tool": "probe.put", "effect": "writes", "arguments": { "text": "hi" }, "digest": started["digest"],
            "decision": { "policy": { "decide": "allow", "why": "the profile may write", "rule": null } },
            "outcome": null, "durationMs": null, "fence": "refused",
        })
    );
    assert_eq!(started["digest"].as_str().map(str::len), Some(64));
    assert_eq!((&rows[1]["arguments"], &rows[1]["outcome"]), (&Value::Null, &json!({ "ok": true, "exitCode": null })));
    assert_eq!(rows[2]["arguments"], json!({ "text": "hi" }), "a read's one row tells all of it");
    let verdict = house.verify().await;
    assert_eq!((verdict.rows, verdict.problems.len()), (4, 0), "{verdict:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_digest_is_bound_to_all_that_matters() {
    let (builder, _) = house();
    let house = builder.operator("[profiles.twin]\ntools = ['*']\nfence = { workspace = 'write' }").build().await;
    let same = house.request("probe.put", json!({ "text": "a", "loud": false }));
    let mut reordered = house.request("probe.put", json!({ "loud": false, "text": "a" }));
    let mut other_persona = house.request("probe.put", json!({ "text": "a", "loud": false }));
    other_persona.caller.persona = "Somebody Else".to_owned();
    let mut other_profile = other_persona.clone();
    other_profile.caller = same.caller.clone();
    other_profile.caller.profile = "twin".to_owned();
    let mut other_session = other_profile.clone();
    other_session.caller = same.caller.clone();
    other_session.scope.session_id = Some("s2".to_owned());
    reordered.id = toolhost_contract::CallId::new("reordered");
    let other_text = house.request("probe.put", json!({ "text": "b", "loud": false }));
    for call in [same, reordered, other_persona, other_profile, other_session, other_text] {
        assert!(house.run(call).await.ok);
    }
    let rows = house.rows().await;
    let digests: Vec<&str> =
        rows.iter().filter(|row| row["event"] == "started").map(|row| row["digest"].as_str().unwrap()).collect();
    assert_eq!(digests[0], digests[1], "the order of arguments does not matter");
    let distinct: std::collections::BTreeSet<&str> = digests.iter().copied().collect();
    assert_eq!(distinct.len(), 5, "{digests:?}");
}
