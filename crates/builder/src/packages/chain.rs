//! What a change set of a session is based on: the other open ones without which it would not be what the session saw.
//!
//! A set is based on each earlier one of the same objects, whose text it contains, and on each that supplies what it
//! refers to. Both are found anew each time from what is staged now, so that no note of it can become untrue.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::{self, ChangeSet, Op, Operation, Rename, overlay};
use crate::refs::{Index, Kind, Locator, Object, Ref};
use crate::{Package, Workflow};
use serde_json::{Value, json};

use super::drafts::{Draft, last_of_each, merged};
use super::error::{PackageError, Result};
use super::kept::Kept;
use super::part::Part;
use super::{ProjectPackage, set_id};
use toolhost_store::db::Tx;

/// A set with all that it is based on.
pub(super) struct Chain {
    /// The others, by number.
    pub(super) based_on: BTreeSet<i64>,
    /// What all of them want: of each object the last wish.
    pub(super) drafts: Vec<Draft>,
    /// All of them as one set.
    pub(super) body: Value,
    /// The package with these very drafts over it, where it was read to find them.
    pub(super) part: Option<Part>,
    /// Whether later sets of the session that make nothing and delete nothing leave it as it is: nothing is missing in it.
    pub(super) is_settled: bool,
}

impl Chain {
    /// Such as `["cs-1"]`.
    pub(super) fn names(&self) -> Vec<String> {
        self.based_on.iter().copied().map(set_id).collect()
    }
}

impl ProjectPackage {
    /// The chain of an open set, or of those of its wishes that are chosen.
    pub(super) async fn chain(&self, tx: &mut Tx, kept: &Kept, chosen: &[Draft]) -> Result<Chain> {
        let all = self.all_drafts(tx, &kept.overlay).await?;
        let mut links = Links::of(kept.number, chosen.iter().collect(), &all);
        links.take_earlier();
        let mut part = None;
        if !links.others.is_empty() {
            let view = match self.own_view(tx, &mut links).await? {
                Some(view) => view,
                None => {
                    let seen = links.chosen.iter().chain(&links.others).map(|draft| (*draft).clone()).collect();
                    let view = self.view(tx, seen).await?;
                    links.take_suppliers(&view);
                    view
                }
            };
            part = (view.drafts == links.drafts()).then_some(view.part);
        }
        self.expect_whole(tx, &links).await?;
        let drafts = links.drafts();
        let body = self.body_of(tx, kept, &links.taken, &drafts).await?;
        Ok(Chain { based_on: links.taken, drafts, body, part, is_settled: links.is_settled })
    }

    /// The open sets of an overlay that contain the text of one of these, and those that refer to what they make.
    pub(super) async fn on_top_of(
        &self,
        tx: &mut Tx,
        overlay: &str,
        numbers: &BTreeSet<i64>,
    ) -> Result<(BTreeSet<i64>, BTreeSet<i64>)> {
        let all = self.all_drafts(tx, overlay).await?;
        // What can no longer be laid over the package is not valid in any case.
        let view = self.view(tx, all.clone()).await.ok();
        let (mut containing, mut referring) = (BTreeSet::new(), BTreeSet::new());
        for number in sets(&all) {
            if numbers.contains(&number) {
                continue;
            }
            let mut links = Links::of(number, own(&all, number), &all);
            links.take_earlier();
            if !links.taken.is_disjoint(numbers) {
                containing.insert(number);
                continue;
            }
            if let Some(view) = &view {
                links.take_suppliers(view);
            }
            if !links.taken.is_disjoint(numbers) {
                referring.insert(number);
            }
        }
        Ok((containing, referring))
    }

    /// What each open set of an overlay is based on, where there are others.
    pub(super) async fn links(&self, tx: &mut Tx, overlay: &str) -> Result<BTreeMap<i64, BTreeSet<i64>>> {
        let marks = self.marks(tx, overlay).await?;
        if marks.numbers().count() < 2 {
            return Ok(BTreeMap::new());
        }
        let key = (self.who.project_id, overlay.to_owned());
        let mut known = self.links.known(&key, &marks);
        let unknown: Vec<i64> = marks.numbers().filter(|number| !known.contains_key(number)).collect();
        if unknown.is_empty() {
            return Ok(known);
        }
        let all = self.all_drafts(tx, overlay).await?;
        let mut view = None;
        let mut found = BTreeMap::new();
        for number in &unknown {
            let mut links = Links::of(*number, own(&all, *number), &all);
            links.take_earlier();
            // For one of them less is read; for several, all at once.
            let is_found = unknown.len() == 1 && self.own_view(tx, &mut links).await?.is_some();
            if !is_found {
                if view.is_none() {
                    view = Some(self.view(tx, all.clone()).await?);
                }
                view.iter().for_each(|view| links.take_suppliers(view));
            }
            let mark = if links.is_settled { marks.around(*number) } else { marks.whole() };
            known.insert(*number, links.taken.clone());
            found.insert(*number, (mark, links.taken));
        }
        self.links.keep(key, &marks, found);
        Ok(known)
    }

    /// What a set with the earlier ones that it contains is laid over, if nothing is missing in it: then no other set matters to it. The
    /// answer is `None`, and `links` stay as they were, where another set might matter.
    async fn own_view(&self, tx: &mut Tx, links: &mut Links<'_>) -> Result<Option<View>> {
        let all = || links.chosen.iter().chain(&links.others);
        let makes_workflow = |draft: &&&Draft| matches!(draft.object, Object::Workflow(_)) && draft.base.is_none();
        if all().any(|draft| draft.wanted.is_none()) || links.others.iter().any(|draft| makes_workflow(&draft)) {
            return Ok(None);
        }
        let contained = links.taken.clone();
        let view = self.view(tx, links.drafts()).await?;
        links.take_suppliers(&view);
        if links.is_settled {
            return Ok(Some(view));
        }
        (links.taken, links.is_settled) = (contained, true);
        Ok(None)
    }

    /// What these drafts and all others of the session are laid over, read once.
    async fn view(&self, tx: &mut Tx, mut drafts: Vec<Draft>) -> Result<View> {
        drafts.sort_by_key(|draft| (draft.set, draft.position));
        let wholes = wholes(drafts.iter().map(|draft| &draft.object));
        let drafts = last_of_each(drafts);
        let part = self.part_for(tx, &drafts).await?;
        let all = part.package();
        let base = Index::of(&part.base);
        let known = base.unresolved().chain(nameless(&part.base, [&part.base, all])).collect();
        let mut view = View { known, base, missing: BTreeSet::new(), drafts, part };
        view.missing = view.missing_in(view.part.package(), &wholes);
        Ok(view)
    }

    /// # Errors
    /// A later set that is taken contains what was not chosen of this one.
    async fn expect_whole(&self, tx: &mut Tx, links: &Links<'_>) -> Result<()> {
        for own in self.wishes(tx, links.own).await? {
            let is_chosen = links.chosen.iter().any(|chosen| chosen.object == own.object);
            let contains = |draft: &&Draft| draft.object == own.object && draft.set > links.own;
            if let Some(later) = links.taken_drafts().find(contains).filter(|_| !is_chosen) {
                let object = own.object.to_string();
                return Err(PackageError::Inseparable { number: links.own, by: later.set, object });
            }
        }
        Ok(())
    }

    /// The sets of a chain as one: of each object the last operation, the set's own ones first.
    async fn body_of(&self, tx: &mut Tx, kept: &Kept, taken: &BTreeSet<i64>, drafts: &[Draft]) -> Result<Value> {
        if taken.is_empty() {
            return Ok(only(&kept.body, drafts));
        }
        let staged = |body: &Value| change::parse_staged(body).map_err(PackageError::Contract);
        let mut parsed = Vec::new();
        for number in taken {
            parsed.push((*number, staged(&self.kept(tx, *number).await?.body)?));
        }
        let own = staged(&kept.body)?;
        parsed.push((kept.number, own.clone()));
        parsed.sort_by_key(|(number, _)| *number);
        let mut last: BTreeMap<&Object, (bool, Operation)> = BTreeMap::new();
        for (number, set) in &parsed {
            for operation in &set.operations {
                let Some(draft) = drafts.iter().find(|draft| draft.object == operation.object) else { continue };
                if *number > draft.set || (operation.op == Op::Delete) != draft.wanted.is_none() {
                    continue;
                }
                let mut operation = operation.clone();
                if let Some((_, former)) = last.remove(&draft.object) {
                    operation.payload = change::both(former.payload, operation.payload);
                }
                last.insert(&draft.object, (draft.set == kept.number, operation));
            }
        }
        let (mine, theirs): (Vec<_>, Vec<_>) = last.into_values().partition(|(is_own, _)| *is_own);
        let mut whole = own;
        whole.operations = mine.into_iter().chain(theirs).map(|(_, operation)| operation).collect();
        whole.declared_impact = None;
        add_renames(&mut whole, parsed.iter().map(|(_, set)| set));
        Ok(whole.to_value())
    }
}

/// The package without drafts, and the package with all drafts of a session.
struct View {
    /// Of each object the last one.
    drafts: Vec<Draft>,
    part: Part,
    /// The references without drafts, and what is missing of what they name.
    base: Index,
    known: BTreeSet<(Object, Object)>,
    /// What is missing with all drafts, beside what is missing without them.
    missing: BTreeSet<(Object, Object)>,
}

impl View {
    /// What is missing in the package without drafts when some wholes have other contents, beside what is missing anyway.
    fn missing_in(&self, after: &Package, wholes: &BTreeSet<Object>) -> BTreeSet<(Object, Object)> {
        let mut missing = self.base.unresolved_with(after, wholes);
        missing.extend(nameless(after, [&self.part.base, self.part.package()]));
        missing.retain(|pair| !self.known.contains(pair));
        missing
    }

    /// What makes this: it, or what sets a variable.
    fn makers(&self, object: &Object) -> BTreeSet<Object> {
        if !matches!(object, Object::Variable { .. }) {
            return [object.clone()].into();
        }
        let writes = |reference: &&Ref| reference.kind == Kind::VariableWrite;
        let index = Index::of_part(self.part.package(), &[object.whole()].into(), &self.base);
        let inbound = index.find(&Locator::Object(object.clone())).inbound;
        inbound.iter().filter(writes).map(|reference| reference.from.clone()).collect()
    }
}

/// What these objects are parts of.
fn wholes<'a>(objects: impl Iterator<Item = &'a Object>) -> BTreeSet<Object> {
    objects.map(Object::whole).chain([Object::Package]).collect()
}

/// The sets of drafts, the first first.
fn sets(drafts: &[Draft]) -> BTreeSet<i64> {
    drafts.iter().map(|draft| draft.set).collect()
}

/// What a set itself wants, of each object the last.
fn own(drafts: &[Draft], number: i64) -> Vec<&Draft> {
    let mut own: Vec<&Draft> = drafts.iter().filter(|draft| draft.set == number).collect();
    let all = own.clone();
    own.retain(|draft| {
        all.iter().rfind(|last| last.object == draft.object).is_some_and(|last| std::ptr::eq(*last, *draft))
    });
    own
}

/// The sets that are taken along, while it is found out which.
struct Links<'a> {
    own: i64,
    taken: BTreeSet<i64>,
    /// What is wanted of the set itself.
    chosen: Vec<&'a Draft>,
    /// What all other open sets of the session want.
    others: Vec<&'a Draft>,
    /// Whether nothing was missing that others might have.
    is_settled: bool,
}

impl<'a> Links<'a> {
    /// Of a set whose `chosen` drafts are wanted, beside all of its overlay.
    fn of(own: i64, chosen: Vec<&'a Draft>, all: &'a [Draft]) -> Self {
        let others = all.iter().filter(|draft| draft.set != own).collect();
        Self { own, taken: BTreeSet::new(), chosen, others, is_settled: true }
    }

    /// What is taken, of each object the last wish.
    fn drafts(&self) -> Vec<Draft> {
        let mut all: Vec<Draft> = self.taken_drafts().chain(self.chosen.iter().copied()).cloned().collect();
        all.sort_by_key(|draft| (draft.set, draft.position));
        last_of_each(all)
    }

    fn taken_drafts(&self) -> impl Iterator<Item = &'a Draft> {
        self.others.iter().copied().filter(|draft| self.taken.contains(&draft.set))
    }

    /// Takes each earlier set of an object that a taken one changes: the later text contains the earlier one.
    fn take_earlier(&mut self) {
        loop {
            let earlier = |other: &&&Draft| {
                let contains = |draft: &Draft| draft.object == other.object && draft.set > other.set;
                self.chosen.iter().copied().chain(self.taken_drafts()).any(contains)
            };
            let found: BTreeSet<i64> = self.others.iter().filter(earlier).map(|draft| draft.set).collect();
            if found.is_subset(&self.taken) {
                return;
            }
            self.taken.extend(found);
        }
    }

    /// Takes what supplies what is missing, until nothing is missing that another set has.
    fn take_suppliers(&mut self, view: &View) {
        let base = &view.part.base;
        self.take_opposed(view);
        loop {
            let Ok((drafts, _)) = merged(base, &self.drafts()) else {
                self.is_settled = false;
                return;
            };
            let over: Vec<_> = drafts.into_iter().map(|draft| (draft.object, draft.wanted)).collect();
            let (after, _) = overlay(base, &over);
            let before = self.taken.len();
            for (from, to) in view.missing_in(&after, &wholes(over.iter().map(|(object, _)| object))) {
                self.is_settled = false;
                self.take_supplier(&from, &to, view);
            }
            for (object, _) in over.iter().filter(|(_, wanted)| wanted.is_some()) {
                self.take_graph(object, &after);
            }
            if self.taken.len() == before {
                return;
            }
            self.take_earlier();
        }
    }

    /// Takes the earliest set that makes what is referred to, else the earliest that no longer refers to it.
    fn take_supplier(&mut self, from: &Object, to: &Object, view: &View) {
        if view.missing.contains(&(from.clone(), to.clone())) {
            return;
        }
        let first =
            |is_meant: &dyn Fn(&Draft) -> bool| self.others.iter().find(|draft| is_meant(draft)).map(|draft| draft.set);
        let makers = view.makers(to);
        let made = first(&|draft| makers.contains(&draft.object) && draft.wanted.is_some());
        self.taken.extend(made.or_else(|| first(&|draft| draft.object == *from)));
    }

    /// Takes earlier sets that refer to what this one deletes, and those that delete what this one refers to: the session saw them
    /// when it wrote this one.
    fn take_opposed(&mut self, view: &View) {
        let base = &view.part.base;
        let earlier: Vec<&Draft> = self.others.iter().copied().filter(|draft| draft.set < self.own).collect();
        if earlier.iter().chain(&self.chosen).all(|draft| draft.wanted.is_some()) {
            // Nothing is deleted, so nothing opposes another.
            return;
        }
        let seen = last_of_each(earlier.iter().chain(&self.chosen).map(|draft| (*draft).clone()).collect());
        let Ok((seen, _)) = merged(base, &seen) else { return };
        let seen: Vec<_> = seen.into_iter().map(|draft| (draft.object, draft.wanted)).collect();
        let deletes = |drafts: &[&Draft], object: &Object| {
            drafts.iter().any(|draft| draft.object == *object && draft.wanted.is_none())
        };
        let missing = view.missing_in(&overlay(base, &seen).0, &wholes(seen.iter().map(|(object, _)| object)));
        for (from, to) in &missing {
            // What a graph says of a node it says for the node.
            let graph = from.workflow().map(|id| Object::Workflow(id.to_owned()));
            let says = |draft: &Draft| {
                draft.wanted.is_some() && (draft.object == *from || Some(&draft.object) == graph.as_ref())
            };
            if deletes(&self.chosen, to) {
                self.taken.extend(earlier.iter().filter(|draft| says(draft)).map(|draft| draft.set));
            } else if self.chosen.iter().any(|draft| says(draft)) && deletes(&earlier, to) {
                let deleting = earlier.iter().filter(|draft| draft.object == *to && draft.wanted.is_none());
                self.taken.extend(deleting.map(|draft| draft.set));
            }
        }
        self.take_earlier();
    }

    /// Takes the earliest set whose graph has the node of a step.
    fn take_graph(&mut self, object: &Object, after: &Package) {
        let Object::Step { workflow, node } = object else { return };
        if after.workflow(workflow).is_some_and(|known| known.node(node).is_some()) {
            return;
        }
        self.is_settled = false;
        let graph = Object::Workflow(workflow.clone());
        let names = |draft: &&&Draft| {
            draft.object == graph
                && draft.wanted.as_ref().and_then(|wanted| wanted.get(change::Part::Graph)).is_some_and(|text| {
                    let quoted = Value::from(node.as_str()).to_string();
                    text.contains(&quoted)
                })
        };
        let found = self.others.iter().find(names).map(|draft| draft.set);
        self.taken.extend(found);
    }
}

/// What is missing and is no reference: files of nodes, and workflows that menus name. `both` are the package without drafts and the
/// session's view: a menu may name a workflow of theirs, also by one of its files.
fn nameless(package: &Package, both: [&Package; 2]) -> BTreeSet<(Object, Object)> {
    let mut found = BTreeSet::new();
    for workflow in package.workflows() {
        found.extend(without_file(package, workflow));
    }
    for agent in package.agents() {
        for (_, named) in agent.menu_workflows() {
            let is_named =
                |workflow: &&Workflow| workflow.id == named || workflow.path == named || workflow.graph_path == named;
            let of_ours = both.iter().flat_map(|package| package.workflows()).find(is_named);
            let id = of_ours.map_or(named, |workflow| workflow.id.as_str());
            let is_ours = both.iter().any(|package| package.has_workflow(id));
            if is_ours && !package.has_workflow(id) {
                found.insert((Object::Agent(agent.id.clone()), Object::Workflow(id.to_owned())));
            }
        }
    }
    found
}

fn without_file(package: &Package, workflow: &Workflow) -> Vec<(Object, Object)> {
    let is_missing = |path: &String| !package.files().contains_key(path);
    let nodes = workflow.nodes.iter().filter(|node| node.path.as_ref().is_some_and(is_missing));
    let from = Object::Workflow(workflow.id.clone());
    let step = |node: &str| Object::Step { workflow: workflow.id.clone(), node: node.to_owned() };
    nodes.map(|node| (from.clone(), step(&node.id))).collect()
}

/// The renames of all sets of a chain that hold for the whole.
fn add_renames<'a>(whole: &mut ChangeSet, sets: impl Iterator<Item = &'a ChangeSet>) {
    let has = |op: Op, object: &Object| whole.operations.iter().any(|o| o.op == op && o.object == *object);
    let holds = |rename: &Rename| has(Op::Delete, &rename.from) && has(Op::Upsert, &rename.to);
    let renames: Vec<Rename> = sets.flat_map(|set| change::wanted(set).0).filter(holds).collect();
    whole.extensions.remove("renames");
    whole.extensions.remove("rewriteReferences");
    if !renames.is_empty() {
        let named = |Rename { from, to }: &Rename| json!({ "from": from.to_string(), "to": to.to_string() });
        whole.extensions.insert("rewriteReferences".to_owned(), json!(true));
        whole.extensions.insert("renames".to_owned(), renames.iter().map(named).collect());
    }
}

/// The set without the operations that are not wanted.
fn only(body: &Value, chosen: &[Draft]) -> Value {
    let mut body = body.clone();
    if let Some(operations) = body.get_mut("operations").and_then(Value::as_array_mut) {
        let is_chosen = |position: usize| chosen.iter().any(|draft| draft.position == position as i64);
        let all = std::mem::take(operations).into_iter().enumerate();
        *operations = all.filter(|(position, _)| is_chosen(*position)).map(|(_, operation)| operation).collect();
    }
    // What it said of all its operations need not be true of some.
    if let Some(fields) = body.as_object_mut() {
        fields.remove("impact");
    }
    body
}
