//! Reading the audit: pages of rows, and whether the chain holds.

use std::collections::BTreeMap;

use serde_json::Value;
use toolhost_contract::CallId;

use crate::chain;
use crate::db::{self, Db, Tx, sql, sql_of};
use crate::error::Result;

/// Read-only access to the database.
#[derive(Clone)]
pub struct Reader {
    db: Db,
}

/// One row of the audit, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub seq: i64,
    pub at_ms: i64,
    pub call_id: String,
    pub event: String,
    pub tool: String,
    /// The canonical JSON that the chain covers.
    pub body: String,
    pub prev_hash: String,
    pub hash: String,
}

/// A call that a crash left unknown, though the log of file changes knows what it was about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    pub call_id: CallId,
    pub tool: String,
}

/// Which rows to show.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub after_seq: i64,
    /// Only rows before this one.
    pub before_seq: Option<i64>,
    pub tool: Option<String>,
    pub session: Option<String>,
    pub call: Option<String>,
    /// Only what this user, or an agent in their name, has done.
    pub user: Option<i64>,
    pub failed_only: bool,
    /// Only what may have changed something, and what people have decided.
    pub changes_only: bool,
    /// Only calls that changed files, by the log of files, and commands, of which nobody knows what they changed.
    pub files_only: bool,
    pub since_ms: Option<i64>,
    pub limit: i64,
    /// The last rows that fit instead of the first.
    pub last: bool,
}

/// What verification found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub rows: u64,
    /// The last row, and its hash.
    pub seq: i64,
    pub hash: String,
    pub problems: Vec<Problem>,
}

/// A row that is not as it was written, or is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub seq: i64,
    pub what: String,
}

/// Most calls that the end of an id names.
const CALLS_MAX: i64 = 20;

/// Problems listed at most; the first is what matters.
const PROBLEMS_MAX: usize = 100;

/// Calls decided at one start; the others at the next.
const UNDECIDED_MAX: i64 = 100;

/// Calls without a row listed at most, of each kind.
const UNRECORDED_MAX: i64 = 20;

/// As many steps of sessions, and how many are read at once: each has the answer of a call.
const UNRECORDED_STEPS_MAX: usize = 20;
const STEPS_PAGE_ROWS: i64 = 100;

/// Rows of the chain read at once.
const VERIFY_PAGE_ROWS: i64 = 5000;

/// A project of a database, and when something was called there last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownProject {
    pub id: i64,
    /// The folder of the workspace, or the name of a project that has one of its own.
    pub root: String,
    pub name: String,
    pub last_ms: Option<i64>,
}

impl Reader {
    pub(crate) fn new(db: Db) -> Self {
        Self { db }
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// Every project of the database, the oldest first.
    pub async fn projects(&self) -> Result<Vec<KnownProject>> {
        let text = "SELECT id, root, name, (SELECT at_ms FROM audit WHERE project_id = project.id ORDER BY seq DESC LIMIT 1) AS last_ms
             FROM project ORDER BY id";
        let rows = sql(text).read(&self.db).await?;
        let project = |row: &db::Row| {
            let (root, name) = (row.get("root")?, row.get("name")?);
            Ok(KnownProject { id: row.get("id")?, root, name, last_ms: row.get("last_ms")? })
        };
        rows.iter().map(project).collect()
    }

    /// Calls that a crash left unknown and that have logged changes of files, the newest first. After [`Audit::decide`]
    /// they are no longer among them.
    ///
    /// [`Audit::decide`]: crate::Audit::decide
    pub async fn undecided(&self, project: i64) -> Result<Vec<Undecided>> {
        let text = "SELECT call_id, tool FROM audit unknown WHERE project_id = $1 AND event = 'unknown'
             AND EXISTS (SELECT 1 FROM file_change change
                 WHERE change.project_id = unknown.project_id AND change.call_id = unknown.call_id)
             AND NOT EXISTS (SELECT 1 FROM audit ended WHERE ended.project_id = unknown.project_id
                 AND ended.call_id = unknown.call_id AND ended.event = 'finished')
             ORDER BY seq DESC LIMIT $2";
        let rows = sql(text).bind(project).bind(UNDECIDED_MAX).read(&self.db).await?;
        let undecided = |row: &db::Row| {
            Ok(Undecided { call_id: CallId::new(row.get::<String>("call_id")?), tool: row.get("tool")? })
        };
        rows.iter().map(undecided).collect()
    }

    /// At most `limit` of the rows that fit, in the order they were written.
    pub async fn audit(&self, project: i64, filter: &Filter) -> Result<Vec<Row>> {
        // A call and a session have few rows, which their indexes find: the `+` keeps the database from walking all rows in their order.
        let seq = if filter.session.is_some() || filter.call.is_some() { "+seq" } else { "seq" };
        let mut text = format!(
            "SELECT seq, at_ms, call_id, event, tool, body, prev_hash, hash FROM audit
             WHERE project_id = $1 AND {seq} > $2 AND at_ms >= $3 AND {seq} < $4"
        );
        let mut arguments = Vec::new();
        for (column, wanted) in [("tool", &filter.tool), ("session_id", &filter.session), ("call_id", &filter.call)] {
            if let Some(wanted) = wanted {
                text.push_str(&format!(" AND {column} = ${}", 5 + arguments.len()));
                arguments.push(wanted);
            }
        }
        if filter.failed_only {
            text.push_str(" AND (ok = FALSE OR event = 'unknown')");
        }
        if filter.changes_only {
            let effect = self.db.json_field("body", "effect");
            text.push_str(&format!(" AND (event = 'decision' OR COALESCE({effect}, '') <> 'reads')"));
        }
        if filter.files_only {
            let effect = self.db.json_field("body", "effect");
            text.push_str(&format!(
                " AND (call_id IN (SELECT call_id FROM file_change WHERE project_id = $1) OR COALESCE({effect}, '') = 'executes')"
            ));
        }
        let user = filter.user.map(|user| user.to_string());
        if let Some(user) = &user {
            let field = self.db.json_field("body", "userId");
            text.push_str(&format!(" AND CAST({field} AS TEXT) = ${}", 5 + arguments.len()));
            arguments.push(user);
        }
        let order = if filter.last { "DESC" } else { "ASC" };
        text.push_str(&format!(" ORDER BY {seq} {order} LIMIT ${}", 5 + arguments.len()));
        let since = filter.since_ms.unwrap_or(i64::MIN);
        let before = filter.before_seq.unwrap_or(i64::MAX);
        let mut query = sql_of(text).bind(project).bind(filter.after_seq).bind(since).bind(before);
        for argument in arguments {
            query = query.bind(argument);
        }
        let rows = query.bind(filter.limit).read(&self.db).await?;
        let mut rows: Vec<Row> = rows.iter().map(row).collect::<Result<_>>()?;
        rows.sort_unstable_by_key(|row| row.seq);
        Ok(rows)
    }

    /// The rows of these calls, in the order they were written; at most `limit`.
    pub async fn audit_of_calls(&self, project: i64, calls: &[String], limit: i64) -> Result<Vec<Row>> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let places: Vec<String> = (0..calls.len()).map(|place| format!("${}", place + 3)).collect();
        // The `+` keeps the database from walking all rows in their order, where the index of the calls finds these few.
        let text = format!(
            "SELECT seq, at_ms, call_id, event, tool, body, prev_hash, hash FROM audit
             WHERE project_id = $1 AND call_id IN ({}) ORDER BY +seq LIMIT $2",
            places.join(", ")
        );
        let mut query = sql_of(text).bind(project).bind(limit);
        for call in calls {
            query = query.bind(call);
        }
        query.read(&self.db).await?.iter().map(row).collect()
    }

    /// The ids of calls that are `end` or end in it, at most `CALLS_MAX`.
    pub async fn calls_that_end_in(&self, project: i64, end: &str) -> Result<Vec<String>> {
        let is_whole = sql("SELECT call_id FROM audit WHERE project_id = $1 AND call_id = $2 LIMIT 1");
        if let Some(row) = is_whole.bind(project).bind(end).read(&self.db).await?.first() {
            return Ok(vec![row.get("call_id")?]);
        }
        let pattern = end.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        let rows =
            sql("SELECT DISTINCT call_id FROM audit WHERE project_id = $1 AND call_id LIKE $2 ESCAPE '\\' LIMIT $3");
        let rows = rows.bind(project).bind(format!("%{pattern}")).bind(CALLS_MAX).read(&self.db).await?;
        rows.iter().map(|row| row.get("call_id")).collect()
    }

    /// The number of the last row, 0 if there is none.
    pub async fn audit_end(&self, project: i64) -> Result<i64> {
        let head = sql("SELECT seq FROM audit_head WHERE project_id = $1").bind(project).read(&self.db).await?;
        head.first().map_or(Ok(0), |row| row.get("seq"))
    }

    /// Follows the chain from its first row to its recorded end.
    pub async fn verify_audit(&self, project: i64) -> Result<Verdict> {
        // One snapshot: rows that come meanwhile are not beyond an end that was read before.
        let mut snapshot = self.db.snapshot().await?;
        let head = sql("SELECT seq, hash FROM audit_head WHERE project_id = $1").bind(project);
        let head = match head.optional(&mut snapshot).await? {
            Some(row) => Some((row.get("seq")?, row.get("hash")?)),
            None => None,
        };
        let mut chain = Chain::default();
        let mut after = i64::MIN;
        loop {
            let columns = "SELECT seq, at_ms, call_id, event, tool, body, prev_hash, hash, session_id, CAST(ok AS TEXT) AS ok FROM audit
                 WHERE project_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
            let page = sql(columns).bind(project).bind(after).bind(VERIFY_PAGE_ROWS).all(&mut snapshot).await?;
            let Some(last) = page.last() else { break };
            after = last.get("seq")?;
            for raw in &page {
                // SQLite keeps any value in any column, and 2 would be read as true.
                let (row, session, ok) = match (row(raw), raw.get("session_id"), raw.get::<Option<String>>("ok")) {
                    (Ok(row), Ok(session), Ok(ok)) => (row, session, ok),
                    _ => {
                        chain.pass(raw.get("seq")?, raw.get("hash").ok());
                        continue;
                    }
                };
                let ok = match ok.as_deref() {
                    None => Some(None),
                    Some("1" | "true") => Some(Some(true)),
                    Some("0" | "false") => Some(Some(false)),
                    Some(_) => None,
                };
                chain.follow(&row, session, ok);
            }
        }
        chain.end(head);
        let mut told = unrecorded(&mut snapshot, project, chain.at_ms).await?;
        told.extend(unrecorded_steps(&mut snapshot, project, chain.at_ms).await?);
        for told in told {
            chain.problem(chain.seq + 1, &told);
        }
        Ok(Verdict { rows: chain.rows, seq: chain.seq, hash: chain.hash, problems: chain.problems })
    }

    /// Whether rows that were there once are there still, the very same: those of an earlier export, or the last row that
    /// a checkpoint names.
    pub async fn compare_audit(&self, project: i64, former: &BTreeMap<i64, String>) -> Result<Vec<Problem>> {
        let mut problems = Vec::new();
        let mut wanted = former.iter().peekable();
        while let Some((first, _)) = wanted.peek() {
            let filter = Filter { after_seq: **first - 1, limit: VERIFY_PAGE_ROWS, ..Filter::default() };
            let page = self.audit(project, &filter).await?;
            let last = page.last().map_or(i64::MAX, |row| row.seq);
            let here: BTreeMap<i64, String> = page.into_iter().map(|row| (row.seq, row.hash)).collect();
            while let Some((seq, hash)) = wanted.next_if(|(seq, _)| **seq <= last) {
                let what = match here.get(seq) {
                    Some(now) if now == hash => continue,
                    Some(_) => "is another row than it was then",
                    None => "is missing, and was there then",
                };
                if problems.len() < PROBLEMS_MAX {
                    problems.push(Problem { seq: *seq, what: what.to_owned() });
                }
            }
        }
        Ok(problems)
    }
}

/// Calls that other tables know of and the audit does not, although they are later than its last row: the end of the chain
/// was cut off, together with what says where it ends.
///
/// Only what is later: history that came with an import names calls of where it came from.
async fn unrecorded(tx: &mut Tx, project: i64, last_ms: i64) -> Result<Vec<String>> {
    let sources = [
        ("changed records", "SELECT call_id, at_ms FROM history WHERE project_id = $1 AND at_ms > $2"),
        ("changed files", "SELECT call_id, at_ms FROM file_change WHERE project_id = $1 AND at_ms > $2"),
        (
            "used the answer of a person",
            "SELECT used_by AS call_id, used_at_ms AS at_ms FROM ask
                 WHERE project_id = $1 AND used_by IS NOT NULL AND used_at_ms > $2",
        ),
        ("is under way", "SELECT call_id, $2 AS at_ms FROM open_call WHERE project_id = $1"),
    ];
    let mut told = Vec::new();
    for (what, rows) in sources {
        let text = format!(
            "SELECT DISTINCT found.call_id AS call_id FROM ({rows}) found WHERE NOT EXISTS (SELECT 1 FROM audit a
                 WHERE a.project_id = $1 AND a.call_id = found.call_id) ORDER BY 1 LIMIT {UNRECORDED_MAX}"
        );
        for row in sql_of(text).bind(project).bind(last_ms).all(tx).await? {
            let call: String = row.get("call_id")?;
            told.push(format!("is missing: the call {call} {what} after the last row, and no row tells of it"));
        }
    }
    Ok(told)
}

/// As [`unrecorded`], of the steps of sessions that say of a call that it ran. Which call is in their content, which no
/// index knows.
async fn unrecorded_steps(tx: &mut Tx, project: i64, last_ms: i64) -> Result<Vec<String>> {
    let mut told = Vec::new();
    let (mut session, mut seq) = (String::new(), -1);
    loop {
        let text = "SELECT session_id, seq, step, body FROM agent_step
             WHERE project_id = $1 AND at_ms > $2 AND step LIKE 'call%' AND body LIKE '%\"ran\":true%'
                 AND (session_id > $3 OR (session_id = $3 AND seq > $4))
             ORDER BY session_id, seq LIMIT $5";
        let query = sql(text).bind(project).bind(last_ms).bind(&session).bind(seq);
        let page = query.bind(STEPS_PAGE_ROWS).all(tx).await?;
        let Some(last) = page.last() else { return Ok(told) };
        (session, seq) = (last.get("session_id")?, last.get("seq")?);
        for row in &page {
            let body: String = row.get("body")?;
            let body: Value = serde_json::from_str(&body).unwrap_or_default();
            let Some(call) = body.get("callId").and_then(Value::as_str).filter(|_| body["ran"] == true) else {
                continue;
            };
            let known = sql("SELECT seq FROM audit WHERE project_id = $1 AND call_id = $2 LIMIT 1");
            if known.bind(project).bind(call).optional(tx).await?.is_some() {
                continue;
            }
            let (session, step): (String, String) = (row.get("session_id")?, row.get("step")?);
            told.push(format!(
                "is missing: the call {call} ran after the last row, as the step {step} of the session {session} says, and \
                 no row tells of it"
            ));
            if told.len() >= UNRECORDED_STEPS_MAX {
                return Ok(told);
            }
        }
    }
}

fn row(raw: &db::Row) -> Result<Row> {
    Ok(Row {
        seq: raw.get("seq")?,
        at_ms: raw.get("at_ms")?,
        call_id: raw.get("call_id")?,
        event: raw.get("event")?,
        tool: raw.get("tool")?,
        body: raw.get("body")?,
        prev_hash: raw.get("prev_hash")?,
        hash: raw.get("hash")?,
    })
}

/// The walk along the chain.
struct Chain {
    rows: u64,
    seq: i64,
    /// The latest time of any row: hosts may differ in what time it is.
    at_ms: i64,
    hash: String,
    problems: Vec<Problem>,
}

impl Default for Chain {
    fn default() -> Self {
        Self { rows: 0, seq: 0, at_ms: i64::MIN, hash: chain::GENESIS.to_owned(), problems: Vec::new() }
    }
}

impl Chain {
    /// Goes on behind a row that cannot be read: a column has a value of another type.
    fn pass(&mut self, seq: i64, hash: Option<String>) {
        self.rows += 1;
        self.problem(seq, "has been changed: a column has a value of another type");
        self.seq = seq;
        self.hash = hash.unwrap_or_default();
    }

    fn follow(&mut self, row: &Row, session: Option<String>, ok: Option<Option<bool>>) {
        self.rows += 1;
        for missing in self.seq + 1..row.seq.min(self.seq + 1 + PROBLEMS_MAX as i64) {
            self.problem(missing, "is missing");
        }
        if row.prev_hash != self.hash && row.seq == self.seq + 1 {
            self.problem(row.seq, "does not follow the row before it");
        }
        if chain::link(&row.prev_hash, &row.body) != row.hash {
            self.problem(row.seq, "has been changed: its hash does not fit its content");
        } else if !ok.is_some_and(|ok| columns_agree(row, session, ok)) {
            self.problem(row.seq, "has been changed: its columns do not fit its content");
        }
        self.seq = row.seq;
        self.at_ms = self.at_ms.max(row.at_ms);
        self.hash.clone_from(&row.hash);
    }

    fn end(&mut self, head: Option<(i64, String)>) {
        let (seq, hash) = head.unwrap_or_else(|| (0, chain::GENESIS.to_owned()));
        for missing in self.seq + 1..(seq + 1).min(self.seq + 1 + PROBLEMS_MAX as i64) {
            self.problem(missing, "is missing");
        }
        if seq < self.seq {
            self.problem(self.seq, "is beyond the recorded end of the chain");
        }
        if seq == self.seq && hash != self.hash {
            self.problem(seq, "is not the recorded end of the chain");
        }
    }

    fn problem(&mut self, seq: i64, what: &str) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { seq, what: what.to_owned() });
        }
    }
}

fn columns_agree(row: &Row, session: Option<String>, ok: Option<bool>) -> bool {
    let Ok(body) = serde_json::from_str::<Value>(&row.body) else { return false };
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    body.get("seq").and_then(Value::as_i64) == Some(row.seq)
        && body.get("atMs").and_then(Value::as_i64) == Some(row.at_ms)
        && text("callId") == Some(&row.call_id)
        && text("event") == Some(&row.event)
        && text("tool") == Some(&row.tool)
        && text("sessionId").map(str::to_owned) == session
        && body.pointer("/outcome/ok").and_then(Value::as_bool) == ok
}
