//! Claims: a task has one holder, for as long as its lease runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use toolhost_contract::{Clock, ErrorKind, ToolError};
use toolhost_records::{Claim, Claimant, Edit, Kind, ProjectRecords, RecordError, RecordId, Status, Task};
use toolhost_testkit::database::things::{requirement, task};
use toolhost_testkit::database::{Place, Room, checkup, engines, said};

const MINUTE_MS: i64 = 60_000;

fn claimant(name: &str) -> Claimant {
    Claimant { key: format!("key of {name}"), name: name.to_owned() }
}

fn id(number: i64) -> RecordId {
    RecordId { kind: Kind::Task, number }
}

async fn claim(desk: &ProjectRecords, task: Option<i64>, name: &str) -> Result<Option<Claim>, RecordError> {
    desk.claim(task.map(id), None, &claimant(name), MINUTE_MS).await
}

/// Who holds a task, and until when.
async fn holder(desk: &ProjectRecords, number: i64) -> Option<(String, i64)> {
    desk.get_any(id(number)).await.unwrap().holder.map(|holder| (holder.name, holder.lease_until_ms))
}

async fn with_tasks(here: &Room, tasks: usize) -> ProjectRecords {
    let desk = here.desk();
    for n in 0..tasks {
        desk.create(task(&format!("t{n}"), &[]), 0, None).await.unwrap();
    }
    desk
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_hosts_that_race_for_tasks_each_task_goes_to_one() {
    const HOSTS: usize = 3;
    const CLAIMANTS: usize = 8;
    const TASKS: usize = 60;
    for place in engines() {
        let first = place.room().await;
        let desk = with_tasks(&first, TASKS).await;
        let mut claimants = tokio::task::JoinSet::new();
        for host in 0..HOSTS {
            let here = place.room().await;
            for n in 0..CLAIMANTS {
                let (desk, name) = (here.desk(), format!("{host}-{n}"));
                claimants.spawn(async move {
                    let mut won = Vec::new();
                    while let Some(claim) = claim(&desk, None, &name).await.unwrap() {
                        assert!(!claim.taken_over);
                        won.push(claim.task.record_id().unwrap().number);
                    }
                    (name, won)
                });
            }
        }
        let mut holders = BTreeMap::new();
        for (name, won) in claimants.join_all().await {
            for number in won {
                assert_eq!(holders.insert(number, name.clone()), None, "{place}: TASK-{number} went to two");
            }
        }
        assert_eq!(holders.len(), TASKS, "{place}: each was taken");
        for (number, name) in holders {
            assert_eq!(holder(&desk, number).await.unwrap().0, name);
        }
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_claim_the_same_task_one_gets_it() {
    for place in engines() {
        let (one, other) = (place.room().await, place.room().await);
        let desk = with_tasks(&one, 5).await;
        for number in 1..=5 {
            let mut claimants = tokio::task::JoinSet::new();
            for n in 0..10 {
                let desk = if n % 2 == 0 { one.desk() } else { other.desk() };
                claimants.spawn(async move { claim(&desk, Some(number), &format!("c{n}")).await });
            }
            let (won, lost): (Vec<_>, Vec<_>) = claimants.join_all().await.into_iter().partition(Result::is_ok);
            assert_eq!((won.len(), lost.len()), (1, 9), "{place}");
            let winner = won.into_iter().next().unwrap().unwrap().unwrap().task.holder.unwrap();
            for refused in lost {
                let error = refused.unwrap_err();
                assert_eq!(error.to_string(), format!("TASK-{number:03} is held by {} for another 60 s", winner.name));
                assert_eq!(ToolError::from(error).kind, ErrorKind::Conflict);
            }
            assert_eq!(desk.get_any(id(number)).await.unwrap().version, 2, "{place}: claimed once");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_runs_out_and_the_task_is_taken_over() {
    for place in engines() {
        let here = place.room().await;
        let desk = with_tasks(&here, 1).await;
        let began = desk.now_ms();
        let claimed = claim(&desk, None, "ann").await.unwrap().unwrap();
        assert_eq!(
            (claimed.task.content.status, claimed.task.content.started_at_ms),
            (Status::InProgress, Some(began))
        );
        assert_eq!(holder(&desk, 1).await, Some(("ann".to_owned(), began + MINUTE_MS)), "{place}");
        place.clock.advance(Duration::from_millis(59_999));
        assert!(desk.ready(None, None, 10).await.unwrap().items.is_empty());
        assert_eq!(said(claim(&desk, Some(1), "bob").await), "TASK-001 is held by ann for another 1 s");
        assert!(claim(&desk, None, "bob").await.unwrap().is_none(), "{place}: there is nothing else");
        let refused = desk.move_task("TASK-001", Status::Completed, None, &claimant("bob"), &Edit::default()).await;
        assert_eq!(said(refused), "TASK-001 is held by ann for another 1 s");
        place.clock.advance(Duration::from_millis(1));
        let ready = desk.ready(None, None, 10).await.unwrap().items;
        assert_eq!(ready.len(), 1, "{place}: a task whose holder is gone can be worked on");
        let taken = claim(&desk, None, "bob").await.unwrap().unwrap();
        assert!(taken.taken_over, "{place}");
        assert_eq!(taken.task.content.started_at_ms, Some(began), "it was begun once");
        assert_eq!(holder(&desk, 1).await, Some(("bob".to_owned(), began + 2 * MINUTE_MS)));
        let refused = desk.move_task("TASK-001", Status::Completed, None, &claimant("ann"), &Edit::default()).await;
        assert_eq!(said(refused), "TASK-001 is held by bob for another 60 s", "{place}: ann is too late");
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_holds_on_and_lets_go() {
    for place in engines() {
        let here = place.room().await;
        let desk = with_tasks(&here, 2).await;
        let began = desk.now_ms();
        claim(&desk, Some(1), "ann").await.unwrap().unwrap();
        for minute in 1..4 {
            place.clock.advance(Duration::from_secs(50));
            let again = claim(&desk, Some(1), "ann").await.unwrap().unwrap();
            assert!(!again.taken_over, "{place}");
            assert_eq!(holder(&desk, 1).await.unwrap().1, began + minute * 50_000 + MINUTE_MS);
        }
        // Its own lease that ran out is nobody else's yet.
        place.clock.advance(Duration::from_secs(600));
        assert!(!claim(&desk, Some(1), "ann").await.unwrap().unwrap().taken_over);
        assert_eq!(desk.get_any(id(1)).await.unwrap().version, 2, "{place}: holding on makes no versions");
        for to in [Status::Blocked, Status::InProgress] {
            let moved = desk.move_task("TASK-001", to, None, &claimant("ann"), &Edit::default()).await.unwrap();
            assert_eq!((moved.holder, holder(&desk, 1).await), (None, None), "{place}: who is stuck lets go");
        }
        let taken = claim(&desk, Some(1), "bob").await.unwrap().unwrap();
        assert!(taken.taken_over, "{place}: whoever names it takes over what nobody holds");
        assert_eq!(desk.history(id(1), None, 1).await.unwrap()[0].change, "claim", "{place}: and history says so");
        desk.move_task("TASK-001", Status::Completed, None, &claimant("bob"), &Edit::default()).await.unwrap();
        claim(&desk, Some(2), "ann").await.unwrap().unwrap();
        let done =
            desk.move_task("TASK-002", Status::Completed, None, &claimant("ann"), &Edit::default()).await.unwrap();
        assert_eq!((done.holder, holder(&desk, 2).await), (None, None), "{place}: who is done lets go");
        assert_eq!(said(claim(&desk, Some(2), "bob").await), "TASK-002 is completed, not pending");
        place.clock.advance(Duration::from_secs(600));
        assert!(claim(&desk, None, "bob").await.unwrap().is_none(), "{place}: no lease is left to run out");
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_ready_nothing_is_claimed() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        assert!(claim(&desk, None, "ann").await.unwrap().is_none(), "{place}");
        assert_eq!(said(claim(&desk, Some(1), "ann").await), "there is no task `TASK-001` in this project");
        with_tasks(&here, 1).await;
        desk.create(task("waits", &["TASK-001"]), 0, None).await.unwrap();
        assert_eq!(said(claim(&desk, Some(2), "ann").await), "TASK-002 waits for TASK-001");
        claim(&desk, Some(1), "ann").await.unwrap().unwrap();
        assert!(claim(&desk, None, "bob").await.unwrap().is_none(), "{place}: the one is held, the other waits");
        desk.move_task("TASK-001", Status::Completed, None, &claimant("ann"), &Edit::default()).await.unwrap();
        assert_eq!(claim(&desk, None, "bob").await.unwrap().unwrap().task.id, "TASK-002");
        desk.create(requirement("r"), 0, None).await.unwrap();
        let refused = desk.claim(RecordId::parse("REQ-001"), None, &claimant("ann"), MINUTE_MS).await;
        assert!(refused.is_err(), "{place}: only tasks are worked on");
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_another_iteration_are_left_alone() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        for iteration in [1, 2] {
            desk.create(task(&format!("of {iteration}"), &[]), iteration, None).await.unwrap();
        }
        let of_two = async |name: &str| desk.claim(None, Some(2), &claimant(name), MINUTE_MS).await.unwrap();
        assert_eq!(of_two("ann").await.unwrap().task.id, "TASK-002", "{place}");
        assert!(of_two("bob").await.is_none());
        claim(&desk, Some(1), "ann").await.unwrap().unwrap();
        place.clock.advance(Duration::from_secs(60));
        assert_eq!(of_two("bob").await.unwrap().task.id, "TASK-002", "{place}: of those that ran out, too");
        let ready = desk.ready(Some(1), None, 10).await.unwrap();
        assert_eq!(ready.items.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_ready_tasks_cover_all_of_them_once() {
    for place in engines() {
        let here = place.room().await;
        let desk = with_tasks(&here, 25).await;
        for number in [3, 7, 8, 20] {
            claim(&desk, Some(number), "ann").await.unwrap().unwrap();
        }
        place.clock.advance(Duration::from_secs(60));
        claim(&desk, Some(8), "bob").await.unwrap().unwrap();
        for limit in [1, 2, 3, 4, 7, 100] {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = desk.ready(None, after, limit).await.unwrap();
                assert!(page.items.len() as i64 <= limit);
                seen.extend(page.items.iter().map(|task| task.record_id().unwrap().number));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let all: BTreeSet<i64> = seen.iter().copied().collect();
            assert_eq!((seen.len(), all.len()), (24, 24), "{place}: {limit} a page: {seen:?}");
            assert!(!all.contains(&8));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_may_be_rewritten_but_not_deleted() {
    for place in engines() {
        let here = place.room().await;
        let desk = with_tasks(&here, 1).await;
        claim(&desk, Some(1), "ann").await.unwrap().unwrap();
        let rename = |task: &mut Task| {
            task.title = "renamed".to_owned();
            Ok(())
        };
        let renamed = desk.update::<Task>("TASK-001", &Edit::default(), rename).await.unwrap();
        assert_eq!(renamed.holder.as_ref().map(|holder| holder.name.as_str()), Some("ann"), "{place}");
        assert_eq!(desk.get::<Task>("TASK-001").await.unwrap(), renamed);
        let refused = desk.delete(id(1), &Edit::default(), true).await;
        assert_eq!(said(refused), "TASK-001 is held by ann for another 60 s", "{place}: nobody's work is taken away");
        place.clock.advance(Duration::from_secs(60));
        desk.delete(id(1), &Edit::default(), false).await.unwrap();
        desk.restore(id(1), 3, &Edit::default()).await.unwrap();
        assert_eq!(holder(&desk, 1).await, None, "{place}: a lease does not outlive its task");
        checkup(&desk).await;
    }
}

/// A machine whose clock is set wrong.
struct Wrong(i64);

impl Clock for Wrong {
    fn unix_ms(&self) -> i64 {
        self.0
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn is_the_machines(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_share_a_server_go_by_its_clock_and_not_by_their_own() {
    // On SQLite they share a machine, and its clock.
    let Some(place) = Place::postgres() else { return };
    let hour = 3_600_000;
    let mut hosts = Vec::new();
    for clock in [Wrong(1), Wrong(i64::MAX / 2), Wrong(1_767_225_600_000 - 2 * hour)] {
        let store = place.address.open(Arc::new(clock)).await.unwrap();
        hosts.push(toolhost_testkit::database::room(store, &place.workspace()).await);
    }
    with_tasks(&hosts[0], 3).await;
    for (n, host) in hosts.iter().enumerate() {
        let number = n as i64 + 1;
        assert!(claim(&host.desk(), Some(number), &format!("of {n}")).await.unwrap().is_some());
        for other in hosts.iter().filter(|other| !std::ptr::eq(*other, host)) {
            let refused = said(claim(&other.desk(), Some(number), "another").await);
            assert!(refused.contains(&format!("is held by of {n}")), "{refused}");
        }
    }
    let until: Vec<i64> = hosts.iter().map(|host| host.desk().now_ms()).collect();
    assert!(until.iter().all(|now| (now - until[0]).abs() < 5 * MINUTE_MS), "{until:?}");
}
