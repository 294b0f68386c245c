//! The part of an envelope that is about an object which is there: the object, whole, and what it depends on.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{EnvelopeError, Request, Result, TargetType};
use crate::assets;
use crate::package::{Agent, Edge, Node, Package, Step, Workflow};
use crate::refs::{Index, Kind, Locator, Object, Ref};
use crate::revision;

/// What depends on the kind of target.
pub(super) struct Part<'a> {
    pub(super) workflow: Option<&'a Workflow>,
    /// The object as a read of it answers.
    pub(super) snapshot: Value,
    pub(super) digest: Value,
    /// None of an object that is not there yet.
    pub(super) revision: Option<String>,
}

pub(super) fn part<'a>(request: &Request<'a>, index: &Index) -> Result<Part<'a>> {
    match request.target_type {
        TargetType::Workflow => workflow_part(request),
        TargetType::Step => step_part(request),
        TargetType::Agent => agent_part(request, index),
        TargetType::Asset => asset_part(request, index),
    }
}

fn workflow_part<'a>(request: &Request<'a>) -> Result<Part<'a>> {
    let (package, id) = (request.package, request.target_id);
    if let Some(other) = request.workflow_id.filter(|other| *other != id) {
        return Err(EnvelopeError::OtherWorkflow { target: id.to_owned(), workflow: other.to_owned() });
    }
    let workflow = workflow_named(package, id)?;
    Ok(Part {
        workflow: Some(workflow),
        snapshot: json!({
            "workflow_md": text(package, "workflow", id, &workflow.path)?,
            "graph_json": graph(package, workflow)?,
            "frontmatter": workflow.document.as_ref().map(|document| document.front()),
            "about": workflow.about,
            "step_index": workflow.nodes.iter().map(summary).collect::<Vec<_>>(),
        }),
        digest: json!({
            "agents": agents(package),
            "assets": asset_paths(package),
            "workflows": package.workflow_ids(),
        }),
        revision: Some(revision::workflow(package, workflow)),
    })
}

fn step_part<'a>(request: &Request<'a>) -> Result<Part<'a>> {
    let package = request.package;
    let (workflow, node, step) = find_step(request)?;
    let adjacent: Vec<&Edge> =
        workflow.edges.iter().filter(|edge| edge.from == node.id || edge.to == node.id).collect();
    let agent = node.agent_id.as_deref().and_then(|id| package.agent(id));
    let mentioned: BTreeSet<String> = step.document.as_ref().map_or_else(BTreeSet::new, |document| {
        assets::mentions(document.text()).into_iter().map(|mention| mention.path).collect()
    });
    let others = |path: &&str| !mentioned.contains(*path);
    Ok(Part {
        workflow: Some(workflow),
        snapshot: json!({
            "step_markdown": text(package, "step", &node.id, &step.path)?,
            "step_path": step.path,
            "frontmatter": step.document.as_ref().map(|document| document.front()),
            "node_meta": node.value,
            "adjacent_edges": adjacent.iter().map(|edge| &edge.value).collect::<Vec<_>>(),
        }),
        digest: json!({
            "neighbors": neighbors(workflow, node, &adjacent),
            "variables": variables(workflow),
            "agent": agent.map(|agent| &agent.value),
            "other_agents": agents_but(package, agent.map(|agent| agent.id.as_str())),
            "referenced_asset_paths": mentioned,
            "other_assets": asset_paths(package).into_iter().filter(others).collect::<Vec<_>>(),
        }),
        revision: Some(revision::step(package, step)),
    })
}

fn agent_part<'a>(request: &Request<'a>, index: &Index) -> Result<Part<'a>> {
    let (package, id) = (request.package, request.target_id);
    let workflow = request.workflow_id.map(|id| workflow_named(package, id)).transpose()?;
    let agent = package.agent(id).ok_or_else(|| missing("agent", id, "the package"))?;
    let refs = index.find(&Locator::Object(Object::Agent(id.to_owned())));
    let mut steps: Vec<&Object> = refs.inbound.iter().filter(|r| r.kind == Kind::Agent).map(|r| &r.from).collect();
    steps.sort();
    steps.dedup();
    let steps: Vec<Value> = steps.into_iter().filter_map(|object| step_line(package, object)).collect();
    let mut mentioned: Vec<&Object> = refs.outbound.iter().filter(|r| r.kind == Kind::Asset).map(|r| &r.to).collect();
    mentioned.sort();
    mentioned.dedup();
    Ok(Part {
        workflow,
        snapshot: json!({ "agent_definition": agent.value, "referenced_steps": steps }),
        digest: json!({ "other_agents": agents_but(package, Some(id)), "referenced_assets": mentioned }),
        revision: Some(revision::agent(agent)),
    })
}

fn asset_part<'a>(request: &Request<'a>, index: &Index) -> Result<Part<'a>> {
    let (package, path) = (request.package, request.target_id);
    let workflow = request.workflow_id.map(|id| workflow_named(package, id)).transpose()?;
    let asset = package.asset(path).ok_or_else(|| missing("asset", path, "the package"))?;
    let content = text(package, "asset", path, path)?;
    let refs = index.find(&Locator::Object(Object::Asset(path.to_owned())));
    let others: Vec<&str> = asset_paths(package).into_iter().filter(|other| *other != path).collect();
    Ok(Part {
        workflow,
        snapshot: json!({
            "path": path,
            "content": content,
            "file_type": file_type(path),
            "referenced_by": refs.inbound,
        }),
        digest: json!({ "other_assets": others, "references": refs.outbound.iter().map(place).collect::<Vec<_>>() }),
        revision: Some(revision::asset(package, &asset)),
    })
}

pub(super) fn file_type(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, ending)| ending)
}

fn place(reference: &Ref) -> Value {
    json!({ "to": reference.to, "kind": reference.kind, "line": reference.line })
}

pub(super) fn missing(kind: &'static str, id: &str, within: &str) -> EnvelopeError {
    EnvelopeError::Missing { kind, id: id.to_owned(), within: within.to_owned() }
}

pub(super) fn workflow_named<'a>(package: &'a Package, id: &str) -> Result<&'a Workflow> {
    package.workflow(id).ok_or_else(|| missing("workflow", id, "the package"))
}

fn find_step<'a>(request: &Request<'a>) -> Result<(&'a Workflow, &'a Node, &'a Step)> {
    let (package, id) = (request.package, request.target_id);
    let within = request.workflow_id.map(|id| workflow_named(package, id)).transpose()?;
    let found: Vec<(&Workflow, &Node)> = package
        .workflows()
        .iter()
        .filter(|workflow| within.is_none_or(|within| within.id == workflow.id))
        .filter_map(|workflow| {
            let is_meant = |node: &&Node| node.id == id || node.path.as_deref() == Some(id);
            Some((workflow, workflow.nodes.iter().find(is_meant)?))
        })
        .collect();
    let place = within.map_or_else(|| "the package".to_owned(), |within| format!("workflow `{}`", within.id));
    let (workflow, node) = match found.as_slice() {
        [] => return Err(missing("step", id, &place)),
        [only] => *only,
        several => {
            let workflows = several.iter().map(|(workflow, _)| workflow.id.clone()).collect();
            return Err(EnvelopeError::Ambiguous { id: id.to_owned(), workflows });
        }
    };
    let step = workflow.step(&node.id).ok_or_else(|| {
        let file = node.path.as_deref().unwrap_or("a step file");
        missing("file", file, &format!("the package, which step `{id}` needs"))
    })?;
    Ok((workflow, node, step))
}

fn text<'a>(package: &'a Package, kind: &'static str, id: &str, path: &str) -> Result<&'a str> {
    let bytes =
        package.files().get(path).ok_or_else(|| missing("file", path, &format!("the package of {kind} `{id}`")))?;
    std::str::from_utf8(bytes).map_err(|_| EnvelopeError::NotText { kind, id: id.to_owned(), path: path.to_owned() })
}

/// The graph as a value; as its text while it is broken, so that a model can fix it.
fn graph(package: &Package, workflow: &Workflow) -> Result<Value> {
    match &workflow.graph {
        Some(graph) => Ok(graph.clone()),
        None => text(package, "workflow", &workflow.id, &workflow.graph_path).map(Value::from),
    }
}

/// The nodes beside a step: where each stands, what it reads and what it sets. A field that a node does not have is left out.
fn neighbors(workflow: &Workflow, node: &Node, adjacent: &[&Edge]) -> Vec<Value> {
    let line = |other: &Node| {
        let is_before = adjacent.iter().any(|edge| edge.from == other.id);
        let is_after = adjacent.iter().any(|edge| edge.to == other.id);
        let direction = match (is_before, is_after) {
            (true, true) => "before and after",
            (true, false) => "before",
            (false, true) => "after",
            (false, false) => return None,
        };
        let mut line = json!({ "node_id": other.id, "direction": direction });
        for (name, field) in NEIGHBOR_FIELDS {
            if let Some(value) = other.value.get(field) {
                line[name] = value.clone();
            }
        }
        Some(line)
    };
    workflow.nodes.iter().filter(|other| other.id != node.id).filter_map(line).collect()
}

/// What is told of a neighbor, and the field of its node.
const NEIGHBOR_FIELDS: [(&str, &str); 5] =
    [("type", "type"), ("title", "title"), ("agent_id", "agentId"), ("inputs", "inputs"), ("outputs", "outputs")];

/// The variables that the document of a workflow declares, with their first values.
pub(super) fn variables(workflow: &Workflow) -> Value {
    let front = workflow.document.as_ref().map(|document| document.front());
    front.and_then(|front| front.get("variables")).cloned().unwrap_or_else(|| json!({}))
}

fn summary(node: &Node) -> Value {
    json!({
        "node_id": node.id,
        "type": node.value.get("type"),
        "title": node.value.get("title"),
        "path": node.path,
        "agent_id": node.agent_id,
    })
}

fn step_line(package: &Package, object: &Object) -> Option<Value> {
    let Object::Step { workflow, node } = object else { return None };
    // Of a workflow that is not at hand, only the name is known.
    let known = package.workflow(workflow).and_then(|within| within.node(node));
    let mut line = known.map_or_else(|| json!({ "node_id": node }), summary);
    line["workflow_id"] = json!(workflow);
    Some(line)
}

pub(super) fn agents(package: &Package) -> Vec<Value> {
    agents_but(package, None)
}

fn agents_but(package: &Package, id: Option<&str>) -> Vec<Value> {
    let line = |agent: &Agent| {
        let of = |pointer| agent.value.pointer(pointer);
        json!({ "id": agent.id, "name": of("/metadata/name"), "title": of("/metadata/title") })
    };
    package.agents().iter().filter(|agent| Some(agent.id.as_str()) != id).map(line).collect()
}

pub(super) fn asset_paths(package: &Package) -> Vec<&str> {
    package.asset_hashes().into_keys().collect()
}
