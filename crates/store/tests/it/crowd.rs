//! Fifty processes write into one database at once: nothing is lost, nothing is there twice, nobody hears of a lock.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::worker::{Worker, await_word, tell, work};
use serde_json::{Value, json};
use toolhost_contract::SystemClock;
use toolhost_records::{Edit, Learning, Requirement};
use toolhost_store::{Event, Filter};
use toolhost_testkit::database::things::{comment, learning, requirement, ticket};
use toolhost_testkit::database::{Address, Place, Room, checkup, engines, entry, everything, room};

const PROCESSES: usize = 50;
/// Each is four writes.
const ROUNDS: usize = 6;
const TEST: &str = "crowd::fifty_processes_write_at_once_and_nothing_is_lost";

#[tokio::test(flavor = "multi_thread")]
async fn fifty_processes_write_at_once_and_nothing_is_lost() {
    if let Some(work) = work() {
        return write(&work).await;
    }
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let counter = desk.create(Requirement { description: "0".to_owned(), ..requirement("counter") }, 0, None);
        let counter = counter.await.unwrap().id;
        let asked = desk.create(ticket("shared"), 0, None).await.unwrap().id;
        crowd(&place, &counter, &asked);
        all_is_there(&here, &counter).await;
    }
}

/// Starts the processes, and lets them all go at once.
fn crowd(place: &Place, counter: &str, ticket: &str) {
    let workspace = place.workspace();
    let work = |worker: usize| json!({ "at": place.address.to_json(), "workspace": workspace, "worker": worker, "counter": counter, "ticket": ticket });
    let mut workers: Vec<Worker> = (0..PROCESSES).map(|worker| Worker::start(TEST, &work(worker))).collect();
    for worker in &mut workers {
        assert_eq!(worker.told(), Some(json!("ready")), "{place}");
    }
    workers.iter_mut().for_each(Worker::go);
    workers.into_iter().for_each(Worker::finish);
}

async fn all_is_there(here: &Room, counter: &str) {
    let desk = here.desk();
    let counted = desk.get::<Requirement>(counter).await.unwrap();
    let increments = PROCESSES * ROUNDS;
    assert_eq!(counted.content.description, increments.to_string(), "no increment was lost");
    assert_eq!(counted.version, 1 + increments as i64);
    let titles: BTreeSet<String> =
        desk.all::<Requirement>(None).await.unwrap().into_iter().map(|one| one.content.title).collect();
    assert_eq!(titles.len(), increments + 1, "every requirement is there once");
    let all = everything(&desk).await;
    let numbers: Vec<i64> = all.keys().filter(|id| id.to_string().starts_with("REQ")).map(|id| id.number).collect();
    assert_eq!(numbers, (1..=increments as i64 + 1).collect::<Vec<i64>>(), "no number is left out or given twice");
    assert_eq!(desk.all::<Learning>(None).await.unwrap().len(), ROUNDS, "what all learnt is kept once");
    // The counter, the ticket; requirements and comments of all; the learnings.
    assert_eq!(all.len(), 2 + 2 * increments + ROUNDS);
    let newest = desk.history(all.keys().next().copied().unwrap(), None, 1000).await.unwrap();
    assert_eq!(newest.len(), 1 + increments, "history has every increment");
    checkup(&desk).await;
    let verdict = here.store.reader().verify_audit(here.project).await.unwrap();
    assert_eq!((verdict.rows, verdict.problems.len()), (increments as u64, 0), "{verdict:?}");
    let rows = here.store.reader().audit(here.project, &Filter { limit: i64::MAX, ..Filter::default() }).await.unwrap();
    let calls: BTreeSet<&str> = rows.iter().map(|row| row.call_id.as_str()).collect();
    assert_eq!(calls.len(), increments, "every call is in the audit");
}

/// What one process does.
async fn write(work: &Value) {
    let store = Address::from_json(&work["at"]).open(Arc::new(SystemClock::default())).await.unwrap();
    let here = room(store, work["workspace"].as_str().unwrap().as_ref()).await;
    let (worker, counter) = (work["worker"].as_u64().unwrap(), work["counter"].as_str().unwrap());
    let asked = work["ticket"].as_str().unwrap();
    tell(&json!("ready"));
    await_word();
    for round in 0..ROUNDS {
        let name = format!("{worker}-{round}");
        let desk = here.desk_of(&format!("worker {worker}"), &name);
        desk.create(requirement(&name), 0, None).await.unwrap();
        desk.update::<Requirement>(counter, &Edit::default(), |counter| {
            let count: usize = counter.description.parse().unwrap();
            counter.description = (count + 1).to_string();
            Ok(())
        })
        .await
        .unwrap();
        desk.create(comment(asked, &name), 0, None).await.unwrap();
        desk.create_once(learning(&format!("all learn number {round}")), 0).await.unwrap();
        here.store.audit().append(entry(here.project, Event::Finished, &name)).await.unwrap();
    }
    here.store.close().await.unwrap();
}
