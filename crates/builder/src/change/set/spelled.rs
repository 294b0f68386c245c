//! Renames of contract 1.1, spelled out before the set is checked: who names a rename need not write the delete and the
//! upsert that it comes to.

use serde_json::{Map, Value, json};

use toolhost_contract::nearest;

use super::refused::{ContractError, error};
use super::{Op, Operation, SmallEdits};
use crate::change::rename::{is_kin, object_of};
use crate::finding::quoted;
use crate::refs::Object;

/// What this host reads of `extensions`. Whatever else is there is kept, and is nobody's mistake.
const KNOWN: [&str; 4] = ["baseRevisions", "renames", "rewriteReferences", "supersedes"];

/// What of the extensions of contract 1.1 is not as this host reads it, and would silently do nothing.
pub(super) fn unclear(value: &Value) -> Vec<ContractError> {
    let version = value.get("schemaVersion").and_then(Value::as_str).unwrap_or_default();
    let Some(extensions) = value.get("extensions").and_then(Value::as_object).filter(|_| is_with_small_edits(version))
    else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for name in extensions.keys().filter(|name| !KNOWN.contains(&name.as_str())) {
        if let Some(meant) = nearest(name, KNOWN.into_iter()).first() {
            let message = format!("there is no extension `{}`; did you mean `{meant}`?", quoted(name));
            errors.push(error("EXTENSION_UNKNOWN", format!("extensions.{}", quoted(name)), *meant, name, message));
        }
    }
    match extensions.get("renames") {
        None => {}
        Some(Value::Array(renames)) => {
            let at = |(index, rename)| unclear_rename(&format!("extensions.renames[{index}]"), rename);
            errors.extend(renames.iter().enumerate().filter_map(at));
        }
        Some(other) => {
            let message = format!("`extensions.renames` is no list: write {RENAMES}");
            errors.push(error("RENAME_UNCLEAR", "extensions.renames", RENAMES, &other.to_string(), message));
        }
    }
    errors.extend(unasked(extensions));
    errors
}

/// Renames that nothing would come of, and the wish for some without one.
fn unasked(extensions: &Map<String, Value>) -> Option<ContractError> {
    const AT: &str = "extensions.rewriteReferences";
    let has_renames = extensions.get("renames").and_then(Value::as_array).is_some_and(|renames| !renames.is_empty());
    match (extensions.get("rewriteReferences"), has_renames) {
        (None, _) | (Some(Value::Bool(true)), true) | (Some(Value::Bool(false)), false) => None,
        (Some(said), true) => {
            let message =
                format!("`{AT}` is {said}, so nothing would be renamed: leave it out, or leave the renames out");
            Some(error("RENAME_UNCLEAR", AT, "true, or left out", &said.to_string(), message))
        }
        (Some(said), false) => {
            let message =
                format!("`{AT}` is {said}, but nothing is said to be renamed: write {RENAMES} as `extensions.renames`");
            Some(error("RENAME_UNCLEAR", AT, "renames, or nothing", &said.to_string(), message))
        }
    }
}

/// How renames are written.
const RENAMES: &str =
    "`[{\"from\": \"step:WORKFLOW/old\", \"to\": \"step:WORKFLOW/new\"}]`; so for `asset:` and `agent:`";

fn unclear_rename(at: &str, rename: &Value) -> Option<ContractError> {
    let named = |name: &str| rename.get(name).and_then(Value::as_str).and_then(object_of);
    let why = match (named("from"), named("to")) {
        (Some(from), Some(to)) if from == to => "names one object twice",
        (Some(from), Some(to)) if !is_kin(&from, &to) => "names objects of two kinds, or of two workflows",
        (Some(_), Some(_)) => return None,
        _ => "does not name by `from` and `to` two assets, agents or steps, which are what can be renamed",
    };
    Some(error("RENAME_UNCLEAR", at, RENAMES, &rename.to_string(), format!("`{at}` {why}: write {RENAMES}")))
}

fn is_with_small_edits(version: &str) -> bool {
    version != "1.0" && version.starts_with("1.")
}

/// The set with the delete of each former name, without upserts that say nothing of the new one. None where no rename
/// is asked for.
pub(super) fn spelled_out(value: &Value) -> Option<Value> {
    let version = value.get("schemaVersion")?.as_str()?;
    if !is_with_small_edits(version) {
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
