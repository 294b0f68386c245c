//! Reading records: one, a page, who refers to whom, and what was before.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::body::Body;
use super::error::{RecordError, Result};
use super::kind::{Kind, RecordId};
use super::row::{Saved, Stored, columns, stored};
use super::text::check_text;
use super::{PAGE_BYTES_MAX, PAGE_RECORDS_MAX, ProjectRecords, READ_RECORDS};
use toolhost_store::db::{Sql, Tx, places, sql, sql_of};

/// Which records of a kind, in the order of their numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// 0 for those of the project as a whole; `None` for all.
    pub iteration: Option<i64>,
    pub state: Option<String>,
    /// Only records that name this one.
    pub names: Option<RecordId>,
    pub title: Option<String>,
    /// Only records with this id in the system they came from.
    pub external_id: Option<String>,
    /// Only tasks that wait for no other.
    pub free: bool,
    /// Only those beyond this number, in the direction of the order.
    pub after: Option<i64>,
    pub newest_first: bool,
    /// At most [`PAGE_RECORDS_MAX`].
    pub limit: i64,
}

/// Some records, and where the next page begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// [`Query::after`] of the next page, if there is one.
    pub next: Option<i64>,
}

/// A record as it was once.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    pub version: i64,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// The user's number.
    pub user_id: i64,
    /// The persona or person.
    pub by: String,
    pub call_id: String,
    /// `create`, `update`, `state`, `claim`, `delete`, `restore`, `inherit` or `import`.
    pub change: String,
    /// Why, if that was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub content: Value,
}

/// Numbers asked for in one query.
const NUMBERS_BATCH: usize = 500;

impl ProjectRecords {
    pub async fn get<T: Body>(&self, id: &str) -> Result<Saved<T>> {
        self.get_any(RecordId::of(T::KIND, id)?).await?.typed()
    }

    pub async fn get_any(&self, id: RecordId) -> Result<Stored> {
        let rows = one(self.who.project_id, id).read(&self.db).await?;
        rows.first().map(stored).transpose()?.ok_or(RecordError::NotFound { id })
    }

    pub async fn list<T: Body>(&self, query: &Query) -> Result<Page<Saved<T>>> {
        let page = self.list_any(T::KIND, query).await?;
        Ok(Page { items: page.items.into_iter().map(Stored::typed).collect::<Result<_>>()?, next: page.next })
    }

    pub async fn list_any(&self, kind: Kind, query: &Query) -> Result<Page<Stored>> {
        if let Some(id) = &query.external_id {
            check_text(id, "externalId")?;
        }
        let limit = query.limit.clamp(1, PAGE_RECORDS_MAX);
        let mut items: Vec<Stored> = Vec::new();
        let (mut query, mut bytes) = (query.clone(), 0);
        loop {
            let left = limit - items.len() as i64;
            let rows = select(self.who.project_id, kind, &query, (left + 1).min(READ_RECORDS)).read(&self.db).await?;
            let all = (rows.len() as i64) < (left + 1).min(READ_RECORDS);
            for row in &rows {
                let record = stored(row)?;
                // There is at least one more than the page takes.
                if items.len() as i64 == limit || (bytes > 0 && bytes + record.bytes > PAGE_BYTES_MAX) {
                    let next = items.last().map(|last: &Stored| last.id.number);
                    return Ok(Page { items, next });
                }
                bytes += record.bytes;
                query.after = Some(record.id.number);
                items.push(record);
            }
            if all {
                return Ok(Page { items, next: None });
            }
        }
    }

    /// As [`Self::list`], of those whose content fits: a page is as full as it can be, however few they are.
    pub async fn list_where<T: Body>(&self, query: Query, fits: impl Fn(&T) -> bool) -> Result<Page<Saved<T>>> {
        let limit = query.limit.clamp(1, PAGE_RECORDS_MAX);
        let (mut query, mut items) = (query, Vec::new());
        loop {
            let page = self.list::<T>(&query).await?;
            items.extend(page.items.into_iter().filter(|one| fits(&one.content)));
            query.after = page.next;
            query.limit = limit - items.len() as i64;
            if query.limit <= 0 || page.next.is_none() {
                return Ok(Page { items, next: page.next });
            }
        }
    }

    /// Every record of a kind that fits, page by page: for checks over all of them.
    pub async fn all<T: Body>(&self, iteration: Option<i64>) -> Result<Vec<Saved<T>>> {
        let mut found = Vec::new();
        let mut query = Query { iteration, limit: PAGE_RECORDS_MAX, ..Query::default() };
        loop {
            let page = self.list::<T>(&query).await?;
            found.extend(page.items);
            query.after = page.next;
            if query.after.is_none() {
                return Ok(found);
            }
        }
    }

    /// For each of `numbers` of a kind, which records of `from` name it.
    pub async fn namers(&self, kind: Kind, numbers: &[i64], from: Kind) -> Result<BTreeMap<i64, Vec<RecordId>>> {
        let mut found: BTreeMap<i64, Vec<RecordId>> = BTreeMap::new();
        for batch in numbers.chunks(NUMBERS_BATCH) {
            let text = format!(
                "SELECT DISTINCT to_number, from_number FROM link
                 WHERE project_id = $1 AND to_kind = $2 AND from_kind = $3 AND to_number IN ({})
                 ORDER BY to_number, from_number",
                places(4, batch.len())
            );
            let mut query = sql_of(text).bind(self.who.project_id).bind(kind.as_str()).bind(from.as_str());
            for number in batch {
                query = query.bind(*number);
            }
            for row in query.read(&self.db).await? {
                found.entry(row.get("to_number")?).or_default().push(from.id(row.get("from_number")?));
            }
        }
        Ok(found)
    }

    /// What records are called, as far as the index keeps it; those that are not there are left out.
    pub async fn titles(&self, ids: &[RecordId]) -> Result<BTreeMap<RecordId, String>> {
        let mut numbers: BTreeMap<Kind, Vec<i64>> = BTreeMap::new();
        ids.iter().for_each(|id| numbers.entry(id.kind).or_default().push(id.number));
        let mut found = BTreeMap::new();
        for (kind, numbers) in numbers {
            for batch in numbers.chunks(NUMBERS_BATCH) {
                let text = format!(
                    "SELECT number, title FROM record WHERE project_id = $1 AND kind = $2 AND number IN ({})",
                    places(3, batch.len())
                );
                let mut query = sql_of(text).bind(self.who.project_id).bind(kind.as_str());
                for number in batch {
                    query = query.bind(*number);
                }
                for row in query.read(&self.db).await? {
                    found.insert(kind.id(row.get("number")?), row.get("title")?);
                }
            }
        }
        Ok(found)
    }

    /// Which records name this one, by kind and number; at most `max`.
    pub async fn named_by(&self, id: RecordId, max: i64) -> Result<Vec<RecordId>> {
        // In one query, SQLite walks all links in their order for the first few. `MATERIALIZED` makes it find these first.
        let query = sql("WITH naming AS MATERIALIZED (SELECT from_kind, from_number FROM link
                             WHERE project_id = $1 AND to_kind = $2 AND to_number = $3)
                         SELECT DISTINCT from_kind, from_number FROM naming ORDER BY from_kind, from_number LIMIT $4")
        .bind(self.who.project_id)
        .bind(id.kind.as_str())
        .bind(id.number)
        .bind(max);
        let mut found = Vec::new();
        for row in query.read(&self.db).await? {
            // A kind of a newer version is nothing that this one can show.
            let kind = Kind::parse(&row.get::<String>("from_kind")?);
            if let Some(kind) = kind {
                found.push(kind.id(row.get("from_number")?));
            }
        }
        Ok(found)
    }

    /// What a record was, the newest version first; as many as fit into [`PAGE_BYTES_MAX`].
    pub async fn history(&self, id: RecordId, before: Option<i64>, limit: i64) -> Result<Vec<Version>> {
        let text = "SELECT version, at_ms, account_id, actor, call_id, change, why, body FROM history
             WHERE project_id = $1 AND kind = $2 AND number = $3 AND version < $4 ORDER BY version DESC LIMIT $5";
        let limit = limit.clamp(1, PAGE_RECORDS_MAX);
        let (mut versions, mut bytes, mut below) = (Vec::new(), 0, before.unwrap_or(i64::MAX));
        loop {
            let left = (limit - versions.len() as i64).min(READ_RECORDS);
            let query = sql(text).bind(self.who.project_id).bind(id.kind.as_str()).bind(id.number);
            let rows = query.bind(below).bind(left).read(&self.db).await?;
            for row in &rows {
                let body: String = row.get("body")?;
                bytes += body.len();
                if bytes > PAGE_BYTES_MAX && !versions.is_empty() {
                    return Ok(versions);
                }
                below = row.get("version")?;
                versions.push(Version {
                    version: below,
                    at_ms: row.get("at_ms")?,
                    user_id: row.get("account_id")?,
                    by: row.get("actor")?,
                    call_id: row.get("call_id")?,
                    change: row.get("change")?,
                    why: row.get("why")?,
                    content: serde_json::from_str(&body)?,
                });
            }
            if (rows.len() as i64) < left || versions.len() as i64 >= limit {
                break;
            }
        }
        if versions.is_empty() && before.is_none() { Err(RecordError::NotFound { id }) } else { Ok(versions) }
    }

    /// One version of a record.
    pub async fn version(&self, id: RecordId, version: i64) -> Result<Version> {
        let found = self.history(id, Some(version.saturating_add(1)), 1).await?.into_iter().next();
        found.filter(|found| found.version == version).ok_or(RecordError::NoVersion { id, version })
    }
}

/// The query for one record.
pub(crate) fn one(project: i64, id: RecordId) -> Sql {
    let text =
        concat!("SELECT ", columns!(), " FROM record r WHERE r.project_id = $1 AND r.kind = $2 AND r.number = $3");
    sql(text).bind(project).bind(id.kind.as_str()).bind(id.number)
}

/// The record inside a transaction.
pub(crate) async fn find(tx: &mut Tx, project: i64, id: RecordId) -> Result<Option<Stored>> {
    one(project, id).optional(tx).await?.as_ref().map(stored).transpose()
}

pub(crate) fn select(project: i64, kind: Kind, query: &Query, limit: i64) -> Sql {
    let mut text = concat!("SELECT ", columns!(), " FROM record r WHERE r.project_id = $1 AND r.kind = $2").to_owned();
    let mut bound: Vec<toolhost_store::db::Argument> = Vec::new();
    let mut next = 3;
    let mut conditions = String::new();
    let mut condition = |text: &str, value: toolhost_store::db::Argument| {
        conditions.push_str(&text.replace('?', &format!("${next}")));
        bound.push(value);
        next += 1;
    };
    if let Some(iteration) = query.iteration {
        condition(" AND r.iteration = ?", iteration.into());
    }
    if let Some(state) = &query.state {
        condition(" AND r.state = ?", state.into());
    }
    if let Some(title) = &query.title {
        condition(" AND r.title = ?", title.into());
    }
    if let Some(id) = &query.external_id {
        // Inside a text of the content, the quotes would be escaped.
        let field = format!("\"externalId\":{}", Value::from(id.as_str()));
        let field = field.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        condition(" AND r.body LIKE ? ESCAPE '\\'", format!("%{field}%").into());
    }
    if query.free {
        condition(" AND r.waits_on = ?", 0.into());
    }
    if let Some(after) = query.after {
        condition(if query.newest_first { " AND r.number < ?" } else { " AND r.number > ?" }, after.into());
    }
    if let Some(names) = query.names {
        condition(
            " AND r.number IN (SELECT from_number FROM link WHERE project_id = $1 AND from_kind = $2 AND to_kind = ?",
            names.kind.as_str().into(),
        );
        condition(" AND to_number = ?)", names.number.into());
    }
    let order = if query.newest_first { "DESC" } else { "ASC" };
    text.push_str(&conditions);
    text.push_str(&format!(" ORDER BY r.number {order} LIMIT ${next}"));
    let mut query = sql_of(text).bind(project).bind(kind.as_str());
    for value in bound {
        query = query.bind(value);
    }
    query.bind(limit)
}
