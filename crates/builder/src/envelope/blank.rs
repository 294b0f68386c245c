//! The part of an envelope that is about an object which is not there yet: an empty snapshot, what it will stand beside and
//! how it may be named.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::targets::{Part, agents, asset_paths, file_type, missing, variables, workflow_named};
use super::{EnvelopeError, Request, Result, TargetType};
use crate::assets;
use crate::limits::ID_BYTES_MAX;
use crate::package::{Node, Workflow};

/// The part for a target that `mode: create` names and that is not there.
pub(super) fn part<'a>(request: &Request<'a>) -> Result<Part<'a>> {
    check_name(request.target_type, request.target_id)?;
    let (package, id) = (request.package, request.target_id);
    let named = |id| workflow_named(package, id);
    Ok(match request.target_type {
        TargetType::Workflow => Part {
            workflow: None,
            snapshot: json!({
                "workflow_md": null, "graph_json": null, "frontmatter": null, "about": null, "step_index": [],
            }),
            digest: json!({
                "agents": agents(package),
                "assets": asset_paths(package),
                "workflows": package.workflow_ids(),
            }),
            revision: None,
        },
        TargetType::Step => {
            let workflow = home(request)?;
            Part {
                workflow: Some(workflow),
                snapshot: json!({
                    "step_markdown": null,
                    "step_path": format!("{}steps/{id}.md", workflow.folder()),
                    "frontmatter": null,
                    "node_meta": null,
                    "adjacent_edges": [],
                }),
                digest: json!({
                    "neighbors": workflow.nodes.iter().map(place).collect::<Vec<_>>(),
                    "edges": ways(workflow),
                    "variables": variables(workflow),
                    "agent": null,
                    "other_agents": agents(package),
                    "referenced_asset_paths": [],
                    "other_assets": asset_paths(package),
                }),
                revision: None,
            }
        }
        TargetType::Agent => Part {
            workflow: request.workflow_id.map(named).transpose()?,
            snapshot: json!({ "agent_definition": null, "referenced_steps": [] }),
            digest: json!({ "other_agents": agents(package), "referenced_assets": [], "assets": asset_paths(package) }),
            revision: None,
        },
        TargetType::Asset => Part {
            workflow: request.workflow_id.map(named).transpose()?,
            snapshot: json!({ "path": id, "content": null, "file_type": file_type(id), "referenced_by": [] }),
            digest: json!({ "other_assets": asset_paths(package), "references": [] }),
            revision: None,
        },
    })
}

/// A node that a new step may stand beside. A read of the workflow has all of it.
fn place(node: &Node) -> Value {
    json!({ "node_id": node.id, "type": node.value.get("type"), "title": node.value.get("title") })
}

/// Of each node, the nodes that edges lead to from it.
fn ways(workflow: &Workflow) -> BTreeMap<&str, Vec<&str>> {
    let mut ways: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for edge in &workflow.edges {
        ways.entry(&edge.from).or_default().push(&edge.to);
    }
    ways
}

/// The workflow that a new step is for: the one that is named, or the only one.
fn home<'a>(request: &Request<'a>) -> Result<&'a Workflow> {
    let package = request.package;
    if let Some(id) = request.workflow_id {
        return workflow_named(package, id);
    }
    let ids = package.workflow_ids();
    match (ids.first(), ids.len()) {
        (Some(only), 1) => workflow_named(package, only),
        (None, _) => Err(missing("workflow", "main", "the package, which has none yet")),
        _ => Err(EnvelopeError::WhichWorkflow {
            id: request.target_id.to_owned(),
            workflows: ids.into_iter().map(str::to_owned).collect(),
        }),
    }
}

/// How an object of this kind may be named.
pub(super) fn naming(target: TargetType) -> &'static str {
    match target {
        TargetType::Workflow | TargetType::Step | TargetType::Agent => {
            "an id of letters, digits, `.`, `_`, `:` and `-` that begins with a letter or a digit, has at most 200 bytes, \
             and is not in use"
        }
        TargetType::Asset => {
            "a path below `assets/` of letters, digits, `.`, `_`, `-` and `/` that ends in one of the extensions and is \
             not in use"
        }
    }
}

fn check_name(target: TargetType, id: &str) -> Result<()> {
    let is_right = match target {
        TargetType::Asset => assets::problem(id).is_none(),
        _ => {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
            id.len() <= ID_BYTES_MAX && id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.chars().all(is_part)
        }
    };
    let kind = target.as_str();
    if is_right { Ok(()) } else { Err(EnvelopeError::Name { kind, id: id.to_owned(), expected: naming(target) }) }
}
