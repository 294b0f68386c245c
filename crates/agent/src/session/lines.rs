//! The lines of texts that a session has written and read, to notice a summary that repeats them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// Shorter lines are in too many texts to tell.
const TELLING_CHARS_MIN: usize = 12;

/// Lines, each as a number: what was read in a long session would not fit into memory twice.
#[derive(Debug, Default, Clone)]
pub(super) struct Lines(HashSet<u64>);

impl Lines {
    /// Adds the lines of each text of several lines.
    pub(super) fn add(&mut self, value: &Value) {
        let mut left = vec![value];
        while let Some(value) = left.pop() {
            match value {
                Value::String(text) => self.add_text(text),
                Value::Array(items) => left.extend(items),
                Value::Object(fields) => left.extend(fields.values()),
                _ => {}
            }
        }
    }

    /// Adds the lines of a text, if it has several.
    pub(super) fn add_text(&mut self, text: &str) {
        if text.contains('\n') {
            let telling = text.lines().map(str::trim).filter(|line| line.chars().count() >= TELLING_CHARS_MIN);
            self.0.extend(telling.map(number));
        }
    }

    pub(super) fn has(&self, line: &str) -> bool {
        self.0.contains(&number(line))
    }
}

fn number(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}
