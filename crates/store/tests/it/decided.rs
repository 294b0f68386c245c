//! A call whose end nobody saw: what it left behind tells what became of it, and the audit says so.

use serde_json::{Value, json};
use toolhost_contract::Trace;
use toolhost_store::{Entry, Event, Filter, NewChange};
use toolhost_testkit::database::things::requirement;
use toolhost_testkit::database::{Place, Room, engines, entry};

fn of(here: &Room, event: Event, call: &str, trace: Trace) -> Entry {
    Entry { trace, ..entry(here.project, event, call) }
}

/// The last row of each call: its event, and whether it says that the call succeeded.
async fn ends(here: &Room) -> Vec<(String, String, Option<bool>)> {
    let rows = here.store.reader().audit(here.project, &Filter { limit: 100, ..Filter::default() }).await.unwrap();
    let ok = |body: &str| serde_json::from_str::<Value>(body).unwrap()["outcome"]["ok"].as_bool();
    let ended = rows.into_iter().filter(|row| row.event != "started");
    ended.map(|row| (row.call_id, row.event, ok(&row.body))).collect()
}

/// What the next host says, once it has noticed that the former one is gone.
async fn ends_after_death(place: &Place, count: usize) -> Vec<(String, String, Option<bool>)> {
    let mut found = Vec::new();
    for _ in 0..100 {
        let here = place.room().await;
        found = ends(&here).await;
        here.store.close().await.unwrap();
        if found.len() == count {
            break;
        }
    }
    assert_eq!(found.len(), count, "{place}: nobody closed them");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_host_decides_what_the_store_can_tell() {
    for place in engines() {
        let here = place.room().await;
        let calls = [
            ("bash", Trace::None),
            ("file", Trace::Files),
            ("no-file", Trace::Files),
            ("no-record", Trace::Records),
            ("record", Trace::Records),
        ];
        for (call, trace) in calls {
            here.store.audit().append(of(&here, Event::Started, call, trace)).await.unwrap();
        }
        here.desk_of("tester", "record").create(requirement("written"), 0, None).await.unwrap();
        let change = NewChange {
            project_id: here.project,
            call_id: "file".to_owned(),
            session_id: None,
            path: "a.txt".to_owned(),
            moved_to: None,
            former_sha256: None,
            former_mode: None,
            former: None,
            after_sha256: None,
        };
        here.store.file_log().before(&change).await.unwrap();
        here.store.close().await.unwrap();
        let expected = [
            ("bash", "unknown", None),
            ("file", "unknown", None),
            ("no-file", "finished", Some(false)),
            ("no-record", "finished", Some(false)),
            ("record", "finished", Some(true)),
        ];
        let expected = expected.map(|(call, event, ok)| (call.to_owned(), event.to_owned(), ok));
        assert_eq!(ends_after_death(&place, 5).await, expected, "{place}");
        assert!(place.verify().await.problems.is_empty(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_row_of_a_call_in_doubt_says_what_became_of_it() {
    for place in engines() {
        let here = place.room().await;
        here.desk_of("tester", "written").create(requirement("written"), 0, None).await.unwrap();
        for (call, trace) in [("bash", Trace::None), ("written", Trace::Records), ("lost", Trace::Records)] {
            here.store.audit().append(of(&here, Event::Started, call, trace)).await.unwrap();
            let doubt = Some(json!({ "ok": false, "kind": "unknown", "message": "whether it was made is not known" }));
            let row = Entry { outcome: doubt, ..of(&here, Event::Finished, call, trace) };
            here.store.audit().append(row).await.unwrap();
        }
        let rows = here.store.reader().audit(here.project, &Filter { limit: 100, ..Filter::default() }).await.unwrap();
        let outcome = |row: &toolhost_store::Row| serde_json::from_str::<Value>(&row.body).unwrap()["outcome"].take();
        let told: Vec<Value> = rows.iter().filter(|row| row.event == "finished").map(outcome).collect();
        assert_eq!(told[0]["kind"], "unknown", "{place}: what leaves nothing behind stays unknown");
        assert_eq!(told[1], json!({ "ok": true, "decided": true }), "{place}");
        assert_eq!((&told[2]["ok"], &told[2]["kind"]), (&json!(false), &json!("io")), "{place}: {}", told[2]);
        assert!(place.verify().await.problems.is_empty(), "{place}");
    }
}
