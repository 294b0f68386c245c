//! What has been changed: by whom, when, and how to take it back.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::error::Result;
use super::{BATCH, ProjectPackage, set_id};
use crate::change::Change;
use toolhost_store::db::{Row, Tx, places, sql, sql_of};

/// Changes of one answer.
const DEEDS_MAX: i64 = 200;
/// Files of one change that a list names.
const FILES_SHOWN: i64 = 20;
/// Objects of one change that a list names.
const OBJECTS_SHOWN: usize = 20;
/// Change sets of a session, and changes of the package since, that its context names: the open ones and the last ones.
const STANDING_MAX: i64 = 10;

/// One change of the package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deed {
    /// Its number: they grow.
    pub moment: i64,
    /// `new`, `import`, `apply` or `undo`.
    pub kind: String,
    pub by: String,
    pub call_id: String,
    /// The change set that was applied, such as `cs-3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_set_id: Option<String>,
    /// The operations of it that were chosen, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<i64>>,
    /// The change that this one took back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<i64>,
    /// The change that took this one back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<i64>,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
    /// Paths of files that became others, the first of them; of a first import, none.
    pub files: Vec<String>,
    /// How many files became others.
    pub file_count: i64,
    /// What became of which objects by the apply of a change set, the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ChangedObject>,
    /// How many objects that were.
    pub object_count: i64,
    /// The sets that were applied with it, because it is based on them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied_with: Vec<String>,
}

/// An object that a change of the package has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedObject {
    /// Such as `step:main/step-03`.
    pub object: String,
    pub change: Change,
}

impl ProjectPackage {
    /// The last changes, the newest first.
    pub async fn history(&self) -> Result<Vec<Deed>> {
        let mut tx = self.db.snapshot().await?;
        self.head(&mut tx).await?;
        let text = format!("{SELECT} WHERE project_id = $1 ORDER BY moment DESC LIMIT {DEEDS_MAX}");
        let rows = sql_of(text).bind(self.who.project_id).all(&mut tx).await?;
        let mut deeds = rows.iter().map(deed).collect::<Result<Vec<Deed>>>()?;
        let Some(oldest) = deeds.last().map(|deed| deed.moment) else { return Ok(deeds) };
        let mut files = self.changed_files(&mut tx, oldest).await?;
        let sets: Vec<Option<i64>> = rows.iter().map(|row| Ok(row.get("set_number")?)).collect::<Result<_>>()?;
        let applied = self.applied(&mut tx, &sets.iter().flatten().copied().collect()).await?;
        for (deed, set) in deeds.iter_mut().zip(sets) {
            (deed.files, deed.file_count) = files.remove(&deed.moment).unwrap_or_default();
            if let ("apply", Some(set)) = (&*deed.kind, set) {
                deed.objects = changed_objects(&applied, set, deed.operations.as_deref());
                deed.object_count = i64::try_from(deed.objects.len()).unwrap_or(i64::MAX);
                deed.objects.truncate(OBJECTS_SHOWN);
                let mut with: BTreeSet<i64> =
                    applied.iter().filter(|one| one.with == Some(set)).map(|one| one.set).collect();
                with.remove(&set);
                deed.applied_with = with.into_iter().map(set_id).collect();
            }
        }
        Ok(deeds)
    }

    /// What a session has staged, what has become of it, and what was changed of the package since it began to; none where
    /// it has staged nothing. Of more than are named, the number.
    pub(super) async fn standing(&self, tx: &mut Tx, session: &str) -> Result<Option<Vec<(&'static str, Value)>>> {
        let (project, overlay) = (self.who.project_id, self.overlay(session));
        let text = "SELECT number, state, blocked_by, applied_with FROM change_set
             WHERE project_id = $1 AND overlay = $2
             ORDER BY CASE WHEN state IN ('staged', 'validated', 'blocked') THEN 0 ELSE 1 END, number DESC LIMIT $3";
        let mut rows = Vec::new();
        for row in sql(text).bind(project).bind(&overlay).bind(STANDING_MAX).all(tx).await? {
            rows.push((row.get::<i64>("number")?, row));
        }
        rows.sort_by_key(|(number, _)| *number);
        let mut sets = Vec::new();
        for (number, row) in rows {
            let mut set = json!({ "changeSetId": set_id(number), "status": row.get::<String>("state")? });
            let (on, with): (Option<i64>, Option<i64>) = (row.get("blocked_by")?, row.get("applied_with")?);
            for (field, other) in [("madeOnRejected", on), ("appliedWith", with.filter(|with| *with != number))] {
                if let Some(other) = other {
                    set[field] = json!(set_id(other));
                }
            }
            sets.push(set);
        }
        if sets.is_empty() {
            return Ok(None);
        }
        const SINCE: &str = "project_id = $1 AND created_at_ms >= (SELECT MIN(created_at_ms) FROM change_set
                 WHERE project_id = $1 AND overlay = $2)";
        let text = format!("{SELECT} WHERE {SINCE} ORDER BY moment DESC LIMIT {STANDING_MAX}");
        let rows = sql_of(text).bind(project).bind(&overlay).all(tx).await?;
        let mut changes = Vec::new();
        for row in rows.iter().rev() {
            let deed = deed(row)?;
            let files = self.changed_paths(tx, deed.moment, FILES_SHOWN).await?;
            let mut change = json!({ "change": deed.moment, "kind": deed.kind, "by": deed.by, "files": files });
            if let Some(id) = deed.change_set_id {
                change["changeSetId"] = json!(id);
            }
            if let Some(undoes) = deed.undoes {
                change["undoes"] = json!(undoes);
            }
            changes.push(change);
        }
        let text = "SELECT COUNT(*) AS count FROM change_set WHERE project_id = $1 AND overlay = $2";
        let all_sets: i64 = sql(text).bind(project).bind(&overlay).one(tx).await?.get("count")?;
        let text = format!("SELECT COUNT(*) AS count FROM package_change WHERE {SINCE}");
        let all_changes: i64 = sql_of(text).bind(project).bind(&overlay).one(tx).await?.get("count")?;
        let left_out = |all: i64, named: usize| all - i64::try_from(named).unwrap_or(i64::MAX);
        let more = [
            ("change_sets_left_out", left_out(all_sets, sets.len())),
            ("changes_left_out", left_out(all_changes, changes.len())),
        ];
        let mut standing = vec![("change_sets", json!(sets)), ("changes_since", json!(changes))];
        standing.extend(more.into_iter().filter(|(_, count)| *count > 0).map(|(field, count)| (field, json!(count))));
        Ok(Some(standing))
    }

    pub(super) async fn deed_at(&self, tx: &mut Tx, moment: i64) -> Result<Option<Deed>> {
        let text = format!("{SELECT} WHERE project_id = $1 AND moment = $2");
        let row = sql_of(text).bind(self.who.project_id).bind(moment).optional(tx).await?;
        let Some(row) = row else { return Ok(None) };
        let mut deed = deed(&row)?;
        deed.files = self.changed_paths(tx, moment, i64::MAX).await?;
        deed.file_count = i64::try_from(deed.files.len()).unwrap_or(i64::MAX);
        Ok(Some(deed))
    }

    /// The later changes of these files that stand, the newest first.
    pub(super) async fn changed_since(&self, tx: &mut Tx, moment: i64, paths: &BTreeSet<&str>) -> Result<Vec<i64>> {
        let text = "SELECT moment FROM package_change WHERE project_id = $1 AND moment > $2 AND undone_by IS NULL
             ORDER BY moment DESC LIMIT $3";
        let query = sql(text).bind(self.who.project_id).bind(moment).bind(DEEDS_MAX);
        let mut since = Vec::new();
        for row in query.all(tx).await? {
            let later: i64 = row.get("moment")?;
            let changed = self.changed_paths(tx, later, i64::MAX).await?;
            if changed.iter().any(|path| paths.contains(path.as_str())) {
                since.push(later);
            }
        }
        Ok(since)
    }

    /// What the applies of these sets, each with the sets that were applied with it, made of which objects.
    async fn applied(&self, tx: &mut Tx, sets: &BTreeSet<i64>) -> Result<Vec<Applied>> {
        let sets: Vec<i64> = sets.iter().copied().collect();
        let mut applied = Vec::new();
        for batch in sets.chunks(BATCH) {
            let these = places(2, batch.len());
            let text = format!(
                "SELECT o.set_number AS set_number, s.applied_with AS applied_with, o.position AS position, o.object AS object,
                     CASE WHEN o.base IS NULL THEN 'added' WHEN o.wanted IS NULL THEN 'deleted' ELSE 'modified' END AS change
                 FROM change_operation o JOIN change_set s ON s.project_id = o.project_id AND s.number = o.set_number
                 WHERE o.project_id = $1 AND (o.set_number IN ({these}) OR s.applied_with IN ({these}))
                     AND o.state IN ('applied', 'replaced')
                 ORDER BY o.set_number, o.position"
            );
            let query = batch.iter().fold(sql_of(text).bind(self.who.project_id), |query, set| query.bind(*set));
            for row in query.all(tx).await? {
                applied.push(Applied {
                    set: row.get("set_number")?,
                    with: row.get("applied_with")?,
                    position: row.get("position")?,
                    object: row.get("object")?,
                    change: row.get("change")?,
                });
            }
        }
        Ok(applied)
    }

    /// Of each change from a moment on the files, the first of them, and how many there are.
    async fn changed_files(&self, tx: &mut Tx, oldest: i64) -> Result<BTreeMap<i64, (Vec<String>, i64)>> {
        let text = "SELECT moment, path, count FROM (
                 SELECT moment, path, ROW_NUMBER() OVER (PARTITION BY moment ORDER BY path) AS place,
                     COUNT(*) OVER (PARTITION BY moment) AS count
                 FROM package_former WHERE project_id = $1 AND moment >= $2) numbered
             WHERE place <= $3 ORDER BY moment, place";
        let query = sql(text).bind(self.who.project_id).bind(oldest).bind(FILES_SHOWN);
        let mut files: BTreeMap<i64, (Vec<String>, i64)> = BTreeMap::new();
        for row in query.all(tx).await? {
            let (named, count) = files.entry(row.get("moment")?).or_default();
            named.push(row.get("path")?);
            *count = row.get("count")?;
        }
        Ok(files)
    }

    async fn changed_paths(&self, tx: &mut Tx, moment: i64, most: i64) -> Result<Vec<String>> {
        let text = "SELECT path FROM package_former WHERE project_id = $1 AND moment = $2 ORDER BY path LIMIT $3";
        let rows = sql(text).bind(self.who.project_id).bind(moment).bind(most).all(tx).await?;
        rows.iter().map(|row| Ok(row.get("path")?)).collect()
    }
}

/// An operation that was applied.
struct Applied {
    set: i64,
    /// The set whose apply brought it.
    with: Option<i64>,
    position: i64,
    object: String,
    change: String,
}

/// What the apply of a set, or of these operations of it, made of which objects, with the sets that were applied with it.
fn changed_objects(applied: &[Applied], set: i64, operations: Option<&[i64]>) -> Vec<ChangedObject> {
    let mut changes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in applied.iter().filter(|one| one.set == set || one.with == Some(set)) {
        if one.set == set && operations.is_some_and(|chosen| !chosen.contains(&one.position)) {
            continue;
        }
        changes.entry(&one.object).or_default().push(&one.change);
    }
    let as_one = |(object, changes): (&str, Vec<&str>)| {
        let change = match (*changes.first()?, *changes.last()?) {
            ("added", "deleted") => return None,
            ("added", _) => Change::Added,
            (_, "deleted") => Change::Deleted,
            _ => Change::Modified,
        };
        Some(ChangedObject { object: object.to_owned(), change })
    };
    changes.into_iter().filter_map(as_one).collect()
}

const SELECT: &str = "SELECT moment, kind, by_name, call_id, set_number, operations, undoes, undone_by, created_at_ms
    FROM package_change";

fn deed(row: &Row) -> Result<Deed> {
    let operations: Option<String> = row.get("operations")?;
    let set: Option<i64> = row.get("set_number")?;
    Ok(Deed {
        moment: row.get("moment")?,
        kind: row.get("kind")?,
        by: row.get("by_name")?,
        call_id: row.get("call_id")?,
        change_set_id: set.map(set_id),
        operations: operations.map(|text| serde_json::from_str(&text)).transpose()?,
        undoes: row.get("undoes")?,
        undone_by: row.get("undone_by")?,
        created_at_ms: row.get("created_at_ms")?,
        files: Vec::new(),
        file_count: 0,
        objects: Vec::new(),
        object_count: 0,
        applied_with: Vec::new(),
    })
}
