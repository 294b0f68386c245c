//! Packages at their limits.

use std::fmt::Write;

use serde_json::{Value, json};
use toolhost_builder::limits::{FILES_MAX, NODES_MAX};
use toolhost_builder::refs::{Index, Locator, Object};
use toolhost_builder::{Files, Package, validate};

use crate::small::{edit, files, findings, places, step};

fn chain(nodes: usize) -> Files {
    let mut files = files();
    files.retain(|path, _| !path.starts_with("steps/"));
    let id = |number: usize| format!("n{number}");
    let kind = |number: usize| if number + 1 == nodes { "end" } else { "step" };
    for number in 0..nodes {
        files.insert(format!("steps/{}.md", id(number)), step(&id(number), kind(number), ""));
    }
    let list: Vec<Value> =
        (0..nodes).map(|n| json!({ "id": id(n), "type": kind(n), "file": format!("steps/{}.md", id(n)) })).collect();
    let edges: Vec<Value> = (1..nodes).map(|n| json!({ "from": id(n - 1), "to": id(n), "label": "on" })).collect();
    edit(&mut files, "workflow.graph.json", |v| {
        *v = json!({ "schemaVersion": "1.1", "entryNodeId": "n0", "nodes": list, "edges": edges });
    });
    edit(&mut files, "bmad.json", |_| {});
    let text = String::from_utf8(files["workflow.md"].clone()).unwrap();
    let text = text.replace("[begin]", "[]").replace("currentNodeId: work", "currentNodeId: n0");
    files.insert("workflow.md".to_owned(), text.into_bytes());
    files
}

#[test]
fn ten_thousand_nodes_are_checked_and_one_more_is_refused() {
    assert_eq!(findings(chain(NODES_MAX)), []);
    let found = findings(chain(NODES_MAX + 1));
    assert_eq!(places(&found), [("GRAPH_TOO_LARGE", "workflow.graph.json", "")]);
}

#[test]
fn a_loop_of_ten_thousand_nodes_is_found() {
    let mut files = chain(NODES_MAX);
    edit(&mut files, "workflow.graph.json", |v| {
        let back = json!({ "from": format!("n{}", NODES_MAX - 2), "to": "n0", "label": "again", "isDefault": true });
        v["edges"].as_array_mut().unwrap().push(back);
    });
    let found = findings(files);
    assert_eq!(places(&found), [("CYCLE_MISSING_DECISION", "workflow.graph.json", "/nodes/0"),]);
}

#[test]
fn files_are_counted() {
    let mut many = files();
    for number in 0..FILES_MAX {
        many.insert(format!("assets/{number}.md"), Vec::new());
    }
    assert_eq!(places(&findings(many)), [("TOO_MANY_FILES", "", "")]);
}

/// Many workflows of fifty steps.
pub(crate) fn many_workflows(workflows: usize) -> Files {
    let one = chain(50);
    let mut files = files();
    files.retain(|path, _| !path.starts_with("steps/") && !path.starts_with("workflow."));
    let mut listed = String::new();
    for number in 0..workflows {
        for (path, bytes) in &one {
            if path.starts_with("steps/") || path.starts_with("workflow.") {
                files.insert(format!("w/{number}/{path}"), bytes.clone());
            }
        }
        write!(listed, ",{{\"id\":\"w{number}\",\"workflow\":\"w/{number}/workflow.md\",\"graph\":\"w/{number}/workflow.graph.json\"}}")
            .unwrap();
    }
    let listed: Value = serde_json::from_str(&format!("[{}]", &listed[1..])).unwrap();
    edit(&mut files, "bmad.json", |v| {
        v["entry"]["workflow"] = listed[0]["workflow"].clone();
        v["entry"]["graph"] = listed[0]["graph"].clone();
        v["workflows"] = listed;
    });
    files
}

#[test]
fn an_index_of_many_workflows_answers_at_once() {
    let package = Package::read(many_workflows(200));
    assert_eq!(validate(&package), []);
    let index = Index::of(&package);
    assert_eq!(index.find(&Locator::Id("n7".to_owned())).objects.len(), 200);
    for workflow in 0..200 {
        let step = Object::Step { workflow: format!("w{workflow}"), node: "n7".to_owned() };
        let refs = index.find(&Locator::Object(step));
        assert_eq!((refs.inbound.len(), refs.outbound.len()), (1, 2));
    }
}
