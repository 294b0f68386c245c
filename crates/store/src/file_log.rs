//! What file tools changed, with what was there before, so that a person can undo it.
//!
//! A row is written before the change and never after it: a host that dies in between leaves a row about something that
//! did not happen, which the file itself tells. Contents are kept once each, and the oldest go when there are too many.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use toolhost_contract::Clock;

use crate::db::{Db, Row, Tx, sql};
use crate::error::Result;

/// Contents kept for one project, bytes in all; the oldest changes go first.
pub const CONTENTS_BYTES_MAX: i64 = 256 << 20;
/// Changes kept for one project.
pub const CHANGES_MAX: i64 = 50_000;
/// How often it is looked whether there are too many: once in so many changes.
const PRUNE_EVERY: i64 = 64;
/// Changes dropped at once while contents are too many.
const PRUNE_STEP: i64 = 64;

/// A change about to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewChange {
    pub project_id: i64,
    pub call_id: String,
    pub session_id: Option<String>,
    pub path: String,
    pub moved_to: Option<String>,
    pub former_sha256: Option<String>,
    pub former_mode: Option<u32>,
    /// `None` with a hash: too large to be kept.
    pub former: Option<Vec<u8>>,
    pub after_sha256: Option<String>,
}

/// A change as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    pub number: i64,
    pub call_id: String,
    pub session_id: Option<String>,
    pub at_ms: i64,
    pub path: String,
    pub moved_to: Option<String>,
    pub former_sha256: Option<String>,
    pub former_mode: Option<u32>,
    pub after_sha256: Option<String>,
}

/// Which changes to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// Of the last call that changed a file.
    LastCall,
    Call(String),
    Session(String),
    SinceMs(i64),
}

/// The changes of all projects; every call names one.
#[derive(Clone)]
pub struct FileLog {
    db: Db,
    clock: Arc<dyn Clock>,
}

impl FileLog {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self { db, clock }
    }

    /// Writes a change down. When it returns, the former content is safe.
    pub async fn before(&self, new: &NewChange) -> Result<()> {
        let mut tx = self.db.write_lightly().await?;
        tx.lock_project(new.project_id).await?;
        let text = "INSERT INTO counter (project_id, kind, value) VALUES ($1, 'file_change', 1)
             ON CONFLICT (project_id, kind) DO UPDATE SET value = counter.value + 1 RETURNING value";
        let number: i64 = sql(text).bind(new.project_id).one(&mut tx).await?.get("value")?;
        if let (Some(content), Some(sha256)) = (&new.former, &new.former_sha256) {
            let text = "INSERT INTO file_content (project_id, sha256, bytes, content) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (project_id, sha256) DO NOTHING";
            let bytes = i64::try_from(content.len()).unwrap_or(i64::MAX);
            sql(text).bind(new.project_id).bind(sha256).bind(bytes).bind(content.clone()).run(&mut tx).await?;
        }
        sql("INSERT INTO file_change (project_id, number, call_id, session_id, at_ms, path, moved_to, former_sha256,
                 former_mode, after_sha256) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
        .bind(new.project_id)
        .bind(number)
        .bind(&new.call_id)
        .bind(&new.session_id)
        .bind(self.clock.unix_ms())
        .bind(&new.path)
        .bind(&new.moved_to)
        .bind(&new.former_sha256)
        .bind(new.former_mode.map(i64::from))
        .bind(&new.after_sha256)
        .run(&mut tx)
        .await?;
        if number % PRUNE_EVERY == 0 {
            prune(&mut tx, new.project_id, number).await?;
        }
        tx.commit().await
    }

    /// The newest first.
    pub async fn changes(&self, project: i64, which: &Changes) -> Result<Vec<Change>> {
        let text = match which {
            Changes::LastCall => {
                "SELECT * FROM file_change WHERE project_id = $1 AND call_id = (SELECT call_id FROM file_change
                     WHERE project_id = $1 ORDER BY number DESC LIMIT 1) ORDER BY number DESC"
            }
            Changes::Call(_) => "SELECT * FROM file_change WHERE project_id = $1 AND call_id = $2 ORDER BY number DESC",
            Changes::Session(_) => {
                "SELECT * FROM file_change WHERE project_id = $1 AND session_id = $2 ORDER BY number DESC"
            }
            Changes::SinceMs(_) => {
                "SELECT * FROM file_change WHERE project_id = $1 AND at_ms >= $2 ORDER BY number DESC"
            }
        };
        let query = sql(text).bind(project);
        let query = match which {
            Changes::LastCall => query,
            Changes::Call(id) | Changes::Session(id) => query.bind(id),
            Changes::SinceMs(since) => query.bind(*since),
        };
        query.read(&self.db).await?.iter().map(change).collect()
    }

    /// A former content, if it was kept.
    pub async fn content(&self, project: i64, sha256: &str) -> Result<Option<Vec<u8>>> {
        let text = "SELECT content FROM file_content WHERE project_id = $1 AND sha256 = $2";
        let rows = sql(text).bind(project).bind(sha256).read(&self.db).await?;
        rows.first().map(|row| row.get("content")).transpose()
    }
}

async fn prune(tx: &mut Tx, project: i64, newest: i64) -> Result<()> {
    let mut oldest = newest - CHANGES_MAX;
    loop {
        let text = "DELETE FROM file_change WHERE project_id = $1 AND number <= $2 RETURNING former_sha256";
        let gone = sql(text).bind(project).bind(oldest).all(tx).await?;
        let hashes: Vec<Option<String>> = gone.iter().map(|row| row.get("former_sha256")).collect::<Result<_>>()?;
        for sha256 in hashes.into_iter().flatten().collect::<BTreeSet<String>>() {
            let text = "DELETE FROM file_content WHERE project_id = $1 AND sha256 = $2 AND NOT EXISTS (SELECT 1
                 FROM file_change WHERE project_id = $1 AND former_sha256 = $2)";
            sql(text).bind(project).bind(sha256).run(tx).await?;
        }
        let sums = "SELECT CAST(COALESCE(sum(bytes), 0) AS BIGINT) AS bytes FROM file_content WHERE project_id = $1";
        let kept: i64 = sql(sums).bind(project).one(tx).await?.get("bytes")?;
        let first = "SELECT COALESCE(min(number), 0) AS number FROM file_change WHERE project_id = $1";
        let first: i64 = sql(first).bind(project).one(tx).await?.get("number")?;
        if kept <= CONTENTS_BYTES_MAX || first >= newest {
            return Ok(());
        }
        oldest = (first + PRUNE_STEP).min(newest - 1);
    }
}

fn change(row: &Row) -> Result<Change> {
    let mode: Option<i64> = row.get("former_mode")?;
    Ok(Change {
        number: row.get("number")?,
        call_id: row.get("call_id")?,
        session_id: row.get("session_id")?,
        at_ms: row.get("at_ms")?,
        path: row.get("path")?,
        moved_to: row.get("moved_to")?,
        former_sha256: row.get("former_sha256")?,
        former_mode: mode.and_then(|mode| u32::try_from(mode).ok()),
        after_sha256: row.get("after_sha256")?,
    })
}
