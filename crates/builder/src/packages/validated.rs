//! Whether a staged set may be applied, and for how long that is true.

use crate::Package;
use crate::change::{self, Clash, ClashPlace, Found, Report, Stage};
use crate::refs::Object;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolhost_contract::{ErrorCode, Redactor};

use super::apply::Examined;
use super::chain::Chain;
use super::conflict::Conflicts;
use super::drafts::{Draft, last_of_each};
use super::error::{PackageError, Result};
use super::kept::{Kept, Whose};
use super::scope::{revision_around, scope_of};
use super::{ProjectPackage, set_id};
use toolhost_store::db::{Tx, sql};

/// What the five stages said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validated {
    pub change_set_id: String,
    /// `validated`, or `staged` if something is wrong.
    pub status: String,
    /// What the set says it is for, and whether it makes that or makes it better.
    pub target_type: String,
    pub mode: String,
    /// The objects that it makes, changes or deletes.
    pub objects: Vec<Object>,
    /// The sets that would be applied with it, because it is based on them: what was found is of all of them together.
    pub based_on: Vec<String>,
    #[serde(flatten)]
    pub report: Report,
}

/// What an apply would say now, and do.
pub(super) struct Looked {
    pub(super) report: Report,
    pub(super) chain: Chain,
    /// The package as it is, and as it would be; `None` if the set cannot be laid over it.
    pub(super) applied: Option<(Package, Package)>,
}

impl ProjectPackage {
    /// Says of a staged set whether it could be applied now; keeps what it says.
    pub async fn validate(&self, whose: Whose<'_>, number: Option<i64>) -> Result<Validated> {
        // With the lock: what is said is true of the package as it is when it is kept.
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        let kept = self.staged_set(&mut tx, whose, number, "validated").await?;
        let drafts = last_of_each(self.wishes(&mut tx, kept.number).await?);
        let Looked { report, chain, .. } = self.report_now(&mut tx, &kept, &drafts).await?;
        let status = self.keep_report(&mut tx, kept.number, &report).await?;
        self.keep_told(&mut tx, kept.number, &report).await?;
        tx.commit().await?;
        let said = |field: &str| kept.body.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Validated {
            change_set_id: set_id(kept.number),
            status: status.to_owned(),
            target_type: said("targetType"),
            mode: said("mode"),
            objects: drafts.into_iter().map(|draft| draft.object).collect(),
            based_on: chain.names(),
            report,
        })
    }

    /// What an apply of these drafts of a set would say now. A validation and a preview both ask here.
    pub(super) async fn report_now(&self, tx: &mut Tx, kept: &Kept, drafts: &[Draft]) -> Result<Looked> {
        match self.examine(tx, kept, drafts).await {
            Ok(mut examined) => {
                examined.report.warnings.extend(examined.merged.iter().map(outdated));
                let Examined { chain, base, after, report, .. } = examined;
                Ok(Looked { report, chain, applied: Some((base, after)) })
            }
            Err(PackageError::Conflict(conflicts)) => {
                let chain = self.chain(tx, kept, drafts).await?;
                let part = self.part_for(tx, &chain.drafts).await?;
                let mut sets = chain.names();
                sets.push(set_id(kept.number));
                let mut report = in_conflict(&conflicts, &chain.body, &part.base, (&sets, &self.secrets));
                for number in chain.based_on.iter().rev() {
                    let wishes = self.wishes(tx, *number).await?;
                    let clashes = |object: &str| {
                        let own = wishes.iter().rev().find(|draft| draft.object.to_string() == object);
                        own.is_some_and(|draft| draft.over(&part.base).is_err())
                    };
                    // The earliest one that clashes by itself: those on it only carry its text on.
                    for found in report.errors.iter_mut().filter(|found| clashes(&found.path)) {
                        found.change_set_id = Some(set_id(*number));
                    }
                }
                Ok(Looked { report, chain, applied: None })
            }
            Err(error) => Err(error),
        }
    }

    /// Keeps what was found of an open set. Answers the state it has come to.
    pub(super) async fn keep_report(&self, tx: &mut Tx, number: i64, report: &Report) -> Result<&'static str> {
        let state = if report.valid { "validated" } else { "staged" };
        let text = "UPDATE change_set SET state = $3, report = $4, updated_at_ms = $5
             WHERE project_id = $1 AND number = $2 AND state IN ('staged', 'validated')";
        let query = sql(text).bind(self.who.project_id).bind(number).bind(state);
        query.bind(serde_json::to_string(report)?).bind(self.clock.unix_ms()).run(tx).await?;
        Ok(state)
    }

    /// Keeps which state of the package a conflict was told of: a set that takes the place of this one is made on that.
    async fn keep_told(&self, tx: &mut Tx, number: i64, report: &Report) -> Result<()> {
        let moment = if in_conflict_over(report).next().is_some() { Some(self.head(tx).await?.moment) } else { None };
        let text = "UPDATE change_set SET told_moment = $3 WHERE project_id = $1 AND number = $2";
        sql(text).bind(self.who.project_id).bind(number).bind(moment).run(tx).await?;
        Ok(())
    }

    /// The package is another one now: sets that were valid are `staged` again, but for the one that made it so.
    pub(super) async fn unvalidate(&self, tx: &mut Tx, but: Option<i64>) -> Result<()> {
        let text = "UPDATE change_set SET state = 'staged'
             WHERE project_id = $1 AND state = 'validated' AND number <> $2";
        sql(text).bind(self.who.project_id).bind(but.unwrap_or_default()).run(tx).await?;
        Ok(())
    }
}

/// The names of the objects that a report says are in conflict.
pub(super) fn in_conflict_over(report: &Report) -> impl Iterator<Item = &str> {
    let is_conflict = |found: &&Found| found.code == ErrorCode::RevisionMismatch.as_str();
    report.errors.iter().filter(is_conflict).map(|found| found.path.as_str())
}

/// Somebody else's change of the same object, in other places: told before an apply merges it.
fn outdated(object: &Object) -> Found {
    let hint = "an apply merges both";
    changed_since(object.to_string(), format!("{object} has been changed since this was staged"), hint)
}

/// The report on a set that cannot be laid over the package as it is now: no stage has anything to look at. Each finding has
/// both texts and the revision to go on from, for a read shows the session its own text and not the other one.
fn in_conflict(conflicts: &Conflicts, body: &Value, now: &Package, (sets, secrets): (&[String], &Redactor)) -> Report {
    let parsed = change::parse(body).map(|parsed| parsed.set).ok();
    let errors = conflicts.0.iter().map(|conflict| {
        let places: String = conflict.clashes.iter().take(CLASHES_SHOWN_MAX).map(|clash| told(clash, secrets)).collect();
        let more = conflict.clashes.len().saturating_sub(CLASHES_SHOWN_MAX);
        let more = if more > 0 { format!("\n- and {more} more places") } else { String::new() };
        let message = format!(
            "{} has been changed by somebody else since, in the same places. A read shows what this session staged:{places}{more}",
            conflict.object
        );
        changed_since(conflict.object.clone(), message, &way_out(&conflict.object, now, sets))
    });
    let impact = parsed.map(|set| change::impact(&set.operations)).unwrap_or_default();
    Report { errors: errors.collect(), impact, ..Report::default() }
}

/// Places of one object that a finding tells.
const CLASHES_SHOWN_MAX: usize = 5;
/// Characters of each text of a place.
const CLASH_CHARS_MAX: usize = 300;

/// The three texts of a place.
fn told(clash: &Clash, secrets: &Redactor) -> String {
    let place = match &clash.place {
        ClashPlace::Whole => "all of it".to_owned(),
        ClashPlace::Lines { first, count: 0 } => format!("before line {first}"),
        ClashPlace::Lines { first, count: 1 } => format!("line {first}"),
        ClashPlace::Lines { first, count } => format!("lines {first} to {}", first + count - 1),
        ClashPlace::Pointer { pointer } => pointer.clone(),
    };
    // Before it is cut: half of a secret is not seen to be one.
    let redacted = |text: &String| {
        let mut text = text.clone();
        secrets.redact(&mut text);
        text
    };
    let text = |text: &Option<String>| match text.as_ref().map(redacted) {
        Some(text) if text.chars().count() > CLASH_CHARS_MAX => {
            let shown: String = text.chars().take(CLASH_CHARS_MAX).collect();
            format!("{} (cut)", Value::from(shown))
        }
        Some(text) => Value::from(text.as_str()).to_string(),
        None => "nothing".to_owned(),
    };
    let (was, is, ours) = (text(&clash.base), text(&clash.current), text(&clash.ours));
    let part = clash.part.as_str();
    format!("\n- {part}, {place}: it was {was}; now, by somebody else, {is}; in this set {ours}")
}

/// The report on a set that was made on one that has been rejected.
pub(super) fn blocked(kept: &Kept, objects: &[Object]) -> Report {
    let refused =
        PackageError::Blocked { number: kept.number, on: kept.blocked_by.unwrap_or_default(), wish: "applied" };
    let place = objects.first().map(ToString::to_string).unwrap_or_default();
    let found = changed_since(place, refused.to_string(), &refused.hint().unwrap_or_default());
    Report { errors: vec![found], ..Report::default() }
}

/// How to come from a conflict to a set that can be applied.
fn way_out(object: &str, now: &Package, sets: &[String]) -> String {
    let ids = sets.join(" and ");
    let again =
        format!("discard {ids}, read {object} again, which then shows the text of now, and stage the merged text");
    let known = Object::parse(object);
    if known.as_ref().is_some_and(|object| change::snapshot(now, object).is_none()) {
        return format!(
            "somebody else has deleted or renamed it: discard {ids}, read the context again for what has taken its \
             place, and make the change there"
        );
    }
    let known = known.and_then(|object| Some((scope_of(&object), revision_around(now, &object)?)));
    let Some(((field, scope), revision)) = known else { return again };
    let superseded = match sets {
        [one] => Value::from(one.as_str()),
        several => Value::from(several.to_vec()),
    };
    let field = if scope.starts_with("workflow:") {
        format!("`revisions.workflowRevision` (over several workflows `extensions.baseRevisions[\"{scope}\"]`)")
    } else {
        format!("`{field}`")
    };
    format!(
        "{again}; or stage the merged text at once, with `extensions: {{\"supersedes\": {superseded}}}` and the revision that you \
         were given, or \"{revision}\", as {field}: it then takes the place of both texts, and small edits find the text of now"
    )
}

fn changed_since(object: String, message: String, hint: &str) -> Found {
    Found {
        stage: Stage::Impact,
        code: ErrorCode::RevisionMismatch.as_str().to_owned(),
        path: object,
        file: String::new(),
        line: None,
        column: None,
        expected: "as it was when this change was begun".to_owned(),
        actual: "another one".to_owned(),
        message,
        hint: hint.to_owned(),
        before: false,
        change_set_id: None,
    }
}
