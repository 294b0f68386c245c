//! `Anthropic`'s Messages (version 2023-06-01): its requests and the events of its streams.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::assembly::{Assembly, Block, BlockKind};
use super::config::{Extra, ProviderConfig, extra};
use super::conversation::{Asked, NOTHING, Said, is_blank, ordered, plain};
use super::failure::Failure;
use super::{Progress, lenient};
use crate::model::{Message, ModelError, Request, Secret, Stop, ToolSpec};

pub(super) const PATH: &str = "/messages";

const VERSION: &str = "2023-06-01";
/// Parts of a reply that are open at once.
const BLOCKS_MAX: usize = 1024;

/// Under this name a thought is kept among the signatures of a message: another provider's is not sent back.
const KEPT_AS: &str = "anthropic";

/// Fields of a body that settings cannot change.
const OURS: [&str; 7] = ["model", "max_tokens", "stream", "system", "tools", "tool_choice", "messages"];

/// Ends a conversation whose last word is the model's own: what would be a prefill is refused by newer models.
const GO_ON: &str = "Go on.";

pub(super) fn headers(key: &Secret) -> Vec<(&'static str, String)> {
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    if !key.is_empty() {
        headers.push(("x-api-key", key.reveal().to_owned()));
    }
    headers
}

/// A request's body. Everything long is borrowed: a conversation is written once, straight to bytes.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    messages: Vec<Turn<'a>>,
    #[serde(flatten)]
    extra: Extra<'a>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Part<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

/// Which tool the model may call.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Choice {
    None,
}

/// Everything up to here is kept by the provider. Four may be set in a request.
#[derive(Serialize, Clone, Copy)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Mark {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Ours(Ours<'a>),
    /// A thought, as it came.
    Kept(Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Ours<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Mark>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Mark>,
    },
}

pub(super) fn body<'a>(config: &'a ProviderConfig, request: &Request<'a>) -> Body<'a> {
    let mut messages = turns(request);
    mark_messages(&mut messages);
    let mut tools = request.tools.iter().map(tool).collect::<Vec<_>>();
    let mut tool_choice = None;
    if tools.is_empty() {
        // Calls in a conversation without tools are refused: those it has are named, and forbidden.
        tools = called(request);
        tool_choice = (!tools.is_empty()).then_some(Choice::None);
    }
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(Mark::Ephemeral);
    }
    Body {
        model: &config.model,
        max_tokens: request.output_tokens_max.unwrap_or(config.output_tokens),
        stream: true,
        system: system(request),
        tools,
        tool_choice,
        messages,
        extra: extra(&config.extra, &OURS),
    }
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    let input_schema = Cow::Borrowed(&spec.schema);
    Tool { name: plain(&spec.name), description: &spec.description, input_schema, cache_control: None }
}

fn called<'a>(request: &Request<'a>) -> Vec<Tool<'a>> {
    let calls = request.messages.iter().filter_map(|message| match message {
        Message::Assistant { calls, .. } => Some(calls),
        _ => None,
    });
    let names = calls.flatten().map(|call| plain(&call.name)).collect::<BTreeSet<_>>();
    let tool = |name| Tool {
        name,
        description: "Not available now.",
        input_schema: Cow::Owned(json!({ "type": "object" })),
        cache_control: None,
    };
    names.into_iter().map(tool).collect()
}

/// One mark, at the last block that stays: it covers those before it.
fn system<'a>(request: &Request<'a>) -> Vec<Part<'a>> {
    let blocks = request.system.iter().filter(|block| !is_blank(&block.text)).collect::<Vec<_>>();
    let last = blocks.iter().rposition(|block| block.cache);
    let part = |(at, block): (usize, &&'a crate::model::SystemBlock)| {
        let cache_control = (Some(at) == last).then_some(Mark::Ephemeral);
        Part::Ours(Ours::Text { text: &block.text, cache_control })
    };
    blocks.iter().enumerate().map(part).collect()
}

/// Roles take turns, a user begins and a user ends: answers to calls are a user's, ahead of what else is said.
fn turns<'a>(request: &Request<'a>) -> Vec<Turn<'a>> {
    let mut turns = Vec::<Turn<'a>>::new();
    for said in ordered(request.messages) {
        let role = if matches!(said, Said::Assistant { .. }) { "assistant" } else { "user" };
        if turns.is_empty() && role == "assistant" {
            turns.push(Turn { role: "user", content: vec![text(NOTHING)] });
        }
        if turns.last().is_none_or(|turn| turn.role != role) {
            turns.push(Turn { role, content: Vec::new() });
        }
        let Some(turn) = turns.last_mut() else { continue };
        match said {
            Said::User(content) => turn.content.push(text(if is_blank(content) { NOTHING } else { content })),
            Said::Answer { id, content, failed, .. } => turn.content.push(Part::Ours(Ours::ToolResult {
                tool_use_id: id,
                content,
                is_error: failed,
                cache_control: None,
            })),
            Said::Assistant { content, calls, signatures } => {
                // Thoughts come first or not at all.
                if turn.content.is_empty() {
                    turn.content.extend(signatures.iter().filter_map(|kept| thought(kept)).map(Part::Kept));
                }
                if !is_blank(content) {
                    turn.content.push(text(content));
                }
                turn.content.extend(
                    calls
                        .into_iter()
                        .map(|Asked { id, name, arguments }| Part::Ours(Ours::ToolUse { id, name, input: arguments })),
                );
            }
        }
    }
    if turns.last().is_none_or(|turn| turn.role != "user") {
        turns.push(Turn { role: "user", content: vec![text(GO_ON)] });
    }
    turns
}

fn text(text: &str) -> Part<'_> {
    Part::Ours(Ours::Text { text, cache_control: None })
}

/// Two marks: where this request ends, for the next one, and where the one before ended, which left its mark there.
fn mark_messages(turns: &mut [Turn<'_>]) {
    for turn in turns.iter_mut().rev().filter(|turn| turn.role == "user").take(2) {
        let last = turn.content.last_mut();
        if let Some(Part::Ours(Ours::Text { cache_control, .. } | Ours::ToolResult { cache_control, .. })) = last {
            *cache_control = Some(Mark::Ephemeral);
        }
    }
}

/// A thought that came from here.
fn thought(kept: &str) -> Option<Value> {
    let mut kept = serde_json::from_str::<Value>(kept).ok()?;
    kept.get_mut(KEPT_AS).map(Value::take).filter(Value::is_object)
}

/// An event of a stream: the fields of all kinds together.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    index: u64,
    message: Option<Start>,
    content_block: Option<Value>,
    delta: Option<Piece>,
    #[serde(default, deserialize_with = "lenient::field")]
    usage: Option<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default, deserialize_with = "lenient::field")]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Piece {
    text: Option<String>,
    partial_json: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default, deserialize_with = "lenient::field")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::field")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::field")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::field")]
    output_tokens: Option<u64>,
}

/// Takes an event's data into the reply.
pub(super) fn event(data: &str, assembly: &mut Assembly<'_>) -> Result<Progress, Failure> {
    let event = lenient::event::<Event>(data);
    let event = event.map_err(|error| Failure::broken(format!("an event is no event: {error}")))?;
    match event.kind.as_str() {
        "message_start" => count(assembly, event.message.and_then(|message| message.usage)),
        "content_block_start" => begin(assembly, event.index, event.content_block.unwrap_or_default())?,
        "content_block_delta" => {
            if let Some(piece) = event.delta {
                grow(assembly, event.index, piece);
            }
        }
        "content_block_stop" => end(assembly, event.index),
        "message_delta" => {
            if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                assembly.stop(stop(&reason));
            }
            count(assembly, event.usage);
        }
        "message_stop" => {
            while let Some(index) = assembly.blocks.first().map(|block| block.index) {
                end(assembly, index);
            }
            return Ok(Progress::Ends);
        }
        "error" => return Err(Failure::in_stream(&event.error.unwrap_or_default())),
        // Pings, and what will be invented.
        _ => {}
    }
    Ok(Progress::Goes)
}

fn begin(assembly: &mut Assembly<'_>, index: u64, mut block: Value) -> Result<(), Failure> {
    if assembly.blocks.len() >= BLOCKS_MAX {
        return Err(Failure::for_good(ModelError::Broken(format!("it has more than {BLOCKS_MAX} parts"))));
    }
    let field = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    let kind = match block["type"].as_str().unwrap_or_default() {
        "text" => {
            assembly.text(&field("text"));
            BlockKind::Text
        }
        "tool_use" => {
            let at = assembly.begin_call(index, &field("id"), &field("name"))?;
            let whole = block["input"].as_object().is_some_and(|input| !input.is_empty());
            BlockKind::Call { at, whole: whole.then(|| block["input"].take()) }
        }
        "thinking" => {
            assembly.thought(&field("thinking"));
            BlockKind::Thought { thinking: field("thinking"), signature: field("signature") }
        }
        "redacted_thinking" => BlockKind::Hidden(block),
        _ => BlockKind::Other,
    };
    assembly.blocks.push(Block { index, kind });
    Ok(())
}

fn grow(assembly: &mut Assembly<'_>, index: u64, piece: Piece) {
    let Some(at) = assembly.blocks.iter().rposition(|block| block.index == index) else {
        // A gateway that leaves out the beginning of a block of text.
        assembly.text(piece.text.as_deref().unwrap_or_default());
        return;
    };
    match &mut assembly.blocks[at].kind {
        BlockKind::Text => assembly.text(piece.text.as_deref().unwrap_or_default()),
        BlockKind::Call { at, .. } => {
            let at = *at;
            assembly.arguments(at, piece.partial_json.as_deref().unwrap_or_default());
        }
        BlockKind::Thought { thinking, signature } => {
            let thought = piece.thinking.unwrap_or_default();
            thinking.push_str(&thought);
            signature.push_str(piece.signature.as_deref().unwrap_or_default());
            assembly.thought(&thought);
        }
        BlockKind::Hidden(_) | BlockKind::Other => {}
    }
}

fn end(assembly: &mut Assembly<'_>, index: u64) {
    let Some(at) = assembly.blocks.iter().rposition(|block| block.index == index) else { return };
    match assembly.blocks.remove(at).kind {
        BlockKind::Call { at, whole: Some(whole) } if !assembly.has_arguments(at) => {
            assembly.arguments(at, &whole.to_string());
        }
        // Without its signature a thought is not taken back.
        BlockKind::Thought { thinking, signature } if !signature.is_empty() => {
            let block = json!({ "type": "thinking", "thinking": thinking, "signature": signature });
            assembly.signatures.push(json!({ KEPT_AS: block }).to_string());
        }
        BlockKind::Hidden(block) => assembly.signatures.push(json!({ KEPT_AS: block }).to_string()),
        _ => {}
    }
}

/// The counts are running totals; what is not named stays. `input_tokens` are those that no cache had to do with.
fn count(assembly: &mut Assembly<'_>, tokens: Option<Tokens>) {
    let Some(tokens) = tokens else { return };
    let usage = &mut assembly.usage;
    let kept = usage.cached_tokens.saturating_add(usage.cache_write_tokens);
    let fresh = tokens.input_tokens.unwrap_or(usage.input_tokens.saturating_sub(kept));
    usage.cached_tokens = tokens.cache_read_input_tokens.unwrap_or(usage.cached_tokens);
    usage.cache_write_tokens = tokens.cache_creation_input_tokens.unwrap_or(usage.cache_write_tokens);
    usage.output_tokens = tokens.output_tokens.unwrap_or(usage.output_tokens);
    usage.input_tokens = fresh.saturating_add(usage.cached_tokens).saturating_add(usage.cache_write_tokens);
}

fn stop(reason: &str) -> Stop {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refused,
        "tool_use" => Stop::Calls,
        // `end_turn`, `stop_sequence`, `pause_turn`, and what will be invented.
        _ => Stop::Done,
    }
}
