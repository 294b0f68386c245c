//! One mistake has one finding: what follows from it is counted there, and not told again.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::{file_name_of, folder_of};
use crate::finding::Finding;
use crate::package::Package;

/// Folds what follows from a folder that has another name, from assets that are all gone, and from a node whose id was changed
/// in one place only.
pub(super) fn fold(package: &Package, findings: &mut Vec<Finding>) {
    fold_folders(package, findings);
    fold_assets(package, findings);
    fold_nodes(package, findings);
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
        keep_first(findings, &is_of, &of_other, "files of this folder are", &hint);
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
    let hint = "bring the folder `assets/` back, or take out what mentions it";
    keep_first(findings, &is_one, &is_asset, "mentions of assets are", hint);
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
            finding.message.push_str(&format!("; {} other {what} not there either", count - 1));
            hint.clone_into(&mut finding.hint);
        }
        is_kept || !(is_one(finding) || follows(finding))
    });
}
