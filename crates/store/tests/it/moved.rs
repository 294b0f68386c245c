//! A state folder that is no longer where it was: nothing is said to be written that nobody will find.

use std::path::{Path, PathBuf};

use toolhost_contract::{ErrorKind, ToolError};
use toolhost_records::{Edit, RecordError, Requirement};
use toolhost_store::{Error, Event, Outage, Store};
use toolhost_testkit::database::things::requirement;
use toolhost_testkit::database::{Address, Place, Room, entry, said};

fn folder_of(place: &Place) -> PathBuf {
    let Address::Folder(folder) = &place.address else { unreachable!("SQLite has a folder") };
    folder.clone()
}

/// Everything that reads or writes is refused, in the operator's words and in the caller's.
async fn is_refused(here: &Room, folder: &Path) {
    let desk = here.desk();
    let (created, read) =
        (desk.create(requirement("lost"), 0, None).await, desk.get::<Requirement>("REQ-001").await.map(drop));
    for refused in [created.map(drop), read] {
        let operators = said(refused);
        assert!(operators.contains("was moved or deleted"), "{operators}");
        assert!(operators.contains(folder.to_str().unwrap()) && operators.contains("init --new"), "{operators}");
    }
    let told = ToolError::from(desk.create(requirement("lost"), 0, None).await.unwrap_err());
    assert_eq!(told.kind, ErrorKind::Io);
    assert!(told.message.contains("state folder") && told.message.contains("nothing was changed"), "{told:?}");
    assert!(!format!("{} {:?}", told.message, told.hint).contains(folder.to_str().unwrap()), "{told:?}");
    let started = here.store.audit().append(entry(here.project, Event::Started, "lost")).await.unwrap_err();
    assert_eq!(started.outage(), Some(Outage::Moved), "{started}");
    assert!(here.store.reader().verify_audit(here.project).await.is_err());
}

/// Rules: 002.77.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_folder_that_was_moved_stops_reads_and_writes_until_it_is_back() {
    let place = Place::sqlite();
    let folder = folder_of(&place);
    let here = place.room().await;
    here.desk().create(requirement("first"), 0, None).await.unwrap();
    let elsewhere = folder.with_file_name("elsewhere");
    std::fs::rename(&folder, &elsewhere).unwrap();
    is_refused(&here, &folder).await;
    // Nor is a database that somebody begins in its place taken for it.
    let other = place.room().await;
    other.desk().create(requirement("another database"), 0, None).await.unwrap();
    is_refused(&here, &folder).await;
    other.store.close().await.unwrap();
    remove(&folder);
    std::fs::rename(&elsewhere, &folder).unwrap();
    assert_eq!(here.desk().get::<Requirement>("REQ-001").await.unwrap().content.title, "first");
    assert_eq!(here.desk().create(requirement("second"), 0, None).await.unwrap().id, "REQ-002");
    here.store.audit().append(entry(here.project, Event::Started, "back")).await.unwrap();
    here.store.audit().append(entry(here.project, Event::Finished, "back")).await.unwrap();
    here.store.close().await.unwrap();
    assert!(place.verify().await.problems.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_folder_that_was_deleted_stops_reads_and_writes() {
    let place = Place::sqlite();
    let folder = folder_of(&place);
    let here = place.room().await;
    here.desk().create(requirement("first"), 0, None).await.unwrap();
    remove(&folder);
    is_refused(&here, &folder).await;
    assert!(!folder.exists(), "and nothing is made in its place");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_under_way_when_the_folder_goes_does_not_happen() {
    let place = Place::sqlite();
    let folder = folder_of(&place);
    let here = place.room().await;
    here.desk().create(requirement("first"), 0, None).await.unwrap();
    let elsewhere = folder.with_file_name("elsewhere");
    let moves = |content: &mut Requirement| -> Result<(), RecordError> {
        content.title = "second".to_owned();
        Ok(std::fs::rename(&folder, &elsewhere)?)
    };
    let refused = here.desk().update("REQ-001", &Edit::default(), moves).await.map(drop);
    assert!(said(refused).contains("was moved or deleted"));
    std::fs::rename(&elsewhere, &folder).unwrap();
    assert_eq!(here.desk().get::<Requirement>("REQ-001").await.unwrap().content.title, "first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_known_to_have_been_is_not_begun_anew() {
    let place = Place::sqlite();
    let folder = folder_of(&place);
    let missing = async || {
        Store::open_known(
            &folder,
            place.clock.clone(),
            toolhost_testkit::SUBJECTS,
            toolhost_contract::Durability::default(),
        )
        .await
        .map(drop)
        .unwrap_err()
    };
    assert!(matches!(missing().await, Error::Missing { .. }));
    assert!(!folder.exists(), "and nothing is made in its place");
    place.room().await.store.close().await.unwrap();
    Store::open_known(
        &folder,
        place.clock.clone(),
        toolhost_testkit::SUBJECTS,
        toolhost_contract::Durability::default(),
    )
    .await
    .unwrap()
    .close()
    .await
    .unwrap();
    // What SQLite would take for a database that is about to be made.
    for file in ["toolhost.db", "toolhost.db-wal", "toolhost.db-shm"] {
        let _ = std::fs::remove_file(folder.join(file));
    }
    std::fs::write(folder.join("toolhost.db"), "").unwrap();
    let refused = missing().await;
    assert!(matches!(refused, Error::Missing { .. }), "{refused}");
    assert!(refused.to_string().contains("init --new"), "{refused}");
}

#[expect(clippy::disallowed_methods, reason = "a state folder of this test's own, two levels deep")]
fn remove(folder: &std::path::Path) {
    std::fs::remove_dir_all(folder).unwrap();
}
