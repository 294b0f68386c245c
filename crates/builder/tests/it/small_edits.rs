//! Contract 1.1: small edits in the place of whole objects, and what follows from them.

use serde_json::{Value, json};
use toolhost_builder::change::{Op, complete, overlay, parse, proposed};
use toolhost_builder::refs::Object;
use toolhost_builder::{Files, Finding, Package, validate};
use toolhost_contract::Redactor;

use crate::change::{asset, delete, graph, step, upsert};
use crate::small;

pub(crate) fn set(operations: Value) -> Value {
    json!({ "schemaVersion": "1.1", "targetType": "workflow", "mode": "optimize", "operations": operations })
}

pub(crate) fn workflow(edits: Value) -> Value {
    upsert("workflow", json!({ "workflowId": "main" }), edits)
}

pub(crate) fn step_edits(node: &str, edits: Value) -> Value {
    upsert("step", json!({ "workflowId": "main", "nodeId": node }), edits)
}

/// What a set comes to: the package, and what followed from it.
pub(crate) struct Made {
    pub(crate) package: Package,
    pub(crate) implied: Vec<String>,
    pub(crate) objects: Vec<String>,
}

pub(crate) fn made_of(files: Files, operations: Value) -> Result<Made, Vec<Finding>> {
    made_of_set(files, &set(operations))
}

pub(crate) fn made_of_set(files: Files, set: &Value) -> Result<Made, Vec<Finding>> {
    let package = Package::read(files);
    let mut set = parse(set).unwrap().set;
    let implied = complete(&package, &mut set, &Redactor::default())?;
    assert!(set.operations.iter().all(|operation| operation.edits.is_empty()));
    // A set that is kept is read again.
    assert_eq!(parse(&set.to_value()).unwrap().set, set);
    let mut wanted = Vec::new();
    let mut seen = package.clone();
    for is_first in [true, false] {
        for operation in &set.operations {
            if matches!(operation.object, Object::Workflow(_)) == is_first {
                let before = if operation.op == Op::Delete { &package } else { &seen };
                wanted.push((operation.object.clone(), proposed(before, operation).unwrap()));
            }
        }
        seen = overlay(&package, &wanted).0;
    }
    assert_eq!(overlay(&package, &wanted).1, []);
    let implied = implied.iter().map(|implied| format!("{}: {}", implied.object, implied.says)).collect();
    let objects = set.operations.iter().map(|operation| operation.object.to_string()).collect();
    Ok(Made { package: seen, implied, objects })
}

fn made(operations: Value) -> Made {
    made_of(small::files(), operations).unwrap()
}

fn refused(operations: Value) -> Vec<(String, String)> {
    let findings = made_of(small::files(), operations).err().unwrap();
    findings.into_iter().map(|finding| (finding.code, finding.hint)).collect()
}

pub(crate) fn text(package: &Package, path: &str) -> String {
    String::from_utf8(package.files()[path].clone()).unwrap()
}

pub(crate) fn codes(package: &Package) -> Vec<String> {
    validate(package).into_iter().map(|finding| finding.code).collect()
}

fn check_lines(before: &str, after: &str, changed: &[&str]) {
    let known: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().filter(|line| !known.contains(line)).collect();
    assert_eq!(new, changed);
}

#[test]
fn the_only_edge_between_two_nodes_gets_another_label() {
    let edge = json!({ "from": "begin", "to": "work", "label": "onwards" });
    let made = made_of(small::files(), json!([workflow(json!({ "edges": [edge] }))])).unwrap();
    let edges: Vec<&Value> = made.package.workflow("main").unwrap().edges.iter().map(|edge| &edge.value).collect();
    let between = edges.iter().filter(|edge| edge["from"] == "begin" && edge["to"] == "work");
    let labels: Vec<&Value> = between.map(|edge| &edge["label"]).collect();
    assert_eq!(labels, [&json!("onwards")]);
    // A second one is made by giving it an id.
    let edge = json!({ "id": "second", "from": "begin", "to": "work", "label": "onwards", "conditionText": "x" });
    let made = made_of(small::files(), json!([workflow(json!({ "edges": [edge] }))])).unwrap();
    let count = made.package.workflow("main").unwrap().edges.iter().filter(|edge| edge.from == "begin").count();
    assert_eq!(count, 2);
}

#[test]
fn a_field_that_is_misspelt_is_told_once_with_the_one_that_was_meant() {
    let wrong = set(json!([step_edits("work", json!({ "front_matter": { "title": "x" } }))]));
    let errors = parse(&wrong).unwrap_err().errors;
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert!(messages[0].contains("`operations[0].payload.front_matter` is no field"), "{}", messages[0]);
    assert!(messages[0].contains("did you mean `frontMatter`?"), "{}", messages[0]);
}

#[test]
fn passages_are_replaced_and_every_other_byte_stays() {
    let before = Package::read(small::files());
    let made = made(json!([
        step_edits(
            "work",
            json!({ "textEdits": [{ "find": "Say it.", "replace": "Say it twice." }, { "find": "twice", "replace": "once" }] })
        ),
        workflow(json!({ "textEdits": [{ "find": "# Small", "replace": "# Very small" }] })),
        upsert(
            "asset",
            json!({ "path": "assets/guide.md" }),
            json!({ "textEdits": [{ "find": "Guide", "replace": "" }] })
        ),
        upsert(
            "agent",
            json!({ "agentId": "ada" }),
            json!({ "textEdits": [{ "find": "a writer", "replace": "a poet" }] })
        ),
    ]));
    let expected = text(&before, "steps/work.md").replace("Say it.", "Say it once.");
    assert_eq!(text(&made.package, "steps/work.md"), expected);
    let expected = text(&before, "workflow.md").replace("# Small", "# Very small");
    assert_eq!(text(&made.package, "workflow.md"), expected);
    assert_eq!(text(&made.package, "assets/guide.md"), "# \n");
    assert_eq!(text(&made.package, "agents.json"), text(&before, "agents.json").replace("a writer", "a poet"));
    assert_eq!(made.implied, Vec::<String>::new());
}

#[test]
fn a_passage_stands_in_the_text_once() {
    let edit = |find: &str| json!([step_edits("work", json!({ "textEdits": [{ "find": find, "replace": "x" }] }))]);
    let [(code, hint)] = refused(edit("Say that")).try_into().unwrap();
    assert_eq!(code, "TEXT_NOT_FOUND");
    assert!(hint.contains("read the object again"), "{hint}");
    let [(code, hint)] = refused(edit("## ")).try_into().unwrap();
    assert_eq!(code, "TEXT_NOT_ONCE");
    assert!(hint.contains("more of the text around it"), "{hint}");
    let [(code, hint)] = refused(edit("token [redacted]")).try_into().unwrap();
    assert_eq!(code, "TEXT_NOT_FOUND");
    assert!(hint.contains("a whole secret that was not shown"), "{hint}");
    let agent = |find: &str| {
        json!([upsert(
            "agent",
            json!({ "agentId": "ada" }),
            json!({ "textEdits": [{ "find": find, "replace": "x" }] })
        )])
    };
    assert_eq!(refused(agent("rit"))[0].0, "TEXT_NOT_ONCE");
    assert_eq!(refused(agent("nobody"))[0].0, "TEXT_NOT_FOUND");
}

#[test]
fn a_passage_is_found_whatever_the_line_ends_are() {
    let mut files = small::files();
    small::replace(&mut files, "assets/guide.md", "# Guide\n", "# Guide\r\n\r\nBe short.\r\nBe kind.\r\n");
    let edit = json!({ "textEdits": [{ "find": "Be short.\nBe", "replace": "Be brief.\nBe" }] });
    let made = made_of(files.clone(), json!([upsert("asset", json!({ "path": "assets/guide.md" }), edit)])).unwrap();
    assert_eq!(text(&made.package, "assets/guide.md"), "# Guide\r\n\r\nBe brief.\r\nBe kind.\r\n");
    // Also where what is found has no line end, and what takes its place has.
    let edit = json!({ "textEdits": [{ "find": "Be kind.", "replace": "Be kind.\nBe calm." }] });
    let made = made_of(files, json!([upsert("asset", json!({ "path": "assets/guide.md" }), edit)])).unwrap();
    assert!(text(&made.package, "assets/guide.md").ends_with("Be kind.\r\nBe calm.\r\n"));
}

#[test]
fn a_node_is_put_between_two_others() {
    let made = made(json!([
        workflow(json!({
            "nodes": [{ "id": "check", "title": "Check it" }],
            "edges": [{ "from": "work", "to": "check", "label": "done" }, { "from": "check", "to": "choose", "label": "checked" }],
            "deleteEdges": ["e2"],
        })),
        step_edits(
            "check",
            json!({ "step_markdown": "## Goal\n\nCheck it.\n\n## Instructions\n\n1. Check.\n\n## Completion (Document-as-State)\n\nChecked.\n" })
        ),
    ]));
    assert_eq!(codes(&made.package), Vec::<String>::new());
    let main = made.package.workflow("main").unwrap();
    let node = main.node("check").unwrap();
    assert_eq!(node.value, json!({ "id": "check", "type": "step", "file": "steps/check.md", "title": "Check it" }));
    let edges: Vec<&Value> = main.edges.iter().map(|edge| &edge.value).collect();
    assert_eq!(edges.len(), 5);
    assert!(
        edges.contains(&&json!({ "id": "work--check", "from": "work", "to": "check", "label": "done" })),
        "{edges:?}"
    );
    let written = text(&made.package, "steps/check.md");
    assert!(
        written.starts_with("---\nschemaVersion: \"1.1\"\nnodeId: check\ntype: step\ntitle: Check it\ntransitions:\n  - to: choose\n    label: checked\n---\n\n## Goal"),
        "{written}"
    );
    let given = "of the new node `check` `type` is `step` and `file` is `steps/check.md`, as nothing else is said";
    let front = "step:main/check: it had no front matter, and gets one from its node and the ways out of it";
    assert_eq!(made.implied, [format!("workflow:main: {given}"), front.to_owned()]);
    // The rest of the graph keeps its bytes.
    let before = Package::read(small::files());
    let (was, is) = (text(&before, "workflow.graph.json"), text(&made.package, "workflow.graph.json"));
    assert!(
        was.lines().filter(|line| !is.contains(line.trim_end_matches(','))).all(|line| line.contains("e2")),
        "{is}"
    );
}

#[test]
fn a_node_goes_with_its_edges_and_its_step() {
    let made = made(json!([workflow(json!({
        "deleteNodes": ["choose"], "edges": [{ "from": "work", "to": "end", "label": "done" }],
    }))]));
    assert_eq!(codes(&made.package), Vec::<String>::new());
    assert!(!made.package.files().contains_key("steps/choose.md"));
    assert_eq!(made.objects, ["workflow:main", "step:main/choose"]);
    assert_eq!(made.implied, ["workflow:main: 3 edges at `choose` go with it", "step:main/choose: goes with its node"]);
}

#[test]
fn an_edge_is_changed_by_its_id_or_its_ends() {
    let made = made(json!([workflow(json!({
        "edges": [
            { "id": "e4", "label": "once more", "conditionText": "it is not good" },
            { "from": "work", "to": "choose", "label": "done", "conditionText": "always" },
        ],
        "entryNodeId": "work",
        "nodes": [{ "id": "begin", "title": "Begin", "outputs": null }],
    }))]));
    let main = made.package.workflow("main").unwrap();
    let edge = |id: &str| main.edges.iter().find(|edge| edge.value["id"] == json!(id)).unwrap().value.clone();
    assert_eq!(edge("e4")["label"], json!("once more"));
    assert_eq!(edge("e2")["conditionText"], json!("always"));
    assert_eq!(main.edges.len(), 4);
    assert_eq!(main.entry_node_id.as_deref(), Some("work"));
    let begin = &main.node("begin").unwrap().value;
    assert_eq!((begin.get("outputs"), &begin["title"]), (None, &json!("Begin")));
}

#[test]
fn of_the_ways_out_of_a_node_one_is_the_default() {
    let made = made(json!([workflow(json!({ "edges": [{ "id": "e4", "isDefault": true }] }))]));
    assert_eq!(codes(&made.package), Vec::<String>::new());
    assert_eq!(made.implied, ["workflow:main: the way from `choose` to `end` is no longer the default"]);
}

#[test]
fn what_is_not_there_is_told_with_what_is_like_it() {
    let check = |edits: Value, code: &str, hint: &str| {
        let findings = refused(json!([workflow(edits)]));
        assert_eq!(findings[0].0, code);
        assert!(findings[0].1.contains(hint), "{findings:?}");
    };
    check(json!({ "deleteNodes": ["chose"] }), "NODE_NOT_FOUND", "did you mean `choose`?");
    check(json!({ "entryNodeId": "qqq" }), "NODE_NOT_FOUND", "read the graph again");
    check(json!({ "deleteEdges": ["e5"] }), "EDGE_NOT_FOUND", "read the graph again");
    check(json!({ "deleteEdges": [{ "from": "end", "to": "work" }] }), "EDGE_NOT_FOUND", "read the graph again");
    check(
        json!({ "edges": [{ "from": "begin", "to": "wrok", "label": "x" }] }),
        "NODE_NOT_FOUND",
        "did you mean `work`?",
    );
    check(json!({ "edges": [{ "label": "x" }] }), "EDGE_UNNAMED", "name it");
    let findings = refused(json!([step_edits("nothing", json!({ "textEdits": [{ "find": "a", "replace": "b" }] }))]));
    assert_eq!(findings[0].0, "TARGET_NOT_FOUND");
}

#[test]
fn two_edges_with_the_same_ends_are_told_apart_by_their_label() {
    let mut files = small::files();
    small::edit(&mut files, "workflow.graph.json", |graph| {
        let edges = graph["edges"].as_array_mut().unwrap();
        edges.push(json!({ "from": "choose", "to": "work", "label": "later" }));
    });
    let edit = |edge: Value| made_of(files.clone(), json!([workflow(json!({ "deleteEdges": [edge] }))]));
    let unclear = edit(json!({ "from": "choose", "to": "work" })).err().unwrap();
    assert_eq!(unclear[0].code, "EDGE_UNCLEAR");
    let made = edit(json!({ "from": "choose", "to": "work", "label": "later" })).unwrap();
    assert_eq!(made.package.workflow("main").unwrap().edges.len(), 4);
}

#[test]
fn a_field_of_the_front_matter_is_set_and_the_other_lines_stay() {
    let mut files = small::files();
    small::replace(&mut files, "steps/begin.md", "inputs: [topic]\n", "inputs: [topic] # what it reads\n# a note\n\n");
    let before = text(&Package::read(files.clone()), "steps/begin.md");
    let edits = json!({ "frontMatter": { "inputs": ["topic", "a: b"], "title": "Begin: now", "setsVariables": null } });
    let made = made_of(files, json!([step_edits("begin", edits)])).unwrap();
    let after = text(&made.package, "steps/begin.md");
    check_lines(&before, &after, &["inputs: [\"topic\",\"a: b\"]", "title: \"Begin: now\""]);
    assert!(after.contains("# a note\n\ntransitions:\n  - to: work\n"), "{after}");
    let gone =
        made_of(small::files(), json!([step_edits("begin", json!({ "frontMatter": { "inputs": null } }))])).unwrap();
    assert_eq!(
        text(&gone.package, "steps/begin.md"),
        text(&Package::read(small::files()), "steps/begin.md").replace("inputs: [topic]\n", "")
    );
    let front = json!({ "frontMatter": { "variables": { "topic": "coffee" }, "currentNodeId": "" } });
    let made = made_of(small::files(), json!([workflow(front)])).unwrap();
    let document = made.package.workflow("main").unwrap().document.clone().unwrap();
    assert_eq!(document.front()["variables"], json!({ "topic": "coffee" }));
    assert_eq!(document.front()["extra"], json!("kept"));
}

#[test]
fn front_matter_on_one_line_is_not_guessed_at() {
    let mut files = small::files();
    small::replace(
        &mut files,
        "steps/end.md",
        "schemaVersion: \"1.1\"\nnodeId: end\ntype: end\n",
        "{schemaVersion: \"1.1\", nodeId: end, type: end}\n",
    );
    let refused =
        made_of(files, json!([step_edits("end", json!({ "frontMatter": { "title": "End" } }))])).err().unwrap();
    assert_eq!(refused[0].code, "FRONT_MATTER_NOT_EDITABLE");
}

#[test]
fn fields_of_an_agent_are_a_merge_patch() {
    let fields = json!({ "agent_fields": {
        "persona": { "role": "edits", "principles": ["true", "kind"] }, "systemPrompt": null, "discussion": true,
    } });
    let made = made(json!([upsert("agent", json!({ "agentId": "ada" }), fields)]));
    let agent = &made.package.agent("ada").unwrap().value;
    assert_eq!(agent["persona"]["role"], json!("edits"));
    assert_eq!(agent["persona"]["identity"], json!("a writer"));
    assert_eq!(agent["persona"]["principles"], json!(["true", "kind"]));
    assert_eq!((agent.get("systemPrompt"), &agent["discussion"]), (None, &json!(true)));
}

#[test]
fn what_a_node_says_its_step_says_and_the_other_way_round() {
    let mut files = small::files();
    small::edit(&mut files, "agents.json", |agents| {
        let mut bob = agents["agents"][0].clone();
        bob["id"] = json!("bob");
        agents["agents"].as_array_mut().unwrap().push(bob);
    });
    let by_node = json!([workflow(json!({ "nodes": [{ "id": "begin", "agentId": "bob" }] }))]);
    let by_step = json!([step_edits("begin", json!({ "frontMatter": { "agentId": "bob" } }))]);
    let whole = text(&Package::read(files.clone()), "steps/begin.md").replace("agentId: ada", "agentId: bob");
    let by_whole_step = json!([step("begin", &whole)]);
    for (operations, said) in [
        (by_node, "step:main/begin: `agentId` is `bob`, as its node says"),
        (by_step, "workflow:main: `begin`: `agentId` is `bob`, as its step says"),
        (by_whole_step, "workflow:main: `begin`: `agentId` is `bob`, as its step says"),
    ] {
        let made = made_of(files.clone(), operations).unwrap();
        assert_eq!(made.implied, [said]);
        let main = made.package.workflow("main").unwrap();
        assert_eq!(main.node("begin").unwrap().agent_id.as_deref(), Some("bob"));
        assert_eq!(main.step("begin").unwrap().document.as_ref().unwrap().field("agentId"), Some("bob"));
    }
    // Who says two things means them, and is told.
    let both = json!([
        workflow(json!({ "nodes": [{ "id": "begin", "agentId": "bob" }] })),
        step_edits("begin", json!({ "frontMatter": { "agentId": "ada", "title": "B" } })),
    ]);
    let made = made_of(files, both).unwrap();
    assert_eq!(made.package.workflow("main").unwrap().node("begin").unwrap().agent_id.as_deref(), Some("bob"));
}

#[test]
fn an_edge_brings_its_transition_and_a_transition_its_edge() {
    let by_edge = made(json!([workflow(json!({
        "edges": [{ "id": "e1", "label": "off" }, { "from": "begin", "to": "end", "label": "nothing to do", "isDefault": true }],
    }))]));
    let begin = |package: &Package| {
        let main = package.workflow("main").unwrap();
        main.step("begin").unwrap().document.as_ref().unwrap().front()["transitions"].clone()
    };
    let expected = json!([
        { "to": "work", "label": "off" },
        { "to": "end", "label": "nothing to do", "isDefault": true },
    ]);
    assert_eq!(begin(&by_edge.package), expected);
    assert_eq!(codes(&by_edge.package), Vec::<String>::new());
    assert_eq!(by_edge.implied, ["step:main/begin: its transitions are the ways out of its node in the graph"]);
    let by_transition = made(json!([step_edits(
        "begin",
        json!({
            "transitions": [{ "to": "work", "label": "off" }, { "to": "end", "label": "nothing to do", "isDefault": true }],
        })
    )]));
    assert_eq!(begin(&by_transition.package), expected);
    assert_eq!(codes(&by_transition.package), Vec::<String>::new());
    let gone = made(json!([
        step_edits(
            "begin",
            json!({ "deleteTransitions": ["work"], "transitions": [{ "to": "choose", "label": "on" }] })
        ),
        workflow(json!({ "deleteNodes": ["work"] })),
    ]));
    assert_eq!(begin(&gone.package), json!([{ "to": "choose", "label": "on" }]));
    let unknown = refused(json!([step_edits("begin", json!({ "deleteTransitions": ["choose"] }))]));
    assert_eq!(unknown[0].0, "TRANSITION_NOT_FOUND");
}

/// The transitions of a step, and the edges from its node.
fn ways(package: &Package, node: &str) -> (Value, Vec<Value>) {
    let main = package.workflow("main").unwrap();
    let told = main.step(node).unwrap().document.as_ref().unwrap().front()["transitions"].clone();
    (told, main.edges.iter().filter(|edge| edge.from == node).map(|edge| edge.value.clone()).collect())
}

#[test]
fn a_transition_of_a_step_that_listed_none_is_the_edge_that_is_there() {
    let made = made(json!([step_edits("work", json!({ "transitions": [{ "to": "choose", "label": "ready" }] }))]));
    let (told, edges) = ways(&made.package, "work");
    assert_eq!(told, json!([{ "to": "choose", "label": "ready" }]));
    assert_eq!(edges, [json!({ "id": "e2", "from": "work", "to": "choose", "label": "ready" })]);
    // It lists the other ways out, too.
    let made = self::made(json!([step_edits("choose", json!({ "transitions": [{ "to": "work", "label": "more" }] }))]));
    let (told, edges) = ways(&made.package, "choose");
    assert_eq!(told, json!([{ "to": "end", "label": "good", "isDefault": true }, { "to": "work", "label": "more" }]));
    assert_eq!((edges.len(), &edges[1]["label"]), (2, &json!("more")));
    assert_eq!(codes(&made.package), Vec::<String>::new());
}

#[test]
fn of_a_way_only_what_is_set_is_said_on_the_other_side() {
    let mut files = small::files();
    small::edit(&mut files, "workflow.graph.json", |graph| graph["edges"][0]["conditionText"] = json!("in the graph"));
    small::replace(&mut files, "steps/begin.md", "label: go\n", "label: go\n    conditionText: in the step\n");
    let by_edge = json!([workflow(json!({ "edges": [{ "id": "e1", "label": "off" }] }))]);
    let by_step = json!([step_edits("begin", json!({ "transitions": [{ "to": "work", "label": "off" }] }))]);
    for operations in [by_edge, by_step] {
        let made = made_of(files.clone(), operations).unwrap();
        let (told, edges) = ways(&made.package, "begin");
        assert_eq!(told, json!([{ "to": "work", "label": "off", "conditionText": "in the step" }]));
        assert_eq!((&edges[0]["label"], &edges[0]["conditionText"]), (&json!("off"), &json!("in the graph")));
        assert_eq!(edges.len(), 1);
    }
}

#[test]
fn an_asset_with_spaces_or_unicode_in_its_name_is_one_like_others() {
    for name in ["assets/Stil & Töne (2).md", "assets/日本語.md"] {
        let mut files = small::files();
        files.insert(name.to_owned(), b"See `assets/guide.md`.\n".to_vec());
        let edit =
            upsert("asset", json!({ "path": name }), json!({ "textEdits": [{ "find": "See", "replace": "Read" }] }));
        let made = made_of(files.clone(), json!([edit])).unwrap();
        assert_eq!(text(&made.package, name), "Read `assets/guide.md`.\n");
        let rename = |from: &str, to: &str| {
            let mut set = set(json!([]));
            set["extensions"] = json!({ "rewriteReferences": true, "renames": [{ "from": from, "to": to }] });
            made_of_set(files.clone(), &set)
        };
        let made = rename("asset:assets/guide.md", "asset:assets/rules.md").unwrap();
        assert_eq!(text(&made.package, name), "See `assets/rules.md`.\n");
        let made = rename(&format!("asset:{name}"), "asset:assets/style.md").unwrap();
        assert_eq!(text(&made.package, "assets/style.md"), "See `assets/guide.md`.\n");
        let new = upsert("asset", json!({ "path": format!("{name}.txt") }), json!({ "content": "new\n" }));
        assert_eq!(codes(&made_of(files.clone(), json!([new])).unwrap().package), Vec::<String>::new());
    }
}

#[test]
fn small_edits_are_contract_1_1_and_not_beside_the_whole() {
    let edits = json!([step_edits("work", json!({ "textEdits": [{ "find": "a", "replace": "b" }] }))]);
    let mut old = set(edits);
    old["schemaVersion"] = json!("1.0");
    let errors = parse(&old).unwrap_err().errors;
    assert_eq!((errors[0].code.as_str(), errors[0].path.as_str()), ("SCHEMA_VERSION_OLD", "schemaVersion"));
    for payload in [
        json!({ "step_markdown": "a", "textEdits": [{ "find": "a", "replace": "b" }] }),
        json!({ "step_markdown": "a", "frontMatter": { "title": "b" } }),
    ] {
        assert_eq!(parse(&set(json!([step_edits("work", payload)]))).unwrap_err().errors[0].code, "PAYLOAD_MIXED");
    }
    let both = json!({ "graph_json": {}, "nodes": [{ "id": "a" }] });
    assert_eq!(parse(&set(json!([workflow(both)]))).unwrap_err().errors[0].code, "PAYLOAD_MIXED");
    // The one text as a whole, and edits of the other.
    let one = json!({ "workflow_md": "---\n---\n", "nodes": [{ "id": "a" }] });
    assert!(parse(&set(json!([workflow(one)]))).is_ok());
    // A set of the frozen contract is taken as it stands.
    let package = Package::read(small::files());
    let mut graph_only = small::graph();
    graph_only["nodes"][0]["agentId"] = json!("bob");
    let mut frozen = set(json!([graph(graph_only), asset("assets/x.md", "x")]));
    frozen["schemaVersion"] = json!("1.0");
    let before = parse(&frozen).unwrap().set;
    let mut after = before.clone();
    assert_eq!(complete(&package, &mut after, &Redactor::default()), Ok(Vec::new()));
    assert_eq!(before, after);
    assert!(parse(&set(json!([delete("step", json!({ "workflowId": "main", "nodeId": "work" }))]))).is_ok());
}

#[test]
fn what_is_missing_or_not_one_of_several_is_said_in_words() {
    let errors = parse(&set(json!([step_edits("work", json!({}))]))).unwrap_err().errors;
    assert_eq!(
        (errors[0].code.as_str(), errors[0].path.as_str()),
        ("SCHEMA_REQUIRED", "operations[0].payload.step_markdown")
    );
    assert!(errors[0].message.contains("`step_markdown` or `frontMatter`"), "{}", errors[0].message);
    let mut wrong = set(json!([asset("assets/a.md", "a")]));
    wrong["revisions"] = json!({ "assetsRevision": "sha256" });
    let errors = parse(&wrong).unwrap_err().errors;
    assert!(
        errors[0].message.contains("a revision as a read gave it (64 hexadecimal digits)"),
        "{}",
        errors[0].message
    );
}

#[test]
fn an_asset_that_is_there_is_changed_whatever_its_name_is() {
    let name = "assets/why?.md";
    let mut files = small::files();
    files.insert(name.to_owned(), b"Why?\n".to_vec());
    let edit = |edits: Value| upsert("asset", json!({ "path": name }), edits);
    let made = made_of(files, json!([edit(json!({ "textEdits": [{ "find": "Why", "replace": "How" }] }))])).unwrap();
    assert_eq!(text(&made.package, name), "How?\n");
}

#[test]
fn a_type_is_said_by_the_node_and_by_its_step() {
    let by_node = made(json!([workflow(json!({ "nodes": [{ "id": "work", "type": "decision" }] }))]));
    let by_step = made(json!([step_edits("work", json!({ "frontMatter": { "type": "decision" } }))]));
    for made in [by_node, by_step] {
        let main = made.package.workflow("main").unwrap();
        assert_eq!(main.node("work").unwrap().value["type"], "decision");
        assert_eq!(main.step("work").unwrap().document.as_ref().unwrap().field("type"), Some("decision"));
        assert_eq!(codes(&made.package), Vec::<String>::new());
    }
}

#[test]
fn edges_of_a_whole_graph_get_ids_where_they_have_none() {
    let mut whole: Value = serde_json::from_slice(&small::files()["workflow.graph.json"]).unwrap();
    whole["edges"][0].as_object_mut().unwrap().remove("id");
    whole["edges"][1].as_object_mut().unwrap().remove("id");
    whole["edges"][2]["id"] = json!("work--choose");
    let made = made(json!([graph(whole.clone())]));
    let ids: Vec<&Value> = made.package.workflow("main").unwrap().edges.iter().map(|edge| &edge.value["id"]).collect();
    assert_eq!(ids[..3], ["begin--work", "work--choose-2", "work--choose"]);
    assert_eq!(made.implied, ["workflow:main: 2 edges have no id, and get ids that say their ends"]);
    // A set of contract 1.0 stays as it is.
    let mut old = set(json!([graph(whole)]));
    old["schemaVersion"] = json!("1.0");
    let made = made_of_set(small::files(), &old).unwrap();
    assert_eq!(made.package.workflow("main").unwrap().edges[0].value.get("id"), None);
}

#[test]
fn an_edit_that_replaces_a_passage_by_itself_is_refused() {
    let same = json!({ "textEdits": [{ "find": "Say it.", "replace": "Say it." }] });
    assert_eq!(refused(json!([step_edits("work", same)]))[0].0, "TEXT_UNCHANGED");
    let of_agent = json!({ "textEdits": [{ "find": "Ada", "replace": "Ada" }] });
    let agent = upsert("agent", json!({ "agentId": "ada" }), of_agent);
    assert_eq!(refused(json!([agent]))[0].0, "TEXT_UNCHANGED");
}

#[test]
fn a_value_with_marks_of_code_is_told_whole() {
    let mut files = small::files();
    small::edit(&mut files, "workflow.graph.json", |graph| graph["nodes"][1]["title"] = json!("Work"));
    small::replace(&mut files, "steps/work.md", "type: step\n", "type: step\ntitle: Work\n");
    let edits = workflow(json!({ "nodes": [{ "id": "work", "title": "Run `make`" }] }));
    let made = made_of(files, json!([edits])).unwrap();
    assert_eq!(made.implied, ["step:main/work: `title` is \"Run `make`\", as its node says"]);
}

#[test]
fn no_edit_of_an_agent_or_a_text_joins_onto_a_secret() {
    let token = format!("ghp_{}", "a1".repeat(18));
    let mut files = small::files();
    let prompt = format!("Call it with {token} (fake).");
    small::edit(&mut files, "agents.json", |agents| agents["agents"][0]["systemPrompt"] = json!(prompt));
    files.insert("assets/api.md".to_owned(), prompt.into_bytes());
    let edit = |find: &str, replace: &str| {
        let edits = json!({ "textEdits": [{ "find": find, "replace": replace }] });
        [
            upsert("agent", json!({ "agentId": "ada" }), edits.clone()),
            upsert("asset", json!({ "path": "assets/api.md" }), edits),
        ]
    };
    for (find, replace, joins) in [("Call it with ", "Call it with x", true), ("Call it", "Never call it", false)] {
        for operation in edit(find, replace) {
            let codes = made_of(files.clone(), json!([operation]))
                .map(|_| String::new())
                .unwrap_or_else(|found| found[0].code.clone());
            assert_eq!(codes == "SECRET_UNCOVERED", joins, "{find}: {codes}");
        }
    }
}
