//! `OpenAI`'s chat completions, as it and the servers that copy it speak them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::assembly::Assembly;
use super::config::{Extra, ProviderConfig, extra};
use super::conversation::{Asked, NOTHING, Said, is_blank, ordered, plain};
use super::failure::Failure;
use super::{Progress, lenient};
use crate::model::{ProviderKind, Request, Secret, Stop};

pub(super) const PATH: &str = "/chat/completions";

/// The name under which a message keeps, among its signatures, what its server wants back with it. `DeepSeek` and Kimi want their
/// thoughts while the calls of the message are being answered; Gemini wants what it added to a call, such as a signature of its thoughts.
const KEPT_AS: &str = "openai";

const DONE: &str = "[DONE]";

/// Gemini's word, in the reason to stop, for a call that it could not write down itself.
const MALFORMED_CALL: &str = "malformed_function_call";

pub(super) fn headers(key: &Secret) -> Vec<(&'static str, String)> {
    if key.is_empty() { Vec::new() } else { vec![("authorization", format!("Bearer {}", key.reveal()))] }
}

/// A request's body. Everything long is borrowed: a conversation is written once, straight to bytes.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    /// What `OpenAI` calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    /// What everybody else calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    messages: Vec<Line<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat>,
    #[serde(flatten)]
    extra: Extra<'a>,
}

/// `json_object`: the text of a reply is one JSON object. Tools may be called meanwhile.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat {
    JsonObject,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Line<'a> {
    System {
        content: String,
    },
    User {
        content: &'a str,
    },
    Assistant {
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CallFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Value>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: Cow<'a, str>,
    /// JSON in a string.
    arguments: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: &'a Value,
}

pub(super) fn body<'a>(config: &'a ProviderConfig, request: &Request<'a>) -> Body<'a> {
    let at_home = config.provider == ProviderKind::OpenAi && config.base_url.is_none();
    let ours = ["model", "stream", "stream_options", "messages", "tools"];
    Body {
        model: &config.model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_completion_tokens: request.output_tokens_max.filter(|_| at_home),
        max_tokens: request.output_tokens_max.filter(|_| !at_home),
        messages: lines(request, !at_home),
        tools: request.tools.iter().map(tool).collect(),
        // Servers that copy the format may refuse the field, or call no tools beside it: for them the operator sets it.
        response_format: (request.json && at_home && !config.extra.contains_key("response_format"))
            .then_some(ResponseFormat::JsonObject),
        extra: extra(&config.extra, &[&ours[..], &["max_tokens", "max_completion_tokens"]].concat()),
    }
}

fn tool(spec: &crate::model::ToolSpec) -> Tool<'_> {
    let (name, description) = (plain(&spec.name), &spec.description);
    Tool { kind: "function", function: ToolFunction { name, description, parameters: &spec.schema } }
}

/// With `with_extra`, what a server has added to a call goes back with the call. `OpenAI` itself adds nothing, and may refuse fields that
/// it does not know.
fn lines<'a>(request: &Request<'a>, with_extra: bool) -> Vec<Line<'a>> {
    let blocks = request.system.iter().map(|block| block.text.as_str()).filter(|text| !is_blank(text));
    let content = blocks.collect::<Vec<_>>().join("\n\n");
    let system = (!content.is_empty()).then_some(Line::System { content });
    let said = ordered(request.messages).into_iter().map(|said| match said {
        Said::User(content) => Line::User { content: if is_blank(content) { NOTHING } else { content } },
        Said::Answer { id, content, .. } => Line::Tool { tool_call_id: id, content },
        Said::Assistant { content, calls, signatures } => Line::Assistant {
            content: Some(content).filter(|content| !is_blank(content)),
            reasoning_content: signatures.iter().find_map(|kept| thoughts(kept)).filter(|_| !calls.is_empty()),
            tool_calls: calls
                .into_iter()
                .enumerate()
                .map(|(at, asked)| call(asked, added(signatures, at, with_extra)))
                .collect(),
        },
    });
    system.into_iter().chain(said).collect()
}

fn call(asked: Asked<'_>, extra_content: Option<Value>) -> Call<'_> {
    let Asked { id, name, arguments } = asked;
    Call { id, kind: "function", function: CallFunction { name, arguments: arguments.to_string() }, extra_content }
}

/// What was added to the call at this place of a message.
fn added(signatures: &[String], at: usize, is_wanted: bool) -> Option<Value> {
    let is_of = |kept: &Value| kept["call"].as_u64() == u64::try_from(at).ok();
    let kept = signatures.iter().filter(|_| is_wanted).filter_map(|kept| serde_json::from_str::<Value>(kept).ok());
    let mut kept = kept.filter_map(|mut kept| Some(kept.get_mut(KEPT_AS)?.take()));
    kept.find(is_of).and_then(|mut kept| Some(kept.get_mut("extra_content")?.take()))
}

/// Thoughts that came from here.
fn thoughts(kept: &str) -> Option<String> {
    let kept = serde_json::from_str::<Value>(kept).ok()?;
    kept[KEPT_AS]["reasoning_content"].as_str().map(ToOwned::to_owned)
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default, deserialize_with = "lenient::field")]
    usage: Option<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Piece>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Piece {
    content: Option<String>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
struct CallPiece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPiece>,
    extra_content: Option<Value>,
}

#[derive(Deserialize)]
struct FunctionPiece {
    name: Option<String>,
    /// A piece of a string; some servers send the object itself.
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default, deserialize_with = "lenient::field")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::field")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::field")]
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

/// Takes an event's data into the reply.
pub(super) fn event(data: &str, assembly: &mut Assembly<'_>) -> Result<Progress, Failure> {
    if data.trim() == DONE {
        // Who closes the stream for a server that broke off has no reason to give.
        let whole = assembly.has_stop();
        return if whole { Ok(Progress::Ends) } else { Err(Failure::broken("it ends without a reason to stop")) };
    }
    let chunk = lenient::event::<Chunk>(data);
    let chunk = chunk.map_err(|error| Failure::broken(format!("an event is no event: {error}")))?;
    if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
        return Err(Failure::in_stream(&error));
    }
    if let Some(choice) = chunk.choices.into_iter().flatten().next() {
        if let Some(piece) = choice.delta {
            take(piece, assembly)?;
        }
        if let Some(reason) = choice.finish_reason {
            assembly.stop(stop(&reason)?);
        }
    }
    if let Some(tokens) = chunk.usage {
        let usage = &mut assembly.usage;
        usage.input_tokens = tokens.prompt_tokens.unwrap_or(usage.input_tokens);
        usage.output_tokens = tokens.completion_tokens.unwrap_or(usage.output_tokens);
        let cached = tokens.prompt_tokens_details.and_then(|details| details.cached_tokens);
        usage.cached_tokens = cached.unwrap_or(usage.cached_tokens);
    }
    Ok(Progress::Goes)
}

fn take(piece: Piece, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
    if let Some(thought) = piece.reasoning_content {
        assembly.thought(&thought);
        assembly.kept_thoughts.push_str(&thought);
    } else if let Some(thought) = piece.reasoning {
        assembly.thought(&thought);
    }
    assembly.text(piece.content.as_deref().unwrap_or_default());
    if let Some(refusal) = piece.refusal.filter(|refusal| !refusal.is_empty()) {
        assembly.text(&refusal);
        assembly.stop(Stop::Refused);
    }
    for call in piece.tool_calls.into_iter().flatten() {
        take_call(call, assembly)?;
    }
    Ok(())
}

fn take_call(call: CallPiece, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
    let (id, function) = (call.id.unwrap_or_default(), call.function);
    let (name, arguments) = function.map_or((None, None), |function| (function.name, function.arguments));
    let name = name.unwrap_or_default();
    let at = match assembly.place(call.index, Some(&id)) {
        Some(at) => {
            assembly.name_call(at, &id, &name);
            at
        }
        None => {
            let key = call.index.unwrap_or(u64::try_from(assembly.calls()).unwrap_or(u64::MAX));
            assembly.begin_call(key, &id, &name)?
        }
    };
    match arguments {
        Some(Value::String(piece)) => assembly.arguments(at, &piece),
        Some(Value::Null) | None => {}
        Some(whole) => assembly.arguments(at, &whole.to_string()),
    }
    if let Some(added) = call.extra_content.filter(|added| !added.is_null()) {
        assembly.signatures.push(json!({ KEPT_AS: { "call": at, "extra_content": added } }).to_string());
    }
    Ok(())
}

/// The thoughts of a whole reply, as they are sent back with the next request.
pub(super) fn keep_thoughts(assembly: &mut Assembly<'_>) {
    if !assembly.kept_thoughts.is_empty() {
        let kept = json!({ KEPT_AS: { "reasoning_content": assembly.kept_thoughts } });
        assembly.signatures.push(kept.to_string());
    }
}

/// Gemini writes a second word behind the first one: `content_filter: PROHIBITED_CONTENT`.
fn stop(reason: &str) -> Result<Stop, Failure> {
    if reason.to_ascii_lowercase().ends_with(MALFORMED_CALL) {
        return Err(Failure::broken("the model wrote a call that its provider cannot read"));
    }
    Ok(match reason.split(':').next().unwrap_or_default() {
        "length" => Stop::Length,
        "content_filter" => Stop::Refused,
        "tool_calls" | "function_call" => Stop::Calls,
        // `stop`, and what each server invents.
        _ => Stop::Done,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arguments, Message, ToolCall};

    #[test]
    fn a_json_answer_is_asked_for_where_the_provider_is_known_to_give_one() {
        let messages = [Message::User { content: "Hi".to_owned() }];
        let format = |config: &ProviderConfig, json| {
            let request = Request { system: &[], messages: &messages, tools: &[], output_tokens_max: None, json };
            serde_json::to_value(body(config, &request)).expect("a body is JSON").get("response_format").cloned()
        };
        let mut config = ProviderConfig::new(ProviderKind::OpenAi, "gpt-5");
        assert_eq!(format(&config, true), Some(json!({ "type": "json_object" })));
        assert_eq!(format(&config, false), None);
        let own = json!({ "type": "text" });
        config.extra.insert("response_format".to_owned(), own.clone());
        assert_eq!(format(&config, true), Some(own));
        let mut elsewhere = ProviderConfig::new(ProviderKind::OpenAi, "qwen");
        elsewhere.base_url = Some("http://127.0.0.1:8080/v1".to_owned());
        assert_eq!(format(&elsewhere, true), None);
    }

    #[test]
    fn what_gemini_added_to_a_call_goes_back_to_it_and_not_to_openai_itself() {
        let kept = json!({ KEPT_AS: { "call": 1, "extra_content": { "google": { "thought_signature": "c2ln" } } } });
        let call = |id: &str| ToolCall {
            id: id.to_owned(),
            name: "file_read".to_owned(),
            arguments: Arguments::Json(json!({})),
        };
        let (calls, signatures) = (vec![call("a"), call("b")], vec![kept.to_string()]);
        let messages = [Message::Assistant { content: String::new(), calls, signatures }];
        let request = Request { system: &[], messages: &messages, tools: &[], output_tokens_max: None, json: false };
        let sent = |provider| {
            let config = ProviderConfig::new(provider, "m");
            let body = serde_json::to_value(body(&config, &request)).expect("a body is JSON");
            let calls = &body["messages"][0]["tool_calls"];
            [0, 1].map(|at| calls[at].get("extra_content").cloned())
        };
        let signed = json!({ "google": { "thought_signature": "c2ln" } });
        assert_eq!(sent(ProviderKind::Gemini), [None, Some(signed)]);
        assert_eq!(sent(ProviderKind::OpenAi), [None, None]);
    }
}
