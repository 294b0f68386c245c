//! Records of other systems, as drafts of ours: Cowork Forge's project folder and beads' JSON Lines.
//!
//! Pure: whoever calls has read the files. What finds no place here is told in [`Bundle::notes`], and
//! docs/imports.md says what becomes of what.

mod beads;
mod cowork;

use std::collections::BTreeMap;

use serde_json::Value;

pub use beads::beads;
pub use cowork::cowork;

use crate::records::Draft;

/// Texts by their path below the folder that was read.
pub type Files = BTreeMap<String, String>;

/// What was found.
#[derive(Debug, Default, PartialEq)]
pub struct Bundle {
    pub drafts: Vec<Draft>,
    /// What was changed or left behind on the way, for people.
    pub notes: Vec<String>,
}

impl Bundle {
    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value, field: &str) -> Vec<String> {
    value[field].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The text, or what to say where there is none: a record has a title.
fn text_or(value: &Value, field: &str, other: &str) -> String {
    Some(text(value, field)).filter(|text| !text.trim().is_empty()).unwrap_or_else(|| other.to_owned())
}

/// Milliseconds of an RFC 3339 time.
fn time_ms(value: &Value, field: &str) -> Option<i64> {
    let at = humantime::parse_rfc3339_weak(value[field].as_str()?.trim_end_matches("+00:00").trim_end_matches('Z'));
    let since = at.ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// `InProgress`, `in-progress` and `in_progress` are one word.
fn word(text: &str) -> String {
    let mut word = String::new();
    for (n, c) in text.trim().chars().enumerate() {
        if c.is_uppercase() && n > 0 && !word.ends_with('_') {
            word.push('_');
        }
        if c == '-' || c == ' ' { word.push('_') } else { word.extend(c.to_lowercase()) }
    }
    word
}
