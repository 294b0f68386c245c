//! Random chains of stage, validate, discard, supersede, apply and undo by three sessions and a person, each compared with
//! the model of `builder_walk_model.rs`. A chain that fails prints its seed and its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_builder::limits::Size;
use toolhost_builder::packages::{Apply, Preview, ProjectPackage};
use toolhost_builder::{Files, Package, Severity, validate};
use toolhost_contract::Outcome;
use toolhost_testkit::engines::{Engine, engines};
use toolhost_testkit::sample::{in_session, person, shelf_of};
use toolhost_testkit::{House, Seed};

use crate::gate::walk_files::{FLOW, beginning, files_of, nodes, read_agent, read_graph, read_text, state_of};
use crate::gate::walk_model::{Model, Object, Set, State, Status, as_named, with_told};
use crate::gate::walk_plan::{Plan, Planner};

/// Chains on each engine.
const ROUNDS: u64 = 5;
const SESSIONS: [&str; 3] = ["s1", "s2", "s3"];
const MOVES_MIN: u64 = 15;
const MOVES_MAX: u64 = 40;
const MISMATCH: &str = "AI_REVISION_BASE_MISMATCH";

#[expect(clippy::disallowed_methods, reason = "`cargo xtask soak` asks for more rounds")]
fn rounds() -> u64 {
    std::env::var("TOOLHOST_CHAIN_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// What happened in all chains: a walk that applies nothing would prove nothing.
#[derive(Debug, Default)]
struct Tally(BTreeMap<&'static str, usize>);

impl Tally {
    fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_chains_of_change_sets_export_is_what_a_model_says() {
    let first = Seed::of_this_run().value();
    for engine in engines() {
        let mut tally = Tally::default();
        for round in 0..rounds() {
            let mut walk = Walk::begun(&engine, first + round).await;
            walk.go().await;
            for (what, times) in &walk.tally.0 {
                *tally.0.entry(*what).or_default() += times;
            }
        }
        let _ = writeln!(std::io::stderr(), "{engine}: {} chains from seed {first}: {:?}", rounds(), tally.0);
        for what in ["applied", "conflict", "undone", "an open set looked at again"] {
            assert!(rounds() < ROUNDS || tally.0.contains_key(what), "{engine}: no chain came to {what}: {tally:?}");
        }
    }
}

struct Walk {
    house: House,
    model: Model,
    seed: Seed,
    planner: Planner,
    /// What was read earlier: the package as it was for everybody, or as a session saw it.
    reads: Vec<Read>,
    files: Files,
    /// Previews that somebody has looked at, by set: each with its mark.
    looks: BTreeMap<i64, (String, Value)>,
    /// Somebody who looks at the sets again and again, and so keeps what they are based on.
    watcher: ProjectPackage,
    tally: Tally,
    story: String,
    calls: Vec<String>,
}

/// A state with the revisions that came with it.
#[derive(Clone)]
struct Read {
    /// The session whose drafts are in it; none: nobody's are.
    by: Option<&'static str>,
    revisions: Value,
    state: State,
    /// The package as it then was for everybody.
    there: State,
}

impl Drop for Walk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let calls = self.calls.join("\n");
            let _ = writeln!(std::io::stderr(), "{}\n{calls}\nthe chain failed here: {}", self.story, self.story);
        }
    }
}

impl Walk {
    async fn begun(engine: &Engine, seed: u64) -> Self {
        // Each chain has a database of its own, so that its first set is cs-1 again when it is run alone.
        let fresh = engines().find(|other| other.url.is_some() == engine.url.is_some()).unwrap();
        let house = fresh.house().await;
        let (start, story) = (beginning(), format!("{engine}: TOOLHOST_SEED={seed} TOOLHOST_CHAIN_ROUNDS=1"));
        let files = files_of(&start);
        shelf_of(&house, house.project.id).import(&Package::read(files.clone()), false, Size::default()).await.unwrap();
        // Seeds that follow each other must not begin alike.
        let mixed = Seed::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (model, planner) = (Model::new(start), Planner::default());
        let watcher = shelf_of(&house, house.project.id);
        let (reads, looks, tally, calls) = (Vec::new(), BTreeMap::new(), Tally::default(), Vec::new());
        Self { house, model, seed: mixed, planner, reads, files, looks, watcher, tally, story, calls }
    }

    async fn go(&mut self) {
        let moves = MOVES_MIN + self.seed.below(MOVES_MAX - MOVES_MIN + 1);
        for _ in 0..moves {
            self.tally.add("moves");
            match self.seed.below(100) {
                0..46 => self.stage().await,
                46..52 => self.supersede().await,
                52..57 => self.stage_wrongly().await,
                57..65 => self.discard().await,
                65..84 => self.apply_any().await,
                84..93 => self.undo().await,
                _ => self.keep_read().await,
            }
            self.house.clock.advance(Duration::from_millis(1));
            self.look_around().await;
            self.look_again().await;
        }
        for number in SESSIONS.iter().flat_map(|session| self.model.open(session)).collect::<Vec<_>>() {
            self.apply(number).await;
        }
        self.expect_statuses().await;
        let verdict = self.house.verify().await;
        assert!(verdict.problems.is_empty(), "the audit is not whole: {verdict:?}");
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let at = usize::try_from(self.seed.below(all.len() as u64)).unwrap();
        all.get(at).cloned()
    }

    fn session(&mut self) -> &'static str {
        self.one_of(&SESSIONS).unwrap()
    }

    /// A call that may change something: by a session, or by a person.
    async fn call(&mut self, session: Option<&str>, tool: &str, arguments: Value) -> Outcome {
        self.calls.push(format!("{} {tool} {arguments}", session.unwrap_or("person")));
        let outcome = match session {
            Some(session) => in_session(&self.house, session, tool, arguments).await,
            None => person(&self.house, tool, arguments).await,
        };
        let said = outcome.error.as_ref().map_or("ok".to_owned(), |error| error.code.as_str().to_owned());
        self.calls.last_mut().unwrap().push_str(&format!(" -> {said}"));
        outcome
    }

    async fn read(&self, session: &str, kind: &str, arguments: Value) -> Outcome {
        in_session(&self.house, session, &format!("builder.{kind}.read"), arguments).await
    }

    /// The revisions of what a session reads, which is what the model says that it reads.
    async fn revisions(&mut self, session: &str) -> Value {
        let read = self.read(session, "workflow", json!({"workflowId": "main"})).await;
        assert!(read.ok, "{read:?}");
        let mut seen = read_graph(&read.data["graph_json"]);
        seen.extend(read_text(FLOW, read.data["workflow_md"].as_str().unwrap()));
        assert_eq!(seen, self.model.view(session)[FLOW], "{session} reads another workflow");
        read.data["revisions"].clone()
    }

    async fn keep_read(&mut self) {
        let by = if self.seed.below(2) == 0 { Some(self.session()) } else { None };
        let revisions = self.revisions(by.unwrap_or("reader")).await;
        let state = by.map_or_else(|| self.model.now.clone(), |session| self.model.view(session));
        self.reads.push(Read { by, revisions, state, there: self.model.now.clone() });
    }

    async fn stage(&mut self) {
        let session = self.session();
        let view = self.model.view(session);
        let is_known = |read: &&Read| read.by.is_none_or(|by| by == session);
        let known: Vec<Read> = self.reads.iter().filter(is_known).cloned().collect();
        let stale = if self.seed.below(100) < 25 { self.one_of(&known) } else { None };
        let from = stale.as_ref().map_or(&view, |read| &read.state);
        let Some(plan) = self.planner.plan(&mut self.seed, &view, from) else { return };
        let revisions = match &stale {
            Some(read) => read.revisions.clone(),
            None => self.revisions(session).await,
        };
        let read = stale.as_ref().map(|read| (&read.state, &read.there));
        let own = stale.as_ref().is_some_and(|read| read.by.is_some());
        let expected = self.model.drafts(session, read, &plan.wishes);
        let staged = self.call(Some(session), "builder.change.stage", plan.sent(&revisions, None)).await;
        let Ok(drafts) = expected else {
            assert!(!staged.ok, "an earlier set of {session} is in the way: {staged:?}");
            assert!(!plan.is_plain || code(&staged) == MISMATCH, "{staged:?}");
            self.tally.add("in the way");
            return;
        };
        if !staged.ok {
            // Not every view that a session had can be made again.
            let is_forgotten = own && code(&staged) == MISMATCH && staged.text.contains("has no revision");
            assert!(!plan.is_plain || is_forgotten, "{staged:?}");
            self.tally.add(if is_forgotten { "an older view is forgotten" } else { "refused" });
            return;
        }
        let set = Set {
            session: session.to_owned(),
            status: Status::Open,
            drafts,
            is_plain: plan.is_plain,
            has_graph: plan.has_graph,
            told: BTreeMap::new(),
        };
        self.keep(set, &staged, &plan).await;
        if stale.is_some() {
            self.tally.add(if own { "staged on an older view" } else { "staged on an older read" });
        }
    }

    async fn keep(&mut self, set: Set, staged: &Outcome, plan: &Plan) {
        let number = number_of(&staged.data["changeSetId"]);
        let session = set.session.clone();
        assert!(self.model.sets.insert(number, set).is_none(), "{staged:?}");
        let objects: BTreeSet<&str> = staged.data["objects"].as_array().unwrap().iter().map(text).collect();
        assert_eq!(objects, plan.wishes.iter().map(|wish| wish.object.as_str()).collect(), "{staged:?}");
        self.expect_based_on(number, &numbers(&staged.data["basedOn"]));
        self.tally.add("staged");
        for wish in &plan.wishes {
            self.expect_read(&session, &wish.object).await;
            let other = self.session();
            self.expect_read(other, &wish.object).await;
        }
    }

    /// What a set is said to be based on: what it contains, and besides only what may supply what it refers to.
    fn expect_based_on(&self, number: i64, told: &BTreeSet<i64>) {
        let contained = self.model.contained(number, None);
        assert!(
            told.is_superset(&contained),
            "cs-{number} contains {contained:?}, and is said to be based on {told:?}"
        );
        let open = self.model.open(&self.model.sets[&number].session);
        assert!(told.iter().all(|other| open.contains(other)), "{told:?} are not all open: {open:?}");
        for other in told {
            assert!(
                told.iter()
                    .chain([&number])
                    .collect::<BTreeSet<_>>()
                    .is_superset(&self.model.contained(*other, None).iter().collect())
            );
        }
        if self.is_plain(number, &contained) {
            assert_eq!(*told, contained, "cs-{number} refers to nothing");
        }
    }

    fn is_plain(&self, number: i64, based_on: &BTreeSet<i64>) -> bool {
        based_on.iter().chain([&number]).all(|number| self.model.sets[number].is_plain)
    }

    /// A set that takes the place of an earlier one: every place of that has another text.
    async fn supersede(&mut self) {
        let session = self.session();
        let is_old = |number: &i64| {
            let set = &self.model.sets[number];
            let is_top = |n: &i64| {
                set.status == Status::Blocked
                    || !self.model.open(session).iter().any(|other| self.model.contained(*other, None).contains(n))
            };
            let is_open = matches!(set.status, Status::Open | Status::Blocked);
            set.session == session
                && is_open
                && set.is_plain
                && set.drafts.iter().all(|draft| draft.is_open)
                && is_top(number)
        };
        let old: Vec<i64> = self.model.sets.keys().copied().filter(is_old).collect();
        let Some(old) = self.one_of(&old) else { return };
        let view = self.model.view(session);
        let Some(plan) = self.planner.replacing(&view, &self.model.sets[&old]) else { return };
        let revisions = self.revisions(session).await;
        // Where a change goes on from: where the replaced one went on from, else what is there.
        let mut bases: BTreeMap<String, Option<Object>> =
            self.model.drafts(session, None, &plan.wishes).unwrap().into_iter().map(|d| (d.object, d.base)).collect();
        // A validation has shown the author both texts of these objects.
        let replaced = &self.model.sets[&old];
        for (object, then) in &replaced.told {
            let draft = replaced.wishes().find(|draft| draft.object == *object);
            let base = draft.map_or(then.clone(), |d| with_told(d.base.as_ref(), then.as_ref(), d.wanted.as_ref()));
            bases.insert(object.clone(), base);
        }
        let staged = self.call(Some(session), "builder.change.stage", plan.sent(&revisions, Some(old))).await;
        assert!(staged.ok, "{staged:?}");
        self.model.reject(&[old].into());
        let mut drafts = self.model.drafts(session, None, &plan.wishes).unwrap();
        let present = self.model.view(session);
        for (draft, wish) in drafts.iter_mut().zip(&plan.wishes) {
            draft.base = bases[&draft.object].clone();
            // What the set does not name is as the session sees it without the one that goes.
            draft.wanted = draft.wanted.as_ref().map(|wanted| as_named(wanted, present.get(&draft.object), wish.part));
        }
        assert_eq!(numbers(&staged.data["superseded"]), [old].into(), "{staged:?}");
        let set = Set {
            session: session.to_owned(),
            status: Status::Open,
            drafts,
            is_plain: true,
            has_graph: false,
            told: BTreeMap::new(),
        };
        self.keep(set, &staged, &plan).await;
        self.tally.add("superseded");
    }

    /// Sets that are refused at once, and leave nothing behind.
    async fn stage_wrongly(&mut self) {
        let session = self.session();
        let edit = |find: &str| {
            json!([{"op": "upsert", "targetType": "step", "target": {"workflowId": "main", "nodeId": "a"},
                "payload": {"textEdits": [{"find": find, "replace": "wrong"}]}}])
        };
        let revisions = self.revisions(session).await;
        let unknown = json!({"workflowRevision": "0".repeat(64)});
        let theirs = self.model.sets.iter().find(|(_, set)| set.session != session).map_or(999, |(number, _)| *number);
        let (operations, revisions, old, expected) = match self.seed.below(3) {
            0 => (edit("nowhere"), &revisions, None, "AI_CHANGESET_CONTRACT_VIOLATION"),
            1 => (edit("Text."), &unknown, None, MISMATCH),
            _ => (edit("Text."), &revisions, Some(theirs), ""),
        };
        let plan = Plan { version: "1.1", operations: operations.as_array().unwrap().clone(), ..Plan::default() };
        let refused = self.call(Some(session), "builder.change.stage", plan.sent(revisions, old)).await;
        assert!(!refused.ok && (expected.is_empty() || code(&refused) == expected), "{refused:?}");
    }

    async fn discard(&mut self) {
        let session = self.session();
        let is_given = |set: &Set| set.session == session && matches!(set.status, Status::Open | Status::Blocked);
        let all: Vec<i64> =
            self.model.sets.iter().filter(|(_, set)| is_given(set)).map(|(number, _)| *number).collect();
        let (by, arguments, meant): (_, _, BTreeSet<i64>) = match (self.one_of(&all), self.seed.below(4)) {
            (_, 0) => (Some(session), json!({}), all.into_iter().collect()),
            (Some(one), 1) => (Some(session), json!({"changeSetId": format!("cs-{one}")}), [one].into()),
            (Some(one), _) => (None, json!({"changeSetId": format!("cs-{one}")}), [one].into()),
            (None, _) => return,
        };
        let discarded = self.call(by, "builder.change.discard", arguments).await;
        assert_eq!(discarded.ok, !meant.is_empty(), "{discarded:?}");
        if discarded.ok {
            let blocked = self.model.reject(&meant);
            let told = (numbers(&discarded.data["discarded"]), numbers(&discarded.data["blocked"]));
            assert_eq!(told, (meant, blocked), "{discarded:?}");
            self.tally.add("discarded");
        }
    }

    async fn apply_any(&mut self) {
        let all: Vec<i64> = self.model.sets.keys().copied().collect();
        let open: Vec<i64> = SESSIONS.iter().flat_map(|session| self.model.open(session)).collect();
        // Mostly one that is open; sometimes one that is not.
        let meant = if self.seed.below(10) == 0 { self.one_of(&all) } else { self.one_of(&open) };
        let Some(number) = meant else { return };
        let set = &self.model.sets[&number];
        let is_some = set.status == Status::Open && set.wishes().count() > 1;
        if is_some && self.seed.below(3) == 0 { self.apply_some(number).await } else { self.apply(number).await }
    }

    /// What a person is shown before an apply says what the validation said.
    async fn expect_preview_to_agree(&self, number: i64, told: &Outcome) {
        let report = shelf_of(&self.house, self.house.project.id).preview(number).await.unwrap().report;
        let is_applied = self.model.sets[&number].status == Status::Applied;
        let is_valid = report.as_ref().is_some_and(|report| report.valid);
        assert!(is_applied || is_valid == (told.ok && told.data["valid"] == true), "{report:?} {told:?}");
        if let Some(report) = report.filter(|_| told.ok) {
            assert_eq!(json!(report.errors), told.data["errors"]);
        }
    }

    /// Asks for a validation and then for an apply: both say the same, and that is what the model says.
    async fn apply(&mut self, number: i64) {
        let id = format!("cs-{number}");
        let session = self.model.sets[&number].session.clone();
        let told = self.call(Some(&session), "builder.change.validate", json!({"changeSetId": id})).await;
        let is_open = self.model.sets[&number].status == Status::Open;
        assert_eq!(told.ok, is_open, "{told:?}");
        self.expect_preview_to_agree(number, &told).await;
        let based_on = if is_open { numbers(&told.data["basedOn"]) } else { BTreeSet::new() };
        let chain = self.model.chain(number, None, &based_on);
        let deletes: Vec<&String> =
            chain.iter().filter(|(_, (_, draft))| draft.wanted.is_none()).map(|(object, _)| object).collect();
        let arguments = json!({"changeSetId": id, "confirmSource": "ui_manual_apply", "confirmDeletes": deletes});
        if !is_open {
            let refused = self.call(None, "builder.change.apply", arguments).await;
            assert_eq!(code(&refused), code(&told), "{refused:?}");
            return self.expect_nothing_new().await;
        }
        self.expect_based_on(number, &based_on);
        let after = self.model.after(&chain);
        let said: Vec<&str> =
            told.data["errors"].as_array().unwrap().iter().map(|error| text(&error["code"])).collect();
        let is_conflict = said.contains(&MISMATCH);
        self.keep_told(number, &told);
        let has_graph = based_on.iter().chain([&number]).any(|number| self.model.sets[number].has_graph);
        assert!(is_conflict || after.is_some(), "cs-{number} changes what somebody else has changed since: {told:?}");
        assert!(
            !is_conflict || after.is_none() || has_graph,
            "nobody else has changed what cs-{number} changes: {told:?}"
        );
        let is_valid = told.data["valid"] == true;
        assert!(is_valid || is_conflict || !self.is_plain(number, &based_on), "cs-{number} is as it must be: {told:?}");
        // What is not valid is told first. What the package does not have nobody misses.
        if deletes.iter().any(|object| self.model.now.contains_key(*object)) && is_valid {
            let unsure = json!({"changeSetId": id, "confirmSource": "ui_manual_apply"});
            let refused = self.call(None, "builder.change.apply", unsure).await;
            assert_eq!(code(&refused), "AI_APPLY_REQUIRES_CONFIRMATION", "{refused:?}");
            self.expect_nothing_new().await;
        }
        let applied = self.call(None, "builder.change.apply", arguments).await;
        assert_eq!(applied.ok, is_valid, "validate and apply do not agree: {told:?} {applied:?}");
        if !is_valid {
            let agrees = match is_conflict {
                true => code(&applied) == MISMATCH && said.iter().all(|code| *code == MISMATCH),
                false => code(&applied) == "AI_VALIDATION_FAILED" && findings(&applied) == said,
            };
            assert!(agrees, "validate and apply do not agree: {told:?} {applied:?}");
            self.tally.add(if is_conflict { "conflict" } else { "invalid" });
            return self.expect_nothing_new().await;
        }
        assert_eq!(numbers(&applied.data["basedOn"]), based_on);
        self.model.settle(number, chain, after.unwrap());
        self.tally.add("applied");
        self.expect_model(&applied).await;
    }

    fn keep_told(&mut self, number: i64, validated: &Outcome) {
        let errors = validated.data["errors"].as_array().unwrap();
        let conflicts = errors.iter().filter(|error| error["code"] == MISMATCH).map(|error| text(&error["path"]));
        let then = conflicts.map(|object| (object.to_owned(), self.model.now.get(object).cloned())).collect();
        self.model.sets.get_mut(&number).unwrap().told = then;
    }

    /// Applies some operations of a set whose effect is known.
    async fn apply_some(&mut self, number: i64) {
        let left: Vec<usize> =
            (0..).zip(&self.model.sets[&number].drafts).filter(|(_, draft)| draft.is_open).map(|(at, _)| at).collect();
        let Some(at) = self.one_of(&left) else { return };
        let based_on = self.model.contained(number, Some(&[at]));
        if !self.is_plain(number, &based_on) {
            return;
        }
        let chain = self.model.chain(number, Some(&[at]), &based_on);
        let after = self.model.after(&chain);
        let arguments =
            json!({"changeSetId": format!("cs-{number}"), "confirmSource": "ui_manual_apply", "operations": [at]});
        let applied = self.call(None, "builder.change.apply", arguments).await;
        let Some(after) = after else {
            assert_eq!(code(&applied), MISMATCH, "{applied:?}");
            return self.expect_nothing_new().await;
        };
        assert!(applied.ok, "{applied:?}");
        assert_eq!(numbers(&applied.data["basedOn"]), based_on);
        self.model.settle(number, chain, after);
        assert_eq!(applied.data["left"], self.model.sets[&number].wishes().count());
        self.tally.add("applied in part");
        self.expect_model(&applied).await;
    }

    async fn undo(&mut self) {
        let last = self.model.moments.len();
        if last < 2 {
            return;
        }
        let moment =
            if self.seed.below(10) < 6 { last } else { 2 + usize::try_from(self.seed.below(last as u64 - 1)).unwrap() };
        let undone = self.call(None, "builder.change.undo", json!({"moment": moment})).await;
        if self.model.undone.contains(&moment) {
            assert_eq!(code(&undone), "AI_APPLY_FAILED", "{undone:?}");
            return self.expect_nothing_new().await;
        }
        let expected = self.model.without(moment);
        let is_known = moment == last || self.model.is_simple(moment);
        assert!(!is_known || undone.ok == expected.is_some(), "{expected:?}: {undone:?}");
        if !undone.ok {
            assert!([MISMATCH, "AI_VALIDATION_FAILED"].contains(&code(&undone)), "{undone:?}");
            return self.expect_nothing_new().await;
        }
        if self.model.commit(expected.expect("a later change is in the way")) {
            self.model.undone.insert(moment);
        }
        self.tally.add("undone");
        self.expect_model(&undone).await;
    }

    /// The package is what the model says, without an error and without a text that was rejected.
    async fn expect_model(&mut self, outcome: &Outcome) {
        let files = shelf_of(&self.house, self.house.project.id).export().await.unwrap();
        assert_eq!(state_of(&files), self.model.now, "{outcome:?}");
        let is_new = files != self.files;
        // The values may be those of before in another order: a node that came and went has left its edges at the end.
        if is_new && outcome.data["moment"] == json!(self.model.moments.len() + 1) {
            self.model.moments.push(self.model.now.clone());
        }
        let moment = is_new.then_some(self.model.moments.len());
        assert_eq!(outcome.data["moment"], json!(moment), "{outcome:?}");
        let errors: Vec<_> =
            validate(&Package::read(files.clone())).into_iter().filter(|f| f.severity == Severity::Error).collect();
        assert_eq!(errors, [], "{outcome:?}");
        let all: String = files.values().map(|bytes| String::from_utf8_lossy(bytes)).collect();
        let forbidden: Vec<&String> =
            self.model.forbidden.iter().filter(|marker| all.contains(marker.as_str())).collect();
        assert!(forbidden.is_empty(), "{forbidden:?} were rejected");
        self.files = files;
    }

    async fn expect_nothing_new(&self) {
        let files = shelf_of(&self.house, self.house.project.id).export().await.unwrap();
        assert!(files == self.files, "what was refused has changed the package");
    }

    /// A session reads an object: as it staged it, or as it is for everybody.
    async fn expect_read(&self, session: &str, name: &str) {
        let view = self.model.view(session);
        let expected = view.get(name);
        let (kind, id) = name.split_once(':').unwrap();
        let (arguments, field) = match kind {
            "asset" => (json!({"path": id}), "content"),
            "agent" => (json!({"agentId": id}), "agent_definition"),
            "step" => (json!({"workflowId": "main", "nodeId": id.trim_start_matches("main/")}), "step_markdown"),
            _ => (json!({"workflowId": "main"}), "workflow_md"),
        };
        // A step is found by its node.
        if kind == "step"
            && nodes(&view[FLOW]).contains(&id.trim_start_matches("main/").to_owned()) != expected.is_some()
        {
            return;
        }
        let read = self.read(session, kind, arguments).await;
        assert_eq!(read.ok, expected.is_some(), "{session} reads {name}: {read:?}");
        let Some(expected) = expected else { return };
        let mut seen = match kind {
            "agent" => read_agent(name, &read.data[field]),
            _ => read_text(name, read.data[field].as_str().unwrap()),
        };
        if kind == "workflow" {
            seen.extend(read_graph(&read.data["graph_json"]));
        }
        assert_eq!(seen, *expected, "{session} reads {name}");
    }

    async fn look_around(&mut self) {
        let session = self.session();
        let names: Vec<String> = self.model.view(session).into_keys().collect();
        let name = self.one_of(&names).unwrap();
        self.expect_read(session, &name).await;
    }

    /// Looks at a set once more: what has the mark of the last look is what would be shown now.
    async fn look_again(&mut self) {
        let all: Vec<i64> = self.model.sets.keys().copied().collect();
        let Some(number) = self.one_of(&all) else { return };
        let shelf = shelf_of(&self.house, self.house.project.id);
        let (seen, now) = (self.watcher.change_sets(None, false).await, shelf.change_sets(None, false).await);
        assert_eq!(seen.unwrap(), now.unwrap(), "what was looked at before is listed otherwise");
        let known = self.looks.get(&number).map(|(mark, _)| mark.clone());
        let wish = Apply { number, ..Apply::default() };
        let (mark, since) = shelf.preview_since(&wish, known.as_deref()).await.unwrap();
        match since {
            Some(preview) => drop(self.looks.insert(number, (mark, shown(&preview)))),
            None => {
                let (now, open) = (shown(&shelf.preview(number).await.unwrap()), self.model.sets[&number].status);
                assert_eq!(self.looks[&number], (mark, now), "cs-{number}");
                let is_open = open == Status::Open;
                self.tally.add(if is_open { "an open set looked at again" } else { "looked at again" });
            }
        }
    }

    async fn expect_statuses(&self) {
        let listed = shelf_of(&self.house, self.house.project.id).change_sets(None, false).await.unwrap();
        for line in listed {
            let status = match line.status.as_str() {
                "applied" => Status::Applied,
                "rejected" => Status::Rejected,
                "blocked" => Status::Blocked,
                _ => Status::Open,
            };
            let number: i64 = line.change_set_id.trim_start_matches("cs-").parse().unwrap();
            assert_eq!(self.model.sets[&number].status, status, "{line:?}");
        }
    }
}

fn shown(Preview { line, body, report, conflicts, diff }: &Preview) -> Value {
    json!([line, body, report, conflicts, diff])
}

#[track_caller]
fn code(outcome: &Outcome) -> &'static str {
    outcome.error.as_ref().unwrap().code.as_str()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn number_of(id: &Value) -> i64 {
    text(id).trim_start_matches("cs-").parse().unwrap()
}

fn numbers(ids: &Value) -> BTreeSet<i64> {
    ids.as_array().unwrap().iter().map(number_of).collect()
}

fn findings(outcome: &Outcome) -> Vec<&str> {
    let details = outcome.error.as_ref().unwrap().details.as_ref().unwrap();
    details["findings"].as_array().unwrap().iter().map(|found| text(&found["code"])).collect()
}
