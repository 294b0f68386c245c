//! Opening: calls that a dead host left open, files that are no database of ours, private folders.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use toolhost_store::{Error, Event, Filter};
use toolhost_testkit::database::{Place, Room, engines, entry};

use crate::shelf::ProjectPackage;

/// What a host that opens the database finds in the audit; it is gone again.
async fn events(place: &Place) -> Vec<(String, String)> {
    let here = place.room().await;
    let rows = here.store.reader().audit(here.project, &Filter { limit: 100, ..Filter::default() }).await.unwrap();
    here.store.close().await.unwrap();
    rows.into_iter().map(|row| (row.call_id, row.event)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(call, event)| ((*call).to_owned(), (*event).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_dead_host_left_open_is_closed_as_unknown_once() {
    for place in engines() {
        let Room { store, project, .. } = place.room().await;
        for (event, call) in [(Event::Started, "ended"), (Event::Finished, "ended"), (Event::Started, "open")] {
            store.audit().append(entry(project, event, call)).await.unwrap();
        }
        // Its lock goes with it, as with a process that is killed.
        store.close().await.unwrap();
        let expected = [("ended", "started"), ("ended", "finished"), ("open", "started"), ("open", "unknown")];
        until_gone(&place, &expected).await;
        assert_eq!(events(&place).await, pairs(&expected), "{place}: and not once more");
        assert!(place.verify().await.problems.is_empty(), "{place}");
    }
}

/// A server takes a moment to notice that somebody is gone; whoever opens then closes what they left.
async fn until_gone(place: &Place, expected: &[(&str, &str)]) {
    for _ in 0..100 {
        if events(place).await == pairs(expected) {
            return;
        }
    }
    assert_eq!(events(place).await, pairs(expected), "{place}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_hosts_that_open_at_once_one_closes_what_a_dead_one_left() {
    for place in engines() {
        let Room { store, project, .. } = place.room().await;
        for n in 0..20 {
            store.audit().append(entry(project, Event::Started, &format!("call-{n}"))).await.unwrap();
        }
        store.close().await.unwrap();
        let place = Arc::new(place);
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let place = Arc::clone(&place);
            opening.spawn(async move { place.room().await });
        }
        let hosts = opening.join_all().await;
        let rows = Filter { limit: 1000, ..Filter::default() };
        for _ in 0..100 {
            if place.rows().await == 40 {
                break;
            }
            place.room().await.store.close().await.unwrap();
        }
        let rows = hosts[0].store.reader().audit(project, &rows).await.unwrap();
        let closed = rows.iter().filter(|row| row.event == "unknown").count();
        assert_eq!((closed, rows.len()), (20, 40), "{place}: each once");
        assert!(place.verify().await.problems.is_empty(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_living_host_is_left_alone() {
    for place in engines() {
        let Room { store: living, project, .. } = place.room().await;
        living.audit().append(entry(project, Event::Started, "open")).await.unwrap();
        assert_eq!(events(&place).await, pairs(&[("open", "started")]), "{place}");
        living.audit().append(entry(project, Event::Finished, "open")).await.unwrap();
        assert_eq!(events(&place).await, pairs(&[("open", "started"), ("open", "finished")]), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_database_on_a_server_is_refused_and_left_as_it_is() {
    let Some(place) = Place::postgres() else { return };
    place.filled(1).await;
    place
        .run(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (9999, 'from the future', true, '\\x00', 1)",
        )
        .await
        .unwrap();
    let error = place.address.open(place.clock.clone()).await.map(drop).unwrap_err();
    assert!(matches!(error, Error::Newer { .. }), "{error:?}");
    assert!(error.to_string().contains("made by a newer toolhost; nothing was changed"), "{error}");
    assert_eq!(place.rows().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_cut_short_is_refused_or_answers_with_errors_but_never_with_less() {
    for keep_percent in [1, 10, 50, 90, 99] {
        let shelf = ProjectPackage::new();
        shelf.filled(200).await;
        shelf.ask("PRAGMA wal_checkpoint(TRUNCATE)").await;
        let mut bytes = std::fs::read(shelf.database()).unwrap();
        bytes.truncate(bytes.len() * keep_percent / 100);
        std::fs::write(shelf.database(), &bytes).unwrap();
        let Ok(store) = shelf.try_open().await else { continue };
        let Ok(project) = store.project(&shelf.state().with_file_name("ws"), "ws", "local").await else { continue };
        let rows = store.reader().audit(project.id, &Filter { limit: 1000, ..Filter::default() }).await;
        let verdict = store.reader().verify_audit(project.id).await;
        let is_whole = |verdict: &toolhost_store::Verdict| verdict.problems.is_empty() && verdict.rows == 400;
        assert!(rows.is_err() || verdict.as_ref().map_or(true, |verdict| !is_whole(verdict)), "{keep_percent}%");
        assert!(rows.is_err() || verdict.is_err() || rows.unwrap().len() == 400, "{keep_percent}%: {verdict:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_database_is_refused_and_left_as_it_is() {
    for content in [b"this is not a database, it is somebody's letter".repeat(100), b"SQLite format 3\0".to_vec()] {
        let shelf = ProjectPackage::new();
        std::fs::create_dir_all(shelf.state()).unwrap();
        std::fs::write(shelf.database(), &content).unwrap();
        let error = shelf.try_open().await.map(|_| ()).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
        assert!(said.contains("toolhost.db") && said.contains("nothing was changed"), "{said}");
        assert_eq!(std::fs::read(shelf.database()).unwrap(), content);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_is_refused_and_left_as_it_is() {
    let shelf = ProjectPackage::new();
    shelf.filled(50).await;
    // All into the one file; then its first page, where the tables are listed, is overwritten.
    shelf.ask("PRAGMA wal_checkpoint(TRUNCATE)").await;
    let mut bytes = std::fs::read(shelf.database()).unwrap();
    bytes[100..4096].fill(0xAA);
    std::fs::write(shelf.database(), &bytes).unwrap();
    let error = shelf.try_open().await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("nothing was changed"), "{error}");
    assert_eq!(std::fs::read(shelf.database()).unwrap(), bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_database_is_refused_and_left_as_it_is() {
    let shelf = ProjectPackage::new();
    shelf.filled(1).await;
    shelf
        .tamper(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (9999, 'from the future', 1, x'00', 1)",
        )
        .await;
    let error = shelf.try_open().await.map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Newer { .. }), "{error:?}");
    assert!(error.to_string().contains("newer toolhost"), "{error}");
    assert_eq!(shelf.ask("SELECT count(*) FROM audit").await, 2);
    assert_eq!(shelf.ask("SELECT max(version) FROM _sqlx_migrations").await, 9999);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_users_cannot_look_into_the_state() {
    let shelf = ProjectPackage::new();
    shelf.filled(1).await;
    let mode = std::fs::metadata(shelf.state()).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_folder_that_cannot_be_made_is_told() {
    let shelf = ProjectPackage::new();
    std::fs::write(shelf.state(), "a file is in the way").unwrap();
    let error = shelf.try_open().await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("state folder"), "{error}");
    assert_eq!(std::fs::read_to_string(shelf.state()).unwrap(), "a file is in the way");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_engines_have_the_same_tables_columns_and_indexes() {
    let Some(server) = Place::postgres() else { return };
    let file = Place::sqlite();
    for place in [&file, &server] {
        place.open().await.close().await.unwrap();
    }
    let (here, there) = (file.schema().await, server.schema().await);
    assert!(here.iter().any(|name| name == "audit.hash"), "{here:?}");
    assert_eq!(here, there);
}
