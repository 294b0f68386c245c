//! Change sets: staging them, and looking at them.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::{
    self, ChangeSet, Impact, Implied, ObjectDiff, Op, Operation, Parsed, Part as Piece, Payload, Rename, Report,
    Snapshot, affected, impact, impact_on, overlay, proposed, renames,
};
use crate::refs::Object;
use crate::{Finding, Package, Severity};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolhost_contract::Redactor;

use super::apply::Apply;
use super::begun::{Begun, InTheWay, Missing, Over, as_it_is, has_several_workflows};
use super::conflict::{Conflict, Conflicts};
use super::drafts::{Draft, last_of_each, merged};
use super::error::{NoRevision, PackageError, Result};
use super::kept::no_set;
use super::masked::mask_graph;
use super::part::{Part, Want};
use super::scope::{base_revision, revision_around, revision_of, scope_of};
use super::superseded::{Superseded, explain_superseded, in_place};
use super::validated::{Looked, blocked};
use super::{BATCH, ProjectPackage, set_id};
use toolhost_store::db::{Row, Tx, places, sql, sql_of};

/// Change sets that a session may keep staged.
pub const SETS_STAGED_MAX: usize = 100;
/// Change sets of one list.
pub const LISTED_MAX: i64 = 200;
/// The name of the counter that numbers change sets. No kind of record has this name.
const COUNTER: &str = "change_set";

/// A change set that has been staged.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Staged {
    /// Such as `cs-3`.
    pub change_set_id: String,
    /// `staged`; `validated` where this very set was staged and validated before.
    pub status: String,
    /// What the session now sees otherwise.
    pub objects: Vec<Object>,
    /// Open sets of the session without which this one would not be what was read: they are applied with it.
    pub based_on: Vec<String>,
    /// Sets that this one takes the place of; they are rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<String>,
    /// Sets that were made on one of those and contain its text: they can no longer be applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// What a set of contract 1.1 changes besides what it says, because it follows from that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub implied: Vec<Implied>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Finding>,
    pub impact: Impact,
}

/// A change set in a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeSetLine {
    pub change_set_id: String,
    pub session_id: String,
    pub by: String,
    /// `staged`, `validated`, `applied`, `rejected`, or `blocked`: made on one that was rejected.
    pub status: String,
    /// What it is based on: these sets are applied with it.
    pub based_on: Vec<String>,
    /// The rejected set that a blocked one was made on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_on_rejected: Option<String>,
    /// Of a rejected one: the id of the call that rejected it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_by_call: Option<String>,
    pub objects: Vec<String>,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
}

/// A change set with what stands around it: what it was made for, what it makes of it.
pub struct Preview {
    pub line: ChangeSetLine,
    pub body: Value,
    /// What an apply would say now; of a set that was applied, what it said then. None of a set that was given up.
    pub report: Option<Report>,
    /// Places that somebody else has changed, too: while there are any, it cannot be applied.
    pub conflicts: Vec<Conflict>,
    pub diff: Vec<ObjectDiff>,
}

impl Preview {
    /// Without what looks like a secret: a preview is shown, and no part of it is written back.
    fn redacted(mut self, secrets: &Redactor) -> Self {
        secrets.redact_json(&mut self.body);
        for clash in self.conflicts.iter_mut().flat_map(|conflict| &mut conflict.clashes) {
            let texts = [&mut clash.base, &mut clash.current, &mut clash.ours];
            texts.into_iter().flatten().for_each(|text| secrets.redact(text));
        }
        for object in &mut self.diff {
            object.sides.iter_mut().flatten().for_each(|side| secrets.redact_json(side));
            let Some(graph) = &mut object.graph else { continue };
            mask_graph(graph, secrets);
        }
        self
    }
}

impl ProjectPackage {
    /// Keeps a change set in the session's overlay; nobody else sees it. The very set that is open there, and that no later
    /// one has changed, is not kept twice.
    pub async fn stage(&self, session: &str, value: &Value) -> Result<Staged> {
        let Parsed { mut set, mut warnings } = self.parsed(value).map_err(PackageError::Contract)?;
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        let overlay = self.overlay(session);
        let mut drafts = self.drafts(&mut tx, session.into()).await?;
        if let Some(number) = self.open_already(&mut tx, &set, &drafts).await? {
            return self.told_again(&mut tx, (number, &overlay), &set, &drafts, warnings).await;
        }
        let Superseded { names: superseded, blocked, told } = self.supersede(&mut tx, session, &set).await?;
        let seen = if superseded.is_empty() { None } else { Some(drafts) };
        drafts = self.drafts(&mut tx, session.into()).await?;
        self.room_for_one_more(&mut tx, &overlay).await?;
        let mut want = Want::objects(set.operations.iter().map(|operation| &operation.object));
        want.manifest = set.operations.iter().any(|operation| matches!(operation.object, Object::Workflow(_)));
        let (asked, unclear) = change::wanted(&set);
        warnings.extend(unclear);
        self.want_referring(&mut tx, &mut want, (&asked, &drafts)).await?;
        let mut part = self.part(&mut tx, &want, &drafts).await?;
        let written = set.to_value();
        let named: BTreeSet<Object> = set.operations.iter().map(|operation| operation.object.clone()).collect();
        let given = set.clone();
        let mut implied = match change::complete(part.package(), &mut set, &self.secrets) {
            Ok(implied) => implied,
            Err(mut findings) => {
                explain(&mut findings, &part, &given, &self.secrets);
                let former = self.former(&mut tx, &want, seen.as_deref()).await?;
                explain_superseded(&mut findings, former.as_ref(), value, (&superseded, &self.secrets));
                return Err(PackageError::Rejected(findings));
            }
        };
        for rename in &asked {
            follow(&mut set, part.package(), rename, &mut implied)?;
        }
        if lacks_entries(&mut want, &set) {
            part = self.part(&mut tx, &want, &drafts).await?;
        }
        let wanted =
            wishes(part.package(), &set.operations).map_err(|error| explained(error, &part, &given, &self.secrets))?;
        // What the session saw until now has the texts of what is superseded.
        let former = self.former(&mut tx, &want, seen.as_deref()).await?;
        let number = self.new_number(&mut tx).await?;
        let (mut objects, mut in_the_way, mut missing) = (Vec::new(), InTheWay::default(), Missing::of(&set));
        let mut moments = BTreeMap::new();
        for (n, (object, state)) in wanted.iter().chain(&companions(part.package(), &set.operations)).enumerate() {
            let place = set.operations.iter().rposition(|operation| operation.object == *object);
            // What goes along with another operation has a place behind all of them.
            let position = place.unwrap_or(set.operations.len() + n) as i64;
            let known = former.as_ref().and_then(|former| in_place((&set, &given), object, (former, &told), &part));
            let begun = match known {
                Some(base) => Begun { base, over: None },
                None if !named.contains(object) && base_revision(&set, &scope_of(object).1).is_none() => {
                    as_it_is(object, &part)
                }
                None => {
                    let base = self.base_of(&mut tx, (&overlay, &set), object, &part, &mut moments).await;
                    let Some(begun) = missing.collect(base)? else { continue };
                    begun.unless_made_on_all(&named, &given, object, &part)
                }
            };
            let wanted = match begun.over {
                Some(over) => {
                    let earlier = self.all_drafts(&mut tx, &overlay).await?;
                    in_the_way.rebased(object, &over, state.as_ref(), &earlier)
                }
                None => state.clone(),
            };
            let draft = Draft { set: number, position, object: object.clone(), base: begun.base, wanted };
            self.keep_draft(&mut tx, &draft).await?;
            objects.push(object.clone());
        }
        missing.refuse()?;
        in_the_way.refuse()?;
        warnings.extend(part.findings.iter().cloned());
        let impact = impact_on(part.package(), &set.operations);
        self.keep_set(&mut tx, (number, session), &set.to_value(), &written).await?;
        let based_on = self.based_on(&mut tx, (number, &overlay)).await?;
        tx.commit().await?;
        let (change_set_id, status) = (set_id(number), "staged".to_owned());
        Ok(Staged { change_set_id, status, objects, based_on, superseded, blocked, implied, warnings, impact })
    }

    /// What the stage of a set that is open already is answered with.
    async fn told_again(
        &self,
        tx: &mut Tx,
        (number, overlay): (i64, &str),
        set: &ChangeSet,
        drafts: &[Draft],
        warnings: Vec<Finding>,
    ) -> Result<Staged> {
        let objects = drafts.iter().filter(|draft| draft.set == number).map(|draft| draft.object.clone()).collect();
        let (impact, status) = (impact(&set.operations), self.kept(tx, number).await?.state);
        let (change_set_id, based_on) = (set_id(number), self.based_on(tx, (number, overlay)).await?);
        let (superseded, blocked, implied) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Staged { change_set_id, status, objects, based_on, superseded, blocked, implied, warnings, impact })
    }

    /// Writes the row of a set that was staged.
    async fn keep_set(&self, tx: &mut Tx, (number, session): (i64, &str), body: &Value, written: &Value) -> Result<()> {
        let text = "INSERT INTO change_set (project_id, number, session_id, account_id, by_name, state, body,
                 created_at_ms, updated_at_ms, overlay, written) VALUES ($1, $2, $3, $4, $5, 'staged', $6, $7, $7, $8, $9)";
        let query = sql(text).bind(self.who.project_id).bind(number).bind(session).bind(self.who.user_id);
        let query = query.bind(&self.who.name).bind(body.to_string()).bind(self.clock.unix_ms());
        let query = query.bind(self.overlay(session));
        query.bind((written != body).then(|| written.to_string())).run(tx).await?;
        Ok(())
    }

    /// The change sets, the newest first; those of one session if it is named, those that may still be applied if wished.
    pub async fn change_sets(&self, session: Option<&str>, open_only: bool) -> Result<Vec<ChangeSetLine>> {
        self.change_sets_at(&mut self.db.snapshot().await?, session, open_only).await
    }

    pub(super) async fn change_sets_at(
        &self,
        tx: &mut Tx,
        session: Option<&str>,
        open_only: bool,
    ) -> Result<Vec<ChangeSetLine>> {
        let text =
            "SELECT number, overlay, session_id, by_name, state, created_at_ms, blocked_by, discarded_by FROM change_set
             WHERE project_id = $1 AND ($2 = '' OR session_id = $2) AND ($3 = 0 OR state IN ('staged', 'validated', 'blocked'))
             ORDER BY number DESC LIMIT $4";
        let query = sql(text).bind(self.who.project_id).bind(session.unwrap_or_default());
        let rows = query.bind(i64::from(open_only)).bind(LISTED_MAX).all(tx).await?;
        let mut numbers = Vec::new();
        let mut links: BTreeMap<String, BTreeMap<i64, BTreeSet<i64>>> = BTreeMap::new();
        for row in &rows {
            numbers.push(row.get("number")?);
            let overlay: String = row.get("overlay")?;
            let state: String = row.get("state")?;
            if is_open(&state) && !links.contains_key(&overlay) {
                let found = self.links(tx, &overlay).await?;
                links.insert(overlay, found);
            }
        }
        let mut objects = self.objects_of(tx, &numbers).await?;
        let mut lines = Vec::new();
        for (row, number) in rows.iter().zip(numbers) {
            let mut line = line(row, objects.remove(&number).unwrap_or_default())?;
            let based_on = links.get(&row.get::<String>("overlay")?).and_then(|links| links.get(&number));
            line.based_on = based_on.into_iter().flatten().copied().map(set_id).collect();
            lines.push(line);
        }
        Ok(lines)
    }

    /// The objects of these sets, in the order of their operations.
    async fn objects_of(&self, tx: &mut Tx, sets: &[i64]) -> Result<BTreeMap<i64, Vec<String>>> {
        let mut objects: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for batch in sets.chunks(BATCH) {
            let text = format!(
                "SELECT set_number, object FROM change_operation WHERE project_id = $1 AND set_number IN ({})
                 ORDER BY set_number, position",
                places(2, batch.len())
            );
            let query = batch.iter().fold(sql_of(text).bind(self.who.project_id), |query, set| query.bind(*set));
            for row in query.all(tx).await? {
                objects.entry(row.get("set_number")?).or_default().push(row.get("object")?);
            }
        }
        Ok(objects)
    }

    /// A change set and what an apply would say and change of the package as it is now; of one that was applied, what it did.
    pub async fn preview(&self, number: i64) -> Result<Preview> {
        self.preview_of(&Apply { number, ..Apply::default() }).await
    }

    /// As [`ProjectPackage::preview`], of the operations that are wanted.
    ///
    /// # Errors
    /// There is no such set; the operations cannot be applied without others.
    pub async fn preview_of(&self, wish: &Apply) -> Result<Preview> {
        Ok(self.preview_at(&mut self.db.snapshot().await?, wish).await?.0)
    }

    /// The preview, and whether later sets of the session that make nothing and delete nothing leave it as it is.
    pub(super) async fn preview_at(&self, tx: &mut Tx, wish: &Apply) -> Result<(Preview, bool)> {
        let number = wish.number;
        let text =
            "SELECT number, session_id, by_name, state, created_at_ms, blocked_by, discarded_by, report, applied_with FROM change_set
             WHERE project_id = $1 AND number = $2";
        let row = sql(text).bind(self.who.project_id).bind(number).optional(tx).await?;
        let row = row.ok_or_else(|| no_set(number))?;
        let objects = self.objects_of(tx, &[number]).await?.remove(&number).unwrap_or_default();
        let mut line = line(&row, objects)?;
        let kept = self.kept(tx, number).await?;
        if line.status == "applied" {
            let report: Option<String> = row.get("report")?;
            let report = report.map(|text| serde_json::from_str(&text)).transpose()?;
            let with: Option<i64> = row.get("applied_with")?;
            let diff = self.applied_diff(tx, with.unwrap_or(number), &line).await?;
            let shown = Preview { line, body: kept.body, report, conflicts: Vec::new(), diff };
            return Ok((shown.redacted(&self.secrets), true));
        }
        let staged = match line.status.as_str() {
            "rejected" => self.wishes_of(tx, number).await?,
            _ => self.wishes(tx, number).await?,
        };
        let mut is_settled = true;
        let (report, drafts, applied) = if is_open(&line.status) {
            let chosen = self.chosen(tx, wish, staged).await?;
            let Looked { report, chain, applied } = self.report_now(tx, &kept, &chosen).await?;
            line.based_on = chain.names();
            is_settled = chain.is_settled;
            (Some(report), chain.drafts, applied)
        } else {
            let drafts = last_of_each(staged);
            let objects: Vec<Object> = drafts.iter().map(|draft| draft.object.clone()).collect();
            ((line.status == "blocked").then(|| blocked(&kept, &objects)), drafts, None)
        };
        let objects: Vec<Object> = drafts.iter().map(|draft| draft.object.clone()).collect();
        if let Some((base, after)) = applied {
            let diff = change::masked_diff(&base, &after, &objects, &self.secrets);
            let shown = Preview { line, body: kept.body, report, conflicts: Vec::new(), diff };
            return Ok((shown.redacted(&self.secrets), is_settled));
        }
        let part = self.part_for(tx, &drafts).await?;
        let with = |state: fn(Draft) -> (Object, Option<Snapshot>), drafts: Vec<Draft>| {
            overlay(&part.base, &drafts.into_iter().map(state).collect::<Vec<_>>()).0
        };
        let wanted: fn(Draft) -> (Object, Option<Snapshot>) = |draft| (draft.object, draft.wanted);
        // What an apply would make of the package; where it would refuse, what the set makes of what its author saw: beside the
        // package of now it would look as if it took the other change back.
        let (diff, conflicts) = match merged(&part.base, &drafts) {
            Ok((drafts, _)) => {
                let diff = change::masked_diff(&part.base, &with(wanted, drafts), &objects, &self.secrets);
                (diff, Vec::new())
            }
            Err(error) => {
                let seen = with(|draft| (draft.object, draft.base), drafts.clone());
                let diff = change::masked_diff(&seen, &with(wanted, drafts), &objects, &self.secrets);
                let PackageError::Conflict(Conflicts(conflicts)) = error else { return Err(error) };
                // What cannot be applied in any case does not clash.
                (diff, if report.as_ref().is_some_and(|_| line.status != "blocked") { conflicts } else { Vec::new() })
            }
        };
        Ok((Preview { line, body: kept.body, report, conflicts, diff }.redacted(&self.secrets), is_settled))
    }

    /// What would be applied with a set.
    async fn based_on(&self, tx: &mut Tx, (number, overlay): (i64, &str)) -> Result<Vec<String>> {
        let based_on = self.links(tx, overlay).await?.remove(&number).unwrap_or_default();
        Ok(based_on.into_iter().map(set_id).collect())
    }

    /// What the apply of a set, or all of its applies, made of the package as it then was.
    async fn applied_diff(&self, tx: &mut Tx, number: i64, line: &ChangeSetLine) -> Result<Vec<ObjectDiff>> {
        let text = "SELECT MIN(moment) AS first, MAX(moment) AS last FROM package_change
             WHERE project_id = $1 AND set_number = $2 AND kind = 'apply'";
        let row = sql(text).bind(self.who.project_id).bind(number).one(tx).await?;
        let (Some(first), Some(last)) = (row.get::<Option<i64>>("first")?, row.get::<Option<i64>>("last")?) else {
            return Ok(Vec::new());
        };
        let objects: Vec<Object> = line.objects.iter().filter_map(|name| Object::parse(name)).collect();
        let at = |moment| Want { at: Some(moment), ..Want::objects(&objects) };
        let (before, after) = (self.part(tx, &at(first - 1), &[]).await?, self.part(tx, &at(last), &[]).await?);
        Ok(change::masked_diff(&before.base, &after.base, &objects, &self.secrets))
    }

    async fn open_already(&self, tx: &mut Tx, set: &ChangeSet, drafts: &[Draft]) -> Result<Option<i64>> {
        let of = |operation: &Operation| drafts.iter().find(|draft| draft.object == operation.object);
        let mut numbers = set.operations.iter().map(|operation| of(operation).map(|draft| draft.set));
        let Some(Some(first)) = numbers.next() else { return Ok(None) };
        if !numbers.all(|number| number == Some(first)) {
            return Ok(None);
        }
        let written = self.as_written(tx, first).await?;
        Ok((serde_json::from_str::<Value>(&written)? == set.to_value()).then_some(first))
    }

    /// The text of a set as its author gave it.
    pub(super) async fn as_written(&self, tx: &mut Tx, number: i64) -> Result<String> {
        let text = "SELECT COALESCE(written, body) AS written FROM change_set WHERE project_id = $1 AND number = $2";
        Ok(sql(text).bind(self.who.project_id).bind(number).one(tx).await?.get("written")?)
    }

    async fn room_for_one_more(&self, tx: &mut Tx, overlay: &str) -> Result<()> {
        if self.open_numbers(tx, overlay).await?.len() >= SETS_STAGED_MAX {
            return Err(PackageError::TooMany { max: SETS_STAGED_MAX, what: "staged change sets" });
        }
        Ok(())
    }

    /// The object as it was when the change was begun: what the revision says that was sent along.
    async fn base_of(
        &self,
        tx: &mut Tx,
        (overlay, set): (&str, &ChangeSet),
        object: &Object,
        part: &Part,
        moments: &mut BTreeMap<(String, String), Option<Part>>,
    ) -> Result<Begun> {
        let at = |base| Ok(Begun { base, over: None });
        let draft = part.draft(object);
        let current = change::snapshot(&part.base, object);
        let (field, scope) = scope_of(object);
        let Some(declared) = base_revision(set, &scope) else {
            return match (draft, &current) {
                (Some(draft), _) if draft.base.is_none() => at(None),
                (None, None) => at(None),
                _ => {
                    let (field, object) = (field.to_owned(), object.to_string());
                    Err(PackageError::NoRevision(vec![NoRevision { field, object }]))
                }
            };
        };
        // It is accepted at no time: once the object has changed, nobody could say what it was a revision of.
        if [&part.base, part.package()].iter().any(|seen| revision_of(seen, object).as_ref() == Some(&declared)) {
            return Err(PackageError::RevisionOfObject { field, scope, object: object.to_string() });
        }
        let is_of = |seen: &Package| revision_around(seen, object).as_ref() == Some(&declared);
        // A change of what the session sees goes on from where the draft began. One that was read without the draft would overwrite it,
        // so it is merged with it.
        let over = |read: Option<Snapshot>| match draft {
            Some(draft) => Begun { base: draft.base.clone(), over: Some(Over { draft: draft.clone(), read }) },
            None => Begun { base: read, over: None },
        };
        if let Some(draft) = draft.filter(|_| is_of(part.package())) {
            return at(draft.base.clone());
        }
        if is_of(&part.base) || is_of(part.package()) {
            return Ok(over(current));
        }
        let key = (scope.clone(), declared.clone());
        if !moments.contains_key(&key) {
            let then = match self.moment_of(tx, &scope, &declared).await? {
                Some(at) => {
                    let objects: Vec<&Object> = set.operations.iter().map(|operation| &operation.object).collect();
                    let want = Want { at: Some(at), ..Want::objects(objects) };
                    Some(self.part(tx, &want, &[]).await?)
                }
                None => self.earlier_view(tx, (overlay, set), object, &declared).await?,
            };
            moments.insert(key.clone(), then);
        }
        let then = moments.get(&key).and_then(Option::as_ref);
        // What it was made on had a draft that was given up since. A set that takes its place goes on from where that one began, and so
        // does one that makes anew what only that one had made.
        let given_up = then.and_then(|then| then.draft(object)).filter(|_| draft.is_none());
        let supersedes = set.supersedes().is_ok_and(|superseded| !superseded.is_empty());
        if let Some(given_up) = given_up.filter(|given_up| supersedes || given_up.base.is_none()) {
            return at(given_up.base.clone());
        }
        match then {
            Some(then) => Ok(over(as_named(set, object, change::snapshot(then.package(), object), current.as_ref()))),
            // Nothing of an object that is not there can be lost.
            None if current.is_none() && draft.is_none() => at(None),
            None => {
                let (object, several) = (object.to_string(), has_several_workflows(set));
                Err(PackageError::UnknownRevision { scope, revision: declared, object, several })
            }
        }
    }

    async fn moment_of(&self, tx: &mut Tx, scope: &str, revision: &str) -> Result<Option<i64>> {
        let text = "SELECT MAX(moment) AS moment FROM package_revision
             WHERE project_id = $1 AND scope = $2 AND revision = $3";
        let row = sql(text).bind(self.who.project_id).bind(scope).bind(revision).one(tx).await?;
        Ok(row.get("moment")?)
    }

    async fn keep_draft(&self, tx: &mut Tx, draft: &Draft) -> Result<()> {
        let state = |state: &Option<Snapshot>| state.as_ref().map(serde_json::to_string).transpose();
        let text = "INSERT INTO change_operation (project_id, set_number, position, object, state, base, wanted)
             VALUES ($1, $2, $3, $4, 'staged', $5, $6)";
        let query = sql(text).bind(self.who.project_id).bind(draft.set).bind(draft.position);
        let query = query.bind(draft.object.to_string()).bind(state(&draft.base)?).bind(state(&draft.wanted)?);
        query.run(tx).await?;
        Ok(())
    }

    async fn new_number(&self, tx: &mut Tx) -> Result<i64> {
        Ok(tx.next_number(self.who.project_id, COUNTER).await?)
    }
}

/// Whether entries of the manifest are to be read as well: a workflow that is changed only because something else is has
/// one, and it is a part of what the change begins from.
fn lacks_entries(want: &mut Want, set: &ChangeSet) -> bool {
    let is_needed = set.operations.iter().any(|operation| matches!(operation.object, Object::Workflow(_)));
    let was_wanted = want.manifest;
    want.manifest |= is_needed;
    is_needed && !was_wanted
}

/// The same error with findings that speak of the operations of the set.
fn explained(error: PackageError, part: &Part, given: &ChangeSet, secrets: &Redactor) -> PackageError {
    match error {
        PackageError::Rejected(mut findings) => {
            explain(&mut findings, part, given, secrets);
            PackageError::Rejected(findings)
        }
        other => other,
    }
}

/// Lets findings speak of the operations of the set. What is not there may be there for others, where this session's own text
/// is in the way of theirs.
fn explain(findings: &mut [Finding], part: &Part, given: &ChangeSet, secrets: &Redactor) {
    change::explain(part.package(), given, findings, secrets);
    let Some(problem) = part.findings.first() else { return };
    for finding in findings.iter_mut().filter(|finding| finding.code == "TARGET_NOT_FOUND") {
        let said = format!("{}: discard the set that changed it, or stage this one in its place", problem.message);
        finding.hint = format!("{said} (`extensions.supersedes`); or {}", finding.hint);
    }
}

/// Adds to a set what makes everything refer to an object by its other name. What the set changes itself is changed on.
fn follow(set: &mut ChangeSet, package: &Package, rename: &Rename, implied: &mut Vec<Implied>) -> Result<()> {
    let changed = overlay(package, &wishes(package, &set.operations)?).0;
    for operation in renames(&changed, &rename.from, &rename.to) {
        let says = format!("names `{}` where it named `{}`", rename.to, rename.from);
        implied.push(Implied { object: operation.object.clone(), says });
        match set.operations.iter_mut().find(|known| known.object == operation.object && known.op == operation.op) {
            Some(known) => known.payload = change::both(known.payload.take(), operation.payload),
            None => set.operations.push(operation),
        }
    }
    Ok(())
}

/// What was there at an earlier moment, but for the parts that the set does not name: it does not mean those.
fn as_named(set: &ChangeSet, object: &Object, then: Option<Snapshot>, now: Option<&Snapshot>) -> Option<Snapshot> {
    let mut then = then?;
    let payload = set.operations.iter().rev().find(|operation| operation.object == *object)?.payload.as_ref();
    if let (Some(Payload::Workflow(named)), Some(now)) = (payload, now) {
        let entry = named.display_name.is_some() || named.description.is_some() || named.tags.is_some();
        let parts = [
            (Piece::Document, named.workflow_md.is_some()),
            (Piece::Graph, named.graph_json.is_some()),
            (Piece::Entry, entry),
        ];
        for (part, _) in parts.into_iter().filter(|(_, is_named)| !is_named) {
            match now.get(part) {
                Some(text) => drop(then.0.insert(part, text.to_owned())),
                None => drop(then.0.remove(&part)),
            }
        }
    }
    Some(then)
}

/// Whether a set may still be applied.
pub(super) fn is_open(state: &str) -> bool {
    matches!(state, "staged" | "validated")
}

/// A set in a list, with nothing that it is based on.
fn line(row: &Row, objects: Vec<String>) -> Result<ChangeSetLine> {
    Ok(ChangeSetLine {
        change_set_id: set_id(row.get("number")?),
        session_id: row.get("session_id")?,
        by: row.get("by_name")?,
        status: row.get("state")?,
        based_on: Vec::new(),
        made_on_rejected: row.get::<Option<i64>>("blocked_by")?.map(set_id),
        rejected_by_call: row.get("discarded_by")?,
        objects,
        created_at_ms: row.get("created_at_ms")?,
    })
}

impl Begun {
    /// A passage was found in what the session sees now, and what follows from a change was made on it: neither is laid over an
    /// earlier draft, and what has changed since the revision that was read is in it.
    fn unless_made_on_all(self, named: &BTreeSet<Object>, given: &ChangeSet, object: &Object, part: &Part) -> Self {
        let is_made_on_all = !named.contains(object) || has_only_text_edits(given, object);
        if is_made_on_all { as_it_is(object, part) } else { self }
    }
}

/// Whether all that a set says of an object is passages that are found and replaced.
fn has_only_text_edits(given: &ChangeSet, object: &Object) -> bool {
    let mut own = given.operations.iter().filter(|operation| operation.object == *object).peekable();
    own.peek().is_some() && own.all(|operation| operation.payload.is_none() && operation.edits.are_only_texts())
}

/// The steps of a workflow that goes: each goes only as it was.
fn companions(package: &Package, operations: &[Operation]) -> Vec<(Object, Option<Snapshot>)> {
    let named = |object: &Object| operations.iter().any(|operation| operation.object == *object);
    let all = operations.iter().flat_map(|operation| affected(package, operation));
    all.filter(|object| !named(object)).map(|object| (object, None)).collect()
}

/// What each object is to be, workflows first: a step's file is where their graph says.
fn wishes(package: &Package, operations: &[Operation]) -> Result<Vec<(Object, Option<Snapshot>)>> {
    let is_workflow = |operation: &&Operation| matches!(operation.object, Object::Workflow(_));
    let mut wanted: Vec<(Object, Option<Snapshot>)> = Vec::new();
    let mut findings = Vec::new();
    let mut seen_as = package.clone();
    for is_first in [true, false] {
        for operation in operations.iter().filter(|operation| is_workflow(operation) == is_first) {
            // What goes is judged by what was: its node may be gone from the new graph already.
            let before = if operation.op == Op::Delete { package } else { &seen_as };
            match proposed(before, operation) {
                Ok(state) => {
                    wanted.retain(|(object, _)| *object != operation.object);
                    wanted.push((operation.object.clone(), state));
                }
                Err(finding) => findings.push(*finding),
            }
        }
        if is_first && !wanted.is_empty() {
            seen_as = overlay(package, &wanted).0;
        }
    }
    findings.extend(overlay(package, &wanted).1.into_iter().filter(|finding| finding.severity == Severity::Error));
    if findings.is_empty() { Ok(wanted) } else { Err(PackageError::Rejected(findings)) }
}
