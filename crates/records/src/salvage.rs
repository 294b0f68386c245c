//! What a part of an export names and does not bring.
//!
//! A record that is missing counts as deleted along with its uses: a reference that a record can do without is removed
//! from it, and a record that cannot exist without it is deleted as soon as it has come. The history keeps both as they
//! were.

use std::collections::BTreeSet;

use super::ProjectRecords;
use super::body::{OnDelete, Reference, without};
use super::error::Result;
use super::kind::{Kind, RecordId};
use super::write::{CHANGE_IMPORT, Rules, Write, check_content, put_row, write_history};
use toolhost_store::db::{Tx, sql};

/// Omissions that are named; more are counted.
const OMISSIONS_SHOWN: usize = 20;

/// A record that has come, and what it names.
struct Comer {
    id: RecordId,
    iteration: i64,
    references: Vec<Reference>,
}

impl Comer {
    /// What it cannot exist without and is not there: the field and the record.
    fn misses(&self, there: &BTreeSet<RecordId>) -> Option<(&'static str, RecordId)> {
        let iteration = (self.iteration != 0).then(|| ("iteration", Kind::Iteration.id(self.iteration)));
        let needed = self.references.iter().filter(|reference| reference.on_delete != OnDelete::Unlink);
        let mut needed = iteration.into_iter().chain(needed.map(|reference| (reference.field, reference.to)));
        needed.find(|(_, to)| !there.contains(to))
    }
}

/// What was left out, one sentence each.
#[derive(Default)]
struct Omissions {
    notes: Vec<String>,
    more: usize,
}

impl Omissions {
    fn add(&mut self, note: String) {
        if self.notes.len() < OMISSIONS_SHOWN {
            self.notes.push(note);
        } else {
            self.more += 1;
        }
    }

    fn told(mut self) -> Vec<String> {
        if self.more > 0 {
            self.notes.push(format!("{} more references or records were left out", self.more));
        }
        self.notes
    }
}

impl ProjectRecords {
    /// Leaves out of what arrived whatever names a record that is not here. Answers what that was; `arrived` keeps the
    /// records that stay.
    pub(super) async fn leave_out(&self, tx: &mut Tx, arrived: &mut Vec<RecordId>) -> Result<Vec<String>> {
        let mut omissions = Omissions::default();
        let mut there = self.all_ids(tx).await?;
        let mut comers = Vec::with_capacity(arrived.len());
        for id in arrived.iter() {
            let record = self.must_find(tx, *id).await?;
            let references = id.kind.facts(&record.body)?.references;
            comers.push(Comer { id: *id, iteration: record.iteration, references });
        }
        // A record that goes may be what another one cannot do without.
        loop {
            let mut stay = Vec::with_capacity(comers.len());
            let mut gone = Vec::new();
            for comer in comers {
                match comer.misses(&there) {
                    Some(missing) => gone.push((comer, missing)),
                    None => stay.push(comer),
                }
            }
            comers = stay;
            if gone.is_empty() {
                break;
            }
            for (comer, (field, to)) in gone {
                there.remove(&comer.id);
                let record = self.must_find(tx, comer.id).await?;
                self.clear(tx, comer.id).await?;
                self.erase(
                    tx,
                    &record,
                    Some(&format!("left out of an import: `{field}` names {to}, which is missing")),
                )
                .await?;
                omissions.add(format!("{} was left out: its `{field}` names {to}, which is missing", comer.id));
            }
        }
        for comer in &comers {
            self.remove_dangling(tx, comer, &there, &mut omissions).await?;
        }
        *arrived = comers.into_iter().map(|comer| comer.id).collect();
        self.forget_missing_current(tx, &there, &mut omissions).await?;
        Ok(omissions.told())
    }

    /// Writes a version of the record without what it can do without.
    async fn remove_dangling(
        &self,
        tx: &mut Tx,
        comer: &Comer,
        there: &BTreeSet<RecordId>,
        omissions: &mut Omissions,
    ) -> Result<()> {
        let missing: Vec<&Reference> =
            comer.references.iter().filter(|reference| !there.contains(&reference.to)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let record = self.must_find(tx, comer.id).await?;
        let mut body = record.body.clone();
        for reference in &missing {
            body = without(&body, &comer.references, reference.to);
            let (field, to) = (reference.field, reference.to);
            omissions.add(format!("{} was imported without {to} in its `{field}`: {to} is missing", comer.id));
        }
        let names: Vec<String> = missing.iter().map(|reference| reference.to.to_string()).collect();
        let why = format!("imported without what was missing: {}", names.join(", "));
        let write = Write {
            id: comer.id,
            iteration: record.iteration,
            body: &body,
            change: CHANGE_IMPORT,
            why: Some(&why),
            former: Some(&record),
            last_version: record.version,
            created_at_ms: record.created_at_ms,
            rules: Rules::AnyState,
        };
        let facts = check_content(&write)?;
        let (now, version) = (self.now_ms(), record.version + 1);
        // Its links are made with those of all others.
        put_row(tx, &self.who, now, &write, &facts, version).await?;
        write_history(tx, &self.who, now, comer.id, version, record.iteration, write.change, write.why, &facts.body)
            .await
    }

    async fn forget_missing_current(
        &self,
        tx: &mut Tx,
        there: &BTreeSet<RecordId>,
        omissions: &mut Omissions,
    ) -> Result<()> {
        let text = "SELECT current_iteration FROM project WHERE id = $1";
        let current: Option<i64> = sql(text).bind(self.who.project_id).one(tx).await?.get("current_iteration")?;
        let Some(id) = current.filter(|number| *number != 0).map(|number| Kind::Iteration.id(number)) else {
            return Ok(());
        };
        if !there.contains(&id) {
            let text = "UPDATE project SET current_iteration = NULL WHERE id = $1";
            sql(text).bind(self.who.project_id).run(tx).await?;
            omissions.add(format!("no iteration is the current one: {id} is missing"));
        }
        Ok(())
    }

    async fn all_ids(&self, tx: &mut Tx) -> Result<BTreeSet<RecordId>> {
        let mut there = BTreeSet::new();
        for row in
            sql("SELECT kind, number FROM record WHERE project_id = $1").bind(self.who.project_id).all(tx).await?
        {
            if let Some(kind) = Kind::parse(&row.get::<String>("kind")?) {
                there.insert(kind.id(row.get("number")?));
            }
        }
        Ok(there)
    }
}
