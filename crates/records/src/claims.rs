//! Tasks and features as work: what is ready, who works on what until when, and what waits for what.

use serde_json::Value;

use super::error::{RecordError, Result};
use super::kind::{Kind, RecordId};
use super::planning::{Feature, Status, Task};
use super::read::{Page, Query, select};
use super::row::{Holder, Saved, Stored, columns, stored};
use super::write::Edit;
use super::{PAGE_RECORDS_MAX, ProjectRecords};
use toolhost_store::db::{Tx, sql};

/// Who wants to work on a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    /// Tells claimants apart: a session, or a user without one.
    pub key: String,
    /// What others see.
    pub name: String,
}

/// A claimed task.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub task: Saved<Task>,
    /// Somebody else held it, whose lease has run out.
    pub taken_over: bool,
}

/// All tasks and what each depends on, without their texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// From a task to one it depends on, by number.
    pub edges: Vec<(i64, i64)>,
    /// What tasks name that is not there.
    pub unknown: Vec<(i64, String)>,
}

/// A task of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    pub number: i64,
    /// The number of its iteration; 0 for none.
    pub iteration: i64,
    pub completed: bool,
    /// 0 where none is told.
    pub effort_minutes: i64,
}

impl ProjectRecords {
    /// Tasks that can be worked on now: those whose holder's lease has run out, then pending ones which wait for nothing.
    /// `after` is [`Page::next`] of the page before: a number of the pending ones, or a negative one of the others.
    pub async fn ready(&self, iteration: Option<i64>, after: Option<i64>, limit: i64) -> Result<Page<Saved<Task>>> {
        let limit = limit.clamp(1, PAGE_RECORDS_MAX);
        let mut tx = self.db.snapshot().await?;
        let mut items = match after {
            Some(0..) => Vec::new(),
            _ => self.expired(&mut tx, iteration, after.map_or(0, i64::saturating_neg), limit + 1).await?,
        };
        let next;
        let room = usize::try_from(limit).unwrap_or(usize::MAX);
        if items.len() > room {
            items.truncate(room);
            next = items.last().map(|last| -last.id.number);
        } else {
            let left = limit - items.len() as i64;
            let mut pending = self.pending(&mut tx, iteration, after.filter(|after| *after > 0), left + 1).await?;
            let more = pending.len() as i64 > left;
            pending.truncate(usize::try_from(left).unwrap_or(0));
            // A page full of expired ones is followed by the pending ones from their first.
            next = more.then(|| pending.last().map_or(0, |last| last.id.number));
            items.append(&mut pending);
        }
        Ok(Page { items: items.into_iter().map(Stored::typed).collect::<Result<_>>()?, next })
    }

    /// Takes a task, or the first one that is ready; `None` if none is. Whoever holds it already holds it for longer.
    pub async fn claim(
        &self,
        task: Option<RecordId>,
        iteration: Option<i64>,
        claimant: &Claimant,
        lease_ms: i64,
    ) -> Result<Option<Claim>> {
        let mut tx = self.begin().await?;
        let found = match task {
            Some(id) => self.must_find(&mut tx, id).await?,
            None => {
                let mut first = self.expired(&mut tx, iteration, 0, 1).await?;
                if first.is_empty() {
                    first = self.pending(&mut tx, iteration, None, 1).await?;
                }
                let Some(first) = first.pop() else { return Ok(None) };
                first
            }
        };
        let now = self.now_ms();
        let taken_over = self.may_claim(&mut tx, &found, claimant, now).await?;
        let mut lease = Holder { name: claimant.name.clone(), lease_until_ms: now.saturating_add(lease_ms) };
        let own = found.holder.as_ref().filter(|_| found.holder_key.as_ref() == Some(&claimant.key));
        // Claiming again never makes a lease shorter.
        lease.lease_until_ms = own.map_or(0, |own| own.lease_until_ms).max(lease.lease_until_ms);
        let mut held = if found.state != "in_progress" || taken_over {
            let body = moved(&found, Status::InProgress, now)?;
            self.write_again(&mut tx, &found, &body, "claim").await?
        } else {
            found
        };
        let text = "UPDATE record SET holder = $4, holder_name = $5, lease_until_ms = $6
             WHERE project_id = $1 AND kind = $2 AND number = $3";
        sql(text)
            .bind(self.who.project_id)
            .bind(held.id.kind.as_str())
            .bind(held.id.number)
            .bind(&claimant.key)
            .bind(&lease.name)
            .bind(lease.lease_until_ms)
            .run(&mut tx)
            .await?;
        tx.commit().await?;
        held.holder = Some(lease);
        Ok(Some(Claim { task: held.typed()?, taken_over }))
    }

    /// Moves a task to another state. One that somebody else holds stays where it is.
    pub async fn move_task(
        &self,
        id: &str,
        to: Status,
        expected: Option<Status>,
        claimant: &Claimant,
        edit: &Edit,
    ) -> Result<Saved<Task>> {
        let id = RecordId::of(Kind::Task, id)?;
        let mut tx = self.begin().await?;
        let found = self.expect(&mut tx, id, edit).await?;
        check_expected(&found, expected)?;
        let now = self.now_ms();
        not_held(&found, claimant, now)?;
        if found.state == "pending" && to == Status::InProgress {
            self.waits_for_nothing(&mut tx, &found).await?;
        }
        check_moves(&found, to)?;
        let body = moved(&found, to, now)?;
        let stored = self.rewrite(&mut tx, &found, &body, "state", edit.why.as_deref()).await?;
        tx.commit().await?;
        stored.typed()
    }

    /// Moves a feature to another state. It begins when the features it depends on are completed, and a completed one is
    /// reopened only with a reason.
    pub async fn move_feature(
        &self,
        id: &str,
        to: Status,
        expected: Option<Status>,
        edit: &Edit,
    ) -> Result<Saved<Feature>> {
        let id = RecordId::of(Kind::Feature, id)?;
        let mut tx = self.begin().await?;
        let found = self.expect(&mut tx, id, edit).await?;
        check_expected(&found, expected)?;
        check_moves(&found, to)?;
        let reason = edit.why.as_deref().unwrap_or_default().trim();
        if found.state == "completed" && to == Status::InProgress && reason.is_empty() {
            return Err(RecordError::NoReason { id });
        }
        if found.state == "pending" && to == Status::InProgress {
            self.waits_for_nothing(&mut tx, &found).await?;
        }
        let mut content: Feature = found.clone().typed()?.content;
        content.status = to;
        content.completed_at_ms = (to == Status::Completed).then(|| self.now_ms());
        let body = serde_json::to_value(&content)?;
        let stored = self.rewrite(&mut tx, &found, &body, "state", edit.why.as_deref()).await?;
        tx.commit().await?;
        stored.typed()
    }

    /// The dependencies of all tasks of the project, without reading one record after the other.
    pub async fn graph(&self) -> Result<Graph> {
        let mut tx = self.db.snapshot().await?;
        let project = self.who.project_id;
        // One long text instead of hundreds of thousands of rows.
        let text = "SELECT string_agg(CAST(number AS TEXT) || ' ' || CAST(iteration AS TEXT)
                 || CASE WHEN state = 'completed' THEN ' 1 ' ELSE ' 0 ' END || CAST(effort_minutes AS TEXT), ',') AS list
             FROM record WHERE project_id = $1 AND kind = 'task'";
        let nodes: Option<String> = sql(text).bind(project).one(&mut tx).await?.get("list")?;
        let mut nodes: Vec<Node> = rows_of(nodes.as_deref())
            .map(|[number, iteration, completed, effort_minutes]| Node {
                number,
                iteration,
                completed: completed == 1,
                effort_minutes,
            })
            .collect();
        nodes.sort_unstable_by_key(|node| node.number);
        let text = "SELECT string_agg(CAST(from_number AS TEXT) || ' ' || CAST(to_number AS TEXT), ',') AS list
             FROM link WHERE project_id = $1 AND from_kind = 'task' AND field = 'dependencies'";
        let edges: Option<String> = sql(text).bind(project).one(&mut tx).await?.get("list")?;
        let edges: Vec<(i64, i64)> = rows_of(edges.as_deref()).map(|[from, to]| (from, to)).collect();
        let mut graph = Graph { nodes, edges, unknown: Vec::new() };
        let text = concat!(
            "SELECT ",
            columns!(),
            " FROM record r WHERE r.project_id = $1 AND r.kind = 'task' AND r.dangling > 0 ORDER BY r.number"
        );
        for row in sql(text).bind(project).all(&mut tx).await? {
            let task = stored(&row)?;
            let content: Task = task.clone().typed()?.content;
            graph.unknown.extend(content.unknown_dependencies.into_iter().map(|name| (task.id.number, name)));
        }
        Ok(graph)
    }

    async fn expired(&self, tx: &mut Tx, iteration: Option<i64>, after: i64, limit: i64) -> Result<Vec<Stored>> {
        let text = concat!(
            "SELECT ",
            columns!(),
            " FROM record r WHERE r.project_id = $1 AND r.kind = 'task' AND r.state = 'in_progress'
              AND r.lease_until_ms IS NOT NULL AND r.lease_until_ms <= $2 AND ($3 < 0 OR r.iteration = $3) AND r.number > $4 ORDER BY r.number LIMIT $5"
        );
        let query = sql(text).bind(self.who.project_id).bind(self.now_ms()).bind(iteration.unwrap_or(-1));
        query.bind(after).bind(limit).all(tx).await?.iter().map(stored).collect()
    }

    async fn pending(
        &self,
        tx: &mut Tx,
        iteration: Option<i64>,
        after: Option<i64>,
        limit: i64,
    ) -> Result<Vec<Stored>> {
        let query = Query { iteration, after, state: Some("pending".to_owned()), free: true, ..Query::default() };
        select(self.who.project_id, Kind::Task, &query, limit).all(tx).await?.iter().map(stored).collect()
    }

    /// Says whether somebody else's lease has run out.
    async fn may_claim(&self, tx: &mut Tx, task: &Stored, claimant: &Claimant, now_ms: i64) -> Result<bool> {
        match (task.state.as_str(), &task.holder) {
            ("pending", _) => {
                self.waits_for_nothing(tx, task).await?;
                Ok(false)
            }
            ("in_progress", Some(_)) => {
                not_held(task, claimant, now_ms)?;
                Ok(task.holder_key.as_deref() != Some(claimant.key.as_str()))
            }
            // Begun by somebody who never claimed it, or stuck: whoever names it takes it over.
            ("in_progress" | "blocked", _) => Ok(true),
            (state, _) => {
                Err(RecordError::NotInState { id: task.id, from: state.to_owned(), expected: "pending".to_owned() })
            }
        }
    }

    /// Fails if a record of the same kind that this one depends on is not completed.
    async fn waits_for_nothing(&self, tx: &mut Tx, record: &Stored) -> Result<()> {
        // Only tasks are counted: they are listed by it.
        if record.id.kind == Kind::Task && record.waits_on == 0 {
            return Ok(());
        }
        let text = "SELECT l.to_number AS number FROM link l JOIN record d
                 ON d.project_id = l.project_id AND d.kind = l.to_kind AND d.number = l.to_number
             WHERE l.project_id = $1 AND l.from_kind = $2 AND l.from_number = $3 AND l.field = 'dependencies'
                 AND d.state <> 'completed' ORDER BY l.to_number";
        let (kind, number) = (record.id.kind, record.id.number);
        let mut on = Vec::new();
        for row in sql(text).bind(self.who.project_id).bind(kind.as_str()).bind(number).all(tx).await? {
            on.push(kind.id(row.get("number")?));
        }
        if on.is_empty() { Ok(()) } else { Err(RecordError::Waits { id: record.id, on }) }
    }
}

fn check_expected(found: &Stored, expected: Option<Status>) -> Result<()> {
    match expected.map(Status::as_str) {
        Some(expected) if expected != found.state => {
            Err(RecordError::NotInState { id: found.id, from: found.state.clone(), expected: expected.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Fails if the state cannot follow, the present one included: a step to where it is would write nothing.
fn check_moves(found: &Stored, to: Status) -> Result<()> {
    let allowed = found.id.kind.machine().map_or(&[][..], |machine| machine.next(&found.state));
    if allowed.contains(&to.as_str()) {
        return Ok(());
    }
    Err(RecordError::Transition { id: found.id, from: found.state.clone(), to: to.as_str().to_owned(), allowed })
}

fn not_held(task: &Stored, claimant: &Claimant, now_ms: i64) -> Result<()> {
    match &task.holder {
        Some(holder) if holder.lease_until_ms > now_ms && task.holder_key.as_ref() != Some(&claimant.key) => {
            Err(RecordError::Held {
                id: task.id,
                holder: holder.name.clone(),
                left_ms: holder.lease_until_ms.saturating_sub(now_ms),
            })
        }
        _ => Ok(()),
    }
}

/// The task's content in its new state, with the times that go with it.
fn moved(task: &Stored, to: Status, now_ms: i64) -> Result<Value> {
    let mut content: Task = task.clone().typed()?.content;
    content.status = to;
    match to {
        Status::InProgress => content.started_at_ms = content.started_at_ms.or(Some(now_ms)),
        Status::Completed => content.completed_at_ms = Some(now_ms),
        Status::Pending | Status::Blocked => {}
    }
    Ok(serde_json::to_value(&content)?)
}

/// The numbers of a list such as `1 0 60,2 1 0`.
fn rows_of<const N: usize>(list: Option<&str>) -> impl Iterator<Item = [i64; N]> {
    list.unwrap_or_default().split(',').filter_map(|item| {
        let mut numbers = item.split(' ').map(|number| number.parse().ok());
        let mut row = [0; N];
        for place in &mut row {
            *place = numbers.next()??;
        }
        Some(row)
    })
}
