//! What became of a call of which nobody saw the end: what it has written here tells.

use serde_json::{Value, json};
use toolhost_contract::Trace;

use crate::db::{Tx, sql};
use crate::error::Result;
use crate::subject::Subjects;

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
    subjects: Subjects,
    (project, call): (i64, &str),
    (tool, trace): (&str, &str),
) -> Result<Option<Value>> {
    let undone = |what: &str| {
        let message = format!("the call was interrupted; {what}, so nothing was changed");
        Some(json!({ "ok": false, "kind": "io", "message": message, "decided": true }))
    };
    if trace == trace_name(Trace::Records) {
        if !wrote(tx, subjects, (project, call)).await?.is_empty() {
            return Ok(Some(json!({ "ok": true, "decided": true })));
        }
        let tells = !subjects.iter().any(|subject| subject.is_silent(tool));
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
pub(crate) async fn wrote(tx: &mut Tx, subjects: Subjects, (project, call): (i64, &str)) -> Result<Vec<Value>> {
    let mut wrote = Vec::new();
    for subject in subjects {
        wrote.extend(subject.wrote(tx, project, call).await?);
    }
    Ok(wrote)
}
