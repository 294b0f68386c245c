//! What a session saw of the package between its turns: a later set may be made on any of it.

use crate::change::ChangeSet;
use crate::refs::Object;

use super::ProjectPackage;
use super::drafts::{Draft, last_of_each};
use super::error::Result;
use super::part::{Part, Want};
use super::scope::revision_around;
use super::sets::is_open;
use toolhost_store::db::{Tx, sql};

/// How many of the latest sets of a session are looked at, for the views before and after each of them.
const SETS_LOOKED_AT_MAX: i64 = 16;
/// How many of the latest changes of the package are looked behind.
const MOMENTS_LOOKED_AT_MAX: usize = 16;
/// How many views are looked at in all.
const VIEWS_LOOKED_AT_MAX: usize = 96;

impl ProjectPackage {
    /// The package as the session saw it before one of its later sets, while a set that it gave up was open, or before somebody
    /// else's latest changes, if `declared` is the revision around the object then.
    pub(super) async fn earlier_view(
        &self,
        tx: &mut Tx,
        (overlay, set): (&str, &ChangeSet),
        object: &Object,
        declared: &str,
    ) -> Result<Option<Part>> {
        let want = Want::objects(set.operations.iter().map(|operation| &operation.object));
        let now = self.head(tx).await?.moment;
        let former = (1..now).rev().take(MOMENTS_LOOKED_AT_MAX).map(Some);
        let moments: Vec<Option<i64>> = std::iter::once(None).chain(former).collect();
        let views = self.earlier_drafts(tx, overlay).await?;
        let mut looked_at = 0;
        for at in moments {
            for drafts in &views {
                if looked_at == VIEWS_LOOKED_AT_MAX {
                    return Ok(None);
                }
                looked_at += 1;
                let part = self.part(tx, &Want { at, ..want.clone() }, drafts).await?;
                if revision_around(part.package(), object).as_deref() == Some(declared) {
                    return Ok(Some(part));
                }
            }
        }
        Ok(None)
    }

    /// The drafts that made each of those views, the latest first.
    async fn earlier_drafts(&self, tx: &mut Tx, overlay: &str) -> Result<Vec<Vec<Draft>>> {
        let text = "SELECT number, state FROM change_set WHERE project_id = $1 AND overlay = $2
             AND state IN ('staged', 'validated', 'blocked', 'rejected') ORDER BY number DESC LIMIT $3";
        let rows = sql(text).bind(self.who.project_id).bind(overlay).bind(SETS_LOOKED_AT_MAX).all(tx).await?;
        let mut sets: Vec<(bool, Vec<Draft>)> = Vec::new();
        for row in rows.iter().rev() {
            let state: String = row.get("state")?;
            let wishes = self.wishes_of(tx, row.get("number")?).await?;
            sets.push((is_open(&state), wishes));
        }
        let mut views = Vec::new();
        for end in (1..=sets.len()).rev() {
            let last = end - 1;
            // Nobody noted when a set was given up: before the last of these was staged, or later.
            for all in [false, true] {
                let seen = sets[..end].iter().enumerate().filter(|(at, (is_open, _))| all || *is_open || *at == last);
                views.push(last_of_each(seen.flat_map(|(_, (_, drafts))| drafts.iter().cloned()).collect()));
            }
        }
        views.dedup();
        Ok(views)
    }
}
