//! Arguments as they were meant: what models write who know the tools of other hosts, made what the tool takes.
//!
//! A call whose arguments pass the schema is left as it is, but for where its paths begin. Of others, names that the tool declares
//! ([`OtherName`](toolhost_contract::OtherName)), numbers in quotes and the like are read as they were meant, and the
//! answer says what was. What follows (rules, approvals, the audit) sees the result and nothing else. Nothing is guessed: two values for one
//! argument, a path outside, and every value that decides what a call may do (a command, a dry run) stay as they were sent.

mod names;
mod nulls;
mod paths;
mod shape;
mod values;

use serde_json::Value;
use toolhost_contract::workspace::Error;
use toolhost_contract::{ToolError, ToolInfo};

pub(crate) use self::nulls::without_nulls;
pub(crate) use self::shape::{resolved, words};

/// Most readings that an answer names; further ones are counted.
const NOTES_MAX: usize = 8;

/// Longest text in which a list or an object is looked for, bytes: as values it takes many times the memory.
const JSON_BYTES_MAX: usize = 1 << 20;

/// The JSON value that a text is.
fn json_in(text: &str) -> Option<Value> {
    // Most texts are none, and the beginning tells.
    let may_be = text.len() <= JSON_BYTES_MAX && text.trim_start().starts_with(['[', '{']);
    may_be.then(|| serde_json::from_str(text).ok()).flatten()
}

/// Makes arguments that do not pass the schema what it takes, as far as what was meant is certain; answers what was read how.
pub(crate) fn fit(arguments: &mut Value, tool: &ToolInfo) -> Vec<String> {
    let mut notes = Vec::new();
    if let Value::String(text) = &*arguments
        && let Some(object @ Value::Object(_)) = json_in(text)
    {
        *arguments = object;
        notes.push("the arguments from a text".to_owned());
    }
    names::fit(arguments, tool, &mut notes);
    values::fit(arguments, tool, &mut notes);
    names::fit_fields(arguments, tool, &mut notes);
    values::fit(arguments, tool, &mut notes);
    notes
}

/// Makes paths that name the workspace's folder relative to it, and for a tool that only reads also "" and those that go up and
/// down again by `..`; answers what was read how.
///
/// # Errors
/// A path is a URL or begins with `~`, and does not name the workspace.
pub(crate) fn fit_paths(
    arguments: &mut Value,
    tool: &ToolInfo,
    spellings: &[String],
) -> Result<Vec<String>, ToolError> {
    let mut notes = Vec::new();
    let fitted = paths::fit(arguments, tool, spellings, &mut notes);
    fitted.map(|()| notes).map_err(|error| Error::from(error).into())
}

/// As many readings as an answer names, and how many there are besides.
pub(crate) fn shortened(mut notes: Vec<String>) -> Vec<String> {
    let more = notes.len().saturating_sub(NOTES_MAX);
    notes.truncate(NOTES_MAX);
    notes.extend((more > 0).then(|| format!("and {more} more")));
    notes
}

/// What an answer says of how its arguments were read.
pub(crate) fn note(notes: &[String]) -> String {
    format!("[toolhost read {}]", notes.join(", "))
}

#[cfg(test)]
mod tests;
