//! What a call has written of records, for the engine: it decides with that how a call ended of which nobody saw the end.

use serde_json::{Value, json};
use toolhost_contract::BoxFuture;
use toolhost_store::db::{Row, Tx, sql};
use toolhost_store::{Error, Subject};

use crate::Kind;

/// Records of a committed call that its caller is told of, and the bytes of a content beyond which it is left out.
const COMMITTED_RECORDS_MAX: i64 = 20;
const COMMITTED_CONTENT_BYTES_MAX: usize = 16 * 1024;

/// Records, as the engine asks of them.
#[derive(Debug)]
pub struct Traces;

impl Subject for Traces {
    fn wrote<'a>(
        &'a self,
        tx: &'a mut Tx,
        project: i64,
        call: &'a str,
    ) -> BoxFuture<'a, toolhost_store::Result<Vec<Value>>> {
        Box::pin(async move {
            let text = "SELECT kind, number, version, change, body FROM history
                 WHERE project_id = $1 AND call_id = $2 ORDER BY kind, number, version LIMIT $3";
            let rows = sql(text).bind(project).bind(call).bind(COMMITTED_RECORDS_MAX).all(tx).await?;
            rows.iter().map(written).collect()
        })
    }

    fn is_silent(&self, _: &str) -> bool {
        false
    }
}

/// A row of the history, as the caller is told of it.
fn written(row: &Row) -> toolhost_store::Result<Value> {
    let (kind, number): (String, i64) = (row.get("kind")?, row.get("number")?);
    let kind = Kind::parse(&kind).ok_or_else(|| Error::Row(format!("`{kind}` is not a kind of record")))?;
    let (version, change): (i64, String) = (row.get("version")?, row.get("change")?);
    let mut told = json!({ "id": kind.id(number).to_string(), "version": version, "change": change });
    let body: String = row.get("body")?;
    if body.len() <= COMMITTED_CONTENT_BYTES_MAX {
        let damaged = |e: serde_json::Error| Error::Row(format!("a content in the history: {e}"));
        told["content"] = serde_json::from_str(&body).map_err(damaged)?;
    }
    Ok(told)
}
