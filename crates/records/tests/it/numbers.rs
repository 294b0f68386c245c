//! Ids: no number is ever given twice, and each project counts for itself.

use toolhost_records::{Edit, Extent, Kind, RecordId, Requirement};
use toolhost_testkit::database::things::{feature, requirement, task, ticket};
use toolhost_testkit::database::{checkup, engines, exported};

fn id(text: &str) -> RecordId {
    RecordId::parse(text).unwrap()
}

/// Rules: 002.57.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_is_never_given_twice() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let new = async || desk.create(requirement("one"), 0, None).await.unwrap().id;
        assert_eq!(new().await, "REQ-001");
        assert_eq!(new().await, "REQ-002");
        desk.delete(id("REQ-002"), &Edit::default(), false).await.unwrap();
        assert_eq!(new().await, "REQ-003", "a deleted one's number is not given again");
        for number in ["REQ-001", "REQ-003"] {
            desk.delete(id(number), &Edit::default(), false).await.unwrap();
        }
        assert_eq!(new().await, "REQ-004", "nor is it when none is left");
        desk.restore(id("REQ-002"), 1, &Edit::default()).await.unwrap();
        assert_eq!(new().await, "REQ-005", "nor after one came back");
        // What is refused has taken no number, and what failed later has given it back.
        assert!(desk.create(feature("f", &["REQ-777"], &[]), 0, None).await.is_err());
        assert_eq!(desk.create(feature("f", &["REQ-005"], &[]), 0, None).await.unwrap().id, "FEAT-001");
        drop(desk);
        here.store.close().await.unwrap();
        let again = place.room().await;
        assert_eq!(again.desk().create(requirement("six"), 0, None).await.unwrap().id, "REQ-006", "nor later on");
        checkup(&again.desk()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_go_on_where_an_import_ended() {
    for place in engines() {
        let here = place.room().await;
        let (desk, next) = (here.desk(), here.next_door(&place.workspace().join("next")).await);
        for n in 0..5 {
            desk.create(requirement(&format!("r{n}")), 0, None).await.unwrap();
        }
        desk.delete(id("REQ-005"), &Edit::default(), false).await.unwrap();
        next.import(exported(&desk).await.into_iter().map(Ok), Extent::Whole).await.unwrap();
        assert_eq!(next.create(requirement("after"), 0, None).await.unwrap().id, "REQ-006", "not the deleted one's");
        next.import(exported(&desk).await.into_iter().map(Ok), Extent::Whole).await.unwrap();
        assert_eq!(next.create(requirement("after"), 0, None).await.unwrap().id, "REQ-007", "nor lower than it was");
        // A record whose counter was left out has its number taken all the same.
        let lone: Vec<String> = exported(&desk).await.into_iter().filter(|line| !line.contains("counter")).collect();
        let third = here.next_door(&place.workspace().join("third")).await;
        third.import(lone.into_iter().map(Ok), Extent::Partial).await.unwrap();
        assert_eq!(third.create(requirement("after"), 0, None).await.unwrap().id, "REQ-006");
        checkup(&next).await;
        checkup(&third).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_projects_count_and_keep_apart() {
    for place in engines() {
        let here = place.room().await;
        let (desk, next) = (here.desk(), here.next_door(&place.workspace().join("next")).await);
        desk.create(requirement("mine"), 0, None).await.unwrap();
        assert_eq!(next.create(requirement("theirs"), 0, None).await.unwrap().id, "REQ-001");
        assert_eq!(next.create(requirement("theirs too"), 0, None).await.unwrap().id, "REQ-002");
        assert_eq!(desk.get::<Requirement>("REQ-001").await.unwrap().content.title, "mine");
        assert!(desk.get::<Requirement>("REQ-002").await.is_err(), "it is in the other project");
        assert!(desk.history(id("REQ-002"), None, 1).await.is_err());
        assert!(desk.create(feature("f", &["REQ-002"], &[]), 0, None).await.is_err(), "nothing refers across projects");
        assert!(desk.delete(id("REQ-002"), &Edit::default(), true).await.is_err());
        assert!(desk.restore(id("REQ-002"), 1, &Edit::default()).await.is_err());
        assert_eq!((checkup(&desk).await, checkup(&next).await), (1, 2), "{place}");
    }
}

/// Rules: 002.60.
#[tokio::test(flavor = "multi_thread")]
async fn each_kind_counts_for_itself_and_past_three_digits() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        assert_eq!(desk.create(task("t", &[]), 0, None).await.unwrap().id, "TASK-001");
        assert_eq!(desk.create(ticket("t"), 0, None).await.unwrap().id, "TKT-001");
        let counter = r#"{"line":"counter","kind":"requirement","value":999}"#;
        desk.import(std::iter::once(Ok(counter.to_owned())), Extent::Partial).await.unwrap();
        assert_eq!(desk.create(requirement("r"), 0, None).await.unwrap().id, "REQ-1000", "{place}");
        assert_eq!(desk.get::<Requirement>("req-1000").await.unwrap().id, "REQ-1000");
        assert_eq!(id("REQ-0001000"), RecordId { kind: Kind::Requirement, number: 1000 });
    }
}
