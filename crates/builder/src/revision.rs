//! Revisions: one hash per object, so that an edit of anything in it can be seen, and an edit of something else cannot.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use toolhost_contract::canonical_value;

use crate::files::Files;
use crate::package::{Agent, Asset, Package, Step, Workflow};

/// SHA-256 of the canonical JSON (RFC 8785) of a value, in hexadecimal.
///
/// # Panics
/// Never: a JSON value has a canonical form.
#[must_use]
pub fn of(value: &Value) -> String {
    let canonical = canonical_value(value).expect("a JSON value has a canonical form");
    hex::encode(Sha256::digest(canonical))
}

/// Of a whole workflow: its document, its graph, all its steps, and what the manifest says of it.
#[must_use]
pub fn workflow(package: &Package, workflow: &Workflow) -> String {
    let files = package.files();
    let mut steps = Map::new();
    for node in &workflow.nodes {
        if let Some(path) = node.path.as_deref() {
            steps.insert(path.to_owned(), content(files, path));
        }
    }
    // The layout of a graph means nothing, that of a document may.
    let graph = workflow.graph.clone().unwrap_or_else(|| content(files, &workflow.graph_path));
    let document = content(files, &workflow.path);
    of(&json!({ "document": document, "graph": graph, "steps": steps, "about": workflow.about }))
}

/// Of a step: its file, comments and all.
#[must_use]
pub fn step(package: &Package, step: &Step) -> String {
    of(&json!({ "path": step.path, "content": content(package.files(), &step.path) }))
}

/// Of an agent.
#[must_use]
pub fn agent(agent: &Agent) -> String {
    of(&agent.value)
}

/// Of an asset.
#[must_use]
pub fn asset(package: &Package, asset: &Asset<'_>) -> String {
    of(&json!({ "path": asset.path, "content": content(package.files(), asset.path) }))
}

/// Of all agents of a package.
#[must_use]
pub fn agents(package: &Package) -> String {
    let file = package.agents_path().map_or(Value::Null, |path| content(package.files(), path));
    of(package.agents_json().unwrap_or(&file))
}

/// Of all assets of a package: of the hashes of their bytes, so that a store need not read them all.
#[must_use]
pub fn assets(package: &Package) -> String {
    of(&json!(package.asset_hashes()))
}

/// A file as a value: its text, or the hash of what is no text.
fn content(files: &Files, path: &str) -> Value {
    let Some(bytes) = files.get(path) else { return Value::Null };
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::String(text.to_owned()),
        Err(_) => json!({ "sha256": hex::encode(Sha256::digest(bytes)) }),
    }
}
