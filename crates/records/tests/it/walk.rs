//! A random life of many tasks beside a simple model of it: which ones are ready, what is refused, and what is left.

use std::collections::{BTreeMap, BTreeSet};

use toolhost_records::{
    Claimant, Edit, Kind, ProjectRecords, RecordError, RecordId, Saved, Status, Stored, TASK, Task,
};
use toolhost_testkit::Seed;
use toolhost_testkit::database::things::task;
use toolhost_testkit::database::{checkup, engines};

const STEPS: usize = 400;
/// Few enough that they meet again and again.
const ALIVE_MAX: usize = 12;

#[derive(Debug, Clone, PartialEq)]
struct Is {
    dependencies: BTreeSet<i64>,
    state: &'static str,
}

/// What must be true of the tasks.
#[derive(Default)]
struct Model {
    alive: BTreeMap<i64, Is>,
    /// The state each deleted one had.
    deleted: BTreeMap<i64, &'static str>,
    /// What each version depended on; the last one of a deleted task is its deletion.
    versions: BTreeMap<i64, Vec<BTreeSet<i64>>>,
}

/// Why the store must refuse.
#[derive(Debug, PartialEq)]
enum Refusal {
    Unknown(i64),
    Circle,
    Machine,
    Waits(Vec<i64>),
    InUse(Vec<i64>),
}

impl Model {
    fn ready(&self) -> Vec<i64> {
        let free = |is: &Is| is.state == "pending" && self.waits(is).is_empty();
        self.alive.iter().filter(|(_, is)| free(is)).map(|(number, _)| *number).collect()
    }

    fn waits(&self, is: &Is) -> Vec<i64> {
        is.dependencies.iter().copied().filter(|number| self.alive[number].state != "completed").collect()
    }

    fn reaches(&self, from: i64, to: i64) -> bool {
        from == to || self.alive[&from].dependencies.iter().any(|next| self.reaches(*next, to))
    }

    fn may_depend(&self, number: i64, on: &BTreeSet<i64>) -> Result<(), Refusal> {
        if let Some(unknown) = on.iter().find(|on| !self.alive.contains_key(on)) {
            return Err(Refusal::Unknown(*unknown));
        }
        let circle = self.alive.contains_key(&number) && on.iter().any(|on| self.reaches(*on, number));
        if circle { Err(Refusal::Circle) } else { Ok(()) }
    }

    fn may_move(&self, number: i64, to: &str) -> Result<(), Refusal> {
        let is = &self.alive[&number];
        let waits = self.waits(is);
        if is.state == "pending" && to == "in_progress" && !waits.is_empty() {
            return Err(Refusal::Waits(waits));
        }
        if TASK.next(is.state).contains(&to) { Ok(()) } else { Err(Refusal::Machine) }
    }

    fn users(&self, number: i64) -> Vec<i64> {
        let uses = |is: &Is| is.dependencies.contains(&number);
        self.alive.iter().filter(|(_, is)| uses(is)).map(|(number, _)| *number).collect()
    }

    /// Another version of a task that is alive.
    fn keep(&mut self, number: i64, version: i64) {
        let versions = self.versions.entry(number).or_default();
        let dependencies = self.alive[&number].dependencies.clone();
        if version as usize > versions.len() {
            versions.push(dependencies);
        }
        assert_eq!(versions.len(), version as usize, "{number} has as many versions as changes");
    }
}

fn refusal(error: &RecordError) -> Option<Refusal> {
    let numbers = |ids: &[RecordId]| ids.iter().map(|id| id.number).collect();
    match error {
        RecordError::Reference { to, .. } => Some(Refusal::Unknown(to.number)),
        RecordError::Cycle { .. } => Some(Refusal::Circle),
        RecordError::Transition { .. } => Some(Refusal::Machine),
        RecordError::Waits { on, .. } => Some(Refusal::Waits(numbers(on))),
        RecordError::InUse { by, .. } => Some(Refusal::InUse(numbers(by))),
        _ => None,
    }
}

fn name(number: i64) -> String {
    RecordId { kind: Kind::Task, number }.to_string()
}

/// Who walks: chance, the model and the store.
struct Walk {
    seed: Seed,
    model: Model,
    desk: ProjectRecords,
    refused: usize,
}

impl Walk {
    fn chance<T: Copy>(&mut self, of: impl IntoIterator<Item = T>) -> Option<T> {
        let all: Vec<T> = of.into_iter().collect();
        if all.is_empty() { None } else { Some(all[usize::try_from(self.seed.below(all.len() as u64)).unwrap()]) }
    }

    fn some(&mut self) -> Option<i64> {
        let alive: Vec<i64> = self.model.alive.keys().copied().collect();
        self.chance(alive)
    }

    /// Up to three, now and then one that is not there.
    fn some_dependencies(&mut self) -> BTreeSet<i64> {
        let many = self.seed.below(4);
        let mut some: BTreeSet<i64> = (0..many).filter_map(|_| self.some()).collect();
        if self.seed.below(15) == 0 {
            some.insert(1000);
        }
        some
    }

    /// Whether the store did what the model says it must; the error is the refusal.
    fn agreed<T: std::fmt::Debug>(&mut self, done: Result<T, RecordError>, must: Result<(), Refusal>) -> Option<T> {
        match (done, must) {
            (Ok(done), Ok(())) => Some(done),
            (Err(error), Err(must)) => {
                assert_eq!(refusal(&error), Some(must), "{error}");
                self.check_chain(&error);
                self.refused += 1;
                None
            }
            (done, must) => {
                assert!(must.is_err() && must.is_ok(), "the store says {done:?}, the model {must:?}");
                None
            }
        }
    }

    /// A circle's chain goes from the task back to itself; all but its first step are there already.
    fn check_chain(&self, error: &RecordError) {
        let RecordError::Cycle { chain } = error else { return };
        assert!(chain.len() >= 2 && chain.first() == chain.last(), "{error}");
        for step in chain[1..].windows(2) {
            assert!(self.model.alive[&step[0].number].dependencies.contains(&step[1].number), "{error}");
        }
    }

    /// What was answered is what is read, and one more version at most.
    async fn kept(&mut self, saved: &Saved<Task>) {
        let id = saved.record_id().unwrap();
        let read = self.desk.get_any(id).await.unwrap();
        assert_eq!(&read.typed::<Task>().unwrap(), saved);
        self.model.keep(id.number, saved.version);
    }

    async fn step(&mut self) {
        match self.seed.below(10) {
            0 | 1 if self.model.alive.len() < ALIVE_MAX => self.create().await,
            0..=3 => self.depend().await,
            4..=6 => self.move_on().await,
            7 => self.delete().await,
            _ => self.restore().await,
        }
    }

    async fn create(&mut self) {
        let dependencies = self.some_dependencies();
        let names: Vec<String> = dependencies.iter().map(|number| name(*number)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let must = self.model.may_depend(0, &dependencies);
        let done = self.desk.create(task("walks", &names), 0, None).await;
        if let Some(saved) = self.agreed(done, must) {
            self.model.alive.insert(saved.record_id().unwrap().number, Is { dependencies, state: "pending" });
            self.kept(&saved).await;
        }
    }

    async fn depend(&mut self) {
        let Some(number) = self.some() else { return };
        let dependencies = self.some_dependencies();
        let must = self.model.may_depend(number, &self.new_ones(number, &dependencies));
        let names: Vec<String> = dependencies.iter().map(|number| name(*number)).collect();
        let change = |task: &mut Task| {
            task.dependencies = names;
            Ok(())
        };
        let done = self.desk.update::<Task>(&name(number), &Edit::default(), change).await;
        if let Some(saved) = self.agreed(done, must) {
            self.model.alive.get_mut(&number).unwrap().dependencies = dependencies;
            self.kept(&saved).await;
        }
    }

    /// What it depends on already is there, and closes no circle.
    fn new_ones(&self, number: i64, dependencies: &BTreeSet<i64>) -> BTreeSet<i64> {
        let present = self.model.alive.get(&number).map(|is| is.dependencies.clone()).unwrap_or_default();
        dependencies.difference(&present).copied().collect()
    }

    async fn move_on(&mut self) {
        let Some(number) = self.some() else { return };
        let to = self.chance(["in_progress", "in_progress", "completed", "completed", "blocked", "pending"]).unwrap();
        let must = self.model.may_move(number, to);
        let nobody = Claimant { key: "k".to_owned(), name: "walker".to_owned() };
        let status = Status::parse(to).unwrap();
        let done = self.desk.move_task(&name(number), status, None, &nobody, &Edit::default()).await;
        if let Some(saved) = self.agreed(done, must) {
            self.model.alive.get_mut(&number).unwrap().state = to;
            self.kept(&saved).await;
        }
    }

    async fn delete(&mut self) {
        let Some(number) = self.some() else { return };
        let (users, cascade) = (self.model.users(number), self.seed.below(2) == 0);
        let must = if cascade || users.is_empty() { Ok(()) } else { Err(Refusal::InUse(users.clone())) };
        let id = RecordId { kind: Kind::Task, number };
        let done = self.desk.delete(id, &Edit::default(), cascade).await;
        let Some(removed) = self.agreed(done, must) else { return };
        assert_eq!(removed.deleted, [name(number)]);
        assert_eq!(removed.unlinked, users.iter().map(|user| name(*user)).collect::<Vec<_>>());
        for user in users {
            self.model.alive.get_mut(&user).unwrap().dependencies.remove(&number);
            let unlinked = self.desk.get::<Task>(&name(user)).await.unwrap();
            self.kept(&unlinked).await;
        }
        let was = self.model.alive.remove(&number).unwrap();
        self.model.deleted.insert(number, was.state);
        self.model.versions.get_mut(&number).unwrap().push(was.dependencies);
    }

    async fn restore(&mut self) {
        let numbers: Vec<i64> = self.model.versions.keys().copied().collect();
        let Some(number) = self.chance(numbers) else { return };
        let versions = self.model.versions[&number].len() as u64;
        let version = 1 + self.seed.below(versions);
        let dependencies = self.model.versions[&number][usize::try_from(version - 1).unwrap()].clone();
        let must = self.model.may_depend(number, &self.new_ones(number, &dependencies));
        let id = RecordId { kind: Kind::Task, number };
        let done = self.desk.restore(id, version as i64, &Edit::default()).await;
        let Some(stored): Option<Stored> = self.agreed(done, must) else { return };
        let state = match self.model.deleted.remove(&number) {
            Some(state) => state,
            None => self.model.alive[&number].state,
        };
        self.model.alive.insert(number, Is { dependencies, state });
        assert_eq!(self.desk.get_any(id).await.unwrap(), stored, "what was answered is what is read");
        self.kept(&stored.typed().unwrap()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_anything_that_may_happen_to_tasks_the_ready_ones_are_ready() {
    for place in engines() {
        let here = place.room().await;
        let seed = Seed::of_this_run();
        let began_with = seed.value();
        let mut walk = Walk { seed, model: Model::default(), desk: here.desk(), refused: 0 };
        for step in 0..STEPS {
            walk.step().await;
            let ready = walk.desk.ready(None, None, 1000).await.unwrap();
            let ready: Vec<i64> = ready.items.iter().map(|task| task.record_id().unwrap().number).collect();
            assert_eq!(ready, walk.model.ready(), "step {step}, TOOLHOST_SEED={began_with}, {place}");
            if step % 20 == 0 {
                assert_eq!(checkup(&walk.desk).await, walk.model.alive.len(), "TOOLHOST_SEED={began_with}");
            }
        }
        checkup(&walk.desk).await;
        let edges: usize = walk.model.alive.values().map(|is| is.dependencies.len()).sum();
        let graph = walk.desk.graph().await.unwrap();
        assert_eq!((graph.nodes.len(), graph.edges.len()), (walk.model.alive.len(), edges));
        assert!(walk.refused > STEPS / 20, "the walk has met refusals: {}", walk.refused);
    }
}
