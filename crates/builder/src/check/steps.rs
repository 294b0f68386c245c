//! Step files against the graph, the agents and the assets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Scope;
use super::manifest::{agent_missing, asset_missing};
use crate::assets;
use crate::document::Document;
use crate::finding::{Finding, Findings};
use crate::package::{Node, NodeKind, Package, SECTION_RECOMMENDED, SECTIONS_REQUIRED, Step, Workflow};

pub(super) fn check(package: &Package, workflow: &Workflow, scope: Scope<'_>, findings: &mut Findings) {
    // What a graph says of a step, it may say otherwise when it changes.
    let is_whole = scope.has(&workflow.graph_path);
    let is_meant = |step: &&Step| is_whole || scope.has(&step.path);
    if super::is_too_large(workflow) || !workflow.steps.iter().any(|step| is_meant(&step)) {
        return;
    }
    let mut nodes: BTreeMap<&str, &Node> = BTreeMap::new();
    for node in &workflow.nodes {
        nodes.entry(&node.id).or_insert(node);
    }
    let mut ways: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for edge in &workflow.edges {
        ways.entry(&edge.from).or_default().insert(&edge.to);
    }
    let agents: BTreeSet<&str> = package.agents().iter().map(|agent| agent.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    for step in workflow.steps.iter().filter(is_meant) {
        let (Some(document), Some(node)) = (&step.document, nodes.get(step.node_id.as_str())) else { continue };
        // A file that two nodes share has its own finding.
        if !seen.insert(&step.path) {
            continue;
        }
        check_node(&step.path, document, node, findings);
        check_agent(&step.path, document, node, &agents, findings);
        check_sections(&step.path, document, node, findings);
        let none = BTreeSet::new();
        check_transitions(&step.path, document, ways.get(node.id.as_str()).unwrap_or(&none), findings);
        check_subworkflow(package, &step.path, document, node, findings);
        check_assets(package, &step.path, document, findings);
    }
}

fn check_node(file: &str, document: &Document, node: &Node, findings: &mut Findings) {
    let kind = node.value.get("type").and_then(Value::as_str);
    for (name, expected, code) in
        [("nodeId", Some(node.id.as_str()), "step-node-mismatch"), ("type", kind, "step-type-mismatch")]
    {
        let (Some(expected), Some(actual)) = (expected, document.field(name)) else { continue };
        if expected != actual {
            let message = format!("`{name}` is `{actual}`, but the graph says `{expected}`");
            let finding = Finding::error(code, file, format!("/{name}"), message);
            findings.add(finding.expected(expected).actual(actual).hint("make the two agree"));
        }
    }
}

fn check_agent(file: &str, document: &Document, node: &Node, agents: &BTreeSet<&str>, findings: &mut Findings) {
    let Some(agent) = document.field("agentId") else { return };
    if !agents.contains(agent) {
        findings.add(agent_missing(file, "/agentId", agent));
    } else if let Some(expected) = node.agent_id.as_deref().filter(|expected| *expected != agent) {
        let message = format!("`agentId` is `{agent}`, but the graph says `{expected}`");
        let finding = Finding::warning("step-agent-mismatch", file, "/agentId", message);
        findings.add(finding.expected(expected).actual(agent).hint("make the two agree"));
    }
}

fn check_sections(file: &str, document: &Document, node: &Node, findings: &mut Findings) {
    for section in SECTIONS_REQUIRED.into_iter().filter(|section| !document.has_section(section)) {
        let finding = Finding::error("section-missing", file, "", format!("`{file}` has no section `{section}`"));
        findings.add(finding.expected(section).actual("nothing").hint(format!("add a line `{section}` and its text")));
    }
    if node.kind == Some(NodeKind::Step) && !document.has_section(SECTION_RECOMMENDED) {
        let message = format!("`{file}` has no section `{SECTION_RECOMMENDED}`, so nothing says when it is done");
        let finding = Finding::warning("section-recommended", file, "", message);
        findings.add(finding.expected(SECTION_RECOMMENDED).actual("nothing").hint("add it"));
    }
}

/// The transitions that a step lists lead where the graph's edges lead. A step that lists none leaves it to the graph.
fn check_transitions(file: &str, document: &Document, ways: &BTreeSet<&str>, findings: &mut Findings) {
    let Some(transitions) = document.front().get("transitions").and_then(Value::as_array) else { return };
    let mut told = BTreeSet::new();
    for (index, transition) in transitions.iter().enumerate() {
        let Some(to) = transition.get("to").and_then(Value::as_str) else { continue };
        told.insert(to);
        if !ways.contains(to) {
            let message = format!("the step leads to `{to}`, but the graph has no such edge");
            let pointer = format!("/transitions/{index}/to");
            let finding = Finding::warning("transition-without-edge", file, pointer, message);
            findings.add(finding.expected("the target of an edge").actual(to).hint("add the edge, or take this out"));
        }
    }
    for way in ways.iter().filter(|way| !told.contains(*way)) {
        let message = format!("the graph leads to `{way}`, but the step's transitions do not");
        let finding = Finding::warning("edge-without-transition", file, "/transitions", message);
        findings.add(finding.expected(*way).actual("nothing").hint("add the transition"));
    }
}

/// A step that starts another workflow names it in `workflowId`.
fn check_subworkflow(package: &Package, file: &str, document: &Document, node: &Node, findings: &mut Findings) {
    if node.kind != Some(NodeKind::Subworkflow) {
        return;
    }
    if let Some(id) = document.field("workflowId").filter(|id| !package.has_workflow(id)) {
        let message = format!("there is no workflow `{id}`");
        let finding = Finding::error("WORKFLOW_NOT_FOUND", file, "/workflowId", message);
        findings.add(finding.expected("the id of a workflow").actual(id).hint("add it, or name another one"));
    }
}

fn check_assets(package: &Package, file: &str, document: &Document, findings: &mut Findings) {
    for (pointer, asset) in assets::mentions_in(document.front()) {
        if !package.has_asset(&asset) {
            findings.add(asset_missing(file, pointer, &asset));
        }
    }
    for mention in assets::mentions(document.body()) {
        if !package.has_asset(&mention.path) {
            let finding = asset_missing(file, String::new(), &mention.path);
            findings.add(finding.line(document.body_line() + mention.line));
        }
    }
}
