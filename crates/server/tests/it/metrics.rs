//! What Prometheus reads.

use serde_json::json;
use toolhost_testkit::http;

use crate::rig::{Rig, house};

/// The page, and how much a series that begins so has come to.
pub(crate) async fn page(rig: &Rig) -> String {
    let reply = http(rig.metrics, ("GET", "/metrics"), &[], "").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(reply.body.ends_with("# EOF\n"), "{}", reply.body);
    reply.body
}

/// The value of the series with this name and these labels, in any order; 0 if there is none.
pub(crate) fn value(page: &str, name: &str, labels: &[&str]) -> f64 {
    let of_name = page.lines().filter_map(|line| line.strip_prefix(name)).filter(|rest| rest.starts_with(['{', ' ']));
    let found: Vec<f64> = of_name
        .filter(|rest| labels.iter().all(|label| rest.contains(label)))
        .map(|rest| rest.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    found.iter().sum()
}

#[tokio::test]
async fn calls_are_counted_by_tool_and_outcome_and_their_time_by_stage() {
    let rig = Rig::one().await;
    let token = rig.token(&["call"]).await;
    rig.houses[0].workspace.write("a.txt", "x");
    for path in ["a.txt", "a.txt", "none.txt"] {
        rig.call(&token, "file.read", json!({ "path": path })).await;
    }
    rig.call(&token, "<script>\n\"} 1", json!({})).await;
    let page = page(&rig).await;
    let of = |outcome: &str| {
        value(
            &page,
            "toolhost_calls_total",
            &["tool=\"file.read\"", "effect=\"reads\"", &format!("outcome=\"{outcome}\"")],
        )
    };
    assert_eq!((of("ok"), of("not_found")), (2.0, 1.0), "{page}");
    // A name that a caller chose is no label: there would be as many series as it likes.
    assert_eq!(value(&page, "toolhost_calls_total", &["tool=\"_OTHER\""]), 1.0, "{page}");
    assert!(!page.contains("script"), "{page}");
    for stage in ["gate", "waiting", "running"] {
        let label = format!("stage=\"{stage}\"");
        assert_eq!(value(&page, "toolhost_call_stage_seconds_count", &[&label]), 4.0, "{stage}: {page}");
    }
    assert_eq!(value(&page, "toolhost_http_requests_total", &["operation=\"makeCall\"", "status=\"200\""]), 2.0);
    assert_eq!(value(&page, "toolhost_build_info", &["version=\"1.2.3\""]), 1.0);
    assert_eq!(value(&page, "toolhost_calls_open", &["project=\"p0\""]), 0.0);
    assert!(page.contains("toolhost_fence_info{project=\"p0\",tier="), "{page}");
}

#[tokio::test]
async fn denials_asks_and_answers_are_counted() {
    let policy =
        "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n\n[[rules]]\ntool = \"file.delete\"\ndecide = \"deny\"\n";
    let rig = Rig::start(vec![house().project_policy(policy)], Default::default()).await;
    let (agent, person) = (rig.token(&["call"]).await, rig.token_of(0, "p", &["all"], &["read", "approve"]).await);
    rig.houses[0].workspace.write("a.txt", "x");
    assert_eq!(rig.call(&agent, "file.delete", json!({ "path": "a.txt" })).await.status, 403);
    let reply = rig.call(&agent, "file.write", json!({ "path": "b.txt", "content": "x" })).await.json();
    let ask = reply["data"]["approvalId"].as_str().unwrap().to_owned();
    let before = page(&rig).await;
    assert_eq!(value(&before, "toolhost_asks_open", &["project=\"p0\""]), 1.0, "{before}");
    assert_eq!(value(&before, "toolhost_denials_total", &[]), 1.0, "{before}");
    let at = format!("/api/v1/projects/p0/asks/{ask}");
    let shown = rig.send(&person, ("GET", &at), "").await.json();
    rig.advance(40_000);
    let body = json!({ "decision": "allow", "digest": shown["data"]["digest"] }).to_string();
    assert_eq!(rig.send(&person, ("POST", &format!("{at}/decision")), &body).await.status, 200);
    rig.call(&agent, "approval.wait", json!({ "approvalId": ask })).await;
    let after = page(&rig).await;
    assert_eq!(value(&after, "toolhost_asks_open", &["project=\"p0\""]), 0.0, "{after}");
    let answered = |name: &str, more: &[&str]| {
        let labels: Vec<&str> = ["answer=\"allowed\""].iter().chain(more).copied().collect();
        value(&after, name, &labels)
    };
    // The clock of the test has moved 40 seconds between question and answer.
    assert_eq!(answered("toolhost_answer_seconds_count", &[]), 1.0, "{after}");
    assert_eq!(answered("toolhost_answer_seconds_sum", &[]), 40.0, "{after}");
}

#[tokio::test]
async fn failed_logins_are_counted_and_only_the_page_of_metrics_is_there() {
    let rig = Rig::one().await;
    let wrong = toolhost_server::http::Secret::new("p0").unwrap();
    assert_eq!(rig.send(wrong.as_str(), ("GET", "/api/v1/projects"), "").await.status, 401);
    assert_eq!(value(&page(&rig).await, "toolhost_failed_logins_total", &[]), 1.0);
    assert_eq!(http(rig.metrics, ("GET", "/api/v1/projects"), &[], "").await.status, 404);
    // A page of another name, whose name was led here.
    assert_eq!(http(rig.metrics, ("GET", "/metrics"), &[("host", "evil.example")], "").await.status, 403);
}
