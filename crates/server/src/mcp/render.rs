//! Tools and outcomes in MCP's shapes.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use toolhost_contract::{Effect, Outcome, ToolInfo, Waits};
use toolhost_host::Registered;

use super::attached;
use super::door::{Door, Results};

/// A tool as MCP lists it.
///
/// Output schemas are two thirds of all text, and no client needs one to call a tool or to show a result. `tool.describe` returns the one
/// of a tool; `--output-schemas` lists all.
pub(crate) fn tool(registered: &Registered, door: &Door) -> Tool {
    let info = &registered.info;
    let names = door.names;
    let (description, schema) = names.described(door.gate.registry(), registered);
    let mut tool = Tool::new(names.of(registered).to_owned(), description, object(schema));
    tool.title = Some(info.title.to_string());
    tool.output_schema = door.output_schemas.then(|| object(envelope(&info.output_schema.value())));
    tool.annotations = Some(annotations(info));
    tool
}

/// What a client is told that loads tools as a model needs them: which it should always load, and by which other names to find the others.
pub(crate) fn loading_hints(registered: &Registered, core: &[&str]) -> Option<MetaObject> {
    let info = &registered.info;
    let (key, hint) = if core.contains(&&*info.name) {
        ("anthropic/alwaysLoad", Value::from(true))
    } else {
        let aliases = info.aliases.iter().map(|alias| alias.name);
        let others: Vec<&str> = aliases.chain(info.called_elsewhere.iter().copied()).collect();
        ("anthropic/searchHint", Value::from(Some(others.join(" ")).filter(|others| !others.is_empty())?))
    };
    Some(MetaObject([(key.to_owned(), hint)].into_iter().collect()))
}

/// The hints, from the effect: a tool that only reads says so, and any other is taken for the worst that it can do. A hint is left out
/// where it equals MCP's default: not read-only, destructive, open world.
fn annotations(info: &ToolInfo) -> ToolAnnotations {
    let effect = info.facts.effect;
    // Whoever waits for a person may run what they allow, whatever it is.
    hints(effect, effect == Effect::Reads && info.facts.waits == Waits::Person)
}

/// The hints for a tool of this effect, which may run others or not.
pub(crate) fn hints(effect: Effect, runs_others: bool) -> ToolAnnotations {
    let reads = effect == Effect::Reads && !runs_others;
    let destroys = runs_others || matches!(effect, Effect::Writes | Effect::Executes | Effect::Reaches);
    let reaches = runs_others || effect == Effect::Reaches;
    ToolAnnotations::from_raw(
        None,
        reads.then_some(true),
        (!reads && !destroys).then_some(false),
        None,
        (!reaches).then_some(false),
    )
}

/// The schema of an outcome whose `data` is what the tool says. It holds for successes and failures alike.
fn envelope(data: &Value) -> Value {
    let text = || json!({ "type": "string" });
    let nullable = |kind: &str| json!({ "type": [kind, "null"] });
    json!({
        "type": "object",
        "properties": {
            "ok": { "type": "boolean" },
            // Null where it failed; where a person has to agree first, how to wait for them.
            "data": { "anyOf": [data, { "type": "null" }, {
                "type": "object",
                "properties": { "status": text(), "approvalId": text(), "expiresAt": { "type": "integer" } },
                "required": ["status", "approvalId", "expiresAt"],
            }] },
            "error": { "anyOf": [{ "type": "null" }, {
                "type": "object",
                "properties": { "code": text(), "kind": text(), "message": text(), "hint": text(), "details": {} },
                "required": ["code", "kind", "message"],
            }] },
            "meta": {
                "type": "object",
                "properties": {
                    "tool": text(), "callId": text(), "sessionId": nullable("string"), "userId": { "type": "integer" },
                    "projectId": { "type": "integer" }, "workflowId": nullable("integer"), "revision": nullable("object"),
                    "allowWrite": { "type": "boolean" }, "durationMs": { "type": "integer" }, "fence": text(),
                },
                "required": ["tool", "callId", "allowWrite", "durationMs", "fence"],
            },
        },
        "required": ["ok", "data", "error", "meta"],
    })
}

/// An outcome as a tool result: the structure and the text are each complete, for clients show a model only one of them.
pub(crate) fn result(mut outcome: Outcome, holds: Results) -> CallToolResult {
    let text = ContentBlock::text(std::mem::take(&mut outcome.text));
    let text = if holds == Results::Structured { None } else { Some(text) };
    // They are content for every client: no structure shows a model an image.
    let attachments = std::mem::take(&mut outcome.attachments);
    let content: Vec<ContentBlock> = text.into_iter().chain(attachments.into_iter().map(attached::block)).collect();
    let data = std::mem::take(&mut outcome.data);
    let mut result = if outcome.ok { CallToolResult::success(content) } else { CallToolResult::error(content) };
    if holds == Results::Text {
        return result;
    }
    // Plain data always serializes. What the tool said is moved, not copied: it may be long.
    result.structured_content = serde_json::to_value(&outcome).ok().map(|mut structure| {
        structure["data"] = data;
        structure
    });
    result
}

fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}
