//! A row of the audit on its way into the database.

use std::collections::BTreeSet;

use serde::Serialize;
use toolhost_contract::canonical_json;

use super::{Entry, Event, Item};
use crate::chain;
use crate::db::{Tx, sql, sql_of};
use crate::error::{Error, Result};
use crate::fate::trace_name;

/// The row's canonical JSON (RFC 8785): its number and time, then all that the entry says.
pub(super) fn body(row: &Entry, seq: i64, at_ms: i64) -> Result<String> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        seq: i64,
        at_ms: i64,
        #[serde(flatten)]
        entry: &'a Entry,
    }
    canonical_json(&Body { seq, at_ms, entry: row }).map_err(|error| Error::audit(error.to_string()))
}

/// The end of a project's chain.
pub(super) struct Head {
    pub(super) project: i64,
    pub(super) seq: i64,
    pub(super) hash: String,
}

/// The end of each chain that the rows belong to, kept for this transaction.
pub(super) async fn heads(tx: &mut Tx, rows: &[Item]) -> Result<Vec<Head>> {
    let projects: BTreeSet<i64> = rows.iter().map(|row| row.entry.project_id).collect();
    let mut heads = Vec::new();
    // In one order everywhere, so that no two transactions wait for each other.
    for project in projects {
        heads.push(head(tx, project).await?);
    }
    Ok(heads)
}

/// The end of a project's chain, begun if it has none, kept for this transaction.
pub(super) async fn head(tx: &mut Tx, project: i64) -> Result<Head> {
    let head = match tx.lock_chain(project).await? {
        Some(head) => head,
        None => {
            let begin = "INSERT INTO audit_head (project_id, seq, hash) VALUES ($1, 0, $2)
                 ON CONFLICT (project_id) DO NOTHING";
            sql(begin).bind(project).bind(chain::GENESIS).run(tx).await?;
            tx.lock_chain(project).await?.ok_or(Error::Sql(sqlx::Error::RowNotFound))?
        }
    };
    Ok(Head { project, seq: head.get("seq")?, hash: head.get("hash")? })
}

/// How many rows one statement inserts, the most first: each statement is a way to the thread of the database and back, and
/// each of these texts is prepared once.
const TOGETHER: [usize; 4] = [64, 16, 4, 1];
const COLUMNS: usize = 11;

/// A row with its place in the chain.
pub(super) struct Chained {
    pub(super) project: i64,
    pub(super) seq: i64,
    pub(super) at_ms: i64,
    pub(super) call_id: String,
    pub(super) session_id: Option<String>,
    pub(super) event: Event,
    pub(super) tool: String,
    pub(super) ok: Option<bool>,
    pub(super) body: String,
    pub(super) prev_hash: String,
    pub(super) hash: String,
}

pub(super) async fn insert(tx: &mut Tx, mut rows: Vec<Chained>) -> Result<()> {
    while let Some(count) = TOGETHER.into_iter().find(|count| *count <= rows.len()) {
        let rest = rows.split_off(count);
        let values: Vec<String> = (0..count).map(|n| format!("({})", tx.places(n * COLUMNS + 1, COLUMNS))).collect();
        let columns = "project_id, seq, at_ms, call_id, session_id, event, tool, ok, body, prev_hash, hash";
        let mut query = sql_of(format!("INSERT INTO audit ({columns}) VALUES {}", values.join(", ")));
        for row in rows {
            let event = serde_json::to_value(row.event).map_err(|error| Error::audit(error.to_string()))?;
            query = query.bind(row.project).bind(row.seq).bind(row.at_ms).bind(row.call_id).bind(row.session_id);
            query = query.bind(event.as_str().unwrap_or_default()).bind(row.tool).bind(row.ok).bind(row.body);
            query = query.bind(row.prev_hash).bind(row.hash);
        }
        query.run(tx).await?;
        rows = rest;
    }
    Ok(())
}

pub(super) async fn track_open(tx: &mut Tx, row: &Entry, host: &str) -> Result<()> {
    let query = match row.event {
        Event::Started => sql("INSERT INTO open_call (project_id, call_id, host, tool, trace)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (project_id, call_id)
             DO UPDATE SET host = excluded.host, tool = excluded.tool, trace = excluded.trace")
        .bind(row.project_id)
        .bind(row.call_id.as_str())
        .bind(host)
        .bind(&row.tool)
        .bind(trace_name(row.trace)),
        Event::Finished | Event::Unknown => sql("DELETE FROM open_call WHERE project_id = $1 AND call_id = $2")
            .bind(row.project_id)
            .bind(row.call_id.as_str()),
        Event::Decision => return Ok(()),
    };
    query.run(tx).await?;
    Ok(())
}
