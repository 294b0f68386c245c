//! The task that writes the rows of a host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sqlx::error::DatabaseError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;
use toolhost_contract::{CallId, Clock, Effect, ErrorKind, Trace};

use super::rows::{Chained, Head, body, heads, insert, track_open};
use super::{Entry, Event, Item, Job, NOTE_DELAY, QUEUE_MAX};
use crate::ask::AskChange;
use crate::chain;
use crate::db::{Db, Tx, sql};
use crate::error::{Error, Result};
use crate::fate;
use crate::mark::Mark;
use crate::outage::Outage;
use crate::presence::Presence;
use crate::subject::Subjects;

/// Most rows of one commit.
const BATCH_MAX: usize = 512;
/// How often a host that shares a server makes sure of its place there.
const PRESENCE_EVERY: Duration = Duration::from_secs(5);

pub(super) struct Writer {
    db: Db,
    /// Who may know how a call ended.
    subjects: Subjects,
    presence: Presence,
    clock: Arc<dyn Clock>,
    /// Rows that nobody waits for and no commit has taken yet.
    notes: Vec<Item>,
    /// Calls that this host has started and not ended, in the name that it has.
    open: BTreeSet<(i64, String)>,
    /// Another host took this one for dead, in the name that it has. It gets another one when its calls have ended.
    taken: bool,
    /// Nothing can be written where this host is, and its rows are not kept for later.
    reads_only: bool,
    /// Rows whose commit was not answered. Until that is known, they are neither written again nor forgotten.
    doubt: Option<(Arc<Mark>, Vec<Item>)>,
}

/// What a transaction has chained and not inserted yet.
#[derive(Default)]
struct Written {
    rows: Vec<Chained>,
    /// Calls that start among them.
    started: BTreeSet<(i64, String)>,
}

/// Who is told what became of a row.
pub(super) type Waiter = Option<oneshot::Sender<Result<()>>>;

/// What one commit takes.
#[derive(Default)]
struct Batch {
    entries: Vec<Item>,
    /// One for each of the entries.
    waiting: Vec<Waiter>,
    flushing: Vec<Waiter>,
    closing: Vec<Waiter>,
    deciding: Vec<(Entry, Waiter)>,
    looking: Vec<(String, oneshot::Sender<Result<bool>>)>,
    leaving: Vec<Waiter>,
}

impl Batch {
    fn take(&mut self, job: Job) {
        match job {
            Job::Append(entry, done) => {
                self.entries.push(*entry);
                self.waiting.push(done);
            }
            Job::Flush(done) => self.flushing.push(Some(done)),
            Job::CloseOrphans(done) => self.closing.push(Some(done)),
            Job::Decide(entry, done) => self.deciding.push((*entry, Some(done))),
            Job::IsAlive(host, done) => self.looking.push((host, done)),
            Job::Leave(done) => self.leaving.push(Some(done)),
        }
    }

    fn is_waited_for(&self) -> bool {
        let asked = !self.flushing.is_empty() || !self.closing.is_empty() || !self.looking.is_empty();
        asked || !self.deciding.is_empty() || !self.leaving.is_empty() || self.waiting.iter().any(Option::is_some)
    }
}

impl Writer {
    pub(super) fn new(db: Db, subjects: Subjects, presence: Presence, clock: Arc<dyn Clock>) -> Self {
        let reads_only = presence.is_nowhere();
        Self {
            reads_only,
            db,
            subjects,
            presence,
            clock,
            notes: Vec::new(),
            open: BTreeSet::new(),
            taken: false,
            doubt: None,
        }
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Job>) {
        let mut look = tokio::time::interval(PRESENCE_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let first = tokio::select! {
                biased;
                job = inbox.recv() => job,
                _ = look.tick() => {
                    self.look_at_presence().await;
                    continue;
                }
            };
            let Some(first) = first else { break };
            let mut batch = Batch::default();
            batch.take(first);
            let deadline = tokio::time::Instant::now() + NOTE_DELAY;
            while batch.entries.len() < BATCH_MAX {
                // Once somebody waits, take what is there and commit; until then, gather.
                let next = if batch.is_waited_for() {
                    inbox.try_recv().ok()
                } else {
                    tokio::time::timeout_at(deadline, inbox.recv()).await.ok().flatten()
                };
                let Some(job) = next else { break };
                batch.take(job);
            }
            let (closing, looking) = (std::mem::take(&mut batch.closing), std::mem::take(&mut batch.looking));
            let (leaving, deciding) = (std::mem::take(&mut batch.leaving), std::mem::take(&mut batch.deciding));
            let written = self.commit_batch(batch).await;
            for waiter in closing {
                let closed = self.close_orphans().await;
                answer(waiter, closed);
            }
            for (entry, waiter) in deciding {
                let decided = self.decide(entry).await;
                answer(waiter, decided);
            }
            for (host, waiter) in looking {
                // Whoever has gone needs no answer.
                let _ = waiter.send(self.presence.is_alive(&host, &self.db).await);
            }
            for waiter in leaving {
                self.presence.leave().await;
                answer(waiter, written.as_ref().map_or_else(|error| Err(error.of_audit()), |()| Ok(())));
            }
        }
        // Nobody is left to hear of a failure, which the log has.
        let _ = self.commit_batch(Batch::default()).await;
    }

    /// A host that works for long without writing keeps its place all the same.
    async fn look_at_presence(&mut self) {
        if self.taken {
            return;
        }
        match self.presence.hold().await {
            Ok(()) => {}
            Err(Error::TakenOver) => self.taken = true,
            Err(error) => tracing::warn!(%error, "this host has lost its place at the server"),
        }
    }

    /// Says whether everything is written, also what nobody waits for.
    async fn commit_batch(&mut self, batch: Batch) -> Result<()> {
        let Batch { entries, mut waiting, flushing, .. } = batch;
        let settled = self.settle_doubt().await;
        let mut rows = std::mem::take(&mut self.notes);
        // Nobody waits for what is left from before.
        waiting.splice(0..0, rows.iter().map(|_| None));
        rows.extend(entries);
        let committed = match settled {
            Ok(()) => self.commit_all(&mut rows, &mut waiting).await,
            Err(error) => Err(error),
        };
        let error = match committed {
            Ok(refused) => {
                let mut refused: BTreeMap<usize, Error> = refused.into_iter().collect();
                for (n, waiter) in waiting.into_iter().enumerate() {
                    answer(waiter, refused.remove(&n).map_or(Ok(()), Err));
                }
                flushing.into_iter().for_each(|waiter| answer(waiter, Ok(())));
                return Ok(());
            }
            Err(error) => error,
        };
        if self.reads_only {
            waiting.into_iter().for_each(|waiter| answer(waiter, Err(error.of_audit())));
            flushing.into_iter().for_each(|waiter| answer(waiter, Ok(())));
            return Ok(());
        }
        tracing::error!(%error, rows = rows.len(), "the audit could not be written");
        // One row that cannot be written must not keep the others from it: each is tried by itself.
        let mut lost: Option<Error> = None;
        if let Error::InDoubt { mark, .. } = &error {
            self.doubt_of(Arc::clone(mark), rows);
            waiting.into_iter().for_each(|waiter| answer(waiter, Err(error.of_audit())));
            (rows, waiting, lost) = (Vec::new(), Vec::new(), Some(error.of_audit()));
        }
        for (row, waiter) in rows.into_iter().zip(waiting) {
            // Where nobody answers, asking once more for each would keep everybody waiting.
            let tried = if is_gone(&error) { Err(error.of_audit()) } else { self.commit_one(&row).await };
            match tried {
                Ok(()) => answer(waiter, Ok(())),
                Err(error) if error.is_refusal() => answer(waiter, Err(error)),
                Err(Error::Sql(sqlx::Error::Database(error))) if can_never_be_written(&*error) => {
                    tracing::error!(%error, call = %row.entry.call_id, "a row that can never be written was dropped");
                    answer(waiter, Err(Error::audit(error.to_string())));
                }
                Err(error) => {
                    lost = Some(error.of_audit());
                    answer(waiter, Err(error.of_audit()));
                    match error {
                        Error::InDoubt { mark, .. } => self.doubt_of(mark, vec![row]),
                        error => self.keep(row, &error),
                    }
                }
            }
        }
        for waiter in flushing {
            answer(waiter, lost.as_ref().map_or(Ok(()), |error| Err(error.of_audit())));
        }
        lost.map_or(Ok(()), Err)
    }

    /// Remembers rows until it is known whether their commit has happened.
    fn doubt_of(&mut self, mark: Arc<Mark>, rows: Vec<Item>) {
        self.doubt = Some((mark, rows));
    }

    /// Learns what became of a commit that was not answered. While that is not known, nothing follows it: a row would
    /// stand twice in the chain, or not at all.
    async fn settle_doubt(&mut self) -> Result<()> {
        let Some((mark, rows)) = self.doubt.take() else { return Ok(()) };
        match self.db.happened(&mark).await {
            Some(true) => self.track(&rows, &[]),
            Some(false) => {
                let lost = Error::audit("its commit was lost");
                rows.into_iter().for_each(|row| self.keep(row, &lost));
            }
            None if self.taken => tracing::error!(rows = rows.len(), "whether these rows were written is not known"),
            None => {
                self.doubt = Some((mark, rows));
                return Err(Error::Audit {
                    why: "the server does not tell what became of the rows before".to_owned(),
                    outage: Some(Outage::Unreachable),
                });
            }
        }
        Ok(())
    }

    /// Writes all rows in one commit; a host that was taken for dead first makes sure that it may write again.
    async fn commit_all(&mut self, rows: &mut Vec<Item>, waiting: &mut Vec<Waiter>) -> Result<Vec<(usize, Error)>> {
        let mut tries = 2;
        loop {
            if self.taken {
                self.end_as_taken(rows, waiting).await?;
            }
            if rows.is_empty() {
                return Ok(Vec::new());
            }
            tries -= 1;
            match self.commit(rows).await {
                // Surely not written, so it may be written again.
                Err(Error::TakenOver | Error::NotWritten { .. }) if tries > 0 => {}
                ended => return ended,
            }
        }
    }

    /// The calls that this host began in its former name have got their last rows from the host that took it for dead;
    /// what they come to is not written any more. When the last of them has ended, this host goes on as another one.
    async fn end_as_taken(&mut self, rows: &mut Vec<Item>, waiting: &mut Vec<Waiter>) -> Result<()> {
        let (all, waiters) = (std::mem::take(rows), std::mem::take(waiting));
        let mut ended = Vec::new();
        for (row, waiter) in all.into_iter().zip(waiters) {
            let call = (row.entry.project_id, row.entry.call_id.to_string());
            if row.entry.event == Event::Finished && self.open.remove(&call) {
                tracing::error!(call = %call.1, "a call of a host that was taken for dead ended; its row is `unknown`");
                ended.push(waiter);
            } else {
                rows.push(row);
                waiting.push(waiter);
            }
        }
        let mut begun = Ok(());
        if self.open.is_empty() {
            begun = self.presence.begin_anew().await;
            self.taken = begun.is_err();
        }
        // Whoever hears that it is over may go on at once.
        ended.into_iter().for_each(|waiter| answer(waiter, Err(Error::TakenOver.of_audit())));
        begun
    }

    /// Which calls of this host are open.
    fn track(&mut self, rows: &[Item], refused: &[(usize, Error)]) {
        for (n, row) in rows.iter().enumerate() {
            if refused.iter().any(|(at, _)| *at == n) {
                continue;
            }
            let call = (row.entry.project_id, row.entry.call_id.to_string());
            match row.entry.event {
                Event::Started => {
                    self.open.insert(call);
                }
                Event::Finished | Event::Unknown => {
                    self.open.remove(&call);
                }
                Event::Decision => {}
            }
        }
    }

    /// For the next commit. A call that was about to start has been told and does not; what has happened must still be
    /// written down.
    fn keep(&mut self, mut row: Item, error: &Error) {
        match row.change {
            None => {}
            // The row counts; the answer that the caller was given is not kept in memory for whoever asks again.
            Some(AskChange::Keep { .. }) => row.change = None,
            // A decision that could not be written was told so, too.
            Some(_) => return,
        }
        if row.entry.event == Event::Started {
            return;
        }
        if self.notes.len() < QUEUE_MAX {
            self.notes.push(row);
        } else {
            tracing::error!(%error, call = %row.entry.call_id, "a row was dropped: too many wait already");
        }
    }

    /// The rows that were refused because of what they would have brought about, by their place.
    async fn commit(&mut self, rows: &[Item]) -> Result<Vec<(usize, Error)>> {
        self.settle_doubt().await?;
        let committed = self.try_commit(rows).await;
        match &committed {
            Ok(refused) => self.track(rows, refused),
            Err(Error::TakenOver) => self.taken = true,
            Err(_) => {}
        }
        committed
    }

    async fn try_commit(&mut self, rows: &[Item]) -> Result<Vec<(usize, Error)>> {
        if self.taken {
            return Err(Error::TakenOver);
        }
        if rows.iter().any(|row| row.entry.event == Event::Started) {
            self.presence.hold().await?;
        }
        let mut tx =
            if rows.iter().any(outlasts_power) { self.db.write().await? } else { self.db.write_lightly().await? };
        let refused = self.write(&mut tx, rows).await?;
        tx.commit().await?;
        Ok(refused)
    }

    async fn commit_one(&mut self, row: &Item) -> Result<()> {
        match self.commit(std::slice::from_ref(row)).await?.pop() {
            Some((_, refusal)) => Err(refusal),
            None => Ok(()),
        }
    }

    async fn write(&self, tx: &mut Tx, rows: &[Item]) -> Result<Vec<(usize, Error)>> {
        let now = self.clock.unix_ms();
        let mut refused = Vec::new();
        let mut heads = heads(tx, rows).await?;
        let mut written = Written::default();
        for (n, item) in rows.iter().enumerate() {
            // Every project of the rows has its head.
            let Some(head) = heads.iter_mut().find(|head| head.project == item.entry.project_id) else {
                return Err(Error::audit(format!("project {} has no chain", item.entry.project_id)));
            };
            if let Some((entry, change)) = item.before.as_deref() {
                match self.write_row(tx, head, entry, Some(change), now, &mut written).await {
                    Ok(()) => {}
                    Err(error) if error.is_refusal() => {
                        refused.push((n, error));
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            let decided = decided(tx, self.subjects, &item.entry).await?;
            let entry = decided.as_ref().unwrap_or(&item.entry);
            match self.write_row(tx, head, entry, item.change.as_ref(), now, &mut written).await {
                Ok(()) => {}
                // What went before it is written already, and only the whole transaction can take it back.
                Err(error) if error.is_refusal() && item.before.is_some() => {
                    return Err(Error::audit(error.to_string()));
                }
                Err(error) if error.is_refusal() => refused.push((n, error)),
                Err(error) => return Err(error),
            }
        }
        insert(tx, written.rows).await?;
        for Head { project, seq, hash } in heads {
            let update = "UPDATE audit_head SET seq = $2, hash = $3 WHERE project_id = $1";
            sql(update).bind(project).bind(seq).bind(hash).run(tx).await?;
        }
        Ok(refused)
    }

    /// Where what it would bring about is refused, nothing is written.
    async fn write_row(
        &self,
        tx: &mut Tx,
        head: &mut Head,
        row: &Entry,
        change: Option<&AskChange>,
        now: i64,
        written: &mut Written,
    ) -> Result<()> {
        if let Some(change) = change {
            change.apply(tx, row.project_id, row.call_id.as_str(), now).await?;
        }
        let seq = head.seq + 1;
        let body = body(row, seq, now)?;
        let next = chain::link(&head.hash, &body);
        let call = (row.project_id, row.call_id.to_string());
        // A call that never started, such as a read, is open nowhere.
        if row.event == Event::Started || self.open.contains(&call) || written.started.contains(&call) {
            track_open(tx, row, &self.presence.host().get()).await?;
        }
        if row.event == Event::Started {
            written.started.insert(call);
        }
        written.rows.push(Chained {
            project: row.project_id,
            seq,
            at_ms: now,
            call_id: row.call_id.to_string(),
            session_id: row.session_id.clone(),
            event: row.event,
            tool: row.tool.clone(),
            ok: row.outcome.as_ref().and_then(|outcome| outcome.get("ok")).and_then(Value::as_bool),
            body,
            prev_hash: std::mem::replace(&mut head.hash, next.clone()),
            hash: next,
        });
        head.seq = seq;
        Ok(())
    }

    /// Adds how a call ended that a crash left unknown, unless that is there already.
    async fn decide(&self, entry: Entry) -> Result<()> {
        let mut tx = self.db.write_lightly().await?;
        tx.lock_chain(entry.project_id).await?;
        let ended = sql("SELECT seq FROM audit WHERE project_id = $1 AND call_id = $2 AND event = 'finished' LIMIT 1");
        if ended.bind(entry.project_id).bind(entry.call_id.as_str()).optional(&mut tx).await?.is_some() {
            return Ok(());
        }
        self.write(&mut tx, &[Item::new(entry, None)]).await?;
        tx.commit().await
    }

    /// Gives every call that a dead host left open its last row.
    pub(super) async fn close_orphans(&mut self) -> Result<()> {
        let mut dead = Vec::new();
        // In one order everywhere, so that no two transactions wait for each other.
        let open = sql("SELECT project_id, call_id, host, tool, trace FROM open_call ORDER BY project_id, call_id");
        for row in open.read(&self.db).await? {
            let host: String = row.get("host")?;
            if !self.presence.is_alive(&host, &self.db).await? {
                let (tool, trace): (String, String) = (row.get("tool")?, row.get("trace")?);
                dead.push((row.get::<i64>("project_id")?, row.get::<String>("call_id")?, host, tool, trace));
            }
        }
        let mut hosts: BTreeSet<String> = self.presence.dead_with_slots(&self.db).await?.into_iter().collect();
        hosts.extend(dead.iter().map(|(_, _, host, _, _)| host.clone()));
        if hosts.is_empty() {
            return Ok(());
        }
        // Taken and told in one transaction: whoever dies in here leaves them to the next.
        let mut tx = self.db.write_lightly().await?;
        let mut alive = BTreeSet::new();
        for host in hosts {
            if !tx.fence_off(&host).await? {
                alive.insert(host);
            }
        }
        let mut orphans = Vec::new();
        for (project_id, call_id, host, tool, trace) in dead {
            if alive.contains(&host) {
                continue;
            }
            // Of two hosts that open at once, one takes it.
            let take = sql("DELETE FROM open_call WHERE project_id = $1 AND call_id = $2 AND host = $3");
            if take.bind(project_id).bind(&call_id).bind(&host).run(&mut tx).await? == 0 {
                continue;
            }
            // Its host writes nothing more, so what it has written is all.
            let outcome = fate::outcome(&mut tx, self.subjects, (project_id, &call_id), (&tool, &trace)).await?;
            let event = if outcome.is_some() { Event::Finished } else { Event::Unknown };
            let unknown = || serde_json::json!({ "unknown": "the host ended while the call ran" });
            let entry = Entry {
                event,
                call_id: CallId::new(call_id),
                session_id: None,
                user_id: 0,
                project_id,
                caller: serde_json::json!({ "host": host }),
                tool,
                effect: None,
                arguments: Value::Null,
                digest: None,
                decision: None,
                outcome: Some(outcome.unwrap_or_else(unknown)),
                duration_ms: None,
                fence: String::new(),
                trace: Trace::None,
            };
            orphans.push(Item::new(entry, None));
        }
        self.write(&mut tx, &orphans).await?;
        tx.commit().await
    }
}

/// The last row of a call whose commit was in doubt, with what became of that. The row is written when the server answers
/// again, and then it can be told.
async fn decided(tx: &mut Tx, subjects: Subjects, row: &Entry) -> Result<Option<Entry>> {
    let kind = row.outcome.as_ref().and_then(|outcome| outcome.get("kind")).and_then(Value::as_str);
    if row.event != Event::Finished || row.trace != Trace::Records || kind != Some(ErrorKind::Unknown.as_str()) {
        return Ok(None);
    }
    // Who has the project's lock knows that the call's transaction has ended. Whoever works for long has it now, and the
    // audit waits for nobody.
    if !tx.try_lock_project(row.project_id).await? {
        return Ok(None);
    }
    let outcome =
        fate::outcome(tx, subjects, (row.project_id, row.call_id.as_str()), (&row.tool, fate::trace_name(row.trace)));
    Ok(outcome.await?.map(|outcome| Entry { outcome: Some(outcome), ..row.clone() }))
}

/// A row of a project that does not exist, or with a text that the server cannot hold (SQLSTATE 22…): it would be tried
/// for ever, and keep all others waiting.
fn can_never_be_written(error: &dyn DatabaseError) -> bool {
    let is_data = |code: &str| code.len() == 5 && code.starts_with("22");
    error.is_foreign_key_violation() || error.code().is_some_and(|code| is_data(&code))
}

/// Whether it is the server that is not there, rather than a row that is not as it should be.
fn is_gone(error: &Error) -> bool {
    use sqlx::Error::{Io, PoolClosed, PoolTimedOut};
    matches!(
        error,
        Error::Unreachable { .. }
            | Error::Moved { .. }
            | Error::LogGone { .. }
            | Error::TakenOver
            | Error::NotPresent
            | Error::Audit { .. }
            | Error::Sql(Io(_) | PoolClosed | PoolTimedOut)
    )
}

fn answer(waiter: Waiter, result: Result<()>) {
    if let Some(done) = waiter {
        // Who was cancelled meanwhile does not wait any more.
        let _ = done.send(result);
    }
}

/// Whether a row must survive a power failure whatever the operator says: what a person decided and what became of it, a deploy,
/// and what leaves the machine.
fn outlasts_power(item: &Item) -> bool {
    let Item { before, entry, change } = item;
    let is_of_a_person = before.is_some() || change.is_some() || entry.event == Event::Decision;
    is_of_a_person || entry.trace == Trace::Deploy || entry.effect.as_deref() == Some(Effect::Reaches.as_str())
}
