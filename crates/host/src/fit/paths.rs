//! Paths that begin with the workspace's own folder.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde_json::Value;
use toolhost_contract::ToolInfo;
use toolhost_contract::workspace::PathError;

/// A file of this machine as a URL (RFC 8089).
const URL: &str = "file://";
const SCHEME: &str = "file:/";
const THIS_MACHINE: &str = "localhost";

/// # Errors
/// A path names a place outside in a form that would be taken for the name of a file.
pub(super) fn fit(
    arguments: &mut Value,
    tool: &ToolInfo,
    spellings: &[String],
    notes: &mut Vec<String>,
) -> Result<(), PathError> {
    for name in tool.facts.paths {
        let paths = match arguments.get_mut(*name) {
            Some(Value::Array(entries)) => entries.iter_mut().collect(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        let (mut changed, mut shortened) = (0, 0);
        for path in paths {
            let Value::String(text) = path else { continue };
            match inside(text, spellings) {
                Some(inside) => {
                    *text = inside;
                    changed += 1;
                }
                None if is_of_the_machine(text) => return Err(PathError::Absolute(text.clone())),
                None => {}
            }
            // For a change, `..` behind a link could be meant in two ways.
            if tool.facts.only_reads()
                && let Some(short) = without_parents(text)
            {
                *text = short;
                shortened += 1;
            }
        }
        if changed > 0 {
            notes.push(format!("`{name}` relative to the workspace"));
        }
        if shortened > 0 {
            notes.push(format!("`{name}` as the shortest path to the same place"));
        }
    }
    Ok(())
}

/// What a relative path names without `..`, if it stays inside; the root for "".
fn without_parents(text: &str) -> Option<String> {
    if text.starts_with('/') || !(text.is_empty() || text.split('/').any(|part| part == "..")) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

/// `file:` and `~` begin no name that is meant as one.
fn is_of_the_machine(text: &str) -> bool {
    let is_url = text.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
    is_url || text == "~" || text.starts_with("~/")
}

/// What the text names below the workspace's folder, if it begins with that folder. Everything else stays, and is refused where
/// paths are opened.
fn inside(text: &str, spellings: &[String]) -> Option<String> {
    let path = match text.strip_prefix(URL) {
        Some(rest) => {
            let path = rest.strip_prefix(THIS_MACHINE).unwrap_or(rest);
            percent_decode_str(path).decode_utf8().ok()?
        }
        None => Cow::Borrowed(text),
    };
    if !path.starts_with(['/', '~']) {
        return None;
    }
    let below = |folder: &String| match path.strip_prefix(folder.as_str())? {
        "" => Some("."),
        rest => rest.strip_prefix('/').map(|rest| rest.trim_start_matches('/')),
    };
    // The longest: one may lie in another.
    let mut folders: Vec<&String> = spellings.iter().collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
    let rest = folders.into_iter().find_map(below)?;
    let is_plain = !rest.split('/').any(|part| part == "..");
    is_plain.then(|| if rest.is_empty() { ".".to_owned() } else { rest.to_owned() })
}
