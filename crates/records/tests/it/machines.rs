//! Every step of every state machine: the allowed ones happen, the others are refused by name and change nothing.

use std::collections::VecDeque;

use serde_json::json;
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_records::{
    Claimant, Edit, FEATURE, Feature, ITERATION, Inheritance, Iteration, IterationStatus, Machine, NewIteration,
    ProjectRecords, RecordError, RecordId, Status, Stored, TASK, TICKET, Task, Ticket, TicketState,
};
use toolhost_testkit::database::things::{feature, task, ticket};
use toolhost_testkit::database::{checkup, engines, said};

/// The states of the documents, written down once more.
///
/// Rules: 002.61, 002.62, 004.24, 004.25, 004.26, 004.27, 004.28, 004.29.
#[test]
fn the_machines_are_the_promised_ones() {
    let told = |machine: &Machine| {
        let states = machine.states.iter().map(|(state, next)| format!("{state} → {}", next.join(" | ")));
        states.collect::<Vec<String>>().join("; ")
    };
    assert_eq!(
        told(&TASK),
        "pending → in_progress; in_progress → completed | blocked; blocked → in_progress; completed → "
    );
    assert_eq!(
        told(&FEATURE),
        "pending → in_progress; in_progress → completed | blocked; blocked → in_progress; completed → in_progress"
    );
    assert_eq!(
        told(&TICKET),
        "backlog → research; research → plan_approval | backlog; plan_approval → in_progress | research; \
         in_progress → verification | research; verification → done | in_progress; done → "
    );
    assert_eq!(
        told(&ITERATION),
        "draft → running; running → paused | completed | failed; paused → running; failed → running; completed → "
    );
}

fn nobody() -> Claimant {
    Claimant { key: "k".to_owned(), name: "tester".to_owned() }
}

async fn begin(desk: &ProjectRecords, machine: &Machine) -> String {
    if *machine == TASK {
        desk.create(task("walks", &[]), 0, None).await.unwrap().id
    } else if *machine == FEATURE {
        desk.create(feature("walks", &[], &[]), 0, None).await.unwrap().id
    } else if *machine == TICKET {
        desk.create(ticket("walks"), 0, None).await.unwrap().id
    } else {
        let new = NewIteration {
            title: "walks".to_owned(),
            description: String::new(),
            base: None,
            inheritance: Inheritance::None,
        };
        desk.begin_iteration(&new).await.unwrap().id
    }
}

/// Asks for a state the way that tools do.
async fn step(desk: &ProjectRecords, machine: &Machine, id: &str, to: &str) -> Result<(), RecordError> {
    let edit = Edit { why: Some(format!("to {to}")), ..Edit::default() };
    if *machine == TASK {
        desk.move_task(id, Status::parse(to).unwrap(), None, &nobody(), &edit).await.map(drop)
    } else if *machine == FEATURE {
        desk.move_feature(id, Status::parse(to).unwrap(), None, &edit).await.map(drop)
    } else if *machine == TICKET {
        let state = TicketState::parse(to).unwrap();
        let change = |ticket: &mut Ticket| {
            ticket.state = state;
            Ok(())
        };
        desk.update::<Ticket>(id, &edit, change).await.map(drop)
    } else {
        desk.move_iteration(id, IterationStatus::parse(to).unwrap(), &edit, false).await.map(drop)
    }
}

/// The shortest way from the beginning to a state.
fn way(machine: &Machine, to: &str) -> Vec<&'static str> {
    let mut ways = VecDeque::from([vec![machine.start()]]);
    loop {
        let way = ways.pop_front().unwrap();
        let at = way[way.len() - 1];
        if at == to {
            return way[1..].to_vec();
        }
        ways.extend(machine.next(at).iter().map(|next| [way.as_slice(), &[*next]].concat()));
    }
}

async fn brought_to(desk: &ProjectRecords, machine: &Machine, state: &str) -> Stored {
    let id = begin(desk, machine).await;
    for to in way(machine, state) {
        step(desk, machine, &id, to).await.unwrap();
    }
    desk.get_any(RecordId::parse(&id).unwrap()).await.unwrap()
}

async fn check(desk: &ProjectRecords, machine: &Machine, from: &str, to: &str) {
    let before = brought_to(desk, machine, from).await;
    assert_eq!(before.state, from);
    let history = desk.history(before.id, None, 1000).await.unwrap();
    let stepped = step(desk, machine, &before.id.to_string(), to).await;
    let after = desk.get_any(before.id).await.unwrap();
    let case = format!("{} from {from} to {to}", before.id);
    let allowed = machine.next(from);
    if allowed.contains(&to) {
        stepped.unwrap();
        assert_eq!((after.state.as_str(), after.version), (to, before.version + 1), "{case}");
        let last = desk.history(before.id, None, 1).await.unwrap().remove(0);
        assert_eq!((last.change.as_str(), last.why), ("state", Some(format!("to {to}"))), "{case}");
        return;
    }
    if from != to {
        let error = stepped.unwrap_err();
        let names = if allowed.is_empty() {
            format!("{from} is final")
        } else {
            format!("allowed is {}", allowed.join(" or "))
        };
        assert_eq!(error.to_string(), format!("{} cannot go from {from} to {to}: {names}", before.id));
        let told: ToolError = error.into();
        assert_eq!(told.kind, ErrorKind::Conflict, "{case}");
        assert_eq!(told.details.unwrap()["allowed"], json!(allowed), "{case}");
    }
    assert_eq!(after, before, "{case} changes nothing");
    assert_eq!(desk.history(before.id, None, 1000).await.unwrap(), history, "{case} leaves no trace");
}

/// Rules: 002.61, 004.8, 002.23, 002.24.
#[tokio::test(flavor = "multi_thread")]
async fn each_step_is_allowed_or_refused_as_the_machine_says() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        for machine in [&TASK, &FEATURE, &TICKET, &ITERATION] {
            for (from, _) in machine.states {
                for (to, _) in machine.states {
                    check(&desk, machine, from, to).await;
                }
            }
        }
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_record_begins_in_the_middle_of_its_machine() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        for status in Status::ALL.iter().copied().filter(|status| *status != Status::Pending) {
            let refused = desk.create(Task { status, ..task("begins late", &[]) }, 0, None).await;
            assert_eq!(said(refused), format!("a new task begins as pending, not as {}", status.as_str()));
        }
        let refused =
            desk.create(Feature { status: Status::Completed, ..feature("begins late", &[], &[]) }, 0, None).await;
        assert_eq!(said(refused), "a new feature begins as pending, not as completed");
        for state in TicketState::ALL.iter().copied().filter(|state| *state != TicketState::Backlog) {
            let refused = desk.create(Ticket { state, ..ticket("begins late") }, 0, None).await;
            assert_eq!(said(refused), format!("a new ticket begins as backlog, not as {}", state.as_str()));
        }
        let iteration = Iteration {
            title: "begins late".to_owned(),
            description: String::new(),
            status: IterationStatus::Running,
            inheritance: Inheritance::None,
            base_iteration_id: None,
            started_at_ms: None,
            completed_at_ms: None,
        };
        let refused = desk.create(iteration, 0, None).await;
        assert_eq!(said(refused), "a new iteration begins as draft, not as running");
        assert_eq!(checkup(&desk).await, 0, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_times_of_a_life_are_kept() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let hour = std::time::Duration::from_secs(3600);
        let began = desk.now_ms();
        let id = brought_to(&desk, &TASK, "in_progress").await.id.to_string();
        place.clock.advance(hour);
        for to in ["blocked", "in_progress"] {
            step(&desk, &TASK, &id, to).await.unwrap();
        }
        place.clock.advance(hour);
        step(&desk, &TASK, &id, "completed").await.unwrap();
        let done = desk.get::<Task>(&id).await.unwrap();
        assert_eq!((done.created_at_ms, done.updated_at_ms), (began, began + 7_200_000));
        let times = (done.content.started_at_ms, done.content.completed_at_ms);
        assert_eq!(times, (Some(began), Some(began + 7_200_000)), "it was begun once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_moved_only_from_the_state_it_is_expected_in() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let id = desk.create(task("one", &[]), 0, None).await.unwrap().id;
        let expected = Some(Status::Blocked);
        let refused = desk.move_task(&id, Status::InProgress, expected, &nobody(), &Edit::default()).await;
        assert_eq!(said(refused), "TASK-001 is pending, not blocked");
        let stale = Edit { expected_version: Some(7), why: None };
        let refused = desk.move_task(&id, Status::InProgress, None, &nobody(), &stale).await;
        assert_eq!(said(refused), "TASK-001 has changed: it is at version 1, not 7");
        assert_eq!(desk.get::<Task>(&id).await.unwrap().version, 1, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completed_feature_is_reopened_only_with_a_reason() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let id = brought_to(&desk, &FEATURE, "completed").await.id.to_string();
        assert!(desk.get::<Feature>(&id).await.unwrap().content.completed_at_ms.is_some());
        for why in [None, Some("  ".to_owned())] {
            let edit = Edit { why, ..Edit::default() };
            let refused = desk.move_feature(&id, Status::InProgress, None, &edit).await;
            assert_eq!(said(refused), "FEAT-001 is completed: it is reopened only with a reason");
        }
        assert_eq!(desk.get::<Feature>(&id).await.unwrap().content.status, Status::Completed, "{place}");
        step(&desk, &FEATURE, &id, "in_progress").await.unwrap();
        let reopened = desk.get::<Feature>(&id).await.unwrap();
        assert_eq!(reopened.content.completed_at_ms, None, "what is open again was not completed");
    }
}

/// Rules: 002.24.
#[tokio::test(flavor = "multi_thread")]
async fn a_feature_waits_for_those_it_depends_on() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(feature("first", &[], &[]), 0, None).await.unwrap();
        desk.create(feature("last", &[], &["FEAT-001"]), 0, None).await.unwrap();
        let refused = step(&desk, &FEATURE, "FEAT-002", "in_progress").await;
        assert_eq!(said(refused), "FEAT-002 waits for FEAT-001", "{place}");
        for to in way(&FEATURE, "completed") {
            step(&desk, &FEATURE, "FEAT-001", to).await.unwrap();
        }
        step(&desk, &FEATURE, "FEAT-002", "in_progress").await.unwrap();
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_is_not_begun() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(task("first", &[]), 0, None).await.unwrap();
        desk.create(task("second", &[]), 0, None).await.unwrap();
        desk.create(task("last", &["TASK-001", "TASK-002"]), 0, None).await.unwrap();
        for (to, on) in [("in_progress", "TASK-001, TASK-002"), ("completed", "TASK-002")] {
            let refused = step(&desk, &TASK, "TASK-003", "in_progress").await;
            assert_eq!(said(refused), format!("TASK-003 waits for {on}"), "before TASK-001 is {to} on {place}");
            for to in way(&TASK, "completed") {
                // The second time round it is completed already.
                let _ = step(&desk, &TASK, "TASK-001", to).await;
            }
        }
        checkup(&desk).await;
    }
}
