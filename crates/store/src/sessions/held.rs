//! A session while this process runs it: its journal.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;
use toolhost_contract::{BoxFuture, CallId, Fate, Journal, JournalError, Signal, Trace};

use super::shared::Shared;
use super::writer::{self, Job, Keep};
use super::{Inner, Key, SessionRow, SessionState, StepRow, messages, withdraw_asks};
use crate::db::sql;
use crate::error::{Error, Result};
use crate::fate;
use crate::stream::{self, SessionChange};

/// A session that this process runs. [`Held::release`] writes how it ended; dropped, this process may take it again.
pub struct Held {
    inner: Arc<Inner>,
    row: SessionRow,
    shared: Arc<Shared>,
    /// What earlier runs came to, by step.
    before: Mutex<HashMap<String, Value>>,
    next: AtomicI64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Held {
    pub(super) fn new(inner: Arc<Inner>, row: SessionRow, key: Key, epoch: i64, steps: Vec<StepRow>) -> Result<Self> {
        let shared = Arc::new(Shared::new(key.clone(), epoch));
        let next = steps.last().map_or(0, |step| step.seq + 1);
        let before = steps.into_iter().map(|step| (step.step, step.body)).collect();
        inner.held().insert(key, Arc::clone(&shared));
        // It also looks for what people want, which they may before the first step is kept.
        writer::of(&inner);
        Ok(Self { inner, row, shared, before: Mutex::new(before), next: AtomicI64::new(next) })
    }

    /// As it was when it was taken.
    #[must_use]
    pub fn row(&self) -> &SessionRow {
        &self.row
    }

    /// Whether an earlier run came to this step; it is not taken out.
    #[must_use]
    pub fn has(&self, step: &str) -> bool {
        lock(&self.before).contains_key(step)
    }

    /// Adds a step that the run to come will find.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn say(&self, step: &str, value: Value) -> Result<()> {
        let failed = |error: JournalError| Error::Journal(error.to_string());
        self.keep(step, value.clone(), None).await.map_err(failed)?;
        self.settle().await.map_err(failed)?;
        lock(&self.before).insert(step.to_owned(), value);
        Ok(())
    }

    /// Takes the oldest waiting message and keeps it as a step, which the next run finds. The model is told `since` before it. Answers
    /// whether a message was waiting.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn hear(&self, step: &str, since: Option<&str>) -> Result<bool> {
        let failed = |error: JournalError| Error::Journal(error.to_string());
        let Some(text) = self.take(step, since).await.map_err(failed)? else { return Ok(false) };
        lock(&self.before).insert(step.to_owned(), messages::as_step(&text, since));
        Ok(true)
    }

    /// Lets go of it, in this state. Says whether somebody has said something that nobody has heard: a session that would be done
    /// is paused then.
    ///
    /// # Errors
    /// If something kept before could not be written, or somebody else has the session.
    pub async fn release(self, state: SessionState, code: Option<&str>) -> Result<bool> {
        self.settle().await.map_err(|error| Error::Journal(error.to_string()))?;
        // A cancel that came while the run ended is no less one.
        let text = "UPDATE agent_session SET state = CASE WHEN wanted = 'cancel' AND $4 <> 'done' THEN 'cancelled' ELSE $4 END,
                 code = $5, host = NULL, wanted = NULL, updated_at_ms = $6
             WHERE project_id = $1 AND id = $2 AND epoch = $3 RETURNING state";
        let (project, id) = &self.shared.key;
        let (now, mut tx) = (self.inner.clock.unix_ms(), self.inner.db.write_lightly().await?);
        // The lock holds back new messages until the session is let go of.
        tx.lock_project(*project).await?;
        let is_told = messages::oldest(&mut tx, *project, id).await?.is_some();
        let state = if is_told && state == SessionState::Done { SessionState::Paused } else { state };
        let query = sql(text).bind(*project).bind(id).bind(self.shared.epoch).bind(state.as_str());
        let released = query.bind(code.map(str::to_owned)).bind(now).optional(&mut tx).await?;
        let Some(released) = released else { return Err(Error::SessionRuns { id: id.clone() }) };
        let ended: String = released.get("state")?;
        let is_cancelled = ended == SessionState::Cancelled.as_str();
        let change = SessionChange::State { state: ended, code: code.map(str::to_owned) };
        stream::add(&mut tx, *project, &[(id, change)], now).await?;
        if is_cancelled {
            // After the stream: see `stream::add` about the order of locks.
            withdraw_asks(&mut tx, *project, id, now).await?;
        }
        tx.commit().await?;
        Ok(is_told)
    }

    async fn oldest_message(&self) -> Result<Option<messages::Message>> {
        let (project, id) = &self.shared.key;
        let mut tx = self.inner.db.snapshot().await?;
        messages::oldest(&mut tx, *project, id).await
    }

    async fn take(&self, step: &str, since: Option<&str>) -> std::result::Result<Option<String>, JournalError> {
        let found = self.oldest_message().await.map_err(|error| JournalError::Failed(error.to_string()))?;
        let Some(message) = found else { return Ok(None) };
        self.keep_step(step, messages::as_step(&message.text, since), None, Some(message.number)).await?;
        // Before it is written, it would be found again.
        self.settle().await?;
        Ok(Some(message.text))
    }

    async fn keep_step(
        &self,
        step: &str,
        body: Value,
        tally: Option<String>,
        message: Option<i64>,
    ) -> std::result::Result<(), JournalError> {
        self.shared.check()?;
        let seq = self.next.fetch_add(1, Ordering::Relaxed);
        let session = Arc::clone(&self.shared);
        self.send(Job::Keep(Keep { session, seq, step: step.to_owned(), body, tally, message })).await
    }

    async fn fate_of(&self, call: &CallId, trace: Trace) -> Result<Fate> {
        // Whatever session it was of: an id that was used is used.
        let text = "SELECT event, at_ms, body FROM audit WHERE project_id = $1 AND call_id = $2 ORDER BY seq DESC";
        let rows = sql(text).bind(self.shared.key.0).bind(call.as_str()).read(&self.inner.db).await?;
        let events = rows.iter().map(|row| row.get("event")).collect::<Result<Vec<String>>>()?;
        let of = |event: &str| events.iter().position(|known| known == event).map(|at| &rows[at]);
        let (started, finished) = (of("started"), of("finished"));
        let Some(started) = started else {
            // It was refused, or waits for a person. A "decision" says that one has decided, and is not its end.
            return Ok(if finished.is_some() { Fate::Undone } else { Fate::NeverStarted });
        };
        if let Some(finished) = finished {
            let body: String = finished.get("body")?;
            let body: Value = serde_json::from_str(&body).unwrap_or_default();
            let outcome = body.get("outcome").cloned().unwrap_or_default();
            // Nobody saw the end of one whose row was decided later: what it left behind tells more than that row.
            if outcome.get("decided").is_none() {
                return Ok(Fate::Ended(outcome));
            }
        }
        match trace {
            Trace::None => Ok(Fate::Unknown),
            Trace::Files => {
                let mut tx = self.inner.db.snapshot().await?;
                let logged = fate::logged(&mut tx, (self.shared.key.0, call.as_str()), started.get("at_ms")?).await?;
                Ok(logged.map_or(Fate::Unknown, |logged| if logged { Fate::Logged } else { Fate::Undone }))
            }
            Trace::Records => self.committed(call).await,
            Trace::Deploy => Ok(Fate::Logged),
        }
    }

    /// Whether the one transaction of a call was committed, and what it wrote.
    async fn committed(&self, call: &CallId) -> Result<Fate> {
        let project = self.shared.key.0;
        // A server may still be at work on the last statement of a host that was killed. Who has the project's lock knows
        // that such a transaction has ended.
        let mut tx = self.inner.db.write_lightly().await?;
        tx.lock_project(project).await?;
        let wrote = fate::wrote(&mut tx, self.inner.subjects, (project, call.as_str())).await?;
        Ok(if wrote.is_empty() { Fate::Undone } else { Fate::Committed(wrote.into()) })
    }

    async fn send(&self, job: Job) -> std::result::Result<(), JournalError> {
        let writer = writer::of(&self.inner);
        writer.send(job).await.map_err(|_| JournalError::Failed("its writer has ended".to_owned()))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.inner.held().remove(&self.shared.key);
    }
}

impl Journal for Held {
    fn session_id(&self) -> &str {
        &self.row.id
    }

    fn recall(&self, step: &str) -> Option<Value> {
        lock(&self.before).remove(step)
    }

    fn keep<'a>(
        &'a self,
        step: &'a str,
        value: Value,
        tally: Option<Value>,
    ) -> BoxFuture<'a, std::result::Result<(), JournalError>> {
        Box::pin(self.keep_step(step, value, tally.map(|tally| tally.to_string()), None))
    }

    fn take_message<'a>(&'a self, step: &'a str) -> BoxFuture<'a, std::result::Result<Option<String>, JournalError>> {
        Box::pin(self.take(step, None))
    }

    fn settle(&self) -> BoxFuture<'_, std::result::Result<(), JournalError>> {
        Box::pin(async move {
            let (done, written) = oneshot::channel();
            self.send(Job::Settle(done)).await?;
            written.await.map_err(|_| JournalError::Failed("its writer has ended".to_owned()))?;
            self.shared.check()
        })
    }

    fn signal(&self, known: Option<Signal>) -> BoxFuture<'_, Signal> {
        let mut wanted = self.shared.wanted.subscribe();
        Box::pin(async move {
            match wanted.wait_for(|now| now.is_some() && *now != known).await.map(|signal| *signal) {
                Ok(Some(signal)) => signal,
                // The sender is ours and lives as long as this.
                Ok(None) | Err(_) => std::future::pending().await,
            }
        })
    }

    fn fate<'a>(&'a self, call: &'a CallId, trace: Trace) -> BoxFuture<'a, std::result::Result<Fate, JournalError>> {
        Box::pin(async move { self.fate_of(call, trace).await.map_err(|e| JournalError::Failed(e.to_string())) })
    }
}
