//! An export of the audit: a line of JSON for each row, and a last line that says how many there were.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::reader::Row;

impl Row {
    /// What happened, as the chain covers it. A damaged row is shown as it is: this is when people look.
    pub fn content(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| json!({ "seq": self.seq, "damaged": self.body }))
    }

    /// The row with its hashes, as an export holds it.
    pub fn exported(&self) -> Value {
        let mut value = self.content();
        if let Some(object) = value.as_object_mut() {
            object.insert("prevHash".to_owned(), json!(self.prev_hash));
            object.insert("hash".to_owned(), json!(self.hash));
        }
        value
    }
}

/// What is in an export, for its last line: without it an export that was cut off looks whole.
#[derive(Default)]
pub struct ExportEnd {
    pub rows: u64,
    hash: Sha256,
}

impl ExportEnd {
    /// A line of the export, without its end.
    pub fn add(&mut self, line: &str) {
        self.rows += 1;
        self.hash.update(line);
        self.hash.update("\n");
    }

    /// The last line.
    pub fn line(self) -> Value {
        json!({ "line": "end", "rows": self.rows, "sha256": hex::encode(self.hash.finalize()) })
    }
}
