//! Whether a package is right: first each file for itself, then what they say of each other.

mod contents;
mod fold;
mod links;
mod locate;
mod logic;
mod manifest;
mod shape;
mod starts;
mod steps;
mod variables;
mod workflows;

use std::collections::{BTreeMap, BTreeSet};

use crate::assets;
use crate::document::Document;
use crate::files::{self, case_twins};
use crate::finding::{Finding, Findings, Severity, quoted};
use crate::limits::{EDGES_MAX, FILE_BYTES_MAX, NODES_MAX, Size};
use crate::package::{MANIFEST, Package, Workflow};
use crate::schema::Schemas;

pub use contents::seal;
pub(crate) use locate::{locate, position};

/// Names among which the one that was probably meant is looked for: there may be a finding for each of many.
const COMPARED_MAX: usize = 1_000;

/// All that is wrong with a package, in an order that depends on nothing but the package. Empty: it can be used.
#[must_use]
pub fn validate(package: &Package) -> Vec<Finding> {
    validate_up_to(package, Size::default())
}

/// The same for a package that may be larger, or only smaller.
#[must_use]
pub fn validate_up_to(package: &Package, most: Size) -> Vec<Finding> {
    let mut findings = check_size(package, most);
    findings.extend(within(package, &Schemas::compiled(), Scope::All));
    findings
}

/// Which files are looked at.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    All,
    /// These, and the steps of a graph that is among them.
    Files(&'a BTreeSet<String>),
}

impl Scope<'_> {
    pub(crate) fn has(self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Files(files) => files.contains(path),
        }
    }
}

/// All that is wrong with some files of a package.
pub(crate) fn within(package: &Package, schemas: &Schemas, scope: Scope<'_>) -> Vec<Finding> {
    let mut findings = Findings::default();
    check_files(package, scope, &mut findings);
    // A step among the assets has a finding for that.
    let is_own = |problem: &&Finding| scope.has(&problem.file) && !problem.file.starts_with(assets::FOLDER);
    findings.extend(package.problems().iter().filter(is_own).cloned());
    check_schemas(package, schemas, scope, &mut findings);
    if scope.has(MANIFEST) || package.agents_path().is_some_and(|path| scope.has(path)) {
        manifest::check(package, &mut findings);
    }
    let mut seen = BTreeSet::new();
    for workflow in package.workflows() {
        if seen.insert(&workflow.graph_path) {
            let is_touched = scope.has(&workflow.graph_path) || scope.has(&workflow.path);
            if is_touched {
                workflows::check(package, workflow, &mut findings);
            }
            steps::check(package, workflow, scope, &mut findings);
            if is_touched || workflow.steps.iter().any(|step| scope.has(&step.path)) {
                workflows::check_variables(package, workflow, &mut findings);
            }
        }
    }
    check_shared(package, scope, &mut findings);
    if matches!(scope, Scope::All) {
        starts::check(package, &mut findings);
    }
    check_assets(package, scope, &mut findings);
    contents::check(package, scope, &mut findings);
    if scope.has(MANIFEST) || package.workflows().iter().any(|workflow| scope.has(&workflow.graph_path)) {
        check_unused(package, &mut findings);
    }
    fold_ids(findings.listed());
    fold::fold_types(package, findings.listed());
    locate(package, findings.listed());
    // What a set is told is compared with what was so before it, one by one.
    if matches!(scope, Scope::All) {
        fold::fold(package, findings.listed());
        // What took the place of several has none yet.
        locate(package, findings.listed());
    }
    findings.finish()
}

/// Reports an invalid id once, where it is defined, and counts the places that use it.
fn fold_ids(findings: &mut Vec<Finding>) {
    let gives = |finding: &Finding| {
        let parts: Vec<&str> = finding.pointer.split('/').collect();
        finding.code == "SCHEMA_PATTERN" && matches!(parts.as_slice(), ["", "agents" | "nodes", _, "id"])
    };
    let mut given: BTreeMap<String, usize> =
        findings.iter().filter(|finding| gives(finding)).map(|finding| (finding.actual.clone(), 0)).collect();
    if given.is_empty() {
        return;
    }
    findings.retain(|finding| {
        let follows = finding.code == "SCHEMA_PATTERN" && !gives(finding);
        match given.get_mut(&finding.actual).filter(|_| follows) {
            Some(count) => {
                *count += 1;
                false
            }
            None => true,
        }
    });
    for finding in findings.iter_mut().filter(|finding| gives(finding)) {
        match given.get(&finding.actual) {
            None | Some(0) => {}
            Some(1) => finding.message.push_str("; one other place names it"),
            Some(count) => finding.message.push_str(&format!("; {count} other places name it")),
        }
    }
}

pub(crate) fn check_size(package: &Package, most: Size) -> Vec<Finding> {
    let files = package.files();
    let bytes: usize = files.values().map(Vec::len).sum();
    let mut findings = Vec::new();
    if files.len() > most.files {
        let message = format!("the package has {} files; {} are the most", files.len(), most.files);
        findings.push(Finding::error("TOO_MANY_FILES", "", "", message).hint("split it into several packages"));
    }
    if bytes > most.bytes {
        let message = format!("the package has {bytes} bytes; {} are the most", most.bytes);
        findings.push(Finding::error("PACKAGE_TOO_LARGE", "", "", message).hint("split it into several packages"));
    }
    findings
}

fn check_files(package: &Package, scope: Scope<'_>, findings: &mut Findings) {
    let files = package.files();
    for (path, bytes) in files.iter().filter(|(path, _)| scope.has(path)) {
        if bytes.len() > FILE_BYTES_MAX {
            findings.add(too_large(path, bytes.len()));
        }
        // Assets have rules of their own, which include these.
        if let Some(problem) = files::problem(path).filter(|_| !path.starts_with(assets::FOLDER)) {
            findings.add(unsafe_path(path, problem));
        }
    }
    for path in files.keys().filter(|path| scope.has(path)) {
        let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        for folder in folders.filter(|folder| files.contains_key(*folder)) {
            let message = format!("`{folder}` is a file, and `{path}` would be below it");
            let finding = Finding::error("PATH_IS_FOLDER", path, "", message).actual(path);
            findings.add(finding.expected("a path below folders").hint("rename one of them"));
        }
    }
    // Of a part, the names of all assets are known.
    let names: BTreeSet<&str> = files.keys().map(String::as_str).chain(package.asset_paths()).collect();
    for (first, second) in case_twins(names) {
        if scope.has(first) || scope.has(second) {
            findings.add(twins(first, second));
        }
    }
}

pub(crate) fn too_large(path: &str, bytes: usize) -> Finding {
    let message = format!("`{path}` has more than {FILE_BYTES_MAX} bytes");
    let is_binary = path.starts_with(assets::FOLDER) && !assets::is_text(path);
    let hint = if is_binary { "make it smaller, or keep it outside the package" } else { "split the file" };
    Finding::error("FILE_TOO_LARGE", path, "", message)
        .expected(format!("at most {FILE_BYTES_MAX} bytes"))
        .actual(format!("{bytes} bytes or more"))
        .hint(hint)
}

pub(crate) fn unsafe_path(path: &str, problem: &str) -> Finding {
    let shown = path.escape_debug().to_string();
    Finding::error("PATH_UNSAFE", path, "", format!("the path `{shown}` {problem}"))
        .expected("a path below the package, such as `steps/a.md`")
        .actual(shown)
        .hint("rename the file")
}

pub(crate) fn twins(first: &str, second: &str) -> Finding {
    // Two encodings of one letter look alike.
    let is_encoding = first.to_lowercase() != second.to_lowercase();
    let only = if is_encoding { "in how their accents are encoded" } else { "in case" };
    let message = format!("`{first}` and `{second}` differ only {only}, and are one file on some systems");
    Finding::warning("PATH_CASE_DUPLICATE", second, "", message)
        .expected(format!("paths that do not differ only {only}"))
        .actual(second)
        .hint("rename one of them")
}

fn check_schemas(package: &Package, schemas: &Schemas, scope: Scope<'_>, findings: &mut Findings) {
    if let Some(manifest) = package.manifest().filter(|_| scope.has(MANIFEST)) {
        findings.extend(not_yet(package, schemas.package.findings(MANIFEST, manifest)));
        if let Some(created) = manifest["createdAt"].as_str().filter(|created| !schemas.is_time(created)) {
            let message = format!("`createdAt` is `{}`, which is no time", quoted(created));
            let finding = Finding::warning("TIME_INVALID", MANIFEST, "/createdAt", message).actual(created);
            findings.add(finding.expected("a time of RFC 3339").hint("write it as 2026-01-31T09:30:00Z"));
        }
    }
    if let (Some(path), Some(agents)) = (package.agents_path().filter(|path| scope.has(path)), package.agents_json()) {
        findings.extend(not_yet(package, schemas.agents.findings(path, agents)));
    }
    let mut seen = BTreeSet::new();
    for workflow in package.workflows() {
        let mut is_new = |path| scope.has(path) && seen.insert(path);
        if let Some(front) = workflow.document.as_ref().filter(|_| is_new(workflow.path.as_str())) {
            findings.extend(schemas.workflow_front_matter.findings(&workflow.path, front.front()));
        }
        let value = workflow.graph.as_ref().filter(|_| is_new(workflow.graph_path.as_str()));
        if let Some(value) = value.filter(|_| !is_too_large(workflow)) {
            findings.extend(schemas.graph.findings(&workflow.graph_path, value));
        }
        for one in &workflow.steps {
            if let Some(front) = one.document.as_ref().filter(|_| is_new(one.path.as_str())) {
                findings.extend(schemas.step_front_matter.findings(&one.path, front.front()));
            }
        }
    }
}

/// While a package has no workflow yet, its missing entry and agents are warnings and not errors.
fn not_yet(package: &Package, findings: Vec<Finding>) -> Vec<Finding> {
    if !package.is_begun() {
        return findings;
    }
    let is_awaited = |finding: &Finding| match finding.code.as_str() {
        "SCHEMA_REQUIRED" => {
            finding.file == MANIFEST && matches!(&*finding.pointer, "/entry/workflow" | "/entry/graph")
        }
        "SCHEMA_MIN_ITEMS" => Some(finding.file.as_str()) == package.agents_path() && finding.pointer == "/agents",
        _ => false,
    };
    let soften =
        |finding| if is_awaited(&finding) { Finding { severity: Severity::Warning, ..finding } } else { finding };
    findings.into_iter().map(soften).collect()
}

/// A graph beyond the limits gets one finding, and no further look.
fn is_too_large(workflow: &Workflow) -> bool {
    let count = |list| workflow.graph.as_ref().and_then(|graph| graph.get(list)?.as_array()).map_or(0, Vec::len);
    count("nodes") > NODES_MAX || count("edges") > EDGES_MAX
}

/// One file for one node, also of another workflow; and none of them an asset.
fn check_shared(package: &Package, scope: Scope<'_>, findings: &mut Findings) {
    let mut owners: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut graphs = BTreeSet::new();
    for workflow in package.workflows().iter().filter(|workflow| graphs.insert(&workflow.graph_path)) {
        for node in &workflow.nodes {
            let Some(path) = node.path.as_deref() else { continue };
            let owner = *owners.entry(path).or_insert((&workflow.id, &node.id));
            let is_touched = scope.has(path) || scope.has(&workflow.graph_path);
            let pointer = || format!("/nodes/{}/file", node.index);
            if owner.0 != workflow.id && is_touched {
                let message = format!("`{path}` is the step of `{}` in the workflow `{}` already", owner.1, owner.0);
                let finding = Finding::error("STEP_FILE_SHARED", &workflow.graph_path, pointer(), message);
                findings.add(finding.expected("a file of its own for each node").actual(path).hint("copy the file"));
            }
            if path.starts_with(assets::FOLDER) && is_touched {
                let message = format!("the step file `{path}` is among the assets");
                let finding = Finding::error("PATH_TAKEN", &workflow.graph_path, pointer(), message);
                findings.add(finding.expected("a file outside `assets/`").actual(path).hint("move the file"));
            }
        }
    }
}

fn check_assets(package: &Package, scope: Scope<'_>, findings: &mut Findings) {
    for asset in package.assets().filter(|asset| scope.has(asset.path)) {
        if let Some(problem) = files::problem(asset.path) {
            let shown = asset.path.escape_debug();
            let message = format!("the path of the asset `{shown}` {problem}");
            let finding = Finding::error("ASSET_PATH", asset.path, "", message).actual(asset.path);
            findings.add(finding.expected("a path below `assets/`").hint("rename the asset, and what refers to it"));
        } else if asset.text.is_none() && assets::is_text(asset.path) {
            let message = format!("the asset `{}` is not UTF-8 text", asset.path);
            let finding = Finding::error("NOT_UTF8", asset.path, "", message).expected("UTF-8 text");
            findings.add(finding.hint("save the file as UTF-8, or give it the ending of what it is"));
        }
    }
}

/// Files that nothing in the package leads to. Those that people put beside any work are no surprise.
fn check_unused(package: &Package, findings: &mut Findings) {
    if package.manifest().is_none() {
        return;
    }
    // Where the manifest does not say where a workflow is, all of that one's files would be unused.
    let is_told = manifest::workflows_are_told(package) || package.is_begun();
    let mut used: BTreeSet<&str> = BTreeSet::from([MANIFEST]);
    used.extend(package.agents_path());
    let mut step_folders: BTreeMap<String, bool> = BTreeMap::new();
    for workflow in package.workflows() {
        used.extend([workflow.path.as_str(), workflow.graph_path.as_str()]);
        used.extend(workflow.nodes.iter().filter_map(|node| node.path.as_deref()));
        // A graph that cannot be read has its own finding; the steps that it could name are not looked for.
        *step_folders.entry(format!("{}steps/", workflow.folder())).or_insert(true) &= workflow.is_whole();
    }
    for path in package.files().keys().map(String::as_str) {
        let is_settings = path.split('/').any(|part| part.starts_with('.'));
        let is_usual = is_settings || ["README", "LICENSE", "CHANGELOG"].iter().any(|name| path.starts_with(name));
        if used.contains(path) || path.starts_with(assets::FOLDER) || is_usual || files::problem(path).is_some() {
            continue;
        }
        let step_folder = step_folders.get(files::folder_of(path)).filter(|_| path.ends_with(".md"));
        let mut is_missed = || is_what_is_missed(package, path, step_folder.is_some(), findings);
        if step_folder == Some(&false) || is_missed() || !is_told {
            continue;
        }
        let finding = if step_folder.is_some() {
            let message = format!("no node names the step file `{path}`");
            Finding::warning("ORPHAN_STEP_FILE", path, "", message).expected("a node whose `file` is this one")
        } else {
            Finding::warning("UNUSED_FILE", path, "", format!("nothing in the package uses `{path}`"))
                .expected("a file that the manifest or a graph names")
        };
        findings.add(finding.actual("none").hint("name it, or take it out"));
    }
}

/// Whether a file that nothing names is the one that a finding misses: then that finding says so, and there is no second one.
fn is_what_is_missed(package: &Package, path: &str, is_step: bool, findings: &mut Findings) -> bool {
    let ending = |path: &str| path.rsplit_once('.').map(|(_, ending)| ending.to_owned());
    let of_place = |pointer: &str| if pointer.ends_with("/workflow") { "md" } else { "json" }.to_owned();
    let path_ending = &ending(path).unwrap_or_default();
    let places: Vec<(&str, String)> = if is_step {
        let document = package.files().get(path).and_then(|bytes| Document::parse(path, bytes).ok());
        let of = document.as_ref().and_then(|document| document.field("nodeId"));
        let nodes =
            package.workflows().iter().flat_map(|workflow| workflow.nodes.iter().map(move |node| (workflow, node)));
        let own = nodes.filter(|(_, node)| Some(node.id.as_str()) == of);
        // The finding about a file that two nodes share stands at the later one of them.
        let sharing = own.flat_map(|(workflow, own)| {
            let nodes = workflow.nodes.iter().filter(|node| node.path == own.path);
            nodes.map(|node| (workflow.graph_path.as_str(), format!("/nodes/{}/file", node.index)))
        });
        sharing.collect()
    } else {
        let listed = package.workflows().iter().filter(|workflow| workflow.pointer != "/entry");
        let listed = listed.flat_map(|of| ["workflow", "graph"].map(|name| format!("{}/{name}", of.pointer)));
        let entry = ["/entry/agents", "/entry/workflow", "/entry/graph"].map(str::to_owned);
        entry.into_iter().chain(listed).map(|pointer| (MANIFEST, pointer)).collect()
    };
    let of_step = |package: &Package| {
        let document = Document::parse(path, package.files().get(path)?).ok()?;
        document.field("nodeId").filter(|_| is_step).map(str::to_owned)
    };
    let missing = findings.listed().iter_mut().find(|finding| {
        let codes = ["FILE_MISSING", "PATH_UNSAFE", "STEP_FILE_SHARED", "PATH_TAKEN", "SCHEMA_REQUIRED"];
        codes.contains(&finding.code.as_str())
            && places.iter().any(|(file, pointer)| finding.file == *file && finding.pointer == *pointer)
            && (!is_step || path.starts_with(files::folder_of(&finding.file)))
            && (is_step || ending(&finding.actual).unwrap_or_else(|| of_place(&finding.pointer)) == *path_ending)
    });
    match missing {
        Some(finding) => {
            // A graph names its files from its own folder on.
            let folder = if is_step { files::folder_of(&finding.file) } else { "" };
            let path = path.strip_prefix(folder).unwrap_or(path);
            finding.hint = match (finding.code.as_str(), of_step(package)) {
                ("STEP_FILE_SHARED", Some(node)) => {
                    format!("give the node `{node}` the file `{path}`, which nothing else names")
                }
                _ => format!("write `{path}`, which nothing else names, if that is meant; else add the file"),
            };
            true
        }
        None => false,
    }
}
