//! A conversation in the order that every format demands, whatever is missing from it.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::assembly::is_plain;
use crate::model::{Arguments, Message, ToolCall};

/// One thing said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Said<'a> {
    User(&'a str),
    Assistant { content: &'a str, calls: &'a [ToolCall], signatures: &'a [String] },
    Answer { id: &'a str, name: &'a str, content: &'a str, failed: bool },
}

/// Stands where a call has no answer: a format without it is refused, and the model should know.
const UNANSWERED: &str = "no result is known of this call: it may or may not have run";

/// Stands where a message must hold something and holds nothing.
pub(super) const NOTHING: &str = "(nothing)";

/// Characters of a name.
const NAME_MAX: usize = 64;

/// Each call is answered exactly once, right behind the message that asked for it and in its order. Answers to nothing
/// are left out, and so are an assistant's messages that say nothing and ask for nothing.
pub(super) fn ordered(messages: &[Message]) -> Vec<Said<'_>> {
    let mut said = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            Message::User { content } => said.push(Said::User(content)),
            Message::Tool { .. } => {}
            Message::Assistant { content, calls, .. } if is_blank(content) && calls.is_empty() => {}
            Message::Assistant { content, calls, signatures } => {
                said.push(Said::Assistant { content, calls, signatures });
                let answers = behind.iter().take_while(|message| matches!(message, Message::Tool { .. })).count();
                let (answers, behind) = behind.split_at(answers);
                said.extend(calls.iter().map(|call| answer(call, answers)));
                rest = behind;
            }
        }
    }
    said
}

fn answer<'a>(call: &'a ToolCall, answers: &'a [Message]) -> Said<'a> {
    let found = answers.iter().find_map(|message| match message {
        Message::Tool { tool_call_id, content, failed, .. } if *tool_call_id == call.id => Some((content, *failed)),
        _ => None,
    });
    let (content, failed) = found.map_or((UNANSWERED, true), |(content, failed)| (content.as_str(), failed));
    Said::Answer { id: &call.id, name: &call.name, content, failed }
}

pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A call's arguments as an object: what is none goes back inside one, so that the model sees what it wrote and the
/// provider takes the request.
pub(super) fn object(arguments: &Arguments) -> Cow<'_, Value> {
    match arguments {
        Arguments::Json(value) if value.is_object() => Cow::Borrowed(value),
        Arguments::Json(value) => Cow::Owned(json!({ "malformed_arguments": value })),
        Arguments::Malformed(raw) => Cow::Owned(json!({ "malformed_arguments": raw })),
    }
}

/// A name or an id in the form that all providers take. A model may ask for a tool that no tool could be called.
pub(super) fn plain(name: &str) -> Cow<'_, str> {
    if is_plain(name) {
        return Cow::Borrowed(name);
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name = name.chars().take(NAME_MAX).map(plain).collect::<String>();
    Cow::Owned(if name.is_empty() { "unnamed".to_owned() } else { name })
}
