//! What a turn of a script demands of the conversation before it is played.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::template::as_json;
use crate::model::Message;

/// Characters of a result that an error shows.
const SHOWN_MAX: usize = 160;

/// Demands on the last result of a tool, or on what the user said last.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    /// The tool whose last result is meant; without it, the last result of all.
    tool: Option<String>,
    /// Words that its text holds.
    #[serde(default)]
    contains: OneOrMore,
    /// Words that it does not hold.
    #[serde(default)]
    lacks: OneOrMore,
    /// Values at places in its JSON (JSON Pointer, RFC 6901).
    #[serde(default)]
    at: BTreeMap<String, Value>,
    /// Whether it is a failure.
    failed: Option<bool>,
    /// Words that the user's last message holds.
    #[serde(default)]
    user: OneOrMore,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl Default for OneOrMore {
    fn default() -> Self {
        Self::More(Vec::new())
    }
}

impl OneOrMore {
    fn iter(&self) -> impl Iterator<Item = &str> {
        let words = match self {
            Self::One(word) => std::slice::from_ref(word),
            Self::More(words) => words,
        };
        words.iter().map(String::as_str)
    }
}

impl Expect {
    /// # Errors
    ///
    /// What is not as demanded.
    pub(super) fn check(&self, messages: &[Message]) -> Result<(), String> {
        for word in self.user.iter() {
            let said = messages.iter().rev().find_map(|message| match message {
                Message::User { content } => Some(content.as_str()),
                _ => None,
            });
            let said = said.unwrap_or_default();
            if !said.contains(word) {
                return Err(format!("the user's last message lacks `{word}`; it begins with: {}", shown(said)));
            }
        }
        if self.is_about_results() { self.check_result(messages) } else { Ok(()) }
    }

    fn is_about_results(&self) -> bool {
        let words = self.contains.iter().chain(self.lacks.iter()).next();
        self.tool.is_some() || words.is_some() || !self.at.is_empty() || self.failed.is_some()
    }

    fn check_result(&self, messages: &[Message]) -> Result<(), String> {
        let head = self.tool.as_deref().unwrap_or(super::template::LAST);
        let (content, failed) = super::template::result(head, messages)?;
        let with = |why: String| format!("{why}; it begins with: {}", shown(content));
        if let Some(word) = self.contains.iter().find(|word| !content.contains(word)) {
            return Err(with(format!("the result lacks `{word}`")));
        }
        if let Some(word) = self.lacks.iter().find(|word| content.contains(word)) {
            return Err(with(format!("the result holds `{word}`")));
        }
        if self.failed.is_some_and(|expected| expected != failed) {
            return Err(with(format!("the result {} a failure", if failed { "is" } else { "is not" })));
        }
        for (place, expected) in &self.at {
            let value = as_json(content)?;
            let found = value.pointer(place);
            if found != Some(expected) {
                let found = found.map_or("nothing".to_owned(), Value::to_string);
                return Err(with(format!("the result has {found} at `{place}`, not {expected}")));
            }
        }
        Ok(())
    }
}

fn shown(text: &str) -> String {
    let short = text.chars().take(SHOWN_MAX).collect::<String>();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
