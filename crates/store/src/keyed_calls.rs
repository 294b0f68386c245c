//! Calls whose number the caller chose: whoever asks again with it gets the same answer, and no second call is made, by any host of the
//! database.

use std::sync::Arc;

use toolhost_contract::Clock;

use crate::db::{Db, Row, sql};
use crate::error::Result;

/// How long an answer is kept for whoever asks again.
const KEPT_MS: i64 = 24 * 3600 * 1000;

/// A call whose number was chosen.
#[derive(Debug, Clone)]
pub struct KeyedCall {
    pub project_id: i64,
    pub call_id: String,
    /// Of who asks for what.
    pub digest: String,
}

/// What asking for such a call comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// It is the first: it may be made.
    First,
    /// It was answered: the status and the text.
    Answered { status: u16, answer: String },
    /// It was begun, and its answer is not kept.
    Begun,
    /// The number is that of another call.
    OfAnother,
}

/// The keyed calls of all projects of a database.
#[derive(Clone)]
pub struct KeyedCalls {
    db: Db,
    clock: Arc<dyn Clock>,
}

impl KeyedCalls {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self { db, clock }
    }

    /// Takes the number for a call, unless it is taken.
    pub async fn claim(&self, call: &KeyedCall) -> Result<Claim> {
        let now = self.clock.unix_ms();
        let mut tx = self.db.write_lightly().await?;
        sql("DELETE FROM keyed_call WHERE at_ms < $1").bind(now - KEPT_MS).run(&mut tx).await?;
        let insert = "INSERT INTO keyed_call (project_id, call_id, digest, at_ms) VALUES ($1, $2, $3, $4)
             ON CONFLICT (project_id, call_id) DO NOTHING";
        let insert = sql(insert).bind(call.project_id).bind(&call.call_id).bind(&call.digest).bind(now);
        if insert.run(&mut tx).await? == 1 {
            // Of a call that came another way, or whose answer is kept no longer.
            let of_audit = "SELECT seq FROM audit WHERE project_id = $1 AND call_id = $2 LIMIT 1";
            if !sql(of_audit).bind(call.project_id).bind(&call.call_id).all(&mut tx).await?.is_empty() {
                return Ok(Claim::OfAnother);
            }
            tx.commit().await?;
            return Ok(Claim::First);
        }
        let row = sql(SELECT).bind(call.project_id).bind(&call.call_id).one(&mut tx).await?;
        found(call, &row)
    }

    /// What has become of a call that was begun.
    pub async fn look(&self, call: &KeyedCall) -> Result<Claim> {
        let rows = sql(SELECT).bind(call.project_id).bind(&call.call_id).read(&self.db).await?;
        rows.first().map_or(Ok(Claim::Begun), |row| found(call, row))
    }

    /// Keeps the answer of a call that has its number.
    pub async fn answered(&self, call: &KeyedCall, status: u16, answer: &str) -> Result<()> {
        let mut tx = self.db.write_lightly().await?;
        let update =
            "UPDATE keyed_call SET status = $1, answer = $2 WHERE project_id = $3 AND call_id = $4 AND digest = $5";
        let update = sql(update).bind(i64::from(status)).bind(answer).bind(call.project_id).bind(&call.call_id);
        update.bind(&call.digest).run(&mut tx).await?;
        tx.commit().await
    }
}

const SELECT: &str = "SELECT digest, status, answer FROM keyed_call WHERE project_id = $1 AND call_id = $2";

fn found(call: &KeyedCall, row: &Row) -> Result<Claim> {
    let digest: String = row.get("digest")?;
    let status: Option<i64> = row.get("status")?;
    Ok(match (status.and_then(|status| u16::try_from(status).ok()), row.get("answer")?) {
        _ if digest != call.digest => Claim::OfAnother,
        (Some(status), Some(answer)) => Claim::Answered { status, answer },
        _ => Claim::Begun,
    })
}
