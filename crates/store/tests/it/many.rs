//! Many writers at once: nothing is lost, and there is one chain.

use std::collections::BTreeSet;

use toolhost_store::{Event, Filter};

use crate::shelf::{Shelf, entry};

#[tokio::test(flavor = "multi_thread")]
async fn four_hosts_write_one_chain() {
    const HOSTS: usize = 4;
    const ROWS: usize = 200;
    let shelf = Shelf::new();
    let mut writers = Vec::new();
    for host in 0..HOSTS {
        // Each has a connection, a queue and a lock of its own, as another process would.
        let store = shelf.open().await;
        let project = shelf.project(&store).await;
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
    let store = shelf.open().await;
    let project = shelf.project(&store).await;
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
async fn hosts_that_open_a_new_folder_at_once_all_succeed() {
    for _ in 0..5 {
        let shelf = std::sync::Arc::new(Shelf::new());
        let opening: Vec<_> = (0..6)
            .map(|_| {
                let shelf = std::sync::Arc::clone(&shelf);
                tokio::spawn(async move {
                    let store = shelf.open().await;
                    shelf.project(&store).await
                })
            })
            .collect();
        let mut projects = BTreeSet::new();
        for opened in opening {
            projects.insert(opened.await.unwrap());
        }
        assert_eq!(projects.len(), 1, "one folder is one project");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_writes_what_was_queued() {
    let shelf = Shelf::new();
    let store = shelf.open().await;
    let project = shelf.project(&store).await;
    for n in 0..1000 {
        store.audit().note(entry(project, Event::Finished, &format!("call-{n}"))).await.unwrap();
    }
    store.close().await.unwrap();
    assert_eq!(shelf.ask("SELECT count(*) FROM audit").await, 1000);
    assert!(shelf.verify().await.problems.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_appended_is_on_disk_before_the_answer() {
    let shelf = Shelf::new();
    let store = shelf.open().await;
    let project = shelf.project(&store).await;
    for n in 1..=20 {
        store.audit().append(entry(project, Event::Started, &format!("call-{n}"))).await.unwrap();
        assert_eq!(shelf.ask("SELECT count(*) FROM audit").await, n);
    }
}
