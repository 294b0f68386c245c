//! What people say to a session: it waits until the process that runs the session has written it down as a step.
//!
//! The hard problem is that a message must be heard once and not get lost. It is taken away in the commit that writes its step, and a
//! run that ends looks for messages while it holds the project's lock; the next run hears what is said after that.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Row, SessionState, Sessions, find};
use crate::db::{Tx, sql};
use crate::error::{Error, Result};

/// Messages that may wait to be heard by one session.
const MESSAGES_MAX: i64 = 50;

/// A message that no run of its session has heard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    #[serde(skip)]
    pub(super) number: i64,
    pub at_ms: i64,
    pub text: String,
}

impl Sessions {
    /// Keeps a message until a run of the session hears it, whether the session runs now or not.
    ///
    /// # Errors
    /// The session does not exist or was cancelled, too many messages wait, or the database cannot be written.
    pub async fn leave(&self, project: i64, id: &str, text: &str) -> Result<()> {
        let mut tx = self.inner.db.write_lightly().await?;
        tx.lock_project(project).await?;
        let query = "SELECT 1 AS ends FROM agent_session
             WHERE project_id = $1 AND id = $2 AND (state = 'cancelled' OR COALESCE(wanted, '') = 'cancel')";
        if sql(query).bind(project).bind(id).optional(&mut tx).await?.is_some() {
            return Err(Error::SessionEnded { id: id.to_owned(), state: SessionState::Cancelled });
        }
        find(&mut tx, project, id).await?;
        let query = "SELECT COUNT(*) AS count, COALESCE(MAX(number), 0) AS last FROM session_message
             WHERE project_id = $1 AND session_id = $2";
        let waiting = sql(query).bind(project).bind(id).one(&mut tx).await?;
        if waiting.get::<i64>("count")? >= MESSAGES_MAX {
            return Err(Error::TooManyMessages { id: id.to_owned(), max: MESSAGES_MAX });
        }
        let last: i64 = waiting.get("last")?;
        sql("INSERT INTO session_message (project_id, session_id, number, at_ms, text) VALUES ($1, $2, $3, $4, $5)")
            .bind(project)
            .bind(id)
            .bind(last + 1)
            .bind(self.inner.clock.unix_ms())
            .bind(text.replace('\0', "\u{fffd}"))
            .run(&mut tx)
            .await?;
        tx.commit().await
    }

    /// The messages that wait to be heard by a session, the oldest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn unheard(&self, project: i64, id: &str) -> Result<Vec<Message>> {
        let text =
            "SELECT number, at_ms, text FROM session_message WHERE project_id = $1 AND session_id = $2 ORDER BY number";
        sql(text).bind(project).bind(id).read(&self.inner.db).await?.iter().map(message).collect()
    }
}

/// The step that a message becomes when it is heard. `since`: what is told before it.
pub(super) fn as_step(text: &str, since: Option<&str>) -> Value {
    let mut step = json!({ "text": text });
    if let Some(since) = since {
        step["since"] = since.into();
    }
    step
}

pub(super) async fn oldest(tx: &mut Tx, project: i64, id: &str) -> Result<Option<Message>> {
    let text = "SELECT number, at_ms, text FROM session_message WHERE project_id = $1 AND session_id = $2
         ORDER BY number LIMIT 1";
    sql(text).bind(project).bind(id).optional(tx).await?.as_ref().map(message).transpose()
}

pub(super) async fn remove(tx: &mut Tx, project: i64, id: &str, number: i64) -> Result<()> {
    let text = "DELETE FROM session_message WHERE project_id = $1 AND session_id = $2 AND number = $3";
    sql(text).bind(project).bind(id).bind(number).run(tx).await?;
    Ok(())
}

fn message(row: &Row) -> Result<Message> {
    Ok(Message { number: row.get("number")?, at_ms: row.get("at_ms")?, text: row.get("text")? })
}
