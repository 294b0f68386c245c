//! Steps 1 to 3: which tool is meant, may this profile have it, may this person be here.

use serde_json::json;
use toolhost_contract::{CallerKind, ErrorCode, ErrorKind};
use toolhost_testkit::USER;

use crate::probes::house;

/// Rules: 000.11, 004.1, 004.10.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_answers_to_its_canonical_wire_and_other_names() {
    let (builder, _) = house();
    let house = builder.build().await;
    for (name, said) in [
        ("probe.echo", "hi"),
        ("probe_echo", "hi"),
        ("echo_text", "hi"),
        ("echo_loud", "HI"),
        ("echo_with_limit", "hi"),
    ] {
        let outcome = house.call(name, json!({ "text": "hi" })).await;
        assert_eq!((outcome.text.as_str(), outcome.meta.tool.as_str()), (said, "probe.echo"), "{name}: {outcome:?}");
    }
    let given = house.call("echo_loud", json!({ "text": "hi", "loud": false })).await;
    assert_eq!(given.text, "hi", "a preset holds only unless the caller says otherwise");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_told_the_nearest_names() {
    let (builder, watched) = house();
    let house = builder.build().await;
    let outcome = house.call("probe.ecko", json!({ "text": "hi" })).await;
    let error = outcome.error.clone().unwrap();
    assert_eq!((error.code, error.kind), (ErrorCode::ToolNotAllowed, ErrorKind::NotFound));
    assert_eq!(error.message, "there is no tool `probe.ecko`");
    assert!(error.hint.unwrap().starts_with("did you mean `probe.echo`"), "{outcome:?}");
    assert_eq!((outcome.meta.tool.as_str(), outcome.meta.allow_write), ("probe.ecko", false));
    let strange = house.call("\u{202e}; DROP TABLE audit", json!({})).await;
    assert_eq!(strange.error.unwrap().code, ErrorCode::ToolNotAllowed);
    let long = house.call(&"x".repeat(1 << 20), json!({})).await;
    assert!(long.text.len() < 500 && long.meta.tool.len() < 500, "{} {}", long.text.len(), long.meta.tool.len());
    assert_eq!(watched.runs(), 0);
    let rows = house.rows().await;
    assert_eq!(rows.len(), 3, "a call that named no tool has its row too");
    assert!(rows.iter().all(|row| row["event"] == "finished" && row["outcome"]["ok"] == false), "{rows:?}");
}

/// Rules: 000.28, 001.46, 004.3.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_outside_the_profile_is_refused_at_the_call() {
    let (builder, watched) = house();
    let operator = "[profiles.narrow]\ntools = ['probe.echo']";
    let house = builder.operator(operator).profile("narrow").build().await;
    assert!(house.call("probe.echo", json!({ "text": "hi" })).await.ok);
    for name in ["probe.put", "probe_put"] {
        let outcome = house.call(name, json!({ "text": "hi" })).await;
        let error = outcome.error.unwrap();
        assert_eq!((error.code, error.kind), (ErrorCode::ToolNotAllowed, ErrorKind::Permission));
    }
    assert_eq!(watched.runs(), 1);
    assert!(!house.workspace.has("made.txt"));
    let nobody = house.call_as("no-such-profile", "probe.echo", json!({ "text": "hi" })).await;
    assert_eq!(nobody.error.unwrap().kind, ErrorKind::Permission);
    assert_eq!(watched.runs(), 1);
}

/// Rules: 001.47.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_a_person_may_run_is_forbidden_to_a_model() {
    let (builder, watched) = house();
    let house = builder.build().await;
    let outcome = house.call("probe.apply", json!({})).await;
    assert_eq!(outcome.error.as_ref().unwrap().code, ErrorCode::ToolForbidden, "{outcome:?}");
    assert_eq!((watched.runs(), house.events_of(&outcome).await), (0, vec!["finished".to_owned()]));
    let mut call = house.request("probe.apply", json!({}));
    call.caller.kind = CallerKind::Person;
    assert!(house.run(call).await.ok);
    assert_eq!(watched.runs(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_checked_before_the_arguments() {
    let (builder, _) = house();
    let house = builder.operator("[profiles.narrow]\ntools = ['probe.echo']").profile("narrow").build().await;
    let outcome = house.call("probe.put", json!({ "no": "such" })).await;
    assert_eq!(outcome.error.unwrap().code, ErrorCode::ToolNotAllowed, "nothing is told of a tool one does not have");
}

/// Rules: 000.15.
#[tokio::test(flavor = "multi_thread")]
async fn the_project_of_somebody_else_answers_like_one_that_does_not_exist() {
    let (builder, watched) = house();
    let house = builder.build().await;
    let folder = house.workspace.beside("other");
    let theirs = house.store.project(&folder, "theirs", "somebody else").await.unwrap().id;
    let mut answers = Vec::new();
    for project in [theirs, 999_999] {
        // The arguments are wrong, too: nothing is looked at before it is known whose project it is.
        let mut call = house.request("probe.put", json!({ "no": "such" }));
        call.scope.project_id = project;
        let outcome = house.run(call).await;
        let error = outcome.error.unwrap();
        assert_eq!((error.code, error.kind), (ErrorCode::ToolForbidden, ErrorKind::Permission));
        answers.push((error.message.replace(&project.to_string(), "N"), error.hint, error.details));
    }
    assert_eq!(answers[0], answers[1]);
    let mut call = house.request("probe.put", json!({ "text": "hi" }));
    call.scope.user_id = USER + 1;
    assert_eq!(house.run(call).await.error.unwrap().kind, ErrorKind::Permission);
    assert_eq!(watched.runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_in_one_process_do_not_see_each_other() {
    let narrow = "[profiles.narrow]\ntools = ['probe.echo']";
    let ((one, _), (two, _)) = (house(), house());
    let (one, two) = (one.operator(narrow).build().await, two.build().await);
    assert!(one.call_as("narrow", "probe.echo", json!({ "text": "hi" })).await.ok);
    assert!(!two.call_as("narrow", "probe.echo", json!({ "text": "hi" })).await.ok, "profiles are each host's own");
    for _ in 0..10 {
        assert!(one.call("echo_with_limit", json!({ "text": "hi" })).await.ok);
    }
    assert!(!one.call("echo_with_limit", json!({ "text": "hi" })).await.ok);
    assert!(two.call("echo_with_limit", json!({ "text": "hi" })).await.ok, "counters are each host's own");
    assert!(one.call("probe.put", json!({ "text": "one" })).await.ok);
    assert!(!two.workspace.has("made.txt"));
    assert_eq!((one.rows().await.len(), two.rows().await.len()), (14, 2), "each has the rows of its own calls");
}
