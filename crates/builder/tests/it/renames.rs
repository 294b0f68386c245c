//! Renames of contract 1.1: said alone, beside other changes, and in each of the ways that they may be written.

use serde_json::{Value, json};
use toolhost_builder::change::{parse, renames};
use toolhost_builder::refs::Object;
use toolhost_builder::{Files, Package};

use crate::change::{delete, upsert};
use crate::small;
use crate::small_edits::{Made, codes, made_of_set, set, step_edits, text, workflow};

fn renamed_in(files: Files, (from, to): (&str, &str), operations: Value) -> Result<Made, Vec<(String, String)>> {
    let mut set = set(operations);
    set["extensions"] = json!({ "rewriteReferences": true, "renames": [{ "from": from, "to": to }] });
    made_of_set(files, &set).map_err(|found| found.into_iter().map(|one| (one.code, one.message)).collect())
}

fn renamed(names: (&str, &str), operations: Value) -> Made {
    renamed_in(small::files(), names, operations).unwrap()
}

/// A node with a loop into itself, edges with data, a transition from elsewhere, and the entry.
fn busy() -> Files {
    let mut files = small::files();
    small::edit(&mut files, "workflow.graph.json", |graph| {
        graph["entryNodeId"] = json!("work");
        graph["edges"][3]["conditionExpr"] = json!({ "var": "topic" });
        let again =
            json!({ "id": "e5", "from": "work", "to": "work", "label": "once more", "conditionText": "not done" });
        graph["edges"].as_array_mut().unwrap().push(again);
    });
    small::replace(
        &mut files,
        "steps/work.md",
        "inputs: [text]\n",
        "inputs: [text] # kept\ntransitions:\n  - to: work # itself\n    label: once more\n    conditionText: not done\n  - to: choose\n    label: done\n",
    );
    let log = "currentNodeId: work\ndecisionLog:\n  - {from: begin, to: work, label: \"work\"}\n  - from: work # the same\n    to: work\n    label: again\n";
    small::replace(&mut files, "workflow.md", "currentNodeId: work\n", log);
    files
}

const STEP: (&str, &str) = ("step:main/work", "step:main/labour");

#[test]
fn renames_of_neighbours_do_not_depend_on_their_order() {
    let before = codes(&Package::read(busy()));
    for order in [["work", "begin"], ["begin", "work"], ["choose", "work"], ["work", "choose"], ["end", "choose"]] {
        let mut all = set(json!([]));
        let renames = order.map(|id| json!({ "from": format!("step:main/{id}"), "to": format!("step:main/new-{id}") }));
        all["extensions"] = json!({ "renames": renames });
        let made = made_of_set(busy(), &all).unwrap();
        assert_eq!(codes(&made.package), before, "{order:?}");
        for id in order {
            assert!(made.package.files().contains_key(&format!("steps/new-{id}.md")), "{order:?}");
            assert!(!made.package.files().contains_key(&format!("steps/{id}.md")), "{order:?}");
        }
    }
}

#[test]
fn a_node_is_renamed_in_place_however_the_set_says_it() {
    let text_of = |name: &str| {
        format!(
            "---\nschemaVersion: \"1.1\"\nnodeId: {name}\ntype: step\ninputs: [text] # kept\ntransitions:\n  - to: {name} # itself\n    \
             label: once more\n    conditionText: not done\n  - to: choose\n    label: done\nsetsVariables: [result]\n---\n\n## Goal\n\nSay \
             it.\n\n## Instructions\n\n1. See assets/guide.md.\n\n## Completion (Document-as-State)\n\nIt is said.\n"
        )
    };
    let before = Package::read(busy());
    assert_eq!(text(&before, "steps/work.md"), text_of("work"), "the premise");
    let whole = || step_edits("labour", json!({ "step_markdown": text_of("labour") }));
    let gone = || delete("step", json!({ "workflowId": "main", "nodeId": "work" }));
    let node = || json!([{ "id": "labour", "type": "step", "file": "steps/labour.md" }]);
    for operations in [
        json!([]),
        json!([gone()]),
        json!([gone(), whole()]),
        json!([whole()]),
        json!([gone(), step_edits("labour", json!({}))]),
        json!([gone(), whole(), workflow(json!({ "nodes": node() }))]),
        json!([whole(), workflow(json!({ "nodes": node(), "deleteNodes": ["work"] }))]),
        json!([gone(), whole(), workflow(json!({ "nodes": [{ "id": "labour" }], "deleteNodes": ["work"] }))]),
    ] {
        let made = renamed_in(busy(), STEP, operations.clone()).unwrap();
        let expected = text(&before, "workflow.graph.json")
            .replace("\"work\"", "\"labour\"")
            .replace("steps/work", "steps/labour");
        assert_eq!(text(&made.package, "workflow.graph.json"), expected, "{operations:#}");
        assert_eq!(text(&made.package, "steps/labour.md"), text_of("labour"), "{operations:#}");
        assert!(!made.package.files().contains_key("steps/work.md"));
        assert_eq!(codes(&made.package), codes(&before));
        let begin = text(&before, "steps/begin.md").replace("to: work", "to: labour");
        assert_eq!(text(&made.package, "steps/begin.md"), begin);
        let state = "currentNodeId: labour\ndecisionLog:\n  - {from: begin, to: labour, label: \"work\"}\n  - from: labour # the same\n    to: labour\n    label: again\n";
        assert!(text(&made.package, "workflow.md").contains(state), "{}", text(&made.package, "workflow.md"));
        for said in [
            "workflow:main: names `step:main/labour` where it named `step:main/work`",
            "workflow:main: the file of `labour` is `steps/labour.md`",
            "step:main/begin: names `step:main/labour` where it named `step:main/work`",
            "step:main/work: goes: it is `step:main/labour` now",
        ] {
            assert!(made.implied.iter().any(|implied| implied == said), "{said}: {:#?}", made.implied);
        }
    }
}

#[test]
fn a_rename_goes_with_other_changes_of_the_same_node() {
    let made = renamed_in(
        busy(),
        STEP,
        json!([
            workflow(json!({
                "nodes": [{ "id": "work", "title": "Labour" }],
                "edges": [{ "from": "labour", "to": "end", "label": "give up" }],
                "deleteEdges": [{ "from": "work", "to": "work" }],
            })),
            step_edits("work", json!({ "textEdits": [{ "find": "Say it.", "replace": "Say it twice." }] })),
        ]),
    )
    .unwrap();
    let main = made.package.workflow("main").unwrap();
    assert_eq!(main.node("labour").unwrap().value["title"], json!("Labour"));
    assert!(main.node("work").is_none() && main.edges.iter().all(|edge| edge.from != "work" && edge.to != "work"));
    assert_eq!(main.edges.iter().filter(|edge| edge.from == "labour").count(), 2);
    let step = text(&made.package, "steps/labour.md");
    assert!(step.contains("Say it twice.") && step.contains("to: end\n    label: give up"), "{step}");
    assert!(!step.contains("once more"), "{step}");
}

#[test]
fn a_file_that_is_not_called_for_its_node_keeps_its_name() {
    let mut files = small::files();
    let bytes = files.remove("steps/work.md").unwrap();
    files.insert("steps/02.md".to_owned(), bytes);
    small::edit(&mut files, "workflow.graph.json", |graph| graph["nodes"][1]["file"] = json!("steps/02.md"));
    let made = renamed_in(files, STEP, json!([])).unwrap();
    assert_eq!(made.package.workflow("main").unwrap().node("labour").unwrap().file.as_deref(), Some("steps/02.md"));
    assert!(text(&made.package, "steps/02.md").contains("nodeId: labour\n"));
    assert_eq!(codes(&made.package), Vec::<String>::new());
}

#[test]
fn an_asset_and_an_agent_keep_their_content_under_another_name() {
    let names = ("asset:assets/guide.md", "asset:assets/voice.md");
    let target = || json!({ "path": "assets/voice.md" });
    let gone = || delete("asset", json!({ "path": "assets/guide.md" }));
    let edit = json!({ "textEdits": [{ "find": "# Guide", "replace": "# Voice" }] });
    for (operations, content) in [
        (json!([]), "# Guide\n"),
        (json!([gone(), upsert("asset", target(), json!({}))]), "# Guide\n"),
        (json!([upsert("asset", target(), edit)]), "# Voice\n"),
        (json!([gone(), upsert("asset", target(), json!({ "content": "# New\n" }))]), "# New\n"),
    ] {
        let made = renamed(names, operations);
        assert_eq!(text(&made.package, "assets/voice.md"), content);
        assert!(made.package.files().values().all(|bytes| !String::from_utf8_lossy(bytes).contains("assets/guide.md")));
        assert_eq!(codes(&made.package), Vec::<String>::new());
        let follows = "agent:ada: names `asset:assets/voice.md` where it named `asset:assets/guide.md`";
        assert!(made.implied.iter().any(|said| said == follows), "{:#?}", made.implied);
    }
    let before = Package::read(small::files()).agent("ada").unwrap().value.clone();
    let edit = json!({ "agent_fields": { "persona": { "role": "edits" } } });
    for (operations, role) in
        [(json!([]), "writes"), (json!([upsert("agent", json!({ "agentId": "eve" }), edit)]), "edits")]
    {
        let made = renamed(("agent:ada", "agent:eve"), operations);
        let agent = &made.package.agent("eve").unwrap().value;
        assert_eq!((&agent["persona"]["role"], &agent["systemPrompt"]), (&json!(role), &before["systemPrompt"]));
        assert!(made.package.agent("ada").is_none());
        assert_eq!(made.package.workflow("main").unwrap().node("begin").unwrap().agent_id.as_deref(), Some("eve"));
        assert_eq!(codes(&made.package), Vec::<String>::new());
        assert!(made.objects.contains(&"step:main/begin".to_owned()), "{:?}", made.objects);
    }
}

#[test]
fn a_rename_that_cannot_be_says_what_is_in_its_way() {
    let code = |names: (&str, &str), operations: Value| {
        renamed_in(small::files(), names, operations)
            .err()
            .unwrap()
            .into_iter()
            .map(|(code, _)| code)
            .collect::<Vec<_>>()
    };
    assert_eq!(code(("step:main/wrok", "step:main/labour"), json!([])), ["TARGET_NOT_FOUND"]);
    assert_eq!(code(("step:main/work", "step:main/end"), json!([])), ["RENAME_TAKEN"]);
    for (to, expected) in [
        ("asset:notes/x.md", "ASSET_PATH"),
        ("asset:assets/gu?ide.md", "ASSET_PATH"),
        ("asset:assets/guide.exe", "ASSET_EXTENSION"),
    ] {
        assert_eq!(code(("asset:assets/guide.md", to), json!([])), [expected], "{to}");
    }
    assert_eq!(code(("agent:ada", "agent:Ada Lovelace"), json!([])), ["SCHEMA_PATTERN"]);
    assert_eq!(code(("agent:ada", &format!("agent:{}", "a".repeat(300))), json!([])), ["ID_TOO_LONG"]);
    assert_eq!(code(("step:main/work", "step:main/lab our"), json!([])), ["SCHEMA_PATTERN"]);
    assert_eq!(code(("step:main/work", "step:main/"), json!([])), ["SCHEMA_PATTERN"]);
    // Contract 1.0 means what it meant: the delete and the upsert are written out.
    let mut old = set(json!([]));
    old["schemaVersion"] = json!("1.0");
    old["extensions"] = json!({ "rewriteReferences": true, "renames": [{ "from": STEP.0, "to": STEP.1 }] });
    assert_eq!(parse(&old).unwrap_err().errors[0].code, "SCHEMA_MIN_ITEMS");
}

#[test]
fn nothing_is_left_to_follow_after_a_rename() {
    let made = renamed(STEP, json!([]));
    let of = |node: &str| Object::Step { workflow: "main".to_owned(), node: node.to_owned() };
    assert_eq!(renames(&made.package, &of("work"), &of("labour")), []);
}

#[test]
fn a_mention_gets_the_quotes_that_the_new_name_needs() {
    let names = ("asset:assets/guide.md", "asset:assets/the guide, new.md");
    let mut files = small::files();
    files.insert("assets/index.md".to_owned(), b"[Guide](guide.md), see [it](../assets/guide.md).\n".to_vec());
    let made = renamed_in(files, names, json!([])).unwrap();
    assert_eq!(codes(&made.package), Vec::<String>::new());
    assert!(text(&made.package, "steps/work.md").contains("1. See `assets/the guide, new.md`.\n"));
    assert!(text(&made.package, "assets/index.md").contains("[it](<../assets/the guide, new.md>)"));
    assert!(text(&made.package, "agents.json").contains("Follow `assets/the guide, new.md`."));
    // A field that is the path alone is one afterwards, too.
    let mut files = small::files();
    small::replace(&mut files, "steps/work.md", "inputs: [text]\n", "inputs: [text]\ntitle: assets/guide.md\n");
    small::edit(&mut files, "agents.json", |agents| {
        agents["agents"][0]["menu"] = json!([{ "trigger": "x", "description": "x", "exec": "assets/guide.md" }]);
    });
    let made = renamed_in(files, names, json!([])).unwrap();
    assert_eq!(codes(&made.package), Vec::<String>::new());
    assert_eq!(made.package.agent("ada").unwrap().value["menu"][0]["exec"], "assets/the guide, new.md");
    let front = made.package.workflow("main").unwrap().step("work").unwrap().document.clone().unwrap();
    assert_eq!(front.field("title"), Some("assets/the guide, new.md"));
    // And is followed when it is renamed again.
    let back = renamed_in(made.package.files().clone(), (names.1, names.0), json!([])).unwrap();
    assert_eq!(back.package.agent("ada").unwrap().value["menu"][0]["exec"], "assets/guide.md");
    assert!(text(&back.package, "steps/work.md").contains("title: assets/guide.md\n"));
    // And one in a sentence of a field.
    let mut files = small::files();
    small::replace(&mut files, "workflow.md", "  topic: tea\n", "  topic: see assets/guide.md first\n");
    small::replace(
        &mut files,
        "steps/begin.md",
        "    label: go\n",
        "    label: go\n    conditionText: \"clear (assets/guide.md)\"\n",
    );
    small::edit(&mut files, "workflow.graph.json", |graph| {
        graph["edges"][0]["conditionText"] = json!("clear (assets/guide.md)");
    });
    let made = renamed_in(files, names, json!([])).unwrap();
    assert_eq!(codes(&made.package), Vec::<String>::new());
    assert!(text(&made.package, "workflow.md").contains("  topic: see `assets/the guide, new.md` first\n"));
    assert!(
        text(&made.package, "steps/begin.md").contains("    conditionText: \"clear (`assets/the guide, new.md`)\"\n")
    );
    // Where quotes would mean something else nothing follows, and nothing says that it did.
    let mut files = small::files();
    files.insert("assets/data.yaml".to_owned(), b"file: assets/guide.md\n".to_vec());
    let made = renamed_in(files, names, json!([])).unwrap();
    assert_eq!(codes(&made.package), ["ASSET_NOT_FOUND"]);
    assert!(!made.objects.contains(&"asset:assets/data.yaml".to_owned()), "{:?}", made.objects);
}

#[test]
fn what_a_graph_says_in_words_follows_the_rename_of_an_asset() {
    let mut files = small::files();
    small::edit(&mut files, "workflow.graph.json", |graph| {
        graph["nodes"][1]["description"] = json!("Works as assets/guide.md says.");
        graph["edges"][3]["conditionText"] = json!("not as assets/guide.md says");
    });
    let before = text(&Package::read(files.clone()), "workflow.graph.json").to_owned();
    let made = renamed_in(files, ("asset:assets/guide.md", "asset:assets/voice.md"), json!([])).unwrap();
    assert_eq!(codes(&made.package), Vec::<String>::new());
    assert_eq!(text(&made.package, "workflow.graph.json"), before.replace("guide.md", "voice.md"));
}

#[test]
fn a_rename_does_not_stop_at_a_file_that_a_set_cannot_write() {
    let mut files = small::files();
    files.insert("assets/page.html".to_owned(), b"<a href=\"assets/guide.md\">\n".to_vec());
    files.insert("assets/LICENSE".to_owned(), b"assets/guide.md\n".to_vec());
    let made = renamed_in(files, ("asset:assets/guide.md", "asset:assets/voice.md"), json!([])).unwrap();
    assert_eq!(codes(&made.package), Vec::<String>::new());
    assert_eq!(text(&made.package, "assets/page.html"), "<a href=\"assets/guide.md\">\n");
    assert!(text(&made.package, "steps/work.md").contains("assets/voice.md"));
}
