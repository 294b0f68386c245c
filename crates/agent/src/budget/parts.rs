//! The parts of an envelope that may be left out, and what stands in their place.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::prompt::sorted;

/// Items that are left of a longer list.
pub const LIST_ITEMS_KEPT: usize = 10;
/// Characters of a text above which it is cut.
pub const TEXT_CHARS_KEPT: usize = 400;
/// The section whose lists are summarised and whose objects are dropped.
pub(super) const DEPENDENCIES: &str = "dependency_digest";
/// The sections whose long texts are cut, the least needed first. The target is not among them.
pub(super) const TEXTS_FROM: [&str; 3] = [DEPENDENCIES, "domain_profile", "normative_baseline"];
/// Characters of the beginning that is left of a text.
const TEXT_CHARS_LEFT: usize = TEXT_CHARS_KEPT / 4 * 3;
/// Characters of the path of an object that is left out.
const PATH_CHARS_MAX: usize = 120;
/// Digits of a hash: enough to tell texts apart, few enough to be worth their tokens.
const HASH_DIGITS: usize = 16;
/// Fields of what stands for an object that is left out.
const STUB: [&str; 3] = ["hash", "path", "summary"];
/// Bytes that what stands for an object has at least: what is no longer is left as it is.
const STUB_BYTES_MIN: usize = 50;
/// Fields that name an object, the first that is there.
const NAMES: [&str; 5] = ["path", "file", "id", "node_id", "name"];

/// A step down into a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Field(String),
    Item(usize),
}

/// A part, and about how large it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) path: Vec<Step>,
    pub(super) weight: usize,
}

/// The passes, in the order of the seed: lists, then texts, then objects, then what holds the objects.
pub(super) const PASSES: [Pass; 7] = [
    Pass::Lists,
    Pass::Texts(TEXTS_FROM[0]),
    Pass::Texts(TEXTS_FROM[1]),
    Pass::Texts(TEXTS_FROM[2]),
    Pass::Objects,
    Pass::Entries,
    Pass::Section,
];

/// What a pass looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Lists of the dependencies that are longer than is kept.
    Lists,
    /// Texts of a section that are longer than is kept.
    Texts(&'static str),
    /// Objects of the dependencies.
    Objects,
    /// What the dependencies list, entry by entry.
    Entries,
    /// The dependencies as a whole.
    Section,
}

/// What a pass does to what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionKind {
    /// A list became its first items, their number and a hash.
    Summarize,
    /// A text became its beginning and a hash.
    Truncate,
    /// An object became its path, a summary and a hash.
    Drop,
}

impl Pass {
    pub(super) fn action(self) -> ActionKind {
        match self {
            Self::Lists => ActionKind::Summarize,
            Self::Texts(_) => ActionKind::Truncate,
            Self::Objects | Self::Entries | Self::Section => ActionKind::Drop,
        }
    }

    pub(super) fn section(self) -> &'static str {
        match self {
            Self::Texts(section) => section,
            _ => DEPENDENCIES,
        }
    }
}

/// The parts that a pass may shorten, the largest first; none lies within another. An empty list ends the pass.
pub(super) fn find(pass: Pass, envelope: &Value) -> Vec<Part> {
    let mut found = Vec::new();
    let mut path = vec![Step::Field(pass.section().to_owned())];
    let Some(section) = envelope.get(pass.section()) else { return found };
    match pass {
        Pass::Lists => walk(section, &mut path, &mut found, &|value| {
            value.as_array().is_some_and(|items| items.len() > LIST_ITEMS_KEPT)
        }),
        Pass::Texts(_) => walk(section, &mut path, &mut found, &is_long),
        Pass::Objects => {
            if let Value::Object(entries) = section {
                for (key, entry) in entries {
                    path.push(Step::Field(key.clone()));
                    walk(entry, &mut path, &mut found, &|value| value.is_object() && !is_ours(value));
                    path.pop();
                }
            }
        }
        Pass::Entries if is_stub(section) => {}
        Pass::Entries => {
            for (key, entry) in section.as_object().into_iter().flatten() {
                path.push(Step::Field(key.clone()));
                let is_open = (entry.is_object() || entry.is_array()) && !is_stub(entry);
                if is_open {
                    found.push(Part { path: path.clone(), weight: weight(entry) });
                }
                path.pop();
            }
        }
        Pass::Section if is_stub(section) => {}
        Pass::Section => found.push(Part { path, weight: weight(section) }),
    }
    if pass.action() == ActionKind::Drop {
        found.retain(|part| part.weight > STUB_BYTES_MIN);
    }
    found.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.path.cmp(&b.path)));
    found
}

/// What stands in the place of a part. `text` is the part as JSON; the hash is over it, of a text over the text itself.
pub(super) fn replacement(pass: Pass, path: &[Step], part: &Value, text: &str) -> Value {
    let mut hash = hex::encode(Sha256::digest(part.as_str().unwrap_or(text).as_bytes()));
    hash.truncate(HASH_DIGITS);
    match (pass.action(), part) {
        (ActionKind::Summarize, Value::Array(items)) => json!({
            "summary": format!("the first {LIST_ITEMS_KEPT} of {}; a tool reads the rest", items.len()),
            "count": items.len(),
            "items": items[..LIST_ITEMS_KEPT.min(items.len())],
            "hash": hash,
        }),
        (ActionKind::Truncate, Value::String(text)) => {
            let end = text.char_indices().nth(TEXT_CHARS_LEFT).map_or(text.len(), |(end, _)| end);
            let left_out = text[end..].chars().count();
            let head = &text[..end];
            Value::from(format!("{head} [… {left_out} more characters; a tool reads them; SHA-256 {hash}…]"))
        }
        _ => json!({ "path": name(path, part), "summary": told(part), "hash": hash }),
    }
}

fn walk(value: &Value, path: &mut Vec<Step>, found: &mut Vec<Part>, is_meant: &dyn Fn(&Value) -> bool) {
    if is_meant(value) {
        found.push(Part { path: path.clone(), weight: weight(value) });
        return;
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Step::Item(index));
                walk(item, path, found, is_meant);
                path.pop();
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                path.push(Step::Field(key.clone()));
                walk(field, path, found, is_meant);
                path.pop();
            }
        }
        _ => {}
    }
}

fn is_long(value: &Value) -> bool {
    // Bytes first: a text of so few bytes has no more characters.
    value.as_str().is_some_and(|text| text.len() > TEXT_CHARS_KEPT && text.chars().nth(TEXT_CHARS_KEPT).is_some())
}

fn has_exactly(fields: &Map<String, Value>, names: &[&str]) -> bool {
    fields.len() == names.len() && names.iter().all(|name| fields.contains_key(*name))
}

fn is_stub(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| has_exactly(fields, &STUB))
}

/// What a pass has put there: its own objects are looked into or left, not taken for the package's.
fn is_ours(value: &Value) -> bool {
    let is_summary = |fields: &Map<String, Value>| has_exactly(fields, &["summary", "count", "items", "hash"]);
    is_stub(value) || value.as_object().is_some_and(is_summary)
}

fn name(path: &[Step], part: &Value) -> String {
    let named = NAMES.iter().find_map(|name| part.get(*name)?.as_str()).filter(|name| !name.is_empty());
    let steps = path.iter().map(|step| match step {
        Step::Field(key) => key.clone(),
        Step::Item(index) => index.to_string(),
    });
    let name = named.map_or_else(|| steps.collect::<Vec<_>>().join("/"), str::to_owned);
    name.chars().take(PATH_CHARS_MAX).collect()
}

fn told(part: &Value) -> String {
    match part {
        Value::Array(items) => format!("{} items", items.len()),
        Value::Object(fields) => format!("{} fields", fields.len()),
        _ => "a value".to_owned(),
    }
}

/// About the bytes of its JSON.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| weight(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => fields.iter().map(|(key, field)| key.len() + weight(field) + 4).sum::<usize>() + 2,
        _ => 4,
    }
}

/// The part that a path leads to.
pub(super) fn at<'a>(envelope: &'a mut Value, path: &[Step]) -> Option<&'a mut Value> {
    path.iter().try_fold(envelope, |value, step| match step {
        Step::Field(key) => value.get_mut(key),
        Step::Item(index) => value.get_mut(index),
    })
}

/// A part as it stands in the text of an envelope.
pub(super) fn text(part: &Value) -> String {
    sorted(part)
}
