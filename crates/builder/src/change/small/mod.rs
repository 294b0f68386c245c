//! Small edits made whole: what a set of contract 1.1 says in parts becomes the texts that it means.

mod blocks;
mod front;
mod graph;
mod implied;
mod text;

use serde_json::{Map, Value};
use toolhost_contract::Redactor;

use self::graph::Graph;
pub(super) use self::implied::{OF_A_WAY, SAID_TWICE};
use super::moved::Moved;
use super::set::check_size;
use super::snapshot::missing;
use super::{
    ChangeSet, Implied, Op, Operation, Part, Payload, Snapshot, StepPayload, WorkflowPayload, overlay, proposed,
    snapshot,
};
use crate::finding::Finding;
use crate::package::Package;
use crate::refs::Object;

type Made<T> = Result<T, Box<Finding>>;

/// Puts whole texts in the place of the small edits of a set, as the session sees the package, and adds what follows from
/// them: the step of a node that goes, transitions and edges, agents and titles that a node and its step both name. A set
/// of contract 1.0 stays as it is.
///
/// `secrets` says what a read does not show, and what a small edit can neither find nor show.
///
/// # Errors
/// What cannot be done, operation by operation.
pub fn complete(package: &Package, set: &mut ChangeSet, secrets: &Redactor) -> Result<Vec<Implied>, Vec<Finding>> {
    if set.schema_version == "1.0" {
        return Ok(Vec::new());
    }
    let mut implied = Vec::new();
    let moved = Moved::of(package, set, &mut implied)?;
    let package = moved.package.clone();
    let mut seen = package.clone();
    let mut findings = Vec::new();
    // As with whole objects, a step's file is where the graph says after the set.
    for is_first in [true, false] {
        let mut wanted: Vec<(Object, Option<Snapshot>)> = Vec::new();
        for (index, operation) in set.operations.iter_mut().enumerate() {
            if matches!(operation.object, Object::Workflow(_)) != is_first || operation.op == Op::Delete {
                continue;
            }
            let made = whole(&seen, operation, &mut implied, secrets)
                .and_then(|()| proposed(&seen, operation).map_err(|finding| vec![*finding]));
            match made {
                Ok(state) => wanted.push((operation.object.clone(), state)),
                Err(wrong) => findings.extend(wrong.into_iter().map(|finding| at_operation(finding, index))),
            }
        }
        if is_first && !wanted.is_empty() {
            seen = overlay(&seen, &wanted).0;
        }
    }
    if findings.is_empty() {
        implied::add(&package, set, &mut implied);
        moved.add_to(set);
        if let Err(refused) = check_size(&set.to_value()) {
            let message = refused.errors.first().map_or_else(|| refused.to_string(), |error| error.message.clone());
            let finding = Finding::error("SET_TOO_LARGE", "", "operations", message);
            findings.push(finding.hint("make several sets of it"));
        }
    }
    if findings.is_empty() { Ok(implied) } else { Err(findings) }
}

fn at_operation(mut finding: Finding, index: usize) -> Finding {
    if finding.pointer.is_empty() {
        finding.pointer = format!("operations[{index}]");
    }
    finding
}

/// Makes the payload of one operation whole.
///
/// # Errors
/// All that cannot be done of it, as far as one does not hide the other.
fn whole(
    package: &Package,
    operation: &mut Operation,
    implied: &mut Vec<Implied>,
    secrets: &Redactor,
) -> Result<(), Vec<Finding>> {
    let edits = std::mem::take(&mut operation.edits);
    if let Some(Payload::Workflow(WorkflowPayload { graph_json: Some(graph), .. })) = &mut operation.payload {
        graph::name_edges(&operation.object, graph, implied);
    }
    if let (Object::Step { workflow, node }, Some(Payload::Step(step))) = (&operation.object, &mut operation.payload)
        && let Some((workflow, node)) = package.workflow(workflow).and_then(|w| Some((w, w.node(node)?)))
        && let Some((text, says)) = front::completed(
            node,
            &implied::ways_of(workflow, &node.id),
            (&step.step_markdown, workflow.step(&node.id).and_then(|step| step.document.as_deref())),
        )
    {
        step.step_markdown = text;
        implied.push(Implied { object: operation.object.clone(), says });
    }
    if edits.is_empty() {
        return Ok(());
    }
    let object = operation.object.clone();
    let current = snapshot(package, &object).ok_or_else(|| {
        vec![missing(&object).hint("small edits change an object that exists: write a new object as a whole")]
    })?;
    let part = |part: Part| current.get(part).ok_or_else(|| vec![no_text(&object, part)]);
    let mut findings = Vec::new();
    match &object {
        Object::Workflow(_) => {
            let mut payload = match operation.payload.take() {
                Some(Payload::Workflow(payload)) => payload,
                _ => WorkflowPayload::default(),
            };
            if edits.has_graph() {
                let mut graph = Graph::parse(&object, part(Part::Graph)?).map_err(one)?;
                findings.extend(graph.change(&edits, implied).err().unwrap_or_default());
                payload.graph_json = Some(graph.into_value());
            }
            if edits.has_document() {
                let document = part(Part::Document)?;
                let document =
                    noted(front::set(document, &edits.front_matter), &mut findings).unwrap_or(document.to_owned());
                match text::edited(&object, &document, &edits.text_edits, secrets) {
                    Ok(text) => payload.workflow_md = Some(text),
                    Err(wrong) => findings.extend(wrong),
                }
            }
            operation.payload = Some(Payload::Workflow(payload));
        }
        Object::Step { .. } => {
            let path = None;
            let document = part(Part::Document)?;
            let mut document =
                noted(front::set(document, &edits.front_matter), &mut findings).unwrap_or(document.to_owned());
            let ways = noted(implied::transitions(package, &object, &document, &edits, implied), &mut findings);
            if let Some(fields) = ways.flatten() {
                document = noted(front::set(&document, &fields), &mut findings).unwrap_or(document);
            }
            match text::edited(&object, &document, &edits.text_edits, secrets) {
                Ok(step_markdown) => operation.payload = Some(Payload::Step(StepPayload { step_markdown, path })),
                Err(wrong) => findings.extend(wrong),
            }
        }
        Object::Agent(_) => {
            let mut definition: Value = serde_json::from_str(part(Part::Definition)?).unwrap_or_default();
            patch(&mut definition, &edits.agent_fields);
            findings.extend(
                text::edit_values(&object, &mut definition, &edits.text_edits, secrets).err().unwrap_or_default(),
            );
            operation.payload = Some(Payload::Agent(definition));
        }
        Object::Asset(_) => {
            let content = text::edited(&object, part(Part::Content)?, &edits.text_edits, secrets)?;
            operation.payload = Some(Payload::Asset(content));
        }
        Object::Package | Object::Variable { .. } => {}
    }
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

fn one(finding: Box<Finding>) -> Vec<Finding> {
    vec![*finding]
}

/// What was made, or nothing and a finding more.
fn noted<T>(made: Made<T>, findings: &mut Vec<Finding>) -> Option<T> {
    made.map_err(|finding| findings.push(*finding)).ok()
}

fn no_text(object: &Object, part: Part) -> Finding {
    let message = format!("the {} of `{object}` is not there, or no text", part.as_str());
    Finding::error("TEXT_MISSING", "", "", message).hint("give it as a whole")
}

/// A JSON Merge Patch, RFC 7396. The depth of a set is bounded where it is parsed.
fn patch(value: &mut Value, patch: &Map<String, Value>) {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(fields) = value else { return };
    for (name, wanted) in patch {
        match wanted {
            Value::Null => drop(fields.shift_remove(name)),
            Value::Object(inner) => self::patch(fields.entry(name).or_insert(Value::Null), inner),
            other => drop(fields.insert(name.clone(), other.clone())),
        }
    }
}

/// Sets fields; null takes one out.
fn set_fields(item: &mut Map<String, Value>, wanted: &Map<String, Value>) {
    for (name, value) in wanted {
        if value.is_null() {
            item.shift_remove(name);
        } else {
            item.insert(name.clone(), value.clone());
        }
    }
}
