//! What an edit of a graph says that takes a step out of a workflow, so that the steps around it still lead somewhere.

use serde_json::{Value, json};
use toolhost_builder::{Edge, Workflow};

/// The step that those before a step lead to when it goes, or why somebody has to say.
pub(super) fn successor(workflow: &Workflow, node: &str) -> Result<Option<String>, &'static str> {
    let mut after: Vec<&str> = ways(workflow, node).map(|edge| &*edge.to).filter(|to| *to != node).collect();
    after.sort_unstable();
    after.dedup();
    match after[..] {
        [] => Ok(None),
        [only] => Ok(Some(only.to_owned())),
        _ => Err("Several ways lead on from this step: say which step those before it lead to."),
    }
}

/// Whether the workflow begins with this step.
pub(super) fn is_entry(workflow: &Workflow, node: &str) -> bool {
    workflow.entry_node_id.as_deref() == Some(node)
}

/// The edit: the node goes, and the edges that led to it lead to `then`. A step that led to it alone is an end where nothing follows.
pub(super) fn without_step(workflow: &Workflow, node: &str, then: Option<&str>) -> Value {
    let (mut edges, mut ends) = (Vec::new(), Vec::new());
    for before in workflow.edges.iter().filter(|edge| edge.to == node && edge.from != node) {
        let has = |to: &str| ways(workflow, &before.from).any(|edge| edge.to == to);
        match then.filter(|then| *then != before.from) {
            Some(then) if !has(then) => edges.push(led_to(before, then)),
            Some(_) => {}
            None if ways(workflow, &before.from).all(|edge| edge.to == node) => {
                ends.push(json!({ "id": before.from, "type": "end" }));
            }
            None => {}
        }
    }
    let mut edit = json!({ "deleteNodes": [node] });
    for (name, list) in [("edges", edges), ("nodes", ends)] {
        // A change set has no empty lists.
        if !list.is_empty() {
            edit[name] = list.into();
        }
    }
    if let Some(then) = then.filter(|_| is_entry(workflow, node)) {
        edit["entryNodeId"] = then.into();
    }
    edit
}

fn ways<'w>(workflow: &'w Workflow, from: &'w str) -> impl Iterator<Item = &'w Edge> {
    workflow.edges.iter().filter(move |edge| edge.from == from)
}

/// An edge to another step, taken in the same case.
fn led_to(edge: &Edge, to: &str) -> Value {
    let mut led = json!({ "from": edge.from, "to": to });
    for name in ["label", "isDefault", "conditionText", "conditionExpr"] {
        if let Some(value) = edge.value.get(name).filter(|value| !value.is_null()) {
            led[name] = value.clone();
        }
    }
    led
}
