//! A field of front matter changed line by line: entries of a map and items of a list that stay keep their bytes, with
//! the comments around them.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::finding::token;
use crate::yaml::{self, Place};

type Fields = Map<String, Value>;
/// Bytes of a text, and what stands there instead.
type Edit = (Range<usize>, String);

/// The front matter with another value of this field; none where its value does not have lines that can be told apart. Who
/// asks reads the answer again: it is a proposal.
pub(super) fn edited(front: &str, name: &str, (old, new): (&Value, &Value)) -> Option<String> {
    let (_, lines) = yaml::fields(front)?.into_iter().find(|(known, _)| known == name)?;
    let block = Block { front, places: yaml::places(front), newline: newline_of(front) };
    let pointer = format!("/{}", token(name));
    let mut edits = match (old, new) {
        (Value::Object(old), Value::Object(new)) => block.map(&pointer, lines, (old, new))?,
        (Value::Array(old), Value::Array(new)) => block.list(&pointer, lines, (old, new))?,
        _ => vec![block.scalar(&pointer, new)?],
    };
    // Edits of one place come in their order.
    edits.sort_by_key(|(at, _)| at.start);
    let mut text = front.to_owned();
    for (at, fresh) in edits.into_iter().rev() {
        text.replace_range(at, &fresh);
    }
    Some(text)
}

fn newline_of(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

struct Block<'a> {
    front: &'a str,
    places: Vec<Place>,
    newline: &'static str,
}

/// An entry of a map or an item of a list.
struct Child<'a> {
    /// The name or the number.
    key: String,
    place: &'a Place,
    /// Where its first line begins.
    line: usize,
    /// Where its name, or the value of an item, begins.
    start: usize,
    /// The end of its lines, without comments behind them.
    end: usize,
}

impl Block<'_> {
    /// The children of a value, in lines of their own; none where they are not.
    fn children(&self, pointer: &str, within: &Range<usize>) -> Option<Vec<Child<'_>>> {
        let inside = format!("{pointer}/");
        let mut found: Vec<Child<'_>> = Vec::new();
        for place in &self.places {
            let Some(key) = place.pointer.strip_prefix(&inside).filter(|key| !key.contains('/')) else { continue };
            let start = place.name_at.unwrap_or(place.at.start);
            let line = self.front[..start].rfind('\n').map_or(0, |at| at + 1);
            let is_apart = found.last().is_none_or(|last| last.line < line);
            if start < within.start || start >= within.end || !is_apart {
                return None;
            }
            let key = key.replace("~1", "/").replace("~0", "~");
            found.push(Child { key, place, line, start, end: within.end });
        }
        let lines: Vec<usize> = found.iter().skip(1).map(|child| child.line).chain([within.end]).collect();
        for (child, next) in found.iter_mut().zip(lines) {
            child.end = end_of(self.front, child.start, next);
        }
        (!found.is_empty()).then_some(found)
    }

    fn scalar(&self, pointer: &str, new: &Value) -> Option<Edit> {
        let place = self.places.iter().find(|place| place.pointer == pointer && place.is_scalar)?;
        let raw = self.front.get(place.at.clone()).filter(|raw| !raw.is_empty() && !raw.starts_with(['|', '>']))?;
        let is_simple = !matches!(new, Value::Array(_) | Value::Object(_) | Value::Null);
        is_simple.then(|| (place.at.start..place.at.start + length_of(raw), one_line(new)))
    }

    fn map(&self, pointer: &str, within: Range<usize>, (old, new): (&Fields, &Fields)) -> Option<Vec<Edit>> {
        let children = self.children(pointer, &within)?;
        let (first, last) = (children.first()?, children.last()?);
        let indent = " ".repeat(first.start - first.line);
        let mut edits = Vec::new();
        for child in &children {
            let is_alone = self.front[child.line..child.start].trim().is_empty();
            match new.get(&child.key) {
                Some(value) if old.get(&child.key) == Some(value) => {}
                Some(value) => edits.push(match self.scalar(&child.place.pointer, value) {
                    Some(edit) => edit,
                    None => (child.start..child.end, self.entry(&child.key, value)),
                }),
                None if is_alone && children.len() > 1 => edits.push((child.line..child.end, String::new())),
                None => return None,
            }
        }
        let fresh: String = new
            .iter()
            .filter(|(name, _)| !old.contains_key(*name))
            .map(|(name, value)| format!("{indent}{}", self.entry(name, value)))
            .collect();
        if !fresh.is_empty() {
            edits.push((last.end..last.end, fresh));
        }
        Some(edits)
    }

    fn list(&self, pointer: &str, within: Range<usize>, (old, new): (&[Value], &[Value])) -> Option<Vec<Edit>> {
        let children = self.children(pointer, &within)?;
        let last = children.last()?;
        let is_item = |child: &Child<'_>| self.front[child.line..child.start].trim() == "-";
        if children.len() != old.len() || !children.iter().all(is_item) || new.is_empty() {
            return None;
        }
        let partners = partners(old, new)?;
        let mut edits = Vec::new();
        for (at, child) in children.iter().enumerate() {
            let Some(partner) = partners.iter().position(|partner| *partner == Some(at)) else {
                edits.push((child.line..child.end, String::new()));
                continue;
            };
            let new = &new[partner];
            match (&old[at], new) {
                (old, new) if old == new => {}
                (Value::Object(old), Value::Object(new)) => {
                    edits.extend(self.map(&child.place.pointer, child.line..child.end, (old, new))?);
                }
                _ => edits.push(self.scalar(&child.place.pointer, new)?),
            }
        }
        let lead = &self.front[last.line..last.start];
        let (mut before, mut fresh) = (last.end, Vec::new());
        for (value, partner) in new.iter().zip(&partners).rev() {
            match partner {
                // What is new stands before the item that it is followed by.
                Some(at) => before = children[*at].line,
                None => fresh.push((before..before, self.item(lead, value))),
            }
        }
        // Of several new items in one place the first comes first.
        edits.extend(fresh.into_iter().rev());
        Some(edits)
    }

    fn entry(&self, name: &str, value: &Value) -> String {
        format!("{}: {}{}", plain(name), one_line(value), self.newline)
    }

    fn item(&self, lead: &str, value: &Value) -> String {
        let Some(fields) = value.as_object().filter(|fields| !fields.is_empty()) else {
            return format!("{lead}{}{}", one_line(value), self.newline);
        };
        let indent = " ".repeat(lead.len());
        let lines = fields.iter().enumerate().map(|(index, (name, value))| {
            let lead = if index == 0 { lead } else { &indent };
            format!("{lead}{}", self.entry(name, value))
        });
        lines.collect()
    }
}

/// How much of this is the text itself, without a comment behind it.
fn length_of(raw: &str) -> usize {
    let quote = raw.chars().next().filter(|quote| matches!(quote, '"' | '\''));
    let Some(quote) = quote else {
        return raw.split(" #").next().unwrap_or(raw).trim_end().len();
    };
    let mut chars = raw.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        let is_doubled = quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == quote);
        if (c == '\\' && quote == '"') || (c == quote && is_doubled) {
            chars.next();
        } else if c == quote {
            return at + 1;
        }
    }
    raw.trim_end().len()
}

/// For each new item the old one that it is or was. None where they change places.
fn partners(old: &[Value], new: &[Value]) -> Option<Vec<Option<usize>>> {
    let mut is_free = vec![true; old.len()];
    let mut partners = vec![None; new.len()];
    let same: [fn(&Value, &Value) -> bool; 2] =
        [|old, new| old == new, |old, new| old.get("to").is_some() && old.get("to") == new.get("to")];
    for is_same in same {
        for (at, item) in new.iter().enumerate().filter(|(at, _)| partners[*at].is_none()).collect::<Vec<_>>() {
            if let Some(found) = (0..old.len()).find(|index| is_free[*index] && is_same(&old[*index], item)) {
                is_free[found] = false;
                partners[at] = Some(found);
            }
        }
    }
    let known: Vec<usize> = partners.iter().flatten().copied().collect();
    known.is_sorted().then_some(partners)
}

/// The end of the last line that is neither empty nor a comment.
fn end_of(text: &str, start: usize, end: usize) -> usize {
    let mut last = end;
    for line in text[start..end].split_inclusive('\n').rev() {
        let line_text = line.trim_start();
        if !line_text.is_empty() && !line_text.starts_with('#') {
            break;
        }
        last -= line.len();
    }
    last
}

/// A value as YAML on one line.
pub(super) fn one_line(value: &Value) -> String {
    match value {
        Value::String(text) => plain(text),
        // YAML reads JSON as it is.
        other => other.to_string(),
    }
}

/// A text without quotes where YAML reads it as the same text, and else as JSON.
pub(super) fn plain(text: &str) -> String {
    let is_safe = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '.' | '/' | '-');
    let is_plain = text.starts_with(char::is_alphabetic) && text.chars().all(is_safe) && !text.ends_with(' ');
    match yaml::parse(text) {
        Ok(Value::String(read)) if is_plain && read == text => text.to_owned(),
        _ => Value::from(text).to_string(),
    }
}
