//! Writing the audit: one task, one connection, many rows a commit.
//!
//! The hard problem is speed without doubt. A read call does not wait for the disk: its row is queued and committed
//! within [`NOTE_DELAY`]. Whatever can change something waits until its row is committed, and all that wait share a
//! commit.

mod rows;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use toolhost_contract::{CallId, Clock, Trace};

use self::writer::{Waiter, Writer};
use crate::ask::AskChange;
use crate::db::{Db, Tx};
use crate::error::{Error, Result};
use crate::host_name::HostName;
use crate::presence::Presence;
use crate::subject::Subjects;

/// Rows that may wait for the disk; beyond, callers wait for room.
const QUEUE_MAX: usize = 4096;
/// How long a row that nobody waits for may stay uncommitted, so that it shares its commit with others.
const NOTE_DELAY: Duration = Duration::from_millis(50);

/// The append-only side of the audit. Cloning it is cheap; all clones write to the same chain.
#[derive(Clone)]
pub struct Audit {
    queue: mpsc::Sender<Job>,
    host: HostName,
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
    /// What the call leaves behind by which its end can be decided later; no part of the row.
    #[serde(skip)]
    pub trace: Trace,
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
    Decide(Box<Entry>, oneshot::Sender<Result<()>>),
    IsAlive(String, oneshot::Sender<Result<bool>>),
    Leave(oneshot::Sender<Result<()>>),
}

impl Audit {
    pub(crate) async fn start(db: Db, subjects: Subjects, presence: Presence, clock: Arc<dyn Clock>) -> Result<Self> {
        let (queue, inbox) = mpsc::channel(QUEUE_MAX);
        let host = presence.host();
        let mut writer = Writer::new(db, subjects, presence, clock);
        writer.close_orphans().await?;
        tokio::spawn(writer.run(inbox));
        Ok(Self { queue, host })
    }

    /// Where nothing can be written: every row is refused, but for those that nobody waits for.
    pub(crate) fn reading(db: Db, subjects: Subjects, presence: Presence, clock: Arc<dyn Clock>) -> Self {
        let (queue, inbox) = mpsc::channel(QUEUE_MAX);
        let host = presence.host();
        tokio::spawn(Writer::new(db, subjects, presence, clock).run(inbox));
        Self { queue, host }
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

    /// Adds the row `finished` to a call that a crash left unknown. If another host has added one already, this writes nothing.
    pub async fn decide(&self, entry: Entry) -> Result<()> {
        let (done, decided) = oneshot::channel();
        self.send(Job::Decide(Box::new(entry), done)).await?;
        decided.await.map_err(|_| gone())?
    }

    /// This host, as its calls and asks name it.
    pub(crate) fn host(&self) -> Arc<str> {
        self.host.get()
    }

    pub(crate) fn host_name(&self) -> HostName {
        self.host.clone()
    }

    /// Commits what is queued; this host writes nothing after it.
    pub(crate) async fn leave(&self) -> Result<()> {
        let (done, left) = oneshot::channel();
        self.send(Job::Leave(done)).await?;
        left.await.map_err(|_| gone())?
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

/// The number of the last row of a project's audit. Nobody adds one until the transaction has ended.
pub(crate) async fn lock_head(tx: &mut Tx, project: i64) -> Result<i64> {
    Ok(rows::head(tx, project).await?.seq)
}

fn gone() -> Error {
    Error::audit("its writer has ended")
}
