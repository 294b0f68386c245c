//! Step 6: rules over tool and arguments, the strictest match wins.

use serde_json::json;
use toolhost_contract::{ErrorCode, ErrorKind};
use toolhost_testkit::SaysYes;

use crate::probes::house;

const OPERATOR: &str = r#"
[profiles.ruled]
tools = ["probe.*"]
fence = { workspace = "write" }
[[profiles.ruled.rules]]
tool = "probe.put"
when = { text = "secret*" }
decide = "deny"
why = "secrets are not written"
[[profiles.ruled.rules]]
tool = "probe.put"
when = { text = "s*" }
decide = "allow"
[[profiles.ruled.rules]]
tool = "probe.put"
when = { text = "ask*" }
decide = "ask"
[[profiles.ruled.rules]]
tool = "probe.send"
when = { text = "fine" }
decide = "allow"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_strictest_rule_wins_whatever_the_order() {
    let (builder, watched) = house();
    let house = builder.operator(OPERATOR).profile("ruled").build().await;
    let outcome = house.call("probe.put", json!({ "text": "secret plans" })).await;
    let error = outcome.error.clone().unwrap();
    assert_eq!((error.code, error.kind), (ErrorCode::ToolForbidden, ErrorKind::Denied));
    assert!(error.message.contains("secrets are not written"), "{error:?}");
    assert_eq!(watched.runs(), 0);
    assert!(house.call("probe.put", json!({ "text": "something else" })).await.ok);
    assert_eq!(house.events_of(&outcome).await, ["finished"]);
    let rows = house.rows().await;
    assert_eq!(rows[0]["decision"]["policy"]["decide"], "deny", "{}", rows[0]);
    assert_eq!(rows[0]["decision"]["policy"]["rule"], "probe.put when text = secret*");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rule_the_effect_decides() {
    let (builder, watched) = house();
    let house = builder.operator(OPERATOR).profile("ruled").build().await;
    assert!(house.call("probe.echo", json!({ "text": "x" })).await.ok);
    assert!(house.call("probe.put", json!({ "text": "x" })).await.ok);
    let send = house.call("probe.send", json!({ "text": "x" })).await;
    assert_eq!(send.error.unwrap().kind, ErrorKind::Denied, "what leaves the machine is asked for");
    assert_eq!(watched.runs(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_may_allow_what_the_effect_would_ask_for() {
    let (builder, _) = house();
    let house = builder.operator(OPERATOR).profile("ruled").build().await;
    assert!(house.call("probe.send", json!({ "text": "fine" })).await.ok);
    assert!(!house.call("probe.send", json!({ "text": "not fine" })).await.ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_runs_only_when_somebody_says_yes() {
    let (builder, watched) = house();
    let house = builder.operator(OPERATOR).profile("ruled").person(SaysYes).build().await;
    let outcome = house.call("probe.put", json!({ "text": "ask me" })).await;
    assert!(outcome.ok, "{outcome:?}");
    assert_eq!((watched.runs(), house.workspace.read("made.txt").as_str()), (1, "ask me"));
    assert!(
        house.call("probe.put", json!({ "text": "secret" })).await.error.is_some(),
        "nobody can allow what is denied"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_profile_cannot_write_whatever_the_tool_wants() {
    let (builder, _) = house();
    let house = builder.operator("[profiles.reader]\ntools = ['probe.*']").profile("reader").build().await;
    let outcome = house.call("probe.put", json!({ "text": "x" })).await;
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Security);
    assert!(house.workspace.snapshot().is_empty());
}
