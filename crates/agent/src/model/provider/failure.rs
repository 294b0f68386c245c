//! Why an attempt failed, and whether another may help.

use std::time::Duration;

use serde_json::Value;

use super::ProviderConfig;
use crate::model::ModelError;

/// An attempt without a reply.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    /// Whether the same request may succeed later.
    pub(super) again: bool,
}

/// Characters of a provider's own words that a message keeps.
const WORDS_MAX: usize = 1000;

/// The states of a server that pass: too many requests, and failures of its own (529 is `Anthropic`'s "overloaded").
const PASSING: [u16; 6] = [429, 500, 502, 503, 504, 529];

/// How providers say that a conversation is too long, in the words of their errors.
const TOO_LONG: [&str; 9] = [
    "prompt is too long",
    "context_length_exceeded",
    "context length",
    "context window",
    "maximum context",
    "context size",
    "input token count",
    "too many tokens",
    "exceed context limit",
];

impl Failure {
    /// May pass.
    pub(super) fn again(error: ModelError) -> Self {
        Self { error, again: true }
    }

    /// Will be the same next time.
    pub(super) fn for_good(error: ModelError) -> Self {
        Self { error, again: false }
    }

    /// What came is no reply; another attempt may bring one.
    pub(super) fn broken(why: impl Into<String>) -> Self {
        Self::again(ModelError::Broken(why.into()))
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        match &self.error {
            ModelError::Provider { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// What a server says that said no.
    pub(super) fn said(status: Option<u16>, body: &str, retry_after: Option<Duration>) -> Self {
        let value = serde_json::from_str::<Value>(body).unwrap_or(Value::Null);
        // Written anew, JSON has no escapes that a key could hide behind.
        let whole = || if value.is_null() { body.to_owned() } else { value.to_string() };
        let message = message(&value).unwrap_or_else(whole);
        let message = if message.trim().is_empty() { "nothing more".to_owned() } else { message.trim().to_owned() };
        let code = code(&value);
        let lower = message.to_lowercase();
        let may_be_long = matches!(status, None | Some(400 | 413 | 422));
        let is_long = TOO_LONG.iter().any(|words| lower.contains(words) || code.contains(words));
        if status == Some(413) || may_be_long && is_long {
            return Self::for_good(ModelError::TooLong(message));
        }
        // Who has no money left is told so with the status of who asks too often.
        let again = code != "insufficient_quota" && status.is_none_or(|status| PASSING.contains(&status));
        Self { error: ModelError::Provider { status, message, retry_after }, again }
    }

    /// What a stream says that breaks off with an error: `{"type": …, "message": …}` and its kin. Its kind stands for
    /// the status it would have had before the stream began.
    pub(super) fn in_stream(error: &Value) -> Self {
        let status = status_of(error);
        Self::said(status, &error.to_string(), None)
    }

    /// Without any key, and shortened: in this order, since half a key is known no more.
    pub(super) fn scrubbed(mut self, config: &ProviderConfig) -> Self {
        match &mut self.error {
            ModelError::Disabled(text)
            | ModelError::Unreachable(text)
            | ModelError::Broken(text)
            | ModelError::TooLong(text)
            | ModelError::Script(text)
            | ModelError::Provider { message: text, .. } => *text = shortened(&config.scrub(text)),
            ModelError::Timeout { .. } | ModelError::Cancelled => {}
        }
        self
    }
}

/// The status that an error in a stream stands for. None for what nobody documented: that may pass.
fn status_of(error: &Value) -> Option<u16> {
    let code = &error["code"];
    if let Some(status) = code.as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400) {
        return Some(status);
    }
    let kind = error["type"].as_str().or(code.as_str()).or(error["status"].as_str()).unwrap_or_default();
    match kind {
        "overloaded_error" => Some(529),
        "api_error" | "server_error" | "internal_server_error" => Some(500),
        "timeout_error" => Some(504),
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => Some(429),
        "invalid_request_error" => Some(400),
        "authentication_error" => Some(401),
        "billing_error" => Some(402),
        "permission_error" => Some(403),
        "not_found_error" => Some(404),
        "request_too_large" => Some(413),
        _ => None,
    }
}

/// The provider's own words: `{"error": {"message": …}}` (`Anthropic`, `OpenAI`, Gemini), `{"error": "…"}` (Ollama).
fn message(value: &Value) -> Option<String> {
    let inner = match value {
        Value::Array(several) => several.first()?,
        other => other,
    };
    let places = ["/error/message", "/message", "/error", "/detail"];
    places.iter().find_map(|place| inner.pointer(place)?.as_str().map(ToOwned::to_owned))
}

fn code(value: &Value) -> String {
    let places = ["/error/code", "/code", "/error/type", "/type"];
    places.iter().find_map(|place| value.pointer(place)?.as_str()).unwrap_or_default().to_owned()
}

fn shortened(text: &str) -> String {
    let mut short = text.chars().take(WORDS_MAX).collect::<String>();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// An error and what caused it, in one line: `reqwest` says "error sending request" and keeps the reason behind it.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}
