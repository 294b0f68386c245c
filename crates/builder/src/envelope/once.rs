//! A snapshot as the context tells it: each fact once. A read answers with all fields; the context of a session stands in
//! every request, so it leaves out what another field of the same snapshot says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value, json};

use super::TargetType;

/// Fields of an edge that name it: they stay.
const EDGE_NAMES: [&str; 3] = ["id", "from", "to"];

/// Takes repetitions out of a snapshot. The texts, the graph and the definition stay as they are.
pub(super) fn told(target: TargetType, snapshot: &mut Value) {
    let Some(fields) = snapshot.as_object_mut() else { return };
    // The front matter stands at the beginning of the text.
    let front = fields.remove("frontmatter").unwrap_or_default();
    match target {
        TargetType::Workflow => {
            let index = json!(step_index(fields.get("graph_json").unwrap_or(&Value::Null)));
            fields.insert("step_index".to_owned(), index);
        }
        TargetType::Step => {
            let path = fields.get("step_path").and_then(Value::as_str).unwrap_or_default().to_owned();
            if let Some(node) = fields.get_mut("node_meta").and_then(Value::as_object_mut) {
                let file = node.get("file").and_then(Value::as_str);
                if file.is_some_and(|file| path.ends_with(file)) {
                    node.remove("file");
                }
                node.retain(|name, value| name == "id" || front.get(name.as_str()) != Some(&*value));
            }
            let step = front.get("nodeId").cloned().unwrap_or_default();
            for edge in fields.get_mut("adjacent_edges").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(edge) = edge.as_object_mut().filter(|edge| edge.get("from") == Some(&step)) {
                    without_transition(edge, &front);
                }
            }
        }
        TargetType::Agent => {}
        TargetType::Asset => {
            for reference in fields.get_mut("referenced_by").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(reference) = reference.as_object_mut() {
                    reference.retain(|name, value| name != "to" && *value != "");
                    reference.remove("resolved");
                }
            }
        }
    }
}

/// Leaves out of an edge what the transition of the step says alike.
fn without_transition(edge: &mut Map<String, Value>, front: &Value) {
    let transitions = front.get("transitions").and_then(Value::as_array);
    let is_same = |way: &&Value| ["to", "label"].iter().all(|name| way.get(*name) == edge.get(*name));
    let Some(transition) = transitions.and_then(|ways| ways.iter().find(is_same)) else { return };
    edge.retain(|name, value| EDGE_NAMES.contains(&name.as_str()) || transition.get(name.as_str()) != Some(&*value));
}

/// The ids of the nodes in the order in which a run may come to them, from the entry on; then those that no edge leads to.
/// Nothing where the graph lists them in this order.
fn step_index(graph: &Value) -> Vec<&str> {
    let list = |name| graph.get(name).and_then(Value::as_array).into_iter().flatten();
    let mut ways: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for edge in list("edges") {
        if let (Some(from), Some(to)) = (text(edge, "from"), text(edge, "to")) {
            ways.entry(from).or_default().push(to);
        }
    }
    let ids: Vec<&str> = list("nodes").filter_map(|node| text(node, "id")).collect();
    let mut left: BTreeSet<&str> = ids.iter().copied().collect();
    let mut found = Vec::with_capacity(ids.len());
    for start in text(graph, "entryNodeId").into_iter().chain(ids.iter().copied()) {
        let mut next = VecDeque::from([start]);
        while let Some(id) = next.pop_front() {
            if left.remove(id) {
                found.push(id);
                next.extend(ways.get(id).into_iter().flatten());
            }
        }
    }
    if found == ids { Vec::new() } else { found }
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}
