//! What the other files of a package say was meant: who makes one mistake reads of it once, with that as the advice.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::document::Document;
use crate::files::{file_name_of, folder_of};
use crate::finding::{Finding, Severity};
use crate::package::{Edge, MANIFEST, Node, Package, Workflow};
use crate::schema::field_meant;

/// The number in a pointer such as `/nodes/3/id`, where its list and the name behind it are these.
fn index_in(pointer: &str, list: &str, name: &str) -> Option<usize> {
    let rest = pointer.strip_prefix(list)?.strip_prefix('/')?;
    let (index, field) = rest.split_once('/').unwrap_or((rest, ""));
    (field == name).then(|| index.parse().ok()).flatten()
}

fn node_at(workflow: &Workflow, index: Option<usize>) -> Option<&Node> {
    workflow.nodes.iter().find(|node| Some(node.index) == index)
}

fn document_of<'a>(workflow: &'a Workflow, node: &Node) -> Option<&'a Document> {
    workflow.steps.iter().find(|step| step.node_id == node.id)?.document.as_deref()
}

/// None of the ways from a node is the default, or several are, and its step says which one is.
pub(super) fn fold_defaults(workflow: &Workflow, findings: &mut Vec<Finding>) {
    let is_cause = |finding: &Finding| {
        ["DEFAULT_EDGE_MISSING", "DEFAULT_EDGE_DUPLICATE"].contains(&&*finding.code)
            && finding.file == workflow.graph_path
    };
    let pointers: Vec<String> =
        findings.iter().filter(|f| is_cause(f)).map(|finding| finding.pointer.clone()).collect();
    for pointer in pointers {
        let of_edge = |index: usize| workflow.edges.iter().find(|edge| edge.index == index);
        let edge = index_in(&pointer, "/edges", "isDefault").and_then(of_edge);
        let node = match edge {
            Some(edge) => workflow.node(&edge.from),
            None => node_at(workflow, index_in(&pointer, "/nodes", "")),
        };
        let Some(path) = node.and_then(|node| node.path.as_ref()) else { continue };
        let transitions = node.and_then(|node| document_of(workflow, node)?.front().get("transitions")?.as_array());
        let is_default = |transition: &&Value| transition.get("isDefault") == Some(&Value::Bool(true));
        let mut said = transitions.into_iter().flatten().filter(is_default).filter_map(|one| one.get("to")?.as_str());
        let (Some(to), None) = (said.next(), said.next()) else { continue };
        findings.retain(|finding| !(finding.code == "TRANSITION_DEFAULT_MISMATCH" && finding.file == *path));
        if let Some(finding) = findings.iter_mut().find(|finding| is_cause(finding) && finding.pointer == pointer) {
            finding.hint = match edge {
                Some(_) => format!("let only the edge to `{to}` be the default, as the step says"),
                None => format!("make the edge to `{to}` the default, as the step says"),
            };
        }
    }
}

/// A node whose id is none, and whose step still has the one that was meant.
pub(super) fn fold_node_ids(workflow: &Workflow, findings: &mut Vec<Finding>) {
    let is_id = |finding: &Finding| finding.code == "SCHEMA_PATTERN" && finding.file == workflow.graph_path;
    let wrong: Vec<(String, String)> = findings
        .iter()
        .filter(|finding| is_id(finding))
        .filter_map(|finding| {
            let node = node_at(workflow, Some(index_in(&finding.pointer, "/nodes", "id")?))?;
            Some((finding.pointer.clone(), node.path.clone()?))
        })
        .collect();
    for (pointer, path) in wrong {
        let follows = |finding: &Finding| finding.code == "STEP_NODE_MISMATCH" && finding.file == path;
        let Some(said) = findings.iter().find(|finding| follows(finding)).map(|finding| finding.actual.clone()) else {
            continue;
        };
        findings.retain(|finding| !follows(finding));
        if let Some(finding) = findings.iter_mut().find(|finding| is_id(finding) && finding.pointer == pointer) {
            finding.hint = format!("write `{said}`, as its step says");
        }
    }
}

/// An edge that is there twice: the step has one transition for both, and each of them may be the default.
pub(super) fn fold_doubled_edges(workflow: &Workflow, findings: &mut Vec<Finding>) {
    let mut ways: HashMap<(&str, &str, Option<&str>), &Edge> = HashMap::new();
    for edge in &workflow.edges {
        let way = (edge.from.as_str(), edge.to.as_str(), edge.value.get("label").and_then(Value::as_str));
        let Some(first) = ways.insert(way, edge) else { continue };
        let node = workflow.node(&edge.from);
        let path = node.and_then(|node| node.path.as_ref());
        let place = node.map(|node| format!("/nodes/{}", node.index));
        let of_ways = |finding: &Finding| {
            let of_step = finding.code == "EDGE_WITHOUT_TRANSITION" && Some(&finding.file) == path;
            let of_edges = finding.pointer == format!("/edges/{}/isDefault", edge.index);
            let of_node = finding.file == workflow.graph_path && (Some(&finding.pointer) == place.as_ref() || of_edges);
            of_step || (finding.code.starts_with("DEFAULT_EDGE_") && of_node)
        };
        if !findings.iter().any(&of_ways) {
            continue;
        }
        let is_error = findings.iter().any(|finding| of_ways(finding) && finding.is_error());
        findings.retain(|finding| !of_ways(finding));
        let has_own = |finding: &Finding| {
            finding.code == "ID_DUPLICATE" && finding.pointer == format!("/edges/{}/id", edge.index)
        };
        if findings.iter().any(has_own) {
            continue;
        }
        let id = |edge: &Edge| match edge.value.get("id").and_then(Value::as_str) {
            Some(id) => format!("`{id}`"),
            None => format!("number {}", edge.index + 1),
        };
        let message =
            format!("the edges {} and {} are one way, from `{}` to `{}`", id(first), id(edge), edge.from, edge.to);
        let pointer = format!("/edges/{}", edge.index);
        let mut finding = Finding::warning("EDGE_DUPLICATE", &workflow.graph_path, pointer, message);
        // What it stands for may have been an error.
        finding.severity = if is_error { Severity::Error } else { finding.severity };
        finding = finding.expected("one edge for each way").actual(id(edge)).hint("take one of them out");
        findings.push(finding);
    }
}

/// An edge that leads back to its own node, where the step leads on.
pub(super) fn fold_loops(workflow: &Workflow, findings: &mut Vec<Finding>) {
    let is_loop = |finding: &Finding| finding.code.starts_with("CYCLE_MISSING_") && finding.file == workflow.graph_path;
    let pointers: Vec<String> = findings.iter().filter(|f| is_loop(f)).map(|finding| finding.pointer.clone()).collect();
    for pointer in pointers {
        let Some(node) = node_at(workflow, index_in(&pointer, "/nodes", "")) else { continue };
        let Some(path) = &node.path else { continue };
        let leads_back = workflow.edges.iter().any(|edge| edge.from == node.id && edge.to == node.id);
        if leads_back {
            // The way back is one more way, which nobody has a transition for.
            let place = format!("/nodes/{}", node.index);
            findings.retain(|finding| {
                let is_default = finding.code == "DEFAULT_EDGE_MISSING" && finding.pointer == place;
                let is_way = finding.code == "EDGE_WITHOUT_TRANSITION" && finding.expected == node.id;
                !((is_default && finding.file == workflow.graph_path) || (is_way && finding.file == *path))
            });
        }
        let follows = |finding: &Finding| finding.code == "TRANSITION_WITHOUT_EDGE" && finding.file == *path;
        let Some(to) = findings.iter().find(|f| follows(f)).map(|finding| finding.actual.clone()) else { continue };
        if !leads_back {
            continue;
        }
        findings.retain(|finding| !follows(finding));
        if let Some(finding) = findings.iter_mut().find(|finding| is_loop(finding) && finding.pointer == pointer) {
            finding.hint = format!("let the edge lead to `{to}`, as the step says");
        }
    }
}

/// An agent or a workflow without an id of its own, where a single id is named and not there: that one was meant.
pub(super) fn fold_unnamed(package: &Package, findings: &mut Vec<Finding>) {
    let agents = package.agents_path().unwrap_or_default();
    for (file, list, code) in [(agents, "/agents", "AGENT_NOT_FOUND"), (MANIFEST, "/workflows", "WORKFLOW_NOT_FOUND")] {
        let is_cause = |finding: &Finding| {
            ["ID_DUPLICATE", "SCHEMA_REQUIRED", "SCHEMA_PATTERN"].contains(&&*finding.code)
                && finding.file == file
                && index_in(&finding.pointer, list, "id").is_some()
        };
        let follows = |finding: &Finding| finding.code == code;
        let named: BTreeSet<String> =
            findings.iter().filter(|f| follows(f)).map(|finding| finding.actual.clone()).collect();
        let (Some(name), 1) = (named.first(), named.len()) else { continue };
        let mut causes = findings.iter_mut().filter(|finding| is_cause(finding));
        let (Some(cause), None) = (causes.next(), causes.next()) else { continue };
        cause.hint = format!("write `{name}`, which is named and not there, if that is meant; else give it another id");
        findings.retain(|finding| !follows(finding));
    }
}

/// The manifest gives a workflow the file of another one. Its own file is in the package, and is then unused, as are its steps.
pub(super) fn fold_shared(package: &Package, findings: &mut Vec<Finding>) {
    let is_shared = |finding: &Finding| finding.code == "WORKFLOW_FILE_SHARED" && finding.file == MANIFEST;
    let is_unused = |finding: &Finding| ["UNUSED_FILE", "ORPHAN_STEP_FILE"].contains(&&*finding.code);
    let pointers: Vec<String> =
        findings.iter().filter(|f| is_shared(f)).map(|finding| finding.pointer.clone()).collect();
    let mut told: BTreeSet<String> = BTreeSet::new();
    let mut folders: BTreeSet<String> = BTreeSet::new();
    for pointer in &pointers {
        let said = package.manifest().and_then(|manifest| manifest.pointer(pointer)?.as_str());
        let (Some(said), Some((at, name))) = (said, pointer.rsplit_once('/')) else { continue };
        let is_own = |finding: &&Finding| {
            finding.code == "UNUSED_FILE" && file_name_of(&finding.file) == file_name_of(said) && finding.file != said
        };
        let mut own = findings.iter().filter(is_own).map(|finding| finding.file.clone());
        let (Some(meant), None) = (own.next(), own.next()) else { continue };
        // The steps of a document that was mistaken read what it would set.
        let workflow = package.workflows().iter().find(|workflow| workflow.pointer == at);
        if let Some(workflow) = workflow.filter(|_| name == "workflow") {
            findings.retain(|finding| {
                let of_step = workflow.steps.iter().any(|step| step.path == finding.file);
                !(finding.code == "VARIABLE_NEVER_SET" && of_step)
            });
        }
        folders.insert(folder_of(&meant).to_owned());
        let is_second = !told.insert(at.to_owned());
        findings.retain_mut(|finding| {
            let is_this = is_shared(finding) && finding.pointer == *pointer;
            if is_this {
                finding.hint = format!("write `{meant}`, which nothing names");
            }
            !(is_this && is_second)
        });
    }
    findings.retain(|finding| {
        !(is_unused(finding) && folders.iter().any(|folder| !folder.is_empty() && finding.file.starts_with(folder)))
    });
}

/// A field whose name is written otherwise: what it names is not used, and what it lists is not found.
pub(super) fn fold_misnamed(package: &Package, findings: &mut Vec<Finding>) {
    let is_misnamed = |finding: &&Finding| field_meant(finding).is_some();
    let graph_of = |file: &str| package.workflows().iter().find(|workflow| workflow.graph_path == file);
    let mut named: BTreeSet<String> = BTreeSet::new();
    for finding in findings.iter().filter(is_misnamed) {
        let graph = graph_of(&finding.file);
        let value = graph.map_or_else(|| package.manifest(), |workflow| workflow.graph.as_ref());
        let path = value.and_then(|value| value.pointer(&finding.pointer)?.as_str());
        named.extend(path.map(|path| format!("{}{path}", graph.map_or("", Workflow::folder))));
    }
    let is_list = |finding: &&Finding| finding.file == MANIFEST && finding.pointer.matches('/').count() == 1;
    let has_list = findings.iter().filter(is_list).any(|finding| field_meant(finding) == Some("workflows"));
    // A menu may name a workflow by its file, and that file is missing.
    let missing = findings.iter().filter(|finding| finding.code == "FILE_MISSING" && finding.file == MANIFEST);
    let missing: BTreeSet<String> = missing.map(|finding| finding.actual.clone()).collect();
    findings.retain(|finding| {
        let is_unused = ["UNUSED_FILE", "ORPHAN_STEP_FILE"].contains(&&*finding.code) && named.contains(&finding.file);
        let is_unlisted = finding.code == "WORKFLOW_NOT_FOUND" && (has_list || missing.contains(&finding.actual));
        !(is_unused || is_unlisted)
    });
}
