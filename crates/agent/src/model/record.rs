//! A cassette: what a model was asked, as digests, and what it replied, line by line (JSON Lines).
//!
//! A cassette plays back to the conversation it was made of, and to no other: a request that differs is an error that
//! says where. Keys are not in it, for they are not in requests.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use toolhost_contract::{BoxFuture, canonical_json};

use super::price::output_default;
use super::script::tell;
use super::{Delta, Follow, Message, Model, ModelError, ModelFacts, Phase, Price, Reply, Request};

/// Bytes of a digest that a line keeps. Lines are compared with what they should be, not with what an enemy made.
const DIGEST_BYTES: usize = 12;

/// Characters of a message that tell a person which one it is.
const HINT_CHARS: usize = 60;

/// Where the lines of a cassette go. Files belong to the program.
pub trait Lines: Send + Sync {
    /// Appends one line; the line break is the sink's.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn line(&self, line: &str) -> std::io::Result<()>;
}

/// A model whose replies are written down.
pub struct Recorder<M> {
    model: M,
    lines: Box<dyn Lines>,
    /// The messages of the line before, so that a line holds only those that came since.
    before: Mutex<State>,
}

#[derive(Default)]
struct State {
    begun: bool,
    messages: Vec<String>,
}

/// A cassette that plays.
pub struct Replay {
    facts: ModelFacts,
    entries: Vec<Entry>,
    /// The first entry that is yet to be played.
    next: Mutex<usize>,
}

/// The first line: what the model was.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Head {
    cassette: u32,
    model: String,
    window: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<[f64; 4]>,
}

/// The version of the format.
const VERSION: u32 = 1;

/// Any other line: one request and its reply.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    system: String,
    tools: String,
    /// How many messages are those of the line before.
    same: usize,
    messages: Vec<String>,
    /// The beginning of the last message, for people.
    hint: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    thought: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Reply>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<Failed>,
}

/// A line with all its messages.
struct Entry {
    messages: Vec<String>,
    line: Line,
}

/// How a model did not reply.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Failed {
    Disabled { message: String },
    Unreachable { message: String },
    Connect { limit_ms: u64 },
    FirstByte { limit_ms: u64 },
    Stall { limit_ms: u64 },
    Whole { limit_ms: u64 },
    Provider { status: Option<u16>, message: String },
    Broken { message: String },
    TooLong { message: String },
    Script { message: String },
}

/// A request as a cassette compares it.
struct Digests {
    system: String,
    tools: String,
    messages: Vec<String>,
}

/// Gathers thoughts, which no reply holds, and passes everything on.
struct Overheard<'f> {
    follow: &'f dyn Follow,
    thought: Mutex<String>,
}

impl Follow for Overheard<'_> {
    fn delta(&self, delta: Delta<'_>) {
        let mut thought = self.thought.lock().unwrap_or_else(PoisonError::into_inner);
        match delta {
            Delta::Thought(piece) => thought.push_str(piece),
            Delta::Again { .. } => thought.clear(),
            Delta::Text(_) | Delta::Call { .. } => {}
        }
        drop(thought);
        self.follow.delta(delta);
    }
}

impl<M: Model> Recorder<M> {
    pub fn new(model: M, lines: Box<dyn Lines>) -> Self {
        Self { model, lines, before: Mutex::default() }
    }

    fn write(
        &self,
        request: &Request<'_>,
        thought: String,
        result: &Result<Reply, ModelError>,
    ) -> Result<(), ModelError> {
        // Somebody stopped waiting: that is nothing a model did.
        if matches!(result, Err(ModelError::Cancelled)) {
            return Ok(());
        }
        let Digests { system, tools, messages } = digests(request)?;
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        if !before.begun {
            self.put(&self.head())?;
            before.begun = true;
        }
        let same = messages.iter().zip(&before.messages).take_while(|(now, then)| now == then).count();
        let hint = request.messages.last().map(hint).unwrap_or_default();
        let (reply, failed) = match result {
            Ok(reply) => (Some(reply.clone()), None),
            Err(error) => (None, Some(Failed::of(error))),
        };
        self.put(&Line { system, tools, same, messages: messages[same..].to_vec(), hint, thought, reply, failed })?;
        before.messages = messages;
        Ok(())
    }

    fn head(&self) -> Head {
        let facts = self.model.facts();
        let price = facts.price.map(|price| [price.input, price.cached_input, price.cache_write, price.output]);
        let output_tokens = Some(facts.output_tokens);
        Head { cassette: VERSION, model: facts.name.clone(), window: facts.window, output_tokens, price }
    }

    fn put(&self, line: &impl Serialize) -> Result<(), ModelError> {
        let line = serde_json::to_string(line).map_err(|error| unwritten(&error))?;
        self.lines.line(&line).map_err(|error| unwritten(&error))
    }
}

/// A cassette with a hole would play something that never happened.
fn unwritten(error: &dyn std::error::Error) -> ModelError {
    ModelError::Script(format!("the cassette cannot be written: {error}"))
}

impl<M: Model> Model for Recorder<M> {
    fn facts(&self) -> &ModelFacts {
        self.model.facts()
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        follow: &'a dyn Follow,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let overheard = Overheard { follow, thought: Mutex::default() };
            let result = self.model.reply(request, &overheard, cancel).await;
            let thought = overheard.thought.into_inner().unwrap_or_else(PoisonError::into_inner);
            self.write(&request, thought, &result)?;
            result
        })
    }
}

impl Replay {
    /// Reads a cassette.
    ///
    /// # Errors
    ///
    /// [`ModelError::Script`] naming the line that is none. A last line that is torn, as a killed process leaves it, is
    /// left out.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
        let head = lines.next().and_then(|(_, line)| serde_json::from_str::<Head>(line).ok());
        let Some(head) = head.filter(|head| head.cassette == VERSION) else {
            return Err(bad("the first line is not that of a cassette".to_owned()));
        };
        let mut entries = Vec::<Entry>::new();
        while let Some((index, line)) = lines.next() {
            let line = match serde_json::from_str::<Line>(line) {
                Ok(line) => line,
                Err(_) if lines.peek().is_none() && !text.ends_with('\n') => break,
                Err(error) => return Err(bad(format!("line {} of the cassette: {error}", index + 1))),
            };
            let before = entries.last().map(|entry| entry.messages.as_slice()).unwrap_or_default();
            let Some(same) = before.get(..line.same) else {
                return Err(bad(format!("line {} of the cassette builds on messages that are not there", index + 1)));
            };
            let messages = same.iter().chain(&line.messages).cloned().collect();
            entries.push(Entry { messages, line });
        }
        let price = head.price.map(|[input, cached_input, cache_write, output]| Price {
            input,
            cached_input,
            cache_write,
            output,
        });
        let output_tokens = head.output_tokens.unwrap_or_else(|| output_default(head.window));
        let facts = ModelFacts { name: head.model, window: head.window, output_tokens, price };
        Ok(Self { facts, entries, next: Mutex::default() })
    }

    /// How many replies it has.
    #[must_use]
    pub fn replies(&self) -> usize {
        self.entries.len()
    }

    fn play(&self, request: &Request<'_>) -> Result<&Entry, ModelError> {
        let asked = digests(request)?;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // From where it is on; and from the beginning, for a session that another process resumes or asks again.
        let places = (*next..self.entries.len()).chain(0..*next);
        let found = places.into_iter().find(|place| difference(&self.entries[*place], &asked, request).is_none());
        if let Some(place) = found {
            *next = place + 1;
            return Ok(&self.entries[place]);
        }
        let Some(entry) = self.entries.get(*next) else {
            return Err(bad(format!("the cassette is over: it has {} replies", self.entries.len())));
        };
        let why = difference(entry, &asked, request).unwrap_or_default();
        Err(bad(format!("request {} is not the recorded one: {why}", *next + 1)))
    }
}

/// Where a request is not the recorded one.
fn difference(entry: &Entry, asked: &Digests, request: &Request<'_>) -> Option<String> {
    let pairs = entry.messages.iter().zip(&asked.messages);
    // The first of all: what comes before messages is compared first.
    if entry.line.system != asked.system {
        return Some("its instructions differ".to_owned());
    }
    if entry.line.tools != asked.tools {
        return Some("its tools differ".to_owned());
    }
    if let Some(place) = pairs.clone().position(|(then, now)| then != now) {
        return Some(format!("message {} differs, now {}", place + 1, hint(&request.messages[place])));
    }
    let (then, now) = (entry.messages.len(), asked.messages.len());
    match request.messages.get(then) {
        Some(further) => {
            Some(format!("it has {now} messages, {then} were recorded; the first further one: {}", hint(further)))
        }
        None if now < then => Some(format!("it has {now} messages, {then} were recorded, up to {}", entry.line.hint)),
        None => None,
    }
}

impl Model for Replay {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        follow: &'a dyn Follow,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            if cancel.is_cancelled() {
                return Err(ModelError::Cancelled);
            }
            let Line { thought, reply, failed, .. } = &self.play(&request)?.line;
            match (reply, failed) {
                (Some(reply), _) => {
                    tell(follow, thought, &reply.text, &reply.calls);
                    Ok(reply.clone())
                }
                (None, Some(failed)) => Err(failed.error()),
                (None, None) => Err(bad("the cassette has a request without a reply".to_owned())),
            }
        })
    }
}

impl Failed {
    fn of(error: &ModelError) -> Self {
        let message = error.to_string();
        match error {
            ModelError::Disabled(message) => Self::Disabled { message: message.clone() },
            ModelError::Unreachable(message) => Self::Unreachable { message: message.clone() },
            ModelError::Timeout { phase, limit } => {
                let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                match phase {
                    Phase::Connect => Self::Connect { limit_ms },
                    Phase::FirstByte => Self::FirstByte { limit_ms },
                    Phase::Stall => Self::Stall { limit_ms },
                    Phase::Whole => Self::Whole { limit_ms },
                }
            }
            ModelError::Provider { status, message, .. } => {
                Self::Provider { status: *status, message: message.clone() }
            }
            ModelError::Broken(message) => Self::Broken { message: message.clone() },
            ModelError::TooLong(message) => Self::TooLong { message: message.clone() },
            ModelError::Script(message) => Self::Script { message: message.clone() },
            ModelError::Cancelled => Self::Script { message },
        }
    }

    fn error(&self) -> ModelError {
        let timeout = |phase, limit_ms: &u64| ModelError::Timeout { phase, limit: Duration::from_millis(*limit_ms) };
        match self {
            Self::Disabled { message } => ModelError::Disabled(message.clone()),
            Self::Unreachable { message } => ModelError::Unreachable(message.clone()),
            Self::Connect { limit_ms } => timeout(Phase::Connect, limit_ms),
            Self::FirstByte { limit_ms } => timeout(Phase::FirstByte, limit_ms),
            Self::Stall { limit_ms } => timeout(Phase::Stall, limit_ms),
            Self::Whole { limit_ms } => timeout(Phase::Whole, limit_ms),
            Self::Provider { status, message } => {
                ModelError::Provider { status: *status, message: message.clone(), retry_after: None }
            }
            Self::Broken { message } => ModelError::Broken(message.clone()),
            Self::TooLong { message } => ModelError::TooLong(message.clone()),
            Self::Script { message } => ModelError::Script(message.clone()),
        }
    }
}

fn digests(request: &Request<'_>) -> Result<Digests, ModelError> {
    let messages = request.messages.iter().map(digest).collect::<Result<_, _>>()?;
    Ok(Digests { system: digest(&request.system)?, tools: digest(&request.tools)?, messages })
}

/// Of the canonical form (RFC 8785): the order of fields is nothing that a model is told.
fn digest(value: &impl Serialize) -> Result<String, ModelError> {
    let bytes = canonical_json(value).map_err(|error| bad(error.to_string()))?;
    Ok(hex::encode(&Sha256::digest(bytes)[..DIGEST_BYTES]))
}

/// Who says it, and how it begins.
fn hint(message: &Message) -> String {
    let value = serde_json::to_value(message).unwrap_or(Value::Null);
    let (role, content) = (value["role"].as_str().unwrap_or_default(), value["content"].as_str().unwrap_or_default());
    let begin = content.chars().take(HINT_CHARS).collect::<String>();
    format!("{role}: `{begin}`")
}

fn bad(message: String) -> ModelError {
    ModelError::Script(message)
}
