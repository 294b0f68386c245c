//! Whatever is done to a written row, verification says which one.

use crate::shelf::{Shelf, entry};
use toolhost_store::{Event, Filter};

/// After `sql` on a chain of ten rows, the first problem is this one.
async fn check(sql: &str, seq: i64, what: &str) {
    let shelf = Shelf::new();
    shelf.filled(5).await;
    let before = shelf.verify().await;
    assert_eq!((before.rows, before.problems.len()), (10, 0), "{before:?}");
    shelf.tamper(sql).await;
    let after = shelf.verify().await;
    let first = after.problems.first();
    assert!(first.is_some(), "{sql} was not noticed");
    assert_eq!(first.map(|p| (p.seq, p.what.as_str())), Some((seq, what)), "{sql}: {after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_row_is_found() {
    let changed = "has been changed: its hash does not fit its content";
    check("UPDATE audit SET body = replace(body, 'call-1', 'call-9') WHERE seq = 4", 4, changed).await;
    check("UPDATE audit SET body = body || ' ' WHERE seq = 1", 1, changed).await;
    check("UPDATE audit SET body = '{}' WHERE seq = 10", 10, changed).await;
    check("UPDATE audit SET hash = upper(hash) WHERE seq = 3", 3, changed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_column_is_found() {
    let changed = "has been changed: its columns do not fit its content";
    for column in [
        "tool = 'file.read'",
        "call_id = 'call-9'",
        "event = 'unknown'",
        "at_ms = at_ms + 1",
        "session_id = NULL",
        "session_id = 's2'",
        "ok = 0",
    ] {
        check(&format!("UPDATE audit SET {column} WHERE seq = 4"), 4, changed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_row_is_found() {
    check("DELETE FROM audit WHERE seq = 4", 4, "is missing").await;
    check("DELETE FROM audit WHERE seq = 1", 1, "is missing").await;
    check("DELETE FROM audit WHERE seq = 10", 10, "is missing").await;
    check("DELETE FROM audit WHERE seq > 3", 4, "is missing").await;
    check("DELETE FROM audit", 1, "is missing").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_changed_places_are_found() {
    let swap = "UPDATE audit SET seq = -1 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 5;
        UPDATE audit SET seq = 5 WHERE seq = -1";
    check(swap, 4, "does not follow the row before it").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_written_by_somebody_else_is_found() {
    let forged =
        "INSERT INTO audit SELECT project_id, 11, at_ms, call_id, session_id, event, tool, ok, body, hash, hash
        FROM audit WHERE seq = 10";
    check(forged, 11, "has been changed: its hash does not fit its content").await;
    check("UPDATE audit_head SET hash = '00'", 10, "is not the recorded end of the chain").await;
    check("UPDATE audit_head SET seq = 12", 11, "is missing").await;
    check("UPDATE audit_head SET seq = 8", 10, "is beyond the recorded end of the chain").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_can_be_neither_changed_nor_removed_as_long_as_the_triggers_stand() {
    let shelf = Shelf::new();
    shelf.filled(1).await;
    let mut connection = shelf.connect().await;
    for sql in ["UPDATE audit SET tool = 'x' WHERE seq = 1", "DELETE FROM audit WHERE seq = 1", "DELETE FROM audit"] {
        let said = sqlx::query(sql).execute(&mut connection).await.map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("the audit is append-only"), "{sql}: {said}");
    }
    assert_eq!(shelf.ask("SELECT count(*) FROM audit").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chains_of_two_projects_are_apart() {
    let shelf = Shelf::new();
    let store = shelf.open().await;
    let one = shelf.project(&store).await;
    let two = store.project(&shelf.state().join("other"), "other", "local").await.unwrap().id;
    assert_ne!(one, two);
    for n in 0..20 {
        let project = if n % 2 == 0 { one } else { two };
        store.audit().note(entry(project, Event::Finished, &format!("call-{n}"))).await.unwrap();
    }
    store.audit().flush().await.unwrap();
    for project in [one, two] {
        let verdict = store.reader().verify_audit(project).await.unwrap();
        assert_eq!((verdict.rows, verdict.problems.len()), (10, 0), "{verdict:?}");
    }
    store.close().await.unwrap();
    shelf.tamper(&format!("DELETE FROM audit WHERE project_id = {two} AND seq = 3")).await;
    let store = shelf.open().await;
    assert!(store.reader().verify_audit(one).await.unwrap().problems.is_empty());
    assert_eq!(store.reader().verify_audit(two).await.unwrap().problems[0].seq, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_goes_on_where_it_ended() {
    let shelf = Shelf::new();
    shelf.filled(2).await;
    shelf.filled(2).await;
    let verdict = shelf.verify().await;
    assert_eq!((verdict.rows, verdict.problems.len()), (8, 0), "{verdict:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_rows_cover_all_of_them_once() {
    let shelf = Shelf::new();
    shelf.filled(50).await;
    let store = shelf.open().await;
    let project = shelf.project(&store).await;
    let mut seen = Vec::new();
    let mut after_seq = 0;
    loop {
        let filter = Filter { after_seq, limit: 7, ..Filter::default() };
        let page = store.reader().audit(project, &filter).await.unwrap();
        let Some(last) = page.last() else { break };
        after_seq = last.seq;
        assert!(page.len() <= 7);
        seen.extend(page.iter().map(|row| row.seq));
    }
    assert_eq!(seen, (1..=100).collect::<Vec<i64>>());
    let started = Filter { call: Some("call-7".to_owned()), limit: 10, ..Filter::default() };
    let events: Vec<String> =
        store.reader().audit(project, &started).await.unwrap().into_iter().map(|row| row.event).collect();
    assert_eq!(events, ["started", "finished"]);
}
