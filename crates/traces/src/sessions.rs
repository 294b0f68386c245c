//! The spans of sessions, by the conventions for generative AI: a run of one, and the replies of its model. Its calls are told by the gate.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use opentelemetry::trace::{SpanContext, SpanKind};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use toolhost_agent::model::{ModelError, Stop, Usage};
use toolhost_agent::session::{LoopResult, Status};
use toolhost_agent::{BegunRun, ObservedReply, RunObserver, SessionObserver};
use toolhost_host::Origin;

use crate::Traces;
use crate::spans::{Span, Spans, parent_of, remote};

/// What stands between provider and model in the name of a model.
const NAME_GAP: &str = "::";

impl SessionObserver for Traces {
    fn begins(&self, run: &BegunRun<'_>) -> Arc<dyn RunObserver> {
        let parent = run.origin.and_then(|origin| origin.parent.as_ref()).map(remote);
        let place = self.spans.place(parent.as_ref(), &SpanKind::Internal);
        let (provider, model) = provider_and_model(run.model);
        Arc::new(Running {
            spans: Arc::clone(&self.spans),
            begins: self.spans.time.now(),
            place,
            parent,
            agent: run.persona.to_owned(),
            session: run.session.to_owned(),
            provider,
            model,
            used: Mutex::default(),
        })
    }
}

/// A run of a session.
struct Running {
    spans: Arc<Spans>,
    begins: SystemTime,
    place: SpanContext,
    parent: Option<SpanContext>,
    agent: String,
    session: String,
    provider: String,
    model: String,
    /// Tokens of this run.
    used: Mutex<Usage>,
}

impl RunObserver for Running {
    fn origin(&self) -> Arc<Origin> {
        Arc::new(Origin { parent: Some(parent_of(&self.place)), ..Origin::default() })
    }

    fn replied(&self, reply: &ObservedReply<'_>) {
        let ends = self.spans.time.now();
        let mut attributes = self.attributes("chat");
        let most = reply.output_tokens_max;
        attributes.extend(most.map(|most| KeyValue::new("gen_ai.request.max_tokens", i64::from(most))));
        let failure = match reply.result {
            Ok(said) => {
                self.used.lock().unwrap_or_else(PoisonError::into_inner).add(&said.usage);
                let why = Array::String(vec![StringValue::from(finish_reason(said.stop))]);
                attributes.push(KeyValue::new("gen_ai.response.finish_reasons", Value::Array(why)));
                attributes.extend(of_usage(&said.usage));
                None
            }
            Err(error) => Some(error_type(error)),
        };
        let is_failed = failure.is_some();
        attributes.extend(failure.map(|kind| KeyValue::new("error.type", kind)));
        let place = self.spans.place(Some(&self.place), &SpanKind::Client);
        let span = Span {
            name: format!("chat {}", self.model),
            kind: SpanKind::Client,
            begins: ends.checked_sub(reply.took).unwrap_or(ends),
            ends,
            attributes,
            links: Vec::new(),
            failed: is_failed,
        };
        self.spans.end(place, Some(&self.place), span);
    }

    fn ended(&self, result: Option<&LoopResult>) {
        let mut attributes = self.attributes("invoke_agent");
        attributes.push(KeyValue::new("gen_ai.agent.name", self.agent.clone()));
        attributes.extend(of_usage(&self.used.lock().unwrap_or_else(PoisonError::into_inner)));
        let (status, failure) = match result {
            Some(result) => (status_word(result.status), result.error.as_ref().map(|error| error.code.as_str())),
            None => ("failed", Some("journal")),
        };
        attributes.push(KeyValue::new("toolhost.session.status", status));
        attributes.extend(failure.map(|kind| KeyValue::new("error.type", kind)));
        let span = Span {
            name: format!("invoke_agent {}", self.agent),
            kind: SpanKind::Internal,
            begins: self.begins,
            ends: self.spans.time.now(),
            attributes,
            links: Vec::new(),
            failed: failure.is_some(),
        };
        self.spans.end(self.place.clone(), self.parent.as_ref(), span);
    }
}

impl Running {
    /// Of every span of the session.
    fn attributes(&self, operation: &'static str) -> Vec<KeyValue> {
        vec![
            KeyValue::new("gen_ai.operation.name", operation),
            KeyValue::new("gen_ai.provider.name", self.provider.clone()),
            KeyValue::new("gen_ai.request.model", self.model.clone()),
            KeyValue::new("gen_ai.conversation.id", self.session.clone()),
        ]
    }
}

/// The provider as the conventions name it, and the model. A script has no provider.
fn provider_and_model(name: &str) -> (String, String) {
    let (provider, model) = name.split_once(NAME_GAP).unwrap_or((name, name));
    let provider = if provider == "gemini" { "gcp.gemini" } else { provider };
    (provider.to_owned(), model.to_owned())
}

fn of_usage(usage: &Usage) -> Vec<KeyValue> {
    // A server that does not say what a reply took has not said that it took nothing.
    if usage.total() == 0 {
        return Vec::new();
    }
    let counts = [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens),
    ];
    counts.map(|(name, count)| KeyValue::new(name, i64::try_from(count).unwrap_or(i64::MAX))).into()
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Done => "stop",
        Stop::Calls => "tool_calls",
        Stop::Length => "length",
        Stop::Refused => "content_filter",
    }
}

fn error_type(error: &ModelError) -> String {
    match error {
        ModelError::Provider { status: Some(status), .. } => status.to_string(),
        ModelError::Cancelled => "cancelled".to_owned(),
        error => error.code().as_str().to_owned(),
    }
}

fn status_word(status: Status) -> &'static str {
    match status {
        Status::Completed => "completed",
        Status::Paused => "paused",
        Status::Limited => "limited",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
    }
}
