//! A workflow's graph against itself, and its document against the graph.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use toolhost_contract::nearest;

use super::manifest::{agent_missing, asset_missing, check_mentions, check_path, twice};
use super::variables::Variables;
use super::{COMPARED_MAX, logic, shape};
use crate::assets;
use crate::finding::{Finding, Findings, Severity};
use crate::limits::{EDGES_MAX, NODES_MAX};
use crate::package::{Edge, NodeKind, Package, Workflow};

pub(super) fn check(package: &Package, workflow: &Workflow, findings: &mut Findings) {
    if super::is_too_large(workflow) {
        let message = format!("the graph has more than {NODES_MAX} nodes or {EDGES_MAX} edges");
        let finding = Finding::error("GRAPH_TOO_LARGE", &workflow.graph_path, "", message);
        findings.add(finding.hint("split it with subworkflows"));
        return;
    }
    check_nodes(package, workflow, findings);
    check_words(package, workflow, findings);
    // Where a node or an edge cannot be read there is a finding for that; what is said of the rest would follow from it.
    let ids: BTreeSet<&str> = workflow.nodes.iter().map(|node| node.id.as_str()).collect();
    if workflow.is_whole() && ids.len() == workflow.nodes.len() {
        check_edges(workflow, findings);
        shape::check(workflow, findings);
    }
    check_document(package, workflow, findings);
    if let Some(damaged) = crate::domain::damage(workflow) {
        // No error: it keeps nothing from being run, but sessions on the package cannot begin.
        let finding = Finding::warning(
            "DOMAIN_PROFILE_DAMAGED",
            &workflow.path,
            format!("/{}", damaged.field.replace('.', "/")),
            damaged.to_string(),
        );
        findings.add(finding.expected(damaged.expected).hint("sessions cannot begin until it is fixed, or taken out"));
    }
}

/// What the steps and the conditions of a workflow read is set.
pub(super) fn check_variables(package: &Package, workflow: &Workflow, findings: &mut Findings) {
    if super::is_too_large(workflow) || !workflow.is_whole() {
        return;
    }
    let variables = Variables::of(workflow);
    let known = variables.as_ref().map(Variables::known);
    let conditions = logic::check(workflow, known.as_ref(), findings);
    if let Some(variables) = variables {
        variables.check(package, workflow, &conditions, findings);
    }
}

fn check_nodes(package: &Package, workflow: &Workflow, findings: &mut Findings) {
    let graph = &workflow.graph_path;
    let mut ids = BTreeSet::new();
    let mut files: BTreeMap<&str, &str> = BTreeMap::new();
    let agents: BTreeSet<&str> = package.agents().iter().map(|agent| agent.id.as_str()).collect();
    for node in &workflow.nodes {
        let at = format!("/nodes/{}", node.index);
        if !ids.insert(node.id.as_str()) {
            findings.add(twice(graph, format!("{at}/id"), "node", &node.id));
        }
        // Without a list of agents there is one finding about the list, and none about each who is missed.
        let agent = node.agent_id.as_deref().filter(|_| !package.agents().is_empty());
        if let Some(agent) = agent.filter(|agent| !agents.contains(agent)) {
            findings.add(agent_missing(package, graph, &format!("{at}/agentId"), agent));
        }
        let Some(path) = node.path.as_deref() else { continue };
        check_path(package, graph, format!("{at}/file"), path, findings);
        match files.get(path) {
            // Two nodes with one id have a finding for that.
            Some(other) if *other == node.id => {}
            Some(other) => {
                let message = format!("the nodes `{other}` and `{}` share the step file `{path}`", node.id);
                let finding = Finding::error("STEP_FILE_SHARED", graph, format!("{at}/file"), message);
                findings.add(finding.expected("one step file per node").actual(path).hint("give each its own file"));
            }
            None => {
                files.insert(path, &node.id);
            }
        }
    }
}

/// The assets that a graph speaks of are there.
fn check_words(package: &Package, workflow: &Workflow, findings: &mut Findings) {
    for (pointer, asset) in workflow.graph.iter().flat_map(assets::mentions_in) {
        if !package.has_asset(&asset) {
            let finding = asset_missing(package, &workflow.graph_path, pointer, &asset);
            findings.add(Finding { severity: Severity::Warning, ..finding });
        }
    }
}

fn check_edges(workflow: &Workflow, findings: &mut Findings) {
    let graph = &workflow.graph_path;
    let known: BTreeSet<&str> = workflow.nodes.iter().map(|node| node.id.as_str()).collect();
    let mut ids = BTreeSet::new();
    for edge in &workflow.edges {
        for (name, node) in [("from", &edge.from), ("to", &edge.to)] {
            if !known.contains(node.as_str()) {
                let message = format!("the edge's `{name}` is `{node}`, and there is no such node");
                let pointer = format!("/edges/{}/{name}", edge.index);
                let finding = Finding::error("EDGE_NODE_MISSING", graph, pointer, message).actual(node);
                let near = nearest(node, known.iter().copied().take(COMPARED_MAX));
                let hint = match (said_by_steps(workflow, edge, &known), near.first()) {
                    (Some(said), _) => format!("write `{said}`, as the step says; else add the node"),
                    (None, Some(near)) => format!("write `{near}` if that is meant; else add the node"),
                    (None, None) => "fix the edge, or add the node".to_owned(),
                };
                findings.add(finding.expected("the id of a node").hint(hint));
            }
        }
        if let Some(id) = edge.value.get("id").and_then(Value::as_str).filter(|id| !ids.insert(*id)) {
            findings.add(twice(graph, format!("/edges/{}/id", edge.index), "edge", id));
        }
    }
    check_branches(workflow, findings);
    check_conditions(workflow, findings);
}

/// The node that an edge with one end that is none was meant to have there: its step has a transition without an edge.
fn said_by_steps<'a>(workflow: &'a Workflow, edge: &Edge, known: &BTreeSet<&str>) -> Option<&'a str> {
    let has_edge = |from: &str, to: &str| workflow.edges.iter().any(|edge| edge.from == from && edge.to == to);
    let steps = workflow.steps.iter().take(COMPARED_MAX);
    let mut said = BTreeSet::new();
    for step in steps.filter(|step| step.node_id == edge.from || !known.contains(edge.from.as_str())) {
        let transitions = step.document.as_ref().and_then(|document| document.front().get("transitions")?.as_array());
        for to in transitions.into_iter().flatten().filter_map(|transition| transition.get("to")?.as_str()) {
            if has_edge(&step.node_id, to) {
                continue;
            }
            if !known.contains(edge.from.as_str()) && to == edge.to {
                said.insert(step.node_id.as_str());
            } else if step.node_id == edge.from && known.contains(to) {
                said.insert(to);
            }
        }
    }
    said.pop_first().filter(|_| said.is_empty())
}

/// Where several ways lead on, one of them is taken when no condition holds.
fn check_branches(workflow: &Workflow, findings: &mut Findings) {
    let mut ways: HashMap<&str, Vec<(usize, bool)>> = HashMap::new();
    let mut unclear: BTreeSet<&str> = BTreeSet::new();
    for edge in &workflow.edges {
        ways.entry(&edge.from).or_default().push((edge.index, edge.is_default));
        // What is neither true nor false has its own finding.
        if edge.value.get("isDefault").is_some_and(|value| !value.is_boolean()) {
            unclear.insert(&edge.from);
        }
    }
    for node in &workflow.nodes {
        let Some(edges) = ways.remove(node.id.as_str()).filter(|_| !unclear.contains(node.id.as_str())) else {
            continue;
        };
        let mut defaults = edges.iter().filter(|(_, is_default)| *is_default);
        let first = defaults.next();
        if first.is_none() && edges.len() > 1 {
            let message = format!("{} edges leave `{}`, and none is the default", edges.len(), node.id);
            let pointer = format!("/nodes/{}", node.index);
            let finding = Finding::error("DEFAULT_EDGE_MISSING", &workflow.graph_path, pointer, message);
            findings.add(finding.expected("one edge with `isDefault: true`").actual("none").hint("choose one"));
        }
        for (index, _) in defaults {
            let message = format!("more than one edge that leaves `{}` is the default", node.id);
            let pointer = format!("/edges/{index}/isDefault");
            let finding = Finding::error("DEFAULT_EDGE_DUPLICATE", &workflow.graph_path, pointer, message);
            findings.add(finding.expected("one default edge").actual("another one").hint("choose one"));
        }
    }
}

/// Checks when edges are taken. If some of the edges that leave a node have a condition, each of them has one or is the default.
/// The only edge that leaves a node has no rule.
fn check_conditions(workflow: &Workflow, findings: &mut Findings) {
    let says_when = |edge: &Edge| {
        let said =
            |name: &str| edge.value.get(name).is_some_and(|value| !value.is_null() && value.as_str() != Some(""));
        said("conditionText") || said("conditionExpr")
    };
    let mut ways: HashMap<&str, Vec<&Edge>> = HashMap::new();
    for edge in &workflow.edges {
        ways.entry(&edge.from).or_default().push(edge);
    }
    for node in workflow.nodes.iter().filter(|node| node.kind != Some(NodeKind::End)) {
        let Some(edges) = ways.remove(node.id.as_str()) else { continue };
        if let [only] = edges.as_slice() {
            // Words may be a note; a rule is followed.
            let rule = only.value.get("conditionExpr").filter(|rule| rule.is_object());
            if rule.is_some() && !only.is_default {
                let message =
                    format!("the only way out of `{}` has a condition, and no way is left where it is false", node.id);
                let pointer = format!("/edges/{}", only.index);
                let finding = Finding::warning("CONDITION_OF_ONLY_WAY", &workflow.graph_path, pointer, message);
                let hint = "take the condition out, or add a way with `isDefault: true`";
                findings.add(finding.expected("a way that is always there").actual("one with a condition").hint(hint));
            }
            continue;
        }
        let others: Vec<&&Edge> = edges.iter().filter(|edge| !edge.is_default).collect();
        if !others.iter().any(|edge| says_when(edge)) || !edges.iter().any(|edge| edge.is_default) {
            continue;
        }
        for edge in others.into_iter().filter(|edge| !says_when(edge)) {
            let message =
                format!("the way from `{}` to `{}` does not say when it is taken, as others do", edge.from, edge.to);
            let pointer = format!("/edges/{}", edge.index);
            let finding = Finding::warning("CONDITION_MISSING", &workflow.graph_path, pointer, message);
            let hint = "add `conditionText`, or `conditionExpr`; or take the edge out";
            findings.add(finding.expected("a condition, or `isDefault: true`").actual("neither").hint(hint));
        }
    }
}

fn check_document(package: &Package, workflow: &Workflow, findings: &mut Findings) {
    let Some(document) = &workflow.document else { return };
    let file = &workflow.path;
    check_mentions(package, file, document, findings);
    if !workflow.is_whole() {
        return;
    }
    let known: BTreeSet<&str> = workflow.nodes.iter().map(|node| node.id.as_str()).collect();
    let mut check_id = |pointer: String, id: &str| {
        if !known.contains(id) {
            let finding = Finding::warning("STATE_NODE_MISSING", file, pointer, format!("there is no node `{id}`"));
            findings.add(finding.expected("the id of a node").actual(id).hint("fix the state of the workflow"));
        }
    };
    if let Some(current) = document.field("currentNodeId").filter(|current| !current.is_empty()) {
        check_id("/currentNodeId".to_owned(), current);
    }
    let decisions = document.front().get("decisionLog").and_then(Value::as_array);
    for (index, decision) in decisions.into_iter().flatten().enumerate() {
        for name in ["from", "to"] {
            if let Some(id) = decision.get(name).and_then(Value::as_str) {
                check_id(format!("/decisionLog/{index}/{name}"), id);
            }
        }
    }
    let done = document.front().get("stepsCompleted").and_then(Value::as_array);
    for (index, id) in done.into_iter().flatten().enumerate() {
        if let Some(id) = id.as_str() {
            check_id(format!("/stepsCompleted/{index}"), id);
        }
    }
}
