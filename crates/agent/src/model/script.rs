//! A model that plays a file of turns: no network, no chance, and it notices when a conversation is not the one it was
//! written for.
//!
//! ```json
//! {"turns": [
//!   {"calls": [{"tool": "ticket_create", "arguments": {"title": "Login"}}]},
//!   {"expect": {"at": {"/ok": true}}, "text": "Made {{last.data.ticketId}}."}
//! ]}
//! ```
//!
//! Which turn it is follows from the request: as many as the model has spoken already. So a resumed session goes on where
//! it was, and several sessions may play one script.

mod check;
mod template;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolhost_contract::BoxFuture;

use super::price::{WINDOW_DEFAULT, output_default};
use super::{Arguments, Delta, Follow, Message, Model, ModelError, ModelFacts, Reply, Request, Stop, ToolCall, Usage};
use check::Expect;

/// A script. Cheap to play, so each request is answered from the file as it was read.
pub struct Script {
    facts: ModelFacts,
    turns: Vec<Turn>,
    /// How often a turn has failed as it was told to.
    failed: Mutex<BTreeMap<usize, u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    turns: Vec<Value>,
    window: Option<u32>,
}

/// One reply.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Turn {
    /// What must be so before it is said.
    expect: Option<Expect>,
    thought: String,
    text: String,
    calls: Vec<Call>,
    stop: Option<Stop>,
    usage: Option<Usage>,
    /// Fails in this way instead.
    error: Option<Failing>,
    /// What it is for; nobody reads it but people.
    #[serde(rename = "note")]
    _note: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    /// The wire name: `file_read`.
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    /// Arguments that are not JSON, as a model may write them; instead of `arguments`.
    raw: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failing {
    /// The status that a provider would have answered with.
    code: u16,
    #[serde(default)]
    message: String,
    /// After so many times the turn is played; without it, never.
    times: Option<u32>,
}

impl Script {
    /// Reads a script. `name` is what sessions and journals call the model: `script`.
    ///
    /// # Errors
    ///
    /// [`ModelError::Script`] naming the turn that makes no sense.
    pub fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
        let file =
            serde_json::from_str::<File>(text).map_err(|error| bad(format!("the script is no script: {error}")))?;
        let mut turns = Vec::with_capacity(file.turns.len());
        for (index, turn) in file.turns.into_iter().enumerate() {
            let place = format!("turn {} of the script", index + 1);
            let turn = serde_json::from_value::<Turn>(turn).map_err(|error| bad(format!("{place}: {error}")))?;
            turn.check().map_err(|why| bad(format!("{place}: {why}")))?;
            turns.push(turn);
        }
        let window = file.window.unwrap_or(WINDOW_DEFAULT);
        let facts = ModelFacts { name: name.to_owned(), window, output_tokens: output_default(window), price: None };
        Ok(Self { facts, turns, failed: Mutex::default() })
    }

    fn play(&self, request: &Request<'_>, follow: &dyn Follow) -> Result<Reply, ModelError> {
        let index = request.messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count();
        let place = format!("turn {} of the script", index + 1);
        let Some(turn) = self.turns.get(index) else {
            return Err(bad(format!("there is no {place}: it has {}", self.turns.len())));
        };
        if let Some(expect) = &turn.expect {
            expect.check(request.messages).map_err(|why| bad(format!("{place} expects otherwise: {why}")))?;
        }
        if let Some(failing) = turn.error.as_ref().filter(|failing| self.fails(index, failing)) {
            let message = if failing.message.is_empty() { place } else { failing.message.clone() };
            return Err(ModelError::Provider { status: Some(failing.code), message, retry_after: None });
        }
        turn.reply(index, request.messages, follow).map_err(|why| bad(format!("{place}: {why}")))
    }

    fn fails(&self, index: usize, failing: &Failing) -> bool {
        let Some(times) = failing.times else { return true };
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let so_far = failed.entry(index).or_default();
        *so_far += 1;
        *so_far <= times
    }
}

impl Turn {
    fn check(&self) -> Result<(), String> {
        if self.text.is_empty() && self.calls.is_empty() && self.error.is_none() {
            return Err("it says nothing, calls nothing and does not fail".to_owned());
        }
        for call in &self.calls {
            if call.tool.trim().is_empty() {
                return Err("a call names no tool".to_owned());
            }
            if call.raw.is_some() && !call.arguments.is_empty() {
                return Err(format!("the call of `{}` has both `arguments` and `raw`", call.tool));
            }
        }
        Ok(())
    }

    fn reply(&self, index: usize, messages: &[Message], follow: &dyn Follow) -> Result<Reply, String> {
        let text = template::fill_text(&self.text, messages)?;
        let mut calls = Vec::with_capacity(self.calls.len());
        for (place, call) in self.calls.iter().enumerate() {
            let arguments = match &call.raw {
                Some(raw) => Arguments::Malformed(raw.clone()),
                None => Arguments::Json(template::fill(&Value::Object(call.arguments.clone()), messages)?),
            };
            calls.push(ToolCall { id: format!("call_{index}_{place}"), name: call.tool.clone(), arguments });
        }
        tell(follow, &self.thought, &text, &calls);
        let stop = self.stop.unwrap_or(if calls.is_empty() { Stop::Done } else { Stop::Calls });
        Ok(Reply { text, calls, stop, usage: self.usage.unwrap_or_default(), signatures: Vec::new() })
    }
}

/// Tells a reply that is known as if it came: word by word, and each call whole.
pub(super) fn tell(follow: &dyn Follow, thought: &str, text: &str, calls: &[ToolCall]) {
    for word in thought.split_inclusive(' ').filter(|word| !word.is_empty()) {
        follow.delta(Delta::Thought(word));
    }
    for word in text.split_inclusive(' ').filter(|word| !word.is_empty()) {
        follow.delta(Delta::Text(word));
    }
    for (index, call) in calls.iter().enumerate() {
        let arguments = match &call.arguments {
            Arguments::Json(value) => value.to_string(),
            Arguments::Malformed(raw) => raw.clone(),
        };
        follow.delta(Delta::Call { index, name: &call.name, arguments: &arguments });
    }
}

fn bad(message: String) -> ModelError {
    ModelError::Script(message)
}

impl Model for Script {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        follow: &'a dyn Follow,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(
            async move { if cancel.is_cancelled() { Err(ModelError::Cancelled) } else { self.play(&request, follow) } },
        )
    }
}
