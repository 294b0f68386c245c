//! The numbered stream of a project: the rows of its audit and what happens to its sessions, in the order of their commits.
//!
//! The hard problem is one numbering without a second copy of the audit. An event of a session is written while its writer holds the
//! end of the audit's chain, and knows how many rows that has. So the number of an event is how many rows of the audit and how many
//! events of sessions there are up to it, a [`Position`] is these two counts, and what is read from both tables is merged by them.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::audit::lock_head;
use crate::db::{self, Db, Tx, sql};
use crate::error::{Error, Result};
use crate::reader::{Filter, Reader, Row};

/// What is told of a step beside its name, where its content has it. None of them holds what a person, a model or a file says, but for the
/// name of a tool, which a model may make up.
const FACTS: [&str; 5] = ["callId", "tool", "ok", "code", "ms"];
/// Longest text among them, characters.
const FACT_CHARS_MAX: usize = 200;

/// How far somebody has come in the stream of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    rows: i64,
    events: i64,
}

impl Position {
    /// The number of the last event up to here, 0 if there is none.
    #[must_use]
    pub fn number(self) -> i64 {
        self.rows + self.events
    }
}

/// An event, and where the stream stands with it.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    pub position: Position,
    pub happened: Happened,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// A row of the audit was written.
    Audit(Row),
    /// Something happened to a session of an agent.
    Session(SessionEvent),
}

/// What has happened to a session of an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEvent {
    pub at_ms: i64,
    pub session_id: String,
    #[serde(flatten)]
    pub what: SessionChange,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SessionChange {
    State {
        state: String,
        /// The stable code of what ended it.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    Step {
        /// Its number in the session, by which its content is found.
        seq: i64,
        step: String,
        #[serde(flatten)]
        facts: Map<String, Value>,
    },
}

impl SessionChange {
    pub(crate) fn state(state: &str, code: Option<&str>) -> Self {
        Self::State { state: state.to_owned(), code: code.map(str::to_owned) }
    }

    pub(crate) fn step(seq: i64, step: &str, body: &Value) -> Self {
        let told = |value: &Value| match value {
            Value::String(text) => Some(text.chars().take(FACT_CHARS_MAX).collect::<String>().into()),
            Value::Bool(_) | Value::Number(_) => Some(value.clone()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let facts = FACTS.iter().filter_map(|name| Some(((*name).to_owned(), told(body.get(*name)?)?)));
        Self::Step { seq, step: step.to_owned(), facts: facts.collect() }
    }
}

/// Adds events of sessions to the stream. Whoever writes to the project's audit waits from here until the transaction ends, and locks asks
/// after the chain: a transaction that changes asks, too, comes here first.
pub(crate) async fn add(tx: &mut Tx, project: i64, events: &[(&str, SessionChange)], at_ms: i64) -> Result<()> {
    let head = lock_head(tx, project).await?;
    let text =
        "SELECT number - audit_seq AS events FROM session_event WHERE project_id = $1 ORDER BY number DESC LIMIT 1";
    let last: Option<db::Row> = sql(text).bind(project).optional(tx).await?;
    let mut number: i64 = head + last.map_or(Ok(0), |row| row.get("events"))?;
    for (session, what) in events {
        number += 1;
        let (event, name, step, facts) = match what {
            SessionChange::State { state, code } => {
                let code = code.iter().map(|code| ("code".to_owned(), Value::from(code.as_str())));
                ("state", state, None, Value::Object(code.collect()))
            }
            SessionChange::Step { seq, step, facts } => ("step", step, Some(*seq), Value::Object(facts.clone())),
        };
        sql("INSERT INTO session_event (project_id, number, audit_seq, at_ms, session_id, event, name, step, facts)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)")
        .bind(project)
        .bind(number)
        .bind(head)
        .bind(at_ms)
        .bind(*session)
        .bind(event)
        .bind(name)
        .bind(step)
        .bind(facts.to_string())
        .run(tx)
        .await?;
    }
    Ok(())
}

impl Reader {
    /// Where the stream of a project ends now.
    pub async fn stream_end(&self, project: i64) -> Result<Position> {
        let text = "SELECT COALESCE((SELECT seq FROM audit_head WHERE project_id = $1), 0) AS audit_rows,
                 COALESCE((SELECT number - audit_seq FROM session_event WHERE project_id = $1 ORDER BY number DESC LIMIT 1), 0)
                 AS events";
        let rows = sql(text).bind(project).read(self.db()).await?;
        let row = rows.first().ok_or(Error::Sql(sqlx::Error::RowNotFound))?;
        Ok(Position { rows: row.get("audit_rows")?, events: row.get("events")? })
    }

    /// Where the stream stands with the event of this number.
    pub async fn position(&self, project: i64, number: i64) -> Result<Position> {
        let number = number.max(0);
        let text = "SELECT number - audit_seq AS events FROM session_event WHERE project_id = $1 AND number <= $2
             ORDER BY number DESC LIMIT 1";
        let rows = sql(text).bind(project).bind(number).read(self.db()).await?;
        let events = rows.first().map_or(Ok(0), |row| row.get("events"))?;
        Ok(Position { rows: number - events, events })
    }

    /// At most `limit` events after a position, in their order.
    pub async fn stream(&self, project: i64, after: Position, limit: i64) -> Result<Vec<StreamEvent>> {
        // The audit first: no event that comes before one of these rows is committed after it.
        let filter = Filter { after_seq: after.rows, limit, ..Filter::default() };
        let mut rows = self.audit(project, &filter).await?.into_iter().peekable();
        let mut events = session_events(self.db(), project, after.number(), limit).await?.into_iter().peekable();
        let (mut at, mut merged) = (after, Vec::new());
        while i64::try_from(merged.len()).unwrap_or(i64::MAX) < limit {
            // One that follows a row that was not read comes with that row.
            let happened = if let Some((_, event)) = events.next_if(|(audit_seq, _)| *audit_seq <= at.rows) {
                at.events += 1;
                Happened::Session(event)
            } else if let Some(row) = rows.next() {
                at.rows = row.seq;
                Happened::Audit(row)
            } else {
                break;
            };
            merged.push(StreamEvent { position: at, happened });
        }
        Ok(merged)
    }
}

/// Events of sessions after a number, each with the last row of the audit before it.
async fn session_events(db: &Db, project: i64, after: i64, limit: i64) -> Result<Vec<(i64, SessionEvent)>> {
    let text = "SELECT audit_seq, at_ms, session_id, event, name, step, facts FROM session_event
         WHERE project_id = $1 AND number > $2 ORDER BY number LIMIT $3";
    let rows = sql(text).bind(project).bind(after).bind(limit).read(db).await?;
    rows.iter().map(|row| Ok((row.get("audit_seq")?, session_event(row)?))).collect()
}

fn session_event(row: &db::Row) -> Result<SessionEvent> {
    let (event, facts): (String, String) = (row.get("event")?, row.get("facts")?);
    let mut facts: Map<String, Value> = serde_json::from_str(&facts).map_err(|error| Error::Row(error.to_string()))?;
    let what = match row.get::<Option<i64>>("step")? {
        Some(seq) if event == "step" => SessionChange::Step { seq, step: row.get("name")?, facts },
        _ => {
            let code = facts.remove("code").and_then(|code| code.as_str().map(str::to_owned));
            SessionChange::State { state: row.get("name")?, code }
        }
    };
    Ok(SessionEvent { at_ms: row.get("at_ms")?, session_id: row.get("session_id")?, what })
}
