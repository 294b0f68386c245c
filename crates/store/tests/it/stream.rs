//! The numbered stream of a project: one numbering for the audit and for sessions, which a listener can go on with at any number.

use serde_json::{Value, json};
use toolhost_contract::{Journal, Signal};
use toolhost_store::{Event, Happened, NewSession, Position, Reader, SessionChange, SessionState, StreamEvent, Woken};
use toolhost_testkit::Postgres;
use toolhost_testkit::database::{Address, Place, Room, engines, entry};

use crate::asks::wanted;

/// No test waits longer for anything.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

async fn begin(here: &Room, id: &str) {
    let new = NewSession {
        project_id: here.project,
        user_id: here.user,
        id: id.to_owned(),
        profile: "developer".to_owned(),
        model: "script:story.json".to_owned(),
        title: "what was asked for".to_owned(),
        steps: vec![("open".to_owned(), json!({ "goal": "a secret of theirs" }))],
    };
    here.store.sessions().create(&new).await.unwrap();
}

async fn append(here: &Room, call: &str) {
    here.store.audit().append(entry(here.project, Event::Finished, call)).await.unwrap();
}

/// All events after a position, read in pages of this size.
async fn read(reader: &Reader, project: i64, mut after: Position, page: i64) -> Vec<StreamEvent> {
    let mut all = Vec::new();
    loop {
        let events = reader.stream(project, after, page).await.unwrap();
        let Some(last) = events.last() else { return all };
        after = last.position;
        all.extend(events);
    }
}

fn named(event: &StreamEvent) -> String {
    match &event.happened {
        Happened::Audit(row) => row.call_id.clone(),
        Happened::Session(event) => match &event.what {
            SessionChange::State { state, code } => format!("{} {}", state, code.as_deref().unwrap_or_default()),
            SessionChange::Step { seq, step, .. } => format!("{seq} {step}"),
        },
    }
}

/// A session with calls between its steps, paused, gone on with and cancelled.
async fn told(here: &Room) {
    append(here, "a").await;
    begin(here, "as_1").await;
    let held = here.store.sessions().hold(here.project, "as_1").await.unwrap();
    append(here, "b").await;
    let call = json!({
        "callId": "b", "tool": "t".repeat(1000), "ok": false, "code": "x", "ms": 3, "content": "a secret", "brief": "a secret",
    });
    for (step, body) in [("turn_0", json!({ "reply": { "text": "a secret" }, "ms": 7 })), ("call_0_0", call)] {
        held.keep(step, body, None).await.unwrap();
        held.settle().await.unwrap();
    }
    append(here, "c").await;
    append(here, "d").await;
    held.release(SessionState::Limited, Some("TURNS_MAX")).await.unwrap();
    here.store.sessions().want(here.project, "as_1", Signal::Cancel).await.unwrap();
}

const TOLD: [&str; 11] =
    ["a", "active ", "0 open", "active ", "b", "1 turn_0", "2 call_0_0", "c", "d", "limited TURNS_MAX", "cancelled "];

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_goes_on_at_each_number_and_misses_nothing() {
    for place in engines() {
        let here = place.room().await;
        told(&here).await;
        let reader = here.store.reader();
        assert_eq!(reader.stream_end(here.project).await.unwrap().number(), 11, "{place}");
        for after in 0..=11 {
            let position = reader.position(here.project, after).await.unwrap();
            assert_eq!(position.number(), after, "{place}");
            for page in 1..=12 {
                let events = read(&reader, here.project, position, page).await;
                let numbers: Vec<i64> = events.iter().map(|event| event.position.number()).collect();
                let from = usize::try_from(after).unwrap();
                assert_eq!(numbers, (after + 1..=11).collect::<Vec<_>>(), "{place}: after {after}, {page} at once");
                assert_eq!(events.iter().map(named).collect::<Vec<_>>(), TOLD[from..], "{place}: after {after}");
            }
        }
        let verdict = reader.verify_audit(here.project).await.unwrap();
        assert!(verdict.problems.is_empty() && verdict.rows == 4, "{place}: {verdict:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_says_what_happened_and_nothing_that_was_said() {
    for place in engines() {
        let here = place.room().await;
        told(&here).await;
        let events = read(&here.store.reader(), here.project, Position::default(), 100).await;
        let sessions = events.iter().filter_map(|event| match &event.happened {
            Happened::Session(event) => Some(serde_json::to_value(event).unwrap()),
            Happened::Audit(_) => None,
        });
        let sessions: Vec<Value> = sessions.collect();
        let all = json!(sessions).to_string();
        assert!(!all.contains("secret") && !all.contains("asked"), "{place}: {all}");
        let call = sessions.iter().find(|event| event["step"] == "call_0_0").unwrap();
        let (tool, at_ms) = ("t".repeat(200), call["atMs"].clone());
        let expected = json!({
            "atMs": at_ms, "sessionId": "as_1", "seq": 2, "step": "call_0_0", "callId": "b", "tool": tool, "ok": false,
            "code": "x", "ms": 3,
        });
        assert_eq!(*call, expected, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_of_many_writers_hears_each_event_once_and_in_order() {
    const EACH: usize = 40;
    for place in engines() {
        let here = place.room().await;
        let mut writers = Vec::new();
        for writer in 0..4 {
            let room = place.room().await;
            writers.push(tokio::spawn(async move {
                let id = format!("as_{writer}");
                begin(&room, &id).await;
                let held = room.store.sessions().hold(room.project, &id).await.unwrap();
                for n in 0..EACH {
                    append(&room, &format!("{writer}-{n}")).await;
                    held.keep(&format!("turn_{n}"), json!({}), None).await.unwrap();
                    if n % 3 == 0 {
                        held.settle().await.unwrap();
                    }
                }
                held.release(SessionState::Done, None).await.unwrap();
                room.store.close().await.unwrap();
            }));
        }
        // For each: made, its first step, taken, released; and a row and a step each time.
        let expected = i64::try_from(4 * (4 + 2 * EACH)).unwrap();
        let (reader, mut at, mut wakes) =
            (here.store.reader(), Position::default(), here.store.reader().wakes(here.project));
        let mut heard = Vec::new();
        let hearing = async {
            while at.number() < expected {
                let events = read(&reader, here.project, at, 7).await;
                at = events.last().map_or(at, |event| event.position);
                heard.extend(events);
                wakes.next().await;
            }
        };
        tokio::time::timeout(PATIENCE, hearing).await.unwrap();
        for writer in writers {
            writer.await.unwrap();
        }
        let numbers: Vec<i64> = heard.iter().map(|event| event.position.number()).collect();
        assert_eq!(numbers, (1..=expected).collect::<Vec<_>>(), "{place}");
        // What was heard as it came is what is there.
        assert_eq!(read(&reader, here.project, Position::default(), 100).await, heard, "{place}");
    }
}

/// Waits for a wake-up that is no mere look.
async fn is_told(wakes: &mut toolhost_store::Wakes) {
    let told = async { while wakes.next().await != Woken::Told {} };
    tokio::time::timeout(PATIENCE, told).await.unwrap();
}

/// Waits until nothing is told any more.
async fn is_quiet(wakes: &mut toolhost_store::Wakes) {
    let quiet = async { while wakes.next().await != Woken::Unsure {} };
    tokio::time::timeout(PATIENCE, quiet).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_host_writes_wakes_and_what_nobody_writes_does_not() {
    for place in engines() {
        let (here, other) = (place.room().await, place.room().await);
        let mut wakes = here.store.reader().wakes(here.project);
        is_told(&mut wakes).await;
        is_quiet(&mut wakes).await;
        append(&other, "a").await;
        is_told(&mut wakes).await;
        is_quiet(&mut wakes).await;
        begin(&other, "as_1").await;
        is_told(&mut wakes).await;
        // A call that waits has no row in the audit yet, but somebody is asked.
        is_quiet(&mut wakes).await;
        other.store.asks().open(&wanted(&here, "d")).await.unwrap();
        is_told(&mut wakes).await;
    }
}

fn listeners(place: &Place, then: &str) -> String {
    let Address::Url(url) = &place.address else { unreachable!("it is PostgreSQL") };
    let text =
        format!("SELECT {then} FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()");
    Postgres::shared().unwrap().psql(url, &text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_listens_and_is_ended_is_made_again() {
    let Some(place) = Place::postgres() else { return };
    let here = place.room().await;
    let mut wakes = here.store.reader().wakes(here.project);
    is_told(&mut wakes).await;
    for call in ["a", "b"] {
        is_quiet(&mut wakes).await;
        assert_eq!(listeners(&place, "count(pg_terminate_backend(pid))"), "1");
        // It listens again, and looks at what it may have missed meanwhile.
        is_told(&mut wakes).await;
        is_quiet(&mut wakes).await;
        append(&here, call).await;
        is_told(&mut wakes).await;
    }
    is_quiet(&mut wakes).await;
    let before = listeners(&place, "pid");
    wakes.missed();
    is_told(&mut wakes).await;
    assert_ne!(listeners(&place, "max(pid)"), before, "a connection that missed something is not believed");
    drop(wakes);
    toolhost_testkit::until("nobody listens", || listeners(&place, "count(*)") == "0").await;
}
