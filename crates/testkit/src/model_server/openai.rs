//! The chat completions format: how a turn is streamed, and what a request must be.

use serde_json::{Value, json};

use super::truth::{Findings, is_blank};
use super::turn::Turn;

/// Fields of a request that the format knows and our client may send.
const FIELDS: [&str; 9] = [
    "model",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "messages",
    "tools",
    "temperature",
    "reasoning_effort",
];

fn wire(event: &Value) -> String {
    format!("data: {event}\n\n")
}

fn chunk(delta: &Value, reason: Option<&str>) -> Value {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
    json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], "usage": null })
}

/// The events of a turn, each as its bytes.
pub(super) fn events(turn: &Turn) -> Vec<String> {
    let mut events = vec![chunk(&json!({ "role": "assistant", "content": "" }), None)];
    if let Some((thought, _)) = &turn.thought {
        let words = thought.split_inclusive(' ');
        events.extend(words.map(|word| chunk(&json!({ "reasoning_content": word }), None)));
    }
    let words = turn.text.split_inclusive(' ').filter(|word| !word.is_empty());
    events.extend(words.map(|word| chunk(&json!({ "content": word }), None)));
    let mut begun = Vec::new();
    for (at, piece) in turn.shape.order(&turn.calls) {
        let call = &turn.calls[at];
        if !begun.contains(&at) {
            begun.push(at);
            let id = call.id.clone().unwrap_or_else(|| format!("call_abc{at}"));
            let function = json!({ "name": call.name, "arguments": "" });
            let begin = json!({ "index": at, "id": id, "type": "function", "function": function });
            events.push(chunk(&json!({ "tool_calls": [begin] }), None));
        }
        let more = json!({ "index": at, "function": { "arguments": piece } });
        events.push(chunk(&json!({ "tool_calls": [more] }), None));
    }
    let fitting = if turn.calls.is_empty() { "stop" } else { "tool_calls" };
    events.push(chunk(&json!({}), Some(turn.stop.as_deref().unwrap_or(fitting))));
    let usage = json!({
        "prompt_tokens": turn.tokens.input, "completion_tokens": turn.tokens.output,
        "total_tokens": turn.tokens.input + turn.tokens.output,
        "prompt_tokens_details": { "cached_tokens": turn.tokens.cached }
    });
    events.push(json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage }));
    let mut events = events.iter().map(wire).collect::<Vec<_>>();
    events.push("data: [DONE]\n\n".to_owned());
    events
}

pub(super) fn error(kind: &str, message: &str) -> String {
    wire(&json!({ "error": { "type": kind, "message": message } }))
}

/// What is wrong with a request's body.
pub(super) fn check(body: &Value) -> Findings {
    let mut findings = Findings::default();
    for field in body.as_object().into_iter().flat_map(|body| body.keys()) {
        findings.when(!FIELDS.contains(&field.as_str()), format!("`{field}` is no field of a request"));
    }
    findings.when(is_blank(&body["model"]), "it names no model");
    findings.when(body["stream"] != true, "it asks for no stream");
    findings.when(body["stream_options"]["include_usage"] != true, "it asks for no usage");
    findings.when(body.to_string().contains("cache_control"), "it has marks that the format does not know");
    if let Some(tools) = body.get("tools") {
        let tools = tools.as_array().map(Vec::as_slice).unwrap_or_default();
        findings.when(tools.is_empty(), "its list of tools is empty, and should not be there");
        for tool in tools {
            let function = &tool["function"];
            findings.when(tool["type"] != "function", format!("{tool} is no function"));
            findings.name("the tool", &function["name"]);
            findings.schema(&function["name"], &function["parameters"]);
        }
        findings.unique("the tool", tools.iter().map(|tool| &tool["function"]["name"]));
    }
    check_messages(body, &mut findings);
    findings
}

fn check_messages(body: &Value, findings: &mut Findings) {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    findings.when(messages.is_empty(), "it has no messages");
    let mut place = 0;
    while let Some(message) = messages.get(place) {
        let here = |what: &str| format!("message {place}: {what}: {message}");
        match message["role"].as_str().unwrap_or_default() {
            "system" => findings.when(place > 0 || is_blank(&message["content"]), here("no instruction")),
            "user" => findings.when(is_blank(&message["content"]), here("a user who says nothing")),
            "assistant" => {
                let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                findings.when(calls.is_empty() && is_blank(&message["content"]), here("an assistant who says nothing"));
                findings.when(calls.is_empty() && message.get("tool_calls").is_some(), here("an empty list of calls"));
                for call in calls {
                    check_call(place, call, findings);
                }
                let ids = calls.iter().map(|call| call["id"].clone()).collect::<Vec<_>>();
                findings.unique("the call", ids.iter());
                let behind = messages[place + 1..].iter().take_while(|message| message["role"] == "tool");
                let answers = behind.map(|message| message["tool_call_id"].clone()).collect::<Vec<_>>();
                findings.answered(place, &ids, &answers);
                place += answers.len();
            }
            "tool" => findings.when(true, here("an answer to nothing")),
            _ => findings.when(true, here("an unknown role")),
        }
        place += 1;
    }
    let strings =
        messages.iter().filter(|message| message["role"] == "tool").all(|message| message["content"].is_string());
    findings.when(!strings, "an answer without content");
}

fn check_call(place: usize, call: &Value, findings: &mut Findings) {
    findings.name("the call", &call["id"]);
    findings.name("the called tool", &call["function"]["name"]);
    findings.when(call["type"] != "function", format!("message {place}: no function: {call}"));
    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
    let parsed = serde_json::from_str::<Value>(arguments);
    let object = parsed.is_ok_and(|arguments| arguments.is_object());
    findings.when(!object, format!("message {place}: the arguments are no object: {call}"));
}
