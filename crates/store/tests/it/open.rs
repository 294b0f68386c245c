//! Opening: calls that a dead host left open, files that are no database of ours, private folders.

use std::os::unix::fs::PermissionsExt;

use toolhost_store::{Error, Event, Filter};

use crate::shelf::{Shelf, entry};

async fn events(shelf: &Shelf) -> Vec<(String, String)> {
    let store = shelf.open().await;
    let project = shelf.project(&store).await;
    let rows = store.reader().audit(project, &Filter { limit: 100, ..Filter::default() }).await.unwrap();
    let events = rows.into_iter().map(|row| (row.call_id, row.event)).collect();
    store.close().await.unwrap();
    events
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(call, event)| ((*call).to_owned(), (*event).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_dead_host_left_open_is_closed_as_unknown_once() {
    let shelf = Shelf::new();
    let store = shelf.open().await;
    let project = shelf.project(&store).await;
    store.audit().append(entry(project, Event::Started, "ended")).await.unwrap();
    store.audit().append(entry(project, Event::Finished, "ended")).await.unwrap();
    store.audit().append(entry(project, Event::Started, "open")).await.unwrap();
    // Its lock goes with it, as with a process that is killed.
    store.close().await.unwrap();
    let expected = [("ended", "started"), ("ended", "finished"), ("open", "started"), ("open", "unknown")];
    assert_eq!(events(&shelf).await, pairs(&expected));
    assert_eq!(events(&shelf).await, pairs(&expected), "and not once more");
    assert!(shelf.verify().await.problems.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_living_host_is_left_alone() {
    let shelf = Shelf::new();
    let living = shelf.open().await;
    let project = shelf.project(&living).await;
    living.audit().append(entry(project, Event::Started, "open")).await.unwrap();
    assert_eq!(events(&shelf).await, pairs(&[("open", "started")]));
    living.audit().append(entry(project, Event::Finished, "open")).await.unwrap();
    assert_eq!(events(&shelf).await, pairs(&[("open", "started"), ("open", "finished")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_database_is_refused_and_left_as_it_is() {
    for content in [b"this is not a database, it is somebody's letter".repeat(100), b"SQLite format 3\0".to_vec()] {
        let shelf = Shelf::new();
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
    let shelf = Shelf::new();
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
    let shelf = Shelf::new();
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
    let shelf = Shelf::new();
    shelf.filled(1).await;
    let mode = std::fs::metadata(shelf.state()).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_folder_that_cannot_be_made_is_told() {
    let shelf = Shelf::new();
    std::fs::write(shelf.state(), "a file is in the way").unwrap();
    let error = shelf.try_open().await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("state folder"), "{error}");
    assert_eq!(std::fs::read_to_string(shelf.state()).unwrap(), "a file is in the way");
}
