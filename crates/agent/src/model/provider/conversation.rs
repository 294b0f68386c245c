//! A conversation in the order that every format demands, whatever is missing from it.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Value, json};

use super::assembly::is_plain;
use crate::model::{Arguments, Message, ToolCall};

/// One thing said.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said<'a> {
    User(&'a str),
    Assistant { content: &'a str, calls: Vec<Asked<'a>>, signatures: &'a [String] },
    Answer { id: Cow<'a, str>, name: Cow<'a, str>, content: &'a str, failed: bool },
}

/// A call, in words that every provider takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked<'a> {
    /// Of this call alone in the whole conversation.
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    /// An object.
    pub(super) arguments: Cow<'a, Value>,
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
    let mut ids = HashSet::new();
    let mut rest = messages;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            Message::User { content } => said.push(Said::User(content)),
            Message::Tool { .. } => {}
            Message::Assistant { content, calls, .. } if is_blank(content) && calls.is_empty() => {}
            Message::Assistant { content, calls, signatures } => {
                let answers = behind.iter().take_while(|message| matches!(message, Message::Tool { .. })).count();
                let (answers, behind) = behind.split_at(answers);
                rest = behind;
                let asked = calls.iter().map(|call| asked(call, &mut ids)).collect::<Vec<_>>();
                let mut answers = answers.iter().collect::<Vec<_>>();
                let replies = calls.iter().zip(&asked).map(|(call, asked)| answer(call, asked, &mut answers));
                let replies = replies.collect::<Vec<_>>();
                said.push(Said::Assistant { content, calls: asked, signatures });
                said.extend(replies);
            }
        }
    }
    said
}

fn asked<'a>(call: &'a ToolCall, ids: &mut HashSet<Cow<'a, str>>) -> Asked<'a> {
    let id = plain(&call.id);
    let further = (2..).map(|n: u64| {
        let begin = id.chars().take(NAME_MAX / 2).collect::<String>();
        Cow::Owned(format!("{begin}_{n}"))
    });
    let free = std::iter::once(id.clone()).chain(further).find(|id| ids.insert(id.clone()));
    Asked { id: free.unwrap_or(id), name: plain(&call.name), arguments: object(&call.arguments) }
}

/// The answer to a call, taken from those that are left.
fn answer<'a>(call: &'a ToolCall, asked: &Asked<'a>, answers: &mut Vec<&'a Message>) -> Said<'a> {
    let answers_it =
        |message: &&Message| matches!(message, Message::Tool { tool_call_id, .. } if *tool_call_id == call.id);
    let found = answers.iter().position(answers_it).map(|place| answers.remove(place));
    let (content, failed) = match found {
        Some(Message::Tool { content, failed, .. }) => (content.as_str(), *failed),
        _ => (UNANSWERED, true),
    };
    Said::Answer { id: asked.id.clone(), name: asked.name.clone(), content, failed }
}

pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A call's arguments as an object: what is none goes back inside one, so that the model sees what it wrote and the
/// provider takes the request.
fn object(arguments: &Arguments) -> Cow<'_, Value> {
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
