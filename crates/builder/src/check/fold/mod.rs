//! One mistake has one finding: what follows from it is counted there, and not told again.

mod follow;
mod said;

use std::collections::{BTreeMap, BTreeSet};

use crate::assets;
use crate::document::Document;
use crate::files::{file_name_of, folder_of};
use crate::finding::{Finding, place};
use crate::package::{MANIFEST, Package, Workflow};

/// Places that a finding names besides its own.
const PLACES_NAMED_MAX: usize = 3;

/// Folds what follows from names that a program for Windows has written, from a folder that has another name, from assets that
/// are all gone, from a workflow that is told in two ways, from a node or an edge that is gone, from a node whose id was
/// changed in one place only, from whatever is named in several places and is not there, and from what [`said`] and [`follow`] have.
pub(super) fn fold(package: &Package, findings: &mut Vec<Finding>) {
    fold_backslashes(package, findings);
    fold_folders(package, findings);
    fold_assets(package, findings);
    fold_entry(package, findings);
    said::fold_shared(package, findings);
    said::fold_misnamed(package, findings);
    said::fold_unnamed(package, findings);
    follow::fold_missed_fields(findings);
    follow::fold_variables(package, findings);
    follow::fold_inputs(findings);
    fold_nodes(package, findings);
    for workflow in package.workflows() {
        said::fold_node_ids(workflow, findings);
        said::fold_defaults(workflow, findings);
        said::fold_doubled_edges(workflow, findings);
        said::fold_loops(workflow, findings);
        follow::fold_unread(workflow, findings);
        fold_missing_nodes(package, workflow, findings);
        fold_dead_ends(workflow, findings);
        fold_order(workflow, findings);
    }
    fold_same(findings);
}

/// A type that is none, in a node and in its step: who changes one of them through a set changes both.
pub(super) fn fold_types(package: &Package, findings: &mut Vec<Finding>) {
    let is_type = |finding: &Finding| finding.code == "SCHEMA_ENUM" && finding.pointer.ends_with("/type");
    let nodes = package.workflows().iter().flat_map(|workflow| workflow.nodes.iter().map(move |node| (workflow, node)));
    let wrong: BTreeMap<(&str, String), &str> = nodes
        .filter(|(_, node)| node.kind.is_none())
        .filter_map(|(workflow, node)| {
            Some(((workflow.graph_path.as_str(), format!("/nodes/{}/type", node.index)), node.path.as_deref()?))
        })
        .collect();
    let mut told: BTreeSet<(String, String)> = BTreeSet::new();
    for finding in findings.iter_mut().filter(|finding| is_type(finding)) {
        let Some(step) = wrong.get(&(finding.file.as_str(), finding.pointer.clone())) else { continue };
        told.insert(((*step).to_owned(), finding.actual.clone()));
    }
    findings.retain(|finding| {
        !(is_type(finding)
            && finding.pointer == "/type"
            && told.contains(&(finding.file.clone(), finding.actual.clone())))
    });
}

/// Names of files with a backslash where other systems have a slash.
fn fold_backslashes(package: &Package, findings: &mut Vec<Finding>) {
    let is_one = |finding: &Finding| {
        ["PATH_UNSAFE", "ASSET_PATH"].contains(&&*finding.code)
            && finding.file.contains('\\')
            && package.files().contains_key(&finding.file)
    };
    let meant: BTreeSet<String> = package.files().keys().map(|path| path.replace('\\', "/")).collect();
    let follows = |finding: &Finding| {
        let codes = ["FILE_MISSING", "ASSET_NOT_FOUND", "VARIABLE_NEVER_SET", "VARIABLE_READ_BEFORE_SET"];
        codes.contains(&&*finding.code) && (meant.contains(&finding.actual) || finding.code.starts_with("VARIABLE_"))
    };
    let hint =
        "write `/` between folders in all of them: the program that made the archive wrote names as Windows has them";
    keep_first(findings, &is_one, &follows, "names of files have one, too", hint);
}

/// The entry and a workflow of the list have one file in common, and the other one is not there, or has no path, in one of the
/// two places: what the other place says was meant.
fn fold_entry(package: &Package, findings: &mut Vec<Finding>) {
    let shared = |finding: &Finding| finding.code == "WORKFLOW_FILE_SHARED" && finding.pointer.starts_with("/entry/");
    let told = findings.iter().find(|finding| shared(finding));
    let Some((name, said)) =
        told.and_then(|told| Some((told.pointer.rsplit_once('/')?.1.to_owned(), told.actual.clone())))
    else {
        return;
    };
    let text = |place: &str, name: &str| package.manifest()?.pointer(&format!("{place}/{name}"))?.as_str();
    let other = if name == "graph" { "workflow" } else { "graph" };
    let mut listed = package.workflows().iter().map(|workflow| workflow.pointer.as_str());
    let Some(owner) = listed.find(|place| *place != "/entry" && text(place, other) == text("/entry", other)) else {
        return;
    };
    let meant = [("/entry", owner, text(owner, &name).map(str::to_owned)), (owner, "/entry", Some(said))];
    for (wrong, right, meant) in meant {
        let is_missing = |finding: &Finding| {
            ["FILE_MISSING", "PATH_UNSAFE"].contains(&&*finding.code)
                && finding.file == MANIFEST
                && finding.pointer == format!("{wrong}/{name}")
        };
        let meant = meant.filter(|path| package.files().contains_key(path));
        if let (Some(meant), Some(missing)) = (meant, findings.iter_mut().find(|finding| is_missing(finding))) {
            missing.hint = format!("write `{meant}`, as `{right}` of the manifest says");
            findings.retain(|finding| !shared(finding));
            return;
        }
    }
    // Steps were read beside the document of another workflow, which has other variables.
    if let Some(mixed) = package.workflows().iter().find(|workflow| workflow.pointer == "/entry") {
        findings.retain(|finding| {
            let of_step = mixed.steps.iter().any(|step| step.path == finding.file);
            !(finding.code.starts_with("VARIABLE_") && of_step)
        });
    }
}

/// A node that edges name and that is gone: its step file is left, and what its step sets.
fn fold_missing_nodes(package: &Package, workflow: &Workflow, findings: &mut Vec<Finding>) {
    let is_missing = |finding: &Finding| finding.code == "EDGE_NODE_MISSING" && finding.file == workflow.graph_path;
    let gone: BTreeSet<String> =
        findings.iter().filter(|f| is_missing(f)).map(|finding| finding.actual.clone()).collect();
    if gone.is_empty() {
        return;
    }
    let left: Vec<(String, Document)> = findings
        .iter()
        .filter(|finding| finding.code == "ORPHAN_STEP_FILE" && finding.file.starts_with(workflow.folder()))
        .filter_map(|finding| {
            let bytes = package.files().get(&finding.file)?;
            Some((finding.file.clone(), Document::parse(&finding.file, bytes).ok()?))
        })
        .collect();
    for (file, document) in left {
        let Some(node) = document.field("nodeId").filter(|node| gone.contains(*node)) else { continue };
        let sets: BTreeSet<&str> = ["outputs", "setsVariables"]
            .iter()
            .filter_map(|name| document.front().get(*name)?.as_array())
            .flatten()
            .filter_map(|name| name.as_str())
            .collect();
        let follows = |finding: &Finding| {
            let is_left = finding.code == "ORPHAN_STEP_FILE" && finding.file == file;
            let is_set = finding.code == "VARIABLE_NEVER_SET" && sets.contains(finding.actual.as_str());
            is_left || is_set
        };
        findings.retain(|finding| !follows(finding));
        for finding in findings.iter_mut().filter(|finding| is_missing(finding) && finding.actual == node) {
            let file = file.strip_prefix(workflow.folder()).unwrap_or(&file);
            finding.hint = format!("add the node `{node}` with its step `{file}`, which is there, or change the edges");
        }
    }
}

/// A node that no edge leads on from, though its step says where to.
fn fold_dead_ends(workflow: &Workflow, findings: &mut Vec<Finding>) {
    let is_dead = |finding: &Finding| finding.code == "DEAD_END" && finding.file == workflow.graph_path;
    let pointers: Vec<String> = findings.iter().filter(|f| is_dead(f)).map(|finding| finding.pointer.clone()).collect();
    for pointer in pointers {
        let index = pointer.strip_prefix("/nodes/").and_then(|index| index.parse::<usize>().ok());
        let node = workflow.nodes.iter().find(|node| Some(node.index) == index);
        let Some(path) = node.and_then(|node| node.path.as_ref()) else { continue };
        let follows = |finding: &Finding| finding.code == "TRANSITION_WITHOUT_EDGE" && finding.file == *path;
        let said: Vec<String> = findings.iter().filter(|f| follows(f)).map(|finding| finding.actual.clone()).collect();
        let Some(first) = said.first() else { continue };
        findings.retain(|finding| !follows(finding));
        if let Some(finding) = findings.iter_mut().find(|finding| is_dead(finding) && finding.pointer == pointer) {
            finding.hint = format!("add the edge to `{first}`, where its step leads, or make it an `end`");
        }
    }
}

/// What is set before what can only be told where all nodes are reached and lead on.
fn fold_order(workflow: &Workflow, findings: &mut Vec<Finding>) {
    let codes = ["EDGE_NODE_MISSING", "DEAD_END", "NODE_UNREACHABLE", "ENTRY_NODE_MISSING", "STEP_FILE_SHARED"];
    let is_cause = |finding: &Finding| codes.contains(&&*finding.code) && finding.file == workflow.graph_path;
    let follows = |finding: &Finding| {
        let is_own = finding.file == workflow.graph_path || workflow.steps.iter().any(|step| step.path == finding.file);
        finding.code == "VARIABLE_READ_BEFORE_SET" && is_own
    };
    if !findings.iter().any(&follows) {
        return;
    }
    if let Some(cause) = findings.iter_mut().find(|finding| is_cause(finding)) {
        cause.message.push_str("; so steps read what is not set yet");
        findings.retain(|finding| !follows(finding));
    }
}

/// What is not there and named in several places.
fn fold_same(findings: &mut Vec<Finding>) {
    let codes = [
        "AGENT_NOT_FOUND",
        "WORKFLOW_NOT_FOUND",
        "EDGE_NODE_MISSING",
        "FILE_MISSING",
        "ASSET_NOT_FOUND",
        "STATE_NODE_MISSING",
        "VARIABLE_NEVER_SET",
    ];
    let is_one = |finding: &Finding| codes.contains(&&*finding.code) && !finding.actual.is_empty();
    // Nodes of one name may be those of several workflows.
    let key = |finding: &Finding| {
        let is_node = finding.code.contains("_NODE_");
        (finding.code.clone(), finding.actual.clone(), is_node.then(|| finding.file.clone()))
    };
    let mut same: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, finding) in findings.iter().enumerate().filter(|(_, finding)| is_one(finding)) {
        same.entry(key(finding)).or_default().push(index);
    }
    let mut folded: BTreeSet<usize> = BTreeSet::new();
    for mut places in same.into_values().filter(|places| places.len() > 1) {
        // An error before warnings.
        places.sort_by_key(|index| (!findings[*index].is_error(), *index));
        let (first, others) = (places[0], &places[1..]);
        let told = |index: &usize| {
            let Finding { file, pointer, line, .. } = &findings[*index];
            format!("`{}`", place(file, pointer, *line, None))
        };
        let named: Vec<String> = others.iter().take(PLACES_NAMED_MAX).map(told).collect();
        let more = others.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let verb = if others.len() == 1 { "names" } else { "name" };
        findings[first].message.push_str(&format!("; {}{more} {verb} it, too", named.join(", ")));
        folded.extend(others);
    }
    let mut index = 0;
    findings.retain(|_| {
        index += 1;
        !folded.contains(&(index - 1))
    });
}

/// Step files that are missing in one folder, and that another folder has, all of them under the same names: that folder was
/// renamed.
fn fold_folders(package: &Package, findings: &mut Vec<Finding>) {
    let mut missing: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for (graph, path) in findings.iter().filter_map(|finding| missing_step(package, finding)) {
        missing.entry((graph, folder_of(&path).to_owned())).or_default().insert(file_name_of(&path).to_owned());
    }
    for ((graph, folder), names) in missing.into_iter().filter(|(_, names)| names.len() > 1) {
        let folders: BTreeSet<&str> = package.files().keys().map(|path| folder_of(path)).collect();
        let has_all = |other: &&str| {
            **other != folder && names.iter().all(|name| package.files().contains_key(&format!("{other}{name}")))
        };
        let Some(other) = folders.into_iter().find(has_all) else { continue };
        let is_of = |finding: &Finding| {
            missing_step(package, finding).is_some_and(|(of, path)| of == graph && folder_of(&path) == folder)
        };
        let of_other = |finding: &Finding| {
            let (is_unused, path) = (["UNUSED_FILE", "ORPHAN_STEP_FILE"].contains(&&*finding.code), &finding.file);
            is_unused && folder_of(path) == other && names.contains(file_name_of(path))
        };
        let hint = format!("call the folder `{other}` `{folder}`, or name its files in the graph");
        keep_first(findings, &is_of, &of_other, "files of this folder are not there either", &hint);
    }
}

/// The graph that names a step file which is not there, and that file's path.
fn missing_step(package: &Package, finding: &Finding) -> Option<(String, String)> {
    let workflow = package.workflows().iter().find(|workflow| workflow.graph_path == finding.file)?;
    let is_file = finding.code == "FILE_MISSING" && finding.pointer.starts_with("/nodes/");
    is_file.then(|| (finding.file.clone(), finding.actual.clone())).filter(|_| !workflow.nodes.is_empty())
}

/// Several assets that are mentioned where the package has none.
fn fold_assets(package: &Package, findings: &mut Vec<Finding>) {
    if package.asset_paths().next().is_some() {
        return;
    }
    let is_asset = |finding: &Finding| finding.code == "ASSET_NOT_FOUND";
    let names: BTreeSet<&str> =
        findings.iter().filter(|f| is_asset(f)).map(|finding| finding.actual.as_str()).collect();
    if names.len() < 2 {
        return;
    }
    // Examples are only warned of: they follow, where there is an error.
    let has_errors = findings.iter().any(|finding| is_asset(finding) && finding.is_error());
    let is_one = |finding: &Finding| is_asset(finding) && finding.is_error() == has_errors;
    // A folder that nothing uses and that has all of them is theirs under another name.
    let has_all = |folder: &&str| {
        names.iter().all(|name| {
            let path = format!("{folder}{}", name.strip_prefix(assets::FOLDER).unwrap_or(name));
            findings.iter().any(|finding| finding.code == "UNUSED_FILE" && finding.file == path)
        })
    };
    let tops: BTreeSet<&str> = package.files().keys().filter_map(|path| Some(&path[..=path.find('/')?])).collect();
    let other = tops.into_iter().find(has_all).map(str::to_owned);
    let follows = |finding: &Finding| {
        let is_other = |folder: &String| finding.code == "UNUSED_FILE" && finding.file.starts_with(folder.as_str());
        is_asset(finding) || other.as_ref().is_some_and(is_other)
    };
    let hint = match &other {
        Some(other) => format!("call the folder `{other}` `{}`, as it is named", assets::FOLDER),
        None => "bring the folder `assets/` back, or take out what mentions it".to_owned(),
    };
    keep_first(findings, &is_one, &follows, "mentions of assets are not there either", &hint);
}

/// A node whose step still has the id that edges, the entry and other steps name.
fn fold_nodes(package: &Package, findings: &mut Vec<Finding>) {
    let mistaken: Vec<(String, String)> = findings
        .iter()
        .filter(|finding| finding.code == "STEP_NODE_MISMATCH")
        .map(|finding| (finding.file.clone(), finding.actual.clone()))
        .collect();
    for (file, former) in mistaken {
        let Some(workflow) =
            package.workflows().iter().find(|workflow| workflow.steps.iter().any(|step| step.path == file))
        else {
            continue;
        };
        if workflow.node(&former).is_some() {
            continue;
        }
        let own = |finding: &Finding| {
            [&workflow.graph_path, &workflow.path].contains(&&finding.file)
                || workflow.steps.iter().any(|step| step.path == finding.file)
        };
        let codes = ["EDGE_NODE_MISSING", "ENTRY_NODE_MISSING", "STATE_NODE_MISSING"];
        let follows = |finding: &Finding| own(finding) && codes.contains(&&*finding.code) && finding.actual == former;
        let count = findings.iter().filter(|finding| follows(finding)).count();
        if count == 0 {
            continue;
        }
        findings.retain(|finding| !follows(finding));
        let places = if count == 1 { "one other place names".to_owned() } else { format!("{count} other places name") };
        let told = |finding: &&mut Finding| finding.code == "STEP_NODE_MISMATCH" && finding.file == file;
        if let Some(finding) = findings.iter_mut().find(told) {
            finding.message.push_str(&format!("; {places} `{former}`, too"));
            finding.hint = format!("write `{former}` in the graph, or the other name everywhere");
        }
    }
}

/// Keeps the first of some findings, which says how many there are, and none of those that follow from them.
fn keep_first(
    findings: &mut Vec<Finding>,
    is_one: &dyn Fn(&Finding) -> bool,
    follows: &dyn Fn(&Finding) -> bool,
    what: &str,
    hint: &str,
) {
    let count = findings.iter().filter(|finding| is_one(finding)).count();
    if count < 2 {
        return;
    }
    let mut is_first = true;
    findings.retain_mut(|finding| {
        let is_kept = is_first && is_one(finding);
        if is_kept {
            is_first = false;
            finding.message.push_str(&format!("; {} other {what}", count - 1));
            hint.clone_into(&mut finding.hint);
        }
        is_kept || !(is_one(finding) || follows(finding))
    });
}
