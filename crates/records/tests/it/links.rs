//! References: both ends are there, whatever is deleted; dependencies go in no circle, and who waits is known.

use toolhost_contract::{ErrorKind, ToolError};
use toolhost_records::{DocumentType, Edit, Feature, Kind, RecordError, RecordId, Task, chain_text};
use toolhost_testkit::database::things::{
    comment, component, decision, document, feature, insight, issue, learning, milestone, pattern, requirement, task,
    task_of, ticket,
};
use toolhost_testkit::database::{checkup, engines, everything, said};

fn id(text: &str) -> RecordId {
    RecordId::parse(text).unwrap()
}

fn ids(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_cannot_be_named() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let unknown = |field: &str, kind: &str, id: &str| format!("{field}: there is no {kind} `{id}` in this project");
        let refused = desk.create(feature("f", &["REQ-001"], &[]), 0, None).await;
        assert_eq!(said(refused), unknown("requirementIds", "requirement", "REQ-001"), "{place}");
        let refused = desk.create(feature("f", &[], &["FEAT-007"]), 0, None).await;
        assert_eq!(said(refused), unknown("dependencies", "feature", "FEAT-007"));
        let refused = desk.create(component("c", &["FEAT-001"]), 0, None).await;
        assert_eq!(said(refused), unknown("relatedFeatures", "feature", "FEAT-001"));
        let refused = desk.create(milestone("m", &["FEAT-001"]), 0, None).await;
        assert_eq!(said(refused), unknown("features", "feature", "FEAT-001"));
        let refused = desk.create(task("t", &["TASK-009"]), 0, None).await;
        assert_eq!(said(refused), unknown("dependencies", "task", "TASK-009"));
        let refused = desk.create(comment("TKT-001", "hm"), 0, None).await;
        assert_eq!(said(refused), unknown("ticketId", "ticket", "TKT-001"));
        let refused = desk.create(document("TKT-001", DocumentType::Design, "d"), 0, None).await;
        assert_eq!(said(refused), unknown("ticketId", "ticket", "TKT-001"));
        let refused = desk.create(decision("d", "d", Some("INS-001")), 0, None).await;
        assert_eq!(said(refused), unknown("sourceId", "insight", "INS-001"));
        let refused = desk.create(decision("d", "d", Some("REQ-001")), 0, None).await;
        assert!(said(refused).starts_with("sourceId: `REQ-001` is not the id of a"));
        desk.create(feature("f", &[], &[]), 0, None).await.unwrap();
        let refused = desk.create(task_of("t", "FEAT-001", "COMP-001", &[]), 0, None).await;
        assert_eq!(said(refused), unknown("componentId", "component", "COMP-001"));
        let name = |feature: &mut Feature| {
            feature.requirement_ids = ids(&["REQ-001"]);
            Ok(())
        };
        let refused = desk.update("FEAT-001", &Edit::default(), name).await;
        assert_eq!(said(refused), unknown("requirementIds", "requirement", "REQ-001"));
        assert_eq!(checkup(&desk).await, 1, "nothing else was kept");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_stays() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(requirement("r"), 0, None).await.unwrap();
        desk.create(feature("f1", &["REQ-001", "req-1"], &[]), 0, None).await.unwrap();
        desk.create(feature("f2", &["REQ-001"], &["FEAT-001"]), 0, None).await.unwrap();
        desk.create(component("c", &["FEAT-001"]), 0, None).await.unwrap();
        desk.create(task_of("t", "FEAT-001", "COMP-001", &[]), 0, None).await.unwrap();
        let before = everything(&desk).await;
        let error = desk.delete(id("REQ-001"), &Edit::default(), false).await.unwrap_err();
        assert_eq!(error.to_string(), "REQ-001 is used by FEAT-001, FEAT-002", "{place}");
        let told: ToolError = error.into();
        assert_eq!((told.kind, told.details.unwrap()["usedBy"][1].as_str()), (ErrorKind::Conflict, Some("FEAT-002")));
        let refused = desk.delete(id("FEAT-001"), &Edit::default(), false).await;
        assert_eq!(said(refused), "FEAT-001 is used by FEAT-002, COMP-001, TASK-001");
        assert_eq!(everything(&desk).await, before, "nothing was changed");
        for gone in ["TASK-001", "COMP-001", "FEAT-002", "FEAT-001", "REQ-001"] {
            desk.delete(id(gone), &Edit::default(), false).await.unwrap();
        }
        assert_eq!(checkup(&desk).await, 0);
        let refused = desk.delete(id("REQ-001"), &Edit::default(), true).await;
        assert_eq!(said(refused), "there is no requirement `REQ-001` in this project");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cascade_takes_along_or_unlinks_as_each_kind_says() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(requirement("r"), 0, None).await.unwrap();
        desk.create(feature("f1", &["REQ-001"], &[]), 0, None).await.unwrap();
        desk.create(feature("f2", &[], &["FEAT-001"]), 0, None).await.unwrap();
        desk.create(component("c", &["FEAT-001", "FEAT-002"]), 0, None).await.unwrap();
        desk.create(milestone("m", &["FEAT-001"]), 0, None).await.unwrap();
        desk.create(task_of("goes", "FEAT-001", "COMP-001", &[]), 0, None).await.unwrap();
        desk.create(task("stays", &["TASK-001"]), 0, None).await.unwrap();
        let why = Edit { expected_version: Some(1), why: Some("out of scope".to_owned()) };
        let mut removed = desk.delete(id("FEAT-001"), &why, true).await.unwrap();
        removed.deleted.sort();
        removed.unlinked.sort();
        assert_eq!(removed.deleted, ["FEAT-001", "TASK-001"], "{place}");
        assert_eq!(removed.unlinked, ["COMP-001", "FEAT-002", "MILE-001", "TASK-002"]);
        let all = everything(&desk).await;
        assert_eq!(all[&id("COMP-001")].body["relatedFeatures"].as_array().unwrap().len(), 1);
        assert_eq!((all[&id("TASK-002")].waits_on, all[&id("TASK-002")].version), (0, 2));
        let last = desk.history(id("FEAT-002"), None, 1).await.unwrap().remove(0);
        assert_eq!((last.change.as_str(), last.why.as_deref()), ("update", Some("FEAT-001 was deleted")));
        let last = desk.history(id("TASK-001"), None, 1).await.unwrap().remove(0);
        assert_eq!((last.version, last.change.as_str(), last.why.as_deref()), (2, "delete", Some("out of scope")));
        checkup(&desk).await;
        desk.delete(id("REQ-001"), &Edit::default(), true).await.unwrap();
        assert_eq!(checkup(&desk).await, 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_takes_along_what_was_said_and_a_source_is_only_forgotten() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(ticket("t"), 0, None).await.unwrap();
        for n in 0..30 {
            desk.create(comment("TKT-001", &format!("c{n}")), 0, None).await.unwrap();
        }
        desk.create(document("TKT-001", DocumentType::Research, "text"), 0, None).await.unwrap();
        let refused = said(desk.delete(id("TKT-001"), &Edit::default(), false).await);
        assert!(refused.ends_with("CMT-020 and 11 more"), "{refused}");
        assert_eq!(desk.delete(id("TKT-001"), &Edit::default(), true).await.unwrap().deleted.len(), 32, "{place}");
        desk.create(insight("slow", toolhost_records::Importance::Normal), 0, None).await.unwrap();
        desk.create(issue("leak"), 0, None).await.unwrap();
        desk.create(learning("measure"), 0, None).await.unwrap();
        desk.create(decision("one", "cache it", Some("INS-001")), 0, None).await.unwrap();
        desk.create(decision("two", "free it", Some("ISS-001")), 0, None).await.unwrap();
        desk.create(pattern("three", "bench first", Some("LRN-001")), 0, None).await.unwrap();
        for (source, made) in [("INS-001", "DEC-001"), ("ISS-001", "DEC-002"), ("LRN-001", "PAT-001")] {
            let refused = desk.delete(id(source), &Edit::default(), false).await;
            assert_eq!(said(refused), format!("{source} is used by {made}"));
            let removed = desk.delete(id(source), &Edit::default(), true).await.unwrap();
            assert_eq!((removed.deleted, removed.unlinked), (ids(&[source]), ids(&[made])));
            assert!(desk.get_any(id(made)).await.unwrap().body.get("sourceId").is_none());
        }
        assert_eq!(checkup(&desk).await, 3);
    }
}

/// The refusal's chain.
fn circle<T: std::fmt::Debug>(refused: Result<T, RecordError>) -> String {
    match refused {
        Err(RecordError::Cycle { chain }) => chain_text(&chain),
        other => format!("{other:?}"),
    }
}

/// Rules: 002.63.
#[tokio::test(flavor = "multi_thread")]
async fn dependencies_go_in_no_circle() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let depend = async |of: &str, on: &[&str]| {
            let on = ids(on);
            let change = |task: &mut Task| {
                task.dependencies = on;
                Ok(())
            };
            desk.update::<Task>(of, &Edit::default(), change).await
        };
        desk.create(task("1", &[]), 0, None).await.unwrap();
        desk.create(task("2", &["TASK-001"]), 0, None).await.unwrap();
        assert_eq!(circle(depend("TASK-001", &["TASK-002"]).await), "TASK-001 → TASK-002 → TASK-001", "{place}");
        assert_eq!(circle(depend("TASK-001", &["TASK-001"]).await), "TASK-001 → TASK-001");
        // A new one that would depend on itself.
        assert_eq!(
            circle(desk.create(task("3", &["TASK-003"]), 0, None).await.map_err(|error| match error {
                // It is not there yet, which is as good a reason.
                RecordError::Reference { to, .. } => RecordError::Cycle { chain: vec![to, to] },
                error => error,
            })),
            "TASK-003 → TASK-003"
        );
        desk.create(task("3", &["TASK-002"]), 0, None).await.unwrap();
        desk.create(task("4", &["TASK-003"]), 0, None).await.unwrap();
        let around = "TASK-001 → TASK-004 → TASK-003 → TASK-002 → TASK-001";
        assert_eq!(circle(depend("TASK-001", &["TASK-004"]).await), around);
        let error: ToolError = depend("TASK-001", &["TASK-004"]).await.unwrap_err().into();
        assert_eq!(
            (error.kind, error.details.unwrap()["chain"][1].as_str()),
            (ErrorKind::Validation, Some("TASK-004"))
        );
        // A diamond is no circle, nor is a shorter way beside a longer one.
        depend("TASK-004", &["TASK-003", "TASK-002", "TASK-001"]).await.unwrap();
        desk.create(task("5", &["TASK-002"]), 0, None).await.unwrap();
        desk.create(task("6", &["TASK-003", "TASK-005"]), 0, None).await.unwrap();
        // Once the way back is gone, it may be turned round.
        depend("TASK-002", &[]).await.unwrap();
        depend("TASK-001", &["TASK-006"]).await.unwrap();
        assert!(circle(depend("TASK-002", &["TASK-001"]).await).starts_with("TASK-002 → TASK-001 → TASK-006 → "));
        desk.create(feature("a", &[], &[]), 0, None).await.unwrap();
        desk.create(feature("b", &[], &["FEAT-001"]), 0, None).await.unwrap();
        let back = |feature: &mut Feature| {
            feature.dependencies = ids(&["FEAT-002"]);
            Ok(())
        };
        let refused = desk.update("FEAT-001", &Edit::default(), back).await;
        assert_eq!(circle(refused), "FEAT-001 → FEAT-002 → FEAT-001");
        checkup(&desk).await;
    }
}

/// Rules: 002.63.
#[tokio::test(flavor = "multi_thread")]
async fn a_circle_of_five_hundred_is_named_whole() {
    const LENGTH: usize = 500;
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(task("1", &[]), 0, None).await.unwrap();
        for n in 2..=LENGTH {
            desk.create(task(&n.to_string(), &[&format!("TASK-{:03}", n - 1)]), 0, None).await.unwrap();
        }
        let last = Kind::Task;
        let all: Vec<String> = (1..=LENGTH as i64).map(|number| RecordId { kind: last, number }.to_string()).collect();
        let mut around: Vec<String> = std::iter::once(all[0].clone()).chain(all.iter().rev().cloned()).collect();
        let close = |task: &mut Task| {
            task.dependencies = vec![all[LENGTH - 1].clone()];
            Ok(())
        };
        let refused = desk.update("TASK-001", &Edit::default(), close).await;
        assert_eq!(circle(refused), around.join(" → "), "{place}");
        // As many at once: it is the same circle, found over each of them.
        let close = |task: &mut Task| {
            task.dependencies = all[1..].to_vec();
            Ok(())
        };
        around = vec![all[0].clone(), all[1].clone(), all[0].clone()];
        assert_eq!(circle(desk.update("TASK-001", &Edit::default(), close).await), around.join(" → "));
        // One that needs all the others.
        let names: Vec<&str> = all.iter().map(String::as_str).collect();
        let needs_all = desk.create(task("all", &names), 0, None).await.unwrap().id;
        assert_eq!(desk.get_any(id(&needs_all)).await.unwrap().waits_on, LENGTH as i64);
        checkup(&desk).await;
    }
}
