//! Giving up change sets that are staged, and what that means for those that were made on them.

use std::collections::BTreeSet;

use super::error::{PackageError, Result};
use super::kept::Whose;
use super::{ProjectPackage, set_id};
use toolhost_store::db::{Tx, sql};

/// What a discard did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discarded {
    /// Such as `cs-3`.
    pub discarded: Vec<String>,
    /// Those that were made on one of these and contain its text: they can no longer be applied.
    pub blocked: Vec<String>,
    /// Those that refer to what one of these makes: they have to be validated again.
    pub unvalidated: Vec<String>,
}

impl ProjectPackage {
    /// Gives up a staged set, or all that the session has staged. Those that contain its text can no longer be applied; those
    /// that only refer to what it makes have to be validated again.
    pub async fn discard(&self, whose: Whose<'_>, number: Option<i64>) -> Result<Discarded> {
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        let sets = match (number, whose) {
            (None, Whose::Session(session)) => {
                let overlay = self.overlay(session);
                let mut sets = Vec::new();
                for number in self.numbers(&mut tx, &overlay, true).await? {
                    sets.push(self.kept(&mut tx, number).await?);
                }
                sets
            }
            _ => vec![self.staged_set(&mut tx, whose, number, "discarded").await?],
        };
        let Some(overlay) = sets.first().map(|kept| kept.overlay.clone()) else {
            return Err(PackageError::NothingStaged("discarded"));
        };
        let numbers: BTreeSet<i64> = sets.iter().map(|kept| kept.number).collect();
        let discarded = self.reject(&mut tx, &overlay, &numbers).await?;
        tx.commit().await?;
        Ok(discarded)
    }

    pub(super) async fn reject(&self, tx: &mut Tx, overlay: &str, numbers: &BTreeSet<i64>) -> Result<Discarded> {
        let (containing, referring) = self.on_top_of(tx, overlay, numbers).await?;
        let (project, now) = (self.who.project_id, self.clock.unix_ms());
        for number in numbers {
            let text = "UPDATE change_set SET state = 'rejected', discarded_by = $4, updated_at_ms = $3
                 WHERE project_id = $1 AND number = $2";
            sql(text).bind(project).bind(*number).bind(now).bind(&self.who.call_id).run(tx).await?;
            let text = "UPDATE change_operation SET state = 'rejected'
                 WHERE project_id = $1 AND set_number = $2 AND state = 'staged'";
            sql(text).bind(project).bind(*number).run(tx).await?;
        }
        let first = numbers.first().copied().unwrap_or_default();
        for number in &containing {
            let text = "UPDATE change_set SET state = 'blocked', blocked_by = $4, updated_at_ms = $3
                 WHERE project_id = $1 AND number = $2";
            sql(text).bind(project).bind(*number).bind(now).bind(first).run(tx).await?;
        }
        for number in &referring {
            let text = "UPDATE change_set SET state = 'staged', updated_at_ms = $3
                 WHERE project_id = $1 AND number = $2 AND state = 'validated'";
            sql(text).bind(project).bind(*number).bind(now).run(tx).await?;
        }
        let names = |numbers: BTreeSet<i64>| numbers.into_iter().map(set_id).collect();
        Ok(Discarded { discarded: names(numbers.clone()), blocked: names(containing), unvalidated: names(referring) })
    }
}
