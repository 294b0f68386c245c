//! Sessions of agents: who runs each, what it has come to step by step, and what people want of it.
//!
//! The hard problem is that a session outlives its process. Taking one is a compare-and-set that raises its epoch, and
//! only to be had when the host that had it is dead or has let go; each write names the epoch, so that whoever lost the
//! session can write no more. Start with [`Sessions::create`] and [`Sessions::hold`].

mod held;
mod messages;
mod said;
mod shared;
pub(crate) mod state;
mod writer;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolhost_contract::{Clock, SESSION_MARK, Signal};

use crate::ask::SESSION_CANCELLED;
use crate::audit::Audit;
use crate::db::{Db, Row, Tx, sql};
use crate::error::{Error, Result};
use crate::stream::{self, SessionChange};
use crate::subject::{Database, Subjects};

pub use held::Held;
pub use messages::Message;
pub use state::SessionState;

use shared::Shared;
use writer::Job;

/// How many characters behind what each id begins with may stand for the whole.
const ID_CHARS_MIN: usize = 4;
/// What stands for the session that was worked in last.
const LAST: &str = "last";
/// Sessions that are named where more than one is meant.
const MEANT_TOLD_MAX: i64 = 5;
/// How often a wish is tried on a session that is taken and let go of meanwhile.
const WANT_TRIES: usize = 5;
/// Longest title, characters.
const TITLE_CHARS_MAX: usize = 200;

/// A session to be made.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub project_id: i64,
    pub user_id: i64,
    pub id: String,
    pub profile: String,
    pub model: String,
    /// What is asked for.
    pub title: String,
    /// Its first steps, by name.
    pub steps: Vec<(String, Value)>,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    pub id: String,
    #[serde(skip)]
    pub user_id: i64,
    pub parent: Option<String>,
    pub profile: String,
    pub model: String,
    pub title: String,
    pub state: SessionState,
    /// The stable code of what ended it.
    pub code: Option<String>,
    /// Whether a host that lives runs it.
    pub running: bool,
    pub steps: i64,
    pub tally: Value,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
    #[serde(skip)]
    host: Option<String>,
    #[serde(skip)]
    wanted: Option<String>,
    #[serde(skip)]
    epoch: i64,
}

impl SessionRow {
    /// Whether a person has told it to pause, and it has not yet.
    #[must_use]
    pub fn pauses(&self) -> bool {
        self.running && self.wanted.as_deref() == Some("pause")
    }

    /// Whether a person has told it to end for good, and it has not yet.
    #[must_use]
    pub fn ends(&self) -> bool {
        self.running && self.wanted.as_deref() == Some("cancel")
    }
}

/// Which sessions a page of a list has.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    pub state: Option<SessionState>,
    /// Only those that a host that lives runs, or only others.
    pub running: Option<bool>,
    /// Only those that come after this one in the list: its `updated_at_ms` and its id.
    pub after: Option<(i64, String)>,
    pub limit: i64,
}

/// A step, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRow {
    pub seq: i64,
    pub step: String,
    pub at_ms: i64,
    pub body: Value,
}

/// The sessions of all projects; every call names one.
#[derive(Clone)]
pub struct Sessions {
    inner: Arc<Inner>,
}

/// Reading single steps, for tools.
#[derive(Clone)]
pub struct Steps {
    database: Database,
}

struct Inner {
    db: Db,
    /// Who may know what a call has written.
    subjects: Subjects,
    clock: Arc<dyn Clock>,
    audit: Audit,
    /// The sessions that this process runs.
    held: Mutex<HashMap<Key, Arc<Shared>>>,
    /// Those that a task of this process is about to run.
    taking: Mutex<HashSet<Key>>,
    /// Made when the first session is held.
    writer: OnceLock<mpsc::Sender<Job>>,
}

/// Project and id.
type Key = (i64, String);

/// A session that one task takes. Dropped, others may.
struct Taking {
    inner: Arc<Inner>,
    key: Key,
}

impl Taking {
    /// `None`: another task takes it.
    fn begin(inner: &Arc<Inner>, key: &Key) -> Option<Self> {
        inner.taking().insert(key.clone()).then(|| Self { inner: Arc::clone(inner), key: key.clone() })
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.inner.taking().remove(&self.key);
    }
}

const COLUMNS: &str =
    "id, epoch, account_id, parent, profile, model, title, state, code, host, wanted, steps, tally, created_at_ms,
     updated_at_ms";

impl Sessions {
    pub(crate) fn new(db: Db, subjects: Subjects, clock: Arc<dyn Clock>, audit: Audit) -> Self {
        Self {
            inner: Arc::new(Inner {
                db,
                subjects,
                clock,
                audit,
                held: Mutex::default(),
                taking: Mutex::default(),
                writer: OnceLock::new(),
            }),
        }
    }

    /// Makes a session that nobody runs yet.
    pub async fn create(&self, new: &NewSession) -> Result<()> {
        let mut tx = self.inner.db.write_lightly().await?;
        self.insert(&mut tx, new, None).await?;
        let now = self.inner.clock.unix_ms();
        stream::add(&mut tx, new.project_id, &begun(new, SessionState::Active), now).await?;
        tx.commit().await
    }

    async fn insert(&self, tx: &mut Tx, new: &NewSession, parent: Option<&str>) -> Result<()> {
        let now = self.inner.clock.unix_ms();
        let title: String = new.title.chars().take(TITLE_CHARS_MAX).collect();
        sql(
            "INSERT INTO agent_session (project_id, id, account_id, parent, profile, model, title, state, code, wanted,
                 host, epoch, steps, tally, created_at_ms, updated_at_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL, NULL, NULL, 0, $9, '{}', $10, $10)",
        )
        .bind(new.project_id)
        .bind(&new.id)
        .bind(new.user_id)
        .bind(parent.map(str::to_owned))
        .bind(&new.profile)
        .bind(&new.model)
        .bind(title.replace('\0', "\u{fffd}"))
        .bind(SessionState::Active.as_str())
        .bind(i64::try_from(new.steps.len()).unwrap_or(i64::MAX))
        .bind(now)
        .run(tx)
        .await?;
        for (seq, (step, body)) in (0..).zip(&new.steps) {
            add_step(tx, new.project_id, &new.id, seq, step, &body.to_string(), now).await?;
        }
        Ok(())
    }

    /// A new session with these steps of another one, which stands as `tally` says.
    pub async fn fork(
        &self,
        project: i64,
        from: &str,
        (id, user): (&str, i64),
        steps: &[StepRow],
        tally: &Value,
    ) -> Result<()> {
        let mut tx = self.inner.db.write_lightly().await?;
        tx.lock_project(project).await?;
        let parent = find(&mut tx, project, from).await?;
        let new = NewSession {
            project_id: project,
            user_id: user,
            id: id.to_owned(),
            profile: parent.profile.clone(),
            model: parent.model.clone(),
            title: parent.title.clone(),
            steps: steps.iter().map(|row| (row.step.clone(), row.body.clone())).collect(),
        };
        self.insert(&mut tx, &new, Some(from)).await?;
        let update = "UPDATE agent_session SET tally = $3, state = 'paused' WHERE project_id = $1 AND id = $2";
        sql(update).bind(project).bind(id).bind(tally.to_string()).run(&mut tx).await?;
        let now = self.inner.clock.unix_ms();
        stream::add(&mut tx, project, &begun(&new, SessionState::Paused), now).await?;
        tx.commit().await
    }

    /// The session, or an error that says that there is none.
    pub async fn get(&self, project: i64, id: &str) -> Result<SessionRow> {
        let text = format!("SELECT {COLUMNS} FROM agent_session WHERE project_id = $1 AND id = $2");
        let rows = crate::db::sql_of(text).bind(project).bind(id).read(&self.inner.db).await?;
        let row = rows.first().ok_or_else(|| Error::NoSession { id: id.to_owned() })?;
        self.told(session(row)?).await
    }

    /// The one session that somebody means: by its id, by how its id begins (with or without `as_`), or as `last`, the one of
    /// this user that was worked in last.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub async fn meant(&self, project: i64, user: i64, typed: &str) -> Result<SessionRow> {
        let none = || Error::NoSession { id: typed.to_owned() };
        if typed == LAST {
            let text = format!(
                "SELECT {COLUMNS} FROM agent_session WHERE project_id = $1 AND account_id = $2
                 ORDER BY updated_at_ms DESC, id DESC LIMIT 1"
            );
            let rows = crate::db::sql_of(text).bind(project).bind(user).read(&self.inner.db).await?;
            return self.told(session(rows.first().ok_or_else(none)?)?).await;
        }
        let begins = if typed.starts_with(SESSION_MARK) { typed.to_owned() } else { format!("{SESSION_MARK}{typed}") };
        if begins.len() < SESSION_MARK.len() + ID_CHARS_MIN
            || !begins[SESSION_MARK.len()..].bytes().all(|c| c.is_ascii_hexdigit())
        {
            return self.get(project, typed).await;
        }
        // Behind each digit of an id, in the order of both databases.
        let ends = format!("{begins}g");
        let text = format!(
            "SELECT {COLUMNS} FROM agent_session WHERE project_id = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4"
        );
        let query = crate::db::sql_of(text).bind(project).bind(begins).bind(ends).bind(MEANT_TOLD_MAX);
        match &*query.read(&self.inner.db).await? {
            [] => Err(none()),
            [row] => self.told(session(row)?).await,
            rows => {
                let found = rows.iter().map(|row| session(row).map(|row| row.id)).collect::<Result<Vec<_>>>()?;
                match found.iter().any(|id| id == typed) {
                    true => self.get(project, typed).await,
                    false => Err(Error::SessionsBeginSo { typed: typed.to_owned(), ids: found.join(", ") }),
                }
            }
        }
    }

    /// The newest first.
    pub async fn list(&self, project: i64, limit: i64) -> Result<Vec<SessionRow>> {
        self.page(project, &SessionFilter { limit, ..SessionFilter::default() }).await
    }

    /// A page of the list, the one last worked in first.
    pub async fn page(&self, project: i64, filter: &SessionFilter) -> Result<Vec<SessionRow>> {
        let limit = usize::try_from(filter.limit).unwrap_or(0);
        let (mut found, mut after) = (Vec::new(), filter.after.clone());
        loop {
            let rows = self.rows(project, filter, after.take()).await?;
            let is_last = i64::try_from(rows.len()).is_ok_and(|count| count < filter.limit);
            after = rows.last().map(|last| (last.updated_at_ms, last.id.clone()));
            for row in rows {
                let row = self.told(row).await?;
                // Whether a host lives is not in the rows, and a session whose host has died may have ended with it.
                let is_wanted = filter.state.is_none_or(|state| row.state == state)
                    && filter.running.is_none_or(|running| row.running == running);
                if is_wanted && found.len() < limit {
                    found.push(row);
                }
            }
            if is_last || found.len() >= limit {
                return Ok(found);
            }
        }
    }

    async fn rows(
        &self,
        project: i64,
        filter: &SessionFilter,
        after: Option<(i64, String)>,
    ) -> Result<Vec<SessionRow>> {
        let (at_ms, id) = after.unwrap_or((i64::MAX, String::new()));
        // Two conditions on the time: the first is one that an index is walked by.
        let text = format!(
            "SELECT {COLUMNS} FROM agent_session
             WHERE project_id = $1 AND updated_at_ms <= $2 AND (updated_at_ms < $2 OR id < $3) AND ($4 = '' OR state = $4)
             ORDER BY updated_at_ms DESC, id DESC LIMIT $5"
        );
        let state = filter.state.map(SessionState::as_str).unwrap_or_default();
        let query = crate::db::sql_of(text).bind(project).bind(at_ms).bind(id).bind(state).bind(filter.limit);
        query.read(&self.inner.db).await?.iter().map(session).collect()
    }

    async fn told(&self, mut row: SessionRow) -> Result<SessionRow> {
        row.running = match &row.host {
            Some(host) => self.inner.audit.is_alive(host).await?,
            None => false,
        };
        // Its host died before it heard so.
        if !row.running && row.wanted.as_deref() == Some("cancel") {
            row.state = SessionState::Cancelled;
        }
        Ok(row)
    }

    /// The steps after a number, the oldest first.
    pub async fn steps(&self, project: i64, id: &str, after: i64, limit: i64) -> Result<Vec<StepRow>> {
        let text = "SELECT seq, step, at_ms, body FROM agent_step
             WHERE project_id = $1 AND session_id = $2 AND seq > $3 ORDER BY seq LIMIT $4";
        let rows = sql(text).bind(project).bind(id).bind(after).bind(limit).read(&self.inner.db).await?;
        rows.iter().map(step).collect()
    }

    /// A step by its name, if the session has it.
    pub async fn step(&self, project: i64, id: &str, name: &str) -> Result<Option<StepRow>> {
        let text =
            "SELECT seq, step, at_ms, body FROM agent_step WHERE project_id = $1 AND session_id = $2 AND step = $3";
        let rows = sql(text).bind(project).bind(id).bind(name).read(&self.inner.db).await?;
        rows.first().map(step).transpose()
    }

    /// Takes a session to run it. Refused while another run of it lives, here or in another process.
    pub async fn hold(&self, project: i64, id: &str) -> Result<Held> {
        let key = (project, id.to_owned());
        // Between the row that says who runs it and the place among those that this process runs, another task would see a session that
        // belongs to this process and is run by nobody.
        let Some(_taking) = Taking::begin(&self.inner, &key) else {
            return Err(Error::SessionRuns { id: id.to_owned() });
        };
        // What a run before this one in the same process had kept may still be on its way.
        writer::settle(&self.inner).await;
        let found = self.get(project, id).await?;
        let me = self.inner.audit.host();
        let mine = found.host.as_deref() == Some(&*me);
        if (mine && self.inner.held().contains_key(&key)) || (!mine && found.running) {
            return Err(Error::SessionRuns { id: id.to_owned() });
        }
        // The calls of a host that died are given their last rows before anybody asks what became of them.
        self.inner.audit.close_orphans().await?;
        let mut tx = self.inner.db.write_lightly().await?;
        if let Some(host) = found.host.as_deref().filter(|host| **host != *me)
            && !tx.fence_off(host).await?
        {
            return Err(Error::SessionRuns { id: id.to_owned() });
        }
        tx.lock_project(project).await?;
        if end_cancelled(&mut tx, project, &found, self.inner.clock.unix_ms()).await? {
            tx.commit().await?;
            return Err(Error::SessionEnded { id: id.to_owned(), state: SessionState::Cancelled });
        }
        let text =
            "UPDATE agent_session SET host = $3, epoch = epoch + 1, wanted = NULL, state = 'active', code = NULL,
                 updated_at_ms = $5
             WHERE project_id = $1 AND id = $2 AND COALESCE(host, '') = $4 AND epoch = $6 AND state <> 'cancelled'
             RETURNING epoch, steps";
        let was = found.host.clone().unwrap_or_default();
        let now = self.inner.clock.unix_ms();
        let taken = sql(text).bind(project).bind(id).bind(&*me).bind(was).bind(now).bind(found.epoch).optional(&mut tx);
        let taken = taken.await?;
        let Some(taken) = taken else { return Err(Error::SessionRuns { id: id.to_owned() }) };
        let (epoch, count): (i64, i64) = (taken.get("epoch")?, taken.get("steps")?);
        let text =
            "SELECT seq, step, at_ms, body FROM agent_step WHERE project_id = $1 AND session_id = $2 ORDER BY seq";
        let rows = sql(text).bind(project).bind(id).all(&mut tx).await?;
        let steps: Vec<StepRow> = rows.iter().map(step).collect::<Result<_>>()?;
        stream::add(&mut tx, project, &[(id, SessionChange::state(SessionState::Active.as_str(), None))], now).await?;
        tx.commit().await?;
        let row = SessionRow { running: true, host: Some(me.to_string()), steps: count, ..found };
        Held::new(Arc::clone(&self.inner), row, key, epoch, steps)
    }

    /// Says what a person wants of a session. One that nobody runs is paused or cancelled at once.
    pub async fn want(&self, project: i64, id: &str, signal: Signal) -> Result<SessionRow> {
        for _ in 0..WANT_TRIES {
            if let Some(told) = self.try_want(project, id, signal).await? {
                return Ok(told);
            }
        }
        Err(Error::SessionRuns { id: id.to_owned() })
    }

    /// `None`: it was taken or let go of meanwhile.
    async fn try_want(&self, project: i64, id: &str, signal: Signal) -> Result<Option<SessionRow>> {
        let found = self.get(project, id).await?;
        if matches!(found.state, SessionState::Cancelled) || (found.state == SessionState::Done && !found.running) {
            return Err(Error::SessionEnded { id: id.to_owned(), state: found.state });
        }
        let has_stopped = matches!(found.state, SessionState::Failed | SessionState::Limited) && !found.running;
        if signal == Signal::Pause && has_stopped {
            // Paused, it would no longer be known why it stopped.
            return Err(Error::SessionStopped { id: id.to_owned(), state: found.state });
        }
        let now = self.inner.clock.unix_ms();
        let (wanted, ended) = match signal {
            Signal::Pause => ("pause", SessionState::Paused),
            Signal::Cancel => ("cancel", SessionState::Cancelled),
        };
        let mut tx = self.inner.db.write_lightly().await?;
        if found.running {
            // A pause takes no cancel back: that is for good.
            let text = "UPDATE agent_session SET wanted = CASE WHEN wanted = 'cancel' THEN wanted ELSE $3 END
                 WHERE project_id = $1 AND id = $2 AND host = $4";
            if sql(text).bind(project).bind(id).bind(wanted).bind(&found.host).run(&mut tx).await? == 0 {
                return Ok(None);
            }
        } else {
            let text = "UPDATE agent_session SET state = $3, host = NULL, epoch = epoch + 1, updated_at_ms = $5
                 WHERE project_id = $1 AND id = $2 AND COALESCE(host, '') = $4 AND epoch = $6";
            let was = found.host.clone().unwrap_or_default();
            let text = sql(text).bind(project).bind(id).bind(ended.as_str()).bind(was).bind(now).bind(found.epoch);
            if text.run(&mut tx).await? == 0 {
                return Ok(None);
            }
            // Before asks are locked, which whoever writes to the audit locks after its end.
            stream::add(&mut tx, project, &[(id, SessionChange::state(ended.as_str(), None))], now).await?;
            if ended == SessionState::Cancelled {
                withdraw_asks(&mut tx, project, id, now).await?;
            }
        }
        tx.commit().await?;
        self.get(project, id).await.map(Some)
    }
}

/// What the stream tells of a session that was made.
fn begun(new: &NewSession, state: SessionState) -> Vec<(&str, SessionChange)> {
    let steps = (0..).zip(&new.steps).map(|(seq, (step, body))| SessionChange::step(seq, step, body));
    std::iter::once(SessionChange::state(state.as_str(), None))
        .chain(steps)
        .map(|change| (new.id.as_str(), change))
        .collect()
}

/// Whether a host died before it heard that its session was cancelled: that is for good all the same, and done now.
async fn end_cancelled(tx: &mut Tx, project: i64, found: &SessionRow, now: i64) -> Result<bool> {
    let text = "UPDATE agent_session SET state = 'cancelled', wanted = NULL, host = NULL, epoch = epoch + 1,
             updated_at_ms = $5
         WHERE project_id = $1 AND id = $2 AND wanted = 'cancel' AND COALESCE(host, '') = $3 AND epoch = $4";
    let was = found.host.clone().unwrap_or_default();
    let query = sql(text).bind(project).bind(&found.id).bind(was).bind(found.epoch).bind(now);
    if query.run(tx).await? == 0 {
        return Ok(false);
    }
    stream::add(tx, project, &[(&found.id, SessionChange::state(SessionState::Cancelled.as_str(), None))], now).await?;
    withdraw_asks(tx, project, &found.id, now).await?;
    Ok(true)
}

/// Withdraws what a session asks that was cancelled, and notes why with each ask. Any other session can go on and keeps its asks: a model
/// that answers "it waits for you" has finished, and uses the answer when somebody tells it to go on.
async fn withdraw_asks(tx: &mut Tx, project: i64, session: &str, now: i64) -> Result<()> {
    let text = "UPDATE ask SET state = 'withdrawn', outcome = $3
         WHERE project_id = $1 AND session_id = $2 AND state IN ('open', 'answered') AND expires_at_ms > $4";
    let outcome = json!({ SESSION_CANCELLED: true }).to_string();
    sql(text).bind(project).bind(session).bind(outcome).bind(now).run(tx).await?;
    Ok(())
}

impl Steps {
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// A step by its name, of a session of this user's; none where either is not there.
    pub async fn get(&self, project: i64, user: i64, session: &str, name: &str) -> Result<Option<StepRow>> {
        let (db, _) = self.database.opened()?;
        let text = "SELECT t.seq AS seq, t.step AS step, t.at_ms AS at_ms, t.body AS body
             FROM agent_step t JOIN agent_session s ON s.project_id = t.project_id AND s.id = t.session_id
             WHERE t.project_id = $1 AND t.session_id = $2 AND t.step = $3 AND s.account_id = $4";
        let rows = sql(text).bind(project).bind(session).bind(name).bind(user).read(&db).await?;
        rows.first().map(step).transpose()
    }
}

impl Inner {
    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Shared>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taking(&self) -> std::sync::MutexGuard<'_, HashSet<Key>> {
        self.taking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sessions of this process, for the writer.
    fn held_keys(&self) -> BTreeSet<Key> {
        self.held().keys().cloned().collect()
    }
}

async fn find(tx: &mut Tx, project: i64, id: &str) -> Result<SessionRow> {
    let text = format!("SELECT {COLUMNS} FROM agent_session WHERE project_id = $1 AND id = $2");
    let row = crate::db::sql_of(text).bind(project).bind(id).optional(tx).await?;
    session(&row.ok_or_else(|| Error::NoSession { id: id.to_owned() })?)
}

async fn add_step(tx: &mut Tx, project: i64, id: &str, seq: i64, step: &str, body: &str, now: i64) -> Result<()> {
    sql("INSERT INTO agent_step (project_id, session_id, seq, step, at_ms, body) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(project)
        .bind(id)
        .bind(seq)
        .bind(step)
        .bind(now)
        .bind(body)
        .run(tx)
        .await?;
    Ok(())
}

fn session(row: &Row) -> Result<SessionRow> {
    let state: String = row.get("state")?;
    let tally: String = row.get("tally")?;
    Ok(SessionRow {
        id: row.get("id")?,
        user_id: row.get("account_id")?,
        parent: row.get("parent")?,
        profile: row.get("profile")?,
        model: row.get("model")?,
        title: row.get("title")?,
        state: serde_json::from_value(Value::String(state)).map_err(|error| Error::Row(error.to_string()))?,
        code: row.get("code")?,
        running: false,
        steps: row.get("steps")?,
        tally: serde_json::from_str(&tally).map_err(|error| Error::Row(error.to_string()))?,
        created_at_ms: row.get("created_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
        host: row.get("host")?,
        wanted: row.get("wanted")?,
        epoch: row.get("epoch")?,
    })
}

fn step(row: &Row) -> Result<StepRow> {
    let body: String = row.get("body")?;
    Ok(StepRow {
        seq: row.get("seq")?,
        step: row.get("step")?,
        at_ms: row.get("at_ms")?,
        body: serde_json::from_str(&body).map_err(|error| Error::Row(error.to_string()))?,
    })
}
