//! The change sets that are kept: which one is meant, and whether it is still open.

use serde_json::Value;

use super::error::{PackageError, Result};
use super::{ProjectPackage, set_id};
use toolhost_store::db::{Tx, sql};

/// Whose change sets are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose<'a> {
    /// The sets of one session of the caller.
    Session(&'a str),
    /// Any session's set, by its number: only people may name it so.
    Anybody,
}

/// A change set's row.
pub(super) struct Kept {
    pub(super) number: i64,
    pub(super) overlay: String,
    pub(super) state: String,
    /// The rejected set that it was made on.
    pub(super) blocked_by: Option<i64>,
    pub(super) body: Value,
}

impl ProjectPackage {
    /// The set that is meant: the one named, which must be the session's, or the last one staged.
    pub(super) async fn staged_set(
        &self,
        tx: &mut Tx,
        whose: Whose<'_>,
        number: Option<i64>,
        wish: &'static str,
    ) -> Result<Kept> {
        let overlay = match whose {
            Whose::Session(session) => Some(self.overlay(session)),
            Whose::Anybody => None,
        };
        let number = match number {
            Some(number) => Some(number),
            None => self.open_numbers(tx, overlay.as_deref().unwrap_or_default()).await?.last().copied(),
        };
        let number = number.ok_or(PackageError::NothingStaged(wish))?;
        let kept = self.kept(tx, number).await?;
        if overlay.is_some_and(|overlay| kept.overlay != overlay) {
            // The same error as for a set that does not exist: a session must not learn of other sessions' sets.
            return Err(no_set(number));
        }
        expect_open(kept, wish)
    }

    pub(super) async fn kept(&self, tx: &mut Tx, number: i64) -> Result<Kept> {
        let text = "SELECT number, overlay, state, blocked_by, body FROM change_set
             WHERE project_id = $1 AND number = $2";
        let row = sql(text).bind(self.who.project_id).bind(number).optional(tx).await?.ok_or_else(|| no_set(number))?;
        Ok(Kept {
            number: row.get("number")?,
            overlay: row.get("overlay")?,
            state: row.get("state")?,
            blocked_by: row.get("blocked_by")?,
            body: serde_json::from_str(&row.get::<String>("body")?)?,
        })
    }

    pub(super) async fn open_numbers(&self, tx: &mut Tx, overlay: &str) -> Result<Vec<i64>> {
        self.numbers(tx, overlay, false).await
    }

    /// The sets of a session that may still be applied, and if wished those that may only be discarded.
    pub(super) async fn numbers(&self, tx: &mut Tx, overlay: &str, also_blocked: bool) -> Result<Vec<i64>> {
        let text = "SELECT number FROM change_set WHERE project_id = $1 AND overlay = $2
             AND (state IN ('staged', 'validated') OR (state = 'blocked' AND $3 = 1)) ORDER BY number";
        let rows = sql(text).bind(self.who.project_id).bind(overlay).bind(i64::from(also_blocked)).all(tx).await?;
        rows.iter().map(|row| Ok(row.get("number")?)).collect()
    }
}

pub(super) fn expect_open(kept: Kept, wish: &'static str) -> Result<Kept> {
    match (kept.state.as_str(), kept.blocked_by) {
        ("staged" | "validated", _) => Ok(kept),
        ("blocked", _) if matches!(wish, "discarded" | "superseded") => Ok(kept),
        ("blocked", Some(on)) => Err(PackageError::Blocked { number: kept.number, on, wish }),
        _ => Err(PackageError::Ended { number: kept.number, state: kept.state, wish }),
    }
}

pub(super) fn no_set(number: i64) -> PackageError {
    PackageError::NotFound { what: "change set", name: set_id(number) }
}
