//! A workflow's graph against itself, and its document against the graph.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::manifest::{agent_missing, asset_missing, check_path, twice};
use crate::assets;
use crate::finding::{Finding, Findings};
use crate::graph::Links;
use crate::limits::{EDGES_MAX, NODES_MAX};
use crate::package::{NodeKind, Package, Workflow};

pub(super) fn check(package: &Package, workflow: &Workflow, findings: &mut Findings) {
    if super::is_too_large(workflow) {
        let message = format!("the graph has more than {NODES_MAX} nodes or {EDGES_MAX} edges");
        let finding = Finding::error("graph-too-large", &workflow.graph_path, "", message);
        findings.add(finding.hint("split it with subworkflows"));
        return;
    }
    check_nodes(package, workflow, findings);
    check_edges(workflow, findings);
    check_shape(workflow, findings);
    check_document(package, workflow, findings);
    if let Some(damaged) = crate::domain::damage(workflow) {
        // No error: it keeps nothing from being run, but sessions on the package cannot begin.
        let finding = Finding::warning(
            "domain-profile-damaged",
            &workflow.path,
            format!("/{}", damaged.field.replace('.', "/")),
            damaged.to_string(),
        );
        findings.add(finding.expected(damaged.expected).hint("sessions cannot begin until it is fixed, or taken out"));
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
        if let Some(agent) = node.agent_id.as_deref().filter(|agent| !agents.contains(agent)) {
            findings.add(agent_missing(graph, &format!("{at}/agentId"), agent));
        }
        let Some(path) = node.path.as_deref() else { continue };
        check_path(package, graph, format!("{at}/file"), path, findings);
        match files.get(path) {
            Some(other) => {
                let message = format!("the nodes `{other}` and `{}` share the step file `{path}`", node.id);
                let finding = Finding::error("step-file-shared", graph, format!("{at}/file"), message);
                findings.add(finding.expected("one step file per node").actual(path).hint("give each its own file"));
            }
            None => {
                files.insert(path, &node.id);
            }
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
                let finding = Finding::error("edge-node-missing", graph, pointer, message).actual(node);
                findings.add(finding.expected("the id of a node").hint("fix the edge, or add the node"));
            }
        }
        if let Some(id) = edge.value.get("id").and_then(Value::as_str).filter(|id| !ids.insert(*id)) {
            findings.add(twice(graph, format!("/edges/{}/id", edge.index), "edge", id));
        }
    }
    check_branches(workflow, findings);
}

/// Where several ways lead on, one of them is taken when no condition holds.
fn check_branches(workflow: &Workflow, findings: &mut Findings) {
    let mut ways: HashMap<&str, Vec<(usize, bool)>> = HashMap::new();
    for edge in &workflow.edges {
        ways.entry(&edge.from).or_default().push((edge.index, edge.is_default));
    }
    for node in &workflow.nodes {
        let Some(edges) = ways.remove(node.id.as_str()) else { continue };
        let mut defaults = edges.iter().filter(|(_, is_default)| *is_default);
        let first = defaults.next();
        if first.is_none() && edges.len() > 1 {
            let message = format!("{} edges leave `{}`, and none is the default", edges.len(), node.id);
            let pointer = format!("/nodes/{}", node.index);
            let finding = Finding::error("default-edge-missing", &workflow.graph_path, pointer, message);
            findings.add(finding.expected("one edge with `isDefault: true`").actual("none").hint("choose one"));
        }
        for (index, _) in defaults {
            let message = format!("more than one edge that leaves `{}` is the default", node.id);
            let pointer = format!("/edges/{index}/isDefault");
            let finding = Finding::error("default-edge-duplicate", &workflow.graph_path, pointer, message);
            findings.add(finding.expected("one default edge").actual("another one").hint("choose one"));
        }
    }
}

fn check_shape(workflow: &Workflow, findings: &mut Findings) {
    // The first of two nodes with one id is the one meant; the second has its own finding.
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for (number, node) in workflow.nodes.iter().enumerate() {
        numbers.entry(&node.id).or_insert(number);
    }
    let number = |id: &str| numbers.get(id).copied();
    let edges = workflow.edges.iter().filter_map(|edge| Some((number(&edge.from)?, number(&edge.to)?)));
    let links = Links::new(workflow.nodes.len(), edges);
    check_entry(workflow, &links, &number, findings);
    for members in links.cycles() {
        check_cycle(workflow, &links, &members, findings);
    }
}

fn check_entry(workflow: &Workflow, links: &Links, number: &dyn Fn(&str) -> Option<usize>, findings: &mut Findings) {
    let (graph, at) = (&workflow.graph_path, "/entryNodeId");
    let Some(entry) = workflow.entry_node_id.as_deref() else { return };
    let id = |number: usize| workflow.nodes[number].id.as_str();
    let Some(entered) = number(entry) else {
        let finding = Finding::error("entry-node-missing", graph, at, format!("there is no node `{entry}`"));
        findings.add(finding.expected("the id of a node").actual(entry).hint("name the first node"));
        return;
    };
    let roots = links.roots();
    match roots.as_slice() {
        // A loop leads back to the start, so only the graph's own word says where it begins.
        [] => {}
        [only] if *only == entered => {}
        [only] => findings.add(
            Finding::error(
                "entry-mismatch",
                graph,
                at,
                format!("nothing leads to `{}`, so it must be the entry", id(*only)),
            )
            .expected(id(*only))
            .actual(entry)
            .hint("begin there, or add an edge that leads to it"),
        ),
        [first, ..] => findings.add(
            Finding::warning("entry-ambiguous", graph, at, format!("nothing leads to {} of the nodes", roots.len()))
                .expected(format!("one such node; `{}` is the first", id(*first)))
                .actual(entry)
                .hint("add edges to those that are not the entry"),
        ),
    }
    let mut starts = roots;
    starts.push(entered);
    let reached = links.reached(&starts);
    for node in workflow.nodes.iter().filter(|node| number(&node.id).is_some_and(|number| !reached[number])) {
        let message = format!("no way leads from the entry to `{}`", node.id);
        let finding = Finding::warning("node-unreachable", graph, format!("/nodes/{}", node.index), message);
        findings.add(finding.expected("a way from the entry").actual("none").hint("add an edge, or take it out"));
    }
}

/// A loop is legal if something decides about it and something leads out of it.
fn check_cycle(workflow: &Workflow, links: &Links, members: &[usize], findings: &mut Findings) {
    let first = &workflow.nodes[members[0]];
    let pointer = format!("/nodes/{}", first.index);
    let shown: Vec<&str> = members.iter().take(5).map(|member| workflow.nodes[*member].id.as_str()).collect();
    let shown = format!("{}{}", shown.join(", "), if members.len() > 5 { " …" } else { "" });
    if !members.iter().any(|member| workflow.nodes[*member].kind == Some(NodeKind::Decision)) {
        let message = format!("the loop of {shown} has no decision, so nothing can end it");
        let finding = Finding::error("cycle-missing-decision", &workflow.graph_path, &pointer, message);
        findings
            .add(finding.expected("a decision node in the loop").actual(&shown).hint("make one of them a decision"));
    }
    let leaves = |member: &usize| links.out(*member).iter().any(|to| members.binary_search(to).is_err());
    if !members.iter().any(leaves) {
        let message = format!("no edge leads out of the loop of {shown}");
        let finding = Finding::error("cycle-missing-exit", &workflow.graph_path, &pointer, message);
        findings
            .add(finding.expected("an edge that leaves the loop").actual(&shown).hint("add an edge that leaves it"));
    }
}

fn check_document(package: &Package, workflow: &Workflow, findings: &mut Findings) {
    let Some(document) = &workflow.document else { return };
    let file = &workflow.path;
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
    if workflow.graph.is_none() {
        return;
    }
    let known: BTreeSet<&str> = workflow.nodes.iter().map(|node| node.id.as_str()).collect();
    let mut check_id = |pointer: String, id: &str| {
        if !known.contains(id) {
            let finding = Finding::warning("state-node-missing", file, pointer, format!("there is no node `{id}`"));
            findings.add(finding.expected("the id of a node").actual(id).hint("fix the state of the workflow"));
        }
    };
    if let Some(current) = document.field("currentNodeId").filter(|current| !current.is_empty()) {
        check_id("/currentNodeId".to_owned(), current);
    }
    let done = document.front().get("stepsCompleted").and_then(Value::as_array);
    for (index, id) in done.into_iter().flatten().enumerate() {
        if let Some(id) = id.as_str() {
            check_id(format!("/stepsCompleted/{index}"), id);
        }
    }
}
