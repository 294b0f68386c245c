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
