//! Renames of contract 1.1, spelled out before the set is checked: who names a rename need not write the delete and the
//! upsert that it comes to.

use serde_json::{Value, json};

use super::{Op, Operation, SmallEdits};
use crate::change::rename::{is_kin, object_of};
use crate::refs::Object;

/// The set with the delete of each former name, without upserts that say nothing of the new one. None where no rename
/// is asked for.
pub(super) fn spelled_out(value: &Value) -> Option<Value> {
    let version = value.get("schemaVersion")?.as_str()?;
    if version == "1.0" || !version.starts_with("1.") {
        return None;
    }
    let renames = value.pointer("/extensions/renames")?.as_array()?;
    let is_asked = value.pointer("/extensions/rewriteReferences").unwrap_or(&Value::Bool(true)) == &Value::Bool(true);
    if renames.is_empty() || !is_asked {
        return None;
    }
    let mut operations = match value.get("operations") {
        None => Vec::new(),
        Some(operations) => operations.as_array()?.clone(),
    };
    for rename in renames {
        let named = |name: &str| rename.get(name).and_then(Value::as_str).and_then(object_of);
        if let (Some(from), Some(to)) = (named("from"), named("to"))
            && is_kin(&from, &to)
        {
            spell_out(&mut operations, &from, &to);
        }
    }
    let mut spelled = value.clone();
    spelled["operations"] = Value::Array(operations);
    spelled["extensions"]["rewriteReferences"] = Value::Bool(true);
    Some(spelled)
}

fn spell_out(operations: &mut Vec<Value>, from: &Object, to: &Object) {
    let is = |operation: &Value, op: &str, object: &Object| {
        let written = of(object);
        operation["op"] == op
            && operation["targetType"] == written["targetType"]
            && operation["target"] == written["target"]
    };
    if !operations.iter().any(|operation| is(operation, "upsert", to)) {
        for operation in operations.iter_mut().filter(|operation| is(operation, "upsert", from)) {
            operation["target"] = of(to)["target"].clone();
            if let (Object::Agent(old), Object::Agent(new)) = (from, to)
                && let Some(id) = operation.pointer_mut("/payload/agent_definition/id").filter(|id| **id == json!(old))
            {
                *id = json!(new);
            }
        }
    }
    // What keeps its content need not say so.
    let is_empty = |operation: &Value| operation.get("payload").is_none_or(|payload| *payload == json!({}));
    operations.retain(|operation| !(is(operation, "upsert", to) && is_empty(operation)));
    if !operations.iter().any(|operation| is(operation, "delete", from)) {
        operations.insert(0, of(from));
    }
}

/// The delete of an object, as it is written.
fn of(object: &Object) -> Value {
    let object = object.clone();
    Operation { op: Op::Delete, object, payload: None, edits: SmallEdits::default(), reason: None }.to_value()
}
