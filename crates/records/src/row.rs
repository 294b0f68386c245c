//! A record as it is stored, and as it is handed out.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::body::{Body, Reference};
use super::error::{RecordError, Result};
use super::kind::{Kind, RecordId};
use toolhost_contract::canonical_json;
use toolhost_store::Error;
use toolhost_store::db::Row;

/// The columns that [`stored`] reads.
macro_rules! columns {
    () => {
        "r.kind AS kind, r.number AS number, r.version AS version, r.iteration AS iteration, r.state AS state, \
         r.body AS body, r.waits_on AS waits_on, r.holder AS holder, r.holder_name AS holder_name, \
         r.lease_until_ms AS lease_until_ms, r.created_at_ms AS created_at_ms, r.updated_at_ms AS updated_at_ms"
    };
}
pub(crate) use columns;

/// A record whose content is JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub id: RecordId,
    pub version: i64,
    /// 0: of the project as a whole.
    pub iteration: i64,
    pub state: String,
    pub body: Value,
    pub waits_on: i64,
    /// Of the content as it is stored.
    pub(crate) bytes: usize,
    /// A key that tells holders apart.
    pub(crate) holder_key: Option<String>,
    pub holder: Option<Holder>,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
}

/// Who works on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    pub name: String,
    /// Then the task is free again; milliseconds since 1970.
    pub lease_until_ms: i64,
}

/// A record, typed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Saved<T> {
    pub id: String,
    /// Grows by one with each change; give it as `expectedVersion` to change nothing else than what you read.
    pub version: i64,
    /// The number of its iteration; none for what belongs to the project as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<i64>,
    #[serde(flatten)]
    pub content: T,
    /// Who works on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
    /// Milliseconds since 1970.
    pub updated_at_ms: i64,
}

impl<T: Serialize> Saved<T> {
    /// SHA-256 of the canonical JSON (RFC 8785) of the content: the same for the same content, whatever its version.
    pub fn revision(&self) -> Option<String> {
        let canonical = canonical_json(&self.content).ok()?;
        Some(hex::encode(Sha256::digest(canonical)))
    }
}

impl<T> Saved<T> {
    pub fn record_id(&self) -> Option<RecordId> {
        RecordId::parse(&self.id)
    }
}

pub(crate) fn stored(row: &Row) -> Result<Stored> {
    let kind: String = row.get("kind")?;
    let kind = Kind::parse(&kind).ok_or_else(|| Error::Row(format!("`{kind}` is not a kind of record")))?;
    let body: String = row.get("body")?;
    let lease: Option<i64> = row.get("lease_until_ms")?;
    let name: Option<String> = row.get("holder_name")?;
    Ok(Stored {
        id: kind.id(row.get("number")?),
        version: row.get("version")?,
        iteration: row.get("iteration")?,
        state: row.get("state")?,
        body: serde_json::from_str(&body)?,
        waits_on: row.get("waits_on")?,
        bytes: body.len(),
        holder_key: row.get("holder")?,
        holder: lease.zip(name).map(|(lease_until_ms, name)| Holder { name, lease_until_ms }),
        created_at_ms: row.get("created_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
    })
}

impl Stored {
    /// Every record that its content names.
    ///
    /// # Errors
    /// The content is not one of its kind.
    pub fn references(&self) -> Result<Vec<Reference>> {
        Ok(self.id.kind.facts(&self.body)?.references)
    }

    pub fn typed<T: Body>(self) -> Result<Saved<T>> {
        let content = serde_json::from_value(self.body)
            .map_err(|error| RecordError::Content { kind: T::KIND, problem: error.to_string() })?;
        Ok(Saved {
            id: self.id.to_string(),
            version: self.version,
            iteration: (self.iteration != 0).then_some(self.iteration),
            content,
            holder: self.holder,
            created_at_ms: self.created_at_ms,
            updated_at_ms: self.updated_at_ms,
        })
    }
}

/// What a delete took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// The record, and those that could not be without it.
    pub deleted: Vec<String>,
    /// Records that no longer name a deleted one.
    pub unlinked: Vec<String>,
}
