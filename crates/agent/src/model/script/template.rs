//! Values of earlier results in a script: `{{last.data.ticketId}}`, `{{ticket_create.data.ticketId}}`.

use serde_json::Value;

use crate::model::Message;
use crate::prompt::inside_marks;

/// The last result of all; any other head is a tool's wire name, and means its last result.
pub(super) const LAST: &str = "last";

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// A value with everything in it filled in. A text that is nothing but one place takes that value as it is.
pub(super) fn fill(value: &Value, messages: &[Message]) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => match text.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)) {
            Some(path) if !path.contains(OPEN) => find(path, messages)?,
            _ => Value::String(fill_text(text, messages)?),
        },
        Value::Array(items) => Value::Array(items.iter().map(|item| fill(item, messages)).collect::<Result<_, _>>()?),
        Value::Object(fields) => {
            let filled = fields.iter().map(|(name, value)| Ok((name.clone(), fill(value, messages)?)));
            Value::Object(filled.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// A text with everything in it filled in.
pub(super) fn fill_text(text: &str, messages: &[Message]) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(OPEN) {
        let Some((path, after)) = behind.split_once(CLOSE) else {
            return Err(format!("`{OPEN}` without `{CLOSE}`"));
        };
        filled.push_str(before);
        match find(path, messages)? {
            Value::String(text) => filled.push_str(&text),
            other => filled.push_str(&other.to_string()),
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn find(path: &str, messages: &[Message]) -> Result<Value, String> {
    let mut steps = path.trim().split('.');
    let head = steps.next().unwrap_or_default();
    let (content, _) = result(head, messages)?;
    let root = as_json(content)?;
    let mut value = &root;
    for step in steps {
        let next = match value {
            Value::Array(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            other => other.get(step),
        };
        value = next.ok_or_else(|| format!("`{path}`: the result of `{head}` has no `{step}` there"))?;
    }
    Ok(value.clone())
}

/// The text of a result, and whether it is a failure.
pub(super) fn result<'m>(head: &str, messages: &'m [Message]) -> Result<(&'m str, bool), String> {
    let found = messages.iter().rev().find_map(|message| match message {
        Message::Tool { name, content, failed, .. } if head == LAST || head == name => {
            Some((content.as_str(), *failed))
        }
        _ => None,
    });
    found.ok_or_else(
        || if head == LAST { "there is no result yet".to_owned() } else { format!("no result of `{head}`") },
    )
}

/// The JSON of a result, with or without the marks that say where it is from.
pub(super) fn as_json(content: &str) -> Result<Value, String> {
    let content = inside_marks(content).unwrap_or(content);
    serde_json::from_str(content).map_err(|error| format!("the result is not JSON: {error}"))
}
