//! A conversation, as every provider can be told it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Levels of a JSON value that a model writes.
pub(crate) const DEPTH_MAX: usize = 64;

/// Part of the instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemBlock {
    pub text: String,
    /// Whether everything up to here is the same in every request of a session, so that a provider may keep it.
    pub cache: bool,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    User {
        content: String,
    },
    Assistant {
        content: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// What the provider wants back as it was, and nobody else reads.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        signatures: Vec<String>,
    },
    /// The answer to one call. Each call has exactly one, before anything else is said.
    Tool {
        tool_call_id: String,
        name: String,
        content: String,
        #[serde(default)]
        failed: bool,
    },
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id, or one of ours where it gives none or the same one twice.
    pub id: String,
    /// The wire name: `file_read`.
    pub name: String,
    pub arguments: Arguments,
}

/// The arguments of a call, as they came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arguments {
    Json(Value),
    /// What is not a JSON object: the model is told so.
    Malformed(String),
}

impl Arguments {
    /// As the gate is handed them: what is not JSON is a text, which no tool takes.
    #[must_use]
    pub fn value(&self) -> Value {
        match self {
            Self::Json(arguments) => arguments.clone(),
            Self::Malformed(raw) => Value::String(raw.clone()),
        }
    }
}

/// Whether a value is deeper than is kept: whatever is kept stands inside others, and has to be readable again.
#[must_use]
pub fn is_too_deep(value: &Value) -> bool {
    let mut level: Vec<&Value> = vec![value];
    for _ in 0..DEPTH_MAX {
        level = level
            .into_iter()
            .flat_map(|value| -> Box<dyn Iterator<Item = &Value>> {
                match value {
                    Value::Array(items) => Box::new(items.iter()),
                    Value::Object(fields) => Box::new(fields.values()),
                    _ => Box::new(std::iter::empty()),
                }
            })
            .collect();
        if level.is_empty() {
            return false;
        }
    }
    true
}

/// A tool, as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// The wire name.
    pub name: String,
    pub description: String,
    pub schema: Value,
}

/// What a model said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    pub stop: Stop,
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<String>,
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// It was said.
    Done,
    /// Calls are to be run.
    Calls,
    /// The limit of the output was reached: what was said is a part.
    Length,
    /// The provider withheld the rest.
    Refused,
}

/// Tokens of a reply, or the sum of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// All that was sent, cached or not.
    pub input_tokens: u64,
    /// Of these, read from the provider's cache.
    pub cached_tokens: u64,
    /// Of these, written to it.
    pub cache_write_tokens: u64,
    /// All that came, thoughts included.
    pub output_tokens: u64,
    /// Counted here, all of it or some: a server did not say.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    pub fn add(&mut self, other: &Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.estimated |= other.estimated;
    }
}
