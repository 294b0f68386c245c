//! Each rule, broken once in a package that is right otherwise: that finding, at that place, and no other.

use serde_json::{Value, json};
use toolhost_builder::{Files, Severity};

use crate::small::{edit, files, findings, places, replace, step};

const GRAPH: &str = "workflow.graph.json";
const BMAD: &str = "bmad.json";
const AGENTS: &str = "agents.json";

#[test]
fn the_small_package_is_right() {
    assert_eq!(findings(files()), []);
}

/// Breaks one thing; the findings are exactly these.
fn check(break_it: impl FnOnce(&mut Files), expected: &[(&str, &str, &str)]) {
    let mut files = files();
    break_it(&mut files);
    let found = findings(files);
    assert_eq!(places(&found), expected, "{found:#?}");
    for finding in &found {
        assert!(!finding.message.is_empty() && !finding.code.is_empty(), "{finding:?}");
        assert!(finding.message.starts_with(|c: char| !c.is_uppercase()), "{finding:?}");
    }
}

fn json(path: &str, change: impl FnOnce(&mut Value), expected: &[(&str, &str, &str)]) {
    check(|files| edit(files, path, change), expected);
}

fn text(path: &str, from: &str, to: &str, expected: &[(&str, &str, &str)]) {
    check(|files| replace(files, path, from, to), expected);
}

#[test]
fn a_manifest_follows_its_schema() {
    json(BMAD, |v| v["schemaVersion"] = json!("1.2"), &[("schema-version", BMAD, "/schemaVersion")]);
    json(BMAD, |v| v["schemaVersion"] = json!("1.1.7"), &[]);
    json(BMAD, |v| v["version"] = json!("1.0"), &[("version-not-semver", BMAD, "/version")]);
    json(BMAD, |v| v["name"] = json!(3), &[("schema-type", BMAD, "/name")]);
    json(BMAD, |v| v["licence"] = json!("MIT"), &[("schema-unknown-field", BMAD, "/licence")]);
    json(BMAD, |v| v["entry"]["extra"] = json!(1), &[("schema-unknown-field", BMAD, "/entry/extra")]);
    json(BMAD, |v| drop(v.as_object_mut().unwrap().remove("name")), &[("schema-required", BMAD, "/name")]);
}

#[test]
fn the_files_of_a_manifest_are_there() {
    let gone = [
        ("file-missing", BMAD, "/entry/agents"),
        // Who names an agent finds none then.
        ("AGENT_NOT_FOUND", GRAPH, "/nodes/0/agentId"),
        ("AGENT_NOT_FOUND", "steps/begin.md", "/agentId"),
    ];
    check(|files| drop(files.remove(AGENTS)), &gone);
    check(|files| drop(files.remove("workflow.md")), &[("file-missing", BMAD, "/entry/workflow")]);
    check(|files| drop(files.remove(BMAD)), &[("manifest-missing", BMAD, "")]);
    let unsafe_path = |v: &mut Value| v["entry"]["workflow"] = json!("../workflow.md");
    json(BMAD, unsafe_path, &[("path-unsafe", BMAD, "/entry/workflow"), ("unused-file", "workflow.md", "")]);
}

#[test]
fn workflows_have_ids_of_their_own() {
    let one = json!({ "id": "main", "workflow": "workflow.md", "graph": GRAPH });
    json(BMAD, |v| v["workflows"] = json!([one]), &[]);
    json(BMAD, |v| v["workflows"] = json!([one, one]), &[("id-duplicate", BMAD, "/workflows/1/id")]);
    let bad = json!({ "id": "-x", "workflow": "workflow.md", "graph": GRAPH });
    json(BMAD, |v| v["workflows"] = json!([bad]), &[("schema-pattern", BMAD, "/workflows/0/id")]);
}

#[test]
fn syntax_is_told_with_its_line() {
    let broken = |text: &'static str| move |files: &mut Files| drop(files.insert(BMAD.to_owned(), text.into()));
    check(broken("{"), &[("json-syntax", BMAD, "")]);
    check(broken("{\"a\":1,\"a\":2}"), &[("json-duplicate-key", BMAD, "")]);
    let mut broken = files();
    replace(&mut broken, "steps/work.md", "type: step", "type: [step");
    let found = findings(broken);
    assert_eq!(places(&found), [("yaml-syntax", "steps/work.md", "")]);
    assert!(found[0].line.unwrap() >= 4, "{found:?}");
    let mut not_text = files();
    not_text.insert("workflow.md".to_owned(), vec![b'-', b'-', b'-', b'\n', 0xff]);
    assert_eq!(places(&findings(not_text)), [("not-utf8", "workflow.md", "")]);
}

#[test]
fn front_matter_is_yaml_of_a_known_form() {
    let work = "steps/work.md";
    text(work, "---\nschema", "schema", &[("front-matter-missing", work, "")]);
    text(work, "type: step", "type: step\ntype: step", &[("yaml-duplicate-key", work, "")]);
    text(work, "type: step", "type: !thing step", &[("yaml-tag", work, "")]);
    text(work, "type: step", "type: step\n? [a]\n: b", &[("yaml-key", work, "")]);
    text(work, "type: step", "type: step\nmore: .inf", &[("yaml-number", work, "")]);
    text(work, "type: step", "type: walk", &[("schema-enum", work, "/type"), ("step-type-mismatch", work, "/type")]);
    text(work, "nodeId: work\n", "", &[("schema-required", work, "/nodeId")]);
    text(work, "type: step", "type: step\nmine: [kept, {a: 1}]", &[]);
    text(work, "\n", "\r\n", &[]);
    text("workflow.md", "currentNodeId: work\n", "", &[("schema-required", "workflow.md", "/currentNodeId")]);
    text("workflow.md", "currentNodeId: work", "currentNodeId: \"\"", &[]);
}

#[test]
fn agents_follow_their_schema_and_are_found() {
    json(
        AGENTS,
        |v| v["agents"] = json!([]),
        &[
            ("schema-min-items", AGENTS, "/agents"),
            ("AGENT_NOT_FOUND", GRAPH, "/nodes/0/agentId"),
            ("AGENT_NOT_FOUND", "steps/begin.md", "/agentId"),
        ],
    );
    json(AGENTS, |v| v["agents"][0]["mood"] = json!("good"), &[("schema-unknown-field", AGENTS, "/agents/0/mood")]);
    json(
        AGENTS,
        |v| v["agents"][0]["persona"]["principles"] = json!(1),
        &[("schema", AGENTS, "/agents/0/persona/principles")],
    );
    json(
        AGENTS,
        |v| {
            let copy = v["agents"][0].clone();
            v["agents"].as_array_mut().unwrap().push(copy);
        },
        &[("id-duplicate", AGENTS, "/agents/1/id")],
    );
    json(GRAPH, |v| v["nodes"][1]["agentId"] = json!("bob"), &[("AGENT_NOT_FOUND", GRAPH, "/nodes/1/agentId")]);
    text("steps/work.md", "inputs", "agentId: bob\ninputs", &[("AGENT_NOT_FOUND", "steps/work.md", "/agentId")]);
}

#[test]
fn nodes_and_edges_resolve() {
    json(
        GRAPH,
        |v| v["nodes"] = json!([]),
        &[
            ("schema-min-items", GRAPH, "/nodes"),
            ("edge-node-missing", GRAPH, "/edges/0/from"),
            ("edge-node-missing", GRAPH, "/edges/0/to"),
            ("edge-node-missing", GRAPH, "/edges/1/from"),
            ("edge-node-missing", GRAPH, "/edges/1/to"),
            ("edge-node-missing", GRAPH, "/edges/2/from"),
            ("edge-node-missing", GRAPH, "/edges/2/to"),
            ("edge-node-missing", GRAPH, "/edges/3/from"),
            ("edge-node-missing", GRAPH, "/edges/3/to"),
            ("entry-node-missing", GRAPH, "/entryNodeId"),
            ("state-node-missing", "workflow.md", "/currentNodeId"),
            ("state-node-missing", "workflow.md", "/stepsCompleted/0"),
            ("orphan-step-file", "steps/begin.md", ""),
            ("orphan-step-file", "steps/choose.md", ""),
            ("orphan-step-file", "steps/end.md", ""),
            ("orphan-step-file", "steps/work.md", ""),
        ],
    );
    json(GRAPH, |v| v["edges"][3]["to"] = json!("nowhere"), &[("edge-node-missing", GRAPH, "/edges/3/to")]);
    json(GRAPH, |v| v["edges"][1]["id"] = json!("e1"), &[("id-duplicate", GRAPH, "/edges/1/id")]);
    json(GRAPH, |v| v["edges"][0]["color"] = json!("red"), &[("schema-unknown-field", GRAPH, "/edges/0/color")]);
    json(GRAPH, |v| v["nodes"][0]["x"] = json!(1), &[("schema-unknown-field", GRAPH, "/nodes/0/x")]);
    json(
        GRAPH,
        |v| v["nodes"][0]["type"] = json!("loop"),
        &[("schema-enum", GRAPH, "/nodes/0/type"), ("step-type-mismatch", "steps/begin.md", "/type")],
    );
    json(GRAPH, |v| v["entryNodeId"] = json!("nobody"), &[("entry-node-missing", GRAPH, "/entryNodeId")]);
    json(GRAPH, |v| v["entryNodeId"] = json!("work"), &[("entry-mismatch", GRAPH, "/entryNodeId")]);
}

#[test]
fn one_step_file_per_node() {
    check(|files| drop(files.remove("steps/end.md")), &[("file-missing", GRAPH, "/nodes/3/file")]);
    check(
        |files| drop(files.insert("steps/lost.md".to_owned(), step("lost", "step", ""))),
        &[("orphan-step-file", "steps/lost.md", "")],
    );
    json(
        GRAPH,
        |v| v["nodes"][3]["file"] = json!("steps/choose.md"),
        &[("step-file-shared", GRAPH, "/nodes/3/file"), ("orphan-step-file", "steps/end.md", "")],
    );
    json(
        GRAPH,
        |v| v["nodes"][3]["file"] = json!("steps/../../end.md"),
        &[("path-unsafe", GRAPH, "/nodes/3/file"), ("orphan-step-file", "steps/end.md", "")],
    );
    let work = "steps/work.md";
    text(work, "nodeId: work", "nodeId: play", &[("step-node-mismatch", work, "/nodeId")]);
    text(work, "type: step", "type: merge", &[("step-type-mismatch", work, "/type")]);
    check(|files| drop(files.insert("notes.md".to_owned(), Vec::new())), &[("unused-file", "notes.md", "")]);
    check(|files| drop(files.insert("README.md".to_owned(), Vec::new())), &[]);
}

#[test]
fn branches_have_one_default() {
    let edge = |v: &mut Value, edge: usize, value: bool| v["edges"][edge]["isDefault"] = json!(value);
    json(GRAPH, |v| edge(v, 2, false), &[("default-edge-missing", GRAPH, "/nodes/2")]);
    json(GRAPH, |v| edge(v, 3, true), &[("default-edge-duplicate", GRAPH, "/edges/3/isDefault")]);
}

#[test]
fn a_loop_needs_a_decision_and_an_exit() {
    let plain = |files: &mut Files| {
        edit(files, GRAPH, |v| v["nodes"][2]["type"] = json!("step"));
        replace(files, "steps/choose.md", "decision", "step");
    };
    check(plain, &[("cycle-missing-decision", GRAPH, "/nodes/1")]);
    let closed = |v: &mut Value| {
        v["edges"][2]["to"] = json!("work");
        v["edges"].as_array_mut().unwrap().pop();
        v["edges"].as_array_mut().unwrap().push(json!({ "from": "begin", "to": "end", "label": "out" }));
        v["edges"][0]["isDefault"] = json!(true);
    };
    let (no_exit, unsaid) = (("cycle-missing-exit", GRAPH, "/nodes/1"), "edge-without-transition");
    json(GRAPH, closed, &[no_exit, (unsaid, "steps/begin.md", "/transitions")]);
    let own = |v: &mut Value| {
        v["edges"][1]["isDefault"] = json!(true);
        v["edges"].as_array_mut().unwrap().push(json!({ "from": "work", "to": "work", "label": "more" }));
        v["edges"][3]["to"] = json!("end");
    };
    json(GRAPH, own, &[("cycle-missing-decision", GRAPH, "/nodes/1")]);
}

#[test]
fn the_entry_is_the_one_node_that_nothing_leads_to() {
    let two = |v: &mut Value| drop(v["edges"].as_array_mut().unwrap().remove(1));
    json(GRAPH, two, &[("entry-ambiguous", GRAPH, "/entryNodeId")]);
    let island = |files: &mut Files| {
        edit(files, GRAPH, |v| {
            let nodes = v["nodes"].as_array_mut().unwrap();
            nodes.push(json!({ "id": "alone", "type": "decision", "file": "steps/alone.md" }));
            let edges = v["edges"].as_array_mut().unwrap();
            edges.push(json!({ "from": "alone", "to": "alone", "label": "round", "isDefault": true }));
            edges.push(json!({ "from": "alone", "to": "end", "label": "out" }));
        });
        files.insert("steps/alone.md".to_owned(), step("alone", "decision", ""));
    };
    check(island, &[("node-unreachable", GRAPH, "/nodes/4")]);
}

#[test]
fn steps_agree_with_the_graph() {
    let begin = "steps/begin.md";
    text(
        begin,
        "to: work",
        "to: end",
        &[("transition-without-edge", begin, "/transitions/0/to"), ("edge-without-transition", begin, "/transitions")],
    );
    text(
        "workflow.md",
        "currentNodeId: work",
        "currentNodeId: gone",
        &[("state-node-missing", "workflow.md", "/currentNodeId")],
    );
    let subworkflow = |files: &mut Files| {
        edit(files, GRAPH, |v| v["nodes"][1]["type"] = json!("subworkflow"));
        replace(files, "steps/work.md", "type: step", "type: subworkflow\nworkflowId: other");
    };
    check(subworkflow, &[("WORKFLOW_NOT_FOUND", "steps/work.md", "/workflowId")]);
}

#[test]
fn steps_have_their_sections() {
    let work = "steps/work.md";
    text(work, "## Goal", "## Aim", &[("section-missing", work, "")]);
    text(work, "## Instructions", "### Instructions", &[("section-missing", work, "")]);
    text(work, "## Goal", "```\n## Goal\n```", &[("section-missing", work, "")]);
    text(work, "## Completion (Document-as-State)", "## Done", &[("section-recommended", work, "")]);
}

#[test]
fn assets_are_there_and_have_plain_paths() {
    let guide = |files: &mut Files| drop(files.remove("assets/guide.md"));
    check(
        guide,
        &[
            ("asset-not-found", AGENTS, "/agents/0/systemPrompt"),
            ("asset-not-found", "workflow.md", ""),
            ("asset-not-found", "steps/begin.md", ""),
            ("asset-not-found", "steps/work.md", ""),
            ("asset-not-found", "steps/choose.md", ""),
            ("asset-not-found", "steps/end.md", ""),
        ],
    );
    let mut gone = files();
    gone.remove("assets/guide.md");
    let lines: Vec<Option<usize>> = findings(gone).iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [None, Some(13), Some(18), Some(15), Some(13), Some(13)]);
    text("steps/work.md", "inputs", "reads: assets/none.md\ninputs", &[("asset-not-found", "steps/work.md", "/reads")]);
    for (path, code) in
        [("assets/a b.md", "asset-path"), ("assets/a.sh", "asset-extension"), ("assets/x/../a.md", "asset-path")]
    {
        check(|files| drop(files.insert(path.to_owned(), Vec::new())), &[(code, path, "")]);
    }
    check(|files| drop(files.insert("assets/a.md".to_owned(), vec![0xff])), &[("not-utf8", "assets/a.md", "")]);
}

#[test]
fn paths_are_safe_and_differ_in_more_than_case() {
    for path in ["/etc/passwd", "../x", "C:/x", "a\\b", "a//b", "a/./b", "a\0b", ""] {
        let mut hostile = files();
        hostile.insert(path.to_owned(), Vec::new());
        let found = findings(hostile);
        assert_eq!(places(&found), [("path-unsafe", path, ""), ("unused-file", path, "")], "{found:?}");
    }
    let twin = |files: &mut Files| drop(files.insert("assets/Guide.md".to_owned(), Vec::new()));
    check(twin, &[("path-case-duplicate", "assets/guide.md", "")]);
}

#[test]
fn a_warning_alone_does_not_stop_anybody() {
    let mut lost = files();
    lost.insert("steps/lost.md".to_owned(), Vec::new());
    assert!(findings(lost).iter().all(|finding| finding.severity == Severity::Warning));
}
