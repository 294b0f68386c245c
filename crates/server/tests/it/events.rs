//! Events: each once, in order, also over a connection that was lost.

use serde_json::json;
use toolhost_contract::Journal;
use toolhost_server::http::HttpLimits;
use toolhost_store::{NewSession, SessionState};
use toolhost_testkit::engines::engines;
use toolhost_testkit::{HttpStream, Postgres, USER, request};

use crate::rig::{Rig, asking_nobody, house};

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

/// A session of which one turn and one call are kept, beside a call over HTTP.
async fn session(rig: &Rig, token: &str) {
    let (store, project_id) = (&rig.houses[0].store, rig.houses[0].project.id);
    let new = NewSession {
        project_id,
        user_id: USER,
        id: "as_0123456789abcdef".to_owned(),
        profile: "all".to_owned(),
        model: "script:x".to_owned(),
        title: "what was asked for".to_owned(),
        steps: vec![("open".to_owned(), json!({ "goal": "what was asked for" }))],
    };
    store.sessions().create(&new).await.unwrap();
    let held = store.sessions().hold(project_id, &new.id).await.unwrap();
    held.keep("turn_0", json!({ "reply": "what was said", "ms": 5 }), None).await.unwrap();
    held.settle().await.unwrap();
    rig.call(token, "file.write", json!({ "path": "one", "content": "x" })).await;
    let call = json!({ "callId": "c", "tool": "file_write", "ok": true, "content": "what was answered", "ms": 1 });
    held.keep("call_0_0", call, None).await.unwrap();
    held.release(SessionState::Failed, Some("MODEL_FAILED")).await.unwrap();
    // Four events of one commit, so that a listener can begin among what was read at once.
    let steps = ["a", "b", "c"].map(|step| (step.to_owned(), json!({}))).to_vec();
    let other = NewSession { id: "as_1".to_owned(), steps, ..new };
    store.sessions().create(&other).await.unwrap();
}

#[tokio::test]
async fn steps_of_sessions_are_in_the_stream_and_a_listener_goes_on_after_each_event() {
    for engine in engines() {
        let rig = Rig::start(vec![asking_nobody(engine.builder())], HttpLimits::default()).await;
        let token = rig.token(&["call", "read"]).await;
        let mut all = listen(&rig, &token, &format!("{EVENTS}?after=0"), None).await;
        assert!(all.until("text/event-stream").await.1);
        session(&rig, &token).await;
        let (text, heard) = all.until("id: 12\n").await;
        assert!(heard, "{engine}: {text}");
        assert_eq!(ids(&text), (1..=12).collect::<Vec<_>>(), "{engine}");
        let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).take(8).collect();
        let expected = ["session", "step", "session", "step", "started", "finished", "step", "session"];
        assert_eq!(names, expected, "{engine}: {text}");
        assert!(!text.contains("what was"), "{engine}: {text}");
        for part in [
            "\"sessionId\":\"as_0123456789abcdef\",\"state\":\"active\"}",
            "\"seq\":1,\"step\":\"turn_0\",\"ms\":5,\"kind\":\"turn\"}",
            "\"step\":\"call_0_0\",\"callId\":\"c\",\"tool\":\"file_write\",\"ok\":true,\"ms\":1,\"kind\":\"call\"}",
            "\"state\":\"failed\",\"code\":\"MODEL_FAILED\"}",
        ] {
            assert!(text.contains(part), "{engine}: {part}: {text}");
        }
        for last in 0..12 {
            let mut again = listen(&rig, &token, EVENTS, Some(&last.to_string())).await;
            let (text, heard) = again.until("id: 12\n").await;
            assert!(heard, "{engine}: after {last}: {text}");
            assert_eq!(ids(&text), (last + 1..=12).collect::<Vec<_>>(), "{engine}");
        }
    }
}

#[tokio::test]
async fn a_listener_misses_nothing_when_the_connection_that_wakes_is_ended() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.fresh_database();
    let rig = Rig::start(vec![house().database(Some(url.clone()))], HttpLimits::default()).await;
    let token = rig.token(&["call", "read"]).await;
    let mut events = listen(&rig, &token, &format!("{EVENTS}?after=0"), None).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE query LIKE 'LISTEN%' AND datname = current_database()";
    for round in 0..3 {
        toolhost_testkit::until("it is ended", || postgres.psql(&url, end) == "t").await;
        rig.call(&token, "file.write", json!({ "path": format!("f{round}"), "content": "x" })).await;
        let (text, heard) = events.until(&format!("id: {}\n", round * 2 + 2)).await;
        assert!(heard, "{text}");
        assert_eq!(ids(&text), (1..=round * 2 + 2).collect::<Vec<i64>>());
    }
}

#[tokio::test]
async fn many_listeners_are_woken_by_one_connection_and_make_no_queries_of_their_own() {
    const LISTENERS: usize = 100;
    // A machine without a server says so elsewhere.
    let Ok(postgres) = Postgres::start() else { return };
    let url = postgres.fresh_database();
    let rig = Rig::start(vec![house().database(Some(url.clone()))], HttpLimits::default()).await;
    let token = rig.token(&["call", "read"]).await;
    let mut listeners = Vec::new();
    for _ in 0..LISTENERS {
        let mut events = listen(&rig, &token, EVENTS, None).await;
        assert!(events.until("text/event-stream").await.1);
        listeners.push(events);
    }
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    toolhost_testkit::until("one listens", || postgres.psql(&url, connections) == "1").await;
    postgres.psql(&url, "ALTER SYSTEM SET log_statement = 'all'");
    postgres.psql(&url, "SELECT pg_reload_conf()");
    let is_logged = || {
        postgres.psql(&url, "SELECT 'this is logged'");
        postgres.log().contains("this is logged")
    };
    toolhost_testkit::until("queries are logged", is_logged).await;
    let queries = || postgres.log().matches("LOG:  execute ").count();
    let before = queries();
    // While nothing happens, each is told that the connection is there, twice.
    for events in &mut listeners {
        let (text, heard) = events.until("\n:\n").await;
        assert!(heard, "{text}");
    }
    let idle = queries() - before;
    assert!(idle < LISTENERS / 2, "{idle} queries while nothing happened: {}", postgres.log());
    rig.call(&token, "file.write", json!({ "path": "a", "content": "x" })).await;
    for events in &mut listeners {
        let (text, heard) = events.until("id: 2\n").await;
        assert!(heard, "{text}");
        assert_eq!(ids(&text), [1, 2]);
    }
    let after = queries() - before - idle;
    assert!(after < LISTENERS, "{after} queries for one call");
    assert!(after > 0, "{}", postgres.log());
    assert_eq!(postgres.psql(&url, connections), "1");
}
