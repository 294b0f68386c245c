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
    json(BMAD, |v| v["schemaVersion"] = json!("1.2"), &[("SCHEMA_VERSION", BMAD, "/schemaVersion")]);
    json(BMAD, |v| v["schemaVersion"] = json!("1.1.7"), &[]);
    json(BMAD, |v| v["version"] = json!("1.0"), &[("VERSION_NOT_SEMVER", BMAD, "/version")]);
    json(BMAD, |v| v["name"] = json!(3), &[("SCHEMA_TYPE", BMAD, "/name")]);
    json(BMAD, |v| v["licence"] = json!("MIT"), &[("SCHEMA_UNKNOWN_FIELD", BMAD, "/licence")]);
    json(BMAD, |v| v["entry"]["extra"] = json!(1), &[("SCHEMA_UNKNOWN_FIELD", BMAD, "/entry/extra")]);
    json(BMAD, |v| drop(v.as_object_mut().unwrap().remove("name")), &[("SCHEMA_REQUIRED", BMAD, "/name")]);
}

#[test]
fn the_files_of_a_manifest_are_there() {
    let gone = [
        // That nobody finds an agent then follows from it.
        ("FILE_MISSING", BMAD, "/entry/agents"),
    ];
    check(|files| drop(files.remove(AGENTS)), &gone);
    check(|files| drop(files.remove("workflow.md")), &[("FILE_MISSING", BMAD, "/entry/workflow")]);
    check(|files| drop(files.remove(BMAD)), &[("MANIFEST_MISSING", BMAD, "")]);
    let unsafe_path = |v: &mut Value| v["entry"]["workflow"] = json!("../workflow.md");
    json(BMAD, unsafe_path, &[("PATH_UNSAFE", BMAD, "/entry/workflow")]);
}

#[test]
fn workflows_have_ids_of_their_own() {
    let one = json!({ "id": "main", "workflow": "workflow.md", "graph": GRAPH });
    json(BMAD, |v| v["workflows"] = json!([one]), &[]);
    json(BMAD, |v| v["workflows"] = json!([one, one]), &[("ID_DUPLICATE", BMAD, "/workflows/1/id")]);
    let bad = json!({ "id": "-x", "workflow": "workflow.md", "graph": GRAPH });
    json(BMAD, |v| v["workflows"] = json!([bad]), &[("SCHEMA_PATTERN", BMAD, "/workflows/0/id")]);
}

#[test]
fn syntax_is_told_with_its_line() {
    let broken = |text: &'static str| move |files: &mut Files| drop(files.insert(BMAD.to_owned(), text.into()));
    check(broken("{"), &[("JSON_SYNTAX", BMAD, "")]);
    check(broken("{\"a\":1,\"a\":2}"), &[("JSON_DUPLICATE_KEY", BMAD, "")]);
    let mut broken = files();
    replace(&mut broken, "steps/work.md", "type: step", "type: [step");
    let found = findings(broken);
    assert_eq!(places(&found), [("YAML_SYNTAX", "steps/work.md", "")]);
    assert!(found[0].line.unwrap() >= 4, "{found:?}");
    let mut not_text = files();
    not_text.insert("workflow.md".to_owned(), vec![b'-', b'-', b'-', b'\n', 0xff]);
    assert_eq!(places(&findings(not_text)), [("NOT_UTF8", "workflow.md", "")]);
}

#[test]
fn front_matter_is_yaml_of_a_known_form() {
    let work = "steps/work.md";
    text(work, "---\nschema", "schema", &[("FRONT_MATTER_MISSING", work, "")]);
    text(work, "type: step", "type: step\ntype: step", &[("YAML_DUPLICATE_KEY", work, "")]);
    text(work, "type: step", "type: !thing step", &[("YAML_TAG", work, "")]);
    text(work, "type: step", "type: step\n? [a]\n: b", &[("YAML_KEY", work, "")]);
    text(work, "type: step", "type: step\nmore: .inf", &[("YAML_NUMBER", work, "")]);
    text(work, "type: step", "type: walk", &[("SCHEMA_ENUM", work, "/type")]);
    text(work, "nodeId: work\n", "", &[("SCHEMA_REQUIRED", work, "/nodeId")]);
    text(work, "type: step", "type: step\nmine: [kept, {a: 1}]", &[]);
    text(work, "\n", "\r\n", &[]);
    text("workflow.md", "currentNodeId: work\n", "", &[("SCHEMA_REQUIRED", "workflow.md", "/currentNodeId")]);
    text("workflow.md", "currentNodeId: work", "currentNodeId: \"\"", &[]);
}

#[test]
fn agents_follow_their_schema_and_are_found() {
    json(AGENTS, |v| v["agents"] = json!([]), &[("SCHEMA_MIN_ITEMS", AGENTS, "/agents")]);
    json(AGENTS, |v| v["agents"][0]["mood"] = json!("good"), &[("SCHEMA_UNKNOWN_FIELD", AGENTS, "/agents/0/mood")]);
    json(
        AGENTS,
        |v| v["agents"][0]["persona"]["principles"] = json!(1),
        &[("SCHEMA_VALUE", AGENTS, "/agents/0/persona/principles")],
    );
    json(
        AGENTS,
        |v| {
            let copy = v["agents"][0].clone();
            v["agents"].as_array_mut().unwrap().push(copy);
        },
        &[("ID_DUPLICATE", AGENTS, "/agents/1/id")],
    );
    json(GRAPH, |v| v["nodes"][1]["agentId"] = json!("bob"), &[("AGENT_NOT_FOUND", GRAPH, "/nodes/1/agentId")]);
    text("steps/work.md", "inputs", "agentId: bob\ninputs", &[("AGENT_NOT_FOUND", "steps/work.md", "/agentId")]);
}

#[test]
fn nodes_and_edges_resolve() {
    json(GRAPH, |v| v["nodes"] = json!([]), &[("SCHEMA_MIN_ITEMS", GRAPH, "/nodes")]);
    json(GRAPH, |v| v["edges"][3]["to"] = json!("nowhere"), &[("EDGE_NODE_MISSING", GRAPH, "/edges/3/to")]);
    json(GRAPH, |v| v["edges"][1]["id"] = json!("e1"), &[("ID_DUPLICATE", GRAPH, "/edges/1/id")]);
    json(GRAPH, |v| v["edges"][0]["color"] = json!("red"), &[("SCHEMA_UNKNOWN_FIELD", GRAPH, "/edges/0/color")]);
    json(GRAPH, |v| v["nodes"][0]["x"] = json!(1), &[("SCHEMA_UNKNOWN_FIELD", GRAPH, "/nodes/0/x")]);
    json(GRAPH, |v| v["nodes"][0]["type"] = json!("loop"), &[("SCHEMA_ENUM", GRAPH, "/nodes/0/type")]);
    json(GRAPH, |v| v["entryNodeId"] = json!("nobody"), &[("ENTRY_NODE_MISSING", GRAPH, "/entryNodeId")]);
    json(GRAPH, |v| v["entryNodeId"] = json!("work"), &[("ENTRY_MISMATCH", GRAPH, "/entryNodeId")]);
}

#[test]
fn one_step_file_per_node() {
    check(|files| drop(files.remove("steps/end.md")), &[("FILE_MISSING", GRAPH, "/nodes/3/file")]);
    check(
        |files| drop(files.insert("steps/lost.md".to_owned(), step("lost", "step", ""))),
        &[("ORPHAN_STEP_FILE", "steps/lost.md", "")],
    );
    json(GRAPH, |v| v["nodes"][3]["file"] = json!("steps/choose.md"), &[("STEP_FILE_SHARED", GRAPH, "/nodes/3/file")]);
    json(GRAPH, |v| v["nodes"][3]["file"] = json!("steps/../../end.md"), &[("PATH_UNSAFE", GRAPH, "/nodes/3/file")]);
    let work = "steps/work.md";
    text(work, "nodeId: work", "nodeId: play", &[("STEP_NODE_MISMATCH", work, "/nodeId")]);
    text(work, "type: step", "type: merge", &[("STEP_TYPE_MISMATCH", work, "/type")]);
    check(|files| drop(files.insert("notes.md".to_owned(), Vec::new())), &[("UNUSED_FILE", "notes.md", "")]);
    check(|files| drop(files.insert("README.md".to_owned(), Vec::new())), &[]);
}

#[test]
fn branches_have_one_default() {
    let edge = |v: &mut Value, edge: usize, value: bool| v["edges"][edge]["isDefault"] = json!(value);
    json(GRAPH, |v| edge(v, 2, false), &[("DEFAULT_EDGE_MISSING", GRAPH, "/nodes/2")]);
    json(GRAPH, |v| edge(v, 3, true), &[("DEFAULT_EDGE_DUPLICATE", GRAPH, "/edges/3/isDefault")]);
}

#[test]
fn a_loop_needs_a_decision_and_an_exit() {
    let plain = |files: &mut Files| {
        edit(files, GRAPH, |v| v["nodes"][2]["type"] = json!("step"));
        replace(files, "steps/choose.md", "decision", "step");
    };
    check(plain, &[("CYCLE_MISSING_DECISION", GRAPH, "/nodes/1")]);
    let closed = |v: &mut Value| {
        v["edges"][2]["to"] = json!("work");
        v["edges"].as_array_mut().unwrap().pop();
        v["edges"].as_array_mut().unwrap().push(json!({ "from": "begin", "to": "end", "label": "out" }));
        v["edges"][0]["isDefault"] = json!(true);
    };
    let begin = "steps/begin.md";
    let unsaid = ("EDGE_WITHOUT_TRANSITION", begin, "/transitions");
    let other = ("TRANSITION_DEFAULT_MISMATCH", begin, "/transitions/0/isDefault");
    json(GRAPH, closed, &[("CYCLE_MISSING_EXIT", GRAPH, "/nodes/1"), unsaid, other]);
    let own = |v: &mut Value| {
        v["edges"][1]["isDefault"] = json!(true);
        v["edges"].as_array_mut().unwrap().push(json!({ "from": "work", "to": "work", "label": "more" }));
        v["edges"][3]["to"] = json!("end");
    };
    json(GRAPH, own, &[("CYCLE_MISSING_DECISION", GRAPH, "/nodes/1")]);
}

#[test]
fn the_entry_is_the_one_node_that_nothing_leads_to() {
    let two = |v: &mut Value| drop(v["edges"].as_array_mut().unwrap().remove(1));
    // That nothing leads to the next node follows from it.
    json(GRAPH, two, &[("DEAD_END", GRAPH, "/nodes/1")]);
    let three = |v: &mut Value| {
        v["edges"][3]["to"] = json!("begin");
        v["edges"].as_array_mut().unwrap().remove(0);
        v["edges"].as_array_mut().unwrap().insert(0, json!({ "from": "begin", "to": "end", "label": "go" }));
        v["nodes"].as_array_mut().unwrap().push(json!({ "id": "more", "type": "step", "file": "steps/more.md" }));
        v["edges"].as_array_mut().unwrap().push(json!({ "from": "more", "to": "end", "label": "on" }));
    };
    let several = |files: &mut Files| {
        edit(files, GRAPH, three);
        replace(files, "steps/begin.md", "to: work", "to: end");
        files.insert("steps/more.md".to_owned(), step("more", "step", ""));
    };
    check(several, &[("ENTRY_AMBIGUOUS", GRAPH, "/entryNodeId")]);
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
    check(island, &[("NODE_UNREACHABLE", GRAPH, "/nodes/4")]);
}

#[test]
fn steps_agree_with_the_graph() {
    let begin = "steps/begin.md";
    text(begin, "to: work", "to: end", &[("TRANSITION_WITHOUT_EDGE", begin, "/transitions/0/to")]);
    text(
        "workflow.md",
        "currentNodeId: work",
        "currentNodeId: gone",
        &[("STATE_NODE_MISSING", "workflow.md", "/currentNodeId")],
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
    text(work, "## Goal", "## Aim", &[("SECTION_MISSING", work, "")]);
    text(work, "## Instructions", "### Instructions", &[("SECTION_MISSING", work, "")]);
    text(work, "## Goal", "```\n## Goal\n```", &[("SECTION_MISSING", work, "")]);
    text(work, "## Completion (Document-as-State)", "## Done", &[("SECTION_RECOMMENDED", work, "")]);
}

#[test]
fn assets_are_there_and_have_plain_paths() {
    let guide = |files: &mut Files| drop(files.remove("assets/guide.md"));
    check(guide, &[("ASSET_NOT_FOUND", AGENTS, "/agents/0/systemPrompt")]);
    text("steps/work.md", "inputs", "reads: assets/none.md\ninputs", &[("ASSET_NOT_FOUND", "steps/work.md", "/reads")]);
    for (path, code) in [("assets/x/../a.md", "ASSET_PATH"), ("assets//a.md", "ASSET_PATH")] {
        check(|files| drop(files.insert(path.to_owned(), Vec::new())), &[(code, path, "")]);
    }
    check(|files| drop(files.insert("assets/a.md".to_owned(), vec![0xff])), &[("NOT_UTF8", "assets/a.md", "")]);
}

#[test]
fn paths_are_safe_and_differ_in_more_than_case() {
    for path in ["/etc/passwd", "../x", "C:/x", "a\\b", "a//b", "a/./b", "a\0b", ""] {
        let mut hostile = files();
        hostile.insert(path.to_owned(), Vec::new());
        let found = findings(hostile);
        assert_eq!(places(&found), [("PATH_UNSAFE", path, "")], "{found:?}");
    }
    let twin = |files: &mut Files| drop(files.insert("assets/Guide.md".to_owned(), Vec::new()));
    check(twin, &[("PATH_CASE_DUPLICATE", "assets/guide.md", "")]);
}

#[test]
fn a_warning_alone_does_not_stop_anybody() {
    let mut lost = files();
    lost.insert("steps/lost.md".to_owned(), Vec::new());
    assert!(findings(lost).iter().all(|finding| finding.severity == Severity::Warning));
}

#[test]
fn an_id_that_is_none_is_told_once_where_it_is_given() {
    let mut files = files();
    edit(&mut files, "agents.json", |agents| agents["agents"][0]["id"] = json!("Ada L!"));
    edit(&mut files, "workflow.graph.json", |graph| graph["nodes"][0]["agentId"] = json!("Ada L!"));
    replace(&mut files, "steps/begin.md", "agentId: ada", "agentId: \"Ada L!\"");
    let found = findings(files);
    assert_eq!(places(&found), [("SCHEMA_PATTERN", "agents.json", "/agents/0/id")]);
    assert!(found[0].message.ends_with("; 2 other places name it"), "{found:#?}");
    assert_eq!(found[0].hint, "write `Ada-L`, also where it is named");
}

#[test]
fn what_a_menu_or_an_asset_names_is_there() {
    let menu = |choice: Value| {
        move |v: &mut Value| {
            v["agents"][0]["menu"] = json!([choice]);
            v["agents"][0]["menu"][0]["description"] = json!("x");
            v["agents"][0]["menu"][0]["trigger"] = json!("x");
        }
    };
    for name in ["exec", "tmpl", "data", "checklist"] {
        let at = format!("/agents/0/menu/0/{name}");
        json(AGENTS, menu(json!({ name: "steps/wrok.md" })), &[("FILE_MISSING", AGENTS, &at)]);
        for fine in ["steps/work.md", "{project-root}/x/y.md", "todo", "../elsewhere/x.md"] {
            json(AGENTS, menu(json!({ name: fine })), &[]);
        }
    }
    let several = json!({ "multi": [{ "workflow": "nobody" }, "x", { "exec": "steps/nothing.md" }] });
    json(
        AGENTS,
        menu(several),
        &[
            ("WORKFLOW_NOT_FOUND", AGENTS, "/agents/0/menu/0/multi/0/workflow"),
            ("FILE_MISSING", AGENTS, "/agents/0/menu/0/multi/2/exec"),
        ],
    );
    let prompts = json!([{ "id": "a", "content": "x" }, { "id": "a", "content": "y" }]);
    json(AGENTS, |v| v["agents"][0]["prompts"] = prompts, &[("ID_DUPLICATE", AGENTS, "/agents/0/prompts/1/id")]);
    let guide = "assets/guide.md";
    text(guide, "# Guide", "# Guide\n\nSee assets/gone.md.", &[("ASSET_NOT_FOUND", guide, "")]);
}

#[test]
fn one_mistake_in_the_manifest_is_one_finding() {
    for broken in [json!([]), json!(7), json!({})] {
        let mut files = files();
        files.insert(BMAD.to_owned(), broken.to_string().into_bytes());
        let found = findings(files);
        assert!(found.iter().all(|finding| finding.file == BMAD), "{broken}: {found:#?}");
    }
    let wrong = |v: &mut Value| v["edges"][0]["to"] = json!("wrok");
    let mut files = files();
    edit(&mut files, GRAPH, wrong);
    let found = findings(files);
    let told = found.iter().find(|finding| finding.code == "EDGE_NODE_MISSING").unwrap();
    assert!(told.hint.contains("write `work`"), "{told:?}");
}

#[test]
fn a_heading_that_is_nearly_a_section_is_told_with_its_line() {
    for heading in ["## Goal ##", "   ## Goal", "## Goal   "] {
        text("steps/work.md", "## Goal\n", &format!("{heading}\n"), &[]);
    }
    for heading in ["## goal", "##  Goal", "### Goal", "##Goal", "## Goal:", "# GOAL ##"] {
        let mut files = files();
        replace(&mut files, "steps/work.md", "## Goal\n", &format!("{heading}\n"));
        let found = findings(files);
        let told = found.iter().find(|finding| finding.code == "SECTION_MISSING").unwrap();
        assert_eq!((told.line, told.actual.as_str()), (Some(9), heading), "{told:?}");
        assert!(told.hint.contains("write `## Goal`"), "{told:?}");
    }
    let mut files = files();
    replace(&mut files, "steps/work.md", "## Goal\n", "```\n# goal\n```\n");
    let found = findings(files);
    assert!(found[0].code == "SECTION_MISSING" && found[0].hint.contains("add a line"), "{found:?}");
}

#[test]
fn workflows_that_start_each_other_are_told_once() {
    let mut all = files();
    for (id, starts) in [("one", "two"), ("two", "three"), ("three", "one"), ("four", "one")] {
        for (path, bytes) in
            files().iter().filter(|(path, _)| path.starts_with("steps/") || path.starts_with("workflow."))
        {
            all.insert(format!("workflows/{id}/{path}"), bytes.clone());
        }
        let folder = format!("workflows/{id}");
        edit(&mut all, &format!("{folder}/workflow.graph.json"), |graph| {
            graph["nodes"][1]["type"] = json!("subworkflow");
        });
        replace(
            &mut all,
            &format!("{folder}/steps/work.md"),
            "type: step",
            &format!("type: subworkflow\nworkflowId: {starts}"),
        );
    }
    let place = |id: &str| {
        let folder = format!("workflows/{id}");
        json!({ "id": id, "workflow": format!("{folder}/workflow.md"), "graph": format!("{folder}/workflow.graph.json") })
    };
    let listed = ["one", "two", "three", "four"].map(place);
    edit(&mut all, "bmad.json", |manifest| manifest["workflows"] = json!(listed));
    let found = findings(all.clone());
    assert_eq!(places(&found), [("SUBWORKFLOW_CYCLE", "workflows/one/steps/work.md", "/workflowId")], "{found:#?}");
    assert!(found[0].message.contains("`one`, `two`, `three`") && !found[0].message.contains("four"), "{found:#?}");
    replace(&mut all, "workflows/three/steps/work.md", "workflowId: one", "workflowId: main");
    assert_eq!(findings(all), [], "they end");
}

/// Codes and files of what is found after a change of the small package.
fn told_after(change: impl FnOnce(&mut Files)) -> Vec<(String, String)> {
    let mut all = files();
    change(&mut all);
    findings(all).into_iter().map(|finding| (finding.code, finding.message)).collect()
}

#[test]
fn a_folder_that_was_renamed_is_one_mistake() {
    let told = told_after(|all| {
        for (path, bytes) in files().iter().filter(|(path, _)| path.starts_with("steps/")) {
            all.remove(path);
            all.insert(path.replace("steps/", "Steps/"), bytes.clone());
        }
    });
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].0 == "FILE_MISSING" && told[0].1.contains("3 other files of this folder"), "{told:#?}");
}

#[test]
fn assets_that_are_all_gone_are_one_mistake() {
    let without = |all: &mut Files| {
        all.remove("assets/guide.md");
        replace(all, "steps/work.md", "See assets/guide.md.", "See assets/more.md.");
    };
    let told = told_after(without);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].0 == "ASSET_NOT_FOUND" && told[0].1.contains("5 other mentions"), "{told:#?}");
    // Where others are there, each name is told once, with the places that name it.
    let told = told_after(|all| {
        without(all);
        all.insert("assets/other.md".to_owned(), b"# Other\n".to_vec());
    });
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(
        told[0].1.contains("`workflow.md:13`, `steps/begin.md:18`, `steps/choose.md:13` and 1 more name it, too"),
        "{told:#?}"
    );
}

#[test]
fn an_id_that_was_changed_in_one_place_is_one_mistake() {
    let told = told_after(|all| edit(all, GRAPH, |graph| graph["nodes"][1]["id"] = json!("word")));
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].0 == "STEP_NODE_MISMATCH" && told[0].1.contains("other places name `work`"), "{told:#?}");
}
