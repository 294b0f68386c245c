//! The revision that a change is made on: of what its object is in, which is a workflow, all agents or all assets.

use crate::change::{ChangeSet, Revision};
use crate::refs::Object;
use crate::{Package, Workflow, revision};
use serde_json::Value;

/// Against which revision of a scope a set says that it was made.
pub(super) fn base_revision(set: &ChangeSet, scope: &str) -> Option<String> {
    // A set over several workflows has one of each in the part of the contract that is open.
    let named = set.extensions.get("baseRevisions").and_then(|revisions| revisions.get(scope));
    if let Some(revision) = named.and_then(Value::as_str) {
        return Some(revision.to_owned());
    }
    let declared = match scope {
        "agents" => &set.revisions.agents_revision,
        "assets" => &set.revisions.assets_revision,
        _ => &set.revisions.workflow_revision,
    };
    declared.as_ref().map(|revision| match revision {
        Revision::Hash(hash) => hash.clone(),
        Revision::Number(number) => number.to_string(),
    })
}

/// The field of a change set that says against what this was made, and the scope of that revision.
pub(super) fn scope_of(object: &Object) -> (&'static str, String) {
    match object {
        Object::Agent(_) => ("revisions.agentsRevision", "agents".to_owned()),
        Object::Asset(_) => ("revisions.assetsRevision", "assets".to_owned()),
        other => ("revisions.workflowRevision", format!("workflow:{}", other.workflow().unwrap_or_default())),
    }
}

/// The revision of what an object is in, as `data.revisions` of a read has it.
pub(super) fn revision_around(package: &Package, object: &Object) -> Option<String> {
    match object {
        Object::Agent(_) => Some(revision::agents(package)),
        Object::Asset(_) => Some(revision::assets(package)),
        other => workflow_of(package, other).map(|workflow| revision::workflow(package, workflow)),
    }
}

/// The revision of an object itself, as `meta.revision` of a read has it; none where that is the one around it.
pub(super) fn revision_of(package: &Package, object: &Object) -> Option<String> {
    match object {
        Object::Agent(id) => package.agent(id).map(revision::agent),
        Object::Asset(path) => package.asset(path).map(|asset| revision::asset(package, &asset)),
        Object::Step { node, .. } => workflow_of(package, object)?.step(node).map(|step| revision::step(package, step)),
        _ => None,
    }
}

fn workflow_of<'a>(package: &'a Package, object: &Object) -> Option<&'a Workflow> {
    object.workflow().and_then(|id| package.workflow(id))
}
