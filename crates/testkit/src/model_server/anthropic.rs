//! The Messages format: how a turn is streamed, and what a request must be.

use serde_json::{Value, json};

use super::truth::{Findings, is_blank};
use super::turn::{Tokens, Turn};

/// Fields of a request that the format knows and our client may send.
const FIELDS: [&str; 9] =
    ["model", "max_tokens", "stream", "system", "tools", "messages", "temperature", "thinking", "tool_choice"];

/// Marks in one request.
const MARKS_MAX: usize = 4;

fn wire(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

/// The events of a turn, each as its bytes.
pub(super) fn events(turn: &Turn) -> Vec<String> {
    let Tokens { input, cached, written, output } = turn.tokens;
    let fresh = input.saturating_sub(cached + written);
    let usage = json!({
        "input_tokens": fresh, "cache_read_input_tokens": cached, "cache_creation_input_tokens": written,
        "output_tokens": 1
    });
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage });
    let mut events = vec![json!({ "type": "message_start", "message": message }), json!({ "type": "ping" })];
    let mut index = 0;
    let delta = |index: usize, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let start =
        |index: usize, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    if let Some((thought, signature)) = &turn.thought {
        events.push(start(index, json!({ "type": "thinking", "thinking": "", "signature": "" })));
        for word in thought.split_inclusive(' ') {
            events.push(delta(index, json!({ "type": "thinking_delta", "thinking": word })));
        }
        events.push(delta(index, json!({ "type": "signature_delta", "signature": signature })));
        events.push(json!({ "type": "content_block_stop", "index": index }));
        index += 1;
    }
    if !turn.text.is_empty() {
        events.push(start(index, json!({ "type": "text", "text": "" })));
        for word in turn.text.split_inclusive(' ') {
            events.push(delta(index, json!({ "type": "text_delta", "text": word })));
        }
        events.push(json!({ "type": "content_block_stop", "index": index }));
        index += 1;
    }
    let begun = |at: usize| {
        let call = &turn.calls[at];
        let id = call.id.clone().unwrap_or_else(|| format!("toolu_{at}"));
        start(index + at, json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} }))
    };
    let ended = |at: usize| json!({ "type": "content_block_stop", "index": index + at });
    let mut open = None;
    if turn.shape.interleaved {
        events.extend((0..turn.calls.len()).map(begun));
    }
    for (at, piece) in turn.shape.order(&turn.calls) {
        if !turn.shape.interleaved && open != Some(at) {
            events.extend(open.map(ended));
            events.push(begun(at));
            open = Some(at);
        }
        events.push(delta(index + at, json!({ "type": "input_json_delta", "partial_json": piece })));
    }
    events.extend(open.map(ended));
    if turn.shape.interleaved {
        events.extend((0..turn.calls.len()).map(ended));
    }
    let fitting = if turn.calls.is_empty() { "end_turn" } else { "tool_use" };
    let reason = turn.stop.as_deref().unwrap_or(fitting);
    let usage = json!({ "output_tokens": output });
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    events.iter().map(wire).collect()
}

pub(super) fn error(kind: &str, message: &str) -> String {
    wire(&json!({ "type": "error", "error": { "type": kind, "message": message } }))
}

/// What is wrong with a request's body.
pub(super) fn check(body: &Value) -> Findings {
    let mut findings = Findings::default();
    for field in body.as_object().into_iter().flat_map(|body| body.keys()) {
        findings.when(!FIELDS.contains(&field.as_str()), format!("`{field}` is no field of a request"));
    }
    findings.when(is_blank(&body["model"]), "it names no model");
    findings.when(body["stream"] != true, "it asks for no stream");
    findings.when(body["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0), "it has no max_tokens");
    for block in body["system"].as_array().into_iter().flatten() {
        findings.when(block["type"] != "text" || is_blank(&block["text"]), format!("{block} is no instruction"));
    }
    check_tools(body, &mut findings);
    check_messages(body, &mut findings);
    check_marks(body, &mut findings);
    findings
}

fn check_tools(body: &Value, findings: &mut Findings) {
    let Some(tools) = body.get("tools") else {
        let called = body["messages"].to_string().contains("\"tool_use\"");
        return findings.when(called, "it has calls and no tools");
    };
    let tools = tools.as_array().map(Vec::as_slice).unwrap_or_default();
    findings.when(tools.is_empty(), "its list of tools is empty, and should not be there");
    for tool in tools {
        findings.name("the tool", &tool["name"]);
        findings.schema(&tool["name"], &tool["input_schema"]);
        findings.when(is_blank(&tool["description"]), format!("{} says not what it does", tool["name"]));
    }
    findings.unique("the tool", tools.iter().map(|tool| &tool["name"]));
    let marked = tools.last().is_some_and(|tool| tool.get("cache_control").is_some());
    findings.when(!marked, "its last tool has no mark: the tools are read anew each time");
}

fn blocks(message: &Value) -> Vec<Value> {
    match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        text => vec![json!({ "type": "text", "text": text })],
    }
}

fn of_kind(blocks: &[Value], kind: &str, field: &str) -> Vec<Value> {
    blocks.iter().filter(|block| block["type"] == kind).map(|block| block[field].clone()).collect()
}

fn check_messages(body: &Value, findings: &mut Findings) {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    findings.when(messages.is_empty(), "it has no messages");
    findings.when(messages.last().is_some_and(|last| last["role"] != "user"), "its last message is not a user's");
    let mut ids = Vec::new();
    let mut asked = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        let role = if place % 2 == 0 { "user" } else { "assistant" };
        findings.when(message["role"] != role, format!("message {place} is not of the role {role}"));
        let blocks = blocks(message);
        findings.when(blocks.is_empty(), format!("message {place} is empty"));
        for block in &blocks {
            check_block(place, role, block, findings);
        }
        let answers = of_kind(&blocks, "tool_result", "tool_use_id");
        if place > 0 && role == "user" {
            findings.answered(place - 1, &asked, &answers);
        }
        let first = blocks.iter().take(answers.len()).all(|block| block["type"] == "tool_result");
        findings.when(!first, format!("message {place} says something before its answers"));
        asked = of_kind(&blocks, "tool_use", "id");
        ids.extend(asked.clone());
        let thoughts =
            blocks.iter().rposition(|block| block["type"].as_str().is_some_and(|kind| kind.contains("thinking")));
        let early = thoughts.is_none_or(|last| {
            blocks[..last].iter().all(|block| block["type"].as_str().is_some_and(|kind| kind.contains("thinking")))
        });
        findings.when(!early, format!("message {place} thinks after it spoke"));
    }
    findings.unique("the call", ids.iter());
}

fn check_block(place: usize, role: &str, block: &Value, findings: &mut Findings) {
    let here = |what: &str| format!("message {place}: {what}: {block}");
    match block["type"].as_str().unwrap_or_default() {
        "text" => findings.when(is_blank(&block["text"]), here("a text without text")),
        "tool_use" => {
            findings.when(role != "assistant", here("a user's call"));
            findings.name("the call", &block["id"]);
            findings.name("the called tool", &block["name"]);
            findings.when(!block["input"].is_object(), here("its input is no object"));
        }
        "tool_result" => {
            findings.when(role != "user", here("an assistant's answer"));
            let failed = block.get("is_error").is_none_or(Value::is_boolean);
            findings.when(!failed, here("is_error is no truth"));
        }
        "thinking" => {
            let whole = block["thinking"].is_string() && !is_blank(&block["signature"]);
            findings.when(role != "assistant" || !whole, here("a thought without its signature"));
        }
        "redacted_thinking" => findings.when(role != "assistant", here("a user's thought")),
        _ => findings.when(true, here("an unknown block")),
    }
}

/// Counts marks, and looks where they are.
fn check_marks(body: &Value, findings: &mut Findings) {
    let lists = [body["system"].as_array(), body["tools"].as_array()];
    let said = body["messages"].as_array().into_iter().flatten().flat_map(blocks).collect::<Vec<_>>();
    let all = lists.into_iter().flatten().flatten().chain(&said);
    let marked = all.filter(|block| block.get("cache_control").is_some()).collect::<Vec<_>>();
    findings.when(marked.len() > MARKS_MAX, format!("it has {} marks", marked.len()));
    for block in marked {
        findings.when(block["cache_control"]["type"] != "ephemeral", format!("an unknown mark: {block}"));
        let thinks = block["type"].as_str().is_some_and(|kind| kind.contains("thinking"));
        findings.when(thinks, format!("a thought is marked: {block}"));
    }
    let last = said.last().is_some_and(|block| block.get("cache_control").is_some());
    findings.when(!last, "its last message has no mark: the next request reads the conversation anew");
}
