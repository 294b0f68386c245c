//! Front matter, field by field: the lines that change are written anew, every other byte stays.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::blocks::{one_line, plain};
use super::{Made, blocks};
use crate::document::Document;
use crate::finding::{Finding, quoted};
use crate::package::Node;
use crate::yaml;

/// The text of a document with these fields set; null takes one out. Of a field that is an object, such as `variables`, the
/// fields inside are set in the same way, and those that are not named stay.
pub(super) fn set(text: &str, wanted: &Map<String, Value>) -> Made<String> {
    if wanted.is_empty() {
        return Ok(text.to_owned());
    }
    let document = Document::parse("", text.as_bytes())?;
    let mut expected = document.front().as_object().cloned().unwrap_or_default();
    merge(&mut expected, wanted);
    let mut changed = document.clone();
    for name in wanted.keys() {
        let value = expected.get(name);
        if changed.front().get(name) == value {
            continue;
        }
        changed = with_field(&changed, name, value).ok_or_else(|| Box::new(not_editable(name)))?;
    }
    let is_right = changed.front().as_object() == Some(&expected) && changed.body() == document.body();
    match (is_right, wanted.keys().next()) {
        (true, _) | (_, None) => Ok(changed.text().to_owned()),
        (false, Some(name)) => Err(Box::new(not_editable(name))),
    }
}

/// Sets fields, and the fields of an object.
fn merge(fields: &mut Map<String, Value>, wanted: &Map<String, Value>) {
    for (name, value) in wanted {
        match (fields.get_mut(name), value) {
            (_, Value::Null) => drop(fields.shift_remove(name)),
            (Some(Value::Object(known)), Value::Object(inner)) => super::set_fields(known, inner),
            (_, Value::Object(inner)) => {
                let given = inner.iter().filter(|(_, value)| !value.is_null());
                let given = given.map(|(name, value)| (name.clone(), value.clone())).collect();
                fields.insert(name.clone(), Value::Object(given));
            }
            (_, value) => drop(fields.insert(name.clone(), value.clone())),
        }
    }
}

/// A step's text with what its front matter lacks and its node and the ways out of it say, and what that was, in a sentence.
/// None where it lacks nothing, or cannot be read.
///
/// A step that is there already keeps its front matter where the text has none. Front matter that is not whole has lost
/// something: that is an error to be told.
pub(super) fn completed(
    node: &Node,
    ways: &[Map<String, Value>],
    (text, former): (&str, Option<&Document>),
) -> Option<(String, String)> {
    let own = [("schemaVersion", json!("1.1")), ("nodeId", json!(node.id))];
    match Document::parse("", text.as_bytes()) {
        Ok(_) if former.is_some() => None,
        Ok(document) => {
            let kind = node.value.get("type").map(|kind| ("type", kind.clone()));
            let lacks = |(name, _): &(&str, Value)| document.front().get(*name).is_none();
            let given: Map<String, Value> =
                own.into_iter().chain(kind).filter(lacks).map(|(name, value)| (name.to_owned(), value)).collect();
            let names: Vec<String> = given.keys().map(|name| format!("`{name}`")).collect();
            let changed = set(text, &given).ok().filter(|_| !given.is_empty())?;
            Some((changed, format!("its front matter lacked {}, and gets what its node asks for", names.join(" and "))))
        }
        Err(error) if error.code == "FRONT_MATTER_MISSING" => {
            if let Some(former) = former {
                let front = &former.text()[..former.text().len() - former.body().len()];
                let newline = if front.contains("\r\n") { "\r\n" } else { "\n" };
                let blank = if former.body().starts_with(newline) { newline } else { "" };
                let says = "its text has no front matter, and keeps the one that is there";
                return Some((format!("{front}{blank}{}", text.trim_start_matches(['\r', '\n'])), says.to_owned()));
            }
            let said = ["type", "title", "agentId", "inputs", "outputs"];
            let said = said.iter().filter_map(|name| Some((*name, node.value.get(*name)?.clone())));
            let ways = (!ways.is_empty()).then(|| ("transitions", json!(ways)));
            let lines: String =
                own.into_iter().chain(said).chain(ways).map(|(name, value)| lines_of(name, &value, "\n")).collect();
            let says = "it had no front matter, and gets one from its node and the ways out of it";
            Some((format!("---\n{lines}---\n\n{}", text.trim_start_matches('\n')), says.to_owned()))
        }
        Err(_) => None,
    }
}

fn with_field(document: &Document, name: &str, value: Option<&Value>) -> Option<Document> {
    let (front, start) = document.yaml();
    if let (Some(old), Some(new)) = (document.front().get(name), value)
        && let Some(edited) = blocks::edited(front, name, (old, new))
        && let Some(changed) = with_front(document, start, front.len(), &edited)
        && is_only_change(document, &changed, name, new)
    {
        return Some(changed);
    }
    let newline = if front.contains("\r\n") { "\r\n" } else { "\n" };
    let fresh = value.map(|value| lines_of(name, value, newline)).unwrap_or_default();
    let span = match yaml::fields(front)?.into_iter().find(|(known, _)| known == name) {
        Some((_, lines)) => lines,
        // Behind the last field, before comments that follow it.
        None => front.len()..front.len(),
    };
    let mut text = document.text().to_owned();
    text.replace_range(moved(span, start), &fresh);
    Document::parse("", text.as_bytes()).ok()
}

fn with_front(document: &Document, start: usize, bytes: usize, front: &str) -> Option<Document> {
    let mut text = document.text().to_owned();
    text.replace_range(start..start + bytes, front);
    Document::parse("", text.as_bytes()).ok()
}

fn is_only_change(before: &Document, after: &Document, name: &str, value: &Value) -> bool {
    let mut expected = before.front().clone();
    expected[name] = value.clone();
    *after.front() == expected && after.body() == before.body()
}

fn moved(span: Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}

/// A field as YAML: a list of objects with one line for each of their fields, anything else on one line.
fn lines_of(name: &str, value: &Value, newline: &str) -> String {
    let name = plain(name);
    let objects: Option<Vec<&Map<String, Value>>> = value
        .as_array()
        .filter(|items| !items.is_empty())
        .and_then(|items| items.iter().map(Value::as_object).collect());
    let Some(objects) = objects.filter(|objects| objects.iter().all(|object| !object.is_empty())) else {
        return format!("{name}: {}{newline}", one_line(value));
    };
    let mut text = format!("{name}:{newline}");
    for object in objects {
        for (index, (name, value)) in object.iter().enumerate() {
            let lead = if index == 0 { "  - " } else { "    " };
            text += &format!("{lead}{}: {}{newline}", plain(name), one_line(value));
        }
    }
    text
}

fn not_editable(name: &str) -> Finding {
    let message = format!("the front matter is written so that its field `{}` cannot be set alone", quoted(name));
    let finding = Finding::error("FRONT_MATTER_NOT_EDITABLE", "", "", message);
    finding.expected("one field to a line").hint("give the text as a whole, or use `textEdits`")
}
