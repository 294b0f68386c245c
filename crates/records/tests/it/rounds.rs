//! Iterations: what a new one takes over, and which one the project is in.

use toolhost_records::{Artifact, Claimant};
use toolhost_records::{
    ArtifactKind, Edit, Feature, Inheritance, Kind, NewIteration, ProjectRecords, Query, RecordId, Requirement, Status,
    Stored, Task,
};
use toolhost_testkit::database::things::{artifact, component, feature, insight, milestone, requirement, task_of};
use toolhost_testkit::database::{checkup, engines, everything, said};

fn id(text: &str) -> RecordId {
    RecordId::parse(text).unwrap()
}

async fn begin(desk: &ProjectRecords, base: Option<&str>, inheritance: Inheritance) -> i64 {
    let base = base.map(|text| id(text).number);
    let new = NewIteration { title: "round".to_owned(), description: String::new(), base, inheritance };
    desk.begin_iteration(&new).await.unwrap().record_id().unwrap().number
}

/// The first iteration, with a plan, an artifact and a memory, beside a requirement of the whole project.
async fn planned(desk: &ProjectRecords) {
    assert_eq!(begin(desk, None, Inheritance::Full).await, 1);
    desk.create(requirement("of the project"), 0, None).await.unwrap();
    desk.create(requirement("of the round"), 1, None).await.unwrap();
    desk.create(feature("f", &["REQ-001", "REQ-002"], &[]), 1, None).await.unwrap();
    desk.create(feature("g", &["REQ-002"], &["FEAT-001"]), 1, None).await.unwrap();
    desk.create(component("c", &["FEAT-001", "FEAT-002"]), 1, None).await.unwrap();
    desk.create(task_of("one", "FEAT-001", "COMP-001", &[]), 1, None).await.unwrap();
    desk.create(task_of("two", "FEAT-002", "COMP-001", &["TASK-001"]), 1, None).await.unwrap();
    desk.create(milestone("m", &["FEAT-002"]), 1, None).await.unwrap();
    desk.create(artifact(ArtifactKind::Prd, "first"), 1, None).await.unwrap();
    let rewrite = |artifact: &mut Artifact| {
        artifact.content = "second".to_owned();
        Ok(())
    };
    desk.update("ART-001", &Edit::default(), rewrite).await.unwrap();
    desk.create(insight("learnt", toolhost_records::Importance::Normal), 1, None).await.unwrap();
}

/// What an iteration holds.
async fn of(desk: &ProjectRecords, iteration: i64) -> Vec<Stored> {
    everything(desk).await.into_values().filter(|record| record.iteration == iteration).collect()
}

fn names(records: &[Stored]) -> Vec<String> {
    records.iter().map(|record| record.id.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_iteration_takes_over_what_it_says_and_no_more() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        planned(&desk).await;
        let before = of(&desk, 1).await;
        assert_eq!(begin(&desk, Some("ITER-001"), Inheritance::None).await, 2);
        assert!(of(&desk, 2).await.is_empty(), "{place}");
        assert_eq!(begin(&desk, Some("ITER-001"), Inheritance::Partial).await, 3);
        let plan = ["REQ-003", "FEAT-003", "FEAT-004", "COMP-002", "MILE-002", "TASK-003", "TASK-004"];
        assert_eq!(names(&of(&desk, 3).await), plan, "{place}");
        assert_eq!(begin(&desk, Some("ITER-001"), Inheritance::Full).await, 4);
        let full = ["REQ-004", "FEAT-005", "FEAT-006", "COMP-003", "MILE-003", "TASK-005", "TASK-006", "ART-002"];
        assert_eq!(names(&of(&desk, 4).await), full, "{place}");
        assert_eq!(desk.get::<Artifact>("ART-002").await.unwrap().content.content, "second", "{place}: the latest");
        assert_eq!(of(&desk, 1).await, before, "{place}: the base is as it was");
        let copy = desk.history(id("REQ-003"), None, 10).await.unwrap();
        assert_eq!((copy.len(), copy[0].change.as_str()), (1, "inherit"));
        assert_eq!(copy[0].why.as_deref(), Some("as REQ-002 was"));
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_name_copies_and_what_is_of_the_project_stays_named() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        planned(&desk).await;
        begin(&desk, Some("ITER-001"), Inheritance::Partial).await;
        let first = desk.get::<Feature>("FEAT-003").await.unwrap();
        assert_eq!(first.content.requirement_ids, ["REQ-001", "REQ-003"], "{place}");
        assert_eq!(desk.get::<Feature>("FEAT-004").await.unwrap().content.dependencies, ["FEAT-003"]);
        let task = desk.get::<Task>("TASK-004").await.unwrap();
        assert_eq!(task.content.dependencies, ["TASK-003"], "{place}");
        assert_eq!(task.content.feature_id.as_deref(), Some("FEAT-004"));
        assert_eq!(task.content.component_id.as_deref(), Some("COMP-002"));
        let ready = desk.ready(Some(2), None, 10).await.unwrap().items;
        assert_eq!(ready.len(), 1, "{place}: the copy waits for the copy");
        // The two lives are apart.
        let nobody = Claimant { key: "k".to_owned(), name: "n".to_owned() };
        for to in [Status::InProgress, Status::Completed] {
            desk.move_task("TASK-001", to, None, &nobody, &Edit::default()).await.unwrap();
        }
        assert_eq!(desk.get_any(id("TASK-004")).await.unwrap().waits_on, 1, "{place}");
        // Done work is taken over as done.
        begin(&desk, Some("ITER-001"), Inheritance::Partial).await;
        assert_eq!(desk.get::<Task>("TASK-005").await.unwrap().content.status, Status::Completed);
        assert_eq!(desk.get_any(id("TASK-006")).await.unwrap().waits_on, 0, "{place}");
        desk.delete(id("REQ-003"), &Edit::default(), true).await.unwrap();
        assert_eq!(desk.get::<Requirement>("REQ-002").await.unwrap().version, 1, "{place}");
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_somebody_holds_is_free_to_be_taken_over_in_its_copy() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        planned(&desk).await;
        let ann = Claimant { key: "k".to_owned(), name: "ann".to_owned() };
        desk.claim(Some(id("TASK-001")), None, &ann, 1000).await.unwrap().unwrap();
        begin(&desk, Some("ITER-001"), Inheritance::Partial).await;
        let copy = desk.get::<Task>("TASK-003").await.unwrap();
        assert_eq!(copy.content.status, Status::InProgress, "{place}");
        let bob = Claimant { key: "b".to_owned(), name: "bob".to_owned() };
        let claim = desk.claim(Some(id("TASK-003")), None, &bob, 1000).await.unwrap().unwrap();
        assert!(claim.taken_over, "{place}");
        assert!(desk.get::<Task>("TASK-001").await.unwrap().holder.is_some());
    }
}

/// Rules: 002.46, 002.67.
#[tokio::test(flavor = "multi_thread")]
async fn the_project_is_in_the_iteration_that_was_begun_or_entered_last() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        assert_eq!(desk.current_iteration().await.unwrap(), 0, "{place}");
        for number in 1..=3 {
            begin(&desk, None, Inheritance::None).await;
            assert_eq!(desk.current_iteration().await.unwrap(), number, "{place}");
        }
        desk.enter_iteration(id("ITER-002")).await.unwrap();
        assert_eq!(desk.current_iteration().await.unwrap(), 2, "{place}");
        let refused = desk.enter_iteration(id("ITER-009")).await;
        assert_eq!(said(refused), "there is no iteration `ITER-009` in this project");
        desk.create(requirement("r"), 0, None).await.unwrap();
        assert!(desk.enter_iteration(id("REQ-001")).await.is_err(), "{place}: a requirement is none");
        let base = NewIteration {
            title: "t".to_owned(),
            description: String::new(),
            base: Some(9),
            inheritance: Inheritance::Full,
        };
        let refused = desk.begin_iteration(&base).await;
        assert_eq!(said(refused), "baseIterationId: there is no iteration `ITER-009` in this project");
        assert_eq!(desk.current_iteration().await.unwrap(), 2, "{place}: nothing was changed");
        let next = here.next_door(&place.workspace().join("next")).await;
        assert_eq!(next.current_iteration().await.unwrap(), 0, "{place}: each project is in its own");
        let all = desk.list_any(Kind::Iteration, &Query { limit: 10, ..Query::default() }).await.unwrap().items;
        assert_eq!(all.len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_that_others_build_on_stays() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        begin(&desk, None, Inheritance::None).await;
        begin(&desk, Some("ITER-001"), Inheritance::None).await;
        for cascade in [false, true] {
            let refused = desk.delete(id("ITER-001"), &Edit::default(), cascade).await;
            assert_eq!(said(refused), "ITER-001 is used by ITER-002", "{place}");
        }
        assert_eq!(checkup(&desk).await, 2);
    }
}
