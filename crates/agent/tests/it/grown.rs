//! Packages of any size whose every text has a word in it, by which it is found wherever it comes to stand.

use serde_json::{Value, json};
use toolhost_builder::{Files, Package, render};

/// What a package is to have.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) steps: usize,
    pub(crate) agents: usize,
    pub(crate) assets: usize,
}

/// A package of one workflow, a chain of steps with a loop every tenth step. Each text that an author writes begins with
/// `word`: names, ids, descriptions, variables, front matter, bodies, agents, paths and contents of assets.
pub(crate) fn package(word: &str, size: Size) -> Package {
    let mut files = Files::new();
    let flow = format!("{word}-flow");
    let manifest = json!({
        "schemaVersion": "1.1", "name": format!("{word}-package"), "version": "1.0.0",
        "description": format!("{word} claims handling for an insurer"), "author": format!("{word} author"),
        "entry": { "workflow": "workflow.md", "graph": "workflow.graph.json", "agents": "agents.json" },
        "workflows": [{
            "id": flow, "workflow": "workflow.md", "graph": "workflow.graph.json",
            "displayName": format!("{word} name"), "description": format!("{word} described"), "tags": [format!("{word} tag")],
        }],
    });
    put(&mut files, "bmad.json", &manifest);
    let variables: Value = (0..4).map(|n| (format!("{word}_seed_{n}"), json!(format!("{word} value {n}")))).collect();
    let front = json!({
        "schemaVersion": "1.1", "workflowType": format!("{word}-type"), "stepsCompleted": [], "currentNodeId": "",
        "variables": variables,
        "domain_profile": {
            "industry_domain": format!("{word} claims handling"), "target_users": [format!("{word} clerks")],
            "core_pain_points": [format!("{word} late reports")], "expected_outcomes": [format!("{word} a report in time")],
            "quality_style": [format!("{word} exact figures")],
        },
    });
    let body = format!("\n# {word} title\n\n{word} text of the workflow.\n");
    files.insert("workflow.md".to_owned(), render(front.as_object().unwrap(), &body).into_bytes());
    let agents: Vec<Value> = (0..size.agents).map(|n| agent(word, n)).collect();
    put(&mut files, "agents.json", &json!({ "schemaVersion": "1.1", "agents": agents }));
    for n in 0..size.assets {
        let text = format!("# {word} asset {n}\n\n{}", format!("{word} line of the asset.\n").repeat(20));
        files.insert(asset(word, n), text.into_bytes());
    }
    graph(word, size, &mut files);
    Package::read(files)
}

/// The ids of the targets of such a package.
pub(crate) fn targets(word: &str, size: Size) -> [String; 4] {
    [format!("{word}-flow"), id(word, size.steps / 2), format!("{word}-agent-0"), asset(word, 0)]
}

fn id(word: &str, n: usize) -> String {
    format!("{word}-step-{n:03}")
}

fn asset(word: &str, n: usize) -> String {
    format!("assets/{word}-{n}.md")
}

fn put(files: &mut Files, path: &str, value: &Value) {
    files.insert(path.to_owned(), serde_json::to_vec(value).unwrap());
}

fn agent(word: &str, n: usize) -> Value {
    json!({
        "id": format!("{word}-agent-{n}"),
        "metadata": { "name": format!("{word} name {n}"), "title": format!("{word} title {n}"), "icon": word },
        "persona": {
            "role": format!("{word} role {n}"), "identity": format!("{word} identity {n}"),
            "communication_style": format!("{word} style {n}"), "principles": [format!("{word} principle {n}")],
        },
    })
}

fn graph(word: &str, size: Size, files: &mut Files) {
    let last = size.steps - 1;
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for n in 0..size.steps {
        let kind = match n {
            n if n == last => "end",
            n if n % 10 == 9 => "decision",
            _ => "step",
        };
        let mut ways = Vec::new();
        if n < last {
            ways.push(json!({ "to": id(word, n + 1), "label": format!("{word} on {n}"), "isDefault": true }));
        }
        if kind == "decision" {
            let condition = format!("{word} something is missing");
            ways.push(
                json!({ "to": id(word, n - 5), "label": format!("{word} back {n}"), "conditionText": condition }),
            );
        }
        let said = json!({
            "title": format!("{word} step {n}"), "agentId": format!("{word}-agent-{}", n % size.agents),
            "inputs": [variable(word, n)], "outputs": [variable(word, n + 1)],
        });
        let mut node = json!({ "id": id(word, n), "type": kind, "file": format!("steps/{}.md", id(word, n)) });
        let mut front = json!({ "schemaVersion": "1.1", "nodeId": id(word, n), "type": kind });
        for (name, value) in said.as_object().unwrap() {
            node[name] = value.clone();
            front[name] = value.clone();
        }
        front["transitions"] = json!(ways);
        for (at, way) in ways.iter().enumerate() {
            let mut edge = way.clone();
            edge["id"] = json!(format!("{word}-e{n}-{at}"));
            edge["from"] = json!(id(word, n));
            edges.push(edge);
        }
        nodes.push(node);
        let body = format!(
            "\n## Goal\n\n{word} result {n}.\n\n## Instructions\n\n1. {word} as {} says.\n\n\
             ## Completion (Document-as-State)\n\n{word} done {n}.\n",
            asset(word, n % size.assets)
        );
        files.insert(format!("steps/{}.md", id(word, n)), render(front.as_object().unwrap(), &body).into_bytes());
    }
    let graph = json!({ "schemaVersion": "1.1", "entryNodeId": id(word, 0), "nodes": nodes, "edges": edges });
    put(files, "workflow.graph.json", &graph);
}

fn variable(word: &str, n: usize) -> String {
    if n == 0 { format!("{word}_seed_0") } else { format!("{word}_var_{n}") }
}
