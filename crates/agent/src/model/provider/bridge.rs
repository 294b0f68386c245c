//! Gemini and Ollama, through `genai`.
//!
//! It shapes their requests and reads their streams. What it leaves open is closed here: an end that it makes up for a
//! stream that was cut has no reason to stop; and what comes is counted as it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatRole, ChatStreamEvent, ContentPart, MessageContent, StopReason,
    StreamEnd, Tool, ToolCall, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use serde_json::{Value, json};
use toolhost_contract::Clock;

use super::assembly::Assembly;
use super::config::{ProviderConfig, extra};
use super::conversation::{NOTHING, Said, is_blank, ordered, plain};
use super::failure::{Failure, chain};
use super::{retry, transport};
use crate::model::{ModelError, Phase, ProviderKind, Request, Stop};

/// Under this name the signatures of a message's calls are kept. Only Gemini has them.
const KEPT_AS: &str = "gemini";

/// Gemini's word for a call that it could not write down itself.
const MALFORMED_CALL: &str = "MALFORMED_FUNCTION_CALL";

/// What nobody provides: `genai` wants some key for every provider, and Ollama none.
const NO_KEY: &str = "none";

/// Fields of Gemini's request that `genai` writes; it would let the settings' go before them.
const WRITTEN: [&str; 5] = ["contents", "system_instruction", "systemInstruction", "toolConfig", "tools"];

pub(super) struct Bridge {
    client: genai::Client,
    target: ServiceTarget,
    config: ProviderConfig,
}

impl Bridge {
    pub(super) fn new(config: &ProviderConfig) -> Result<Self, ModelError> {
        let client = genai::Client::builder().with_reqwest(transport::client(config)?).build();
        let client = client.map_err(|error| ModelError::Disabled(error.to_string()))?;
        let kind = if config.provider == ProviderKind::Gemini { AdapterKind::Gemini } else { AdapterKind::Ollama };
        let key = if config.key.is_empty() { NO_KEY } else { config.key.reveal() };
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(format!("{}/", config.address())),
            auth: AuthData::from_single(key),
            model: ModelIden::new(kind, config.model.as_str()),
        };
        Ok(Self { client, target, config: config.clone() })
    }

    /// One attempt: everything that comes goes into the reply.
    pub(super) async fn read(
        &self,
        request: &Request<'_>,
        assembly: &mut Assembly<'_>,
        clock: &dyn Clock,
    ) -> Result<(), Failure> {
        let came = Arc::new(AtomicUsize::new(0));
        let options = self.options(request, &came);
        let chat = self.client.exec_chat_stream(self.target.clone(), self.chat(request), Some(&options)).await;
        let mut events = chat.map_err(|error| self.failure(&error, clock))?.stream;
        let (mut phase, mut limit) = (Phase::FirstByte, self.config.timeouts.first_byte);
        loop {
            let next = tokio::time::timeout(limit, events.next()).await;
            let Some(event) = next.map_err(|_| Failure::again(ModelError::Timeout { phase, limit }))? else {
                return Err(Failure::broken("it ends in the middle"));
            };
            let max = self.config.reply_bytes_max;
            if came.load(Ordering::Relaxed) > max {
                return Err(Failure::for_good(ModelError::Broken(format!("it is longer than {max} bytes"))));
            }
            match event.map_err(|error| self.failure(&error, clock))? {
                // Said before anything was sent.
                ChatStreamEvent::Start => continue,
                ChatStreamEvent::Chunk(piece) => assembly.text(&piece.content),
                ChatStreamEvent::ReasoningChunk(piece) => assembly.thought(&piece.content),
                ChatStreamEvent::ToolCallChunk(chunk) => call(chunk.tool_call, assembly)?,
                ChatStreamEvent::ThoughtSignatureChunk(_) | ChatStreamEvent::Heartbeat => {}
                ChatStreamEvent::End(end) => return finish(end, assembly),
            }
            (phase, limit) = (Phase::Stall, self.config.timeouts.stall);
        }
    }

    /// `genai`'s errors wrap each other: what a server said, or what the network did, is somewhere inside.
    fn failure(&self, error: &genai::Error, clock: &dyn Clock) -> Failure {
        match error {
            genai::Error::HttpError { status, body, headers, .. } => {
                Failure::said(Some(status.as_u16()), body, retry::asked(headers, clock))
            }
            genai::Error::WebStream { error, .. } => {
                if let Some(inner) = error.downcast_ref::<genai::Error>() {
                    return self.failure(inner, clock);
                }
                match error.downcast_ref::<reqwest::Error>() {
                    Some(error) if error.is_connect() && error.is_timeout() => {
                        transport::late(Phase::Connect, self.config.timeouts.connect)
                    }
                    Some(error) if error.is_connect() => Failure::again(ModelError::Unreachable(chain(error))),
                    Some(error) if error.is_request() => Failure::again(ModelError::Unreachable(chain(error))),
                    _ => Failure::broken(format!("it breaks off: {}", chain(error.as_ref()))),
                }
            }
            genai::Error::ChatResponse { body, .. } => Failure::in_stream(body.get("error").unwrap_or(body)),
            genai::Error::StreamParse { serde_error, .. } => {
                Failure::broken(format!("an event is no event: {serde_error}"))
            }
            other => Failure::for_good(ModelError::Broken(other.to_string())),
        }
    }

    fn options(&self, request: &Request<'_>, came: &Arc<AtomicUsize>) -> ChatOptions {
        let came = Arc::clone(came);
        let mut options = ChatOptions::default().with_capture_usage(true).with_raw_frame_fn(move |_, frame| {
            came.fetch_add(frame.data.len(), Ordering::Relaxed);
        });
        if let Some(tokens) = request.output_tokens_max {
            options = options.with_max_tokens(tokens);
        }
        if !self.config.headers.is_empty() {
            let headers = self.config.headers.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
            options = options.with_extra_headers(Headers::from(headers.collect::<Vec<_>>()));
        }
        let extra = extra(&self.config.extra, &WRITTEN);
        if !extra.is_empty() {
            options = options.with_extra_body(serde_json::json!(extra));
        }
        options
    }

    fn chat(&self, request: &Request<'_>) -> ChatRequest {
        let blocks = request.system.iter().map(|block| block.text.as_str()).filter(|text| !is_blank(text));
        let system = blocks.collect::<Vec<_>>().join("\n\n");
        // Gemini wants the answers to one message's calls in one message; Ollama takes one of them each.
        let together = self.config.provider == ProviderKind::Gemini;
        let mut messages = Vec::<ChatMessage>::new();
        for said in ordered(request.messages) {
            let (role, parts) = parts(said);
            match messages.last_mut().filter(|last| together && last.role == ChatRole::Tool && role == ChatRole::Tool) {
                Some(last) => last.content.extend(parts),
                None => messages.push(ChatMessage::new(role, MessageContent::from_parts(parts))),
            }
        }
        let mut chat = ChatRequest::new(messages);
        chat.system = (!system.is_empty()).then_some(system);
        let tools = request.tools.iter().map(|tool| {
            let made = Tool::new(plain(&tool.name).into_owned());
            made.with_description(tool.description.clone()).with_schema(tool.schema.clone())
        });
        chat.tools = (!request.tools.is_empty()).then(|| tools.collect());
        chat
    }
}

fn parts(said: Said<'_>) -> (ChatRole, Vec<ContentPart>) {
    match said {
        Said::User(content) => {
            let content = if is_blank(content) { NOTHING } else { content };
            (ChatRole::User, vec![ContentPart::Text(content.to_owned())])
        }
        Said::Answer { id, name, content, .. } => {
            let response = ToolResponse::new(id, content).with_fn_name(name);
            (ChatRole::Tool, vec![ContentPart::ToolResponse(response)])
        }
        Said::Assistant { content, calls, signatures } => {
            let text = (!is_blank(content)).then(|| ContentPart::Text(content.to_owned()));
            let calls = calls.into_iter().enumerate().map(|(index, asked)| {
                ContentPart::ToolCall(ToolCall {
                    call_id: asked.id.into_owned(),
                    fn_name: asked.name.into_owned(),
                    fn_arguments: asked.arguments.into_owned(),
                    thought_signatures: signatures.iter().find_map(|kept| signature(kept, index)),
                })
            });
            (ChatRole::Assistant, text.into_iter().chain(calls).collect())
        }
    }
}

/// What Gemini signed the call at this place with.
fn signature(kept: &str, index: usize) -> Option<Vec<String>> {
    let kept = serde_json::from_str::<Value>(kept).ok()?;
    let kept = kept.get(KEPT_AS)?;
    if kept["call"].as_u64() != u64::try_from(index).ok() {
        return None;
    }
    serde_json::from_value(kept["signatures"].clone()).ok()
}

/// Both say a call at once, whole.
fn call(call: ToolCall, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
    let key = u64::try_from(assembly.calls()).unwrap_or(u64::MAX);
    let at = assembly.begin_call(key, &call.call_id, &call.fn_name)?;
    let arguments = match call.fn_arguments {
        Value::String(raw) => raw,
        whole => whole.to_string(),
    };
    assembly.arguments(at, &arguments);
    if let Some(signatures) = call.thought_signatures {
        assembly.signatures.push(json!({ KEPT_AS: { "call": at, "signatures": signatures } }).to_string());
    }
    Ok(())
}

fn finish(end: StreamEnd, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
    assembly.stop(match end.captured_stop_reason {
        None => return Err(Failure::broken("it ends in the middle")),
        Some(StopReason::Other(reason)) if reason == MALFORMED_CALL => {
            return Err(Failure::broken("the model wrote a call that its provider cannot read"));
        }
        Some(StopReason::MaxTokens(_)) => Stop::Length,
        Some(StopReason::ContentFilter(_)) => Stop::Refused,
        Some(_) => Stop::Done,
    });
    let tokens = |count: Option<i32>| u64::try_from(count.unwrap_or(0)).unwrap_or(0);
    if let Some(usage) = end.captured_usage {
        assembly.usage.input_tokens = tokens(usage.prompt_tokens);
        assembly.usage.output_tokens = tokens(usage.completion_tokens);
        let details = usage.prompt_tokens_details.unwrap_or_default();
        assembly.usage.cached_tokens = tokens(details.cached_tokens);
    }
    Ok(())
}
