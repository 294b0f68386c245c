//! Snapshots put into the files of a package. No byte of anything else changes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::snapshot::{listed, not_at_hand, proposed};
use super::splice::{append_item, remove_item, replace_item, rewrite};
use super::{Op, Operation, Part, Snapshot, snapshot};
use crate::assets;
use crate::files::{folder_of, problem};
use crate::finding::Finding;
use crate::json;
use crate::package::{Edits, MANIFEST, Package, Place};
use crate::refs::Object;
use crate::spans::Tree;

type Result<T> = std::result::Result<T, Box<Finding>>;

/// The edits that make the object as the snapshot says, or take it out. What is so already is not edited.
///
/// # Errors
/// Why it cannot be so: a path that is unsafe or another's, a step without a node, the entry workflow deleted, or
/// something needed that is not at hand.
pub fn write(package: &Package, object: &Object, wanted: Option<&Snapshot>) -> Result<Edits> {
    let mut draft = Draft::new(package);
    draft.put(object, wanted)?;
    Ok(draft.finish())
}

/// The package with several objects made so, and what could not be done. Steps go first and come last, so that a step
/// finds its node: in the graph as it was, or as it is to be.
#[must_use]
pub fn overlay(package: &Package, objects: &[(Object, Option<Snapshot>)]) -> (Package, Vec<Finding>) {
    let mut ordered: Vec<&(Object, Option<Snapshot>)> = objects.iter().collect();
    ordered.sort_by_key(|(object, wanted)| match (object, wanted) {
        (Object::Step { .. }, None) => 0,
        (Object::Step { .. }, Some(_)) => 2,
        _ => 1,
    });
    let mut draft = Draft::new(package);
    draft.places_taken = places_taken(package, objects);
    let mut findings = Vec::new();
    for (object, wanted) in ordered {
        if let Err(finding) = draft.put(object, wanted.as_ref()) {
            findings.push(*finding);
        }
    }
    let edits = draft.finish();
    (if edits.is_empty() { package.clone() } else { package.edited(&edits) }, findings)
}

/// A package with edits that are not made yet. Reading it anew after each edit would cost the square of them.
struct Draft<'a> {
    package: &'a Package,
    edits: Edits,
    /// Workflows that were written: where they are, and their nodes with the paths of their files. None: gone.
    workflows: BTreeMap<String, Option<Drafted>>,
    /// What nobody but its owner may write.
    reserved: BTreeSet<String>,
    /// Agents that come, with those that go and whose places in the list they take.
    places_taken: BTreeMap<String, String>,
}

/// Which agent takes the place of which, so that a renamed one stays where it was: the one that says the same under another
/// id, or the only one that comes where only one goes.
fn places_taken(package: &Package, objects: &[(Object, Option<Snapshot>)]) -> BTreeMap<String, String> {
    let (mut come, mut gone) = (Vec::new(), Vec::new());
    for (object, wanted) in objects {
        let Object::Agent(id) = object else { continue };
        match (package.agent(id), wanted.as_ref().and_then(|wanted| wanted.get(Part::Definition))) {
            (Some(agent), None) => gone.push((id, without_id(agent.value.clone()))),
            (None, Some(text)) => come.push((id, without_id(serde_json::from_str(text).unwrap_or_default()))),
            _ => {}
        }
    }
    let mut taken = BTreeMap::new();
    let is_one = come.len() == 1 && gone.len() == 1;
    for (new, definition) in come {
        let same = |(_, former): &(&String, Value)| is_one || *former == definition;
        if let Some(at) = gone.iter().position(same) {
            taken.insert(new.clone(), gone.remove(at).0.clone());
        }
    }
    taken
}

fn without_id(mut definition: Value) -> Value {
    if let Some(fields) = definition.as_object_mut() {
        fields.remove("id");
    }
    definition
}

#[derive(Clone)]
struct Drafted {
    place: Place,
    nodes: Vec<(String, Option<String>)>,
}

impl<'a> Draft<'a> {
    fn new(package: &'a Package) -> Self {
        let mut reserved = BTreeSet::from([MANIFEST.to_owned()]);
        reserved.extend(package.agents_path().map(str::to_owned));
        let mut draft =
            Self { package, edits: Edits::new(), workflows: BTreeMap::new(), reserved, places_taken: BTreeMap::new() };
        draft.reserve_listed();
        draft
    }

    /// The documents and graphs of all workflows, of those that are not at hand as far as the manifest tells.
    fn reserve_listed(&mut self) {
        for workflow in self.package.workflows() {
            self.reserved.extend([workflow.path.clone(), workflow.graph_path.clone()]);
        }
        let manifest = self.text(MANIFEST).unwrap_or_default().to_owned();
        let tree = Tree::of(&manifest);
        let listed = tree.as_ref().and_then(|tree| tree.field("workflows")?.items()).unwrap_or_default();
        for entry in listed {
            self.reserved.extend(["workflow", "graph"].iter().filter_map(|name| entry.text_in(&manifest, name)));
        }
    }

    fn bytes(&self, path: &str) -> Option<&[u8]> {
        match self.edits.get(path) {
            Some(edited) => edited.as_deref(),
            None => self.package.files().get(path).map(Vec::as_slice),
        }
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.bytes(path).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    fn set(&mut self, path: &str, text: impl Into<Vec<u8>>) {
        self.edits.insert(path.to_owned(), Some(text.into()));
    }

    fn finish(self) -> Edits {
        let files = self.package.files();
        let mut edits = self.edits;
        edits.retain(|path, bytes| files.get(path) != bytes.as_ref());
        edits
    }

    fn workflow(&self, id: &str) -> Option<Drafted> {
        match self.workflows.get(id) {
            Some(drafted) => drafted.clone(),
            None => self.package.workflow(id).map(|workflow| Drafted {
                place: workflow.place(),
                nodes: workflow.nodes.iter().map(|node| (node.id.clone(), node.path.clone())).collect(),
            }),
        }
    }

    /// Whether a node, other than this one, has this file.
    fn has_other_node(&self, workflow: &str, node: Option<&str>, path: &str) -> bool {
        let is_other = |id: &str, other: &str| id != workflow || node.is_some_and(|node| node != other);
        let drafted = self.workflows.iter().flat_map(|(id, drafted)| {
            drafted.iter().flat_map(|d| &d.nodes).map(move |(node, path)| (id.as_str(), node.as_str(), path.as_deref()))
        });
        let read = self
            .package
            .workflows()
            .iter()
            .filter(|w| !self.workflows.contains_key(&w.id))
            .flat_map(|w| w.nodes.iter().map(move |node| (w.id.as_str(), node.id.as_str(), node.path.as_deref())));
        drafted.chain(read).any(|(id, other, file)| file == Some(path) && is_other(id, other))
    }

    fn put(&mut self, object: &Object, wanted: Option<&Snapshot>) -> Result<()> {
        match (object, wanted) {
            (Object::Workflow(id), Some(wanted)) => self.put_workflow(id, wanted),
            (Object::Workflow(id), None) => self.drop_workflow(id),
            (Object::Step { workflow, node }, Some(wanted)) => self.put_step(workflow, node, wanted),
            (Object::Step { workflow, node }, None) => {
                let drafted = self.workflow(workflow);
                let path = drafted.and_then(|w| w.nodes.into_iter().find(|(id, _)| id == node)?.1);
                if let Some(path) = path
                    && check_path(&path, &self.reserved).is_ok()
                    && !self.has_other_node(workflow, Some(node), &path)
                {
                    self.edits.insert(path, None);
                }
                Ok(())
            }
            (Object::Agent(id), wanted) => self.put_agent(id, wanted),
            (Object::Asset(path), None) => {
                if path.starts_with(assets::FOLDER) {
                    self.edits.insert(path.clone(), None);
                }
                Ok(())
            }
            (Object::Asset(path), Some(wanted)) => {
                let before = snapshot(self.package, object);
                if let Some((code, said)) = unwritable(self.package, path).filter(|_| before.as_ref() != Some(wanted)) {
                    let message = format!("the path of the asset `{}` {said}", path.escape_debug());
                    return Err(Box::new(
                        Finding::error(code, path, "", message).actual(path).hint("choose another path"),
                    ));
                }
                if let Some(text) = wanted.get(Part::Content) {
                    self.set(path, text);
                }
                Ok(())
            }
            (Object::Package | Object::Variable { .. }, _) => {
                let message = format!("`{object}` is nothing that can be written by itself");
                Err(Box::new(Finding::error("TARGET_NOT_FOUND", "", "", message)))
            }
        }
    }

    fn put_step(&mut self, workflow: &str, node: &str, wanted: &Snapshot) -> Result<()> {
        let Some(drafted) = self.workflow(workflow) else {
            let finding = if self.package.has_workflow(workflow) && !self.workflows.contains_key(workflow) {
                not_at_hand(&Object::Workflow(workflow.to_owned()))
            } else {
                Finding::error(
                    "WORKFLOW_NOT_FOUND",
                    MANIFEST,
                    "/workflows",
                    format!("there is no workflow `{workflow}`"),
                )
                .expected("the id of a workflow")
                .actual(workflow)
                .hint("make the workflow in the same set, or name another one")
            };
            return Err(Box::new(finding));
        };
        let named = drafted.nodes.iter().find(|(id, _)| id == node);
        let graph = drafted.place.graph_path.as_str();
        let Some(path) = named.and_then(|(_, path)| path.as_deref()) else {
            let what = if named.is_some() { "names no file" } else { "is not there" };
            let message = format!("the node `{node}` {what}, so the step has no place in the workflow `{workflow}`");
            let finding = Finding::error("NODE_NOT_FOUND", graph, "/nodes", message).actual(node);
            return Err(Box::new(finding.expected("a node with a `file`").hint(
                "add the node to the workflow in the same set (`nodes`), or rename one (`extensions.renames`)",
            )));
        };
        let Some(text) = wanted.get(Part::Document) else { return Ok(()) };
        if self.text(path) != Some(text) {
            check_path(path, &self.reserved)?;
            let was_its_own = self.package.workflow(workflow).and_then(|w| w.node(node)?.path.as_deref()) == Some(path);
            if !was_its_own && !self.edits.contains_key(path) && self.package.files().contains_key(path) {
                return Err(taken(path));
            }
            self.set(path, text);
        }
        Ok(())
    }

    fn put_agent(&mut self, id: &str, wanted: Option<&Snapshot>) -> Result<()> {
        let object = Object::Agent(id.to_owned());
        let Some(file) = self.package.agents_path() else { return Err(Box::new(not_at_hand(&object))) };
        let text = self.text(file).filter(|_| self.package.agents_json().is_some()).unwrap_or_default();
        let former = self.places_taken.get(id);
        let found = listed(text, "agents", id).or_else(|| listed(text, "agents", former?));
        let wanted = wanted.and_then(|wanted| wanted.get(Part::Definition));
        if let Some(definition) = wanted {
            check_item(definition, id, file)?;
        } else if found.is_none() {
            return Ok(());
        }
        let whole = Tree::of(text);
        let list = whole.as_ref().and_then(|tree| tree.field("agents"));
        let Some(list) = list.filter(|list| list.items().is_some()) else {
            let finding =
                Finding::error("AGENTS_UNREADABLE", file, "/agents", format!("`{file}` has no list of agents"));
            return Err(Box::new(finding.expected("`agents`: a list").hint("fix the file first")));
        };
        let changed = splice(text, list, found.as_ref().map(|(_, index)| *index), wanted);
        self.set(file, changed);
        Ok(())
    }

    fn put_workflow(&mut self, id: &str, wanted: &Snapshot) -> Result<()> {
        let object = Object::Workflow(id.to_owned());
        let before = self.workflow(id);
        if before.is_none() && self.package.has_workflow(id) && !self.workflows.contains_key(id) {
            return Err(Box::new(not_at_hand(&object)));
        }
        let entry = wanted.get(Part::Entry).map(|entry| check_item(entry, id, MANIFEST)).transpose()?;
        let place = match (&before, &entry) {
            (Some(before), entry) => same_place(&before.place, entry.as_ref())?,
            (None, Some(entry)) => self.new_place(id, entry)?,
            (None, None) => {
                let message = format!("the workflow `{id}` is not there, and nothing says where it is to be");
                return Err(Box::new(Finding::error("WORKFLOW_INCOMPLETE", MANIFEST, "/workflows", message)));
            }
        };
        // A manifest may say that a workflow is where something else is. Then it stays as it is.
        let others = BTreeSet::from_iter(self.package.agents_path().into_iter().chain([MANIFEST]).map(str::to_owned));
        for (part, path) in [(Part::Document, &place.path), (Part::Graph, &place.graph_path)] {
            if wanted.get(part) != self.text(path) {
                check_path(path, &others)?;
            }
        }
        if let Some(entry) = wanted.get(Part::Entry) {
            self.list_entry(id, Some(entry))?;
        }
        for (part, path) in [(Part::Document, &place.path), (Part::Graph, &place.graph_path)] {
            match wanted.get(part) {
                Some(text) if self.text(path) != Some(text) => self.set(path, text),
                // A part that is no text is in no snapshot, and is not lost because of that.
                None if self.text(path).is_some() => drop(self.edits.insert(path.clone(), None)),
                _ => {}
            }
        }
        let nodes = nodes_of(self.text(&place.graph_path).unwrap_or_default(), &place.graph_path);
        self.reserved.extend([place.path.clone(), place.graph_path.clone()]);
        self.workflows.insert(id.to_owned(), Some(Drafted { place, nodes: nodes.clone() }));
        if let Some(before) = before {
            self.move_steps(id, &before.nodes, &nodes);
        }
        Ok(())
    }

    /// A node whose file has another name keeps its step.
    fn move_steps(&mut self, workflow: &str, before: &[(String, Option<String>)], after: &[(String, Option<String>)]) {
        let former: BTreeMap<&str, &str> =
            before.iter().filter_map(|(id, path)| Some((id.as_str(), path.as_deref()?))).collect();
        for (id, path) in after {
            let (Some(from), Some(to)) = (former.get(id.as_str()), path.as_deref()) else { continue };
            let is_free = self.bytes(to).is_none() && check_path(to, &self.reserved).is_ok();
            if *from == to || !is_free || check_path(from, &self.reserved).is_err() {
                continue;
            }
            let Some(bytes) = self.bytes(from).map(<[u8]>::to_vec) else { continue };
            self.set(to, bytes);
            if !self.has_other_node(workflow, Some(id), from) {
                self.edits.insert((*from).to_owned(), None);
            }
        }
    }

    fn new_place(&self, id: &str, entry: &Value) -> Result<Place> {
        let path = |name: &str| {
            let path = entry.get(name).and_then(Value::as_str).unwrap_or_default();
            check_path(path, &self.reserved)?;
            if self.bytes(path).is_some() { Err(taken(path)) } else { Ok(path.to_owned()) }
        };
        let (path, graph_path) = (path("workflow")?, path("graph")?);
        if path == graph_path {
            let message = format!("the document and the graph of the workflow `{id}` are both `{path}`");
            return Err(Box::new(Finding::error("PATH_TAKEN", &path, "", message).expected("a file for each")));
        }
        Ok(Place { id: id.to_owned(), pointer: String::new(), path, graph_path, about: None })
    }

    /// Writes the manifest's entry of a workflow, or takes it out.
    fn list_entry(&mut self, id: &str, entry: Option<&str>) -> Result<()> {
        let object = Object::Workflow(id.to_owned());
        let Some(manifest) = self.text(MANIFEST) else { return Err(Box::new(not_at_hand(&object))) };
        let bare = manifest.strip_prefix('\u{feff}').unwrap_or(manifest);
        let Ok(Value::Object(mut fields)) = json::parse(MANIFEST, bare.as_bytes()) else {
            let message = format!("`{MANIFEST}` cannot be understood, so nothing can be listed in it");
            return Err(Box::new(Finding::error("JSON_SYNTAX", MANIFEST, "", message).hint("fix the file first")));
        };
        let tree = Tree::of(manifest);
        let list = tree.as_ref().and_then(|tree| tree.field("workflows")).filter(|list| list.items().is_some());
        let changed = match (list, entry) {
            (Some(list), entry) => {
                let index = listed(manifest, "workflows", id).map(|(_, index)| index);
                splice(manifest, list, index, entry)
            }
            (None, None) => return Ok(()),
            (None, Some(entry)) => {
                let entry: Value = serde_json::from_str(entry).unwrap_or_default();
                fields.insert("workflows".to_owned(), Value::Array(vec![entry]));
                rewrite(manifest, &Value::Object(fields))
            }
        };
        let changed = entry.and_then(|entry| as_entry(&changed, entry)).unwrap_or(changed);
        self.set(MANIFEST, changed);
        Ok(())
    }

    fn drop_workflow(&mut self, id: &str) -> Result<()> {
        let Some(Drafted { place, nodes }) = self.workflow(id) else {
            let is_elsewhere = self.package.has_workflow(id) && !self.workflows.contains_key(id);
            return if is_elsewhere { Err(Box::new(not_at_hand(&Object::Workflow(id.to_owned())))) } else { Ok(()) };
        };
        let entry = |name: &str| self.package.manifest()?.get("entry")?.get(name)?.as_str();
        let is_entry = entry("workflow") == Some(&place.path) || entry("graph") == Some(&place.graph_path);
        if is_entry || place.pointer == "/entry" {
            let message = format!("the workflow `{id}` is the entry of the package, and stays as long as it is");
            let finding = Finding::error("ENTRY_WORKFLOW_DELETED", MANIFEST, "/entry", message);
            return Err(Box::new(finding.hint(
                "no change set names another entry: a person changes `entry` in bmad.json and imports the package again",
            )));
        }
        self.list_entry(id, None)?;
        self.workflows.insert(id.to_owned(), None);
        let others: BTreeSet<String> = self.others(id);
        for path in [&place.path, &place.graph_path] {
            if !others.contains(path) && path != MANIFEST && Some(path.as_str()) != self.package.agents_path() {
                self.edits.insert(path.clone(), None);
            }
        }
        for path in nodes.into_iter().filter_map(|(_, path)| path) {
            if check_path(&path, &self.reserved).is_ok() && !self.has_other_node(id, None, &path) {
                self.edits.insert(path, None);
            }
        }
        if !others.contains(&place.path) {
            self.reserved.remove(&place.path);
        }
        if !others.contains(&place.graph_path) {
            self.reserved.remove(&place.graph_path);
        }
        Ok(())
    }

    /// The documents and graphs of the other workflows.
    fn others(&self, id: &str) -> BTreeSet<String> {
        let mut others = BTreeSet::new();
        for workflow in self.package.workflows().iter().filter(|w| w.id != id && !self.workflows.contains_key(&w.id)) {
            others.extend([workflow.path.clone(), workflow.graph_path.clone()]);
        }
        for drafted in self.workflows.values().flatten() {
            others.extend([drafted.place.path.clone(), drafted.place.graph_path.clone()]);
        }
        let manifest = self.text(MANIFEST).unwrap_or_default();
        let tree = Tree::of(manifest);
        for entry in tree.as_ref().and_then(|tree| tree.field("workflows")?.items()).unwrap_or_default() {
            others.extend(["workflow", "graph"].iter().filter_map(|name| entry.text_in(manifest, name)));
        }
        others
    }
}

/// The manifest with this workflow as its entry, if it has none: the first workflow of a package that was just begun.
fn as_entry(manifest: &str, workflow: &str) -> Option<String> {
    let bare = manifest.strip_prefix('\u{feff}').unwrap_or(manifest);
    let mut fields: Value = serde_json::from_str(bare).ok()?;
    let entry = fields.get_mut("entry")?.as_object_mut()?;
    if entry.contains_key("workflow") || entry.contains_key("graph") {
        return None;
    }
    let workflow: Value = serde_json::from_str(workflow).ok()?;
    let others = std::mem::take(entry);
    for name in ["workflow", "graph"] {
        entry.insert(name.to_owned(), workflow.get(name)?.clone());
    }
    entry.extend(others);
    Some(rewrite(manifest, &fields))
}

/// The text with one item of a list replaced, taken out or added.
fn splice(text: &str, list: &Tree, index: Option<usize>, wanted: Option<&str>) -> String {
    let item = index.and_then(|index| Some((index, list.items()?.get(index)?)));
    match (item, wanted) {
        (Some((_, item)), Some(wanted)) => replace_item(text, item, wanted),
        (Some((index, _)), None) => remove_item(text, list, index),
        (None, Some(wanted)) => append_item(text, list, wanted),
        (None, None) => text.to_owned(),
    }
}

/// A text that is to stand in a list: one JSON object with this id.
fn check_item(text: &str, id: &str, file: &str) -> Result<Value> {
    let value = json::parse(file, text.as_bytes())?;
    if value.get("id").and_then(Value::as_str) == Some(id) && !text.starts_with('\u{feff}') {
        return Ok(value);
    }
    let message = format!("what is to stand in `{file}` as `{id}` has another id");
    let actual = value.get("id").map(Value::to_string).unwrap_or_default();
    Err(Box::new(Finding::error("ID_CHANGED", file, "/id", message).expected(id).actual(actual).hint("keep the id")))
}

/// A workflow stays where it is.
fn same_place(place: &Place, entry: Option<&Value>) -> Result<Place> {
    let Some(entry) = entry else { return Ok(place.clone()) };
    for (name, is) in [("workflow", &place.path), ("graph", &place.graph_path)] {
        let said = entry.get(name).and_then(Value::as_str).unwrap_or_default();
        if said != is {
            let message = format!("the workflow `{}` is in `{is}`, and stays there", place.id);
            let finding = Finding::error("WORKFLOW_PATH_CHANGED", MANIFEST, format!("/{name}"), message);
            return Err(Box::new(finding.expected(is).actual(said).hint("keep the path")));
        }
    }
    Ok(place.clone())
}

/// There is something else at this path.
fn taken(path: &str) -> Box<Finding> {
    let message = format!("the path `{}` belongs to something else", path.escape_debug());
    let finding = Finding::error("PATH_TAKEN", path, "", message);
    Box::new(finding.expected("a path of its own below the package").actual(path).hint("choose another path"))
}

/// A path that a step or a workflow may be written to.
fn check_path(path: &str, reserved: &BTreeSet<String>) -> Result<()> {
    let shown = path.escape_debug();
    if let Some(problem) = problem(path) {
        let finding = Finding::error("PATH_UNSAFE", path, "", format!("the path `{shown}` {problem}"));
        let finding = finding.expected("a path of its own below the package").actual(path);
        return Err(Box::new(finding.hint("choose another path")));
    }
    if path.starts_with(assets::FOLDER) || reserved.contains(path) { Err(taken(path)) } else { Ok(()) }
}

/// The nodes of a graph, with the paths of their files. None where it cannot be understood.
fn nodes_of(graph: &str, path: &str) -> Vec<(String, Option<String>)> {
    let graph = json::parse(path, graph.as_bytes()).unwrap_or_default();
    let nodes = graph.get("nodes").and_then(Value::as_array).into_iter().flatten();
    let text = |node: &Value, name: &str| node.get(name).and_then(Value::as_str).map(str::to_owned);
    let path_of = |node: &Value| text(node, "file").map(|file| format!("{}{file}", folder_of(path)));
    nodes.filter_map(|node| Some((text(node, "id")?, path_of(node)))).collect()
}

/// The package as operations on whole objects make it.
///
/// # Errors
/// Why one of them cannot be done.
pub(super) fn made(package: &Package, operations: &[Operation]) -> Result<Package> {
    let mut wanted = Vec::new();
    let mut seen = package.clone();
    for is_first in [true, false] {
        for operation in operations {
            if matches!(operation.object, Object::Workflow(_)) == is_first {
                let before = if operation.op == Op::Delete { package } else { &seen };
                wanted.push((operation.object.clone(), proposed(before, operation)?));
            }
        }
        seen = overlay(package, &wanted).0;
    }
    Ok(seen)
}

/// What keeps a set from writing an asset, if anything: a stable code and what is meant by it. An asset that is there
/// may be changed whatever its name is.
pub(super) fn unwritable(package: &Package, path: &str) -> Option<(&'static str, String)> {
    assets::problem(path).filter(|_| !(package.has_asset(path) && assets::is_text(path) && problem(path).is_none()))
}
