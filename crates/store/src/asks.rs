//! What people are asked, and what they answered: rows that any process may add, answer and use.
//!
//! The hard problem is that an answer is used once, whoever dies when. Opening, answering and using are each one
//! compare-and-set in one transaction, and the last two share theirs with the audit's row about them (see
//! [`Audit::append_with`](crate::Audit::append_with)): what the audit says is what happened.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use toolhost_contract::Clock;

use crate::ask::{Ask, AskChange, AskKind, AskLimits, AskPage, AskState, AskSummary, NewAsk, NewPermit, Permit};
use crate::db::{Db, Row, Tx, sql, sql_of};
use crate::error::{Error, Result};
use crate::host_name::HostName;

/// The name of the counter that numbers asks and permits. No kind of record has this name.
const COUNTER: &str = "ask";
/// The host of the caller, in the column of the call: no field of a call's is named so.
const HOST: &str = "host";
/// Asks of one project that may be open; beyond, further ones are refused.
pub const OPEN_MAX: i64 = 1000;
/// Ended asks that a project keeps; older ones go.
const KEPT: i64 = 10_000;
/// What the asks of a project keep in all, bytes; beyond, the oldest ended ones go.
const KEPT_BYTES_MAX: i64 = 256 << 20;
/// How often it is looked whether that is too much: once in so many asks.
const PRUNE_EVERY: i64 = 64;
/// Ended asks dropped at once while they are too large.
const PRUNE_STEP: i64 = 64;
/// How long an answer can be used at least, milliseconds; where the ask itself lives shorter, as long as that.
const ANSWER_LIVES_MS_MIN: i64 = 60_000;
/// Longest summary in a list, characters.
const SUMMARY_CHARS_MAX: i64 = 400;

/// Where the asks of a project stand: two marks differ if an ask was made or has ended between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AsksMark {
    /// The number of the newest one.
    last: i64,
    /// How many can be answered.
    open: i64,
}

impl AsksMark {
    /// The two numbers that it is, for whoever has to write it down.
    #[must_use]
    pub fn parts(self) -> (i64, i64) {
        (self.last, self.open)
    }

    #[must_use]
    pub fn of_parts((last, open): (i64, i64)) -> Self {
        Self { last, open }
    }
}

/// The asks of all projects; every call names one.
#[derive(Clone)]
pub struct Asks {
    db: Db,
    clock: Arc<dyn Clock>,
    host: HostName,
}

macro_rules! columns {
    () => {
        "number, kind, state, digest, effect_digest, subject, round, account_id, session_id, tool, call, shown, answer,
         answered_by, answered_at_ms, used_by, outcome, created_at_ms, expires_at_ms"
    };
}

impl Asks {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>, host: HostName) -> Self {
        Self { db, clock, host }
    }

    /// Asks. Where the very same is asked already, and the answer not used, it is that ask.
    pub async fn open(&self, new: &NewAsk) -> Result<Ask> {
        let now = self.clock.unix_ms();
        let mut tx = self.db.write().await?;
        tx.lock_project(new.project_id).await?;
        let waiting = Waiting::of(&mut tx, new, now).await?;
        if let Some(number) = waiting.same {
            return must_get(&mut tx, new.project_id, number, now).await;
        }
        let (call, shown) = (text_of(&from_host(&new.call, &self.host.get())), text_of(&new.shown));
        waiting.check(new.limits, call.len() + shown.len())?;
        let number = tx.next_number(new.project_id, COUNTER).await?;
        let expires = now.saturating_add(i64::try_from(new.lives_ms).unwrap_or(i64::MAX));
        let kind = word(new.kind);
        sql("INSERT INTO ask (project_id, number, kind, state, digest, effect_digest, subject, round, account_id, session_id,
                 tool, call, shown, created_at_ms, expires_at_ms)
             VALUES ($1, $2, $3, 'open', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)")
        .bind(new.project_id)
        .bind(number)
        .bind(kind)
        .bind(&new.digest)
        .bind(&new.effect_digest)
        .bind(&new.subject)
        .bind(new.round)
        .bind(new.user_id)
        .bind(&new.session_id)
        .bind(&new.tool)
        .bind(call)
        .bind(shown)
        .bind(now)
        .bind(expires)
        .run(&mut tx)
        .await?;
        prune(&mut tx, new.project_id, number, now).await?;
        if number % PRUNE_EVERY == 0 {
            prune_large(&mut tx, new.project_id, number, now).await?;
        }
        tx.commit().await?;
        Ok(self.made(new, number, now, expires))
    }

    /// A new ask, as [`Asks::get`] would read it.
    fn made(&self, new: &NewAsk, number: i64, created_at_ms: i64, expires_at_ms: i64) -> Ask {
        let state = if expires_at_ms <= created_at_ms { AskState::Expired } else { AskState::Open };
        Ask {
            number,
            kind: new.kind,
            state,
            digest: new.digest.clone(),
            effect_digest: new.effect_digest.clone(),
            subject: new.subject.clone(),
            round: new.round,
            user_id: new.user_id,
            session_id: new.session_id.clone(),
            tool: new.tool.clone(),
            call: new.call.clone(),
            host: Some(self.host.get().to_string()),
            shown: new.shown.clone(),
            answer: None,
            answered_by: None,
            answered_at_ms: None,
            used_by: None,
            outcome: None,
            created_at_ms,
            expires_at_ms,
        }
    }

    pub async fn get(&self, project: i64, number: i64) -> Result<Option<Ask>> {
        let text = concat!("SELECT ", columns!(), " FROM ask WHERE project_id = $1 AND number = $2");
        let rows = sql(text).bind(project).bind(number).read(&self.db).await?;
        rows.first().map(|row| ask(row, self.clock.unix_ms())).transpose()
    }

    /// An ask as it stands in a list.
    pub async fn summary(&self, project: i64, number: i64) -> Result<Option<AskSummary>> {
        let text = format!("SELECT {} FROM ask WHERE project_id = $1 AND number = $2", self.summary_columns());
        let rows = sql_of(text).bind(project).bind(number).read(&self.db).await?;
        rows.first().map(|row| summary(row, self.clock.unix_ms())).transpose()
    }

    /// Where an ask stands, without all that it holds.
    pub async fn state(&self, project: i64, number: i64) -> Result<Option<AskState>> {
        let text = "SELECT state, expires_at_ms FROM ask WHERE project_id = $1 AND number = $2";
        let rows = sql(text).bind(project).bind(number).read(&self.db).await?;
        rows.first().map(|row| state(row, row.get("expires_at_ms")?, self.clock.unix_ms())).transpose()
    }

    /// Whether this ask has an answer that no call has used, and is about the call with this digest.
    pub async fn is_unused(&self, project: i64, number: i64, digest: &str) -> Result<bool> {
        let text = "SELECT number FROM ask WHERE project_id = $1 AND number = $2 AND digest = $3
             AND state = 'answered' AND expires_at_ms > $4";
        let query = sql(text).bind(project).bind(number).bind(digest).bind(self.clock.unix_ms());
        Ok(!query.read(&self.db).await?.is_empty())
    }

    /// Asks about the call with this digest that a person has answered, and whose answer no call has used; the oldest first.
    pub async fn unused_of(&self, project: i64, digest: &str) -> Result<Vec<Ask>> {
        let text = concat!(
            "SELECT ",
            columns!(),
            " FROM ask WHERE project_id = $1 AND digest = $2 AND state = 'answered' AND expires_at_ms > $3 ORDER BY number LIMIT 100"
        );
        let now = self.clock.unix_ms();
        let rows = sql(text).bind(project).bind(digest).bind(now).read(&self.db).await?;
        rows.iter().map(|row| ask(row, now)).collect()
    }

    /// Whether the person has been shown all of the text with this digest.
    pub async fn was_seen(&self, project: i64, number: i64, account_id: i64, digest: &str) -> Result<bool> {
        let text =
            "SELECT number FROM ask_seen WHERE project_id = $1 AND number = $2 AND account_id = $3 AND digest = $4";
        let query = sql(text).bind(project).bind(number).bind(account_id).bind(digest);
        Ok(!query.read(&self.db).await?.is_empty())
    }

    /// What changes whenever an ask is made or ends, however it ends.
    pub async fn mark(&self, project: i64) -> Result<AsksMark> {
        let text = "SELECT COALESCE((SELECT max(number) FROM ask WHERE project_id = $1), 0) AS last,
                 (SELECT count(*) FROM ask WHERE project_id = $1 AND state = 'open' AND expires_at_ms > $2) AS open";
        let rows = sql(text).bind(project).bind(self.clock.unix_ms()).read(&self.db).await?;
        let row = rows.first().ok_or(Error::Sql(sqlx::Error::RowNotFound))?;
        Ok(AsksMark { last: row.get("last")?, open: row.get("open")? })
    }

    /// What a person can still answer, the oldest first: those after a number.
    pub async fn open_after(&self, project: i64, after: i64, limit: i64) -> Result<AskPage> {
        self.open_of(project, None, after, limit).await
    }

    /// The same of one kind, or of all.
    pub async fn open_of(&self, project: i64, kind: Option<AskKind>, after: i64, limit: i64) -> Result<AskPage> {
        let (now, kind) = (self.clock.unix_ms(), kind.map(word).unwrap_or_default());
        let open = "FROM ask WHERE project_id = $1 AND state = 'open' AND expires_at_ms > $2 AND number > $3
             AND ($4 = '' OR kind = $4)";
        let text = format!("SELECT {} {open} ORDER BY number LIMIT $5", self.summary_columns());
        let asks = sql_of(text).bind(project).bind(now).bind(after).bind(kind).bind(limit).read(&self.db).await?;
        let all = sql_of(format!("SELECT count(*) AS total {open}")).bind(project).bind(now).bind(after).bind(kind);
        self.page(&asks, &all.read(&self.db).await?, now)
    }

    /// What a session waits for, the oldest first.
    pub async fn open_of_session(&self, project: i64, session: &str, limit: i64) -> Result<Vec<AskSummary>> {
        self.of_session(project, session, "open", limit).await
    }

    /// What a session was answered, and no call of it has used, the oldest first.
    pub async fn answered_of_session(&self, project: i64, session: &str, limit: i64) -> Result<Vec<AskSummary>> {
        self.of_session(project, session, "answered", limit).await
    }

    async fn of_session(&self, project: i64, session: &str, state: &str, limit: i64) -> Result<Vec<AskSummary>> {
        let text = format!(
            "SELECT {} FROM ask WHERE project_id = $1 AND state = $5 AND expires_at_ms > $2 AND session_id = $3
             ORDER BY number LIMIT $4",
            self.summary_columns()
        );
        let now = self.clock.unix_ms();
        let query = sql_of(text).bind(project).bind(now).bind(session).bind(limit).bind(state);
        query.read(&self.db).await?.iter().map(|row| summary(row, now)).collect()
    }

    /// The numbers of all that can still be answered, the oldest first.
    pub async fn open_numbers(&self, project: i64) -> Result<Vec<i64>> {
        let text = "SELECT number FROM ask WHERE project_id = $1 AND state = 'open' AND expires_at_ms > $2
             ORDER BY number LIMIT $3";
        let query = sql(text).bind(project).bind(self.clock.unix_ms()).bind(OPEN_MAX);
        query.read(&self.db).await?.iter().map(|row| row.get("number")).collect()
    }

    /// The numbers of those after a number, ended ones too, the oldest first.
    pub async fn numbers_after(&self, project: i64, after: i64, limit: i64) -> Result<Vec<i64>> {
        let text = "SELECT number FROM ask WHERE project_id = $1 AND number > $2 ORDER BY number LIMIT $3";
        let query = sql(text).bind(project).bind(after).bind(limit);
        query.read(&self.db).await?.iter().map(|row| row.get("number")).collect()
    }

    /// Those that have ended, too, the newest first.
    pub async fn newest(&self, project: i64, limit: i64) -> Result<AskPage> {
        self.newest_of(project, None, limit).await
    }

    /// The same of one kind, or of all.
    pub async fn newest_of(&self, project: i64, kind: Option<AskKind>, limit: i64) -> Result<AskPage> {
        let (columns, kind) = (self.summary_columns(), kind.map(word).unwrap_or_default());
        let of_kind = "FROM ask WHERE project_id = $1 AND ($2 = '' OR kind = $2)";
        let text = format!("SELECT {columns} {of_kind} ORDER BY number DESC LIMIT $3");
        let asks = sql_of(text).bind(project).bind(kind).bind(limit).read(&self.db).await?;
        let all = sql_of(format!("SELECT count(*) AS total {of_kind}")).bind(project).bind(kind);
        self.page(&asks, &all.read(&self.db).await?, self.clock.unix_ms())
    }

    fn page(&self, asks: &[Row], all: &[Row], now: i64) -> Result<AskPage> {
        let asks: Vec<AskSummary> = asks.iter().map(|row| summary(row, now)).collect::<Result<_>>()?;
        let total: i64 = all.first().map_or(Ok(0), |row| row.get("total"))?;
        let more = total.saturating_sub(i64::try_from(asks.len()).unwrap_or(i64::MAX)).max(0);
        Ok(AskPage { asks, more })
    }

    /// Only what a list shows: what people are shown, and what they wrote, may be large.
    fn summary_columns(&self) -> String {
        let field = |column: &str, field: &str| self.db.json_field(column, field);
        format!(
            "number, kind, state, tool, session_id, answered_by, created_at_ms, expires_at_ms, {} AS persona,
             CASE WHEN length({summary}) > {SUMMARY_CHARS_MAX} THEN substr({summary}, 1, {SUMMARY_CHARS_MAX}) || ' …'
             ELSE {summary} END AS summary, {} AS said",
            field("shown", "persona"),
            field("answer", "say"),
            summary = field("shown", "summary"),
        )
    }

    /// Earlier rounds of one subject, the newest thousand, the oldest first.
    pub async fn rounds(&self, project: i64, subject: &str) -> Result<Vec<Ask>> {
        let text = concat!(
            "SELECT ",
            columns!(),
            " FROM ask WHERE project_id = $1 AND subject = $2 ORDER BY number DESC LIMIT 1000"
        );
        let rows = sql(text).bind(project).bind(subject).read(&self.db).await?;
        rows.iter().rev().map(|row| ask(row, self.clock.unix_ms())).collect()
    }

    /// Uses the answer of a review or a question for a call whose "started" is written. Says whether it was there to use.
    pub async fn take(&self, project: i64, number: i64, call_id: &str) -> Result<bool> {
        let mut tx = self.db.write().await?;
        let taken = take(&mut tx, project, number, call_id, self.clock.unix_ms()).await?;
        tx.commit().await?;
        Ok(taken)
    }

    /// Nobody waits for the answer any more. Says whether it was still open.
    pub async fn withdraw(&self, project: i64, number: i64) -> Result<bool> {
        let mut tx = self.db.write().await?;
        let text = "UPDATE ask SET state = 'withdrawn' WHERE project_id = $1 AND number = $2 AND state = 'open'";
        let done = sql(text).bind(project).bind(number).run(&mut tx).await? == 1;
        tx.commit().await?;
        Ok(done)
    }

    /// What has expired stays so, whatever the clock says later.
    pub async fn expire(&self, project: i64, number: i64) -> Result<()> {
        let mut tx = self.db.write().await?;
        let text = "UPDATE ask SET state = 'expired' WHERE project_id = $1 AND number = $2
             AND state IN ('open', 'answered') AND expires_at_ms <= $3";
        sql(text).bind(project).bind(number).bind(self.clock.unix_ms()).run(&mut tx).await?;
        tx.commit().await
    }

    /// Whether a call has started and not ended, and its host is not known to be dead.
    pub async fn is_running(&self, project: i64, call_id: &str) -> Result<bool> {
        let text = "SELECT call_id FROM open_call WHERE project_id = $1 AND call_id = $2";
        Ok(!sql(text).bind(project).bind(call_id).read(&self.db).await?.is_empty())
    }

    /// What is allowed for calls of this tool by this profile, at this moment.
    pub async fn permits_for(&self, project: i64, tool: &str, profile: &str) -> Result<Vec<Permit>> {
        let text = "SELECT * FROM permit WHERE project_id = $1 AND tool = $2 AND expires_at_ms > $3 AND profile = $4
             AND revoked_at_ms IS NULL ORDER BY number";
        let query = sql(text).bind(project).bind(tool).bind(self.clock.unix_ms()).bind(profile);
        query.read(&self.db).await?.iter().map(permit).collect()
    }

    /// The newest ones first, ended ones too.
    pub async fn permits(&self, project: i64, limit: i64) -> Result<Vec<Permit>> {
        let text = "SELECT * FROM permit WHERE project_id = $1 ORDER BY number DESC LIMIT $2";
        sql(text).bind(project).bind(limit).read(&self.db).await?.iter().map(permit).collect()
    }
}

impl AskChange {
    /// What the row says has to be true, or the row is not written.
    pub(crate) async fn apply(&self, tx: &mut Tx, project: i64, call_id: &str, now: i64) -> Result<()> {
        let (number, done) = match self {
            Self::Seen { number, account_id, digest, place } => {
                // Of an ask that is not there, the select below says so.
                let text = "INSERT INTO ask_seen (project_id, number, account_id, digest, place, seen_at_ms)
                     SELECT project_id, number, $3, $4, $5, $6 FROM ask WHERE project_id = $1 AND number = $2
                     ON CONFLICT DO NOTHING";
                let insert = sql(text).bind(project).bind(*number).bind(*account_id).bind(digest);
                insert.bind(*place).bind(now).run(tx).await?;
                return Ok(());
            }
            Self::Answer { number, answer, by, permit } => {
                // Who answered in time has answered in time, also where the call comes a moment later.
                let text = "UPDATE ask SET state = 'answered', answer = $3, answered_by = $4, answered_at_ms = $5,
                     expires_at_ms = CASE
                         WHEN expires_at_ms - $5 >= $6 THEN expires_at_ms
                         WHEN expires_at_ms - created_at_ms >= $6 THEN $5 + $6
                         ELSE $5 + (expires_at_ms - created_at_ms) END
                     WHERE project_id = $1 AND number = $2 AND state = 'open' AND expires_at_ms > $5";
                let update = sql(text).bind(project).bind(*number).bind(text_of(answer)).bind(by).bind(now);
                let update = update.bind(ANSWER_LIVES_MS_MIN);
                let done = update.run(tx).await? == 1;
                if let (true, Some(new)) = (done, permit) {
                    grant(tx, project, *number, by, new, now).await?;
                }
                (number, done)
            }
            Self::Use { number } => (number, take(tx, project, *number, call_id, now).await?),
            Self::UseBesideRule { number } => {
                take(tx, project, *number, call_id, now).await?;
                return Ok(());
            }
            Self::TakeBack { number } => {
                let text =
                    "UPDATE ask SET state = 'withdrawn' WHERE project_id = $1 AND number = $2 AND state = 'answered'";
                (number, sql(text).bind(project).bind(*number).run(tx).await? == 1)
            }
            Self::Keep { number, outcome } => {
                let text = "UPDATE ask SET outcome = $3 WHERE project_id = $1 AND number = $2 AND state = 'used'
                     AND used_by = $4";
                sql(text).bind(project).bind(*number).bind(text_of(outcome)).bind(call_id).run(tx).await?;
                return Ok(());
            }
            Self::RevokePermit { number, by } => {
                let text = "UPDATE permit SET revoked_at_ms = $3, revoked_by = $4 WHERE project_id = $1 AND number = $2
                     AND revoked_at_ms IS NULL AND expires_at_ms > $3";
                let done = sql(text).bind(project).bind(*number).bind(now).bind(by).run(tx).await? == 1;
                // The yes that it came with ends with it, if nothing has used it.
                let text =
                    "UPDATE ask SET state = 'withdrawn' WHERE project_id = $1 AND state = 'answered' AND number =
                     (SELECT ask_number FROM permit WHERE project_id = $1 AND number = $2)";
                sql(text).bind(project).bind(*number).run(tx).await?;
                return if done { Ok(()) } else { Err(Error::NoPermit { number: *number }) };
            }
        };
        if done {
            return Ok(());
        }
        let text = concat!("SELECT ", columns!(), " FROM ask WHERE project_id = $1 AND number = $2");
        let Some(row) = sql(text).bind(project).bind(*number).optional(tx).await? else {
            return Err(Error::NoAsk { number: *number });
        };
        let found = ask(&row, now)?;
        Err(Error::AskEnded { number: *number, state: found.state, end: found.end(), by: found.answered_by })
    }
}

/// One of any number of racing calls gets it.
async fn take(tx: &mut Tx, project: i64, number: i64, call_id: &str, now: i64) -> Result<bool> {
    let text = "UPDATE ask SET state = 'used', used_by = $3, used_at_ms = $4
         WHERE project_id = $1 AND number = $2 AND state = 'answered' AND expires_at_ms > $4";
    Ok(sql(text).bind(project).bind(number).bind(call_id).bind(now).run(tx).await? == 1)
}

async fn grant(tx: &mut Tx, project: i64, ask: i64, by: &str, new: &NewPermit, now: i64) -> Result<()> {
    let number = tx.next_number(project, COUNTER).await?;
    let expires = now.saturating_add(i64::try_from(new.lives_ms).unwrap_or(i64::MAX));
    sql("INSERT INTO permit (project_id, number, tool, profile, conditions, granted_by, ask_number, created_at_ms,
             expires_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)")
    .bind(project)
    .bind(number)
    .bind(&new.tool)
    .bind(&new.profile)
    .bind(text_of(&new.conditions))
    .bind(by)
    .bind(ask)
    .bind(now)
    .bind(expires)
    .run(tx)
    .await?;
    Ok(())
}

/// Ended asks beyond the newest [`KEPT`] go; what is open, or answered and not used, stays.
async fn prune(tx: &mut Tx, project: i64, newest: i64, now: i64) -> Result<()> {
    if newest <= KEPT {
        return Ok(());
    }
    let text = "DELETE FROM ask WHERE project_id = $1 AND number <= $2
         AND (state IN ('used', 'withdrawn') OR expires_at_ms <= $3)";
    sql(text).bind(project).bind(newest - KEPT).bind(now).run(tx).await?;
    Ok(())
}

/// Ended asks go until what is kept is small enough.
async fn prune_large(tx: &mut Tx, project: i64, newest: i64, now: i64) -> Result<()> {
    let ended = "project_id = $1 AND (state IN ('used', 'withdrawn', 'expired') OR expires_at_ms <= $2)";
    let sum = "SELECT CAST(COALESCE(sum(octet_length(call) + octet_length(shown) + COALESCE(octet_length(answer), 0)
         + COALESCE(octet_length(outcome), 0)), 0) AS BIGINT) AS bytes FROM ask WHERE project_id = $1";
    loop {
        let bytes: i64 = sql(sum).bind(project).one(tx).await?.get("bytes")?;
        if bytes <= KEPT_BYTES_MAX {
            return Ok(());
        }
        let oldest = format!("SELECT number FROM ask WHERE {ended} AND number < $3 ORDER BY number LIMIT {PRUNE_STEP}");
        let gone = sql_of(format!("DELETE FROM ask WHERE project_id = $1 AND number IN ({oldest})"));
        if gone.bind(project).bind(now).bind(newest).run(tx).await? == 0 {
            return Ok(());
        }
    }
}

/// What waits for people in the project of a new ask, in one look.
struct Waiting {
    /// The very same ask.
    same: Option<i64>,
    open: i64,
    /// Of its session.
    open_of_session: i64,
    bytes_of_session: i64,
}

impl Waiting {
    async fn of(tx: &mut Tx, new: &NewAsk, now: i64) -> Result<Self> {
        let text = "SELECT max(CASE WHEN digest = $3 AND effect_digest = $4 THEN number END) AS same,
                 COALESCE(sum(CASE WHEN state = 'open' THEN 1 ELSE 0 END), 0) AS open,
                 COALESCE(sum(CASE WHEN state = 'open' AND account_id = $5 AND COALESCE(session_id, '') = $6
                     THEN 1 ELSE 0 END), 0) AS open_of_session,
                 CAST(COALESCE(sum(CASE WHEN account_id = $5 AND COALESCE(session_id, '') = $6
                     THEN octet_length(call) + octet_length(shown) ELSE 0 END), 0) AS BIGINT) AS bytes_of_session
             FROM ask WHERE project_id = $1 AND state IN ('open', 'answered') AND expires_at_ms > $2";
        let query = sql(text).bind(new.project_id).bind(now).bind(&new.digest).bind(&new.effect_digest);
        let query = query.bind(new.user_id).bind(new.session_id.clone().unwrap_or_default());
        let found = query.one(tx).await?;
        Ok(Self {
            same: found.get("same")?,
            open: found.get("open")?,
            open_of_session: found.get("open_of_session")?,
            bytes_of_session: found.get("bytes_of_session")?,
        })
    }

    /// One project does not ask without end, and one session does not bury what others ask.
    fn check(&self, limits: AskLimits, bytes: usize) -> Result<()> {
        if self.open >= OPEN_MAX {
            return Err(Error::TooManyAsks { max: OPEN_MAX });
        }
        if self.open_of_session >= limits.open {
            return Err(Error::TooManyAsksOfSession { max: limits.open });
        }
        let bytes = self.bytes_of_session.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
        if bytes > limits.bytes {
            return Err(Error::TooLargeAsks { bytes, max: limits.bytes });
        }
        Ok(())
    }
}

async fn must_get(tx: &mut Tx, project: i64, number: i64, now: i64) -> Result<Ask> {
    let text = concat!("SELECT ", columns!(), " FROM ask WHERE project_id = $1 AND number = $2");
    ask(&sql(text).bind(project).bind(number).one(tx).await?, now)
}

fn ask(row: &Row, now: i64) -> Result<Ask> {
    let expires_at_ms: i64 = row.get("expires_at_ms")?;
    let mut call: Value = json(row, "call")?.unwrap_or_default();
    let host = call.as_object_mut().and_then(|call| call.remove(HOST)).and_then(|host| Some(host.as_str()?.to_owned()));
    Ok(Ask {
        number: row.get("number")?,
        kind: parsed(&row.get::<String>("kind")?)?,
        state: state(row, expires_at_ms, now)?,
        digest: row.get("digest")?,
        effect_digest: row.get("effect_digest")?,
        subject: row.get("subject")?,
        round: row.get("round")?,
        user_id: row.get("account_id")?,
        session_id: row.get("session_id")?,
        tool: row.get("tool")?,
        call,
        host,
        shown: json(row, "shown")?.unwrap_or_default(),
        answer: json(row, "answer")?,
        answered_by: row.get("answered_by")?,
        answered_at_ms: row.get("answered_at_ms")?,
        used_by: row.get("used_by")?,
        outcome: json(row, "outcome")?,
        created_at_ms: row.get("created_at_ms")?,
        expires_at_ms,
    })
}

fn summary(row: &Row, now: i64) -> Result<AskSummary> {
    let expires_at_ms: i64 = row.get("expires_at_ms")?;
    let text = |column: &str| row.get::<Option<String>>(column).map(Option::unwrap_or_default);
    Ok(AskSummary {
        number: row.get("number")?,
        kind: parsed(&row.get::<String>("kind")?)?,
        state: state(row, expires_at_ms, now)?,
        tool: row.get("tool")?,
        session_id: row.get("session_id")?,
        persona: text("persona")?,
        summary: text("summary")?,
        said: row.get("said")?,
        answered_by: row.get("answered_by")?,
        created_at_ms: row.get("created_at_ms")?,
        expires_at_ms,
    })
}

fn state(row: &Row, expires_at_ms: i64, now: i64) -> Result<AskState> {
    let stored: AskState = parsed(&row.get::<String>("state")?)?;
    let waits = matches!(stored, AskState::Open | AskState::Answered);
    Ok(if waits && expires_at_ms <= now { AskState::Expired } else { stored })
}

fn permit(row: &Row) -> Result<Permit> {
    Ok(Permit {
        number: row.get("number")?,
        tool: row.get("tool")?,
        profile: row.get("profile")?,
        conditions: json(row, "conditions")?.unwrap_or_default(),
        granted_by: row.get("granted_by")?,
        ask_number: row.get("ask_number")?,
        created_at_ms: row.get("created_at_ms")?,
        expires_at_ms: row.get("expires_at_ms")?,
        revoked_at_ms: row.get("revoked_at_ms")?,
        revoked_by: row.get("revoked_by")?,
    })
}

fn json(row: &Row, column: &str) -> Result<Option<Value>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| Error::Row(error.to_string()))).transpose()
}

/// A call, and beside its fields which host it waits in.
fn from_host(call: &Value, host: &str) -> Value {
    let mut call = call.clone();
    if let Value::Object(fields) = &mut call {
        fields.insert(HOST.to_owned(), host.into());
    }
    call
}

/// No column of PostgreSQL's holds a zero character; JSON writes it as an escape.
fn text_of(value: &Value) -> String {
    value.to_string()
}

/// The word that stands for a kind, in rows and in JSON.
fn word(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Approval => "approval",
        AskKind::Review => "review",
        AskKind::Question => "question",
    }
}

fn parsed<T: for<'de> Deserialize<'de>>(word: &str) -> Result<T> {
    let json = Value::String(word.to_owned());
    serde_json::from_value(json).map_err(|_| Error::Row(format!("`{word}` is not known")))
}
