//! A package that was just begun.

use serde_json::json;
use toolhost_builder::{Package, Severity, begun, validate};

use crate::small;

#[test]
fn what_a_begun_package_has_not_got_yet_is_a_warning() {
    let package = begun("mill", Some("grain milling"), "2026-11-22T00:00:00Z");
    assert_eq!(package.name(), Some("mill"));
    let found: Vec<_> = validate(&package).into_iter().map(|f| (f.severity, f.file, f.pointer)).collect();
    let warned = [("bmad.json", "/entry/workflow"), ("bmad.json", "/entry/graph"), ("agents.json", "/agents")];
    let warned = warned.map(|(file, at)| (Severity::Warning, file.to_owned(), at.to_owned()));
    assert_eq!(found, warned);
}

#[test]
fn a_package_with_a_workflow_lacks_neither_entry_nor_agents() {
    let errors = |edit: &dyn Fn(&mut serde_json::Value), file: &str| {
        let mut files = small::files();
        small::edit(&mut files, file, edit);
        let found = validate(&Package::read(files));
        found.into_iter().filter(|f| f.severity == Severity::Error).map(|f| f.pointer).collect::<Vec<_>>()
    };
    let listed = json!([{ "id": "main", "workflow": "workflow.md", "graph": "workflow.graph.json" }]);
    let without_entry = errors(
        &|manifest| {
            manifest["entry"] = json!({ "agents": "agents.json" });
            manifest["workflows"] = listed.clone();
        },
        "bmad.json",
    );
    assert_eq!(without_entry, ["/entry/workflow", "/entry/graph"]);
    assert!(errors(&|agents| agents["agents"] = json!([]), "agents.json").contains(&"/agents".to_owned()));
}
