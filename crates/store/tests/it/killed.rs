//! `kill -9` in the middle of writing: what was answered is there, what was not is there whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::worker::{Worker, rounds, tell, work};
use serde_json::{Value, json};
use toolhost_contract::SystemClock;
use toolhost_records::{
    Body, Claimant, Edit, Feature, Issue, Kind, ProjectRecords, RecordId, Requirement, Saved, Status, Stored,
};
use toolhost_testkit::Seed;
use toolhost_testkit::database::things::{comment, feature, issue, milestone, requirement, task, ticket};
use toolhost_testkit::database::{Address, Place, checkup, checkup_of, engines, room};

const TEST: &str = "killed::what_was_answered_survives_a_kill_and_nothing_is_half_written";
/// Processes at once: each is killed while the others write.
const AT_ONCE: usize = 4;
/// The most answers that one gives before it is killed.
const ANSWERS_MAX: u64 = 15;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_survives_a_kill_and_nothing_is_half_written() {
    if let Some(work) = work() {
        return write(&work).await;
    }
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        // Taking the lock of the project waits for whatever a dead process has still under way at a server.
        let anchor = desk.create(requirement("anchor"), 0, None).await.unwrap().id;
        let mut seed = Seed::of_this_run();
        let began_with = seed.value();
        let mut left = rounds("TOOLHOST_CRASH_ROUNDS", 200);
        let mut name = 0;
        while left > 0 {
            let many = left.min(AT_ONCE);
            left -= many;
            // Each is killed as soon as it has answered so often, whatever it and the others are at by then.
            let dying: Vec<_> = (0..many)
                .map(|n| {
                    let (worker, until) = (start(&place, name + n, &mut seed), 1 + seed.below(ANSWERS_MAX));
                    tokio::task::spawn_blocking(move || answers_until_killed(worker, until))
                })
                .collect();
            for answers in dying {
                let answers = answers.await.unwrap();
                desk.update::<Requirement>(&anchor, &Edit::default(), |_| Ok(())).await.unwrap();
                let context = format!("{place}, TOOLHOST_SEED={began_with}, worker {name}");
                survived(&desk, &answers, &format!("{name}-"), &context).await;
                name += 1;
            }
        }
        checkup(&desk).await;
    }
}

fn start(place: &Place, name: usize, seed: &mut Seed) -> Worker {
    let (at, seed) = (place.address.to_json(), seed.below(u64::MAX));
    Worker::start(TEST, &json!({ "at": at, "workspace": place.workspace(), "name": name, "seed": seed }))
}

fn answers_until_killed(mut worker: Worker, until: u64) -> Vec<Value> {
    let mut answers: Vec<Value> = (0..until).map(|_| worker.told().unwrap()).collect();
    answers.extend(worker.kill());
    answers
}

/// Every answer holds, and whatever the process has touched fits together.
async fn survived(desk: &ProjectRecords, answers: &[Value], calls: &str, context: &str) {
    let mut newest: BTreeMap<RecordId, i64> = BTreeMap::new();
    let mut gone: BTreeSet<RecordId> = BTreeSet::new();
    let id_of = |value: &Value| RecordId::parse(value.as_str().unwrap()).unwrap();
    for answer in answers {
        for record in answer["kept"].as_array().unwrap() {
            let (id, version) = (id_of(&record["id"]), record["version"].as_i64().unwrap());
            let stored = desk.version(id, version).await.unwrap();
            assert_eq!(stored.content, record["content"], "{context}: {id} at {version}");
            assert_eq!(stored.call_id, format!("{calls}{}", answer["call"]), "{context}: {id} at {version}");
            newest.insert(id, version);
        }
        gone.extend(answer["gone"].as_array().unwrap().iter().map(id_of));
    }
    let under_way = format!("{calls}{}", answers.len());
    for (id, version) in newest {
        let history = desk.history(id, None, 1000).await.unwrap();
        if gone.contains(&id) {
            assert!(desk.get_any(id).await.is_err(), "{context}: {id} was deleted");
            assert_eq!(history[0].change, "delete", "{context}: {id}");
            continue;
        }
        // Later versions are of the calls that let a deleted record go out of it, or of the last one.
        let last = &history[0];
        let told = last.version == version || last.call_id == under_way || last.why.is_some();
        assert!(last.version >= version && told, "{context}: {id} is at {last:?}, answered was {version}");
        match desk.get_any(id).await {
            Ok(record) => checkup_of(desk, &record, &with_those_it_names(desk, &record).await).await,
            Err(_) => {
                assert_eq!((last.change.as_str(), &last.call_id), ("delete", &under_way), "{context}: {id}");
            }
        }
    }
}

async fn with_those_it_names(desk: &ProjectRecords, record: &Stored) -> BTreeMap<RecordId, Stored> {
    let mut named = BTreeMap::new();
    for reference in record.references().unwrap() {
        if let Ok(other) = desk.get_any(reference.to).await {
            named.insert(other.id, other);
        }
    }
    named
}

/// What a process does until it is killed.
struct Author {
    seed: Seed,
    name: u64,
    call: usize,
    /// By kind, what it has made and not deleted.
    own: BTreeMap<Kind, Vec<String>>,
}

async fn write(work: &Value) {
    let store = Address::from_json(&work["at"]).open(Arc::new(SystemClock::default())).await.unwrap();
    let here = room(store, work["workspace"].as_str().unwrap().as_ref()).await;
    let name = work["name"].as_u64().unwrap();
    let mut author = Author { seed: Seed::new(work["seed"].as_u64().unwrap()), name, call: 0, own: BTreeMap::new() };
    // Not for ever, should nobody kill it.
    while author.call < 10_000 {
        let desk = here.desk_of("author", &format!("{name}-{}", author.call));
        if let Some((kept, gone)) = author.step(&desk).await {
            tell(&json!({ "call": author.call, "kept": kept, "gone": gone }));
            author.call += 1;
        }
    }
}

type Answer = (Vec<Value>, Vec<String>);

fn kept<T: Body>(saved: &Saved<T>) -> Value {
    json!({ "id": saved.id, "version": saved.version, "content": serde_json::to_value(&saved.content).unwrap() })
}

impl Author {
    fn some(&mut self, kind: Kind) -> Option<String> {
        let own = self.own.get(&kind).filter(|own| !own.is_empty())?;
        let at = usize::try_from(self.seed.below(own.len() as u64)).unwrap();
        Some(own[at].clone())
    }

    async fn make<T: Body>(&mut self, desk: &ProjectRecords, content: T) -> Option<Answer> {
        let saved = desk.create(content, 0, None).await.unwrap();
        self.own.entry(T::KIND).or_default().push(saved.id.clone());
        Some((vec![kept(&saved)], Vec::new()))
    }

    async fn drop_one(&mut self, desk: &ProjectRecords, kind: Kind) -> Option<Answer> {
        let id = self.some(kind)?;
        let removed = desk.delete(RecordId::parse(&id).unwrap(), &Edit::default(), true).await.unwrap();
        for own in self.own.values_mut() {
            own.retain(|id| !removed.deleted.contains(id));
        }
        Some((Vec::new(), removed.deleted))
    }

    /// One write; `None` if there is nothing yet to do it to.
    async fn step(&mut self, desk: &ProjectRecords) -> Option<Answer> {
        let title = format!("made by w{} as its c{}", self.name, self.call);
        match self.seed.below(12) {
            0 => self.make(desk, requirement(&title)).await,
            1 => {
                let named = self.some(Kind::Requirement)?;
                self.make(desk, feature(&title, &[&named], &[])).await
            }
            2 | 3 => {
                let named: BTreeSet<String> = (0..3).filter_map(|_| self.some(Kind::Task)).collect();
                let named: Vec<&str> = named.iter().map(String::as_str).collect();
                self.make(desk, task(&title, &named)).await
            }
            4 => self.make(desk, issue(&title)).await,
            5 => {
                let named = self.some(Kind::Feature)?;
                self.make(desk, milestone(&title, &[&named])).await
            }
            6 => match self.some(Kind::Ticket) {
                Some(ticket) => self.make(desk, comment(&ticket, &title)).await,
                None => self.make(desk, ticket(&title)).await,
            },
            7 => self.change(desk, &title).await,
            8 | 9 => self.work_on(desk).await,
            10 => self.drop_one(desk, Kind::Task).await,
            _ => {
                let kinds = [Kind::Requirement, Kind::Feature, Kind::Ticket, Kind::Issue];
                let kind = kinds[usize::try_from(self.seed.below(4)).unwrap()];
                self.drop_one(desk, kind).await
            }
        }
    }

    async fn change(&mut self, desk: &ProjectRecords, text: &str) -> Option<Answer> {
        let edit = Edit::default();
        if self.seed.below(2) == 0 {
            let id = self.some(Kind::Issue)?;
            let saved = desk.update::<Issue>(&id, &edit, |issue| {
                issue.content = text.to_owned();
                Ok(())
            });
            return Some((vec![kept(&saved.await.unwrap())], Vec::new()));
        }
        let (id, other) = (self.some(Kind::Feature)?, self.some(Kind::Requirement)?);
        let saved = desk.update::<Feature>(&id, &edit, |feature| {
            feature.name = text.to_owned();
            feature.requirement_ids = vec![other];
            Ok(())
        });
        Some((vec![kept(&saved.await.unwrap())], Vec::new()))
    }

    async fn work_on(&mut self, desk: &ProjectRecords) -> Option<Answer> {
        let claimant = Claimant { key: format!("k{}", self.name), name: "author".to_owned() };
        let id = self.some(Kind::Task)?;
        // Whatever the machine refuses is another step's chance.
        for to in [Status::Completed, Status::InProgress] {
            if let Ok(saved) = desk.move_task(&id, to, None, &claimant, &Edit::default()).await {
                return Some((vec![kept(&saved)], Vec::new()));
            }
        }
        None
    }
}
