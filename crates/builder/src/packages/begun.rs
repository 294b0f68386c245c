//! On what each change of a set is begun, and what of that cannot be had: revisions that are missing, drafts in the way.

use std::collections::BTreeSet;

use crate::change::{self, ChangeSet, Merged, Snapshot, merge};
use crate::refs::Object;

use super::conflict::{Conflict, Conflicts};
use super::drafts::Draft;
use super::error::{NoRevision, PackageError, Result};
use super::part::Part;
use super::set_id;

/// From where a change of an object goes on.
pub(super) struct Begun {
    /// As it was when the session began to change it.
    pub(super) base: Option<Snapshot>,
    /// The session's earlier draft, where the change was not made on that.
    pub(super) over: Option<Over>,
}

/// A draft, and the object as it was read for a later change that does not know of the draft.
pub(super) struct Over {
    pub(super) draft: Draft,
    pub(super) read: Option<Snapshot>,
}

/// From where a change goes on that the host made itself, of an object whose revision the set does not name.
pub(super) fn as_it_is(object: &Object, part: &Part) -> Begun {
    let draft = part.draft(object);
    Begun { base: draft.map_or_else(|| change::snapshot(&part.base, object), |draft| draft.base.clone()), over: None }
}

/// The revisions that a set does not give: all of them are told at once.
pub(super) struct Missing {
    /// Whether the set changes several workflows, so that each has its own place for its revision.
    is_over_several: bool,
    revisions: Vec<NoRevision>,
}

impl Missing {
    pub(super) fn of(set: &ChangeSet) -> Self {
        Self { is_over_several: has_several_workflows(set), revisions: Vec::new() }
    }

    /// Takes a revision that is missing; whatever else is wrong is an error at once.
    pub(super) fn collect(&mut self, begun: Result<Begun>) -> Result<Option<Begun>> {
        let missing = match begun {
            Err(PackageError::NoRevision(missing)) => missing,
            other => return other.map(Some),
        };
        for NoRevision { field, object } in missing {
            let workflow = Object::parse(&object).and_then(|object| object.workflow().map(str::to_owned));
            let field = match workflow.filter(|_| self.is_over_several) {
                Some(id) => format!("extensions.baseRevisions[\"workflow:{id}\"]"),
                None => field,
            };
            // One revision may be that of many objects.
            if !self.revisions.iter().any(|known| known.field == field) {
                self.revisions.push(NoRevision { field, object });
            }
        }
        Ok(None)
    }

    pub(super) fn refuse(self) -> Result<()> {
        if self.revisions.is_empty() { Ok(()) } else { Err(PackageError::NoRevision(self.revisions)) }
    }
}

pub(super) fn has_several_workflows(set: &ChangeSet) -> bool {
    let ids: BTreeSet<&str> = set.operations.iter().filter_map(|operation| operation.object.workflow()).collect();
    ids.len() > 1
}

/// Where a later set of a session and its earlier ones cannot both be had.
#[derive(Default)]
pub(super) struct InTheWay {
    sets: BTreeSet<i64>,
    conflicts: Vec<Conflict>,
}

impl InTheWay {
    /// What a later change and the draft want together. `earlier`: all open drafts of the session, in their order; of those
    /// of the object the first that cannot be had beside the change is the one that is in the way.
    pub(super) fn rebased(
        &mut self,
        object: &Object,
        over: &Over,
        wanted: Option<&Snapshot>,
        earlier: &[Draft],
    ) -> Option<Snapshot> {
        match merge(over.read.as_ref(), over.draft.wanted.as_ref(), wanted) {
            Merged::Clean(both) => both,
            Merged::Conflict(clashes) => {
                let clashes_with = |draft: &&Draft| {
                    let both = merge(over.read.as_ref(), draft.wanted.as_ref(), wanted);
                    draft.object == *object && matches!(both, Merged::Conflict(_))
                };
                self.sets.insert(earlier.iter().find(clashes_with).unwrap_or(&over.draft).set);
                self.conflicts.push(Conflict { object: object.to_string(), clashes });
                None
            }
        }
    }

    pub(super) fn refuse(self) -> Result<()> {
        if self.conflicts.is_empty() {
            return Ok(());
        }
        let sets = self.sets.into_iter().map(set_id).collect();
        Err(PackageError::OverDraft { sets, conflicts: Conflicts(self.conflicts) })
    }
}
