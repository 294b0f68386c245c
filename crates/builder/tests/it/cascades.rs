//! One mistake has one finding, however many places feel it. The packages are the small one and the one that we show to people.

use serde_json::{Value, json};
use toolhost_builder::{Files, Finding, Severity};

use crate::small::{edit, files as small, findings, replace};

const GRAPH: &str = "workflow.graph.json";

fn sample(path: &str, change: impl FnOnce(&mut Value)) -> Files {
    let mut files = crate::sample::files();
    edit(&mut files, path, change);
    files
}

fn without(mut files: Files, path: &str) -> Files {
    files.remove(path).unwrap();
    files
}

fn small_text(path: &str, from: &str, to: &str) -> Files {
    let mut files = small();
    replace(&mut files, path, from, to);
    files
}

/// The only finding: its code, file, line and column; and a part of its message and of its hint.
fn check(what: &str, files: Files, place: &str, message: &str, hint: &str) {
    let found = findings(files);
    assert_eq!(found.len(), 1, "{what}: {found:#?}");
    let Finding { severity, code, file, line, column, message: said, hint: told, .. } = &found[0];
    let at = |number: &Option<usize>| number.map_or_else(String::new, |number| format!(":{number}"));
    let kind = if *severity == Severity::Error { "" } else { "warning " };
    assert_eq!(format!("{kind}{code} {file}{}{}", at(line), at(column)), place, "{what}");
    assert!(said.contains(message), "{what}: {said}");
    assert!(told.contains(hint), "{what}: {told}");
}

#[test]
fn a_name_that_is_nowhere_is_told_once_with_the_places_that_name_it() {
    let renamed = sample("agents.json", |agents| agents["agents"][0]["id"] = json!("nobody"));
    let places = "`workflow.graph.json:86`, `workflow.graph.json:179` name it, too";
    check("an agent renamed", renamed, "AGENT_NOT_FOUND workflow.graph.json:11:7", places, "write `nobody`");
    let gone = sample("agents.json", |agents| drop(agents["agents"].as_array_mut().unwrap().remove(0)));
    check("an agent gone", gone, "AGENT_NOT_FOUND workflow.graph.json:11:7", places, "add the agent");
    let gone = without(crate::sample::files(), "workflow.md");
    check("a document gone", gone, "FILE_MISSING bmad.json:9:5", "`bmad.json:17` names it, too", "add the file");
    let gone = without(crate::sample::files(), GRAPH);
    check("a graph gone", gone, "FILE_MISSING bmad.json:10:5", "`bmad.json:18` names it, too", "add the file");
    let nobody = sample(GRAPH, |graph| graph["nodes"][0]["agentId"] = json!("nobody"));
    check("an agent misspelt", nobody, "AGENT_NOT_FOUND workflow.graph.json:11:7", "`nobody`", "add the agent");
}

#[test]
fn an_entry_that_differs_from_the_list_of_workflows_is_told_once() {
    for (name, place, meant) in [("graph", "10:5", GRAPH), ("workflow", "9:5", "workflow.md")] {
        let files = sample("bmad.json", |manifest| manifest["entry"][name] = json!(format!("other{}", &meant[8..])));
        check(
            name,
            files,
            &format!("FILE_MISSING bmad.json:{place}"),
            "there is no file",
            &format!("write `{meant}`, as"),
        );
    }
    let files = sample("bmad.json", |manifest| manifest["workflows"] = json!({}));
    check("no list", files, "SCHEMA_TYPE bmad.json:14:3", "expected array", "");
}

#[test]
fn an_edge_that_leads_nowhere_is_told_once_and_the_step_says_what_was_meant() {
    let to = sample(GRAPH, |graph| graph["edges"][2]["to"] = json!("nowhere"));
    check(
        "to",
        to,
        "EDGE_NODE_MISSING workflow.graph.json:208:7",
        "`nowhere`",
        "write `gather-views`, as the step says",
    );
    let from = sample(GRAPH, |graph| graph["edges"][2]["from"] = json!("nowhere"));
    check("from", from, "EDGE_NODE_MISSING workflow.graph.json:207:7", "`nowhere`", "write `plan`, as the step says");
    let gone = sample(GRAPH, |graph| drop(graph["edges"].as_array_mut().unwrap().remove(3)));
    check("gone", gone, "DEAD_END workflow.graph.json:35:5", "not set yet", "add the edge to `gather-views`");
}

#[test]
fn a_node_that_is_gone_or_there_twice_is_told_once() {
    let gone = sample(GRAPH, |graph| drop(graph["nodes"].as_array_mut().unwrap().remove(3)));
    let places = "`workflow.graph.json:208`, `workflow.graph.json:213` name it, too";
    let hint = "add the node `gather-views` with its step `steps/gather-views.md`";
    check("gone", gone, "EDGE_NODE_MISSING workflow.graph.json:193:7", places, hint);
    let renamed = sample(GRAPH, |graph| graph["nodes"][3]["id"] = json!("other"));
    let place = "STEP_NODE_MISMATCH steps/gather-views.md:3:1";
    check("renamed", renamed, place, "3 other places name `gather-views`", "write `gather-views`");
    let twice = sample(GRAPH, |graph| {
        let node = graph["nodes"][3].clone();
        graph["nodes"].as_array_mut().unwrap().push(node);
    });
    check("twice", twice, "ID_DUPLICATE workflow.graph.json:190:7", "there twice", "another id");
    let twice = sample(GRAPH, |graph| graph["nodes"][3]["id"] = graph["nodes"][0]["id"].clone());
    check("an id twice", twice, "ID_DUPLICATE workflow.graph.json:51:7", "there twice", "another id");
}

#[test]
fn a_flag_that_is_none_is_told_once() {
    let files = sample(GRAPH, |graph| graph["edges"][1]["isDefault"] = json!("yes"));
    check("yes", files, "SCHEMA_TYPE workflow.graph.json:202:7", "expected boolean", "");
}

#[test]
fn a_type_that_is_none_in_a_node_and_in_its_step_is_told_once() {
    let mut files = small();
    edit(&mut files, GRAPH, |graph| graph["nodes"][1]["type"] = json!("stepp"));
    replace(&mut files, "steps/work.md", "type: step", "type: stepp");
    check("both", files, "SCHEMA_ENUM workflow.graph.json:16:7", "`/nodes/1/type`", "");
}

#[test]
fn a_decision_of_a_node_that_is_none_is_told() {
    let log = "currentNodeId: work\ndecisionLog:\n  - {from: begin, to: nobody, label: x}\n";
    let files = small_text("workflow.md", "currentNodeId: work\n", log);
    check("a decision", files, "warning STATE_NODE_MISSING workflow.md:7:19", "`nobody`", "state");
}

#[test]
fn a_name_with_accents_in_another_encoding_is_told_as_that() {
    let mut files = small_text("steps/work.md", "assets/guide.md", "assets/größe.md");
    files.insert("assets/gro\u{308}ße.md".to_owned(), b"# x\n".to_vec());
    let place = "ASSET_NOT_FOUND steps/work.md:15:8";
    check("accents", files, place, "differs in how its accents are encoded", "rename the asset");
}

#[test]
fn names_that_windows_has_written_are_one_mistake() {
    let files = crate::sample::files().into_iter().map(|(path, bytes)| (path.replace('/', "\\"), bytes)).collect();
    let place = "PATH_UNSAFE assets\\brief-template.md:1:1";
    check("an archive", files, place, "17 other names of files have one, too", "write `/` between folders");
}

#[test]
fn what_a_person_does_not_see_is_found_with_its_place() {
    let turned = small_text("assets/guide.md", "# Guide", "# Guide\n\nby\u{202e} x");
    check("turned", turned, "warning HIDDEN_CHARACTERS assets/guide.md:3:3", "U+202E", "take it out");
    let mut agents = small();
    edit(&mut agents, "agents.json", |agents| agents["agents"][0]["persona"]["role"] = json!("wri\u{200b}tes"));
    check("no width", agents, "warning HIDDEN_CHARACTERS agents.json:12:9", "U+200B", "take it out");
    let step = small_text("steps/work.md", "Say it.", "Say\u{1b}[2J it.");
    check("a command", step, "warning HIDDEN_CHARACTERS steps/work.md:11:4", "U+001B", "take it out");
}

fn again(list: &'static str, index: usize) -> impl Fn(&mut Value) {
    move |value| {
        let item = value[list][index].clone();
        value[list].as_array_mut().unwrap().push(item);
    }
}

fn misnamed(path: &str, at: &'static str, from: &'static str, to: &'static str) -> Files {
    sample(path, |value| {
        let fields = value.pointer_mut(at).unwrap().as_object_mut().unwrap();
        let said = fields.remove(from).unwrap();
        fields.insert(to.to_owned(), said);
    })
}

#[test]
fn an_edge_that_is_there_twice_or_leads_back_is_told_once() {
    let place = "ID_DUPLICATE workflow.graph.json:323:7";
    check("twice", sample(GRAPH, again("edges", 2)), place, "there twice", "another id");
    let back = sample(GRAPH, |graph| graph["edges"][0]["to"] = json!("scope"));
    let place = "CYCLE_MISSING_DECISION workflow.graph.json:5:5";
    check("back", back, place, "no decision and no way out", "let the edge lead to `plan`, as the step says");
}

#[test]
fn an_edge_that_is_there_twice_under_two_ids_is_told_once() {
    let files = sample(GRAPH, |graph| {
        again("edges", 1)(graph);
        let last = graph["edges"].as_array().unwrap().len() - 1;
        graph["edges"][last]["id"] = json!("one-more");
    });
    let place = "EDGE_DUPLICATE workflow.graph.json:322:5";
    check("two ids", files, place, "`e02` and `one-more` are one way", "take one of them out");
    // Beside an only way, neither is the default: that is an error.
    let only = sample(GRAPH, |graph| {
        again("edges", 3)(graph);
        let last = graph["edges"].as_array().unwrap().len() - 1;
        graph["edges"][last]["id"] = json!("one-more");
    });
    check(
        "an only way",
        only,
        "EDGE_DUPLICATE workflow.graph.json:322:5",
        "`e04` and `one-more`",
        "take one of them out",
    );
}

#[test]
fn a_loop_inside_of_a_larger_one_needs_a_decision_of_its_own() {
    let mut files = sample(GRAPH, |graph| {
        let back = json!({ "id": "back", "from": "gather-views", "to": "gather-facts", "label": "again", "conditionText": "x" });
        graph["edges"].as_array_mut().unwrap().push(back);
        graph["edges"][4]["isDefault"] = json!(true);
    });
    let both = "transitions:\n  - to: gather-facts\n    label: again\n    conditionText: x\n  - to: evidence\n    isDefault: true\n";
    replace(&mut files, "steps/gather-views.md", "transitions:\n  - to: evidence\n", both);
    let place = "CYCLE_MISSING_DECISION workflow.graph.json:35:5";
    check(
        "a loop",
        files,
        place,
        "the loop of gather-facts, gather-views has no decision",
        "make one of them a decision",
    );
}

#[test]
fn what_follows_from_a_field_that_cannot_be_read_is_not_told() {
    let step = |path: &str, from: &str, to: &str| {
        let mut files = crate::sample::files();
        replace(&mut files, path, from, to);
        files
    };
    let named = step("steps/draft.md", "nodeId: draft", "node_id: draft");
    check("a name", named, "SCHEMA_REQUIRED steps/draft.md:1:1", "`nodeId` is missing", "in the place of `node_id`");
    let default = step("steps/plan.md", "    isDefault: true", "    default: true");
    check("a default", default, "SCHEMA_UNKNOWN_FIELD steps/plan.md:12:5", "`default`", "write `isDefault`");
    let yes = step("steps/plan.md", "    isDefault: true", "    isDefault: \"yes\"");
    check("no truth", yes, "SCHEMA_TYPE steps/plan.md:12:5", "expected boolean", "change the value");
    let join = sample(GRAPH, |graph| graph["nodes"][4]["type"] = json!("join"));
    check("a type", join, "SCHEMA_ENUM workflow.graph.json:67:7", "join", "write `merge`");
    let end = sample(GRAPH, |graph| {
        let edge = json!({ "id": "x", "from": "deliver", "to": "summary", "label": "x" });
        graph["edges"].as_array_mut().unwrap().push(edge);
    });
    check("an end", end, "END_WITH_EDGE workflow.graph.json:324:7", "`deliver` is an end", "take the edge out");
}

#[test]
fn a_variable_that_nothing_sets_is_told_once_with_the_places_that_read_it() {
    let step = |path: &str, from: &str, to: &str| {
        let mut files = crate::sample::files();
        replace(&mut files, path, from, to);
        files
    };
    let typo = step("steps/draft.md", "inputs: [outline,", "inputs: [outlines,");
    check("an input", typo, "VARIABLE_NEVER_SET steps/draft.md:7:10", "`outlines`", "write `outline`");
    let gone = step("workflow.md", "  max_rounds: 3\n", "");
    let places = "`steps/enough.md:7` names it, too";
    check("two places", gone, "VARIABLE_NEVER_SET workflow.graph.json:268:17", places, "write `round`");
    let vars = step("workflow.md", "variables:\n", "vars:\n");
    check("all", vars, "FIELD_MISSPELT workflow.md:8:1", "`vars`, which has the variables", "write `variables`");
}

#[test]
fn an_entry_with_the_files_of_two_workflows_is_told_once() {
    let mut files = crate::sample::two();
    edit(&mut files, "bmad.json", |manifest| manifest["entry"]["graph"] = json!("returns/workflow.graph.json"));
    let place = "WORKFLOW_FILE_SHARED bmad.json:10:5";
    check("two", files, place, "one file of the workflow `orders`", "write `orders/workflow.graph.json`");
    let dotted = sample("bmad.json", |manifest| manifest["entry"]["workflow"] = json!("./workflow.md"));
    check("a dot", dotted, "PATH_UNSAFE bmad.json:9:5", "`./workflow.md`", "write `workflow.md`, as");
    let listed = sample("bmad.json", |manifest| manifest["workflows"][0]["graph"] = json!("other.graph.json"));
    check(
        "the list",
        listed,
        "FILE_MISSING bmad.json:18:7",
        "other.graph.json",
        "write `workflow.graph.json`, as `/entry`",
    );
}

#[test]
fn a_field_of_a_step_that_nobody_reads_is_told_also_where_the_right_one_is_there() {
    let mut files = crate::sample::files();
    replace(&mut files, "steps/plan.md", "nodeId: plan\n", "nodeId: plan\nagentID: lead\n");
    let place = "warning FIELD_MISSPELT steps/plan.md:4:1";
    check("an agent", files, place, "`agentID`, and `agentId` is there, too", "write `agentId`");
}

#[test]
fn an_asset_whose_name_is_written_in_another_case_is_told_with_the_name_it_has() {
    let files = small_text("steps/work.md", "assets/guide.md", "assets/Guide.md");
    check("case", files, "ASSET_NOT_FOUND steps/work.md:15:8", "differs in case", "write `assets/guide.md` here");
    let files = small_text("steps/work.md", "Say it.", "Say it. <!-- was: assets/gone.md -->");
    check("a comment", files, "warning ASSET_NOT_FOUND steps/work.md:11:19", "`assets/gone.md`", "add the asset");
}

#[test]
fn a_loop_that_is_not_reached_is_told_as_that() {
    let files = sample(GRAPH, |graph| {
        let list = |name: &str| graph[name].as_array().unwrap().clone();
        let (mut nodes, mut edges) = (list("nodes"), list("edges"));
        for (id, to) in [("la", "lb"), ("lb", "la")] {
            nodes.push(json!({ "id": id, "type": "step", "file": format!("steps/{id}.md") }));
            edges.push(json!({ "id": format!("e-{id}"), "from": id, "to": to, "label": "next" }));
        }
        (graph["nodes"], graph["edges"]) = (json!(nodes), json!(edges));
    });
    let found: Vec<Finding> = findings(files).into_iter().filter(|finding| finding.code != "FILE_MISSING").collect();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].code, "CYCLE_MISSING_DECISION");
    assert!(found[0].message.contains("no way leads to it from the entry"), "{found:?}");
}

#[test]
fn a_default_that_the_graph_has_otherwise_than_the_step_is_told_once() {
    let none = sample(GRAPH, |graph| drop(graph["edges"][1].as_object_mut().unwrap().remove("isDefault")));
    let hint = "make the edge to `gather-facts` the default, as the step says";
    check("none", none, "DEFAULT_EDGE_MISSING workflow.graph.json:21:5", "none is the default", hint);
    let both = sample(GRAPH, |graph| graph["edges"][2]["isDefault"] = json!(true));
    let hint = "let only the edge to `gather-facts` be the default, as the step says";
    check("both", both, "DEFAULT_EDGE_DUPLICATE workflow.graph.json:219:7", "more than one edge", hint);
}

#[test]
fn a_name_of_a_field_that_is_misspelt_is_told_once() {
    let misspelt = |path: &str, at: &'static str, from: &'static str, to: &'static str, line: &str| {
        let message = format!("a field `{to}` that nobody reads");
        let hint = format!("write `{from}` if that is meant; else take it out");
        check(to, misnamed(path, at, from, to), &format!("SCHEMA_UNKNOWN_FIELD {path}:{line}"), &message, &hint);
    };
    misspelt(GRAPH, "/edges/2", "label", "lable", "218:7");
    misspelt(GRAPH, "/nodes/2", "agentId", "agentID", "48:7");
    misspelt(GRAPH, "/nodes/2", "file", "fille", "48:7");
    misspelt("bmad.json", "", "version", "verison", "31:3");
    misspelt("bmad.json", "", "workflows", "workflow", "18:3");
    misspelt("agents.json", "/agents/0", "persona", "personna", "32:7");
}

#[test]
fn an_id_that_is_none_or_missing_is_told_once_with_the_one_that_was_meant() {
    let blank = sample(GRAPH, |graph| graph["nodes"][2]["id"] = json!("the plan"));
    let place = "SCHEMA_PATTERN workflow.graph.json:36:7";
    check("a blank", blank, place, "expected an id", "write `gather-facts`, as its step says");
    let twice = sample("agents.json", |agents| agents["agents"][1]["id"] = json!("lead"));
    check(
        "twice",
        twice,
        "ID_DUPLICATE agents.json:44:7",
        "there twice",
        "write `scout`, which is named and not there",
    );
    let gone = sample("agents.json", |agents| drop(agents["agents"][1].as_object_mut().unwrap().remove("id")));
    check("gone", gone, "SCHEMA_REQUIRED agents.json:43:5", "`id` is missing", "write `scout`");
    let gone = sample("bmad.json", |manifest| drop(manifest["workflows"][0].as_object_mut().unwrap().remove("id")));
    check("no workflow", gone, "SCHEMA_REQUIRED bmad.json:15:5", "`id` is missing", "write `research-report`");
    let blank = sample("agents.json", |agents| agents["agents"][1]["id"] = json!("the scout"));
    check("an agent's", blank, "SCHEMA_PATTERN agents.json:44:7", "expected an id", "write `scout`, which is named");
    // Two names that are nowhere are not both the one that is missing.
    let two = sample("agents.json", |agents| {
        agents["agents"][1]["id"] = json!("lead");
        drop(agents["agents"].as_array_mut().unwrap().remove(2));
    });
    let codes: Vec<String> = findings(two).into_iter().map(|finding| finding.code).collect();
    assert!(codes.contains(&"AGENT_NOT_FOUND".to_owned()), "{codes:?}");
}

#[test]
fn a_workflow_with_the_files_of_another_one_is_told_once() {
    let shared = |names: &[&str]| {
        let mut files = crate::sample::two();
        edit(&mut files, "bmad.json", |manifest| {
            for name in names {
                manifest["workflows"][1][name] = manifest["workflows"][0][name].clone();
            }
        });
        files
    };
    for (names, line, meant) in [
        (vec!["graph"], 25, "returns/workflow.graph.json"),
        (vec!["workflow"], 24, "returns/workflow.md"),
        (vec!["workflow", "graph"], 24, "returns/workflow.md"),
    ] {
        let place = format!("WORKFLOW_FILE_SHARED bmad.json:{line}:7");
        check(meant, shared(&names), &place, "share the file", &format!("write `{meant}`, which nothing names"));
    }
}

#[test]
fn a_folder_of_assets_with_another_name_is_told_once() {
    let moved = |(path, bytes): (String, Vec<u8>)| match path.strip_prefix("assets/") {
        Some(name) => (format!("stuff/{name}"), bytes),
        None => (path, bytes),
    };
    let files = crate::sample::files().into_iter().map(moved).collect();
    check("moved", files, "ASSET_NOT_FOUND agents.json:64:11", "9 other", "call the folder `stuff/` `assets/`");
}

#[test]
fn a_link_leads_to_a_file_that_is_there() {
    let linked = |text: &str| {
        let mut files = crate::sample::files();
        files.get_mut("steps/plan.md").unwrap().extend_from_slice(format!("\n{text}\n").as_bytes());
        files
    };
    let fine = "[a](scope.md) [b](../workflow.md#x) [c](steps/scope.md) [d](https://x.org/gone.md) [e](#gone) `[f](gone.md)` \
                [g](../assets/style-guide.md) [h]({root}/gone.md)";
    assert_eq!(findings(linked(fine)), []);
    let place = "warning LINK_BROKEN steps/plan.md:38:5";
    check("gone", linked("See [it](scop.md)."), place, "`scop.md`", "link to `steps/scope.md` if that is meant");
    check("an image", linked("See ![it](gone.png)."), place, "`gone.png`", "take the link out");
}

#[test]
fn a_runtime_has_a_version_and_settings_of_editors_are_no_part_of_a_package() {
    for (said, is_told) in [("abc", true), ("1.1.0", false), (">=1.1", false), ("v2", false)] {
        let files = sample("bmad.json", |manifest| manifest["runtime"]["minRuntimeVersion"] = json!(said));
        if is_told {
            check(said, files, "warning VERSION_NOT_SEMVER bmad.json:29:5", "`abc`", "write the version");
        } else {
            assert_eq!(findings(files), [], "{said}");
        }
    }
    for name in [".gitignore", ".editorconfig", ".vscode/settings.json", "steps/.prettierrc"] {
        let mut files = crate::sample::files();
        files.insert(name.to_owned(), b"x\n".to_vec());
        assert_eq!(findings(files), [], "{name}");
    }
}

#[test]
fn a_word_of_other_tools_gets_the_word_that_is_meant() {
    let rename = |from: &str, to: &str| {
        sample(GRAPH, |graph| {
            let edge = graph["edges"][2].as_object_mut().unwrap();
            let value = edge.remove(from).unwrap();
            edge.insert(to.to_owned(), value);
        })
    };
    let place = "SCHEMA_UNKNOWN_FIELD workflow.graph.json:218:7";
    check("source", rename("from", "source"), place, "`source`", "write `from`");
    check("target", rename("to", "target"), place, "`target`", "write `to`");
}

#[test]
fn a_field_of_ones_own_is_none_that_is_misspelt() {
    for (name, is_slip) in [("notes", false), ("titles", true), ("agentID", true), ("tile", true), ("owner", false)] {
        let mut files = crate::sample::files();
        replace(&mut files, "steps/plan.md", "title:", &format!("{name}: x\ntitle:"));
        let found = findings(files);
        assert_eq!(found.iter().any(|one| one.code == "FIELD_MISSPELT"), is_slip, "{name}: {found:#?}");
    }
}

#[test]
fn two_nodes_of_one_file_and_a_way_back_to_its_own_node_are_told_once() {
    for (thief, owner) in [("draft", 1), ("scope", 4)] {
        let mut files = sample(GRAPH, |graph| {
            let file = graph["nodes"][owner]["file"].clone();
            let nodes = graph["nodes"].as_array_mut().unwrap();
            nodes.iter_mut().find(|node| node["id"] == thief).unwrap()["file"] = file;
        });
        files.remove(&format!("steps/{thief}.md"));
        let found: Vec<String> = findings(files).into_iter().map(|one| one.code).collect();
        assert_eq!(found, ["STEP_FILE_SHARED"], "{thief}");
    }
    // Its own file is left, whichever of the two nodes comes first.
    for (thief, owner) in [("draft", 1), ("scope", 4)] {
        let files = sample(GRAPH, |graph| {
            let file = graph["nodes"][owner]["file"].clone();
            let nodes = graph["nodes"].as_array_mut().unwrap();
            nodes.iter_mut().find(|node| node["id"] == thief).unwrap()["file"] = file;
        });
        let found = findings(files);
        let hint = format!("give the node `{thief}` the file `steps/{thief}.md`, which nothing else names");
        let told: Vec<_> = found.iter().map(|one| (one.code.as_str(), one.hint.as_str())).collect();
        assert_eq!(told, [("STEP_FILE_SHARED", hint.as_str())], "{thief}");
    }
    let back = sample(GRAPH, |graph| {
        let edge = json!({"id": "zz", "from": "draft", "to": "draft", "label": "again"});
        graph["edges"].as_array_mut().unwrap().push(edge);
    });
    let place = "CYCLE_MISSING_DECISION workflow.graph.json:112:5";
    check("back", back, place, "no decision", "make one of them a decision");
}

#[test]
fn a_merge_that_was_not_finished_and_a_workflow_that_is_not_started_are_told() {
    let mut files = crate::sample::files();
    let text = b"\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n";
    files.get_mut("steps/plan.md").unwrap().extend_from_slice(text);
    check("marks", files, "warning MERGE_UNFINISHED steps/plan.md:38:1", "a merge", "keep one of the two");
    let mut files = crate::sample::files();
    replace(&mut files, "steps/plan.md", "title:", "workflowId: nosuch\ntitle:");
    let place = "warning SUBWORKFLOW_TYPE steps/plan.md:5:1";
    check("a step", files, place, "`plan` is a `step`", "make the node a `subworkflow`");
}

#[test]
fn the_misspelt_graph_of_a_second_workflow_gets_the_name_that_nothing_else_names() {
    let mut files = small();
    for name in ["workflow.md", "workflow.graph.json"] {
        files.insert(format!("second/{name}"), files[name].clone());
    }
    for name in files.keys().filter(|name| name.starts_with("steps/")).cloned().collect::<Vec<_>>() {
        files.insert(format!("second/{name}"), files[&name].clone());
    }
    edit(&mut files, "bmad.json", |manifest| {
        let place = |id: &str, folder: &str, graph: &str| json!({"id": id, "displayName": id, "workflow": format!("{folder}workflow.md"), "graph": format!("{folder}{graph}")});
        manifest["workflows"] =
            json!([place("main", "", "workflow.graph.json"), place("second", "second/", "workflow.grph.json")]);
    });
    let found = findings(files);
    let told: Vec<_> = found.iter().map(|one| (one.code.as_str(), one.hint.as_str())).collect();
    let hint = "write `second/workflow.graph.json`, which nothing else names, if that is meant; else add the file";
    assert_eq!(told, [("FILE_MISSING", hint)], "{found:#?}");
}

#[test]
fn a_menu_that_names_a_missing_document_is_no_second_mistake() {
    let with_menu = |names: &str| {
        let mut files = small();
        edit(&mut files, "agents.json", |agents| {
            agents["agents"][0]["menu"] = json!([{"trigger": "x", "description": "d", "workflow": names}]);
        });
        without(files, "workflow.md")
    };
    check("by its file", with_menu("workflow.md"), "FILE_MISSING bmad.json:6:5", "`workflow.md`", "add the file");
    let found = findings(with_menu("nosuch"));
    let codes: Vec<&str> = found.iter().map(|one| one.code.as_str()).collect();
    assert_eq!(codes.len(), 2, "a menu that names nothing is told all the same: {codes:?}");
}
