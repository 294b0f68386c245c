//! A reply, put together from the pieces of a stream.

use std::collections::HashSet;

use serde_json::Value;

use super::failure::Failure;
use crate::model::{Arguments, Delta, Follow, Message, ModelError, Reply, Stop, ToolCall, Usage};

/// Calls of one reply. A server that sends more is not a model.
const CALLS_MAX: usize = 256;

/// The longest id that every provider takes back.
const ID_BYTES_MAX: usize = 64;

/// What has come so far.
pub(super) struct Assembly<'f> {
    follow: &'f dyn Follow,
    /// Ids of calls that the conversation knows: no provider takes one twice.
    taken: HashSet<String>,
    /// Messages of the conversation: part of the ids of our own.
    position: usize,
    text: String,
    calls: Vec<Piece>,
    pub(super) signatures: Vec<String>,
    /// Thoughts that go back as they came, all in one.
    pub(super) kept_thoughts: String,
    pub(super) blocks: Vec<Block>,
    stop: Option<Stop>,
    pub(super) usage: Usage,
}

/// A call that is coming.
struct Piece {
    /// The stream's own number for it.
    key: u64,
    id: String,
    name: String,
    arguments: String,
}

/// A block of `Anthropic`'s, by its number in the stream.
pub(super) struct Block {
    pub(super) index: u64,
    pub(super) kind: BlockKind,
}

pub(super) enum BlockKind {
    Text,
    /// The call at this place.
    Call {
        at: usize,
        /// The arguments, where they stand in the beginning of the block.
        whole: Option<Value>,
    },
    Thought {
        thinking: String,
        signature: String,
    },
    /// Thoughts that only the provider reads.
    Hidden(Value),
    Other,
}

impl<'f> Assembly<'f> {
    pub(super) fn new(follow: &'f dyn Follow, messages: &[Message]) -> Self {
        let calls = messages.iter().filter_map(|message| match message {
            Message::Assistant { calls, .. } => Some(calls),
            _ => None,
        });
        Self {
            follow,
            taken: calls.flatten().map(|call| call.id.clone()).collect(),
            position: messages.len(),
            text: String::new(),
            calls: Vec::new(),
            signatures: Vec::new(),
            kept_thoughts: String::new(),
            blocks: Vec::new(),
            stop: None,
            usage: Usage::default(),
        }
    }

    pub(super) fn text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            self.follow.delta(Delta::Text(piece));
        }
    }

    pub(super) fn thought(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.follow.delta(Delta::Thought(piece));
        }
    }

    /// The place of the call that the stream means by this number and id, if it has begun.
    ///
    /// A server may number all calls 0 and tell them apart by their ids, or repeat the id in each piece.
    pub(super) fn place(&self, key: Option<u64>, id: Option<&str>) -> Option<usize> {
        let id = id.filter(|id| !id.is_empty());
        let fits = |piece: &Piece| match id {
            Some(id) => piece.id == id || piece.id.is_empty(),
            None => true,
        };
        match (key, id) {
            (Some(key), _) => self.calls.iter().rposition(|piece| piece.key == key && fits(piece)),
            (None, Some(id)) => self.calls.iter().rposition(|piece| piece.id == id),
            (None, None) => self.calls.len().checked_sub(1),
        }
    }

    /// A call begins: its place.
    pub(super) fn begin_call(&mut self, key: u64, id: &str, name: &str) -> Result<usize, Failure> {
        if self.calls.len() >= CALLS_MAX {
            return Err(Failure::for_good(ModelError::Broken(format!("it asks for more than {CALLS_MAX} calls"))));
        }
        self.calls.push(Piece { key, id: id.to_owned(), name: name.to_owned(), arguments: String::new() });
        let index = self.calls.len() - 1;
        self.follow.delta(Delta::Call { index, name, arguments: "" });
        Ok(index)
    }

    /// More of a call's arguments.
    pub(super) fn arguments(&mut self, at: usize, piece: &str) {
        if let Some(call) = self.calls.get_mut(at).filter(|_| !piece.is_empty()) {
            call.arguments.push_str(piece);
            self.follow.delta(Delta::Call { index: at, name: &call.name, arguments: piece });
        }
    }

    /// What a later piece of a call says of it that the first one did not.
    pub(super) fn name_call(&mut self, at: usize, id: &str, name: &str) {
        if let Some(call) = self.calls.get_mut(at) {
            if call.id.is_empty() {
                id.clone_into(&mut call.id);
            }
            if call.name.is_empty() {
                name.clone_into(&mut call.name);
            }
        }
    }

    pub(super) fn has_arguments(&self, at: usize) -> bool {
        self.calls.get(at).is_some_and(|call| !call.arguments.is_empty())
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// The reason given last holds. A refusal is not taken back.
    pub(super) fn stop(&mut self, stop: Stop) {
        if self.stop != Some(Stop::Refused) {
            self.stop = Some(stop);
        }
    }

    pub(super) fn has_stop(&self) -> bool {
        self.stop.is_some()
    }

    /// The reply, whole.
    pub(super) fn finish(mut self) -> Reply {
        let mut calls = Vec::with_capacity(self.calls.len());
        for (index, piece) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            let id = self.unique(piece.id, index);
            calls.push(ToolCall { id, name: piece.name, arguments: arguments(piece.arguments) });
        }
        // What the reply holds goes before what its reason says: reasons are often unknown, or wrong.
        let stop = match self.stop {
            Some(stop @ (Stop::Length | Stop::Refused)) => stop,
            _ if calls.is_empty() => Stop::Done,
            _ => Stop::Calls,
        };
        Reply { text: self.text, calls, stop, usage: self.usage, signatures: self.signatures }
    }

    /// The provider's id, if every provider would take it back and the conversation does not know it yet.
    fn unique(&mut self, id: String, index: usize) -> String {
        if is_plain(&id) && self.taken.insert(id.clone()) {
            return id;
        }
        let own = format!("call_{}_{index}", self.position);
        let further = (1..).map(|n: u64| format!("{own}_{n}"));
        let free = std::iter::once(own.clone()).chain(further).find(|id| self.taken.insert(id.clone()));
        free.unwrap_or(own)
    }
}

/// Whether it is an id, or a name, in the form that all providers take.
pub(super) fn is_plain(id: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Nothing at all is an empty object: that is how a call without arguments is often written.
fn arguments(raw: String) -> Arguments {
    if matches!(raw.trim(), "" | "null") {
        return Arguments::Json(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str::<Value>(&raw) {
        Ok(value) if value.is_object() => Arguments::Json(value),
        _ => Arguments::Malformed(raw),
    }
}
