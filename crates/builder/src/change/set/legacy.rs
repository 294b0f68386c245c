//! The old shape of a set, from before there was a contract.
//!
//! `{ workflowId?, steps: [step], assets: [asset] }`, with the contract's `targetType`, `mode`, `impact`, `revisions`
//! and `extensions` where they are there. A step is `{ workflowId?, nodeId, step_markdown | markdown | content,
//! reason? }`, an asset `{ path, content, reason? }`. Each is an upsert. What one lacks is left out here too, so that
//! the contract tells it.

use serde_json::{Map, Value, json};

/// The names under which an item may carry its text, the best first.
const STEP_TEXTS: [&str; 3] = ["step_markdown", "markdown", "content"];

/// Whether a value has the old shape.
pub(super) fn is_legacy(value: &Value) -> bool {
    let has = |name| value.get(name).is_some_and(Value::is_array);
    value.get("operations").is_none() && value.get("schemaVersion").is_none() && (has("steps") || has("assets"))
}

/// The same in the shape of the contract.
pub(super) fn normalised(value: &Value) -> Value {
    let list = |name| value.get(name).and_then(Value::as_array).into_iter().flatten();
    let mut operations: Vec<Value> = list("steps").map(|item| step(item, value.get("workflowId"))).collect();
    let first = if operations.is_empty() { "asset" } else { "step" };
    operations.extend(list("assets").map(asset));
    let mut set = json!({
        "schemaVersion": "1.0",
        "targetType": first,
        "mode": "optimize",
        "operations": operations,
    });
    for (name, field) in value.as_object().into_iter().flatten() {
        // A list of another kind stays where it is, and is told as an unknown field.
        let is_taken = matches!(name.as_str(), "steps" | "assets") && field.is_array() || name == "workflowId";
        if !is_taken {
            set[name] = field.clone();
        }
    }
    set
}

fn step(item: &Value, workflow: Option<&Value>) -> Value {
    let mut rest = item.as_object().cloned().unwrap_or_default();
    let mut target = Map::new();
    if let Some(id) = rest.remove("workflowId").or_else(|| workflow.cloned()) {
        target.insert("workflowId".to_owned(), id);
    }
    target.extend(rest.remove("nodeId").map(|id| ("nodeId".to_owned(), id)));
    let text = STEP_TEXTS.iter().find_map(|name| rest.remove(*name));
    rest.extend(text.map(|text| ("step_markdown".to_owned(), text)));
    upsert("step", target, rest)
}

fn asset(item: &Value) -> Value {
    let mut rest = item.as_object().cloned().unwrap_or_default();
    let path = rest.remove("path").map(|path| ("path".to_owned(), path));
    upsert("asset", path.into_iter().collect(), rest)
}

fn upsert(kind: &str, target: Map<String, Value>, mut payload: Map<String, Value>) -> Value {
    let reason = payload.remove("reason");
    let mut operation = json!({ "op": "upsert", "targetType": kind, "target": target, "payload": payload });
    if let Some(reason) = reason {
        operation["reason"] = reason;
    }
    operation
}
