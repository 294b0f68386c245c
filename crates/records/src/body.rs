//! What a kind's content must tell about itself: its title and state, and which records it names.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{RecordError, Result};
use super::kind::{Kind, RecordId};

/// The content of one kind of record.
pub trait Body: Serialize + DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static {
    const KIND: Kind;

    /// What lists show, and what some kinds are found by.
    fn title(&self) -> &str;

    /// Empty for kinds without one.
    fn state(&self) -> &str {
        ""
    }

    /// Every record it names, by the field that names it.
    fn references(&self) -> Result<Vec<Reference>> {
        Ok(Vec::new())
    }

    /// The texts that `memory.query` searches; nothing for other kinds.
    fn words(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Text of which a project keeps one record of this kind.
    fn unique(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// Effort in minutes; 0 where none is told.
    fn effort_minutes(&self) -> i64 {
        0
    }

    /// How many names it carries that name nothing here.
    fn dangling(&self) -> usize {
        0
    }
}

/// A record names another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The field of the content, in camelCase.
    pub field: &'static str,
    pub to: RecordId,
    pub on_delete: OnDelete,
}

/// What becomes of a reference when the record it names is deleted along with its uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    /// The field loses the id.
    Unlink,
    /// The record that names it goes, too.
    Cascade,
    /// Nothing goes: it can only be deleted once nothing names it.
    Refuse,
}

impl RecordId {
    /// Reads an id of this kind.
    pub fn of(kind: Kind, text: &str) -> Result<Self> {
        match Self::parse(text) {
            Some(id) if id.kind == kind => Ok(id),
            _ => Err(RecordError::BadId { text: text.chars().take(80).collect(), kind }),
        }
    }
}

/// The references of one field that holds ids of one kind.
pub(crate) fn references<'a>(
    field: &'static str,
    kind: Kind,
    on_delete: OnDelete,
    ids: impl IntoIterator<Item = &'a String>,
) -> Result<Vec<Reference>> {
    let mut found: Vec<Reference> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for id in ids {
        let to = RecordId::of(kind, id).map_err(|error| error.in_field(field))?;
        // Named twice is named once.
        if seen.insert(to) {
            found.push(Reference { field, to, on_delete });
        }
    }
    Ok(found)
}

/// A content without any mention of `gone`.
pub(super) fn without(body: &Value, references: &[Reference], gone: RecordId) -> Value {
    let mut body = body.clone();
    for reference in references.iter().filter(|reference| reference.to == gone) {
        let names_it = |value: &Value| value.as_str().and_then(RecordId::parse) == Some(gone);
        let Some(fields) = body.as_object_mut() else { continue };
        match fields.get_mut(reference.field) {
            Some(Value::Array(items)) => items.retain(|item| !names_it(item)),
            _ => {
                fields.remove(reference.field);
            }
        }
    }
    body
}
