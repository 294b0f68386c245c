//! Whatever is done to a written row, verification says which one.

use crate::file_log::change;
use toolhost_store::{Event, Filter};
use toolhost_testkit::database::things::requirement;
use toolhost_testkit::database::{Place, engines, entry};

/// After `sql` on a chain of ten rows, the first problem is this one.
async fn check(sql: &str, seq: i64, what: &str) {
    for place in engines() {
        place.filled(5).await;
        let before = place.verify().await;
        assert_eq!((before.rows, before.problems.len()), (10, 0), "{place}: {before:?}");
        place.tamper(sql).await;
        let after = place.verify().await;
        let first = after.problems.first();
        assert!(first.is_some(), "{place}: {sql} was not noticed");
        assert_eq!(first.map(|p| (p.seq, p.what.as_str())), Some((seq, what)), "{place}: {sql}: {after:?}");
    }
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
        "ok = FALSE",
    ] {
        check(&format!("UPDATE audit SET {column} WHERE seq = 4"), 4, changed).await;
    }
}

/// SQLite keeps any value in any column, and takes all but 0 for true.
#[tokio::test(flavor = "multi_thread")]
async fn a_column_with_a_value_of_another_type_is_found() {
    let oks = ["2", "-1", "1.5", "'yes'", "x'01'"].map(|value| format!("ok = {value}"));
    let texts = ["body", "tool", "event", "call_id", "session_id", "prev_hash", "hash"];
    let texts = texts.map(|column| format!("{column} = CAST({column} AS BLOB)"));
    for set in oks.into_iter().chain(texts).chain(["at_ms = 'now'".to_owned(), "at_ms = 1.5".to_owned()]) {
        let place = Place::sqlite();
        place.filled(5).await;
        place.tamper(&format!("UPDATE audit SET {set} WHERE seq = 4")).await;
        let after = place.verify().await;
        assert_eq!(after.problems.first().map(|problem| problem.seq), Some(4), "{set}: {after:?}");
        // The walk goes on to the end.
        assert_eq!(after.rows, 10, "{set}: {after:?}");
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
    for place in engines() {
        place.filled(1).await;
        for sql in ["UPDATE audit SET tool = 'x' WHERE seq = 1", "DELETE FROM audit WHERE seq = 1", "DELETE FROM audit"]
        {
            let said = place.run(sql).await.unwrap_err();
            assert!(said.contains("the audit is append-only"), "{place}: {sql}: {said}");
        }
        assert_eq!(place.rows().await, 2, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chains_of_two_projects_are_apart() {
    for place in engines() {
        let store = place.open().await;
        let mut projects = Vec::new();
        for workspace in ["one", "other"] {
            projects.push(store.project(&place.workspace().join(workspace), workspace, "local").await.unwrap().id);
        }
        let [one, two] = [projects[0], projects[1]];
        assert_ne!(one, two);
        for n in 0..20 {
            let project = if n % 2 == 0 { one } else { two };
            store.audit().note(entry(project, Event::Finished, &format!("call-{n}"))).await.unwrap();
        }
        store.audit().flush().await.unwrap();
        for project in [one, two] {
            let verdict = store.reader().verify_audit(project).await.unwrap();
            assert_eq!((verdict.rows, verdict.problems.len()), (10, 0), "{place}: {verdict:?}");
        }
        store.close().await.unwrap();
        place.tamper(&format!("DELETE FROM audit WHERE project_id = {two} AND seq = 3")).await;
        let store = place.open().await;
        assert!(store.reader().verify_audit(one).await.unwrap().problems.is_empty(), "{place}");
        assert_eq!(store.reader().verify_audit(two).await.unwrap().problems[0].seq, 3, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_goes_on_where_it_ended() {
    for place in engines() {
        place.filled(2).await;
        place.filled(2).await;
        let verdict = place.verify().await;
        assert_eq!((verdict.rows, verdict.problems.len()), (8, 0), "{place}: {verdict:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_rows_cover_all_of_them_once() {
    for place in engines() {
        place.filled(50).await;
        let here = place.room().await;
        let (reader, project) = (here.store.reader(), here.project);
        let mut seen = Vec::new();
        let mut after_seq = 0;
        loop {
            let page = reader.audit(project, &Filter { after_seq, limit: 7, ..Filter::default() }).await.unwrap();
            let Some(last) = page.last() else { break };
            after_seq = last.seq;
            assert!(page.len() <= 7);
            seen.extend(page.iter().map(|row| row.seq));
        }
        assert_eq!(seen, (1..=100).collect::<Vec<i64>>(), "{place}");
        let started = Filter { call: Some("call-7".to_owned()), limit: 10, ..Filter::default() };
        let events: Vec<String> =
            reader.audit(project, &started).await.unwrap().into_iter().map(|row| row.event).collect();
        assert_eq!(events, ["started", "finished"], "{place}");
        let last = Filter { last: true, limit: 3, ..Filter::default() };
        let last: Vec<i64> = reader.audit(project, &last).await.unwrap().into_iter().map(|row| row.seq).collect();
        assert_eq!(last, [98, 99, 100], "{place}");
        let failed = Filter { failed_only: true, limit: 3, ..Filter::default() };
        assert!(reader.audit(project, &failed).await.unwrap().is_empty(), "{place}");
        assert_eq!(reader.audit_end(project).await.unwrap(), 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_written_keeps_no_other_from_it() {
    for place in engines() {
        let here = place.room().await;
        let audit = here.store.audit();
        // A tool that was asked for by a name that no database column holds.
        let mut odd = entry(here.project, Event::Finished, "odd\0");
        odd.tool = "a\0b".to_owned();
        odd.session_id = Some("\0".to_owned());
        audit.append(odd).await.unwrap();
        audit.note(entry(here.project + 1000, Event::Finished, "of no project")).await.unwrap();
        for event in [Event::Started, Event::Decision, Event::Finished] {
            audit.append(entry(here.project, event, "fine")).await.unwrap();
        }
        assert!(audit.append(entry(here.project + 1000, Event::Started, "of no project")).await.is_err(), "{place}");
        audit.flush().await.unwrap();
        let rows = here.store.reader().audit(here.project, &Filter { limit: 9, ..Filter::default() }).await.unwrap();
        let calls: Vec<&str> = rows.iter().map(|row| row.call_id.as_str()).collect();
        assert_eq!(calls, ["odd\u{fffd}", "fine", "fine", "fine"], "{place}");
        assert!(place.verify().await.problems.is_empty(), "{place}");
    }
}

/// Cuts off the end of the chain, and says so where its end is recorded.
pub(crate) async fn cut(place: &Place, rows: i64) {
    let head = format!(
        "UPDATE audit_head SET seq = {rows}, hash = COALESCE((SELECT hash FROM audit WHERE seq = {rows}),
             '0000000000000000000000000000000000000000000000000000000000000000')"
    );
    place.tamper(&format!("DELETE FROM audit WHERE seq > {rows}; {head};")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_cut_off_together_with_its_record_is_found_by_what_calls_left_elsewhere() {
    for left in [0, 2] {
        for place in engines() {
            let here = place.room().await;
            let audit = here.store.audit();
            for (n, call) in ["first", "changes records", "changes files"].into_iter().enumerate() {
                place.clock.advance(std::time::Duration::from_secs(1));
                audit.append(entry(here.project, Event::Started, call)).await.unwrap();
                place.clock.advance(std::time::Duration::from_millis(1));
                match n {
                    1 => drop(here.desk_of("ann", call).create(requirement("r"), 0, None).await.unwrap()),
                    2 => here.store.file_log().before(&change(&here, call, "a.txt", None)).await.unwrap(),
                    _ => {}
                }
                audit.append(entry(here.project, Event::Finished, call)).await.unwrap();
            }
            here.store.close().await.unwrap();
            assert!(place.verify().await.problems.is_empty(), "{place}");
            cut(&place, left).await;
            let problems = place.verify().await.problems;
            let told: Vec<&str> = problems.iter().map(|problem| problem.what.as_str()).collect();
            assert_eq!(told.len(), 2, "{place}, {left} left: {told:?}");
            assert!(told[0].contains("the call changes records changed records after the last row"), "{told:?}");
            assert!(told[1].contains("the call changes files changed files after the last row"), "{told:?}");
            assert!(problems.iter().all(|problem| problem.seq == left + 1), "{problems:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_an_earlier_export_that_are_gone_or_others_are_named() {
    for place in engines() {
        place.filled(4).await;
        let here = place.room().await;
        let rows = here.store.reader().audit(here.project, &Filter { limit: 100, ..Filter::default() }).await.unwrap();
        let former: std::collections::BTreeMap<i64, String> = rows.into_iter().map(|row| (row.seq, row.hash)).collect();
        assert!(here.store.reader().compare_audit(here.project, &former).await.unwrap().is_empty());
        here.store.close().await.unwrap();
        cut(&place, 6).await;
        let here = place.room().await;
        assert!(here.store.reader().verify_audit(here.project).await.unwrap().problems.is_empty(), "{place}");
        let problems = here.store.reader().compare_audit(here.project, &former).await.unwrap();
        let told: Vec<(i64, &str)> = problems.iter().map(|problem| (problem.seq, problem.what.as_str())).collect();
        assert_eq!(told, [(7, "is missing, and was there then"), (8, "is missing, and was there then")], "{place}");
        // The chain goes on over the gap.
        here.store.audit().append(entry(here.project, Event::Started, "new")).await.unwrap();
        let problems = here.store.reader().compare_audit(here.project, &former).await.unwrap();
        assert_eq!(problems[0].what, "is another row than it was then", "{place}");
        here.store.audit().append(entry(here.project, Event::Finished, "new")).await.unwrap();
    }
}
