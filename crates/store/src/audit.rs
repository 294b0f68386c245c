//! Writing the audit: one task, one connection, many rows a commit.
//!
//! The hard problem is speed without doubt. A read call does not wait for the disk: its row is queued and committed
//! within [`NOTE_DELAY`]. Whatever can change something waits until its row is committed, and all that wait share a
//! commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use sqlx::error::DatabaseError;
use tokio::sync::{mpsc, oneshot};
use toolhost_contract::{CallId, Clock};

use crate::asks::AskChange;
use crate::chain;
use crate::db::{Db, Tx, sql};
use crate::error::{Error, Result};
use crate::presence::Presence;

/// Rows that may wait for the disk; beyond, callers wait for room.
const QUEUE_MAX: usize = 4096;
/// Most rows of one commit.
const BATCH_MAX: usize = 512;
/// How long a row that nobody waits for may stay uncommitted, so that it shares its commit with others.
const NOTE_DELAY: Duration = Duration::from_millis(50);

/// The append-only side of the audit. Cloning it is cheap; all clones write to the same chain.
#[derive(Clone)]
pub struct Audit {
    queue: mpsc::Sender<Job>,
    host: Arc<str>,
}

/// What a row tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// The call is about to run.
    Started,
    /// The call has ended, and this is how.
    Finished,
    /// A person decided.
    Decision,
    /// The host died while the call ran: nobody knows how it ended.
    Unknown,
}

/// One row, before it is numbered and chained. Its JSON, canonical, is what the chain covers.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub event: Event,
    pub call_id: CallId,
    pub session_id: Option<String>,
    pub user_id: i64,
    pub project_id: i64,
    /// Door, profile, persona and kind of the caller.
    pub caller: Value,
    pub tool: String,
    pub effect: Option<String>,
    /// Redacted and shortened; `digest` covers them whole.
    pub arguments: Value,
    pub digest: Option<String>,
    /// What policy or a person decided, and why.
    pub decision: Option<Value>,
    /// How it ended: `{ok, error?}`.
    pub outcome: Option<Value>,
    pub duration_ms: Option<u64>,
    pub fence: String,
}

/// A row, and what it brings about: both happen, or neither.
struct Item {
    /// Another row with what it brings about, before this one: also both, or neither.
    before: Option<Box<(Entry, AskChange)>>,
    entry: Entry,
    change: Option<AskChange>,
}

impl Item {
    fn new(entry: Entry, change: Option<AskChange>) -> Self {
        Self { before: None, entry: writable(entry), change }
    }
}

enum Job {
    /// `Some`: the caller waits for the commit.
    Append(Box<Item>, Waiter),
    Flush(oneshot::Sender<Result<()>>),
    CloseOrphans(oneshot::Sender<Result<()>>),
    IsAlive(String, oneshot::Sender<Result<bool>>),
}

impl Audit {
    pub(crate) async fn start(db: Db, presence: Presence, clock: Arc<dyn Clock>) -> Result<Self> {
        let (queue, inbox) = mpsc::channel(QUEUE_MAX);
        let host = presence.host().into();
        let mut writer = Writer { db, presence, clock, notes: Vec::new() };
        writer.close_orphans().await?;
        tokio::spawn(writer.run(inbox));
        Ok(Self { queue, host })
    }

    /// Appends a row and waits until it is committed.
    pub async fn append(&self, entry: Entry) -> Result<()> {
        let (done, committed) = oneshot::channel();
        self.send(Job::Append(Box::new(Item::new(entry, None)), Some(done))).await?;
        committed.await.map_err(|_| gone())?
    }

    /// Appends a row and changes an ask in the same transaction. Where the ask is no longer what the change needs, neither
    /// happens, and the error says what it is.
    pub async fn append_with(&self, entry: Entry, change: AskChange) -> Result<()> {
        let (done, committed) = oneshot::channel();
        self.send(Job::Append(Box::new(Item::new(entry, Some(change))), Some(done))).await?;
        committed.await.map_err(|_| gone())?
    }

    /// Appends two rows of one project, each with what it brings about, in the same transaction: both happen, or neither.
    pub async fn append_both(&self, first: (Entry, AskChange), second: (Entry, AskChange)) -> Result<()> {
        let (done, committed) = oneshot::channel();
        let before = Some(Box::new((writable(first.0), first.1)));
        let item = Item { before, ..Item::new(second.0, Some(second.1)) };
        self.send(Job::Append(Box::new(item), Some(done))).await?;
        committed.await.map_err(|_| gone())?
    }

    /// Queues a row; it is committed within a moment.
    pub async fn note(&self, entry: Entry) -> Result<()> {
        self.send(Job::Append(Box::new(Item::new(entry, None)), None)).await
    }

    /// Waits until everything queued before is committed.
    pub async fn flush(&self) -> Result<()> {
        let (done, committed) = oneshot::channel();
        self.send(Job::Flush(done)).await?;
        committed.await.map_err(|_| gone())?
    }

    /// Gives the calls of hosts that have died since this one opened their last row, as opening does.
    pub async fn close_orphans(&self) -> Result<()> {
        let (done, closed) = oneshot::channel();
        self.send(Job::CloseOrphans(done)).await?;
        closed.await.map_err(|_| gone())?
    }

    /// This host, as its calls and asks name it.
    pub(crate) fn host(&self) -> Arc<str> {
        Arc::clone(&self.host)
    }

    /// Whether the process of a host still runs.
    pub async fn is_alive(&self, host: &str) -> Result<bool> {
        let (done, told) = oneshot::channel();
        self.send(Job::IsAlive(host.to_owned(), done)).await?;
        told.await.map_err(|_| gone())?
    }

    async fn send(&self, job: Job) -> Result<()> {
        self.queue.send(job).await.map_err(|_| gone())
    }
}

/// A caller may ask for a tool of any name; no column of PostgreSQL's holds a zero character.
fn writable(mut entry: Entry) -> Entry {
    let clean = |text: &str| text.replace('\0', "\u{fffd}");
    entry.tool = clean(&entry.tool);
    entry.session_id = entry.session_id.as_deref().map(clean);
    if entry.call_id.as_str().contains('\0') {
        entry.call_id = CallId::new(clean(entry.call_id.as_str()));
    }
    entry
}

fn gone() -> Error {
    Error::Audit("its writer has ended".to_owned())
}

struct Writer {
    db: Db,
    presence: Presence,
    clock: Arc<dyn Clock>,
    /// Rows that nobody waits for and no commit has taken yet.
    notes: Vec<Item>,
}

/// Who is told what became of a row.
type Waiter = Option<oneshot::Sender<Result<()>>>;

/// What one commit takes.
#[derive(Default)]
struct Batch {
    entries: Vec<Item>,
    /// One for each of the entries.
    waiting: Vec<Waiter>,
    flushing: Vec<Waiter>,
    closing: Vec<Waiter>,
    looking: Vec<(String, oneshot::Sender<Result<bool>>)>,
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
            Job::IsAlive(host, done) => self.looking.push((host, done)),
        }
    }

    fn is_waited_for(&self) -> bool {
        let asked = !self.flushing.is_empty() || !self.closing.is_empty() || !self.looking.is_empty();
        asked || self.waiting.iter().any(Option::is_some)
    }
}

impl Writer {
    async fn run(mut self, mut inbox: mpsc::Receiver<Job>) {
        while let Some(first) = inbox.recv().await {
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
            self.commit_batch(batch).await;
            for waiter in closing {
                let closed = self.close_orphans().await;
                answer(waiter, closed);
            }
            for (host, waiter) in looking {
                // Whoever has gone needs no answer.
                let _ = waiter.send(self.presence.is_alive(&host, &self.db).await);
            }
        }
        self.commit_batch(Batch::default()).await;
    }

    async fn commit_batch(&mut self, batch: Batch) {
        let Batch { entries, mut waiting, flushing, closing: _, looking: _ } = batch;
        let mut rows = std::mem::take(&mut self.notes);
        // Nobody waits for what is left from before.
        waiting.splice(0..0, rows.iter().map(|_| None));
        rows.extend(entries);
        let error = match if rows.is_empty() { Ok(Vec::new()) } else { self.commit(&rows).await } {
            Ok(refused) => {
                let mut refused: BTreeMap<usize, Error> = refused.into_iter().collect();
                for (n, waiter) in waiting.into_iter().enumerate() {
                    answer(waiter, refused.remove(&n).map_or(Ok(()), Err));
                }
                flushing.into_iter().for_each(|waiter| answer(waiter, Ok(())));
                return;
            }
            Err(error) => error,
        };
        tracing::error!(%error, rows = rows.len(), "the audit could not be written");
        // One row that cannot be written must not keep the others from it: each is tried by itself.
        let mut lost = None;
        for (row, waiter) in rows.into_iter().zip(waiting) {
            // Where nobody answers, asking once more for each would keep everybody waiting.
            let tried =
                if is_gone(&error) { Err(Error::Audit(error.to_string())) } else { self.commit_one(&row).await };
            match tried {
                Ok(()) => answer(waiter, Ok(())),
                Err(error) if error.is_refusal() => answer(waiter, Err(error)),
                Err(Error::Sql(sqlx::Error::Database(error))) if can_never_be_written(&*error) => {
                    tracing::error!(%error, call = %row.entry.call_id, "a row that can never be written was dropped");
                    answer(waiter, Err(Error::Audit(error.to_string())));
                }
                Err(error) => {
                    let text = error.to_string();
                    lost = Some(text.clone());
                    answer(waiter, Err(Error::Audit(text)));
                    self.keep(row, &error);
                }
            }
        }
        for waiter in flushing {
            answer(waiter, lost.clone().map_or(Ok(()), |text| Err(Error::Audit(text))));
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
        if rows.iter().any(|row| row.entry.event == Event::Started) {
            self.presence.hold().await?;
        }
        let mut tx = self.db.write().await?;
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
        for (n, item) in rows.iter().enumerate() {
            // Every project of the rows has its head.
            let Some(head) = heads.iter_mut().find(|head| head.project == item.entry.project_id) else {
                return Err(Error::Audit(format!("project {} has no chain", item.entry.project_id)));
            };
            if let Some((entry, change)) = item.before.as_deref() {
                match self.write_row(tx, head, entry, Some(change), now).await {
                    Ok(()) => {}
                    Err(error) if error.is_refusal() => {
                        refused.push((n, error));
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            match self.write_row(tx, head, &item.entry, item.change.as_ref(), now).await {
                Ok(()) => {}
                // What went before it is written already, and only the whole transaction can take it back.
                Err(error) if error.is_refusal() && item.before.is_some() => {
                    return Err(Error::Audit(error.to_string()));
                }
                Err(error) if error.is_refusal() => refused.push((n, error)),
                Err(error) => return Err(error),
            }
        }
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
    ) -> Result<()> {
        if let Some(change) = change {
            change.apply(tx, row.project_id, row.call_id.as_str(), now).await?;
        }
        let seq = head.seq + 1;
        let body = body(row, seq, now)?;
        let next = chain::link(&head.hash, &body);
        insert(tx, row, seq, now, &body, &head.hash, &next).await?;
        track_open(tx, row, self.presence.host()).await?;
        (head.seq, head.hash) = (seq, next);
        Ok(())
    }

    /// Gives every call that a dead host left open its last row.
    async fn close_orphans(&mut self) -> Result<()> {
        let mut dead = Vec::new();
        // In one order everywhere, so that no two transactions wait for each other.
        let open = sql("SELECT project_id, call_id, host, tool FROM open_call ORDER BY project_id, call_id");
        for row in open.read(&self.db).await? {
            let host: String = row.get("host")?;
            if !self.presence.is_alive(&host, &self.db).await? {
                dead.push((row.get("project_id")?, row.get("call_id")?, host, row.get("tool")?));
            }
        }
        if dead.is_empty() {
            return Ok(());
        }
        // Taken and told in one transaction: whoever dies in here leaves them to the next.
        let mut tx = self.db.write().await?;
        let mut orphans = Vec::new();
        for (project_id, call_id, host, tool) in dead {
            let (call_id, tool): (String, String) = (call_id, tool);
            // Of two hosts that open at once, one takes it.
            let take = sql("DELETE FROM open_call WHERE project_id = $1 AND call_id = $2 AND host = $3");
            if take.bind(project_id).bind(&call_id).bind(&host).run(&mut tx).await? == 0 {
                continue;
            }
            let entry = Entry {
                event: Event::Unknown,
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
                outcome: Some(serde_json::json!({ "unknown": "the host ended while the call ran" })),
                duration_ms: None,
                fence: String::new(),
            };
            orphans.push(Item::new(entry, None));
        }
        self.write(&mut tx, &orphans).await?;
        tx.commit().await
    }
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
    matches!(error, Error::Unreachable { .. } | Error::Sql(Io(_) | PoolClosed | PoolTimedOut))
}

fn answer(waiter: Waiter, result: Result<()>) {
    if let Some(done) = waiter {
        // Who was cancelled meanwhile does not wait any more.
        let _ = done.send(result);
    }
}

/// The row's canonical JSON (RFC 8785): its number and time, then all that the entry says.
fn body(row: &Entry, seq: i64, at_ms: i64) -> Result<String> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        seq: i64,
        at_ms: i64,
        #[serde(flatten)]
        entry: &'a Entry,
    }
    serde_json_canonicalizer::to_string(&Body { seq, at_ms, entry: row })
        .map_err(|error| Error::Audit(error.to_string()))
}

/// The end of a project's chain.
struct Head {
    project: i64,
    seq: i64,
    hash: String,
}

/// The end of each chain that the rows belong to, kept for this transaction.
async fn heads(tx: &mut Tx, rows: &[Item]) -> Result<Vec<Head>> {
    let projects: BTreeSet<i64> = rows.iter().map(|row| row.entry.project_id).collect();
    let mut heads = Vec::new();
    // In one order everywhere, so that no two transactions wait for each other.
    for project in projects {
        let head = match tx.lock_chain(project).await? {
            Some(head) => head,
            None => {
                let begin = "INSERT INTO audit_head (project_id, seq, hash) VALUES ($1, 0, $2)
                     ON CONFLICT (project_id) DO NOTHING";
                sql(begin).bind(project).bind(chain::GENESIS).run(tx).await?;
                tx.lock_chain(project).await?.ok_or(Error::Sql(sqlx::Error::RowNotFound))?
            }
        };
        heads.push(Head { project, seq: head.get("seq")?, hash: head.get("hash")? });
    }
    Ok(heads)
}

async fn insert(tx: &mut Tx, row: &Entry, seq: i64, at_ms: i64, body: &str, prev_hash: &str, hash: &str) -> Result<()> {
    let event = serde_json::to_value(row.event).map_err(|error| Error::Audit(error.to_string()))?;
    let ok = row.outcome.as_ref().and_then(|outcome| outcome.get("ok")).and_then(Value::as_bool);
    sql("INSERT INTO audit (project_id, seq, at_ms, call_id, session_id, event, tool, ok, body, prev_hash, hash)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)")
    .bind(row.project_id)
    .bind(seq)
    .bind(at_ms)
    .bind(row.call_id.as_str())
    .bind(&row.session_id)
    .bind(event.as_str().unwrap_or_default())
    .bind(&row.tool)
    .bind(ok)
    .bind(body)
    .bind(prev_hash)
    .bind(hash)
    .run(tx)
    .await?;
    Ok(())
}

async fn track_open(tx: &mut Tx, row: &Entry, host: &str) -> Result<()> {
    let query = match row.event {
        Event::Started => sql("INSERT INTO open_call (project_id, call_id, host, tool) VALUES ($1, $2, $3, $4)
             ON CONFLICT (project_id, call_id) DO UPDATE SET host = excluded.host, tool = excluded.tool")
        .bind(row.project_id)
        .bind(row.call_id.as_str())
        .bind(host)
        .bind(&row.tool),
        Event::Finished | Event::Unknown => sql("DELETE FROM open_call WHERE project_id = $1 AND call_id = $2")
            .bind(row.project_id)
            .bind(row.call_id.as_str()),
        Event::Decision => return Ok(()),
    };
    query.run(tx).await?;
    Ok(())
}
