//! Writing the steps of all sessions of this process: one task, many steps a commit.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;
use toolhost_contract::{JournalError, Signal};

use super::shared::Shared;
use super::{Inner, add_step, messages};
use crate::db::{Tx, sql};
use crate::error::{Error, Result};
use crate::stream::{self, SessionChange};

/// Steps that may wait for the disk; beyond, sessions wait for room.
const QUEUE_MAX: usize = 1024;
/// Most steps of one commit.
const BATCH_MAX: usize = 256;
/// How long a step that nobody waits for may stay uncommitted, so that it shares its commit with others.
const KEEP_DELAY: Duration = Duration::from_millis(10);
/// How often it is looked what people want of the sessions that run here.
const WANTED_EVERY: Duration = Duration::from_millis(250);

pub(super) enum Job {
    Keep(Keep),
    /// Answered when everything queued before is written, or has failed.
    Settle(oneshot::Sender<()>),
}

pub(super) struct Keep {
    pub(super) session: Arc<Shared>,
    pub(super) seq: i64,
    pub(super) step: String,
    pub(super) body: Value,
    pub(super) tally: Option<String>,
    /// The message that this step is, which waits no longer.
    pub(super) message: Option<i64>,
}

/// The way to the writer, which is started when it is first needed and ends with the store.
pub(super) fn of(inner: &Arc<Inner>) -> mpsc::Sender<Job> {
    let start = || {
        let (queue, inbox) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(run(Arc::downgrade(inner), inbox));
        queue
    };
    inner.writer.get_or_init(start).clone()
}

/// Waits until everything queued so far is written, or has failed.
pub(super) async fn settle(inner: &Inner) {
    let Some(writer) = inner.writer.get() else { return };
    let (done, settled) = oneshot::channel();
    if writer.send(Job::Settle(done)).await.is_ok() {
        // A writer that has ended has nothing left to write.
        let _ = settled.await;
    }
}

async fn run(inner: Weak<Inner>, mut inbox: mpsc::Receiver<Job>) {
    let mut look = tokio::time::interval(WANTED_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let first = tokio::select! {
            job = inbox.recv() => job,
            _ = look.tick() => {
                let Some(inner) = inner.upgrade() else { return };
                tell_wishes(&inner).await;
                continue;
            }
        };
        let (Some(first), Some(inner)) = (first, inner.upgrade()) else { return };
        let (mut keeps, mut settling) = (Vec::new(), Vec::new());
        let deadline = tokio::time::Instant::now() + KEEP_DELAY;
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Keep(keep) => keeps.push(keep),
                Job::Settle(done) => settling.push(done),
            }
            next = if keeps.len() >= BATCH_MAX {
                None
            } else if settling.is_empty() {
                tokio::time::timeout_at(deadline, inbox.recv()).await.ok().flatten()
            } else {
                // Somebody waits: what is there, and no more.
                inbox.try_recv().ok()
            };
        }
        write(&inner, keeps).await;
        for done in settling {
            // Whoever has gone does not wait any more.
            let _ = done.send(());
        }
    }
}

/// All in one commit; if that fails, each session by itself, so that one cannot keep the others from it.
async fn write(inner: &Inner, keeps: Vec<Keep>) {
    if keeps.is_empty() {
        return;
    }
    let mut sessions: BTreeMap<(i64, String), Vec<Keep>> = BTreeMap::new();
    for keep in keeps {
        sessions.entry(keep.session.key.clone()).or_default().push(keep);
    }
    let sessions: Vec<Vec<Keep>> = sessions.into_values().collect();
    let Err(error) = commit(inner, &sessions).await else { return };
    tracing::error!(%error, sessions = sessions.len(), "steps could not be written together");
    for session in &sessions {
        if let (Err(error), Some(first)) = (commit(inner, std::slice::from_ref(session)).await, session.first()) {
            first.session.fail(JournalError::Failed(error.to_string()));
        }
    }
}

async fn commit(inner: &Inner, sessions: &[Vec<Keep>]) -> Result<()> {
    let mut tx = inner.db.write_lightly().await?;
    let now = inner.clock.unix_ms();
    let mut told: BTreeMap<i64, Vec<(&str, SessionChange)>> = BTreeMap::new();
    for session in sessions {
        if !add(inner, &mut tx, session, now).await? {
            continue;
        }
        for keep in session {
            let (project, id) = &keep.session.key;
            told.entry(*project).or_default().push((id, SessionChange::step(keep.seq, &keep.step, &keep.body)));
        }
    }
    // In one order everywhere, so that no two transactions wait for each other.
    for (project, events) in told {
        stream::add(&mut tx, project, &events, now).await?;
    }
    tx.commit().await
}

/// Says whether this process still has the session.
async fn add(inner: &Inner, tx: &mut Tx, session: &[Keep], now: i64) -> Result<bool> {
    let Some(last) = session.last() else { return Ok(false) };
    let (project, id) = &last.session.key;
    let tally = session.iter().rev().find_map(|keep| keep.tally.clone());
    let text = "UPDATE agent_session SET steps = $5, tally = COALESCE($6, tally), updated_at_ms = $7
         WHERE project_id = $1 AND id = $2 AND epoch = $3 AND host = $4";
    let mine = sql(text).bind(*project).bind(id).bind(last.session.epoch).bind(&*inner.audit.host());
    let mine = mine.bind(last.seq + 1).bind(tally).bind(now).run(tx).await?;
    if mine == 0 {
        last.session.fail(JournalError::Lost(id.clone()));
        return Ok(false);
    }
    for keep in session {
        add_step(tx, *project, id, keep.seq, &keep.step, &keep.body.to_string(), now).await?;
        if let Some(number) = keep.message {
            messages::remove(tx, *project, id, number).await?;
        }
    }
    Ok(true)
}

/// What people want of the sessions that run here, told to those who run them.
async fn tell_wishes(inner: &Inner) {
    if inner.held_keys().is_empty() {
        return;
    }
    let text = "SELECT project_id, id, wanted FROM agent_session WHERE host = $1 AND wanted IS NOT NULL";
    let rows = match sql(text).bind(&*inner.audit.host()).read(&inner.db).await {
        Ok(rows) => rows,
        Err(error) => return tracing::warn!(%error, "what people want of sessions could not be read"),
    };
    for row in rows {
        let wish = || -> Result<(i64, String, Signal)> {
            let wanted: String = row.get("wanted")?;
            let signal =
                serde_json::from_value(Value::String(wanted)).map_err(|error| Error::Row(error.to_string()))?;
            Ok((row.get("project_id")?, row.get("id")?, signal))
        };
        match wish() {
            Ok((project, id, signal)) => {
                if let Some(session) = inner.held().get(&(project, id)) {
                    session.wanted.send_replace(Some(signal));
                }
            }
            Err(error) => tracing::warn!(%error, "a wish cannot be read"),
        }
    }
}
