//! What the API answers.

use serde_json::json;
use toolhost_testkit::http;

use crate::rig::Rig;

#[tokio::test]
async fn a_call_passes_the_gate_as_its_token_and_is_recorded() {
    let rig = Rig::one().await;
    let token = rig.token(&["call", "read"]).await;
    let written = rig.call(&token, "file_write", json!({ "path": "a.txt", "content": "hello" })).await;
    assert_eq!(written.status, 200, "{written:?}");
    let answer = written.json();
    assert_eq!((&answer["ok"], &answer["meta"]["tool"]), (&json!(true), &json!("file.write")), "{answer}");
    assert!(answer["text"].as_str().unwrap().contains("a.txt"), "{answer}");
    let call = answer["meta"]["callId"].as_str().unwrap();
    let rows = rig.send(&token, ("GET", &format!("/api/v1/projects/p0/audit?call={call}")), "").await.json();
    let events: Vec<_> = rows["data"].as_array().unwrap().iter().map(|row| row["event"].clone()).collect();
    assert_eq!(events, ["started", "finished"], "{rows}");
    assert_eq!(rows["data"][0]["body"]["caller"]["door"], "http", "{rows}");
    assert_eq!(rows["data"][0]["body"]["caller"]["persona"], "agent", "{rows}");
    let verified = rig.send(&token, ("GET", "/api/v1/projects/p0/audit/verification"), "").await.json();
    assert_eq!(verified["data"]["problems"], json!([]), "{verified}");
}

#[tokio::test]
async fn what_fails_says_so_in_the_status_and_in_the_envelope() {
    let rig = Rig::one().await;
    let token = rig.token(&["call", "read"]).await;
    let cases = [
        ("file.read", json!({ "path": "no such file" }), 404, "not_found"),
        ("file.read", json!({ "path": "../etc/passwd" }), 403, "security"),
        ("file.read", json!({ "path": 1 }), 400, "validation"),
        ("file.raed", json!({}), 404, "not_found"),
    ];
    for (tool, arguments, status, kind) in cases {
        let reply = rig.call(&token, tool, arguments.clone()).await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status, error["kind"].as_str()), (status, Some(kind)), "{tool} {arguments}: {reply:?}");
    }
}

#[tokio::test]
async fn bad_requests_are_told_what_is_wrong_with_them() {
    let rig = Rig::one().await;
    let token = rig.token(&["call", "read", "approve", "manage"]).await;
    let calls = "/api/v1/projects/p0/calls";
    let cases = [
        (("POST", calls), "", 400, "no JSON"),
        (("POST", calls), "[", 400, "no JSON"),
        (("POST", calls), "[]", 400, "does not fit"),
        (("POST", calls), "{}", 400, "tool"),
        (("POST", calls), r#"{"tool":"file.read","extra":1}"#, 400, "extra"),
        (("PUT", calls), "{}", 405, "POST"),
        (("GET", "/api/v1/projects/p0/asks/ask-9"), "", 404, "ask-9"),
        (("GET", "/api/v1/projects/p0/asks/%00"), "", 404, "ask"),
        (("GET", "/api/v1/projects/p0/sessions/none"), "", 404, "session"),
        (("GET", "/api/v1/projects/p0/audit?limit=0"), "", 400, "limit"),
        (("GET", "/api/v1/projects/p0/audit?limit=x"), "", 400, "limit"),
        (("GET", "/api/v1/projects/p0/audit?limit=1&limit=2"), "", 400, "twice"),
        (("GET", "/api/v1/projects/p0/audit?nothing=1"), "", 400, "nothing"),
        (("GET", "/api/v1/projects/p0/audit?tool=%ff"), "", 400, "UTF-8"),
        (("DELETE", "/api/v1/projects/p0/tokens/tok-0"), "", 404, "token"),
        (("GET", "/api/v1/projects/%ff/asks"), "", 404, "nothing"),
        (("GET", "/api/v2/projects"), "", 404, "nothing"),
        (("GET", "/nothing"), "", 404, "nothing"),
    ];
    for (asked, body, status, said) in cases {
        let reply = rig.send(&token, asked, body).await;
        assert_eq!(reply.status, status, "{asked:?} {body}: {reply:?}");
        let error = reply.json()["error"].to_string();
        assert!(error.contains(said), "{asked:?} {body}: {error}");
        assert_eq!(reply.header("content-type"), Some("application/json"), "{asked:?}");
    }
    assert_eq!(rig.send(&token, ("PUT", calls), "").await.header("allow"), Some("POST"));
    let headers = [
        ("content-type", "text/plain"),
        ("content-type", "application/json; charset=utf-16"),
        ("content-encoding", "gzip"),
    ];
    for header in headers {
        let reply = rig.send_with(&token, ("POST", calls), &[header], r#"{"tool":"tool.list"}"#).await;
        assert_eq!(reply.status, 415, "{header:?}: {reply:?}");
    }
}

#[tokio::test]
async fn whoever_watches_over_the_server_needs_no_token() {
    let rig = Rig::one().await;
    for path in ["/healthz", "/readyz"] {
        let reply = http(rig.address, ("GET", path), &[], "").await;
        assert_eq!((reply.status, reply.body.as_str()), (200, r#"{"ok":true}"#), "{path}");
    }
}

#[tokio::test]
async fn a_server_that_ends_answers_what_is_under_way_and_takes_nothing_new() {
    let rig = Rig::one().await;
    let token = rig.token(&["call", "read"]).await;
    let mut events = toolhost_testkit::HttpStream::open(
        rig.address,
        toolhost_testkit::request(
            ("GET", "/api/v1/projects/p0/events"),
            &[("authorization", &format!("Bearer {token}"))],
            "",
        )
        .as_bytes(),
    )
    .await;
    assert!(events.until("text/event-stream").await.1);
    rig.stop.cancel();
    rig.serving.await.unwrap();
    // The stream has an end, so its listener comes again elsewhere.
    assert!(!events.until("\0 never").await.1);
}
