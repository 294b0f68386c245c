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

use crate::{Draft, TIME_MS_MAX};

/// Texts by their path below the folder that was read.
pub type Files = BTreeMap<String, String>;

/// What was found.
#[derive(Debug, Default, PartialEq)]
pub struct Bundle {
    pub drafts: Vec<Draft>,
    /// The key of the iteration that the project was in.
    pub current: Option<String>,
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

/// Milliseconds of an RFC 3339 time, in UTC or away from it.
fn time_ms(value: &Value, field: &str) -> Option<i64> {
    let text = value[field].as_str()?;
    let (local, ahead_ms) = match text.char_indices().nth_back(5) {
        Some((at, '+' | '-')) if text[at..].contains(':') => (&text[..at], offset_ms(&text[at..])?),
        _ => (text.trim_end_matches('Z'), 0),
    };
    let since = humantime::parse_rfc3339_weak(local).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    let at_ms = i64::try_from(since.as_millis()).ok()? - ahead_ms;
    // What no reader can show is no time.
    Some(at_ms).filter(|at_ms| (0..=TIME_MS_MAX).contains(at_ms))
}

/// Milliseconds of `+02:00`.
fn offset_ms(text: &str) -> Option<i64> {
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
    Some(minutes * 60_000 * if text.starts_with('-') { -1 } else { 1 })
}

/// `InProgress`, `in-progress`, `IN_PROGRESS` and `in_progress` are one word.
fn word(text: &str) -> String {
    let mut word = String::new();
    let mut before = ' ';
    for c in text.trim().chars() {
        if c.is_uppercase() && before.is_lowercase() {
            word.push('_');
        }
        if c == '-' || c == ' ' {
            word.push('_')
        } else {
            word.extend(c.to_lowercase())
        }
        before = c;
    }
    word
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{time_ms, word};

    #[test]
    fn a_time_is_read_wherever_its_clock_stood() {
        for (text, expected) in [
            ("2026-01-01T00:00:00Z", Some(1_767_225_600_000)),
            ("2026-01-01T00:00:00.123456789Z", Some(1_767_225_600_123)),
            ("2026-01-01T00:00:00+00:00", Some(1_767_225_600_000)),
            ("2026-01-01T02:00:00.5+02:00", Some(1_767_225_600_500)),
            ("2025-12-31T16:30:00-07:30", Some(1_767_225_600_000)),
            ("2026-01-01T00:00:00", Some(1_767_225_600_000)),
            ("2026-01-01", None),
            ("yesterday", None),
            ("\u{6628}\u{65e5}-07:30", None),
            ("+aa:bb", None),
            ("", None),
        ] {
            assert_eq!(time_ms(&json!({ "at": text }), "at"), expected, "{text}");
        }
    }

    #[test]
    fn a_word_is_one_however_it_is_written() {
        for text in ["InProgress", "in-progress", "in_progress", "In Progress", " IN_PROGRESS ", "IN PROGRESS"] {
            assert_eq!(word(text), "in_progress", "{text}");
        }
    }
}
