//! Taking a side where a change set and the package clash.
//!
//! A clash is a place that both have changed since the set was begun. Once a person has said whose text is taken there, the set is made
//! again on the package as it is now, with that text. Nothing is applied by it.

use std::collections::BTreeMap;

use crate::change::{self, Side, Snapshot, WrongSides, merge_taking};

use super::ProjectPackage;
use super::apply::Apply;
use super::drafts::Draft;
use super::error::{PackageError, Result};
use super::kept::expect_open;
use toolhost_store::db::{Tx, sql};

impl ProjectPackage {
    /// Takes a side at each place where a set, or the operations of it that are wanted, clashes with the package as it is now: those of each
    /// object in the order in which [`ProjectPackage::preview_of`] shows them.
    ///
    /// # Errors
    /// The set has ended; it clashes at other places than sides are given for; one object has to be taken from one side.
    pub async fn take_sides(&self, wish: &Apply, sides: &BTreeMap<String, Vec<Side>>) -> Result<()> {
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        let kept = expect_open(self.kept(&mut tx, wish.number).await?, "changed")?;
        let staged = self.wishes(&mut tx, wish.number).await?;
        let chosen = self.chosen(&mut tx, wish, staged).await?;
        let drafts = self.chain(&mut tx, &kept, &chosen).await?.drafts;
        let part = self.part_for(&mut tx, &drafts).await?;
        let mut clashing = 0;
        for draft in &drafts {
            let Err(clashes) = draft.over(&part.base) else { continue };
            clashing += 1;
            let sides = sides.get(&draft.object.to_string()).filter(|sides| sides.len() == clashes.len());
            let sides = sides.ok_or(PackageError::OtherClashes { number: wish.number })?;
            let current = change::snapshot(&part.base, &draft.object);
            let wanted = merge_taking(draft.base.as_ref(), current.as_ref(), draft.wanted.as_ref(), sides);
            let wanted = wanted.map_err(|wrong| match wrong {
                WrongSides::Number => PackageError::OtherClashes { number: wish.number },
                WrongSides::OfOneObject => PackageError::OneSide { object: draft.object.to_string() },
            })?;
            let draft = Draft { base: current, wanted, ..draft.clone() };
            self.rebase(&mut tx, &draft).await?;
        }
        if clashing == 0 || clashing != sides.len() {
            return Err(PackageError::OtherClashes { number: wish.number });
        }
        tx.commit().await?;
        Ok(())
    }

    /// Keeps a draft that was made again. What was found of its set says nothing of what it is now.
    async fn rebase(&self, tx: &mut Tx, draft: &Draft) -> Result<()> {
        let project = self.who.project_id;
        let text = |state: &Option<Snapshot>| state.as_ref().map(serde_json::to_string).transpose();
        let (base, wanted) = (text(&draft.base)?, text(&draft.wanted)?);
        let text = "UPDATE change_operation SET base = $4, wanted = $5
             WHERE project_id = $1 AND set_number = $2 AND position = $3";
        sql(text).bind(project).bind(draft.set).bind(draft.position).bind(base).bind(wanted).run(tx).await?;
        let text = "UPDATE change_set SET state = 'staged', updated_at_ms = $3
             WHERE project_id = $1 AND number = $2 AND state IN ('staged', 'validated')";
        sql(text).bind(project).bind(draft.set).bind(self.clock.unix_ms()).run(tx).await?;
        Ok(())
    }
}
