//! A valid small package, to be broken one thing at a time.

use serde_json::{Value, json};
use toolhost_builder::{Files, Finding, Package, validate};

/// A step file.
pub(crate) fn step(node: &str, kind: &str, more: &str) -> Vec<u8> {
    format!(
        "---\nschemaVersion: \"1.1\"\nnodeId: {node}\ntype: {kind}\n{more}---\n\n## Goal\n\nSay it.\n\n## Instructions\n\n\
         1. See assets/guide.md.\n\n## Completion (Document-as-State)\n\nIt is said.\n"
    )
    .into_bytes()
}

/// Begin, choose, go back or end.
pub(crate) fn graph() -> Value {
    json!({
        "schemaVersion": "1.1",
        "entryNodeId": "begin",
        "nodes": [
            { "id": "begin", "type": "step", "file": "steps/begin.md", "agentId": "ada", "outputs": ["text"] },
            { "id": "work", "type": "step", "file": "steps/work.md" },
            { "id": "choose", "type": "decision", "file": "steps/choose.md" },
            { "id": "end", "type": "end", "file": "steps/end.md" },
        ],
        "edges": [
            { "id": "e1", "from": "begin", "to": "work", "label": "go" },
            { "id": "e2", "from": "work", "to": "choose", "label": "done" },
            { "id": "e3", "from": "choose", "to": "end", "label": "good", "isDefault": true },
            { "id": "e4", "from": "choose", "to": "work", "label": "again" },
        ],
    })
}

pub(crate) fn manifest() -> Value {
    json!({
        "schemaVersion": "1.1", "name": "small", "version": "1.0.0",
        "entry": { "workflow": "workflow.md", "graph": "workflow.graph.json", "agents": "agents.json" },
    })
}

pub(crate) fn agents() -> Value {
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

pub(crate) const WORKFLOW: &str = "---\nschemaVersion: \"1.1\"\nworkflowType: small\nstepsCompleted: [begin]\n\
    currentNodeId: work\nvariables:\n  topic: tea\nextra: kept\n---\n\n# Small\n\nSee assets/guide.md.\n";

pub(crate) fn files() -> Files {
    let json = |value: &Value| serde_json::to_vec_pretty(value).unwrap();
    Files::from([
        ("bmad.json".to_owned(), json(&manifest())),
        ("workflow.md".to_owned(), WORKFLOW.as_bytes().to_vec()),
        ("workflow.graph.json".to_owned(), json(&graph())),
        ("agents.json".to_owned(), json(&agents())),
        (
            "steps/begin.md".to_owned(),
            step("begin", "step", "agentId: ada\ninputs: [topic]\ntransitions:\n  - to: work\n    label: go\n"),
        ),
        ("steps/work.md".to_owned(), step("work", "step", "inputs: [text]\nsetsVariables: [result]\n")),
        ("steps/choose.md".to_owned(), step("choose", "decision", "")),
        ("steps/end.md".to_owned(), step("end", "end", "")),
        ("assets/guide.md".to_owned(), b"# Guide\n".to_vec()),
    ])
}

/// Changes the JSON of one file.
pub(crate) fn edit(files: &mut Files, path: &str, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&files[path]).unwrap();
    change(&mut value);
    files.insert(path.to_owned(), serde_json::to_vec_pretty(&value).unwrap());
}

/// Replaces a text in one file.
pub(crate) fn replace(files: &mut Files, path: &str, from: &str, to: &str) {
    let text = String::from_utf8(files[path].clone()).unwrap();
    assert!(text.contains(from), "`{path}` has no {from:?}");
    files.insert(path.to_owned(), text.replace(from, to).into_bytes());
}

pub(crate) fn findings(files: Files) -> Vec<Finding> {
    validate(&Package::read(files))
}

/// Code, file and pointer of each finding.
pub(crate) fn places(findings: &[Finding]) -> Vec<(&str, &str, &str)> {
    findings.iter().map(|f| (f.code.as_str(), f.file.as_str(), f.pointer.as_str())).collect()
}
