//! Changing records. Whatever changes one goes through [`put`], so that no rule can be passed by.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::body::{Body, OnDelete, Reference, without};
use super::error::{RecordError, Result};
use super::facts::Facts;
use super::kind::{Kind, NUMBER_MAX, RecordId};
use super::read::find;
use super::row::{Removed, Saved, Stored};
use super::text::{check_text, check_texts};
use super::{ProjectRecords, RECORD_BYTES_MAX, Who, search};
use toolhost_store::db::{Tx, places, sql, sql_of};

/// How an import is called in the history.
pub(super) const CHANGE_IMPORT: &str = "import";

/// Characters of a title that the table's index keeps; the content has it whole.
const TITLE_CHARS: usize = 200;
/// Records that one delete may take along.
const CASCADE_RECORDS_MAX: usize = 10_000;
/// Records looked at before a new dependency is believed to close no circle.
const REACH_BATCH: usize = 500;

/// How a change is meant: what every tool that changes a record takes besides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// Fail unless it is still at this version.
    #[schemars(range(min = 1))]
    pub expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    pub why: Option<String>,
}

/// A record about to be written.
pub(crate) struct Write<'a> {
    pub(crate) id: RecordId,
    pub(crate) iteration: i64,
    pub(crate) body: &'a Value,
    pub(crate) change: &'static str,
    pub(crate) why: Option<&'a str>,
    /// What is there now.
    pub(crate) former: Option<&'a Stored>,
    /// Of its history; 0 for one that never was.
    pub(crate) last_version: i64,
    pub(crate) created_at_ms: i64,
    pub(crate) rules: Rules,
}

/// Which rules a write keeps besides those of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// A state only changes as its machine allows.
    Machine,
    /// It comes with the state it had elsewhere or before.
    AnyState,
}

impl ProjectRecords {
    /// Keeps a new record. `iteration` 0: of the project as a whole.
    pub async fn create<T: Body>(&self, content: T, iteration: i64, why: Option<&str>) -> Result<Saved<T>> {
        let body = serde_json::to_value(&content)?;
        let mut tx = self.begin().await?;
        let stored = self.insert(&mut tx, T::KIND, &body, iteration, "create", why, Rules::Machine).await?;
        tx.commit().await?;
        stored.typed()
    }

    /// Keeps a new record, or answers the one that says the same; the flag is true for a new one.
    pub async fn create_once<T: Body>(&self, content: T, iteration: i64) -> Result<(Saved<T>, bool)> {
        let body = serde_json::to_value(&content)?;
        let mut tx = self.begin().await?;
        let same = match content.unique() {
            Some(text) => same(&mut tx, self.who.project_id, T::KIND, &sameness(&text)).await?,
            None => None,
        };
        if let Some(same) = same {
            let same = find(&mut tx, self.who.project_id, same).await?.ok_or(RecordError::NotFound { id: same })?;
            return Ok((same.typed()?, false));
        }
        let stored = self.insert(&mut tx, T::KIND, &body, iteration, "create", None, Rules::Machine).await?;
        tx.commit().await?;
        Ok((stored.typed()?, true))
    }

    /// Keeps a record made of another one, which can be the source of one of each kind.
    pub async fn promote<T: Body>(&self, content: T, iteration: i64) -> Result<Saved<T>> {
        let body = serde_json::to_value(&content)?;
        let mut tx = self.begin().await?;
        for reference in content.references()? {
            let users = self.users(&mut tx, reference.to).await?;
            if let Some(by) = users.into_iter().find(|user| user.kind == T::KIND) {
                return Err(RecordError::Promoted { id: reference.to, by });
            }
        }
        let stored = self.insert(&mut tx, T::KIND, &body, iteration, "create", None, Rules::Machine).await?;
        tx.commit().await?;
        stored.typed()
    }

    /// Changes what `change` changes. Nothing is written if it fails, or if nothing is different.
    pub async fn update<T: Body>(
        &self,
        id: &str,
        edit: &Edit,
        change: impl FnOnce(&mut T) -> Result<()> + Send,
    ) -> Result<Saved<T>> {
        let id = RecordId::of(T::KIND, id)?;
        let mut tx = self.begin().await?;
        let saved = self.update_in(&mut tx, id, edit, change).await?;
        tx.commit().await?;
        Ok(saved)
    }

    /// As [`ProjectRecords::update`], as a part of something larger.
    pub(super) async fn update_in<T: Body>(
        &self,
        tx: &mut Tx,
        id: RecordId,
        edit: &Edit,
        change: impl FnOnce(&mut T) -> Result<()> + Send,
    ) -> Result<Saved<T>> {
        let former = self.expect(tx, id, edit).await?;
        let mut content: T = former.clone().typed()?.content;
        change(&mut content)?;
        let body = serde_json::to_value(&content)?;
        let word = if content.state() == former.state { "update" } else { "state" };
        self.rewrite(tx, &former, &body, word, edit.why.as_deref()).await?.typed()
    }

    /// Changes the one record that fits, or `new` if none does: what a project or an iteration has one of.
    pub async fn create_or_update<T: Body>(
        &self,
        new: T,
        iteration: i64,
        fits: &super::Query,
        edit: &Edit,
        change: impl FnOnce(&mut T) -> Result<()> + Send,
    ) -> Result<Saved<T>> {
        let mut tx = self.begin().await?;
        let rows = super::read::select(self.who.project_id, T::KIND, fits, 1).all(&mut tx).await?;
        let former = rows.first().map(super::row::stored).transpose()?;
        let stored = match &former {
            None => {
                let mut content = new;
                change(&mut content)?;
                let body = serde_json::to_value(&content)?;
                self.insert(&mut tx, T::KIND, &body, iteration, "create", edit.why.as_deref(), Rules::Machine).await?
            }
            Some(former) => {
                check_version(former, edit)?;
                let mut content: T = former.clone().typed()?.content;
                change(&mut content)?;
                let body = serde_json::to_value(&content)?;
                self.rewrite(&mut tx, former, &body, "update", edit.why.as_deref()).await?
            }
        };
        tx.commit().await?;
        stored.typed()
    }

    /// Deletes a record. While others name it, it stays, unless `cascade` lets it go out of them: as each kind's
    /// references say, they lose the id or go with it.
    pub async fn delete(&self, id: RecordId, edit: &Edit, cascade: bool) -> Result<Removed> {
        let mut tx = self.begin().await?;
        let (removed, _) = self.take_out(&mut tx, id, edit, cascade).await?;
        tx.commit().await?;
        Ok(removed)
    }

    /// What [`delete`](Self::delete) would do now, and the records that would go, the one asked for first. Nothing is changed.
    pub async fn would_delete(&self, id: RecordId, edit: &Edit, cascade: bool) -> Result<(Removed, Vec<Stored>)> {
        // Never committed.
        let mut tx = self.begin().await?;
        self.take_out(&mut tx, id, edit, cascade).await
    }

    async fn take_out(&self, tx: &mut Tx, id: RecordId, edit: &Edit, cascade: bool) -> Result<(Removed, Vec<Stored>)> {
        let first = self.expect(tx, id, edit).await?;
        let mut removed = Removed::default();
        let mut going: VecDeque<Stored> = VecDeque::from([first]);
        let mut gone: Vec<Stored> = Vec::new();
        let mut seen: BTreeSet<RecordId> = BTreeSet::from([id]);
        while let Some(record) = going.pop_front() {
            not_held(&record, self.now_ms())?;
            if gone.len() + removed.unlinked.len() >= CASCADE_RECORDS_MAX {
                return Err(RecordError::TooMany { id, max: CASCADE_RECORDS_MAX });
            }
            let users = self.users(tx, record.id).await?;
            if !cascade && !users.is_empty() {
                return Err(RecordError::InUse { id: record.id, by: users });
            }
            for user in users {
                if seen.contains(&user) {
                    continue;
                }
                let former = self.must_find(tx, user).await?;
                let references = user.kind.facts(&former.body)?.references;
                let rule = |rule| references.iter().any(|one| one.to == record.id && one.on_delete == rule);
                if rule(OnDelete::Refuse) {
                    return Err(RecordError::InUse { id: record.id, by: vec![user] });
                }
                if rule(OnDelete::Cascade) {
                    seen.insert(user);
                    going.push_back(former);
                    continue;
                }
                let body = without(&former.body, &references, record.id);
                self.rewrite(tx, &former, &body, "update", Some(&format!("{} was deleted", record.id))).await?;
                removed.unlinked.push(user.to_string());
            }
            gone.push(record);
        }
        for record in &gone {
            self.clear(tx, record.id).await?;
        }
        for record in &gone {
            self.erase(tx, record, edit.why.as_deref()).await?;
            removed.deleted.push(record.id.to_string());
        }
        let deleted: BTreeSet<&String> = removed.deleted.iter().collect();
        removed.unlinked.sort_unstable();
        removed.unlinked.dedup();
        removed.unlinked.retain(|id| !deleted.contains(id));
        Ok((removed, gone))
    }

    /// Makes a record what it was at a version, deleted ones too. A state that follows a machine stays as it is.
    pub async fn restore(&self, id: RecordId, version: i64, edit: &Edit) -> Result<Stored> {
        let then = self.version(id, version).await?;
        let mut tx = self.begin().await?;
        let why = edit.why.clone().unwrap_or_else(|| format!("version {version}"));
        let mut body = then.content;
        let stored = if let Some(former) = find(&mut tx, self.who.project_id, id).await? {
            check_version(&former, edit)?;
            keep_state(id.kind, &mut body, &former.body);
            self.rewrite(&mut tx, &former, &body, "restore", Some(&why)).await?
        } else {
            let last =
                "SELECT version, iteration, body FROM history WHERE project_id = $1 AND kind = $2 AND number = $3
                 ORDER BY version DESC LIMIT 1";
            let last = sql(last).bind(self.who.project_id).bind(id.kind.as_str()).bind(id.number).one(&mut tx).await?;
            let newest: i64 = last.get("version")?;
            if let Some(expected) = edit.expected_version.filter(|expected| *expected != newest) {
                return Err(RecordError::Stale { id, expected, found: newest });
            }
            let first = "SELECT min(at_ms) AS at_ms FROM history WHERE project_id = $1 AND kind = $2 AND number = $3";
            let first =
                sql(first).bind(self.who.project_id).bind(id.kind.as_str()).bind(id.number).one(&mut tx).await?;
            let as_deleted: String = last.get("body")?;
            keep_state(id.kind, &mut body, &serde_json::from_str(&as_deleted)?);
            let write = Write {
                id,
                iteration: last.get("iteration")?,
                body: &body,
                change: "restore",
                why: Some(&why),
                former: None,
                last_version: newest,
                created_at_ms: first.get("at_ms")?,
                rules: Rules::AnyState,
            };
            put(&mut tx, &self.who, self.now_ms(), &write).await?
        };
        tx.commit().await?;
        Ok(stored)
    }

    /// Begins to change this project.
    pub(crate) async fn begin(&self) -> Result<Tx> {
        let mut tx = self.db.write_lightly().await?;
        tx.lock_project(self.who.project_id).await?;
        Ok(tx)
    }

    pub(crate) async fn must_find(&self, tx: &mut Tx, id: RecordId) -> Result<Stored> {
        find(tx, self.who.project_id, id).await?.ok_or(RecordError::NotFound { id })
    }

    pub(crate) async fn expect(&self, tx: &mut Tx, id: RecordId, edit: &Edit) -> Result<Stored> {
        let found = self.must_find(tx, id).await?;
        check_version(&found, edit)?;
        Ok(found)
    }

    #[expect(clippy::too_many_arguments, reason = "each is a fact of the new record")]
    pub(crate) async fn insert(
        &self,
        tx: &mut Tx,
        kind: Kind,
        body: &Value,
        iteration: i64,
        change: &'static str,
        why: Option<&str>,
        rules: Rules,
    ) -> Result<Stored> {
        let id = kind.id(self.next_number(tx, kind).await?);
        let (last_version, created_at_ms, former) = (0, self.now_ms(), None);
        let write = Write { id, iteration, body, change, why, former, last_version, created_at_ms, rules };
        put(tx, &self.who, self.now_ms(), &write).await
    }

    pub(crate) async fn rewrite(
        &self,
        tx: &mut Tx,
        former: &Stored,
        body: &Value,
        change: &'static str,
        why: Option<&str>,
    ) -> Result<Stored> {
        if *body == former.body {
            return Ok(former.clone());
        }
        let write = Write {
            id: former.id,
            iteration: former.iteration,
            body,
            change,
            why,
            former: Some(former),
            last_version: former.version,
            created_at_ms: former.created_at_ms,
            rules: Rules::Machine,
        };
        put(tx, &self.who, self.now_ms(), &write).await
    }

    /// A new version, also of a content that is the same: something else about the record has changed.
    pub(crate) async fn write_again(
        &self,
        tx: &mut Tx,
        former: &Stored,
        body: &Value,
        change: &'static str,
    ) -> Result<Stored> {
        let write = Write {
            id: former.id,
            iteration: former.iteration,
            body,
            change,
            why: None,
            former: Some(former),
            last_version: former.version,
            created_at_ms: former.created_at_ms,
            rules: Rules::Machine,
        };
        put(tx, &self.who, self.now_ms(), &write).await
    }

    /// A number that this project has never given to this kind.
    pub(crate) async fn next_number(&self, tx: &mut Tx, kind: Kind) -> Result<i64> {
        let number = tx.next_number(self.who.project_id, kind.as_str()).await?;
        if number > NUMBER_MAX {
            let problem = format!("this project has given all numbers of its {}s up to {NUMBER_MAX}", kind.as_str());
            return Err(RecordError::Field { field: "id".to_owned(), problem });
        }
        Ok(number)
    }

    /// The records that name this one, itself left out.
    pub(crate) async fn users(&self, tx: &mut Tx, id: RecordId) -> Result<Vec<RecordId>> {
        // Sorted here: asked for an order, SQLite would walk the whole table in it.
        let text = "SELECT from_kind, from_number FROM link WHERE project_id = $1 AND to_kind = $2 AND to_number = $3";
        let mut users = Vec::new();
        for row in sql(text).bind(self.who.project_id).bind(id.kind.as_str()).bind(id.number).all(tx).await? {
            let kind: String = row.get("from_kind")?;
            if let Some(kind) = Kind::parse(&kind) {
                users.push(kind.id(row.get("from_number")?));
            }
        }
        users.sort_unstable();
        users.dedup();
        users.retain(|user| *user != id);
        Ok(users)
    }

    /// Takes away what the tables know of a record besides itself.
    pub(super) async fn clear(&self, tx: &mut Tx, id: RecordId) -> Result<()> {
        let links = sql("DELETE FROM link WHERE project_id = $1 AND from_kind = $2 AND from_number = $3");
        links.bind(self.who.project_id).bind(id.kind.as_str()).bind(id.number).run(tx).await?;
        search::remove_terms(tx, self.who.project_id, id).await
    }

    /// Deletes the row; history keeps what it was.
    pub(super) async fn erase(&self, tx: &mut Tx, record: &Stored, why: Option<&str>) -> Result<()> {
        let (project, kind, number) = (self.who.project_id, record.id.kind.as_str(), record.id.number);
        let delete = sql("DELETE FROM record WHERE project_id = $1 AND kind = $2 AND number = $3");
        delete.bind(project).bind(kind).bind(number).run(tx).await?;
        let now = self.now_ms();
        write_history(tx, &self.who, now, record.id, record.version + 1, record.iteration, "delete", why, &record.body)
            .await
    }
}

/// Gives a content the state that another version has, where a machine says how it may change, and the times that tell
/// how it got there.
fn keep_state(kind: Kind, body: &mut Value, as_in: &Value) {
    let (Some(machine), Some(fields)) = (kind.machine(), body.as_object_mut()) else { return };
    for field in [machine.field, "startedAtMs", "completedAtMs"] {
        match as_in.get(field) {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.remove(field),
        };
    }
}

fn check_version(found: &Stored, edit: &Edit) -> Result<()> {
    match edit.expected_version {
        Some(expected) if expected != found.version => {
            Err(RecordError::Stale { id: found.id, expected, found: found.version })
        }
        _ => Ok(()),
    }
}

/// The record of this kind that says the same.
async fn same(tx: &mut Tx, project: i64, kind: Kind, digest: &str) -> Result<Option<RecordId>> {
    let text = "SELECT number FROM record WHERE project_id = $1 AND kind = $2 AND digest = $3 ORDER BY number LIMIT 1";
    let row = sql(text).bind(project).bind(kind.as_str()).bind(digest).optional(tx).await?;
    Ok(row.map(|row| row.get("number")).transpose()?.map(|number| kind.id(number)))
}

/// What says something else than before must not say what another one says already. Two that came so are left alone.
async fn check_unique(tx: &mut Tx, project: i64, write: &Write<'_>, facts: &Facts) -> Result<()> {
    let Some(digest) = facts.unique.as_deref().map(sameness) else { return Ok(()) };
    if let Some(former) = write.former {
        let said = write.id.kind.facts(&former.body)?.unique;
        if said.as_deref().map(sameness).as_ref() == Some(&digest) {
            return Ok(());
        }
    }
    match same(tx, project, write.id.kind, &digest).await? {
        Some(other) if other != write.id => Err(RecordError::Exists { id: other }),
        _ => Ok(()),
    }
}

/// What somebody works on is not taken away under their hands.
fn not_held(record: &Stored, now_ms: i64) -> Result<()> {
    match &record.holder {
        Some(holder) if holder.lease_until_ms > now_ms => Err(RecordError::Held {
            id: record.id,
            holder: holder.name.clone(),
            left_ms: holder.lease_until_ms.saturating_sub(now_ms),
        }),
        _ => Ok(()),
    }
}

/// Writes a record: row, references, history, and what is counted or searched.
pub(crate) async fn put(tx: &mut Tx, who: &Who, now_ms: i64, write: &Write<'_>) -> Result<Stored> {
    let facts = check_content(write)?;
    check_state(write, &facts)?;
    check_unique(tx, who.project_id, write, &facts).await?;
    let version = write.last_version + 1;
    put_row(tx, who, now_ms, write, &facts, version).await?;
    let waits_on = put_links(tx, who.project_id, write.id, &facts.references, write.former.is_some()).await?;
    write_history(tx, who, now_ms, write.id, version, write.iteration, write.change, write.why, &facts.body).await?;
    if write.id.kind.is_memory() {
        search::index(tx, who.project_id, write.id, write.iteration, write.created_at_ms, &facts.words).await?;
    }
    let former = write.former;
    let held = former.filter(|_| !is_nobodys(write.id.kind, &facts.state));
    Ok(Stored {
        bytes: serde_json::to_string(&facts.body)?.len(),
        id: write.id,
        version,
        iteration: write.iteration,
        state: facts.state,
        body: facts.body,
        waits_on: waits_on.unwrap_or(former.map_or(0, |former| former.waits_on)),
        holder_key: held.and_then(|held| held.holder_key.clone()),
        holder: held.and_then(|held| held.holder.clone()),
        created_at_ms: write.created_at_ms,
        updated_at_ms: now_ms,
    })
}

/// The content as its type reads it, with nothing in it that a database or a reader chokes on.
pub(crate) fn check_content(write: &Write<'_>) -> Result<Facts> {
    check_texts(write.body, "")?;
    let bytes = serde_json::to_string(write.body)?.len();
    if bytes > RECORD_BYTES_MAX {
        let what = format!("the {}", write.id.kind.as_str());
        return Err(RecordError::TooLarge { what, bytes, max: RECORD_BYTES_MAX });
    }
    write.id.kind.facts(write.body)
}

fn check_state(write: &Write<'_>, facts: &Facts) -> Result<()> {
    let (Some(machine), Rules::Machine) = (write.id.kind.machine(), write.rules) else { return Ok(()) };
    match write.former {
        None if facts.state != machine.start() => {
            Err(RecordError::Start { kind: write.id.kind, start: machine.start(), found: facts.state.clone() })
        }
        Some(former) if former.state != facts.state && !machine.next(&former.state).contains(&facts.state.as_str()) => {
            Err(RecordError::Transition {
                id: write.id,
                from: former.state.clone(),
                to: facts.state.clone(),
                allowed: machine.next(&former.state),
            })
        }
        _ => Ok(()),
    }
}

pub(crate) async fn put_row(
    tx: &mut Tx,
    who: &Who,
    now_ms: i64,
    write: &Write<'_>,
    facts: &Facts,
    version: i64,
) -> Result<()> {
    let text = if write.former.is_some() {
        "UPDATE record SET version = $4, iteration = $5, title = $6, state = $7, body = $8, digest = $9,
             effort_minutes = $10, dangling = $11, updated_at_ms = $12
         WHERE project_id = $1 AND kind = $2 AND number = $3"
    } else {
        "INSERT INTO record (project_id, kind, number, version, iteration, title, state, body, digest, effort_minutes,
             dangling, updated_at_ms, created_at_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
    };
    let title: String = facts.title.chars().take(TITLE_CHARS).collect();
    let mut query = sql(text)
        .bind(who.project_id)
        .bind(write.id.kind.as_str())
        .bind(write.id.number)
        .bind(version)
        .bind(write.iteration)
        .bind(title)
        .bind(&facts.state)
        .bind(serde_json::to_string(&facts.body)?)
        .bind(facts.unique.as_deref().map(sameness))
        .bind(facts.effort_minutes)
        .bind(facts.dangling)
        .bind(now_ms);
    if write.former.is_none() {
        query = query.bind(write.created_at_ms);
    }
    query.run(tx).await?;
    let state_changed = write.former.is_some_and(|former| former.state != facts.state);
    if write.id.kind == Kind::Task && state_changed {
        count_waits_of_dependents(tx, who.project_id, write.id).await?;
        if is_nobodys(write.id.kind, &facts.state) {
            let free = "UPDATE record SET holder = NULL, holder_name = NULL, lease_until_ms = NULL
                 WHERE project_id = $1 AND kind = $2 AND number = $3";
            sql(free).bind(who.project_id).bind(write.id.kind.as_str()).bind(write.id.number).run(tx).await?;
        }
    }
    Ok(())
}

/// Nobody holds what is done or stuck.
fn is_nobodys(kind: Kind, state: &str) -> bool {
    kind == Kind::Task && matches!(state, "completed" | "blocked")
}

/// Makes the table of references say what the content says. Both ends must exist; tasks and features in no circle.
/// Answers how many tasks a task waits for, if that may have changed.
pub(crate) async fn put_links(
    tx: &mut Tx,
    project: i64,
    id: RecordId,
    references: &[Reference],
    was_there: bool,
) -> Result<Option<i64>> {
    let mut present: BTreeSet<(String, RecordId)> = BTreeSet::new();
    if was_there {
        let text =
            "SELECT field, to_kind, to_number FROM link WHERE project_id = $1 AND from_kind = $2 AND from_number = $3";
        for row in sql(text).bind(project).bind(id.kind.as_str()).bind(id.number).all(tx).await? {
            let kind: String = row.get("to_kind")?;
            if let Some(kind) = Kind::parse(&kind) {
                present.insert((row.get("field")?, kind.id(row.get("to_number")?)));
            }
        }
    }
    let wanted: BTreeSet<(String, RecordId)> = references.iter().map(|one| (one.field.to_owned(), one.to)).collect();
    let mut dependencies_changed = false;
    for (field, to) in present.difference(&wanted) {
        dependencies_changed |= field == "dependencies";
        let text = "DELETE FROM link WHERE project_id = $1 AND from_kind = $2 AND from_number = $3 AND field = $4
             AND to_kind = $5 AND to_number = $6";
        let delete = sql(text).bind(project).bind(id.kind.as_str()).bind(id.number).bind(field);
        delete.bind(to.kind.as_str()).bind(to.number).run(tx).await?;
    }
    let new: Vec<&(String, RecordId)> = wanted.difference(&present).collect();
    let depends_on: Vec<RecordId> =
        new.iter().filter(|(field, to)| field == "dependencies" && to.kind == id.kind).map(|(_, to)| *to).collect();
    dependencies_changed |= !depends_on.is_empty();
    exist(tx, project, &new).await?;
    // What is new has nothing that depends on it yet, so only itself could close a circle.
    if depends_on.contains(&id) {
        return Err(RecordError::Cycle { chain: vec![id, id] });
    }
    if was_there && !depends_on.is_empty() {
        no_circle(tx, project, id, &depends_on).await?;
    }
    insert_links(tx, project, id, &new).await?;
    if id.kind == Kind::Task && dependencies_changed {
        return Ok(Some(count_waits(tx, project, id).await?));
    }
    Ok(None)
}

/// Links a record that arrived with many others: no circle is looked for.
pub(crate) async fn link_new(tx: &mut Tx, project: i64, id: RecordId, references: &[Reference]) -> Result<()> {
    let wanted: BTreeSet<(String, RecordId)> = references.iter().map(|one| (one.field.to_owned(), one.to)).collect();
    let wanted: Vec<&(String, RecordId)> = wanted.iter().collect();
    exist(tx, project, &wanted).await?;
    insert_links(tx, project, id, &wanted).await
}

async fn insert_links(tx: &mut Tx, project: i64, id: RecordId, links: &[&(String, RecordId)]) -> Result<()> {
    for batch in links.chunks(REACH_BATCH) {
        let rows: Vec<String> =
            (0..batch.len()).map(|n| format!("($1, $2, $3, ${}, ${}, ${})", 3 * n + 4, 3 * n + 5, 3 * n + 6)).collect();
        let text = format!(
            "INSERT INTO link (project_id, from_kind, from_number, field, to_kind, to_number) VALUES {}",
            rows.join(", ")
        );
        let mut query = sql_of(text).bind(project).bind(id.kind.as_str()).bind(id.number);
        for (field, to) in batch {
            query = query.bind(field).bind(to.kind.as_str()).bind(to.number);
        }
        query.run(tx).await?;
    }
    Ok(())
}

/// Every record that is named must be there.
async fn exist(tx: &mut Tx, project: i64, named: &[&(String, RecordId)]) -> Result<()> {
    let mut by_kind: BTreeMap<Kind, Vec<i64>> = BTreeMap::new();
    for (_, to) in named {
        by_kind.entry(to.kind).or_default().push(to.number);
    }
    for (kind, numbers) in by_kind {
        let mut there: BTreeSet<i64> = BTreeSet::new();
        for batch in numbers.chunks(REACH_BATCH) {
            let places = places(3, batch.len());
            let text =
                format!("SELECT number FROM record WHERE project_id = $1 AND kind = $2 AND number IN ({places})");
            let mut query = sql_of(text).bind(project).bind(kind.as_str());
            for number in batch {
                query = query.bind(*number);
            }
            for row in query.all(tx).await? {
                there.insert(row.get("number")?);
            }
        }
        if let Some((field, to)) = named.iter().find(|(_, to)| to.kind == kind && !there.contains(&to.number)) {
            return Err(RecordError::Reference { field: field.clone(), to: *to });
        }
    }
    Ok(())
}

/// Follows the dependencies of what is new; whoever comes back to `id` has found a circle, which is named.
async fn no_circle(tx: &mut Tx, project: i64, id: RecordId, depends_on: &[RecordId]) -> Result<()> {
    let mut came_from: BTreeMap<i64, i64> = depends_on.iter().map(|to| (to.number, id.number)).collect();
    let mut edge: Vec<i64> = came_from.keys().copied().collect();
    while !edge.is_empty() {
        let mut next = Vec::new();
        for batch in edge.chunks(REACH_BATCH) {
            let text = format!(
                "SELECT from_number, to_number FROM link WHERE project_id = $1 AND from_kind = $2
                 AND field = 'dependencies' AND from_number IN ({})",
                places(3, batch.len())
            );
            let mut query = sql_of(text).bind(project).bind(id.kind.as_str());
            for number in batch {
                query = query.bind(*number);
            }
            for row in query.all(tx).await? {
                let (from, to): (i64, i64) = (row.get("from_number")?, row.get("to_number")?);
                if to == id.number {
                    return Err(RecordError::Cycle { chain: chain(id, from, &came_from) });
                }
                if let std::collections::btree_map::Entry::Vacant(entry) = came_from.entry(to) {
                    entry.insert(from);
                    next.push(to);
                }
            }
        }
        edge = next;
    }
    Ok(())
}

/// From `id` over what it depends on back to itself.
fn chain(id: RecordId, last: i64, came_from: &BTreeMap<i64, i64>) -> Vec<RecordId> {
    let mut chain = vec![id, id.kind.id(last)];
    let mut at = last;
    while let Some(before) = came_from.get(&at).filter(|before| **before != id.number) {
        at = *before;
        chain.push(id.kind.id(at));
    }
    chain.push(id);
    chain.reverse();
    chain
}

/// Sets how many of its dependencies a task still waits for.
const COUNT_WAITS: &str = "UPDATE record SET waits_on = (
        SELECT count(*) FROM link l JOIN record d
            ON d.project_id = l.project_id AND d.kind = l.to_kind AND d.number = l.to_number
        WHERE l.project_id = record.project_id AND l.from_kind = 'task' AND l.from_number = record.number
            AND l.field = 'dependencies' AND d.state <> 'completed')
    WHERE project_id = $1 AND kind = 'task' AND number ";

async fn count_waits(tx: &mut Tx, project: i64, task: RecordId) -> Result<i64> {
    let text = format!("{COUNT_WAITS} = $2 RETURNING waits_on");
    Ok(sql_of(text).bind(project).bind(task.number).one(tx).await?.get("waits_on")?)
}

async fn count_waits_of_dependents(tx: &mut Tx, project: i64, task: RecordId) -> Result<()> {
    let text = format!(
        "{COUNT_WAITS} IN (SELECT from_number FROM link WHERE project_id = $1 AND to_kind = 'task' AND to_number = $2
             AND from_kind = 'task' AND field = 'dependencies')"
    );
    sql_of(text).bind(project).bind(task.number).run(tx).await?;
    Ok(())
}

/// Counts anew for all tasks: after an import.
pub(crate) async fn count_all_waits(tx: &mut Tx, project: i64) -> Result<()> {
    sql_of(format!("{COUNT_WAITS} > 0")).bind(project).run(tx).await?;
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "each is a column")]
pub(crate) async fn write_history(
    tx: &mut Tx,
    who: &Who,
    now_ms: i64,
    id: RecordId,
    version: i64,
    iteration: i64,
    change: &str,
    why: Option<&str>,
    body: &Value,
) -> Result<()> {
    for (field, text) in [("why", why), ("by", Some(who.name.as_str())), ("callId", Some(&who.call_id))] {
        check_text(text.unwrap_or_default(), field)?;
    }
    let text = "INSERT INTO history (project_id, kind, number, version, iteration, at_ms, account_id, actor, call_id,
             change, why, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    sql(text)
        .bind(who.project_id)
        .bind(id.kind.as_str())
        .bind(id.number)
        .bind(version)
        .bind(iteration)
        .bind(now_ms)
        .bind(who.user_id)
        .bind(&who.name)
        .bind(&who.call_id)
        .bind(change)
        .bind(why.map(str::to_owned))
        .bind(serde_json::to_string(body)?)
        .run(tx)
        .await?;
    Ok(())
}

/// What two texts have in common that say the same: their words, whatever stands between them.
pub(crate) fn sameness(text: &str) -> String {
    let folded: String = text.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let words: Vec<&str> = folded.split_whitespace().collect();
    // A text without any word is only the same as itself.
    hex::encode(Sha256::digest(if words.is_empty() { text.to_owned() } else { words.join(" ") }))
}
