//! The package of `builder_walk.rs` as files: each object of the model is written in one way, and read back only if it is
//! written so, byte for byte. Values that change stand on lines of their own, with a line between them that never changes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolhost_builder::Files;

use crate::gate::walk_model::{Object, State};

/// Lines of a text that may change.
pub(crate) const SLOTS: usize = 5;
pub(crate) const FLOW: &str = "workflow:main";
const GOAL: &str = "## Goal";

fn slots(object: &Object, lead: &str) -> String {
    let mut text = String::new();
    for slot in 0..SLOTS {
        text += &format!("- {slot} -\n");
        if let Some(value) = object.get(&format!("{lead}slot {slot}")) {
            text += &format!("{value}\n");
        }
    }
    text + "- end -\n"
}

/// The slot of a text with the line before it, which makes it a passage that stands there once.
pub(crate) fn passage(place: &str, value: Option<&String>) -> String {
    let slot = place.rsplit(' ').next().unwrap();
    format!("- {slot} -\n{}", value.map(|value| format!("{value}\n")).unwrap_or_default())
}

/// The text of an asset, a step, or the document of the workflow.
pub(crate) fn text_of(name: &str, object: &Object) -> String {
    if let Some(path) = name.strip_prefix("asset:") {
        return format!("# {path}\n\n{}", slots(object, ""));
    }
    if let Some(node) = name.strip_prefix("step:main/") {
        let kind = if node == "end" { "end" } else { "step" };
        return format!(
            "---\nschemaVersion: \"1.1\"\nnodeId: {node}\ntype: {kind}\nnote: {}\n---\n\n{}\n\nText.\n\n## Instructions\n\n{}\n\
             ## Completion (Document-as-State)\n\nDone.\n",
            object["note"],
            object["heading"],
            slots(object, "")
        );
    }
    format!(
        "---\nschemaVersion: \"1.1\"\nworkflowType: w\nstepsCompleted: []\ncurrentNodeId: \"\"\nnote: {}\n---\n\n# Flow\n\n{}",
        object["doc note"],
        slots(object, "doc ")
    )
}

/// The object that a text says.
#[track_caller]
pub(crate) fn read_text(name: &str, text: &str) -> Object {
    let lead = if name == FLOW { "doc " } else { "" };
    let mut object = Object::new();
    let mut slot: Option<usize> = None;
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("- ").and_then(|line| line.strip_suffix(" -")) {
            slot = number.parse().ok();
        } else if let Some(number) = slot.take() {
            object.insert(format!("{lead}slot {number}"), line.to_owned());
        } else if let Some(note) = line.strip_prefix("note: ") {
            object.insert(format!("{lead}note"), note.to_owned());
        } else if line.starts_with("## ") && name != FLOW && !object.contains_key("heading") {
            object.insert("heading".to_owned(), line.to_owned());
        }
    }
    if name.starts_with("asset:") {
        object.retain(|place, _| place.starts_with("slot"));
    }
    assert_eq!(text_of(name, &object), text, "{name} is not as it was written");
    object
}

pub(crate) fn definition(name: &str, object: &Object) -> Value {
    let id = name.trim_start_matches("agent:");
    json!({
        "id": id, "metadata": {"name": id, "title": object["title"], "icon": "I"},
        "persona": {"role": object["role"], "identity": "i", "communication_style": "c", "principles": ["p"]},
    })
}

#[track_caller]
pub(crate) fn read_agent(name: &str, value: &Value) -> Object {
    let text = |pointer| value.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let object: Object =
        [("title".to_owned(), text("/metadata/title")), ("role".to_owned(), text("/persona/role"))].into();
    assert_eq!(definition(name, &object), *value, "{name} is not as it was written");
    object
}

fn graph(object: &Object) -> Value {
    let places = |kind: &'static str| {
        object.iter().filter_map(move |(place, value)| Some((place.strip_prefix("graph ")?.strip_prefix(kind)?, value)))
    };
    let nodes: Vec<Value> = places("node ").map(|(id, agent)| node(id, agent)).collect();
    let edges: Vec<Value> = places("edge ").map(|(id, ends)| edge(id, ends)).collect();
    json!({"schemaVersion": "1.1", "entryNodeId": "a", "nodes": nodes, "edges": edges})
}

fn node(id: &str, agent: &str) -> Value {
    let kind = if id == "end" { "end" } else { "step" };
    json!({"id": id, "type": kind, "file": format!("steps/{id}.md"), "agentId": agent})
}

fn edge(id: &str, ends: &str) -> Value {
    let (from, to) = ends.split_once('>').unwrap();
    json!({"id": id, "from": from, "to": to, "label": "on"})
}

#[track_caller]
pub(crate) fn read_graph(value: &Value) -> Object {
    let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let mut object = Object::new();
    for item in value["nodes"].as_array().unwrap() {
        let (id, agent) = (text(item, "id"), text(item, "agentId"));
        assert_eq!(node(&id, &agent), *item);
        assert_eq!(object.insert(format!("graph node {id}"), agent), None, "a node stands there twice: {value}");
    }
    for item in value["edges"].as_array().unwrap() {
        let (id, ends) = (text(item, "id"), format!("{}>{}", text(item, "from"), text(item, "to")));
        assert_eq!(edge(&id, &ends), *item);
        assert_eq!(object.insert(format!("graph edge {id}"), ends), None, "an edge stands there twice: {value}");
    }
    object
}

/// The nodes of a graph.
pub(crate) fn nodes(object: &Object) -> Vec<String> {
    object.keys().filter_map(|place| place.strip_prefix("graph node ").map(str::to_owned)).collect()
}

/// The edges of a graph, as ends.
pub(crate) fn edges(object: &Object) -> Vec<(String, String)> {
    let edges = object.iter().filter(|(place, _)| place.starts_with("graph edge "));
    edges.filter_map(|(_, ends)| ends.split_once('>').map(|(from, to)| (from.to_owned(), to.to_owned()))).collect()
}

pub(crate) fn new_object(name: &str, marker: &str) -> Object {
    let lead = if name == FLOW { "doc " } else { "" };
    if name.starts_with("agent:") {
        return [("title".to_owned(), marker.to_owned()), ("role".to_owned(), "r".to_owned())].into();
    }
    let mut object: Object =
        (0..SLOTS).map(|slot| (format!("{lead}slot {slot}"), format!("{marker} {slot}"))).collect();
    if !name.starts_with("asset:") {
        object.insert(format!("{lead}note"), "none".to_owned());
    }
    if name.starts_with("step:") {
        object.insert("heading".to_owned(), GOAL.to_owned());
    }
    object
}

/// The package that each walk begins with.
pub(crate) fn beginning() -> State {
    let names = [
        "agent:ada",
        "agent:bob",
        "asset:assets/a.md",
        "asset:assets/b.md",
        "step:main/a",
        "step:main/b",
        "step:main/end",
        FLOW,
    ];
    let mut state: State = names.iter().map(|name| ((*name).to_owned(), new_object(name, "first"))).collect();
    let flow = state.get_mut(FLOW).unwrap();
    for node in ["a", "b", "end"] {
        flow.insert(format!("graph node {node}"), "ada".to_owned());
    }
    for (from, to) in [("a", "b"), ("b", "end")] {
        flow.insert(format!("graph edge {from}--{to}"), format!("{from}>{to}"));
    }
    state
}

fn manifest() -> String {
    let entry = json!({"workflow": "workflow.md", "graph": "graph.json", "agents": "agents.json"});
    let flow = json!({"id": "main", "workflow": "workflow.md", "graph": "graph.json", "displayName": "main"});
    let all = json!({"schemaVersion": "1.1", "name": "walk", "version": "1.0.0", "entry": entry, "workflows": [flow]});
    format!("{all:#}")
}

pub(crate) fn files_of(state: &State) -> Files {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut agents = Vec::new();
    for (name, object) in state {
        if let Some(path) = name.strip_prefix("asset:") {
            files.insert(path.to_owned(), text_of(name, object));
        } else if let Some(node) = name.strip_prefix("step:main/") {
            files.insert(format!("steps/{node}.md"), text_of(name, object));
        } else if name.starts_with("agent:") {
            agents.push(definition(name, object));
        }
    }
    files.insert("bmad.json".to_owned(), manifest());
    files.insert("workflow.md".to_owned(), text_of(FLOW, &state[FLOW]));
    files.insert("graph.json".to_owned(), format!("{:#}", graph(&state[FLOW])));
    files.insert("agents.json".to_owned(), format!("{:#}", json!({"schemaVersion": "1.1", "agents": agents})));
    files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect()
}

/// The objects that files say, each written as it has to be, and no file besides.
#[track_caller]
pub(crate) fn state_of(files: &Files) -> State {
    let mut state = State::new();
    for (path, bytes) in files {
        let text = std::str::from_utf8(bytes).unwrap();
        match path.as_str() {
            "bmad.json" => assert_eq!(text, manifest()),
            "workflow.md" => state.entry(FLOW.to_owned()).or_default().extend(read_text(FLOW, text)),
            "graph.json" => {
                let value: Value = serde_json::from_str(text).unwrap();
                state.entry(FLOW.to_owned()).or_default().extend(read_graph(&value));
            }
            "agents.json" => {
                let value: Value = serde_json::from_str(text).unwrap();
                for agent in value["agents"].as_array().unwrap() {
                    let name = format!("agent:{}", agent["id"].as_str().unwrap());
                    let object = read_agent(&name, agent);
                    assert_eq!(state.insert(name, object), None, "an agent stands there twice: {text}");
                }
            }
            path => {
                let node = path.strip_prefix("steps/").and_then(|path| path.strip_suffix(".md"));
                let name = node.map_or_else(|| format!("asset:{path}"), |node| format!("step:main/{node}"));
                state.insert(name.clone(), read_text(&name, text));
            }
        }
    }
    state
}
