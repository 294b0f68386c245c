//! `bmad.json` against the files: they are there, and no id is used twice.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolhost_contract::{nearest, nearest_names};

use super::{COMPARED_MAX, links};
use crate::assets;
use crate::document::{Document, code_lines, comments};
use crate::files::{is_twin, problem};
use crate::finding::{Finding, Findings, Severity, quoted};
use crate::limits::ID_BYTES_MAX;
use crate::package::{MANIFEST, Package, Workflow};

pub(super) fn check(package: &Package, findings: &mut Findings) {
    let Some(manifest) = package.manifest() else {
        if !package.files().contains_key(MANIFEST) {
            findings.add(without_manifest(package));
        }
        return;
    };
    check_file(package, manifest, "/entry/agents", findings);
    check_runtime(manifest, findings);
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
    check_shared(package, findings);
    let mut ids = BTreeSet::new();
    for workflow in package.workflows().iter().filter(|workflow| !ids.insert(workflow.id.as_str())) {
        findings.add(twice(MANIFEST, format!("{}/id", workflow.pointer), "workflow", &workflow.id));
    }
    check_agents(package, findings);
}

/// The oldest runtime is a version: `1`, `1.2` or `1.2.3`, perhaps with a comparison before it.
fn check_runtime(manifest: &Value, findings: &mut Findings) {
    let pointer = "/runtime/minRuntimeVersion";
    let Some(said) = manifest.pointer(pointer).and_then(Value::as_str) else { return };
    let number = said.trim().trim_start_matches(['>', '<', '=', '^', '~', 'v', ' ']);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        let message = format!("`minRuntimeVersion` is `{}`, which is no version", quoted(said));
        let finding = Finding::warning("VERSION_NOT_SEMVER", MANIFEST, pointer, message).actual(said);
        findings.add(finding.expected("a version such as 1.1.0").hint("write the version, or take the field out"));
    }
}

/// Two workflows have no file in common: a change of one would change the other. And the entry names the files of one.
fn check_shared(package: &Package, findings: &mut Findings) {
    let mut owners: BTreeMap<&str, &Workflow> = BTreeMap::new();
    let (entries, listed): (Vec<&Workflow>, Vec<&Workflow>) =
        package.workflows().iter().partition(|workflow| workflow.pointer == ENTRY);
    for workflow in &listed {
        for (name, path) in [("workflow", &workflow.path), ("graph", &workflow.graph_path)] {
            let owner = *owners.entry(path).or_insert(workflow);
            // One of its own, or one that is listed twice, has its own finding.
            if owner.id == workflow.id {
                continue;
            }
            let message = format!("the workflows `{}` and `{}` share the file `{path}`", owner.id, workflow.id);
            let pointer = format!("{}/{name}", workflow.pointer);
            let finding = Finding::error("WORKFLOW_FILE_SHARED", MANIFEST, pointer, message).actual(path);
            findings.add(finding.expected("files of its own for each workflow").hint("copy the file, or list it once"));
        }
    }
    for entry in entries {
        let document = owners.get(entry.path.as_str());
        let graph = owners.get(entry.graph_path.as_str());
        let (name, said, owner) = match (document, graph) {
            (Some(owner), _) => ("graph", &entry.graph_path, owner),
            (None, Some(owner)) => ("workflow", &entry.path, owner),
            (None, None) => continue,
        };
        let meant = if name == "graph" { &owner.graph_path } else { &owner.path };
        let message = format!("the entry names one file of the workflow `{}`, and as its {name} `{said}`", owner.id);
        let finding = Finding::error("WORKFLOW_FILE_SHARED", MANIFEST, format!("{ENTRY}/{name}"), message);
        let finding = finding.expected("the files of one workflow").actual(said);
        findings.add(finding.hint(format!("write `{meant}`, as `{}` has it", owner.pointer)));
    }
}

/// Where the manifest names the workflow that a package begins with.
const ENTRY: &str = "/entry";

/// Whether each place of the manifest that names a workflow says its two files. Where one does not, any name may be its.
pub(super) fn workflows_are_told(package: &Package) -> bool {
    let Some(manifest) = package.manifest() else { return false };
    // A list that is none has its own finding.
    let (list, is_list) = match manifest.get("workflows") {
        None => (None, true),
        Some(list) => (list.as_array(), list.is_array()),
    };
    let listed = list.into_iter().flatten();
    let Some(entry) = manifest.get("entry") else { return false };
    let mut places = std::iter::once(entry).chain(listed);
    is_list
        && places.all(|place| ["workflow", "graph"].iter().all(|name| place.get(*name).is_some_and(Value::is_string)))
}

fn without_manifest(package: &Package) -> Finding {
    let inside = package.files().keys().find(|path| path.ends_with("/bmad.json"));
    let hint = match inside {
        Some(path) => format!("there is `{path}`: take the files out of their folder"),
        None => format!("add `{MANIFEST}`"),
    };
    Finding::error("MANIFEST_MISSING", MANIFEST, "", format!("there is no `{MANIFEST}`"))
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
        let finding = Finding::error("PATH_UNSAFE", file, pointer, message).actual(path);
        findings.add(finding.expected("a path below the package").hint("name a file of the package"));
    } else if package.files().keys().any(|known| known.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))) {
        let message = format!("`{path}` is a folder");
        let finding = Finding::error("FILE_MISSING", file, pointer, message).actual(path);
        findings.add(finding.expected("a file of the package").hint("name the file that is meant in it"));
    } else if !package.files().contains_key(path) {
        let message = format!("there is no file `{path}`");
        let finding = Finding::error("FILE_MISSING", file, pointer, message).actual(path);
        let hint = match file_meant(package, file, path) {
            Some(meant) => format!("write `{meant}` if that is meant; else add the file"),
            None => "add the file, or fix the path".to_owned(),
        };
        findings.add(finding.expected("a file of the package").hint(hint));
    }
}

/// The file that was probably meant by a path in the manifest or in a graph, as it is written there: one of the same kind that
/// no other node or workflow has, and not what stands there already.
fn file_meant(package: &Package, file: &str, path: &str) -> Option<String> {
    let own = package.workflows().iter().find(|workflow| workflow.graph_path == file);
    let folder = own.map_or("", Workflow::folder);
    let is_taken = |known: &str| {
        package.workflows().iter().take(COMPARED_MAX).any(|workflow| {
            let files = [&workflow.path, &workflow.graph_path].into_iter();
            let mut files = files.chain(workflow.nodes.iter().filter_map(|node| node.path.as_ref()));
            let is_elsewhere = workflow.folder().len() > folder.len() && known.starts_with(workflow.folder());
            is_elsewhere || files.any(|taken| taken == known)
        })
    };
    // What a graph names is below the folder of the graph, and is not the manifest.
    let comparable = |known: &&str| known.starts_with(folder) && (own.is_none() || *known != MANIFEST);
    let ending = |path: &str| path.rsplit_once('.').map(|(_, ending)| ending.to_owned());
    let is_alike = |known: &&str| comparable(known) && ending(known) == ending(path);
    let alike: Vec<&str> = package.files().keys().map(String::as_str).filter(is_alike).take(COMPARED_MAX).collect();
    let near = nearest_names(path, &alike);
    let written = path.strip_prefix(folder).unwrap_or(path);
    let free = near.into_iter().filter(|known| !is_taken(known));
    let mut free = free.map(|known| known.strip_prefix(folder).unwrap_or(known));
    free.find(|meant| *meant != written).map(str::to_owned)
}

fn too_long(file: &str, pointer: String, id: &str) -> Finding {
    Finding::error("ID_TOO_LONG", file, pointer, format!("an id of {} bytes is too long", id.len()))
        .expected(format!("at most {ID_BYTES_MAX} bytes"))
        .actual(id)
        .hint("give it a shorter id")
}

pub(super) fn twice(file: &str, pointer: String, what: &str, id: &str) -> Finding {
    Finding::error("ID_DUPLICATE", file, pointer, format!("the {what} `{id}` is there twice"))
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
                findings.add(asset_missing(package, path, format!("{pointer}{inside}"), &asset));
            }
        }
        check_menu(package, path, &pointer, &agent.value, findings);
    }
}

/// What people can choose leads to a workflow of the package, or to a prompt of the agent.
fn check_menu(package: &Package, file: &str, at: &str, agent: &Value, findings: &mut Findings) {
    let named = agent.get("prompts").and_then(Value::as_array).into_iter().flatten().enumerate();
    let mut prompts: BTreeSet<&str> = BTreeSet::new();
    for (index, id) in named.filter_map(|(index, prompt)| Some((index, prompt.get("id")?.as_str()?))) {
        if !prompts.insert(id) {
            let twice = twice(file, format!("{at}/prompts/{index}/id"), "prompt", id);
            findings.add(Finding { severity: Severity::Warning, ..twice });
        }
    }
    let menu = agent.get("menu").and_then(Value::as_array).into_iter().flatten();
    let mut triggers = BTreeSet::new();
    for (index, choice) in menu.enumerate() {
        let trigger = choice.get("trigger").and_then(Value::as_str);
        if let Some(trigger) = trigger.filter(|trigger| !triggers.insert(*trigger)) {
            let message = format!("two choices of the menu have the trigger `{trigger}`");
            let finding = Finding::warning("TRIGGER_DUPLICATE", file, format!("{at}/menu/{index}/trigger"), message);
            findings.add(
                finding
                    .expected("a trigger of its own")
                    .actual(trigger)
                    .hint("give one of the two choices another trigger"),
            );
        }
        check_choice(package, file, &format!("{at}/menu/{index}"), choice, findings);
        let several = choice.get("multi").and_then(Value::as_array).into_iter().flatten().enumerate();
        for (n, choice) in several.filter(|(_, choice)| choice.is_object()) {
            check_choice(package, file, &format!("{at}/menu/{index}/multi/{n}"), choice, findings);
        }
        let prompt = choice.get("action").and_then(Value::as_str).and_then(|action| action.strip_prefix('#'));
        if let Some(prompt) = prompt.filter(|prompt| !prompts.contains(prompt)) {
            let message = format!("the agent has no prompt `{prompt}`");
            let finding = Finding::error("PROMPT_NOT_FOUND", file, format!("{at}/menu/{index}/action"), message);
            let hint = or_add(nearest(prompt, prompts.iter().copied()).first(), "add the prompt, or name another one");
            findings.add(finding.expected("`#` and the id of one of its prompts").actual(prompt).hint(hint));
        }
    }
}

/// What one choice names is there.
fn check_choice(package: &Package, file: &str, at: &str, choice: &Value, findings: &mut Findings) {
    for name in ["workflow", "validate-workflow"] {
        let named = choice.get(name).and_then(Value::as_str);
        // An asset has a finding of its own.
        let named = named.filter(|named| assets::mentions(named).is_empty());
        if let Some(named) = named.filter(|named| !names_workflow(package, named)) {
            findings.add(workflow_missing(package, file, format!("{at}/{name}"), named));
        }
    }
    for name in ["exec", "tmpl", "data", "checklist"] {
        let named = choice.get(name).and_then(Value::as_str).unwrap_or_default();
        // An asset has a finding of its own. What a variable leads to, or what is outside, nobody can tell here.
        let is_ours = named.contains('/') && problem(named).is_none() && assets::mentions(named).is_empty();
        if !is_ours || named.contains('{') || package.may_have_file(named) {
            continue;
        }
        let message = format!("there is no file `{named}`");
        let finding = Finding::warning("FILE_MISSING", file, format!("{at}/{name}"), message).actual(named);
        let meant = nearest(named, package.files().keys().map(String::as_str).take(COMPARED_MAX));
        let hint = or_add(meant.first(), "add the file, or fix the path");
        findings.add(finding.expected("a file of the package").hint(hint));
    }
}

/// Whether a choice leads to a workflow: by its id, by the path of one of its files, or by a path outside the package.
fn names_workflow(package: &Package, named: &str) -> bool {
    let is_path = named.contains('/') || [".md", ".json", ".yaml", ".yml"].iter().any(|ending| named.ends_with(ending));
    match is_path {
        // What a variable leads to, nobody can tell here.
        true => named.contains('{') || package.may_have_file(named),
        false => package.has_workflow(named) || !workflows_are_told(package),
    }
}

pub(super) fn workflow_missing(package: &Package, file: &str, pointer: String, id: &str) -> Finding {
    let finding = Finding::error("WORKFLOW_NOT_FOUND", file, pointer, format!("there is no workflow `{id}`"));
    let meant = nearest(id, package.workflow_ids().into_iter().take(COMPARED_MAX));
    finding.expected("the id of a workflow").actual(id).hint(or_add(meant.first(), "add it, or name another one"))
}

pub(super) fn asset_missing(package: &Package, file: &str, pointer: String, asset: &str) -> Finding {
    let paths: Vec<&str> = package.asset_paths().take(COMPARED_MAX).collect();
    // Two encodings of one letter look alike.
    if let Some(twin) = paths.iter().find(|path| is_twin(path, asset)) {
        let only = if twin.to_lowercase() == asset.to_lowercase() { "case" } else { "how its accents are encoded" };
        let message = format!("the asset `{twin}` has another name than `{asset}`: it differs in {only}");
        let finding = Finding::error("ASSET_NOT_FOUND", file, pointer, message).expected("an asset of the package");
        return finding
            .actual(asset)
            .hint(format!("write `{twin}` here, or rename the asset and write that name everywhere"));
    }
    let meant = nearest_names(asset, &paths);
    Finding::error("ASSET_NOT_FOUND", file, pointer, format!("there is no asset `{asset}`"))
        .expected("an asset of the package")
        .actual(asset)
        .hint(or_add(meant.first(), "add the asset, or fix the path"))
}

/// What a document names of the assets is there. In a block of code it may be an example, in a comment what was there once.
pub(super) fn check_mentions(package: &Package, file: &str, document: &Document, findings: &mut Findings) {
    for (pointer, asset) in assets::mentions_in(document.front()) {
        if !package.has_asset(&asset) {
            findings.add(asset_missing(package, file, pointer, &asset));
        }
    }
    let (code, comments) = (code_lines(document.body()), comments(document.body()));
    let is_comment = |at: usize| {
        let before = comments.partition_point(|comment| comment.start <= at);
        comments[..before].last().is_some_and(|comment| at < comment.end)
    };
    for mention in assets::mentions(document.body()) {
        if package.has_asset(&mention.path) {
            continue;
        }
        let finding = asset_missing(package, file, String::new(), &mention.path);
        let is_code = code.get(mention.line).copied().unwrap_or(false);
        let severity = if is_code || is_comment(mention.at) { Severity::Warning } else { finding.severity };
        let finding = Finding { severity, ..finding };
        findings.add(finding.at(document.body_line() + mention.line, mention.column));
    }
    links::check(package, file, document, findings);
}

pub(super) fn agent_missing(package: &Package, file: &str, pointer: &str, id: &str) -> Finding {
    let meant = nearest(id, package.agents().iter().map(|agent| agent.id.as_str()).take(COMPARED_MAX));
    // One that nothing names may be the same under another name.
    let named: BTreeSet<&str> = package
        .workflows()
        .iter()
        .flat_map(|workflow| workflow.nodes.iter().filter_map(|node| node.agent_id.as_deref()))
        .take(COMPARED_MAX)
        .collect();
    let mut unnamed = package.agents().iter().map(|agent| agent.id.as_str()).filter(|id| !named.contains(id));
    let only = unnamed.next().filter(|_| unnamed.next().is_none());
    Finding::error("AGENT_NOT_FOUND", file, pointer, format!("there is no agent `{id}`"))
        .expected("the id of an agent in the package")
        .actual(id)
        .hint(or_add(meant.first().or(only.as_ref()), "add the agent, or name another one"))
}

/// What to do, with the name that was probably meant.
fn or_add(meant: Option<&&str>, otherwise: &str) -> String {
    match meant {
        Some(meant) => format!("write `{meant}` if that is meant; else {otherwise}"),
        None => otherwise.to_owned(),
    }
}
