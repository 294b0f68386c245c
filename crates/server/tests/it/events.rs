//! Events: each once, in order, also over a connection that was lost.

use serde_json::json;
use toolhost_testkit::{HttpStream, request};

use crate::rig::Rig;

async fn listen(rig: &Rig, token: &str, target: &str, last: Option<&str>) -> HttpStream {
    let bearer = format!("Bearer {token}");
    let mut headers = vec![("authorization", bearer.as_str())];
    headers.extend(last.map(|last| ("last-event-id", last)));
    HttpStream::open(rig.address, request(("GET", target), &headers, "").as_bytes()).await
}

fn ids(text: &str) -> Vec<i64> {
    text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
}

const EVENTS: &str = "/api/v1/projects/p0/events";

#[tokio::test]
async fn a_listener_misses_nothing_over_a_lost_connection_and_hears_nothing_twice() {
    let rig = Rig::one().await;
    let token = rig.token(&["call", "read"]).await;
    let mut first = listen(&rig, &token, &format!("{EVENTS}?after=0"), None).await;
    rig.call(&token, "file.write", json!({ "path": "one", "content": "x" })).await;
    let (text, heard) = first.until("id: 2\nevent: finished").await;
    assert!(heard, "{text}");
    assert_eq!(ids(&text), [1, 2]);
    drop(first);
    for name in ["two", "three"] {
        rig.call(&token, "file.write", json!({ "path": name, "content": "x" })).await;
    }
    let mut second = listen(&rig, &token, EVENTS, Some("2")).await;
    let (text, heard) = second.until("id: 6\n").await;
    assert!(heard, "{text}");
    assert_eq!(ids(&text), [3, 4, 5, 6]);
    assert!(text.contains("\"path\":\"three\""), "{text}");
}

#[tokio::test]
async fn a_listener_who_names_no_event_hears_what_comes_next() {
    let rig = Rig::one().await;
    let token = rig.token(&["call", "read"]).await;
    rig.call(&token, "file.write", json!({ "path": "before", "content": "x" })).await;
    rig.houses[0].rows().await;
    let mut events = listen(&rig, &token, EVENTS, None).await;
    assert!(events.until("text/event-stream").await.1);
    rig.call(&token, "file.write", json!({ "path": "after", "content": "x" })).await;
    let (text, heard) = events.until("id: 4\n").await;
    assert!(heard, "{text}");
    assert_eq!(ids(&text), [3, 4]);
    let wrong = rig.send_with(&token, ("GET", EVENTS), &[("last-event-id", "x")], "").await;
    assert_eq!(wrong.status, 400);
}
