//! References that follow a name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{ChangeSet, Op, Operation, Payload, SmallEdits, StepPayload, WorkflowPayload};
use crate::assets::{self, Quotes};
use crate::document::Document;
use crate::finding::Finding;
use crate::package::{Package, Workflow};
use crate::refs::{Index, Kind, Locator, Object, Ref};
use crate::yaml;

/// An object that goes under one name and comes under another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The former name.
    pub from: Object,
    /// The other name, of the same kind.
    pub to: Object,
}

/// The renames that a set asks for: `extensions.rewriteReferences` is true, `extensions.renames` names them as
/// `{from, to}`, each an object such as `asset:assets/a.md`, `agent:ada` or `step:main/work`, and the set deletes the
/// one and, unless it is of contract 1.1, makes the other. With findings for those that it names and that cannot be.
#[must_use]
pub fn wanted(set: &ChangeSet) -> (Vec<Rename>, Vec<Finding>) {
    let (mut renames, mut findings) = (Vec::new(), Vec::new());
    if set.extensions.get("rewriteReferences") != Some(&Value::Bool(true)) {
        return (renames, findings);
    }
    let is_first = set.schema_version == "1.0";
    let named = set.extensions.get("renames").and_then(Value::as_array);
    let has = |op: Op, object: &Object| set.operations.iter().any(|o| o.op == op && o.object == *object);
    for (index, value) in named.into_iter().flatten().enumerate() {
        let object = |name: &str| value.get(name).and_then(Value::as_str).and_then(object_of);
        let problem = match (object("from"), object("to")) {
            (Some(from), Some(to)) if !is_kin(&from, &to) => "is of two kinds, or of two workflows",
            (Some(from), Some(_)) if renames.iter().any(|rename: &Rename| rename.from == from) => {
                "gives another name to what an earlier one renames"
            }
            (Some(from), Some(to)) if !has(Op::Delete, &from) || (is_first && !has(Op::Upsert, &to)) => {
                "needs the delete of the one and the upsert of the other in the same set"
            }
            (Some(from), Some(to)) => {
                renames.push(Rename { from, to });
                continue;
            }
            _ if value.to_string().contains("\"workflow:") => "names a workflow, and the id of a workflow stays",
            _ => "does not name two objects, such as `asset:assets/a.md`, `agent:ada` or `step:main/work`",
        };
        let message = format!("extensions.renames[{index}] {problem}");
        let finding = Finding::warning("RENAME_UNCLEAR", "", format!("extensions.renames[{index}]"), message);
        findings.push(finding.actual(value.to_string()).hint("fix it, or rewrite the references in the set"));
    }
    (renames, findings)
}

pub(super) fn object_of(name: &str) -> Option<Object> {
    let (kind, id) = name.split_once(':')?;
    match kind {
        "asset" => Some(Object::Asset(id.to_owned())),
        "agent" => Some(Object::Agent(id.to_owned())),
        "step" => {
            let (workflow, node) = id.split_once('/')?;
            Some(Object::Step { workflow: workflow.to_owned(), node: node.to_owned() })
        }
        _ => None,
    }
}

pub(super) fn is_kin(from: &Object, to: &Object) -> bool {
    match (from, to) {
        (Object::Asset(_), Object::Asset(_)) | (Object::Agent(_), Object::Agent(_)) => from != to,
        (Object::Step { workflow: one, .. }, Object::Step { workflow: other, .. }) => one == other && from != to,
        _ => false,
    }
}

/// The upserts that let every reference at hand name `to` where it named `from`: at most one per object, none for
/// `from` itself. A reference that cannot be rewritten without changing more, such as a YAML alias, stays, and
/// validation tells it. For several renames, ask again with the package that the first ones made.
#[must_use]
pub fn renames(package: &Package, from: &Object, to: &Object) -> Vec<Operation> {
    if !is_kin(from, to) {
        return Vec::new();
    }
    let found = Index::of(package).find(&Locator::Object(from.clone()));
    match (from, to) {
        (Object::Asset(old), Object::Asset(new)) => rename_asset(package, &found.inbound, from, (old, new)),
        (Object::Agent(old), Object::Agent(new)) => rename_agent(package, &found.inbound, (old, new)),
        (Object::Step { workflow, node: old }, Object::Step { node: new, .. }) => match package.workflow(workflow) {
            Some(workflow) => rename_step(package, workflow, &found.inbound, (old, new)),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn upsert(object: Object, payload: Payload, (from, to): (&str, &str)) -> Operation {
    let reason = Some(format!("`{from}` is called `{to}` now"));
    Operation { op: Op::Upsert, object, payload: Some(payload), edits: SmallEdits::default(), reason }
}

fn step(text: String) -> Payload {
    Payload::Step(StepPayload { step_markdown: text, path: None })
}

fn rename_asset(package: &Package, inbound: &[Ref], itself: &Object, names: (&str, &str)) -> Vec<Operation> {
    let objects: BTreeSet<&Object> = inbound.iter().map(|r| &r.from).filter(|from| *from != itself).collect();
    let payload = |object: &Object| match object {
        Object::Workflow(id) => {
            let workflow = package.workflow(id)?;
            let graph = workflow.graph.as_ref().and_then(|graph| {
                let mut changed = graph.clone();
                rewrite_texts(&mut changed, names);
                (changed != *graph).then_some(changed)
            });
            let text = workflow.document.as_ref().and_then(|document| with_mention(document, names));
            let payload = WorkflowPayload { workflow_md: text, graph_json: graph, ..WorkflowPayload::default() };
            (payload != WorkflowPayload::default()).then_some(Payload::Workflow(payload))
        }
        Object::Step { workflow, node } => {
            let document = package.workflow(workflow)?.step(node)?.document.as_ref()?;
            Some(step(with_mention(document, names)?))
        }
        Object::Agent(id) => {
            let mut definition = package.agent(id)?.value.clone();
            rewrite_texts(&mut definition, names);
            (definition != package.agent(id)?.value).then_some(Payload::Agent(definition))
        }
        // A set writes no other asset, so its author is told what stays in it.
        Object::Asset(path) if assets::is_text(path) => {
            let text = package.asset(path)?.text?;
            Some(Payload::Asset(assets::with_mention(text, names.0, names.1, quotes_in(path))?))
        }
        Object::Asset(_) | Object::Package | Object::Variable { .. } => None,
    };
    objects.into_iter().filter_map(|object| Some(upsert(object.clone(), payload(object)?, names))).collect()
}

fn with_mention(document: &Document, (from, to): (&str, &str)) -> Option<String> {
    // A field is written as YAML wants it: one that is the path alone has it alone afterwards, and in a sentence it may need
    // quotes.
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    for (pointer, _) in assets::mentions_in(document.front()).into_iter().filter(|(_, path)| path == from) {
        let Some(text) = document.front().pointer(&pointer).and_then(Value::as_str) else { continue };
        let new =
            if text == from { Some(to.to_owned()) } else { assets::with_mention(text, from, to, Quotes::From(0)) };
        fields.extend(new.map(|new| (pointer, new)));
    }
    let named = if fields.is_empty() { None } else { with_fields(document, &fields) };
    let text = named.as_deref().unwrap_or(document.text());
    let body = text.len() - document.body().len();
    assets::with_mention(text, from, to, Quotes::From(body)).or_else(|| named.clone())
}

/// Quotes are Markdown's: in data they would be a part of the text.
pub(super) fn quotes_in(asset: &str) -> Quotes {
    if asset.ends_with(".md") { Quotes::From(0) } else { Quotes::No }
}

/// The depth of a definition is bounded where it is parsed, so recursion is.
fn rewrite_texts(value: &mut Value, names: (&str, &str)) {
    match value {
        Value::String(text) => {
            if let Some(changed) = assets::with_mention(text, names.0, names.1, Quotes::From(0)) {
                *text = changed;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite_texts(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rewrite_texts(field, names)),
        _ => {}
    }
}

fn rename_agent(package: &Package, inbound: &[Ref], names: (&str, &str)) -> Vec<Operation> {
    // By object, so that a node and its step, or a graph with many nodes, are one operation each.
    let mut graphs: BTreeMap<&str, Value> = BTreeMap::new();
    let mut steps: BTreeMap<&Object, String> = BTreeMap::new();
    for reference in inbound.iter().filter(|r| r.kind == Kind::Agent) {
        let Object::Step { workflow: id, node } = &reference.from else { continue };
        let Some(workflow) = package.workflow(id) else { continue };
        if reference.file == workflow.graph_path {
            let graph = graphs.entry(id).or_insert_with(|| workflow.graph.clone().unwrap_or_default());
            if let Some(place) = graph.pointer_mut(&reference.pointer) {
                *place = Value::from(names.1);
            }
        } else if let Some(document) = workflow.step(node).and_then(|step| step.document.as_ref())
            && let Some(text) = with_front(document, std::slice::from_ref(&reference.pointer), names.1)
        {
            steps.insert(&reference.from, text);
        }
    }
    let graphs = graphs.into_iter().map(|(id, graph)| {
        let payload = WorkflowPayload { graph_json: Some(graph), ..WorkflowPayload::default() };
        upsert(Object::Workflow(id.to_owned()), Payload::Workflow(payload), names)
    });
    let steps = steps.into_iter().map(|(object, text)| upsert(object.clone(), step(text), names));
    graphs.chain(steps).collect()
}

fn rename_step(package: &Package, workflow: &Workflow, inbound: &[Ref], names: (&str, &str)) -> Vec<Operation> {
    let mut operations = Vec::new();
    let payload = WorkflowPayload {
        graph_json: workflow.graph.as_ref().and_then(|graph| renamed_graph(workflow, graph, names)),
        workflow_md: workflow.document.as_ref().and_then(|document| renamed_state(document, names)),
        ..WorkflowPayload::default()
    };
    if payload != WorkflowPayload::default() {
        operations.push(upsert(Object::Workflow(workflow.id.clone()), Payload::Workflow(payload), names));
    }
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for reference in inbound.iter().filter(|r| r.kind == Kind::Transition) {
        if let Object::Step { node, .. } = &reference.from {
            places.entry(node).or_default().push(reference.pointer.clone());
        }
    }
    // The step under its other name may still say the former one.
    let own = package.workflow(&workflow.id).and_then(|w| w.step(names.1)).and_then(|step| step.document.as_ref());
    if own.is_some_and(|document| document.field("nodeId") == Some(names.0)) {
        places.entry(names.1).or_default().push("/nodeId".to_owned());
    }
    for (node, places) in places.into_iter().filter(|(node, _)| *node != names.0) {
        let document = workflow.step(node).and_then(|step| step.document.as_ref());
        if let Some(text) = document.and_then(|document| with_front(document, &places, names.1)) {
            let object = Object::Step { workflow: workflow.id.clone(), node: node.to_owned() };
            operations.push(upsert(object, step(text), names));
        }
    }
    operations
}

/// The graph with the other name in its entry, its edges and, unless a node has it already, its node.
fn renamed_graph(workflow: &Workflow, graph: &Value, names: (&str, &str)) -> Option<Value> {
    let mut changed = graph.clone();
    let rename = |place: Option<&mut Value>| {
        if let Some(place) = place.filter(|place| place.as_str() == Some(names.0)) {
            *place = Value::from(names.1);
        }
    };
    rename(changed.get_mut("entryNodeId"));
    for edge in changed.get_mut("edges").and_then(Value::as_array_mut).into_iter().flatten() {
        rename(edge.get_mut("from"));
        rename(edge.get_mut("to"));
    }
    if workflow.node(names.1).is_none() {
        for node in changed.get_mut("nodes").and_then(Value::as_array_mut).into_iter().flatten() {
            rename(node.get_mut("id"));
        }
    }
    (changed != *graph).then_some(changed)
}

/// The document of a workflow with the other name in its state.
fn renamed_state(document: &Document, (from, to): (&str, &str)) -> Option<String> {
    let mut places = Vec::new();
    places.extend(document.field("currentNodeId").filter(|id| *id == from).map(|_| "/currentNodeId".to_owned()));
    let done = document.front().get("stepsCompleted").and_then(Value::as_array).into_iter().flatten().enumerate();
    places.extend(done.filter(|(_, id)| id.as_str() == Some(from)).map(|(at, _)| format!("/stepsCompleted/{at}")));
    let log = document.front().get("decisionLog").and_then(Value::as_array).into_iter().flatten().enumerate();
    places.extend(log.flat_map(|(at, decision)| {
        let named =
            ["from", "to"].into_iter().filter(move |side| decision.get(side).and_then(Value::as_str) == Some(from));
        named.map(move |side| format!("/decisionLog/{at}/{side}"))
    }));
    with_front(document, &places, to)
}

/// The document with another text at these places of its front matter, and every other byte as it was. None where that
/// cannot be done.
pub(super) fn with_front(document: &Document, pointers: &[String], to: &str) -> Option<String> {
    with_fields(document, &pointers.iter().map(|pointer| (pointer.clone(), to.to_owned())).collect())
}

/// The same with a text for each place.
fn with_fields(document: &Document, fields: &BTreeMap<String, String>) -> Option<String> {
    let mut expected = document.front().clone();
    for (pointer, to) in fields {
        *expected.pointer_mut(pointer)? = Value::from(to.as_str());
    }
    let (front, start) = document.yaml();
    let mut places = yaml::places(front);
    places.retain(|place| place.is_scalar && fields.contains_key(&place.pointer));
    if places.is_empty() {
        return None;
    }
    // An id may look like a number or a truth; then it needs quotes.
    [false, true].into_iter().find_map(|quotes| {
        let mut text = document.text().to_owned();
        for place in places.iter().rev() {
            let (raw, to) = (front.get(place.at.clone())?, fields.get(&place.pointer)?);
            let kept = raw.len() - raw.trim_end().len();
            let quote = raw
                .chars()
                .next()
                .filter(|c| matches!(c, '"' | '\''))
                .map_or("", |c| if c == '"' { "\"" } else { "'" });
            let quote = if quote.is_empty() && quotes { "\"" } else { quote };
            text.replace_range(start + place.at.start..start + place.at.end - kept, &format!("{quote}{to}{quote}"));
        }
        let read = Document::parse("", text.as_bytes()).ok()?;
        (*read.front() == expected && read.body() == document.body()).then_some(text)
    })
}
