//! How much of the host the calls of a project may have, as an owner has set it.

use serde::Serialize;
use toolhost_contract::WORKBENCH_DOOR;

use crate::db::{Db, sql, sql_of};
use crate::error::Result;

/// Most calls a minute, and most open at once, that a quota can say: a host has further limits of its own.
pub const QUOTA_MINUTE_MAX: u32 = 60_000;
pub const QUOTA_OPEN_MAX: u32 = 1024;

/// Rows of the audit that are looked at for each call that is counted: its two, and as many of calls that were refused.
const ROWS_OF_CALL_MAX: i64 = 4;
/// Rows that are looked at in any case.
const ROWS_MIN: i64 = 1000;

/// How much of the host the calls of a project may have; what is `None` has no limit of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    calls_per_minute: Option<u32>,
    calls_open: Option<u32>,
}

impl Quota {
    /// # Errors
    /// If a limit is out of bounds: what is wrong.
    pub fn new(calls_per_minute: Option<u32>, calls_open: Option<u32>) -> std::result::Result<Self, String> {
        let limits = [
            ("calls per minute", calls_per_minute, QUOTA_MINUTE_MAX),
            ("calls open at once", calls_open, QUOTA_OPEN_MAX),
        ];
        for (what, said, most) in limits {
            if said.is_some_and(|said| !(1..=most).contains(&said)) {
                return Err(format!("{what} go from 1 to {most}"));
            }
        }
        Ok(Self { calls_per_minute, calls_open })
    }

    pub fn calls_per_minute(&self) -> Option<u32> {
        self.calls_per_minute
    }

    pub fn calls_open(&self) -> Option<u32> {
        self.calls_open
    }
}

/// The quotas of all projects of a database.
#[derive(Clone)]
pub struct Quotas {
    db: Db,
}

impl Quotas {
    pub(crate) fn new(db: Db) -> Self {
        Self { db }
    }

    /// What the project may have; everything, where nobody has said otherwise.
    pub async fn get(&self, project: i64) -> Result<Quota> {
        let select = "SELECT calls_per_minute, calls_open FROM quota WHERE project_id = $1";
        let rows = sql(select).bind(project).read(&self.db).await?;
        let Some(row) = rows.first() else { return Ok(Quota::default()) };
        let limit = |column| -> Result<Option<u32>> {
            Ok(row.get::<Option<i64>>(column)?.and_then(|limit| u32::try_from(limit).ok()))
        };
        Ok(Quota { calls_per_minute: limit("calls_per_minute")?, calls_open: limit("calls_open")? })
    }

    pub async fn set(&self, project: i64, quota: Quota) -> Result<()> {
        let mut tx = self.db.write().await?;
        let upsert = "INSERT INTO quota (project_id, calls_per_minute, calls_open) VALUES ($1, $2, $3)
             ON CONFLICT (project_id) DO UPDATE SET calls_per_minute = excluded.calls_per_minute, calls_open = excluded.calls_open";
        let upsert = sql(upsert).bind(project).bind(quota.calls_per_minute.map(i64::from));
        upsert.bind(quota.calls_open.map(i64::from)).run(&mut tx).await?;
        tx.commit().await
    }

    /// When the last call but `back` ended, by the audit, whichever host has made it; `None` where there were fewer. Calls that a limit has
    /// refused do not count: who asks too often would never get through again. Neither does what the workbench has read for its pages.
    pub async fn ended(&self, project: i64, back: u32) -> Result<Option<i64>> {
        let looked_at = i64::from(back) * ROWS_OF_CALL_MAX + ROWS_MIN;
        // Fields of the row itself: arguments, which a caller makes up, may have fields of the same names.
        let (caller, effect) = (self.db.json_field("body", "caller"), self.db.json_field("body", "effect"));
        let door = format!("%\"door\":\"{WORKBENCH_DOOR}\"%");
        let select = format!(
            "SELECT at_ms FROM (SELECT seq, at_ms, event, ok, body FROM audit WHERE project_id = $1 ORDER BY seq DESC LIMIT $2) AS newest
             WHERE event = 'finished' AND (ok = TRUE OR body NOT LIKE '%\"kind\":\"limit\"%')
             AND NOT (body LIKE $4 AND {caller} LIKE $4 AND {caller} LIKE '%\"kind\":\"person\"%' AND COALESCE({effect}, '') = 'reads')
             ORDER BY seq DESC LIMIT 1 OFFSET $3"
        );
        let rows = sql_of(select).bind(project).bind(looked_at).bind(i64::from(back)).bind(door).read(&self.db).await?;
        rows.first().map(|row| row.get("at_ms")).transpose()
    }
}
