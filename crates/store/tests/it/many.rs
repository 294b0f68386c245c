//! Many writers at once: nothing is lost, and there is one chain.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolhost_store::{Event, Filter};
use toolhost_testkit::database::{Place, Room, engines, entry};

#[tokio::test(flavor = "multi_thread")]
async fn four_hosts_write_one_chain() {
    for place in engines() {
        four_hosts_write(&place).await;
    }
}

async fn four_hosts_write(place: &Place) {
    const HOSTS: usize = 4;
    const ROWS: usize = 200;
    let mut writers = Vec::new();
    for host in 0..HOSTS {
        // Each has a connection, a queue and a lock of its own, as another process would.
        let Room { store, project, .. } = place.room().await;
        writers.push(tokio::spawn(async move {
            for n in 0..ROWS {
                let row = entry(project, Event::Finished, &format!("{host}-{n}"));
                // Some wait for the disk and some do not.
                let written = if n % 3 == 0 { store.audit().append(row).await } else { store.audit().note(row).await };
                written.unwrap();
            }
            store.close().await.unwrap();
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let Room { store, project, .. } = place.room().await;
    let verdict = store.reader().verify_audit(project).await.unwrap();
    assert_eq!((verdict.rows, verdict.problems.len()), ((HOSTS * ROWS) as u64, 0), "{verdict:?}");
    let rows = store.reader().audit(project, &Filter { limit: i64::MAX, ..Filter::default() }).await.unwrap();
    let calls: BTreeSet<&str> = rows.iter().map(|row| row.call_id.as_str()).collect();
    assert_eq!(calls.len(), HOSTS * ROWS, "no row is lost and none is there twice");
    for host in 0..HOSTS {
        let own: Vec<&str> =
            rows.iter().map(|row| row.call_id.as_str()).filter(|id| id.starts_with(&format!("{host}-"))).collect();
        let expected: Vec<String> = (0..ROWS).map(|n| format!("{host}-{n}")).collect();
        assert_eq!(own, expected, "each host's rows are in its own order");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_open_a_new_database_at_once_all_succeed() {
    for place in (0..5).flat_map(|_| engines()) {
        let place = Arc::new(place);
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let place = Arc::clone(&place);
            opening.spawn(async move { place.room().await.project });
        }
        let projects: BTreeSet<i64> = opening.join_all().await.into_iter().collect();
        assert_eq!(projects.len(), 1, "{place}: one folder is one project");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_writes_what_was_queued() {
    for place in engines() {
        let Room { store, project, .. } = place.room().await;
        for n in 0..1000 {
            store.audit().note(entry(project, Event::Finished, &format!("call-{n}"))).await.unwrap();
        }
        store.close().await.unwrap();
        assert_eq!(place.rows().await, 1000, "{place}");
        assert!(place.verify().await.problems.is_empty(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_appended_is_on_disk_before_the_answer() {
    for place in engines() {
        let Room { store, project, .. } = place.room().await;
        for n in 1..=20 {
            store.audit().append(entry(project, Event::Started, &format!("call-{n}"))).await.unwrap();
            assert_eq!(place.rows().await, n, "{place}");
        }
    }
}
