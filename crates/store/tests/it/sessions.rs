//! Sessions of agents: one process runs each, what it kept is there for the next, and who lost it writes no more.

use serde_json::{Value, json};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use toolhost_contract::{CallId, Fate, Journal, JournalError, Signal, Trace};
use toolhost_records::Learning;
use toolhost_store::Who;
use toolhost_store::{Entry, Error, Event, Held, NewSession, SessionFilter, SessionState};
use toolhost_testkit::database::{Address, Place, Room, engines, entry};

use crate::file_log::change;

const ID: &str = "as_0123456789abcdef";

fn new(here: &Room, id: &str) -> NewSession {
    NewSession {
        project_id: here.project,
        user_id: here.user,
        id: id.to_owned(),
        profile: "developer".to_owned(),
        model: "script:story.json".to_owned(),
        title: "fix it\u{0}".to_owned(),
        steps: vec![("open".to_owned(), json!({ "goal": "fix it" }))],
    }
}

/// A row of a call of the session.
fn row(here: &Room, event: Event, call: &str) -> Entry {
    Entry { session_id: Some(ID.to_owned()), ..entry(here.project, event, call) }
}

async fn made(here: &Room) {
    here.store.sessions().create(&new(here, ID)).await.unwrap();
}

async fn hold(here: &Room) -> Held {
    here.store.sessions().hold(here.project, ID).await.unwrap()
}

/// Past the store: a living process takes a session from no other.
async fn taken_by_another(place: &Place) {
    past_the_store(place, "UPDATE agent_session SET epoch = epoch + 1").await;
}

async fn past_the_store(place: &Place, text: &'static str) {
    match &place.address {
        Address::Folder(folder) => {
            let options = SqliteConnectOptions::new().filename(folder.join("toolhost.db"));
            sqlx::query(text).execute(&mut options.connect().await.unwrap()).await.unwrap();
        }
        Address::Url(url) => {
            let options: PgConnectOptions = url.parse().unwrap();
            sqlx::query(text).execute(&mut options.connect().await.unwrap()).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_step_says_has_run_is_missed_when_its_rows_are_cut_off() {
    for place in engines() {
        let here = place.room().await;
        made(&here).await;
        let held = hold(&here).await;
        let audit = here.store.audit();
        let calls = [("stays", true), ("read", false), ("waits", false), ("ran", true)];
        for (n, (call, ran)) in calls.into_iter().enumerate() {
            place.clock.advance(std::time::Duration::from_secs(1));
            if ran {
                audit.append(row(&here, Event::Started, call)).await.unwrap();
                audit.append(row(&here, Event::Finished, call)).await.unwrap();
            }
            place.clock.advance(std::time::Duration::from_millis(1));
            let mut body = json!({ "callId": call, "ok": true, "content": "it says \"ran\":true" });
            if ran {
                body["ran"] = true.into();
            }
            keep(&held, &format!("call_{n}_0"), body).await;
        }
        held.settle().await.unwrap();
        drop(held);
        let reader = here.store.reader();
        let verdict = reader.verify_audit(here.project).await.unwrap();
        assert!(verdict.problems.is_empty() && verdict.rows == 4, "{place}: {verdict:?}");
        crate::chain::cut(&place, 2).await;
        let problems = reader.verify_audit(here.project).await.unwrap().problems;
        let told: Vec<&str> = problems.iter().map(|problem| problem.what.as_str()).collect();
        let part = format!("the call ran ran after the last row, as the step call_3_0 of the session {ID} says");
        assert!(told.len() == 1 && told[0].contains(&part), "{place}: {told:?}");
    }
}

async fn keep(held: &Held, step: &str, value: Value) {
    held.keep(step, value, Some(json!({ "turns": 1 }))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_recalled_by_the_next_run_and_once() {
    for place in engines() {
        let here = place.room().await;
        made(&here).await;
        let held = hold(&here).await;
        assert_eq!(held.recall("open"), Some(json!({ "goal": "fix it" })), "{place}");
        keep(&held, "turn_0", json!({ "text": "zero \u{0} and ä" })).await;
        keep(&held, "call_0_0", json!({ "ok": true })).await;
        held.release(SessionState::Paused, None).await.unwrap();
        let again = hold(&here).await;
        assert_eq!(again.recall("turn_0"), Some(json!({ "text": "zero \u{0} and ä" })), "{place}");
        assert_eq!(again.recall("turn_0"), None, "told once");
        assert_eq!(again.recall("turn_1"), None);
        let row = here.store.sessions().get(here.project, ID).await.unwrap();
        assert_eq!((row.steps, row.state, row.running), (3, SessionState::Active, true), "{place}");
        assert_eq!(row.tally, json!({ "turns": 1 }), "{place}");
        let steps = here.store.sessions().steps(here.project, ID, 0, 10).await.unwrap();
        let names: Vec<&str> = steps.iter().map(|step| step.step.as_str()).collect();
        assert_eq!(names, ["turn_0", "call_0_0"], "{place}: in order");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_never_run_one_session() {
    for place in engines() {
        let (here, beside) = (place.room().await, place.room().await);
        made(&here).await;
        let held = hold(&here).await;
        for other in [&here, &beside] {
            let refused = other.store.sessions().hold(here.project, ID).await.err().unwrap();
            assert!(matches!(refused, Error::SessionRuns { .. }), "{place}: {refused}");
        }
        held.release(SessionState::Paused, None).await.unwrap();
        // Of many that want it at once, one gets it.
        let wants = (0..20).map(|n| {
            let sessions = if n % 2 == 0 { here.store.sessions() } else { beside.store.sessions() };
            let project = here.project;
            tokio::spawn(async move { sessions.hold(project, ID).await })
        });
        let mut got = Vec::new();
        for want in wants.collect::<Vec<_>>() {
            got.extend(want.await.unwrap().ok());
        }
        assert_eq!(got.len(), 1, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_sessions_that_nobody_runs_are_as_full_as_they_can_be() {
    for place in engines() {
        let here = place.room().await;
        let sessions = here.store.sessions();
        let ids: Vec<String> = (0..6).map(|number| format!("as_{number:016x}")).collect();
        let mut held = Vec::new();
        for (number, id) in ids.iter().enumerate() {
            sessions.create(&new(&here, id)).await.unwrap();
            if number % 2 == 1 {
                held.push(sessions.hold(here.project, id).await.unwrap());
            }
        }
        for (running, expected) in [(false, [0, 2, 4]), (true, [1, 3, 5])] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let active = Some(SessionState::Active);
                let filter = SessionFilter { state: active, running: Some(running), after: after.take(), limit: 2 };
                let page = sessions.page(here.project, &filter).await.unwrap();
                after = page.last().map(|last| (last.updated_at_ms, last.id.clone()));
                let is_last = page.len() < 2;
                found.extend(page.into_iter().map(|row| row.id));
                if is_last {
                    break;
                }
            }
            found.sort();
            assert_eq!(found, expected.map(|number| ids[number].clone()), "{running}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lost_a_session_writes_no_more() {
    for place in engines() {
        let here = place.room().await;
        made(&here).await;
        let lost = hold(&here).await;
        keep(&lost, "turn_0", json!(1)).await;
        lost.settle().await.unwrap();
        // As when a host was taken for dead, and was not: the row is another epoch's now.
        taken_by_another(&place).await;
        keep(&lost, "turn_1", json!(2)).await;
        assert_eq!(lost.settle().await, Err(JournalError::Lost(ID.to_owned())), "{place}");
        assert_eq!(lost.keep("turn_2", json!(3), None).await, Err(JournalError::Lost(ID.to_owned())), "{place}");
        assert!(lost.release(SessionState::Done, None).await.is_err(), "{place}");
        let steps = here.store.sessions().steps(here.project, ID, -1, 10).await.unwrap();
        assert_eq!(steps.len(), 2, "{place}: open and turn_0");
        let row = here.store.sessions().get(here.project, ID).await.unwrap();
        assert_eq!(row.state, SessionState::Active, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_wants_reaches_the_process_that_runs_it() {
    for place in engines() {
        let (here, beside) = (place.room().await, place.room().await);
        made(&here).await;
        let held = hold(&here).await;
        beside.store.sessions().want(here.project, ID, Signal::Pause).await.unwrap();
        assert_eq!(held.signal(None).await, Signal::Pause, "{place}");
        beside.store.sessions().want(here.project, ID, Signal::Cancel).await.unwrap();
        assert_eq!(held.signal(Some(Signal::Pause)).await, Signal::Cancel, "{place}: a pause becomes a cancel");
        beside.store.sessions().want(here.project, ID, Signal::Pause).await.unwrap();
        held.release(SessionState::Paused, None).await.unwrap();
        let row = here.store.sessions().get(here.project, ID).await.unwrap();
        assert_eq!(
            row.state,
            SessionState::Cancelled,
            "{place}: whatever the run said, and whoever would only have paused it"
        );
        let refused = here.store.sessions().hold(here.project, ID).await.err().unwrap();
        assert!(matches!(refused, Error::SessionRuns { .. }), "{place}: nobody takes what was cancelled: {refused}");
        // A host that dies before it has heard it changes nothing about it.
        past_the_store(&place, "UPDATE agent_session SET state = 'active', host = 'gone', wanted = 'cancel'").await;
        let row = here.store.sessions().get(here.project, ID).await.unwrap();
        assert_eq!((row.state, row.running), (SessionState::Cancelled, false), "{place}");
        let refused = here.store.sessions().hold(here.project, ID).await.err().unwrap();
        assert!(matches!(refused, Error::SessionEnded { state: SessionState::Cancelled, .. }), "{place}: {refused}");
        past_the_store(&place, "UPDATE agent_session SET state = 'paused'").await;
        let cancelled = beside.store.sessions().want(here.project, ID, Signal::Cancel).await.unwrap();
        assert_eq!((cancelled.state, cancelled.running), (SessionState::Cancelled, false), "{place}");
        let again = here.store.sessions().want(here.project, ID, Signal::Pause).await.unwrap_err();
        assert!(matches!(again, Error::SessionEnded { .. }), "{place}: {again}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_a_session_at_work_is_heard_once_and_in_order() {
    for place in engines() {
        let (here, beside) = (place.room().await, place.room().await);
        made(&here).await;
        let (sessions, project) = (beside.store.sessions(), here.project);
        let unheard = async || {
            let messages = sessions.unheard(project, ID).await.unwrap();
            messages.into_iter().map(|message| message.text).collect::<Vec<_>>()
        };
        // Whether somebody runs it or not.
        sessions.leave(project, ID, "first \u{0}").await.unwrap();
        let held = hold(&here).await;
        for text in ["second", "third"] {
            sessions.leave(project, ID, text).await.unwrap();
        }
        assert_eq!(unheard().await, ["first \u{fffd}", "second", "third"], "{place}");
        assert_eq!(held.take_message("say_0_0").await, Ok(Some("first \u{fffd}".to_owned())), "{place}");
        assert_eq!(unheard().await, ["second", "third"], "{place}");
        // Whoever takes it after that finds what was heard among the steps, and what was not where it was.
        drop(held);
        let again = hold(&here).await;
        assert_eq!(again.recall("say_0_0"), Some(json!({ "text": "first \u{fffd}" })), "{place}");
        assert!(again.hear("say_1_0", Some("news")).await.unwrap(), "{place}");
        assert_eq!(again.recall("say_1_0"), Some(json!({ "text": "second", "since": "news" })), "{place}");
        assert!(again.release(SessionState::Done, None).await.unwrap(), "{place}: the third is not heard");
        let row = sessions.get(project, ID).await.unwrap();
        assert_eq!((row.state, row.running), (SessionState::Paused, false), "{place}");
        let last = hold(&here).await;
        assert_eq!(last.take_message("say_2_0").await, Ok(Some("third".to_owned())), "{place}");
        assert_eq!(last.take_message("say_2_1").await, Ok(None), "{place}");
        assert!(!last.release(SessionState::Done, None).await.unwrap(), "{place}");
        assert_eq!(sessions.get(project, ID).await.unwrap().state, SessionState::Done, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_refused_when_too_many_wait_or_the_session_was_cancelled_and_another_host_writes_none() {
    for place in engines() {
        let here = place.room().await;
        made(&here).await;
        let (sessions, project) = (here.store.sessions(), here.project);
        let held = hold(&here).await;
        for _ in 0..50 {
            sessions.leave(project, ID, "more").await.unwrap();
        }
        let refused = sessions.leave(project, ID, "more").await.unwrap_err();
        assert!(matches!(refused, Error::TooManyMessages { max: 50, .. }), "{place}: {refused}");
        taken_by_another(&place).await;
        assert_eq!(held.take_message("say_0_0").await, Err(JournalError::Lost(ID.to_owned())), "{place}");
        assert_eq!(sessions.unheard(project, ID).await.unwrap().len(), 50, "{place}: it was taken away from nobody");
        past_the_store(&place, "DELETE FROM session_message").await;
        past_the_store(&place, "UPDATE agent_session SET wanted = 'cancel'").await;
        for _ in 0..2 {
            let refused = sessions.leave(project, ID, "never").await.unwrap_err();
            assert!(matches!(refused, Error::SessionEnded { .. }), "{place}: {refused}");
            past_the_store(&place, "UPDATE agent_session SET wanted = NULL, state = 'cancelled'").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_tells_what_became_of_a_call() {
    for place in engines() {
        let here = place.room().await;
        made(&here).await;
        let held = hold(&here).await;
        let told = async |call: &str, trace| held.fate(&CallId::new(call), trace).await.unwrap();
        let fate = async |call: &str| told(call, Trace::None).await;
        assert_eq!(fate("never").await, Fate::NeverStarted, "{place}");
        here.store.audit().append(row(&here, Event::Decision, "decided")).await.unwrap();
        assert_eq!(fate("decided").await, Fate::NeverStarted, "{place}");
        here.store.audit().append(row(&here, Event::Finished, "refused")).await.unwrap();
        assert_eq!(fate("refused").await, Fate::Undone, "{place}: it ended and had not begun");
        here.store.audit().append(row(&here, Event::Started, "began")).await.unwrap();
        assert_eq!(fate("began").await, Fate::Unknown, "{place}");
        here.store.audit().append(row(&here, Event::Started, "wrote")).await.unwrap();
        let files = async || told("wrote", Trace::Files).await;
        assert_eq!(files().await, Fate::Undone, "{place}: it has logged no change, so it made none");
        here.store.file_log().before(&change(&here, "wrote", "a.txt", None)).await.unwrap();
        assert_eq!(files().await, Fate::Logged, "{place}");
        here.store.audit().append(row(&here, Event::Started, "kept")).await.unwrap();
        let records = async || told("kept", Trace::Records).await;
        assert_eq!(records().await, Fate::Undone, "{place}: no version names it, so nothing was committed");
        let who =
            Who { project_id: here.project, user_id: here.user, name: "Ada".to_owned(), call_id: "kept".to_owned() };
        let desk = toolhost_records::Records::new(here.store.database()).desk(who).unwrap();
        desk.create(Learning { content: "Commit first.".to_owned() }, 0, None).await.unwrap();
        let wrote =
            json!([{ "id": "LRN-001", "version": 1, "change": "create", "content": { "content": "Commit first." } }]);
        assert_eq!(records().await, Fate::Committed(wrote), "{place}");
        here.store.audit().append(row(&here, Event::Started, "ended")).await.unwrap();
        let finished = row(&here, Event::Finished, "ended");
        let outcome = finished.outcome.clone().unwrap_or_default();
        here.store.audit().append(finished).await.unwrap();
        assert_eq!(fate("ended").await, Fate::Ended(outcome), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_what_its_parent_had_come_to_and_goes_its_own_way() {
    for place in engines() {
        let here = place.room().await;
        made(&here).await;
        let held = hold(&here).await;
        for (step, value) in [("turn_0", 0), ("call_0_0", 1), ("turn_1", 2)] {
            keep(&held, step, json!(value)).await;
        }
        held.settle().await.unwrap();
        let sessions = here.store.sessions();
        let stands = json!({ "turns": 1 });
        let steps = sessions.steps(here.project, ID, -1, 3).await.unwrap();
        sessions.fork(here.project, ID, ("as_fork", here.user), &steps, &stands).await.unwrap();
        assert_eq!(sessions.get(here.project, "as_fork").await.unwrap().tally, stands, "{place}");
        let fork = sessions.hold(here.project, "as_fork").await.unwrap();
        assert_eq!(fork.row().parent.as_deref(), Some(ID), "{place}");
        assert_eq!((fork.recall("call_0_0"), fork.recall("turn_1")), (Some(json!(1)), None), "{place}");
        keep(&fork, "turn_1", json!("another")).await;
        fork.release(SessionState::Done, None).await.unwrap();
        let parent = sessions.steps(here.project, ID, 2, 10).await.unwrap();
        assert_eq!(parent[0].body, json!(2), "{place}");
        let missing = sessions.fork(here.project, "as_none", ("as_x", here.user), &steps, &stands).await.unwrap_err();
        assert!(matches!(missing, Error::NoSession { .. }), "{place}: {missing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_of_many_sessions_at_once_are_all_kept_in_their_order() {
    for place in engines() {
        let here = place.room().await;
        let mut running = Vec::new();
        for n in 0..40 {
            let id = format!("as_{n}");
            here.store.sessions().create(&new(&here, &id)).await.unwrap();
            let sessions = here.store.sessions();
            let project = here.project;
            running.push(tokio::spawn(async move {
                let held = sessions.hold(project, &id).await.unwrap();
                for turn in 0..25 {
                    held.keep(&format!("turn_{turn}"), json!([n, turn]), None).await.unwrap();
                }
                held.release(SessionState::Done, None).await.unwrap();
            }));
        }
        for run in running {
            run.await.unwrap();
        }
        for n in 0..40 {
            let steps = here.store.sessions().steps(here.project, &format!("as_{n}"), 0, 100).await.unwrap();
            let bodies: Vec<Value> = steps.into_iter().map(|step| step.body).collect();
            let expected: Vec<Value> = (0..25).map(|turn| json!([n, turn])).collect();
            assert_eq!(bodies, expected, "{place}");
        }
    }
}
