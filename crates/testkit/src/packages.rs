//! Workflow packages made up by chance, for whoever has to keep them.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolhost_builder::{Files, render};

/// A name as an id may be.
fn id() -> impl Strategy<Value = String> {
    "[A-Za-z0-9][A-Za-z0-9._:-]{0,12}"
}

/// Text as people write it, and as they do not.
pub fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~\n]{0,200}", "\\PC{0,60}"].prop_map(|text| text.replace("assets/", "assets "))
}

/// Something that front matter may carry beside what we know.
pub fn extra() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        words().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// A chain of nodes with a loop back where there is a decision, in one to three workflows.
pub fn package() -> impl Strategy<Value = Files> {
    let node = (any::<bool>(), words(), extra());
    let workflow = prop::collection::vec(node, 2..8);
    (prop::collection::vec(workflow, 1..4), prop::collection::btree_set(id(), 8), "[0-9]{1,3}", any::<bool>()).prop_map(
        |(workflows, ids, number, windows)| {
            let ids: Vec<String> = ids.into_iter().collect();
            let mut files = Files::new();
            let mut listed = Vec::new();
            for (index, nodes) in workflows.iter().enumerate() {
                let folder = format!("workflows/w{index}/");
                add_workflow(&mut files, &folder, nodes, &ids, windows);
                listed.push(json!({ "id": format!("w{index}"), "workflow": format!("{folder}workflow.md"), "graph": format!("{folder}workflow.graph.json") }));
            }
            let manifest = json!({
                "schemaVersion": "1.1", "name": "made up", "version": format!("1.0.{}", number.parse::<u32>().unwrap()),
                "entry": { "workflow": listed[0]["workflow"], "graph": listed[0]["graph"], "agents": "agents.json" },
                "workflows": listed,
            });
            files.insert("bmad.json".to_owned(), serde_json::to_vec_pretty(&manifest).unwrap());
            files.insert("agents.json".to_owned(), serde_json::to_vec(&agents()).unwrap());
            files.insert("assets/guide.md".to_owned(), b"x".to_vec());
            files
        },
    )
}

fn add_workflow(files: &mut Files, folder: &str, nodes: &[(bool, String, Value)], ids: &[String], windows: bool) {
    let last = nodes.len() - 1;
    let (mut list, mut edges) = (Vec::new(), Vec::new());
    for (index, (decides, body, extra)) in nodes.iter().enumerate() {
        let kind = match (index, decides) {
            (at, _) if at == last => "end",
            (0, _) | (_, false) => "step",
            _ => "decision",
        };
        list.push(json!({ "id": ids[index], "type": kind, "file": format!("steps/{index}.md"), "agentId": "ada" }));
        if index < last {
            edges.push(json!({ "from": ids[index], "to": ids[index + 1], "label": "on", "isDefault": true }));
        }
        if kind == "decision" && index > 1 {
            edges.push(json!({ "from": ids[index], "to": ids[index - 1], "label": "back" }));
        }
        let front = json!({ "schemaVersion": "1.1.0", "nodeId": ids[index], "type": kind, "extra": extra });
        let sections = "\n## Goal\n\nDo it.\n\n## Instructions\n\nDo it.\n\n## Completion (Document-as-State)\n\n";
        let mut text = render(front.as_object().unwrap(), &format!("{sections}{body}"));
        if windows {
            text = text.replace('\n', "\r\n");
        }
        files.insert(format!("{folder}steps/{index}.md"), text.into_bytes());
    }
    let graph = json!({ "schemaVersion": "1.1", "entryNodeId": ids[0], "nodes": list, "edges": edges });
    files.insert(format!("{folder}workflow.graph.json"), serde_json::to_vec(&graph).unwrap());
    let front = json!({ "schemaVersion": "1.1", "workflowType": "w", "stepsCompleted": [], "currentNodeId": "", "variables": nodes[0].2 });
    let mut front = front.as_object().unwrap().clone();
    if !front["variables"].is_object() {
        front.remove("variables");
    }
    files.insert(format!("{folder}workflow.md"), render(&front, "\nText\n").into_bytes());
}

fn agents() -> Value {
    json!({
        "schemaVersion": "1.1",
        "agents": [{
            "id": "ada",
            "metadata": { "name": "Ada", "title": "Writer", "icon": "A" },
            "persona": { "role": "writes", "identity": "a writer", "communication_style": "short", "principles": ["true"] },
            "systemPrompt": "Follow assets/guide.md.",
        }],
    })
}
