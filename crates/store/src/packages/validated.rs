//! Whether a staged set may be applied, and for how long that is true.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use toolhost_builder::change::{self, Check, Found, Report, Stage};
use toolhost_builder::refs::Object;
use toolhost_builder::schema::Schemas;

use super::Shelf;
use super::drafts::{Draft, last_of_each};
use super::error::Result;
use super::part::Part;
use super::sets::{Whose, set_id};
use crate::db::{Tx, sql};

/// What the five stages said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validated {
    pub change_set_id: String,
    /// `validated`, or `staged` if something is wrong.
    pub status: String,
    #[serde(flatten)]
    pub report: Report,
}

impl Shelf {
    /// Says of a staged set whether it could be applied now; keeps what it says.
    pub async fn validate(&self, whose: Whose<'_>, number: Option<i64>) -> Result<Validated> {
        // With the lock: what is said is true of the package as it is when it is kept.
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        let kept = self.staged_set(&mut tx, whose, number, "validated").await?;
        let drafts: Vec<Draft> = self
            .all_drafts(&mut tx, &kept.overlay)
            .await?
            .into_iter()
            .filter(|draft| draft.set <= kept.number)
            .collect();
        let drafts = of_set(drafts, kept.number);
        let part = self.part_for(&mut tx, &drafts).await?;
        let mut report = change::validate(&Check {
            schemas: &Schemas::compiled(),
            base: &part.base,
            after: part.package(),
            set: &kept.body,
            unwritten: &part.findings,
        });
        report.warnings.extend(outdated(&part, &drafts));
        let status = self.keep_report(&mut tx, kept.number, &report).await?;
        tx.commit().await?;
        Ok(Validated { change_set_id: set_id(kept.number), status: status.to_owned(), report })
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

    /// The package is another one now: sets that were valid are `staged` again, but for the one that made it so.
    pub(super) async fn unvalidate(&self, tx: &mut Tx, but: Option<i64>) -> Result<()> {
        let text = "UPDATE change_set SET state = 'staged'
             WHERE project_id = $1 AND state = 'validated' AND number <> $2";
        sql(text).bind(self.who.project_id).bind(but.unwrap_or_default()).run(tx).await?;
        Ok(())
    }
}

/// What has changed below the drafts since they were begun: told before an apply has to merge or to refuse.
fn outdated(part: &Part, drafts: &[Draft]) -> Vec<Found> {
    let moved = drafts.iter().filter(|draft| change::snapshot(&part.base, &draft.object) != draft.base);
    let found = moved.map(|draft| Found {
        stage: Stage::Impact,
        code: "AI_REVISION_BASE_MISMATCH".to_owned(),
        path: draft.object.to_string(),
        file: String::new(),
        line: None,
        expected: "as it was when this change was begun".to_owned(),
        actual: "another one".to_owned(),
        message: format!("{} has been changed by somebody else since", draft.object),
        hint: "an apply merges both where they do not touch, and is refused where they do".to_owned(),
        before: false,
    });
    found.collect()
}

/// What a set wants: its own objects, each as it was last staged.
fn of_set(drafts: Vec<Draft>, number: i64) -> Vec<Draft> {
    let own: BTreeSet<Object> =
        drafts.iter().filter(|draft| draft.set == number).map(|draft| draft.object.clone()).collect();
    last_of_each(drafts).into_iter().filter(|draft| own.contains(&draft.object)).collect()
}
