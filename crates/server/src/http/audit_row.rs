//! A row of the audit, as the API tells it.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A row of the audit.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditRow {
    seq: i64,
    at_ms: i64,
    call_id: String,
    /// `started`, `finished`, `decision` or `unknown`.
    event: String,
    tool: String,
    /// What happened, as the chain covers it.
    body: Value,
    /// SHA-256 over the hash of the row before and the body.
    hash: String,
}

impl AuditRow {
    pub(crate) fn of(row: toolhost_store::Row) -> Self {
        let body = serde_json::from_str(&row.body).unwrap_or(Value::Null);
        let toolhost_store::Row { seq, at_ms, call_id, event, tool, hash, .. } = row;
        Self { seq, at_ms, call_id, event, tool, body, hash }
    }
}
