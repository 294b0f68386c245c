//! Export and import: nothing is lost on the way, between the engines too, and an import happens whole or not at all.

use serde_json::{Value, json};
use toolhost_records::{
    Again, ArtifactKind, Claimant, DocumentType, Draft, Edit, Extent, Importance, Inheritance, Issue, Iteration,
    IterationStatus, Kind, NewIteration, ProjectRecords, RecordError, RecordId, Requirement, Status, Task,
};
use toolhost_testkit::Seed;
use toolhost_testkit::database::things::{
    artifact, comment, component, decision, document, feature, insight, issue, learning, milestone, pattern, persona,
    requirement, task, task_of, ticket,
};
use toolhost_testkit::database::{Place, checkup, engines, everything, exported, said};

fn id(text: &str) -> RecordId {
    RecordId::parse(text).unwrap()
}

fn nobody() -> Claimant {
    Claimant { key: "k".to_owned(), name: "ann ∂".to_owned() }
}

async fn iteration(desk: &ProjectRecords, base: Option<&str>, inheritance: Inheritance) -> i64 {
    let new = NewIteration {
        title: "round".to_owned(),
        description: String::new(),
        base: base.map(|text| id(text).number),
        inheritance,
    };
    desk.begin_iteration(&new).await.unwrap().record_id().unwrap().number
}

/// A project with all kinds of records, some deleted, some held, in two iterations.
async fn lived_in(place: &Place, desk: &ProjectRecords) {
    let mut seed = Seed::of_this_run();
    let first = iteration(desk, None, Inheritance::None).await;
    desk.move_iteration("ITER-001", IterationStatus::Running, &Edit::default(), false).await.unwrap();
    for n in 0..12 {
        place.clock.advance(std::time::Duration::from_millis(seed.below(100_000)));
        let text = format!("{n} “ü” 数据 \u{1f980} \\ \" {}", seed.below(1_000_000));
        desk.create(requirement(&text), first, Some("because")).await.unwrap();
        let some = |seed: &mut Seed, prefix: &str| format!("{prefix}-{:03}", 1 + seed.below(n + 1));
        desk.create(feature(&text, &[&some(&mut seed, "REQ")], &[]), first, None).await.unwrap();
        desk.create(component(&text, &[&some(&mut seed, "FEAT")]), first, None).await.unwrap();
        desk.create(milestone(&text, &[&some(&mut seed, "FEAT")]), first, None).await.unwrap();
        let (of, by, on) = (some(&mut seed, "FEAT"), some(&mut seed, "COMP"), format!("TASK-{n:03}"));
        let on: Vec<&str> = if n == 0 { vec![] } else { vec![&on] };
        desk.create(task_of(&text, &of, &by, &on), first, None).await.unwrap();
        desk.create(ticket(&text), 0, None).await.unwrap();
        desk.create(comment(&some(&mut seed, "TKT"), &text), 0, None).await.unwrap();
        desk.create(persona(&text), 0, None).await.unwrap();
        desk.create(insight(&text, Importance::Critical), first, None).await.unwrap();
        desk.create(issue(&text), first, None).await.unwrap();
        desk.create(learning(&text), 0, None).await.unwrap();
        desk.create(decision(&text, &text, Some(&some(&mut seed, "INS"))), 0, None).await.unwrap();
        desk.create(pattern(&text, &text, Some(&some(&mut seed, "LRN"))), 0, None).await.unwrap();
    }
    desk.create(artifact(ArtifactKind::Prd, "# prd\n\n"), first, None).await.unwrap();
    desk.create(document("TKT-001", DocumentType::Design, "# design"), 0, None).await.unwrap();
    for to in [Status::InProgress, Status::Completed] {
        desk.move_task("TASK-001", to, None, &nobody(), &Edit::default()).await.unwrap();
    }
    desk.claim(Some(id("TASK-002")), None, &nobody(), 5000).await.unwrap();
    for gone in ["REQ-003", "FEAT-005", "TKT-004", "INS-002", "PERS-012"] {
        desk.delete(id(gone), &Edit { expected_version: None, why: Some("no".to_owned()) }, true).await.unwrap();
    }
    iteration(desk, Some("ITER-001"), Inheritance::Full).await;
}

async fn import(desk: &ProjectRecords, lines: &[String]) -> Result<toolhost_records::Imported, RecordError> {
    desk.import(lines.iter().cloned().map(Ok), Extent::Whole).await
}

/// Lines that are no whole export.
async fn import_part(desk: &ProjectRecords, lines: &[String]) -> Result<toolhost_records::Imported, RecordError> {
    desk.import(lines.iter().cloned().map(Ok), Extent::Partial).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_comes_back_to_the_last_byte_on_either_engine() {
    let mut first: Option<Vec<String>> = None;
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        lived_in(&place, &desk).await;
        let lines = exported(&desk).await;
        let records = checkup(&desk).await;
        // The same life on the other engine is told in the same words.
        assert!(first.get_or_insert_with(|| lines.clone()) == &lines, "{place}");
        for other in engines() {
            let there = other.room().await.desk();
            let imported = import(&there, &lines).await.unwrap();
            assert_eq!(imported.records.values().sum::<usize>(), records, "from {place} to {other}");
            assert!(exported(&there).await == lines, "from {place} to {other}");
            assert_eq!(checkup(&there).await, records);
            assert_eq!(there.current_iteration().await.unwrap(), 2, "{other}");
            let again = import(&there, &lines).await.unwrap();
            assert_eq!((again.unchanged, again.versions), (records, 0), "the second time, {other}");
            assert!(again.records.is_empty());
            assert!(exported(&there).await == lines, "the second time, {other}");
            // It goes on living there.
            let held = there.get::<Task>("TASK-002").await.unwrap();
            assert_eq!(held.holder.unwrap().name, "ann ∂");
            there.move_task("TASK-002", Status::Completed, None, &nobody(), &Edit::default()).await.unwrap();
            let gone = there.history(id("REQ-003"), None, 10).await.unwrap()[0].version;
            there.restore(id("REQ-003"), gone, &Edit::default()).await.unwrap();
            checkup(&there).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_may_come_in_any_order() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        lived_in(&place, &desk).await;
        let mut lines = exported(&desk).await;
        let there = here.next_door(&place.workspace().join("next")).await;
        let expected = lines.clone();
        lines.reverse();
        lines.insert(3, " \t ".to_owned());
        import_part(&there, &lines).await.unwrap();
        assert!(exported(&there).await == expected, "{place}");
        checkup(&there).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_from_what_is_here_stops_the_whole_import() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        for n in 1..=3 {
            desk.create(requirement(&n.to_string()), 0, None).await.unwrap();
        }
        let lines = exported(&desk).await;
        let there = here.next_door(&place.workspace().join("next")).await;
        import_part(&there, &lines[..3]).await.unwrap();
        let rename = |requirement: &mut Requirement| {
            requirement.title = "otherwise".to_owned();
            Ok(())
        };
        there.update("REQ-001", &Edit::default(), rename).await.unwrap();
        let before = exported(&there).await;
        let refused = said(import(&there, &lines).await);
        assert!(refused.ends_with("there is already REQ-001"), "{place}: {refused}");
        assert!(exported(&there).await == before, "{place}: the others have not come either");
        // The same id with another past.
        let third = here.next_door(&place.workspace().join("third")).await;
        third.create(requirement("another"), 0, None).await.unwrap();
        third.delete(id("REQ-001"), &Edit::default(), false).await.unwrap();
        let before = exported(&third).await;
        let histories: Vec<String> = lines.iter().filter(|line| line.contains("history")).cloned().collect();
        assert!(said(import_part(&third, &histories).await).ends_with("there is already REQ-001"), "{place}");
        assert!(import(&third, &lines).await.is_err(), "{place}");
        assert!(exported(&third).await == before, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_here_is_not_brought_back_by_an_old_export() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(requirement("one"), 0, None).await.unwrap();
        let lines = exported(&desk).await;
        desk.delete(id("REQ-001"), &Edit::default(), false).await.unwrap();
        let before = exported(&desk).await;
        let refused = said(import(&desk, &lines).await);
        assert_eq!(
            refused, "REQ-001: it comes at version 1, which is not what its history here ends with (2)",
            "{place}"
        );
        assert!(exported(&desk).await == before, "{place}");
        desk.restore(id("REQ-001"), 1, &Edit::default()).await.unwrap();
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_without_its_history_begins_one() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let line = json!({
            "line": "record", "id": "REQ-004", "version": 7, "iteration": 0, "createdAtMs": 1, "updatedAtMs": 2,
            "content": serde_json::to_value(requirement("alone")).unwrap(),
        });
        import_part(&desk, &[line.to_string()]).await.unwrap();
        checkup(&desk).await;
        let rename = |requirement: &mut Requirement| {
            requirement.title = "otherwise".to_owned();
            Ok(())
        };
        assert_eq!(desk.update("REQ-004", &Edit::default(), rename).await.unwrap().version, 8, "{place}");
        checkup(&desk).await;
    }
}

fn draft(key: &str, kind: Kind, content: Value) -> Draft {
    Draft { key: key.to_owned(), kind, iteration: None, content, created_at_ms: Some(5) }
}

fn of<T: serde::Serialize>(content: T) -> Value {
    serde_json::to_value(content).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_other_systems_get_new_ids_and_keep_their_ties() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(task("here before", &[]), 0, None).await.unwrap();
        let round = Iteration {
            title: "their round".to_owned(),
            description: String::new(),
            status: IterationStatus::Running,
            inheritance: Inheritance::None,
            base_iteration_id: None,
            started_at_ms: None,
            completed_at_ms: None,
        };
        let done = Task { status: Status::Completed, ..task("done", &[]) };
        let lost = Task { unknown_dependencies: vec!["bd-99".to_owned()], ..task("lost", &["bd-1"]) };
        let of_round = |key: &str, content: Task| Draft {
            iteration: Some("it".to_owned()),
            ..draft(key, Kind::Task, of(content))
        };
        let drafts = vec![
            of_round("bd-1", done),
            of_round("bd-2", task("in a circle", &["bd-3"])),
            of_round("bd-3", task("in a circle too", &["bd-2", "bd-1"])),
            of_round("bd-4", lost),
            draft("it", Kind::Iteration, of(round)),
        ];
        let imported = desk.import_drafts(drafts, None, "from beads", Again::Doubles).await.unwrap();
        assert_eq!(imported.records.get("task"), Some(&4), "{place}");
        assert_eq!(desk.current_iteration().await.unwrap(), 1, "{place}");
        let third = desk.get::<Task>("TASK-004").await.unwrap();
        assert_eq!(
            (third.content.dependencies, third.iteration),
            (vec!["TASK-003".to_owned(), "TASK-002".to_owned()], Some(1))
        );
        let first = desk.history(id("TASK-002"), None, 10).await.unwrap();
        assert_eq!((first.len(), first[0].change.as_str(), first[0].why.as_deref()), (1, "import", Some("from beads")));
        let ready = desk.ready(None, None, 10).await.unwrap().items;
        let ready: Vec<&str> = ready.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(ready, ["TASK-001", "TASK-005"], "{place}: a circle is never ready");
        let graph = desk.graph().await.unwrap();
        assert_eq!(
            (graph.edges, graph.unknown),
            (vec![(3, 4), (4, 2), (4, 3), (5, 2)].into_iter().collect(), vec![(5, "bd-99".to_owned())])
        );
        // Who lives with a circle may change what has nothing to do with it, and may leave it.
        let rename = |task: &mut Task| {
            task.title = "renamed".to_owned();
            Ok(())
        };
        desk.update::<Task>("TASK-003", &Edit::default(), rename).await.unwrap();
        let widen = |task: &mut Task| {
            task.dependencies.push("TASK-003".to_owned());
            Ok(())
        };
        desk.update::<Task>("TASK-001", &Edit::default(), widen).await.unwrap();
        let leave = |task: &mut Task| {
            task.dependencies.clear();
            Ok(())
        };
        desk.update::<Task>("TASK-003", &Edit::default(), leave).await.unwrap();
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drafts_that_do_not_fit_change_nothing() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(task("here before", &[]), 0, None).await.unwrap();
        let before = exported(&desk).await;
        let fine = || draft("a", Kind::Task, of(task("fine", &[])));
        let resolved = Issue { resolved: true, ..issue("x\0") };
        let cases = [
            (vec![fine(), fine()], "a: is there twice"),
            (vec![fine(), draft("b", Kind::Task, of(task("t", &["nowhere"])))], "is not the id of a task"),
            (vec![fine(), draft("b", Kind::Task, of(task("t", &["TASK-777"])))], "there is no task `TASK-777`"),
            (vec![fine(), draft("b", Kind::Feature, of(task("t", &[])))], "the content of a feature"),
            (vec![fine(), draft("b", Kind::Task, json!([]))], "the content of a task"),
            (vec![fine(), draft("b", Kind::Issue, of(resolved))], "zero character"),
        ];
        for (drafts, expected) in cases {
            let refused = said(desk.import_drafts(drafts, None, "why", Again::Doubles).await);
            assert!(refused.contains(expected), "{place}: {refused}");
            assert!(exported(&desk).await == before, "{place}: {refused}");
        }
        assert_eq!(desk.import_drafts(Vec::new(), None, "why", Again::Doubles).await.unwrap().records.len(), 0);
        assert_eq!(everything(&desk).await.len(), 1, "{place}");
    }
}
