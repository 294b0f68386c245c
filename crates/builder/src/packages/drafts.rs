//! What a session has staged: the overlay through which it sees the package.

use std::collections::BTreeMap;

use crate::Package;
use crate::change::{self, Clash, Merged, Snapshot, merge};
use crate::refs::Object;

use super::ProjectPackage;
use super::conflict::{Conflict, Conflicts};
use super::error::{PackageError, Result};
use toolhost_store::Error;
use toolhost_store::db::{Row, Tx, sql};

/// An object as a session wants it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draft {
    pub(super) set: i64,
    pub(super) position: i64,
    pub(super) object: Object,
    /// As it was when the session began to change it; none: it was not there.
    pub(super) base: Option<Snapshot>,
    pub(super) wanted: Option<Snapshot>,
}

impl Draft {
    /// The same change of the object as it is in a package now, with what others have changed of it since in it.
    ///
    /// # Errors
    /// The places that both have changed.
    pub(super) fn over(&self, now: &Package) -> std::result::Result<Self, Vec<Clash>> {
        let current = change::snapshot(now, &self.object);
        match merge(self.base.as_ref(), current.as_ref(), self.wanted.as_ref()) {
            Merged::Clean(wanted) => Ok(Self { base: current, wanted, ..self.clone() }),
            Merged::Conflict(clashes) => Err(clashes),
        }
    }

    /// From where a later change of the session goes on once this one is applied: what the session saw when it made the
    /// later one, which is this one over what was there `then`.
    pub(super) fn seen_with(&self, then: Option<&Snapshot>) -> Option<Snapshot> {
        match merge(self.base.as_ref(), then, self.wanted.as_ref()) {
            Merged::Clean(seen) => seen,
            Merged::Conflict(_) => self.wanted.clone(),
        }
    }
}

impl ProjectPackage {
    /// What is staged in a session, of each object the last; in the order in which it was staged.
    pub(super) async fn drafts(&self, tx: &mut Tx, session: Option<&str>) -> Result<Vec<Draft>> {
        let Some(session) = session else { return Ok(Vec::new()) };
        Ok(last_of_each(self.all_drafts(tx, &self.overlay(session)).await?))
    }

    /// All that is staged in an overlay, in the order in which it was staged.
    pub(super) async fn all_drafts(&self, tx: &mut Tx, overlay: &str) -> Result<Vec<Draft>> {
        let text = "SELECT o.set_number AS set_number, o.position AS position, o.object AS object, o.base AS base,
                 o.wanted AS wanted
             FROM change_set s JOIN change_operation o ON o.project_id = s.project_id AND o.set_number = s.number
             WHERE s.project_id = $1 AND s.overlay = $2 AND s.state IN ('staged', 'validated') AND o.state = 'staged'
             ORDER BY o.set_number, o.position";
        sql(text).bind(self.who.project_id).bind(overlay).all(tx).await?.iter().map(draft).collect()
    }

    /// What a session is called here: it, and whose it is.
    pub(super) fn overlay(&self, session: &str) -> String {
        format!("{}/{session}", self.who.user_id)
    }

    /// All staged operations of one set, in their order.
    pub(super) async fn wishes(&self, tx: &mut Tx, number: i64) -> Result<Vec<Draft>> {
        self.operations(tx, number, false).await
    }

    /// The same also of a set that was given up.
    pub(super) async fn wishes_of(&self, tx: &mut Tx, number: i64) -> Result<Vec<Draft>> {
        self.operations(tx, number, true).await
    }

    async fn operations(&self, tx: &mut Tx, number: i64, also_rejected: bool) -> Result<Vec<Draft>> {
        let text = "SELECT set_number, position, object, base, wanted FROM change_operation
             WHERE project_id = $1 AND set_number = $2 AND (state = 'staged' OR (state = 'rejected' AND $3 = 1))
             ORDER BY position";
        let query = sql(text).bind(self.who.project_id).bind(number).bind(i64::from(also_rejected));
        query.all(tx).await?.iter().map(draft).collect()
    }
}

/// The workflows that drafts make: the package does not list them yet.
pub(super) fn made_workflows(drafts: &[Draft]) -> impl Iterator<Item = String> {
    let makes = |draft: &&Draft| matches!(draft.object, Object::Workflow(_)) && draft.base.is_none();
    drafts.iter().filter(makes).filter_map(|draft| draft.object.workflow().map(str::to_owned))
}

/// The newest operation for each object. Its base is the first one's, or a later one.
pub(super) fn last_of_each(drafts: Vec<Draft>) -> Vec<Draft> {
    let mut last: BTreeMap<Object, Draft> = BTreeMap::new();
    for draft in drafts {
        last.insert(draft.object.clone(), draft);
    }
    let mut kept: Vec<Draft> = last.into_values().collect();
    kept.sort_by_key(|draft| (draft.set, draft.position));
    kept
}

/// Merges each staged operation into the package as it is now. Also returns the objects that needed a merge.
pub(super) fn merged(base: &Package, chosen: &[Draft]) -> Result<(Vec<Draft>, Vec<Object>)> {
    let (mut drafts, mut merged, mut conflicts) = (Vec::new(), Vec::new(), Vec::new());
    for draft in chosen {
        match draft.over(base) {
            Ok(over) => {
                if over.base != draft.base && over.base != draft.wanted {
                    merged.push(draft.object.clone());
                }
                drafts.push(over);
            }
            Err(clashes) => conflicts.push(Conflict { object: draft.object.to_string(), clashes }),
        }
    }
    if conflicts.is_empty() { Ok((drafts, merged)) } else { Err(PackageError::Conflict(Conflicts(conflicts))) }
}

fn draft(row: &Row) -> Result<Draft> {
    let name: String = row.get("object")?;
    let state = |column| -> Result<Option<Snapshot>> {
        let text: Option<String> = row.get(column)?;
        Ok(text.map(|text| serde_json::from_str(&text)).transpose()?)
    };
    Ok(Draft {
        set: row.get("set_number")?,
        position: row.get("position")?,
        object: Object::parse(&name).ok_or_else(|| Error::Row(format!("`{name}` is no object")))?,
        base: state("base")?,
        wanted: state("wanted")?,
    })
}
