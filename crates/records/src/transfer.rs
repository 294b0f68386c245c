//! Records by the thousand: out as JSON Lines, back in without loss, and in from other systems.
//!
//! What comes in is written in two passes, all rows before all references, so that the order does not matter. It is one
//! transaction: an import has happened, or it has not.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::again::{Known, external_id};
use super::error::{RecordError, Result};
use super::kind::{Kind, NUMBER_MAX, RecordId};
use super::read::{Query, find, select};
use super::row::stored;
use super::text::check_text;
use super::whole::{End, Extent, Tally};
use super::write::{CHANGE_IMPORT, Rules, Write, check_content, count_all_waits, put_row, write_history};
use super::{PAGE_RECORDS_MAX, ProjectRecords, search};
use toolhost_store::db::{Tx, sql};

/// The format of the lines; a reader refuses a newer one. Version 1 had no last line `end`.
const FORMAT_VERSION: i64 = 2;
/// Records whose history has gaps that are named; more are counted.
const GAPS_SHOWN: usize = 20;
/// Who holds a task that was in progress where it came from.
const FORMER_HOLDER: &str = "somebody before";
/// The end of the year 9999, milliseconds since 1970.
pub(crate) const TIME_MS_MAX: i64 = 253_402_300_799_999;
/// After so many rows of a kind a server is told what has been written.
const MILESTONES: [usize; 5] = [300, 2_000, 10_000, 50_000, 200_000];
/// What can happen to a record, as history calls it.
const CHANGES: [&str; 8] = ["create", "update", "state", "claim", "delete", "restore", "inherit", "import"];
/// Rows of history read at once.
const HISTORY_PAGE_ROWS: i64 = 1000;

/// A record from another system, whose ids are not known yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Its id there. Where a content names a record by its key, the new id comes in its place.
    pub key: String,
    pub kind: Kind,
    /// The key of its iteration; `None` for one of the project as a whole.
    pub iteration: Option<String>,
    pub content: Value,
    pub created_at_ms: Option<i64>,
}

/// What an import has brought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// How many of each kind.
    pub records: BTreeMap<String, usize>,
    /// Versions of history.
    pub versions: usize,
    /// Records that were there already, the same in all.
    pub unchanged: usize,
    /// Records of another system that were there already and have changed there.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated: usize,
    /// What somebody may miss.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What becomes of records of another system that an earlier import has brought already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// They are kept once more.
    Doubles,
    /// Those with an `externalId` are updated.
    Updates,
}

/// How far an import has come.
#[derive(Default)]
struct Progress {
    imported: Imported,
    arrived: Vec<RecordId>,
    tally: Tally,
    /// Whatever the lines name.
    seen: BTreeSet<RecordId>,
    /// The highest number given to each kind.
    numbers: BTreeMap<Kind, i64>,
    growth: Growth,
}

impl Progress {
    fn given(&mut self, kind: Kind, number: i64) {
        let highest = self.numbers.entry(kind).or_default();
        *highest = number.max(*highest);
    }
}

/// Records and their history, written in a transaction. Each kind fills tables of its own, and a plan that was made while one of them was
/// empty reads it from end to end ever after.
#[derive(Default)]
struct Growth(BTreeMap<Kind, usize>);

impl Growth {
    /// Before each row.
    async fn of(&mut self, tx: &mut Tx, kind: Kind) -> Result<()> {
        let rows = self.0.entry(kind).or_default();
        if MILESTONES.contains(rows) {
            tx.analyze(super::TABLES).await?;
        }
        *rows += 1;
        Ok(())
    }
}

/// A record on its way in, its id given.
pub(crate) struct Arrival {
    pub(crate) id: RecordId,
    pub(crate) iteration: i64,
    pub(crate) body: Value,
    pub(crate) version: i64,
    pub(crate) created_at_ms: Option<i64>,
    pub(crate) change: &'static str,
    pub(crate) why: Option<String>,
}

/// One line of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Line {
    /// The first one.
    Toolhost {
        version: i64,
    },
    Counter {
        kind: String,
        value: i64,
    },
    Record {
        id: String,
        version: i64,
        iteration: i64,
        created_at_ms: i64,
        updated_at_ms: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<LeaseLine>,
        content: Value,
    },
    History {
        id: String,
        version: i64,
        iteration: i64,
        at_ms: i64,
        user_id: i64,
        by: String,
        call_id: String,
        change: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        content: Value,
    },
    Current {
        iteration: Option<i64>,
    },
    /// The last one.
    End(End),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseLine {
    key: String,
    name: String,
    lease_until_ms: i64,
}

impl ProjectRecords {
    /// Hands every line of the project's records to `sink`: one moment of all of them.
    pub async fn export(&self, sink: &mut (dyn FnMut(String) -> Result<()> + Send)) -> Result<u64> {
        let mut tx = self.db.snapshot().await?;
        tx.disable_idle_timeout().await?;
        let (mut lines, mut tally) = (0, Tally::default());
        let mut write = |line: &Line, tally: &mut Tally| -> Result<()> {
            lines += 1;
            let text = serde_json::to_string(line)?;
            tally.line(&text);
            sink(text)
        };
        let project = self.who.project_id;
        write(&Line::Toolhost { version: FORMAT_VERSION }, &mut tally)?;
        let counters = sql("SELECT kind, value FROM counter WHERE project_id = $1 ORDER BY kind");
        for row in counters.bind(project).all(&mut tx).await? {
            // What numbers something else than records stays here.
            if Kind::parse(&row.get::<String>("kind")?).is_none() {
                continue;
            }
            write(&Line::Counter { kind: row.get("kind")?, value: row.get("value")? }, &mut tally)?;
        }
        for kind in Kind::ALL {
            let mut query = Query::default();
            loop {
                let rows = select(project, kind, &query, PAGE_RECORDS_MAX).all(&mut tx).await?;
                let Some(last) = rows.last() else { break };
                query.after = Some(last.get("number")?);
                for row in &rows {
                    let record = stored(row)?;
                    let holder = record.holder_key.zip(record.holder).map(|(key, holder)| LeaseLine {
                        key,
                        name: holder.name,
                        lease_until_ms: holder.lease_until_ms,
                    });
                    tally.record(kind);
                    let line = Line::Record {
                        id: record.id.to_string(),
                        version: record.version,
                        iteration: record.iteration,
                        created_at_ms: record.created_at_ms,
                        updated_at_ms: record.updated_at_ms,
                        holder,
                        content: record.body,
                    };
                    write(&line, &mut tally)?;
                }
            }
            let (mut number, mut version) = (0, 0);
            loop {
                let text = "SELECT number, version, iteration, at_ms, account_id, actor, call_id, change, why, body
                     FROM history WHERE project_id = $1 AND kind = $2 AND (number > $3 OR (number = $3 AND version > $4))
                     ORDER BY number, version LIMIT $5";
                let query = sql(text).bind(project).bind(kind.as_str()).bind(number).bind(version);
                let rows = query.bind(HISTORY_PAGE_ROWS).all(&mut tx).await?;
                if rows.is_empty() {
                    break;
                }
                for row in &rows {
                    (number, version) = (row.get("number")?, row.get("version")?);
                    let body: String = row.get("body")?;
                    tally.version(kind);
                    let line = Line::History {
                        id: kind.id(number).to_string(),
                        version,
                        iteration: row.get("iteration")?,
                        at_ms: row.get("at_ms")?,
                        user_id: row.get("account_id")?,
                        by: row.get("actor")?,
                        call_id: row.get("call_id")?,
                        change: row.get("change")?,
                        why: row.get("why")?,
                        content: serde_json::from_str(&body)?,
                    };
                    write(&line, &mut tally)?;
                }
            }
        }
        let current = sql("SELECT current_iteration FROM project WHERE id = $1").bind(project).one(&mut tx).await?;
        write(&Line::Current { iteration: current.get("current_iteration")? }, &mut tally)?;
        write(&Line::End(tally.end()), &mut tally)?;
        Ok(lines)
    }

    /// Reads the lines of an export. What is here already, the same in all, is passed over; anything else of the same id
    /// stops the import, and nothing has happened.
    ///
    /// An export that does not end with its last line, or whose last line does not fit the others, is refused unless a part
    /// of one is wanted.
    pub async fn import(&self, lines: impl Iterator<Item = Result<String>> + Send, extent: Extent) -> Result<Imported> {
        let mut tx = self.begin().await?;
        let mut progress = Progress::default();
        let mut lines = lines.enumerate().peekable();
        while let Some((n, text)) = lines.next() {
            let at = format!("line {}", n + 1);
            let text = text.map_err(|error| error.in_field(&at))?;
            if text.trim().is_empty() {
                continue;
            }
            let line: Line = match serde_json::from_str(&text) {
                Ok(line) => line,
                Err(error) if error.is_eof() && lines.peek().is_none() => {
                    let what = format!("{at}, the last one, is incomplete");
                    match extent {
                        Extent::Whole => return Err(RecordError::NotWhole { what }),
                        Extent::Partial => progress.imported.notes.push(format!("{what} and was left out")),
                    }
                    break;
                }
                Err(error) => return Err(RecordError::Field { field: at, problem: error.to_string() }),
            };
            if let Line::End(end) = line {
                progress.tally.ended(end);
                continue;
            }
            progress.tally.line(&text);
            let took = self.take_line(&mut tx, line, &mut progress).await;
            took.map_err(|error| if let RecordError::Store(_) = error { error } else { error.in_field(&at) })?;
        }
        if let Err(unfit) = progress.tally.check() {
            match extent {
                Extent::Whole => return Err(unfit),
                Extent::Partial => progress.imported.notes.push(format!("the export is not whole: {}", unfit.what())),
            }
        }
        for (kind, number) in std::mem::take(&mut progress.numbers) {
            raise_counter(&mut tx, self.who.project_id, kind, number).await?;
        }
        self.end_histories(&mut tx).await?;
        if extent == Extent::Partial {
            let left_out = self.leave_out(&mut tx, &mut progress.arrived).await?;
            progress.imported.notes.extend(left_out);
            progress.imported.records = counted(&progress.arrived);
        }
        self.link_arrivals(&mut tx, &progress.arrived).await?;
        self.note_gaps(&mut tx, &mut progress).await?;
        self.current_exists(&mut tx).await?;
        self.iterations_exist(&mut tx).await?;
        tx.commit().await?;
        Ok(progress.imported)
    }

    async fn take_line(&self, tx: &mut Tx, line: Line, progress: &mut Progress) -> Result<()> {
        let project = self.who.project_id;
        match line {
            Line::Toolhost { version } if version > FORMAT_VERSION => Err(RecordError::Field {
                field: "version".to_owned(),
                problem: format!("{version} is newer than this toolhost can read ({FORMAT_VERSION}): update toolhost"),
            }),
            Line::Toolhost { .. } | Line::End(_) => Ok(()),
            Line::Counter { kind, value } => {
                let kind = Kind::parse(&kind).ok_or_else(|| unknown_kind(&kind))?;
                within("value", value, 0)?;
                progress.given(kind, value);
                Ok(())
            }
            Line::Current { iteration } => {
                let text = "UPDATE project SET current_iteration = COALESCE(current_iteration, $2) WHERE id = $1";
                sql(text).bind(project).bind(iteration).run(tx).await?;
                Ok(())
            }
            Line::History { id, version, iteration, at_ms, user_id, by, call_id, change, why, content } => {
                is_time("atMs", at_ms)?;
                is_change(&change)?;
                let id = RecordId::parse(&id).ok_or_else(|| unknown_kind(&id))?;
                within("version", version, 1)?;
                within("iteration", iteration, 0)?;
                progress.given(id.kind, id.number);
                progress.tally.version(id.kind);
                progress.seen.insert(id);
                let there = sql("SELECT body FROM history
                     WHERE project_id = $1 AND kind = $2 AND number = $3 AND version = $4");
                let there = there.bind(project).bind(id.kind.as_str()).bind(id.number).bind(version);
                if let Some(there) = there.optional(tx).await? {
                    let there: String = there.get("body")?;
                    let same = serde_json::from_str::<Value>(&there)? == content;
                    return if same { Ok(()) } else { Err(RecordError::Exists { id }) };
                }
                progress.growth.of(tx, id.kind).await?;
                let who = super::Who { project_id: project, user_id, name: by, call_id };
                write_history(tx, &who, at_ms, id, version, iteration, &change, why.as_deref(), &content).await?;
                progress.imported.versions += 1;
                Ok(())
            }
            Line::Record { id, version, iteration, created_at_ms, updated_at_ms, holder, content } => {
                let id = RecordId::parse(&id).ok_or_else(|| unknown_kind(&id))?;
                within("version", version, 1)?;
                within("iteration", iteration, 0)?;
                progress.tally.record(id.kind);
                progress.seen.insert(id);
                if let Some(there) = find(tx, project, id).await? {
                    if there.body == content && there.version == version {
                        progress.imported.unchanged += 1;
                        return Ok(());
                    }
                    return Err(RecordError::Exists { id });
                }
                record_times(created_at_ms, updated_at_ms, holder.as_ref())?;
                progress.growth.of(tx, id.kind).await?;
                let arrival = Arrival {
                    id,
                    iteration,
                    body: content,
                    version,
                    created_at_ms: Some(created_at_ms),
                    change: "import",
                    why: None,
                };
                self.put_arrival(tx, &arrival, updated_at_ms).await?;
                progress.given(id.kind, id.number);
                if let Some(lease) = holder {
                    let text = "UPDATE record SET holder = $4, holder_name = $5, lease_until_ms = $6
                         WHERE project_id = $1 AND kind = $2 AND number = $3";
                    let update = sql(text).bind(project).bind(id.kind.as_str()).bind(id.number);
                    update.bind(lease.key).bind(lease.name).bind(lease.lease_until_ms).run(tx).await?;
                }
                *progress.imported.records.entry(id.kind.as_str().to_owned()).or_default() += 1;
                progress.arrived.push(id);
                Ok(())
            }
        }
    }

    /// A record is what its history ends with: one that was deleted here, or that came without its history's end, could
    /// not be changed again. One that came without any history begins one.
    async fn end_histories(&self, tx: &mut Tx) -> Result<()> {
        let text = "SELECT kind, number, version, newest FROM (
                 SELECT r.kind AS kind, r.number AS number, r.version AS version,
                     (SELECT max(h.version) FROM history h
                      WHERE h.project_id = r.project_id AND h.kind = r.kind AND h.number = r.number) AS newest,
                     (SELECT h.change FROM history h WHERE h.project_id = r.project_id AND h.kind = r.kind
                          AND h.number = r.number AND h.version = r.version) AS change,
                     (SELECT h.body FROM history h WHERE h.project_id = r.project_id AND h.kind = r.kind
                          AND h.number = r.number AND h.version = r.version) AS last_body,
                     r.body AS body
                 FROM record r WHERE r.project_id = $1) ended
             WHERE newest IS NULL OR newest <> version OR change = 'delete'
                 OR last_body <> body ORDER BY kind, number";
        for row in sql(text).bind(self.who.project_id).all(tx).await? {
            let (kind, number): (String, i64) = (row.get("kind")?, row.get("number")?);
            let id = Kind::parse(&kind).ok_or_else(|| unknown_kind(&kind))?.id(number);
            if let Some(newest) = row.get::<Option<i64>>("newest")? {
                let version: i64 = row.get("version")?;
                let problem =
                    format!("it comes at version {version}, which is not what its history here ends with ({newest})");
                return Err(RecordError::Field { field: id.to_string(), problem });
            }
            let record = self.must_find(tx, id).await?;
            let (version, iteration, now) = (record.version, record.iteration, self.now_ms());
            write_history(tx, &self.who, now, id, version, iteration, "import", None, &record.body).await?;
        }
        Ok(())
    }

    /// Names the records of this import whose versions are not 1, 2, 3 and so on to the last: they cannot be restored to
    /// what is not there.
    async fn note_gaps(&self, tx: &mut Tx, progress: &mut Progress) -> Result<()> {
        let text = "SELECT kind, number, count(*) AS kept, max(version) AS newest FROM history WHERE project_id = $1
             GROUP BY kind, number HAVING count(*) <> max(version) ORDER BY kind, number";
        let mut gaps = Vec::new();
        for row in sql(text).bind(self.who.project_id).all(tx).await? {
            let (kind, number): (String, i64) = (row.get("kind")?, row.get("number")?);
            let id = Kind::parse(&kind).ok_or_else(|| unknown_kind(&kind))?.id(number);
            if progress.seen.contains(&id) {
                gaps.push((id, row.get::<i64>("kept")?, row.get::<i64>("newest")?));
            }
        }
        let notes = &mut progress.imported.notes;
        for (id, kept, newest) in gaps.iter().take(GAPS_SHOWN) {
            notes.push(format!("{id} came with {kept} of its {newest} versions"));
        }
        if let Some(more) = gaps.len().checked_sub(GAPS_SHOWN).filter(|more| *more > 0) {
            notes.push(format!("{more} more records came without some of their versions"));
        }
        Ok(())
    }

    /// No list shows a record of an iteration that is not there.
    async fn iterations_exist(&self, tx: &mut Tx) -> Result<()> {
        let text = "SELECT r.kind AS kind, r.number AS number, r.iteration AS iteration FROM record r
             WHERE r.project_id = $1 AND r.iteration <> 0 AND NOT EXISTS (SELECT 1 FROM record i
                 WHERE i.project_id = r.project_id AND i.kind = 'iteration' AND i.number = r.iteration) LIMIT 1";
        let Some(row) = sql(text).bind(self.who.project_id).optional(tx).await? else { return Ok(()) };
        let (kind, iteration): (String, i64) = (row.get("kind")?, row.get("iteration")?);
        let id = Kind::parse(&kind).ok_or_else(|| unknown_kind(&kind))?.id(row.get("number")?);
        let missing = RecordError::NotFound { id: Kind::Iteration.id(iteration) };
        Err(missing.in_field(&id.to_string()))
    }

    async fn current_exists(&self, tx: &mut Tx) -> Result<()> {
        let text = "SELECT current_iteration FROM project WHERE id = $1";
        let current: Option<i64> = sql(text).bind(self.who.project_id).one(tx).await?.get("current_iteration")?;
        let Some(current) = current.filter(|current| *current != 0) else { return Ok(()) };
        self.must_find(tx, Kind::Iteration.id(current)).await.map(drop).map_err(|error| match error {
            RecordError::Store(_) => error,
            error => error.in_field("current"),
        })
    }

    /// Keeps records of another system under new ids. The iteration with the key `current`, or the last one among them,
    /// becomes the current one, if there is none yet.
    pub async fn import_drafts(
        &self,
        drafts: Vec<Draft>,
        current: Option<&str>,
        why: &str,
        again: Again,
    ) -> Result<Imported> {
        let mut tx = self.begin().await?;
        let known = match again {
            Again::Doubles => Known::new(),
            Again::Updates => self.brought(&mut tx, why).await?,
        };
        let brought = |draft: &Draft| known.get(&(draft.kind, external_id(&draft.content)?.to_owned()));
        let mut ids: BTreeMap<String, RecordId> = BTreeMap::new();
        for draft in &drafts {
            let id = match brought(draft) {
                Some(brought) => brought.id,
                None => draft.kind.id(self.next_number(&mut tx, draft.kind).await?),
            };
            if ids.insert(draft.key.clone(), id).is_some() {
                return Err(RecordError::Field { field: draft.key.clone(), problem: "is there twice".to_owned() });
            }
        }
        let mut imported = Imported::default();
        let (mut arrivals, mut updates) = (Vec::new(), Vec::new());
        let mut last_iteration = None;
        for draft in drafts {
            let brought = brought(&draft);
            let Some(id) = ids.get(&draft.key).copied() else { continue };
            let iteration = draft.iteration.as_ref().and_then(|key| ids.get(key)).map_or(0, |id| id.number);
            let mut body = draft.content;
            name_anew(&mut body, &ids);
            if id.kind == Kind::Iteration {
                last_iteration = Some(id.number);
            }
            if let Some(brought) = brought {
                updates.push((brought, body));
                continue;
            }
            *imported.records.entry(id.kind.as_str().to_owned()).or_default() += 1;
            let (change, why) = (CHANGE_IMPORT, Some(why.to_owned()));
            arrivals.push(Arrival { id, iteration, body, version: 1, created_at_ms: draft.created_at_ms, change, why });
        }
        self.arrive(&mut tx, &arrivals).await?;
        for (brought, body) in &updates {
            let written = self.bring_again(&mut tx, brought, body, why).await.map_err(|error| match error {
                RecordError::Store(_) => error,
                error => error.in_field(&brought.id.to_string()),
            })?;
            *(if written { &mut imported.updated } else { &mut imported.unchanged }) += 1;
        }
        if imported.updated > 0 {
            count_all_waits(&mut tx, self.who.project_id).await?;
        }
        let current = current.and_then(|key| ids.get(key)).filter(|id| id.kind == Kind::Iteration).map(|id| id.number);
        if let Some(iteration) = current.or(last_iteration) {
            let text = "UPDATE project SET current_iteration = COALESCE(current_iteration, $2) WHERE id = $1";
            sql(text).bind(self.who.project_id).bind(iteration).run(&mut tx).await?;
        }
        tx.commit().await?;
        Ok(imported)
    }

    /// Writes records that come with a state and may name each other in any order. Tasks that somebody had begun are free
    /// to be taken over.
    pub(crate) async fn arrive(&self, tx: &mut Tx, arrivals: &[Arrival]) -> Result<()> {
        let now = self.now_ms();
        let mut growth = Growth::default();
        for arrival in arrivals {
            growth.of(tx, arrival.id.kind).await?;
            self.put_arrival(tx, arrival, now).await.map_err(|error| match error {
                RecordError::Store(_) => error,
                error => error.in_field(&arrival.id.to_string()),
            })?;
            let (id, why) = (arrival.id, arrival.why.as_deref());
            let stored = find(tx, self.who.project_id, id).await?.ok_or(RecordError::NotFound { id })?;
            write_history(
                tx,
                &self.who,
                now,
                id,
                arrival.version,
                arrival.iteration,
                arrival.change,
                why,
                &stored.body,
            )
            .await?;
            if id.kind == Kind::Task && stored.state == "in_progress" {
                self.free(tx, id, now).await?;
            }
        }
        let ids: Vec<RecordId> = arrivals.iter().map(|arrival| arrival.id).collect();
        self.link_arrivals(tx, &ids).await
    }

    /// Makes a task that somebody has begun elsewhere free to be taken over.
    pub(super) async fn free(&self, tx: &mut Tx, id: RecordId, now_ms: i64) -> Result<()> {
        let free = "UPDATE record SET holder = $4, holder_name = $4, lease_until_ms = $5
             WHERE project_id = $1 AND kind = $2 AND number = $3";
        let free = sql(free).bind(self.who.project_id).bind(id.kind.as_str()).bind(id.number);
        free.bind(FORMER_HOLDER).bind(now_ms).run(tx).await?;
        Ok(())
    }

    async fn put_arrival(&self, tx: &mut Tx, arrival: &Arrival, updated_at_ms: i64) -> Result<()> {
        let created_at_ms = arrival.created_at_ms.unwrap_or(updated_at_ms);
        let write = Write {
            id: arrival.id,
            iteration: arrival.iteration,
            body: &arrival.body,
            change: arrival.change,
            why: None,
            former: None,
            last_version: arrival.version - 1,
            created_at_ms,
            rules: Rules::AnyState,
        };
        let facts = check_content(&write)?;
        put_row(tx, &self.who, updated_at_ms, &write, &facts, arrival.version).await?;
        if arrival.id.kind.is_memory() {
            let project = self.who.project_id;
            search::index(tx, project, arrival.id, arrival.iteration, created_at_ms, &facts.words).await?;
        }
        Ok(())
    }

    /// The second pass: every record that is named must be there by now. Circles are kept; a check names them.
    async fn link_arrivals(&self, tx: &mut Tx, arrived: &[RecordId]) -> Result<()> {
        let mut growth = Growth::default();
        if arrived.len() > MILESTONES[0] {
            tx.analyze(super::TABLES).await?;
        }
        for id in arrived {
            growth.of(tx, id.kind).await?;
            let record = self.must_find(tx, *id).await?;
            let references = id.kind.facts(&record.body)?.references;
            super::write::link_new(tx, self.who.project_id, *id, &references).await.map_err(|error| match error {
                RecordError::Store(_) => error,
                error => error.in_field(&id.to_string()),
            })?;
        }
        count_all_waits(tx, self.who.project_id).await
    }
}

/// How many there are of each kind.
fn counted(ids: &[RecordId]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for id in ids {
        *counts.entry(id.kind.as_str().to_owned()).or_default() += 1;
    }
    counts
}

fn unknown_kind(text: &str) -> RecordError {
    RecordError::Field { field: "id".to_owned(), problem: format!("`{text}` is of no kind that this toolhost knows") }
}

fn is_change(word: &str) -> Result<()> {
    if CHANGES.contains(&word) {
        return Ok(());
    }
    let problem = format!("`{word}` is none of {}", CHANGES.join(", "));
    Err(RecordError::Field { field: "change".to_owned(), problem })
}

fn record_times(created_at_ms: i64, updated_at_ms: i64, holder: Option<&LeaseLine>) -> Result<()> {
    is_time("createdAtMs", created_at_ms)?;
    is_time("updatedAtMs", updated_at_ms)?;
    let Some(lease) = holder else { return Ok(()) };
    is_time("leaseUntilMs", lease.lease_until_ms)?;
    check_text(&lease.key, "holder.key")?;
    check_text(&lease.name, "holder.name")
}

/// A time that can be shown.
fn is_time(field: &str, at_ms: i64) -> Result<()> {
    if (0..=TIME_MS_MAX).contains(&at_ms) {
        return Ok(());
    }
    Err(RecordError::Field { field: field.to_owned(), problem: format!("{at_ms} is no time from 1970 to 9999") })
}

/// A number that leaves room to count on.
fn within(field: &str, number: i64, least: i64) -> Result<()> {
    if (least..=NUMBER_MAX).contains(&number) {
        return Ok(());
    }
    Err(RecordError::Field {
        field: field.to_owned(),
        problem: format!("{number} is not from {least} to {NUMBER_MAX}"),
    })
}

/// Numbers that were given elsewhere are not given again.
async fn raise_counter(tx: &mut Tx, project: i64, kind: Kind, value: i64) -> Result<()> {
    let text = "INSERT INTO counter (project_id, kind, value) VALUES ($1, $2, $3)
         ON CONFLICT (project_id, kind) DO UPDATE SET value = CASE WHEN counter.value < excluded.value
             THEN excluded.value ELSE counter.value END";
    sql(text).bind(project).bind(kind.as_str()).bind(value).run(tx).await?;
    Ok(())
}

/// The fields by which contents name records. A text elsewhere may look like a key and is none.
const NAMING_FIELDS: [&str; 9] = [
    "baseIterationId",
    "requirementIds",
    "dependencies",
    "relatedFeatures",
    "features",
    "featureId",
    "componentId",
    "ticketId",
    "sourceId",
];

fn name_anew(content: &mut Value, ids: &BTreeMap<String, RecordId>) {
    let rename = |value: &mut Value| {
        if let Some(id) = value.as_str().and_then(|text| ids.get(text)) {
            *value = id.to_string().into();
        }
    };
    for field in NAMING_FIELDS {
        match content.get_mut(field) {
            Some(Value::Array(items)) => items.iter_mut().for_each(rename),
            Some(value) => rename(value),
            None => {}
        }
    }
}
