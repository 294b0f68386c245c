//! What a step of a session is, read as JSON and not as the agent's types.

use serde_json::Value;
use toolhost_host::ask_number;

/// What a step is, by the first word of its name, and the turn it belongs to.
pub(in super::super) fn kind_of(step: &str) -> (&str, u32) {
    let mut parts = step.split('_');
    let kind = parts.next().unwrap_or_default();
    (kind, parts.next().and_then(|number| number.parse().ok()).unwrap_or_default())
}

/// The calls that a turn asks for: their step, the tool and the arguments.
pub(super) fn calls_of(turn: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let calls = turn.pointer("/reply/calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    calls.iter().map(|call| (text(call, "id"), text(call, "name"), &call["arguments"]))
}

pub(super) fn text<'v>(body: &'v Value, field: &str) -> &'v str {
    body.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn number(body: &Value, field: &str) -> u64 {
    body.get(field).and_then(Value::as_u64).unwrap_or_default()
}

/// The ask that the arguments of a call name which waits for its answer.
pub(super) fn ask_of_wait(arguments: &Value) -> Option<i64> {
    ask_number(arguments.pointer("/json/approvalId")?.as_str()?)
}
