//! Renames of contract 1.1: the object is renamed where it stands, with all that refers to it, and the rest of the set
//! changes the package as it is then.

use serde_json::{Value, json};

use super::rename::{quotes_in, renames, wanted, with_front};
use super::set::{EdgeName, both};
use super::snapshot::missing;
use super::write::made;
use super::{ChangeSet, Implied, Op, Operation, Payload, Rename, SmallEdits, StepPayload};
use crate::assets;
use crate::files::folder_of;
use crate::finding::Finding;
use crate::limits::ID_BYTES_MAX;
use crate::package::{Package, Workflow};
use crate::refs::Object;
use crate::schema::{ID_IN_WORDS, is_id};

type Made<T> = Result<T, Box<Finding>>;

/// A package in which objects go under other names, and what it took.
pub(super) struct Moved {
    pub(super) package: Package,
    operations: Vec<Operation>,
}

impl Moved {
    /// Renames what the set says, and leaves in the set what it changes besides.
    ///
    /// # Errors
    /// The renames that cannot be done.
    pub(super) fn of(package: &Package, set: &mut ChangeSet, implied: &mut Vec<Implied>) -> Result<Self, Vec<Finding>> {
        let mut moved = Self { package: package.clone(), operations: Vec::new() };
        let (asked, unclear) = wanted(set);
        if !unclear.is_empty() {
            return Err(unclear.into_iter().map(as_error).collect());
        }
        let mut findings = Vec::new();
        for rename in &asked {
            let done = match is_free(&moved.package, set, rename) {
                Ok(true) => moved.rename(set, rename, implied),
                Ok(false) => Ok(()),
                Err(finding) => Err(finding),
            };
            findings.extend(done.err().map(|finding| *finding));
        }
        if findings.is_empty() { Ok(moved) } else { Err(findings) }
    }

    fn rename(&mut self, set: &mut ChangeSet, rename: &Rename, implied: &mut Vec<Implied>) -> Made<()> {
        let Rename { from, to } = rename;
        let mut operations = renames(&self.package, from, to);
        implied.extend(operations.iter().map(|operation| followed(operation, rename)));
        match (from, to) {
            (Object::Asset(old), Object::Asset(new)) => {
                let text = self.package.asset(old).and_then(|asset| asset.text).ok_or_else(|| not_text(from))?;
                let text = assets::with_mention(text, old, new, quotes_in(old)).unwrap_or_else(|| text.to_owned());
                operations.push(upsert(to, Payload::Asset(text)));
            }
            (Object::Agent(old), Object::Agent(new)) => {
                let mut definition = self.package.agent(old).ok_or_else(|| missing(from))?.value.clone();
                definition["id"] = json!(new);
                operations.push(upsert(to, Payload::Agent(definition)));
            }
            (Object::Step { workflow, node: old }, Object::Step { node: new, .. }) => {
                let flow = self.package.workflow(workflow).ok_or_else(|| missing(from))?;
                move_step(&self.package, flow, (old, new), &mut operations, implied)?;
                rename_edits(set, workflow, (old, new));
            }
            _ => return Ok(()),
        }
        // A node without a file has no step that goes.
        if operations.iter().any(|operation| operation.object == *to) {
            implied.push(Implied { object: from.clone(), says: format!("goes: it is `{to}` now") });
            implied.push(Implied { object: to.clone(), says: format!("is what `{from}` was") });
            let reason = Some(format!("it is `{to}` now"));
            let (object, edits) = (from.clone(), SmallEdits::default());
            operations.push(Operation { op: Op::Delete, object, payload: None, edits, reason });
        }
        set.operations.retain(|operation| !(operation.op == Op::Delete && operation.object == *from));
        self.package = made(&self.package, &operations)?;
        // What an earlier rename of the set made of it goes on under its new name.
        self.operations.retain(|known| !(known.op == Op::Upsert && known.object == *from));
        operations.into_iter().for_each(|operation| put(&mut self.operations, operation));
        Ok(())
    }

    /// Puts into a set of whole objects what the renames took. What the set says of an object itself it goes on from them.
    pub(super) fn add_to(self, set: &mut ChangeSet) {
        let goes = |set: &ChangeSet, object: &Object| {
            let workflow = object.workflow().map(|id| Object::Workflow(id.to_owned()));
            let is_gone = |known: &Operation| {
                known.op == Op::Delete && (known.object == *object || Some(&known.object) == workflow.as_ref())
            };
            set.operations.iter().any(is_gone)
        };
        let mut deletes = Vec::new();
        for operation in self.operations {
            let is_own = |own: &Operation| own.object == operation.object && own.op == operation.op;
            match set.operations.iter().position(is_own) {
                Some(at) => {
                    let own = set.operations[at].payload.take();
                    set.operations[at].payload = both(operation.payload, own);
                }
                None if goes(set, &operation.object) => {}
                None if operation.op == Op::Delete => deletes.push(operation),
                None => set.operations.push(operation),
            }
        }
        set.operations.splice(0..0, deletes);
    }
}

fn as_error(finding: Finding) -> Finding {
    let hint = "write `{\"from\": \"step:WORKFLOW/old\", \"to\": \"step:WORKFLOW/new\"}`; so for `asset:` and `agent:`";
    Finding { severity: crate::Severity::Error, hint: hint.to_owned(), ..finding }
}

/// Whether the new name is free. One that the set writes anew itself may be taken: then only the references follow.
fn is_free(package: &Package, set: &ChangeSet, Rename { from, to }: &Rename) -> Made<bool> {
    let is_there = |object: &Object| match object {
        Object::Asset(path) => package.has_asset(path),
        Object::Agent(id) => package.agent(id).is_some(),
        Object::Step { workflow, node } => package.workflow(workflow).is_some_and(|w| w.node(node).is_some()),
        _ => false,
    };
    if !is_there(from) {
        return Err(Box::new(missing(from).hint("write the name of an object of the package in `from`")));
    }
    if let Some((code, problem)) = name_problem(to) {
        let finding = Finding::error(code, "", "extensions.renames", format!("the new name `{to}` {problem}"));
        return Err(Box::new(
            finding.expected("a name that such an object may have").actual(to.to_string()).hint("choose another name"),
        ));
    }
    if !is_there(to) {
        return Ok(true);
    }
    let is_written = set.operations.iter().any(|known| known.op == Op::Upsert && known.object == *to);
    if is_written && !matches!(to, Object::Step { .. }) {
        return Ok(false);
    }
    let message = format!("`{from}` cannot be called `{to}`, for there is one already");
    let finding = Finding::error("RENAME_TAKEN", "", "extensions.renames", message);
    Err(Box::new(finding.expected("a name that is free").actual(to.to_string()).hint("choose another name")))
}

/// What keeps an object from having this name, as a code and in words.
fn name_problem(object: &Object) -> Option<(&'static str, String)> {
    let id = match object {
        Object::Asset(path) => return assets::problem(path),
        Object::Agent(id) | Object::Step { node: id, .. } => id,
        _ => return None,
    };
    if id.len() > ID_BYTES_MAX {
        return Some(("ID_TOO_LONG", format!("has an id of more than {ID_BYTES_MAX} bytes")));
    }
    (!is_id(id)).then(|| ("SCHEMA_PATTERN", format!("is not valid: an id has {ID_IN_WORDS}")))
}

fn not_text(object: &Object) -> Box<Finding> {
    let message = format!("`{object}` is no text, or has not been loaded, so it cannot be renamed in a set");
    let finding = Finding::error("RENAME_NOT_TEXT", "", "extensions.renames", message);
    Box::new(finding.hint("let a person rename it"))
}

fn upsert(object: &Object, payload: Payload) -> Operation {
    let (object, payload) = (object.clone(), Some(payload));
    Operation { op: Op::Upsert, object, payload, edits: SmallEdits::default(), reason: None }
}

/// Keeps of each object one operation of a kind: the later one says what it names.
fn put(all: &mut Vec<Operation>, operation: Operation) {
    match all.iter_mut().find(|known| known.object == operation.object && known.op == operation.op) {
        Some(known) => known.payload = both(known.payload.take(), operation.payload),
        None => all.push(operation),
    }
}

/// What a reference that follows comes to, in a sentence.
pub(super) fn followed(operation: &Operation, Rename { from, to }: &Rename) -> Implied {
    Implied { object: operation.object.clone(), says: format!("names `{to}` where it named `{from}`") }
}

/// The step under its other name, and the graph with the name of its file.
fn move_step(
    package: &Package,
    workflow: &Workflow,
    (old, new): (&str, &str),
    operations: &mut Vec<Operation>,
    implied: &mut Vec<Implied>,
) -> Made<()> {
    let flow = Object::Workflow(workflow.id.clone());
    let graph = operations.iter_mut().find(|operation| operation.object == flow).and_then(|operation| {
        match &mut operation.payload {
            Some(Payload::Workflow(payload)) => payload.graph_json.as_mut(),
            _ => None,
        }
    });
    let Some(graph) = graph else {
        let message = format!("the graph of `{flow}` is not one in which a node can be renamed");
        let finding = Finding::error("GRAPH_NOT_EDITABLE", "", "extensions.renames", message);
        return Err(Box::new(finding.hint("give `graph_json`, and each step that leads there")));
    };
    let node = workflow.node(old);
    if let Some(file) = node.and_then(|node| new_file(package, workflow, node.file.as_deref()?, (old, new))) {
        let nodes = graph.get_mut("nodes").and_then(Value::as_array_mut).into_iter().flatten();
        for node in nodes.filter(|node| node["id"] == new) {
            node["file"] = json!(file);
        }
        implied.push(Implied { object: flow.clone(), says: format!("the file of `{new}` is `{file}`") });
    }
    if let Some(document) = workflow.step(old).and_then(|step| step.document.as_ref()) {
        let mut places: Vec<String> =
            document.field("nodeId").filter(|id| *id == old).map(|_| "/nodeId".to_owned()).into_iter().collect();
        let ways = document.front().get("transitions").and_then(Value::as_array).into_iter().flatten().enumerate();
        places.extend(ways.filter(|(_, way)| way["to"] == old).map(|(at, _)| format!("/transitions/{at}/to")));
        let text =
            if places.is_empty() { Some(document.text().to_owned()) } else { with_front(document, &places, new) };
        let object = Object::Step { workflow: workflow.id.clone(), node: new.to_owned() };
        let step_markdown = text.ok_or_else(|| {
            let message = format!("the front matter of `{old}` is written so that its `nodeId` cannot be set alone");
            let finding = Finding::error("FRONT_MATTER_NOT_EDITABLE", "", "extensions.renames", message);
            Box::new(finding.hint("give the `step_markdown` of the new name in the set"))
        })?;
        operations.push(upsert(&object, Payload::Step(StepPayload { step_markdown, path: None })));
    }
    Ok(())
}

/// The file of a node that is called for its id, under its other name. None where it keeps its file.
fn new_file(package: &Package, workflow: &Workflow, file: &str, (old, new): (&str, &str)) -> Option<String> {
    let (folder, name) = file.rsplit_once('/').map_or(("", file), |(folder, name)| (folder, name));
    let end = name.strip_prefix(old).filter(|end| end.starts_with('.'))?;
    let file = if folder.is_empty() { format!("{new}{end}") } else { format!("{folder}/{new}{end}") };
    let path = format!("{}{file}", folder_of(&workflow.graph_path));
    (!package.files().contains_key(&path)).then_some(file)
}

/// The small edits of a set with the new name of a node: after its rename the former one can only mean it.
fn rename_edits(set: &mut ChangeSet, workflow: &str, (old, new): (&str, &str)) {
    let rename = |value: Option<&mut Value>| {
        if let Some(value) = value.filter(|value| **value == *old) {
            *value = json!(new);
        }
    };
    for operation in set.operations.iter_mut().filter(|operation| operation.object.workflow() == Some(workflow)) {
        let edits = &mut operation.edits;
        // Its delete is the rename.
        edits.delete_nodes.retain(|id| id != old);
        edits.nodes.iter_mut().for_each(|node| rename(node.get_mut("id")));
        for edge in &mut edits.edges {
            rename(edge.get_mut("from"));
            rename(edge.get_mut("to"));
        }
        for edge in &mut edits.delete_edges {
            if let EdgeName::Ends { from, to, .. } = edge {
                [from, to].into_iter().filter(|end| *end == old).for_each(|end| new.clone_into(end));
            }
        }
        edits.transitions.iter_mut().for_each(|way| rename(way.get_mut("to")));
        edits.delete_transitions.iter_mut().filter(|to| *to == old).for_each(|to| new.clone_into(to));
        if edits.entry_node_id.as_deref() == Some(old) {
            edits.entry_node_id = Some(new.to_owned());
        }
    }
    let says_nothing =
        |operation: &Operation| operation.op == Op::Upsert && operation.payload.is_none() && operation.edits.is_empty();
    set.operations.retain(|operation| !says_nothing(operation));
}
