//! Beginning an iteration: what it takes over from its base, and which one the project is in.

use std::collections::BTreeMap;

use serde_json::Value;

use super::PAGE_RECORDS_MAX;
use super::ProjectRecords;
use super::error::{RecordError, Result};
use super::iteration::{Inheritance, Iteration, IterationStatus};
use super::kind::{Kind, RecordId};
use super::read::{Query, find, select};
use super::row::{Saved, Stored, stored};
use super::transfer::Arrival;
use super::write::{Edit, Rules};
use toolhost_store::db::{Tx, sql};

/// What a new iteration is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct NewIteration {
    pub title: String,
    pub description: String,
    /// The number of an iteration; 0 for what belongs to none.
    pub base: Option<i64>,
    pub inheritance: Inheritance,
}

impl ProjectRecords {
    /// The iteration the project is in; 0 if there never was one.
    pub async fn current_iteration(&self) -> Result<i64> {
        let rows =
            sql("SELECT current_iteration FROM project WHERE id = $1").bind(self.who.project_id).read(&self.db).await?;
        let current: Option<i64> = rows.first().map(|row| row.get("current_iteration")).transpose()?.flatten();
        Ok(current.unwrap_or(0))
    }

    /// Makes another iteration the one that tools work in.
    pub async fn enter_iteration(&self, id: RecordId) -> Result<()> {
        RecordId::of(Kind::Iteration, &id.to_string())?;
        let mut tx = self.begin().await?;
        self.must_find(&mut tx, id).await?;
        self.enter(&mut tx, id).await?;
        Ok(tx.commit().await?)
    }

    async fn enter(&self, tx: &mut Tx, id: RecordId) -> Result<()> {
        let update = sql("UPDATE project SET current_iteration = $2 WHERE id = $1");
        update.bind(self.who.project_id).bind(id.number).run(tx).await?;
        Ok(())
    }

    /// Begins an iteration, which becomes the current one, with copies of what it inherits.
    pub async fn begin_iteration(&self, new: &NewIteration) -> Result<Saved<Iteration>> {
        let mut tx = self.begin().await?;
        let base = new.base.filter(|number| *number != 0).map(|number| Kind::Iteration.id(number));
        if let Some(base) = base {
            find(&mut tx, self.who.project_id, base)
                .await?
                .ok_or(RecordError::Reference { field: "baseIterationId".to_owned(), to: base })?;
        }
        let content = Iteration {
            title: new.title.clone(),
            description: new.description.clone(),
            status: IterationStatus::Draft,
            inheritance: if new.base.is_some() { new.inheritance } else { Inheritance::None },
            base_iteration_id: base.map(|base| base.to_string()),
            started_at_ms: None,
            completed_at_ms: None,
        };
        let body = serde_json::to_value(&content)?;
        let stored = self.insert(&mut tx, Kind::Iteration, &body, 0, "create", None, Rules::Machine).await?;
        if let Some(base) = new.base {
            self.inherit(&mut tx, base, stored.id.number, content.inheritance).await?;
        }
        self.enter(&mut tx, stored.id).await?;
        tx.commit().await?;
        stored.typed()
    }

    /// Moves an iteration on in its life; times are set as it starts and ends. `enter`: it becomes the current one, too.
    pub async fn move_iteration(
        &self,
        id: &str,
        to: IterationStatus,
        edit: &Edit,
        enter: bool,
    ) -> Result<Saved<Iteration>> {
        let now = self.now_ms();
        let record = RecordId::of(Kind::Iteration, id)?;
        let mut tx = self.begin().await?;
        let moved = self.update_in::<Iteration>(&mut tx, record, edit, |iteration| {
            if iteration.status == to {
                // Else completing it twice would say that it was completed later.
                let (from, allowed) = (to.as_str().to_owned(), super::ITERATION.next(to.as_str()));
                return Err(RecordError::Transition { id: record, to: from.clone(), from, allowed });
            }
            iteration.status = to;
            match to {
                IterationStatus::Running => iteration.started_at_ms = iteration.started_at_ms.or(Some(now)),
                IterationStatus::Completed => iteration.completed_at_ms = Some(now),
                _ => {}
            }
            Ok(())
        });
        let moved = moved.await?;
        if enter {
            self.enter(&mut tx, record).await?;
        }
        tx.commit().await?;
        Ok(moved)
    }

    async fn inherit(&self, tx: &mut Tx, from: i64, to: i64, what: Inheritance) -> Result<()> {
        let kinds: Vec<Kind> = match what {
            Inheritance::None => return Ok(()),
            Inheritance::Partial => Kind::plan(),
            Inheritance::Full => Kind::plan().into_iter().chain([Kind::Artifact]).collect(),
        };
        let mut originals: Vec<Stored> = Vec::new();
        let mut copies: BTreeMap<RecordId, RecordId> = BTreeMap::new();
        for kind in kinds {
            for original in self.of_iteration(tx, kind, from).await? {
                copies.insert(original.id, kind.id(self.next_number(tx, kind).await?));
                originals.push(original);
            }
        }
        let mut rows = Vec::new();
        for original in originals {
            let Some(id) = copies.get(&original.id).copied() else { continue };
            let mut body = original.body;
            for reference in original.id.kind.facts(&body)?.references {
                if let (Some(copy), Some(field)) = (copies.get(&reference.to), body.get_mut(reference.field)) {
                    rename(field, reference.to, *copy);
                }
            }
            let why = Some(format!("as {} was", original.id));
            rows.push(Arrival { id, iteration: to, body, version: 1, created_at_ms: None, change: "inherit", why });
        }
        self.arrive(tx, &rows).await
    }

    async fn of_iteration(&self, tx: &mut Tx, kind: Kind, iteration: i64) -> Result<Vec<Stored>> {
        let mut found: Vec<Stored> = Vec::new();
        loop {
            let after = found.last().map(|last| last.id.number);
            let query = Query { iteration: Some(iteration), after, ..Query::default() };
            let rows = select(self.who.project_id, kind, &query, PAGE_RECORDS_MAX).all(tx).await?;
            if rows.is_empty() {
                return Ok(found);
            }
            for row in &rows {
                found.push(stored(row)?);
            }
        }
    }
}

fn rename(field: &mut Value, from: RecordId, to: RecordId) {
    match field {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        Value::String(text) if RecordId::parse(text) == Some(from) => *text = to.to_string(),
        _ => {}
    }
}
