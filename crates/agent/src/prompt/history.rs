//! What was said before, within a bound: the last turns as they were, one summary of the older.

use serde::{Deserialize, Serialize};
use toolhost_contract::visible_line;

use super::untrusted::mark_untrusted;
use crate::model::Message;

/// Turns that are told as they were (seed BAI-2.1).
pub const TURNS_VERBATIM: usize = 6;
/// Older turns that the summary has a line for; those before are counted only.
pub const TURNS_SUMMARIZED_MAX: usize = 20;
/// Characters of one side of a turn in the summary.
pub const SUMMARY_LINE_CHARS_MAX: usize = 160;
/// Characters of one side of a turn that is told as it was. What is longer is cut, and the cut is said.
pub const TURN_CHARS_MAX: usize = 32_000;

/// What a person said and what was answered in the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub user: String,
    pub assistant: String,
}

/// The messages that tell of earlier turns, oldest first.
pub(super) fn messages(prior: &[Turn]) -> Vec<Message> {
    let (older, recent) = prior.split_at(prior.len().saturating_sub(TURNS_VERBATIM));
    let mut messages = Vec::with_capacity(recent.len() * 2 + 1);
    if !older.is_empty() {
        messages.push(Message::User { content: mark_untrusted("summary of earlier turns", &summary(older)) });
    }
    for turn in recent {
        messages.push(Message::User { content: bounded(&turn.user, TURN_CHARS_MAX) });
        let content = bounded(&turn.assistant, TURN_CHARS_MAX);
        // Providers refuse a message without text.
        let content = if content.trim().is_empty() { "(no answer)".to_owned() } else { content };
        messages.push(Message::Assistant { content, calls: Vec::new(), signatures: Vec::new() });
    }
    messages
}

/// By rule, without a model: the beginning of each side of each turn.
fn summary(older: &[Turn]) -> String {
    let (counted, told) = older.split_at(older.len().saturating_sub(TURNS_SUMMARIZED_MAX));
    let mut text = format!("{} earlier turns, by their beginnings.\n", older.len());
    if !counted.is_empty() {
        text.push_str(&format!("Turns 1 to {}: left out.\n", counted.len()));
    }
    for (place, turn) in told.iter().enumerate() {
        let number = counted.len() + place + 1;
        text.push_str(&format!("Turn {number}: user: {} | answer: {}\n", line(&turn.user), line(&turn.assistant)));
    }
    text
}

fn line(text: &str) -> String {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(nothing)");
    let cut: String = first.chars().take(SUMMARY_LINE_CHARS_MAX).collect();
    let more = if cut.len() < text.trim().len() { " …" } else { "" };
    let shown: String = visible_line(&cut).chars().take(SUMMARY_LINE_CHARS_MAX).collect();
    format!("{shown}{more}")
}

/// The text, or its beginning and how much is left out.
pub(super) fn bounded(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => {
            let left_out = text[end..].chars().count();
            format!("{}\n[… {left_out} more characters left out]", &text[..end])
        }
    }
}
