//! Another session that begins with what one has come to.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};
use toolhost_agent::session::{TurnStep, standing_after, step};
use toolhost_agent::start;
use toolhost_store::{Role, SessionRow, StepRow};

use crate::connection::Connection;
use crate::error::{Error, Result};

/// Steps read at once.
const PAGE: i64 = 200;

/// A session that was forked off another one.
#[derive(Debug, Clone)]
pub struct Fork {
    pub session: SessionRow,
    /// Turns that it has of the other.
    pub turns: u32,
    /// The turn that was left out because it had not ended.
    pub unended: Option<u32>,
}

impl Connection {
    /// All steps of a session, the first first.
    ///
    /// # Errors
    /// If there is no such session, or the user may not read it.
    pub async fn steps(&self, id: &str) -> Result<Vec<StepRow>> {
        self.need_role(Role::Viewer).await?;
        let (sessions, project) = (self.store().sessions(), self.project().id);
        let (mut steps, mut after) = (Vec::new(), -1);
        loop {
            let page = sessions.steps(project, id, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(steps) };
            after = last.seq;
            steps.extend(page);
        }
    }

    /// Begins a session of this user with all that one has come to, or with its first turns.
    ///
    /// # Errors
    /// [`Error::TooFewTurns`], if there is no such session, or the user is no editor.
    pub async fn fork(&self, id: &str, turns: Option<u32>) -> Result<Fork> {
        self.need_role(Role::Editor).await?;
        let steps = self.steps(id).await?;
        let all = u32::try_from(steps.iter().filter(|row| row.step.starts_with("turn_")).count()).unwrap_or(u32::MAX);
        if let Some(asked) = turns.filter(|asked| *asked > all) {
            return Err(Error::TooFewTurns { id: id.to_owned(), turns: all, asked });
        }
        let bodies: HashMap<&str, &Value> = steps.iter().map(|row| (row.step.as_str(), &row.body)).collect();
        let whole = (0..all).take_while(|turn| is_whole(&bodies, *turn)).count();
        let whole = u32::try_from(whole).unwrap_or(u32::MAX);
        let kept = turns.unwrap_or(all).min(whole);
        // Steps of one turn need not be together: a person may say something while its calls run.
        let of_kept = |row: &&StepRow| match turn_of(&row.step) {
            None => true,
            // What was said before a turn that is not kept is kept where nothing else was cut off.
            Some(turn) if row.step.starts_with("say_") => turn < kept || turns.is_none() && turn == kept,
            Some(turn) => turn < kept,
        };
        let steps: Vec<StepRow> = steps.iter().filter(of_kept).cloned().collect();
        let said = steps.iter().filter(|row| row.step.starts_with("turn_"));
        let said: Vec<TurnStep> =
            said.map(|row| serde_json::from_value(row.body.clone())).collect::<std::result::Result<_, _>>()?;
        let new = start::session_id();
        let (sessions, project) = (self.store().sessions(), self.project().id);
        let standing = standing_after(&said);
        let forks = async {
            Ok::<_, Error>(sessions.fork(project, id, (new.as_str(), self.user().id), &steps, &standing).await?)
        };
        self.record_session(&new, "session.fork", json!({ "of": id, "turns": kept }), forks).await?;
        let unended = (kept < turns.unwrap_or(all)).then_some(kept + 1);
        Ok(Fork { session: sessions.get(project, &new).await?, turns: kept, unended })
    }
}

/// The turn that a step belongs to, or that it comes before.
fn turn_of(step: &str) -> Option<u32> {
    step.split('_').nth(1)?.parse().ok()
}

/// Whether all that a turn asked for has come to its end. A fork of one that has not would run the same calls, under the
/// same ids, as the session that it is of.
fn is_whole(steps: &HashMap<&str, &Value>, turn: u32) -> bool {
    let has = |name: &str| steps.contains_key(name);
    let said = steps.get(step::turn(turn).as_str()).and_then(|body| TurnStep::deserialize(*body).ok());
    match said {
        Some(said) if said.reply.calls.is_empty() => has(&step::check(turn)),
        Some(said) => (0..said.reply.calls.len()).all(|call| has(&step::call(turn, call))),
        None => false,
    }
}
