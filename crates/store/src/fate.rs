//! What became of a call of which nobody saw the end: what it has written here tells.

use serde_json::{Value, json};
use toolhost_contract::Trace;

use crate::db::{Row, Tx, sql};
use crate::error::{Error, Result};
use crate::packages::set_id;
use crate::records::Kind;

/// Records of a committed call that its caller is told of, and the bytes of a content beyond which it is left out.
const COMMITTED_RECORDS_MAX: i64 = 20;
const COMMITTED_CONTENT_BYTES_MAX: usize = 16 * 1024;
/// Tools whose work has no row in the history: none says nothing of them.
const BESIDE_THE_HISTORY: [&str; 2] = ["builder.change.stage", "builder.change.validate"];

pub(crate) fn trace_name(trace: Trace) -> &'static str {
    match trace {
        Trace::None => "none",
        Trace::Files => "files",
        Trace::Records => "records",
        Trace::Deploy => "deploy",
    }
}

/// How a call ended, as its last row tells it; `None` where that cannot be told from here. Whatever the call had begun
/// must have ended.
pub(crate) async fn outcome(
    tx: &mut Tx,
    (project, call): (i64, &str),
    tool: &str,
    trace: &str,
) -> Result<Option<Value>> {
    let undone = |what: &str| {
        let message = format!("the call was interrupted; {what}, so nothing was changed");
        Some(json!({ "ok": false, "kind": "io", "message": message, "decided": true }))
    };
    if trace == trace_name(Trace::Records) {
        if !wrote(tx, project, call).await?.is_empty() {
            return Ok(Some(json!({ "ok": true, "decided": true })));
        }
        let tells = !BESIDE_THE_HISTORY.contains(&tool);
        return Ok(tells.then(|| undone("the history has no change of it")).flatten());
    }
    if trace == trace_name(Trace::Files) {
        let text =
            "SELECT at_ms FROM audit WHERE project_id = $1 AND call_id = $2 AND event = 'started' ORDER BY seq LIMIT 1";
        let Some(started) = sql(text).bind(project).bind(call).optional(tx).await? else { return Ok(None) };
        if logged(tx, (project, call), started.get("at_ms")?).await? == Some(false) {
            return Ok(undone("it had come to no file"));
        }
    }
    Ok(None)
}

/// Whether a call had come to its first change of a file, which is logged before it is made; `None` where the log does not
/// reach back so far.
pub(crate) async fn logged(tx: &mut Tx, (project, call): (i64, &str), at_ms: i64) -> Result<Option<bool>> {
    let text = "SELECT number FROM file_change WHERE project_id = $1 AND call_id = $2 LIMIT 1";
    if !sql(text).bind(project).bind(call).all(tx).await?.is_empty() {
        return Ok(Some(true));
    }
    // The oldest changes are dropped when there are too many: the call's may be among those.
    let text = "SELECT number FROM (SELECT min(number) AS number, min(at_ms) AS at_ms FROM file_change
             WHERE project_id = $1) oldest WHERE oldest.number > 1 AND oldest.at_ms > $2";
    let dropped = !sql(text).bind(project).bind(at_ms).all(tx).await?.is_empty();
    Ok((!dropped).then_some(false))
}

/// What the one transaction of a call wrote; nothing where it was not committed.
pub(crate) async fn wrote(tx: &mut Tx, project: i64, call: &str) -> Result<Vec<Value>> {
    let text = "SELECT kind, number, version, change, body FROM history
         WHERE project_id = $1 AND call_id = $2 ORDER BY kind, number, version LIMIT $3";
    let rows = sql(text).bind(project).bind(call).bind(COMMITTED_RECORDS_MAX).all(tx).await?;
    let text = "SELECT moment, kind FROM package_change WHERE project_id = $1 AND call_id = $2 LIMIT 1";
    let package = sql(text).bind(project).bind(call).all(tx).await?;
    let mut wrote = rows.iter().map(written).collect::<Result<Vec<Value>>>()?;
    for row in &package {
        let (moment, kind): (i64, String) = (row.get("moment")?, row.get("kind")?);
        wrote.push(json!({ "moment": moment, "change": kind }));
    }
    let text = "SELECT number FROM change_set WHERE project_id = $1 AND discarded_by = $2 ORDER BY number LIMIT $3";
    for row in &sql(text).bind(project).bind(call).bind(COMMITTED_RECORDS_MAX).all(tx).await? {
        wrote.push(json!({ "changeSetId": set_id(row.get("number")?), "change": "discard" }));
    }
    Ok(wrote)
}

/// A row of the history, as the caller is told of it.
fn written(row: &Row) -> Result<Value> {
    let (kind, number): (String, i64) = (row.get("kind")?, row.get("number")?);
    let kind = Kind::parse(&kind).ok_or_else(|| Error::Row(format!("`{kind}` is no kind of record")))?;
    let (version, change): (i64, String) = (row.get("version")?, row.get("change")?);
    let mut told = json!({ "id": kind.id(number).to_string(), "version": version, "change": change });
    let body: String = row.get("body")?;
    if body.len() <= COMMITTED_CONTENT_BYTES_MAX {
        let damaged = |e: serde_json::Error| Error::Row(format!("a content in the history: {e}"));
        told["content"] = serde_json::from_str(&body).map_err(damaged)?;
    }
    Ok(told)
}
