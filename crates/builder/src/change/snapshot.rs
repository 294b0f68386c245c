//! The state of one object, as texts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolhost_contract::{REDACTED, masks_secret};

use super::splice::{alone, rewrite};
use super::{Op, Operation, Payload, WorkflowPayload};
use crate::finding::Finding;
use crate::package::{MANIFEST, Package};
use crate::refs::Object;
use crate::spans::Tree;

/// A part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ObjectPart")]
pub enum Part {
    /// The Markdown of a workflow or a step.
    Document,
    /// The graph of a workflow: JSON.
    Graph,
    /// What the manifest says of a workflow that it lists: JSON.
    Entry,
    /// An agent, as it stands in the file of the agents: JSON.
    Definition,
    /// The text of an asset.
    Content,
}

impl Part {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Graph => "graph",
            Self::Entry => "entry",
            Self::Definition => "definition",
            Self::Content => "content",
        }
    }
}

/// The state of one object: its parts, byte for byte. A part that is not there, or is no text, is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Snapshot(pub BTreeMap<Part, String>);

impl Snapshot {
    /// The text of a part.
    #[must_use]
    pub fn get(&self, part: Part) -> Option<&str> {
        self.0.get(&part).map(String::as_str)
    }

    fn put(&mut self, part: Part, text: Option<&str>) {
        self.0.extend(text.map(|text| (part, text.to_owned())));
    }
}

/// The object as it is; none if it is not there, or not at hand.
#[must_use]
pub fn snapshot(package: &Package, object: &Object) -> Option<Snapshot> {
    let text = |path: &str| package.files().get(path).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let mut taken = Snapshot::default();
    match object {
        Object::Workflow(id) => {
            let workflow = package.workflow(id)?;
            taken.put(Part::Document, text(&workflow.path));
            taken.put(Part::Graph, text(&workflow.graph_path));
            let manifest = text(MANIFEST).unwrap_or_default();
            if let Some((tree, index)) = listed(manifest, "workflows", id) {
                let entry = tree.field("workflows").and_then(|list| list.items()?.get(index));
                taken.put(Part::Entry, entry.map(|entry| &manifest[entry.span.clone()]));
            }
        }
        Object::Step { workflow, node } => {
            let path = package.workflow(workflow)?.node(node)?.path.as_deref()?;
            taken.put(Part::Document, Some(text(path)?));
        }
        Object::Agent(id) => {
            let agents = text(package.agents_path()?)?;
            package.agent(id)?;
            let (tree, index) = listed(agents, "agents", id)?;
            let span = tree.field("agents")?.items()?.get(index)?.span.clone();
            taken.put(Part::Definition, Some(&agents[span]));
        }
        Object::Asset(path) => taken.put(Part::Content, Some(package.asset(path)?.text?)),
        Object::Package | Object::Variable { .. } => return None,
    }
    Some(taken)
}

/// Where the item of this id stands in a list of a JSON text.
pub(super) fn listed(text: &str, list: &str, id: &str) -> Option<(Tree, usize)> {
    let tree = Tree::of(text)?;
    let items = tree.field(list)?.items()?;
    let index = items.iter().position(|item| item.text_in(text, "id").as_deref() == Some(id))?;
    Some((tree, index))
}

/// All objects that an operation changes: with a workflow that goes, its steps go too.
#[must_use]
pub fn affected(package: &Package, operation: &Operation) -> Vec<Object> {
    let mut objects = Vec::new();
    if let (Op::Delete, Object::Workflow(id)) = (operation.op, &operation.object) {
        let steps = package.workflow(id).into_iter().flat_map(|workflow| &workflow.steps);
        objects.extend(steps.map(|step| Object::Step { workflow: id.clone(), node: step.node_id.clone() }));
    }
    objects.push(operation.object.clone());
    objects
}

/// What the object would be after the operation; none for a delete. An upsert keeps the parts that it does not name,
/// and the bytes of what it does not change.
///
/// # Errors
/// Why the operation cannot be done on this package.
pub fn proposed(package: &Package, operation: &Operation) -> Result<Option<Snapshot>, Box<Finding>> {
    let current = snapshot(package, &operation.object);
    if !operation.edits.is_empty() {
        let message = format!("the small edits of `{}` have not been made whole", operation.object);
        return Err(Box::new(Finding::error("EDITS_NOT_WHOLE", "", "", message).hint("stage the set")));
    }
    let Some(payload) = operation.payload.as_ref().filter(|_| operation.op == Op::Upsert) else {
        let is_there = current.is_some() || is_elsewhere(package, &operation.object);
        return if is_there { Ok(None) } else { Err(Box::new(missing(&operation.object))) };
    };
    let mut taken = current.clone().unwrap_or_default();
    match (&operation.object, payload) {
        (Object::Workflow(id), Payload::Workflow(workflow)) => {
            upsert_workflow(package, id, workflow, current.is_some(), &mut taken)?;
        }
        (Object::Step { workflow, node }, Payload::Step(step)) => {
            let named = package.workflow(workflow).and_then(|w| w.node(node)?.path.as_deref());
            if let (Some(named), Some(said)) = (named, step.path.as_deref())
                && named != said
            {
                let message = format!("the file of the step `{node}` is `{named}`, as its node says, not `{said}`");
                let finding = Finding::error("STEP_PATH_MISMATCH", said, "", message).expected(named).actual(said);
                return Err(Box::new(finding.hint("leave the path out, or change the node's `file`")));
            }
            taken.put(Part::Document, Some(&step.step_markdown));
        }
        (Object::Agent(id), Payload::Agent(definition)) => {
            let definition = with_id(id, definition);
            taken.put(Part::Definition, Some(&text_of(current.as_ref(), Part::Definition, &definition)));
        }
        (Object::Asset(_), Payload::Asset(content)) => taken.put(Part::Content, Some(content)),
        (object, _) => {
            let message = format!("the payload is not one of `{object}`");
            return Err(Box::new(Finding::error("PAYLOAD_MISMATCH", "", "", message)));
        }
    }
    check_masks(&operation.object, current.as_ref(), &taken)?;
    Ok(Some(taken))
}

/// Refuses to write the mark that stands for a secret over the secret itself: a read has shown it in its place.
fn check_masks(object: &Object, current: Option<&Snapshot>, wanted: &Snapshot) -> Result<(), Box<Finding>> {
    for (part, after) in &wanted.0 {
        let before = current.and_then(|current| current.get(*part)).unwrap_or_default();
        if masks_secret(before, after) {
            let message = format!(
                "the {} of `{object}` would get `{REDACTED}`, or something like it, which is what a read shows in the place of a \
                 secret; writing it would destroy the secret, or look as if there was one",
                part.as_str()
            );
            let finding = Finding::error("REDACTED_WRITTEN_BACK", "", "", message).actual(REDACTED);
            let hint = match part {
                Part::Graph => {
                    "give only the `nodes` and `edges` that change, each with only the fields that change, which leaves the \
                     secret as it is"
                }
                Part::Definition => {
                    "give only the fields that change (`agent_fields`), or passages (`textEdits`), which leave the secret as it is"
                }
                _ => {
                    "change the other passages by `textEdits` (`find` and `replace`), which leave the secret as it is; take one out \
                     by an edit of its own line; where no secret is meant, use other words"
                }
            };
            return Err(Box::new(finding.expected("the text without the mark").hint(hint)));
        }
    }
    Ok(())
}

/// Whether it is there without being at hand.
fn is_elsewhere(package: &Package, object: &Object) -> bool {
    match object {
        Object::Workflow(id) => package.has_workflow(id),
        Object::Asset(path) => package.has_asset(path),
        // A file that is no text is there as well.
        Object::Step { workflow, node } => package.workflow(workflow).is_some_and(|w| w.step(node).is_some()),
        _ => false,
    }
}

pub(super) fn missing(object: &Object) -> Finding {
    Finding::error("TARGET_NOT_FOUND", "", "", format!("there is no `{object}`"))
        .expected("an object of the package")
        .actual(object.to_string())
        .hint("read the package again, and name what is there")
}

pub(super) fn not_at_hand(object: &Object) -> Finding {
    Finding::error("NOT_AT_HAND", MANIFEST, "", format!("what is needed to write `{object}` has not been loaded"))
        .hint("load the manifest and the workflow with the package")
}

/// The text of a value, made of the text that is there.
pub(super) fn text_of(current: Option<&Snapshot>, part: Part, value: &Value) -> String {
    current.and_then(|current| current.get(part)).map_or_else(|| alone(value), |text| rewrite(text, value))
}

/// An agent that does not say its id is the one that the operation names.
fn with_id(id: &str, definition: &Value) -> Value {
    if definition.get("id").is_some() {
        return definition.clone();
    }
    let mut fields = Map::from_iter([("id".to_owned(), Value::from(id))]);
    fields.extend(definition.as_object().cloned().unwrap_or_default());
    Value::Object(fields)
}

fn upsert_workflow(
    package: &Package,
    id: &str,
    payload: &WorkflowPayload,
    is_there: bool,
    taken: &mut Snapshot,
) -> Result<(), Box<Finding>> {
    let object = Object::Workflow(id.to_owned());
    if !is_there && package.has_workflow(id) {
        return Err(Box::new(not_at_hand(&object)));
    }
    let mut entry: Option<Value> = taken.get(Part::Entry).and_then(|text| serde_json::from_str(text).ok());
    if let Some(workflow) = package.workflow(id) {
        for (said, is) in [(&payload.path, &workflow.path), (&payload.graph_path, &workflow.graph_path)] {
            if let Some(said) = said.as_ref().filter(|said| *said != is) {
                let message = format!("the workflow `{id}` is in `{is}`, and stays there");
                let finding = Finding::error("WORKFLOW_PATH_CHANGED", is, "", message).expected(is).actual(said);
                return Err(Box::new(finding.hint("leave the path out")));
            }
        }
    } else {
        if payload.workflow_md.is_none() || payload.graph_json.is_none() {
            let message = format!("the workflow `{id}` is not there, and a new one needs its document and its graph");
            let finding = Finding::error("WORKFLOW_INCOMPLETE", "", "", message);
            return Err(Box::new(finding.expected("`workflow_md` and `graph_json`").hint("give both")));
        }
        let path = payload.path.clone().unwrap_or_else(|| format!("workflows/{id}/workflow.md"));
        let graph = payload.graph_path.clone().unwrap_or_else(|| format!("workflows/{id}/workflow.graph.json"));
        entry = Some(json!({ "id": id, "workflow": path, "graph": graph }));
    }
    let tags = payload.tags.as_ref().map(|tags| json!(tags));
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    let said =
        [("displayName", text(&payload.display_name)), ("description", text(&payload.description)), ("tags", tags)];
    for (name, value) in said.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        let Some(entry) = &mut entry else {
            let message = format!("the manifest does not list the workflow `{id}`, so it has no `{name}`");
            let finding = Finding::error("WORKFLOW_NOT_LISTED", MANIFEST, "/workflows", message);
            return Err(Box::new(finding.hint("leave it out, or list the workflow in the manifest")));
        };
        entry[name] = value;
    }
    if let Some(graph) = &payload.graph_json {
        let text = text_of(Some(taken), Part::Graph, graph);
        taken.put(Part::Graph, Some(&text));
    }
    if let Some(entry) = &entry {
        let text = text_of(Some(taken), Part::Entry, entry);
        taken.put(Part::Entry, Some(&text));
    }
    taken.put(Part::Document, payload.workflow_md.as_deref());
    Ok(())
}
