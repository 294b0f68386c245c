//! `bmad.json` against the files: they are there, and no id is used twice.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::assets;
use crate::files::problem;
use crate::finding::{Finding, Findings};
use crate::limits::ID_BYTES_MAX;
use crate::package::{MANIFEST, Package};

pub(super) fn check(package: &Package, findings: &mut Findings) {
    let Some(manifest) = package.manifest() else {
        if !package.files().contains_key(MANIFEST) {
            findings.add(without_manifest(package));
        }
        return;
    };
    check_file(package, manifest, "/entry/agents", findings);
    let places: Vec<String> = if package.is_part() {
        // Files of the others are not at hand.
        package.workflows().iter().map(|workflow| workflow.pointer.clone()).collect()
    } else {
        let listed = manifest.get("workflows").and_then(Value::as_array).map_or(0, Vec::len);
        let listed = (0..listed).map(|index| format!("/workflows/{index}"));
        std::iter::once("/entry".to_owned()).chain(listed).collect()
    };
    for place in places {
        for name in ["workflow", "graph"] {
            check_file(package, manifest, &format!("{place}/{name}"), findings);
        }
    }
    for workflow in package.workflows().iter().filter(|workflow| workflow.id.len() > ID_BYTES_MAX) {
        findings.add(too_long(MANIFEST, format!("{}/id", workflow.pointer), &workflow.id));
    }
    let mut ids = BTreeSet::new();
    for workflow in package.workflows().iter().filter(|workflow| !ids.insert(workflow.id.as_str())) {
        findings.add(twice(MANIFEST, format!("{}/id", workflow.pointer), "workflow", &workflow.id));
    }
    check_agents(package, findings);
}

fn without_manifest(package: &Package) -> Finding {
    let inside = package.files().keys().find(|path| path.ends_with("/bmad.json"));
    let hint = match inside {
        Some(path) => format!("there is `{path}`: take the files out of their folder"),
        None => format!("add `{MANIFEST}`"),
    };
    Finding::error("manifest-missing", MANIFEST, "", format!("there is no `{MANIFEST}`"))
        .expected(MANIFEST)
        .actual("nothing")
        .hint(hint)
}

/// The file that the manifest names here is in the package.
fn check_file(package: &Package, manifest: &Value, pointer: &str, findings: &mut Findings) {
    let Some(path) = manifest.pointer(pointer).and_then(Value::as_str) else { return };
    check_path(package, MANIFEST, pointer.to_owned(), path, findings);
}

pub(super) fn check_path(package: &Package, file: &str, pointer: String, path: &str, findings: &mut Findings) {
    if let Some(problem) = problem(path) {
        let message = format!("the path `{}` {problem}", path.escape_debug());
        let finding = Finding::error("path-unsafe", file, pointer, message).actual(path);
        findings.add(finding.expected("a path below the package").hint("name a file of the package"));
    } else if !package.files().contains_key(path) {
        let message = format!("there is no file `{path}`");
        let finding = Finding::error("file-missing", file, pointer, message).actual(path);
        findings.add(finding.expected("a file of the package").hint("add the file, or fix the path"));
    }
}

fn too_long(file: &str, pointer: String, id: &str) -> Finding {
    Finding::error("id-too-long", file, pointer, format!("an id of {} bytes is too long", id.len()))
        .expected(format!("at most {ID_BYTES_MAX} bytes"))
        .actual(id)
        .hint("give it a shorter id")
}

pub(super) fn twice(file: &str, pointer: String, what: &str, id: &str) -> Finding {
    Finding::error("id-duplicate", file, pointer, format!("the {what} `{id}` is there twice"))
        .expected("an id of its own")
        .actual(id)
        .hint("give one of them another id")
}

fn check_agents(package: &Package, findings: &mut Findings) {
    let Some(path) = package.agents_path() else { return };
    let mut ids = BTreeSet::new();
    for agent in package.agents() {
        let pointer = format!("/agents/{}", agent.index);
        if agent.id.len() > ID_BYTES_MAX {
            findings.add(too_long(path, format!("{pointer}/id"), &agent.id));
        }
        if !ids.insert(agent.id.as_str()) {
            findings.add(twice(path, format!("{pointer}/id"), "agent", &agent.id));
        }
        for (inside, asset) in assets::mentions_in(&agent.value) {
            if !package.has_asset(&asset) {
                findings.add(asset_missing(path, format!("{pointer}{inside}"), &asset));
            }
        }
    }
}

pub(super) fn asset_missing(file: &str, pointer: String, asset: &str) -> Finding {
    Finding::error("asset-not-found", file, pointer, format!("there is no asset `{asset}`"))
        .expected("an asset of the package")
        .actual(asset)
        .hint("add the asset, or fix the path")
}

pub(super) fn agent_missing(file: &str, pointer: &str, id: &str) -> Finding {
    Finding::error("AGENT_NOT_FOUND", file, pointer, format!("there is no agent `{id}`"))
        .expected("the id of an agent in the package")
        .actual(id)
        .hint("add the agent, or name another one")
}
