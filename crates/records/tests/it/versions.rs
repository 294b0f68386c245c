//! Versions: nobody overwrites what they have not read, and whatever was can be seen and brought back.

use std::time::Duration;

use toolhost_contract::{ErrorKind, ToolError};
use toolhost_records::{
    Claimant, Edit, Feature, Learning, ProjectRecords, RecordError, RecordId, Requirement, Saved, Status, Task,
};
use toolhost_testkit::database::things::{feature, learning, persona, requirement, task};
use toolhost_testkit::database::{checkup, engines, said};

fn id(text: &str) -> RecordId {
    RecordId::parse(text).unwrap()
}

fn at(version: i64) -> Edit {
    Edit { expected_version: Some(version), why: None }
}

fn because(why: &str) -> Edit {
    Edit { expected_version: None, why: Some(why.to_owned()) }
}

async fn retitle(desk: &ProjectRecords, edit: &Edit, title: &str) -> Result<Saved<Requirement>, RecordError> {
    let change = |requirement: &mut Requirement| {
        requirement.title = title.to_owned();
        Ok(())
    };
    desk.update("REQ-001", edit, change).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_changed_since_it_was_read_is_not_overwritten() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(requirement("one"), 0, None).await.unwrap();
        retitle(&desk, &at(1), "two").await.unwrap();
        for stale in [1, 0, -1, 3, i64::MAX, i64::MIN] {
            let error = retitle(&desk, &at(stale), "three").await.unwrap_err();
            assert_eq!(error.to_string(), format!("REQ-001 has changed: it is at version 2, not {stale}"));
            let told: ToolError = error.into();
            assert_eq!((told.kind, told.details.unwrap()["version"].as_i64()), (ErrorKind::Conflict, Some(2)));
            assert!(desk.delete(id("REQ-001"), &at(stale), true).await.is_err());
            assert!(desk.restore(id("REQ-001"), 1, &at(stale)).await.is_err());
        }
        let now = desk.get::<Requirement>("REQ-001").await.unwrap();
        assert_eq!((now.version, now.content.title.as_str()), (2, "two"), "{place}");
        assert_eq!(desk.history(id("REQ-001"), None, 10).await.unwrap().len(), 2);
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_read_the_same_version_one_writes() {
    for place in engines() {
        let here = place.room().await;
        here.desk().create(requirement("one"), 0, None).await.unwrap();
        let mut writers = tokio::task::JoinSet::new();
        for n in 0..20 {
            let desk = here.desk();
            writers.spawn(async move { retitle(&desk, &at(1), &format!("by {n}")).await.is_ok() });
        }
        let won = writers.join_all().await.into_iter().filter(|won| *won).count();
        assert_eq!(won, 1, "{place}");
        assert_eq!(here.desk().get::<Requirement>("REQ-001").await.unwrap().version, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_nothing_makes_no_version() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let first = desk.create(requirement("one"), 0, None).await.unwrap();
        place.clock.advance(Duration::from_secs(5));
        assert_eq!(retitle(&desk, &at(1), "one").await.unwrap(), first, "{place}");
        let failing = |requirement: &mut Requirement| {
            requirement.title = "lost".to_owned();
            Err(RecordError::LosesText { old: 10, new: 1 })
        };
        assert!(desk.update("REQ-001", &Edit::default(), failing).await.is_err());
        assert_eq!(desk.get::<Requirement>("REQ-001").await.unwrap(), first);
        assert_eq!(desk.history(id("REQ-001"), None, 10).await.unwrap().len(), 1);
        let restored = desk.restore(id("REQ-001"), 1, &Edit::default()).await.unwrap();
        assert_eq!(restored.version, 1, "it is what it was");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn history_tells_who_when_why_and_what() {
    for place in engines() {
        let here = place.room().await;
        let began = here.desk().now_ms();
        here.desk_of("ann", "c1").create(requirement("one"), 0, Some("we need it")).await.unwrap();
        place.clock.advance(Duration::from_secs(1));
        retitle(&here.desk_of("bob", "c2"), &because("clearer"), "two").await.unwrap();
        place.clock.advance(Duration::from_secs(1));
        here.desk_of("cid", "c3").delete(id("REQ-001"), &because("not needed"), false).await.unwrap();
        place.clock.advance(Duration::from_secs(1));
        here.desk_of("dan", "c4").restore(id("REQ-001"), 1, &Edit::default()).await.unwrap();
        let desk = here.desk();
        let history = desk.history(id("REQ-001"), None, 10).await.unwrap();
        let told: Vec<_> = history
            .iter()
            .map(|one| {
                let title = one.content["title"].as_str().unwrap();
                (
                    one.version,
                    one.at_ms - began,
                    one.by.as_str(),
                    one.call_id.as_str(),
                    one.change.as_str(),
                    one.why.as_deref(),
                    title,
                )
            })
            .collect();
        let expected = [
            (4, 3000, "dan", "c4", "restore", Some("version 1"), "one"),
            (3, 2000, "cid", "c3", "delete", Some("not needed"), "two"),
            (2, 1000, "bob", "c2", "update", Some("clearer"), "two"),
            (1, 0, "ann", "c1", "create", Some("we need it"), "one"),
        ];
        assert_eq!(told, expected, "{place}");
        assert!(history.iter().all(|one| one.user_id == here.user));
        let pages: Vec<i64> =
            desk.history(id("REQ-001"), Some(4), 2).await.unwrap().iter().map(|v| v.version).collect();
        assert_eq!(pages, [3, 2]);
        assert_eq!(said(desk.version(id("REQ-001"), 9).await), "REQ-001 has no version 9");
        for nonsense in [0, -1, i64::MIN, i64::MAX] {
            assert!(desk.version(id("REQ-001"), nonsense).await.is_err(), "{nonsense}");
        }
        assert_eq!(
            said(desk.history(id("REQ-002"), None, 10).await),
            "there is no requirement `REQ-002` in this project"
        );
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_names_nothing_that_is_gone() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(requirement("one"), 0, None).await.unwrap();
        desk.create(requirement("two"), 0, None).await.unwrap();
        desk.create(feature("f", &["REQ-001"], &[]), 0, None).await.unwrap();
        let change = |feature: &mut Feature| {
            feature.requirement_ids = vec!["REQ-002".to_owned()];
            Ok(())
        };
        desk.update("FEAT-001", &Edit::default(), change).await.unwrap();
        desk.delete(id("REQ-001"), &Edit::default(), false).await.unwrap();
        let gone = "requirementIds: there is no requirement `REQ-001` in this project";
        assert_eq!(said(desk.restore(id("FEAT-001"), 1, &Edit::default()).await), gone, "{place}");
        desk.delete(id("FEAT-001"), &Edit::default(), false).await.unwrap();
        assert_eq!(said(desk.restore(id("FEAT-001"), 1, &Edit::default()).await), gone, "{place}");
        assert!(desk.get::<Feature>("FEAT-001").await.is_err(), "nothing came back");
        desk.restore(id("REQ-001"), 1, &Edit::default()).await.unwrap();
        let back = desk.restore(id("FEAT-001"), 1, &Edit::default()).await.unwrap();
        assert_eq!((back.version, back.body["requirementIds"][0].as_str()), (4, Some("REQ-001")));
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bringing_back_a_version_closes_no_circle() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(task("one", &[]), 0, None).await.unwrap();
        desk.create(task("two", &["TASK-001"]), 0, None).await.unwrap();
        let depend = async |on: &str, dependencies: &[&str]| {
            let dependencies = dependencies.iter().map(|id| (*id).to_owned()).collect();
            let change = |task: &mut Task| {
                task.dependencies = dependencies;
                Ok(())
            };
            desk.update::<Task>(on, &Edit::default(), change).await.unwrap()
        };
        depend("TASK-002", &[]).await;
        depend("TASK-001", &["TASK-002"]).await;
        let circle = "the dependencies would go in a circle: TASK-002 → TASK-001 → TASK-002";
        assert_eq!(said(desk.restore(id("TASK-002"), 1, &Edit::default()).await), circle, "{place}");
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_does_not_go_back_with_the_rest() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(task("one", &[]), 0, None).await.unwrap();
        desk.create(task("waits", &["TASK-001"]), 0, None).await.unwrap();
        let nobody = Claimant { key: "k".to_owned(), name: "n".to_owned() };
        for to in [Status::InProgress, Status::Completed] {
            desk.move_task("TASK-001", to, None, &nobody, &Edit::default()).await.unwrap();
        }
        let rename = |task: &mut Task| {
            task.title = "renamed".to_owned();
            Ok(())
        };
        desk.update::<Task>("TASK-001", &Edit::default(), rename).await.unwrap();
        let back = desk.restore(id("TASK-001"), 1, &Edit::default()).await.unwrap();
        assert_eq!((back.state.as_str(), back.body["title"].as_str()), ("completed", Some("one")), "{place}");
        assert_eq!(back.body["completedAtMs"], desk.now_ms(), "{place}: nor does the time it was completed");
        checkup(&desk).await;
        // Deleting it first is no way round the machine.
        desk.delete(id("TASK-001"), &Edit::default(), true).await.unwrap();
        let back = desk.restore(id("TASK-001"), 1, &Edit::default()).await.unwrap();
        assert_eq!(back.state, "completed", "{place}: what was completed stays so");
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_there_is_once_does_not_become_two() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(persona("ann"), 0, None).await.unwrap();
        assert_eq!(said(desk.create(persona("Ann"), 0, None).await), "there is already PERS-001", "{place}");
        desk.create(learning("tests find bugs"), 0, None).await.unwrap();
        desk.create(learning("sleep helps"), 0, None).await.unwrap();
        let same = |learning: &mut Learning| {
            learning.content = "Tests find bugs!".to_owned();
            Ok(())
        };
        let refused = desk.update::<Learning>("LRN-002", &Edit::default(), same).await;
        assert_eq!(said(refused), "there is already LRN-001", "{place}");
        desk.delete(id("LRN-001"), &Edit::default(), false).await.unwrap();
        desk.create(learning("tests find bugs"), 0, None).await.unwrap();
        let refused = desk.restore(id("LRN-001"), 1, &Edit::default()).await;
        assert_eq!(said(refused), "there is already LRN-003", "{place}");
        // It may change how it says it.
        desk.update::<Learning>("LRN-003", &Edit::default(), same).await.unwrap();
        checkup(&desk).await;
    }
}
