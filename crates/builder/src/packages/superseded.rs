//! Sets that take the place of earlier ones of their session.

use std::collections::{BTreeMap, BTreeSet};

use crate::Finding;
use crate::change::{self, ChangeSet, Parsed, Report, Snapshot};
use crate::refs::Object;
use serde_json::Value;
use toolhost_contract::Redactor;

use super::ProjectPackage;
use super::begun::as_it_is;
use super::discard::Discarded;
use super::drafts::{Draft, last_of_each};
use super::error::{PackageError, Result};
use super::kept::Whose;
use super::part::{Part, Want};
use super::scope::{base_revision, revision_around, scope_of};
use super::validated::in_conflict_over;
use toolhost_store::db::{Tx, sql};

/// Objects in conflict, each as its change was begun on, with the text of somebody else at the places that were told: what
/// else that one has changed was not, and is merged.
pub(super) type Told = BTreeMap<Object, Option<Snapshot>>;

/// What a set has taken the place of.
#[derive(Default)]
pub(super) struct Superseded {
    pub(super) names: Vec<String>,
    /// Sets that contain the text of one of them.
    pub(super) blocked: Vec<String>,
    pub(super) told: Told,
}

impl ProjectPackage {
    /// What the session saw before it superseded a set.
    pub(super) async fn former(&self, tx: &mut Tx, want: &Want, seen: Option<&[Draft]>) -> Result<Option<Part>> {
        match seen {
            Some(drafts) => Ok(Some(self.part(tx, want, drafts).await?)),
            None => Ok(None),
        }
    }

    /// Rejects what a set says it takes the place of.
    pub(super) async fn supersede(&self, tx: &mut Tx, session: &str, set: &ChangeSet) -> Result<Superseded> {
        let mut numbers = BTreeSet::new();
        for number in set.supersedes().map_err(|finding| PackageError::Rejected(vec![*finding]))? {
            match self.staged_set(tx, Whose::Session(session), Some(number), "superseded").await {
                Ok(kept) => drop(numbers.insert(kept.number)),
                // It was discarded before, so that nothing of it is left to take the place of.
                Err(PackageError::Ended { state, .. }) if state == "rejected" => {}
                Err(error) => return Err(error),
            }
        }
        if numbers.is_empty() {
            return Ok(Superseded::default());
        }
        let told = self.told(tx, &numbers).await?;
        let Discarded { discarded, blocked, .. } = self.reject(tx, &self.overlay(session), &numbers).await?;
        Ok(Superseded { names: discarded, blocked, told })
    }

    /// The objects of which a validation of these sets has told that somebody else has changed the same places.
    async fn told(&self, tx: &mut Tx, numbers: &BTreeSet<i64>) -> Result<Told> {
        let mut told = Told::new();
        for number in numbers {
            let text = "SELECT report, told_moment FROM change_set WHERE project_id = $1 AND number = $2";
            let row = sql(text).bind(self.who.project_id).bind(*number).one(tx).await?;
            let report: Option<Report> =
                row.get::<Option<String>>("report")?.map(|text| serde_json::from_str(&text)).transpose()?;
            let (Some(report), Some(moment)) = (report, row.get::<Option<i64>>("told_moment")?) else { continue };
            let objects: Vec<Object> = in_conflict_over(&report).filter_map(Object::parse).collect();
            let part = self.part(tx, &Want { at: Some(moment), ..Want::objects(&objects) }, &[]).await?;
            let drafts = last_of_each(self.wishes(tx, *number).await?);
            told.extend(objects.into_iter().map(|object| {
                let then = change::snapshot(&part.base, &object);
                let draft = drafts.iter().find(|draft| draft.object == object);
                let base = draft.map_or_else(|| then.clone(), |draft| with_told(draft, then.as_ref()));
                (object, base)
            }));
        }
        Ok(told)
    }
}

/// Says of what is missing only because of the sets that this one takes the place of that it went with them.
pub(super) fn explain_superseded(
    findings: &mut [Finding],
    former: Option<&Part>,
    value: &Value,
    (superseded, secrets): (&[String], &Redactor),
) {
    let (Some(former), Ok(Parsed { mut set, .. })) = (former, change::parse(value)) else { return };
    let known = change::complete(former.package(), &mut set, secrets).err().unwrap_or_default();
    let is_new = |finding: &&mut Finding| {
        !known.iter().any(|old| (&old.code, &old.message) == (&finding.code, &finding.message))
    };
    for finding in findings.iter_mut().filter(is_new) {
        let names = superseded.join(", ");
        let said = format!("this set is made on the package without {names}, which it supersedes: ");
        finding.hint = format!(
            "{said}write what is to be kept of {names} into this set as well, or name what stands there without it"
        );
    }
}

/// From where a change of a set goes on that takes the place of others; `None` as for any other set.
pub(super) fn in_place(
    (set, given): (&ChangeSet, &ChangeSet),
    object: &Object,
    (former, told): (&Part, &Told),
    part: &Part,
) -> Option<Option<Snapshot>> {
    let is_whole = given.operations.iter().any(|known| known.object == *object && known.edits.is_empty());
    if !is_whole {
        // Small edits were made on what is there without the set that is superseded.
        return Some(as_it_is(object, part).base);
    }
    match told.get(object).filter(|_| base_revision(set, &scope_of(object).1).is_some()) {
        Some(base) => Some(base.clone()),
        None => replaced(set, object, former),
    }
}

/// From where a change goes on that was made on what the session saw before a set was superseded; `None` if it was not.
fn replaced(set: &ChangeSet, object: &Object, former: &Part) -> Option<Option<Snapshot>> {
    let declared = base_revision(set, &scope_of(object).1)?;
    let is_of_former = revision_around(former.package(), object).as_ref() == Some(&declared);
    is_of_former.then(|| as_it_is(object, former).base)
}

/// What a draft was begun on, with what is there `now` at the places where both differ.
fn with_told(draft: &Draft, now: Option<&Snapshot>) -> Option<Snapshot> {
    match change::merge(draft.base.as_ref(), now, draft.wanted.as_ref()) {
        change::Merged::Conflict(clashes) => match (draft.base.as_ref(), now) {
            (Some(base), Some(_)) => Some(change::with_current(base, now, &clashes)),
            // What somebody else has taken out is made anew.
            _ => now.cloned(),
        },
        change::Merged::Clean(_) => draft.base.clone(),
    }
}
