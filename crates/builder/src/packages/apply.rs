//! Applying what a session has staged, and taking it back: all of it in one transaction, or nothing.
//!
//! The hard problem is the change that somebody else has applied meanwhile. Each operation knows the object as it was when
//! the change was begun; where the object is another one now, both changes are merged if they do not touch, and if they do,
//! nothing is written and both are shown.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::{
    self, Change, Check, Clash, ClashPlace, Found, GraphDiff, Merged, Part as Piece, Report, Snapshot, Stage, compare,
    merge,
};
use crate::limits::DIFF_BYTES_MAX;
use crate::refs::Object;
use crate::{ASSETS_FOLDER, Edits, Files, Finding, MANIFEST, Package, Severity, places_of, validate};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::chain::Chain;
use super::change::Cause;
use super::conflict::{Conflict, Conflicts};
use super::drafts::{Draft, last_of_each, merged};
use super::error::{PackageError, Result};
use super::kept::{Kept, expect_open};
use super::masked::mask_graph;
use super::part::{Head, Part, Want};

use super::{ProjectPackage, Revisions, set_id};
use toolhost_contract::workspace::unified;
use toolhost_store::db::{Tx, sql};

/// Sets of a chain that are looked at alone, to say which of them brings what is wrong.
const LOOKED_AT_ALONE_MAX: usize = 16;

/// What a person wants applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Apply {
    pub number: i64,
    /// Positions of the operations that are wanted, from 0; all if `None`.
    pub operations: Option<Vec<i64>>,
    /// The objects that may go, such as `step:main/step-03`.
    pub deletes: BTreeSet<String>,
}

/// What has been applied.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    pub change_set_id: String,
    /// `applied`, or `staged` while operations are left.
    pub status: String,
    /// The sets that were applied with it, because it is based on them.
    pub based_on: Vec<String>,
    /// The number of this change in the package's history; none if nothing became different.
    pub moment: Option<i64>,
    pub objects: Vec<Object>,
    /// Objects in which somebody else's change was merged.
    pub merged: Vec<Object>,
    /// Operations that are still staged.
    pub left: usize,
    pub new_revision: Revisions,
    pub warnings: Vec<Found>,
}

/// What has been taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Undone {
    /// The number of the undo itself.
    pub moment: Option<i64>,
    pub undoes: i64,
    pub files: Vec<String>,
}

/// What an undo would do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoPlan {
    pub undoes: i64,
    /// The files that become others by it.
    pub files: Vec<UndoneFile>,
}

/// What an undo would make of a file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoneFile {
    pub path: String,
    pub change: Change,
    /// A unified diff without a header, with secrets masked.
    pub unified: String,
    /// Whether the diff was cut short.
    pub is_cut: bool,
    /// What becomes of the graph, if the file is one and anything but its layout differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphDiff>,
    /// The graph before and after, with secrets masked; null where there is none.
    #[serde(skip)]
    pub sides: Option<[Value; 2]>,
}

/// The files that an undo would write, and what they contain now.
struct Undoing {
    edits: Edits,
    present: Files,
}

/// What an apply would do.
pub(super) struct Examined {
    pub(super) chain: Chain,
    pub(super) head: Head,
    pub(super) base: Package,
    /// The staged operations, merged into the package as it is now.
    pub(super) drafts: Vec<Draft>,
    /// Objects in which somebody else's change is merged.
    pub(super) merged: Vec<Object>,
    pub(super) after: Package,
    pub(super) report: Report,
}

impl ProjectPackage {
    /// Applies a staged set, or the operations of it that are wanted, with the sets that it is based on: together, as one
    /// change. What the session staged later stays, as a change of what was staged before it.
    ///
    /// Only what is valid against the package as it is now is applied, so this validates, whatever was said before: the set
    /// is `validated` then, or stays `staged` and is refused with what was found.
    pub async fn apply(&self, wish: &Apply) -> Result<Applied> {
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        let kept = expect_open(self.kept(&mut tx, wish.number).await?, "applied")?;
        let staged = self.wishes(&mut tx, wish.number).await?;
        let chosen = self.chosen(&mut tx, wish, staged).await?;
        let examined = self.examine(&mut tx, &kept, &chosen).await?;
        let Examined { chain, head, base, drafts, merged, after, report } = examined;
        // What was found of some operations says nothing of the others.
        if wish.operations.is_none() {
            self.keep_report(&mut tx, wish.number, &report).await?;
        }
        if !report.valid {
            tx.commit().await?;
            return Err(PackageError::Unfit { number: wish.number, report: Box::new(report) });
        }
        let unconfirmed: Vec<String> = chain
            .drafts
            .iter()
            .filter(|draft| {
                draft.wanted.is_none() && !goes_along(draft, &chain.drafts) && is_there(&base, &draft.object)
            })
            .map(|draft| draft.object.to_string())
            .filter(|name| !wish.deletes.contains(name))
            .collect();
        if !unconfirmed.is_empty() {
            return Err(PackageError::DeletesUnconfirmed(unconfirmed));
        }
        let edits = edits_between(base.files(), after.files());
        let operations: Vec<i64> = chosen.iter().map(|draft| draft.position).collect();
        let cause = Cause { kind: "apply", set: Some(wish.number), operations: Some(&operations), undoes: None };
        let moment = self.commit(&mut tx, &head, &edits, &cause).await?;
        let left = self.settle(&mut tx, &kept.overlay, wish.number, &chain.drafts).await?;
        let new_revision = self.revisions_now(&mut tx, &drafts).await?;
        tx.commit().await?;
        Ok(Applied {
            change_set_id: set_id(wish.number),
            status: if left == 0 { "applied" } else { "staged" }.to_owned(),
            based_on: chain.names(),
            moment,
            objects: drafts.into_iter().map(|draft| draft.object).collect(),
            merged,
            left,
            new_revision,
            warnings: report.warnings,
        })
    }

    /// What these drafts of a set, with the sets that it is based on, make of the package as it is now, and whether that may
    /// be. An apply and a validation both ask here, so that one says what the other does.
    ///
    /// # Errors
    /// [`PackageError::Conflict`] where somebody else has changed the same places.
    pub(super) async fn examine(&self, tx: &mut Tx, kept: &Kept, chosen: &[Draft]) -> Result<Examined> {
        let mut examined = self.examine_whole(tx, kept, chosen).await?;
        self.say_whose(tx, &mut examined).await?;
        say_together(kept, &mut examined);
        Ok(examined)
    }

    /// Names for each finding the set that brings it, where that is one on which the set is based: it is mended there.
    async fn say_whose(&self, tx: &mut Tx, examined: &mut Examined) -> Result<()> {
        let Examined { chain, report, .. } = examined;
        let mut open: Vec<&mut Found> = report.errors.iter_mut().chain(&mut report.warnings).collect();
        open.retain(|found| found.stage != Stage::Impact && !found.before);
        if open.is_empty() {
            return Ok(());
        }
        // Whose they are is found in the chains of other sets.
        chain.is_settled = false;
        let mut alone = Vec::new();
        for number in chain.based_on.iter().copied().take(LOOKED_AT_ALONE_MAX) {
            let kept = self.kept(tx, number).await?;
            let drafts = last_of_each(self.wishes(tx, number).await?);
            // What cannot be laid over the package by itself brings nothing that can be named.
            if let Ok(Examined { chain, report, .. }) = self.examine_whole(tx, &kept, &drafts).await {
                alone.push((chain.based_on.len(), number, report));
            }
        }
        // What a set is based on comes before it.
        alone.sort_by_key(|(below, number, _)| (*below, *number));
        for found in open {
            let brings = |report: &Report| {
                report.errors.iter().chain(&report.warnings).any(|other| !other.before && other.is_same(found))
            };
            if let Some((_, number, _)) = alone.iter().find(|(_, _, report)| brings(report)) {
                let set = set_id(*number);
                found.hint = format!("{}; mend it in a set that supersedes {set}, or in this one", found.hint);
                found.change_set_id = Some(set);
            }
        }
        Ok(())
    }

    async fn examine_whole(&self, tx: &mut Tx, kept: &Kept, chosen: &[Draft]) -> Result<Examined> {
        let mut chain = self.chain(tx, kept, chosen).await?;
        let part = match chain.part.take() {
            Some(part) => part,
            None => self.part_for(tx, &chain.drafts).await?,
        };
        let Part { head, base, after, findings, .. } = part;
        let (drafts, merged) = merged(&base, &chain.drafts)?;
        // Where all of them can be merged, this is what they make of the package.
        let after = after.unwrap_or_else(|| base.clone());
        let report = change::validate(&Check {
            schemas: self.schemas(),
            base: &base,
            after: &after,
            set: &chain.body,
            unwritten: &findings,
            secrets: &self.secrets,
        });
        Ok(Examined { chain, head, base, drafts, merged, after, report })
    }

    /// What an undo of a change would do now. Nothing is changed by it.
    pub async fn undo_plan(&self, moment: i64) -> Result<UndoPlan> {
        // Written and never committed: only so is it known what would be wrong then.
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        let head = self.head(&mut tx).await?;
        let Undoing { edits, present } = self.undoing(&mut tx, moment).await?;
        self.write_undo(&mut tx, &head, &edits, moment).await?;
        let shown = |bytes: Option<&Vec<u8>>| {
            bytes.map(|bytes| {
                let mut text = String::from_utf8_lossy(bytes).into_owned();
                self.secrets.redact(&mut text);
                text
            })
        };
        let mut files = Vec::new();
        for (path, after) in &edits {
            let before = present.get(path);
            if before == after.as_ref() {
                continue;
            }
            let found = unified(&shown(before).unwrap_or_default(), &shown(after.as_ref()).unwrap_or_default());
            let end = found.text.floor_char_boundary(DIFF_BYTES_MAX);
            let sides = [before, after.as_ref()].map(|bytes| self.graph_of(path, bytes));
            let mut graph = Some(compare(&sides[0], &sides[1])).filter(|graph| !graph.is_empty());
            graph.iter_mut().for_each(|graph| mask_graph(graph, &self.secrets));
            files.push(UndoneFile {
                path: path.clone(),
                change: Change::of(before, after.as_ref()),
                is_cut: end < found.text.len(),
                unified: found.text[..end].to_owned(),
                sides: graph.is_some().then_some(sides),
                graph,
            });
        }
        Ok(UndoPlan { undoes: moment, files })
    }

    /// The graph that a file is, with secrets masked; null where it is none.
    fn graph_of(&self, path: &str, bytes: Option<&Vec<u8>>) -> Value {
        let bytes = bytes.filter(|_| path.ends_with(".json"));
        let read = bytes.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        let mut graph = read.filter(|read| read.get("nodes").is_some_and(Value::is_array)).unwrap_or_default();
        self.secrets.redact_json(&mut graph);
        graph
    }

    /// The files that an undo of a change would write, and what they contain now.
    async fn undoing(&self, tx: &mut Tx, moment: i64) -> Result<Undoing> {
        let no = |why: &str| PackageError::NoUndo { moment, why: why.to_owned() };
        let deed = self.deed_at(tx, moment).await?.ok_or(PackageError::NoChange { moment })?;
        if let Some(by) = deed.undone_by {
            return Err(no(&format!("change {by} has done so already")));
        }
        if deed.files.is_empty() {
            return Err(no("the package begins with it"));
        }
        let paths: BTreeSet<String> = deed.files.iter().cloned().collect();
        let former = self.files(tx, &paths, Some(moment - 1)).await?;
        let applied = self.files(tx, &paths, Some(moment)).await?;
        let present = self.files(tx, &paths, None).await?;
        let mut edits = Edits::new();
        let mut conflicts = Vec::new();
        for path in &paths {
            match taken_back(piece_of(path), [&applied, &present, &former].map(|files| files.get(path))) {
                Ok(bytes) => drop(edits.insert(path.clone(), bytes)),
                Err(clashes) => conflicts.push(Conflict { object: path.clone(), clashes }),
            }
        }
        if !conflicts.is_empty() {
            let touched: BTreeSet<&str> = conflicts.iter().map(|conflict| conflict.object.as_str()).collect();
            let since = self.changed_since(tx, moment, &touched).await?;
            return Err(PackageError::UndoConflict { moment, since, conflicts: Conflicts(conflicts) });
        }
        Ok(Undoing { edits, present })
    }

    /// Takes back what was applied, also if it has been changed since, as long as both do not touch.
    pub async fn undo(&self, moment: i64) -> Result<Undone> {
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        let head = self.head(&mut tx).await?;
        let Undoing { edits, .. } = self.undoing(&mut tx, moment).await?;
        let undone = self.write_undo(&mut tx, &head, &edits, moment).await?;
        if let Some(by) = undone {
            let text = "UPDATE package_change SET undone_by = $3 WHERE project_id = $1 AND moment = $2";
            sql(text).bind(self.who.project_id).bind(moment).bind(by).run(&mut tx).await?;
        }
        tx.commit().await?;
        Ok(Undone { moment: undone, undoes: moment, files: edits.into_keys().collect() })
    }

    /// Writes what an undo writes, and refuses what would make the package less valid than it is. Answers the new moment.
    async fn write_undo(&self, tx: &mut Tx, head: &Head, edits: &Edits, moment: i64) -> Result<Option<i64>> {
        let cause = Cause { kind: "undo", set: None, operations: None, undoes: Some(moment) };
        let around = self.around(tx, head, edits).await?;
        let was = self.findings_in(tx, &around).await?;
        let undone = self.commit(tx, head, edits, &cause).await?;
        let now = self.findings_in(tx, &around).await?;
        let new: Vec<Finding> = now.into_iter().filter(|finding| !was.contains(finding)).collect();
        if new.is_empty() { Ok(undone) } else { Err(PackageError::Invalid(new)) }
    }

    /// The workflows that these files belong to, and those that name what may be gone.
    async fn around(&self, tx: &mut Tx, head: &Head, edits: &Edits) -> Result<Want> {
        let mut want = Want { asset_names: true, workflow_names: true, manifest: true, ..Want::default() };
        want.workflows = self.workflows_with(tx, edits.keys()).await?;
        for path in edits.keys() {
            for unit in self.units_with(tx, &Object::Asset(path.clone())).await? {
                want.add_unit(&unit);
            }
        }
        for object in gone_from(head, edits, &self.files(tx, &edits.keys().cloned().collect(), None).await?) {
            for unit in self.units_with(tx, &object).await? {
                want.add_unit(&unit);
            }
        }
        Ok(want)
    }

    /// What is wrong there.
    async fn findings_in(&self, tx: &mut Tx, want: &Want) -> Result<Vec<Finding>> {
        let part = self.part(tx, want, &[]).await?;
        Ok(validate(&part.base).into_iter().filter(|finding| finding.severity == Severity::Error).collect())
    }

    /// Marks what has been applied, as it was staged: later sets of the session were made on that. Answers how many
    /// operations of the set are left.
    async fn settle(&self, tx: &mut Tx, overlay: &str, number: i64, drafts: &[Draft]) -> Result<usize> {
        let project = self.who.project_id;
        for draft in drafts {
            let object = draft.object.to_string();
            let text =
                "UPDATE change_operation SET state = CASE WHEN set_number = $3 THEN 'applied' ELSE 'replaced' END
                 WHERE project_id = $1 AND object = $2 AND state = 'staged' AND set_number <= $3 AND set_number IN
                     (SELECT number FROM change_set WHERE project_id = $1 AND overlay = $4)";
            sql(text).bind(project).bind(&object).bind(draft.set).bind(overlay).run(tx).await?;
        }
        self.go_on_from(tx, overlay, drafts).await?;
        let text = "UPDATE change_set SET state = 'applied', updated_at_ms = $3, applied_with = $4
             WHERE project_id = $1 AND overlay = $2 AND state IN ('staged', 'validated') AND NOT EXISTS
                 (SELECT 1 FROM change_operation o WHERE o.project_id = $1 AND o.set_number = change_set.number
                  AND o.state = 'staged')";
        sql(text).bind(project).bind(overlay).bind(self.clock.unix_ms()).bind(number).run(tx).await?;
        // The operations that are left were not validated alone.
        let text =
            "UPDATE change_set SET state = 'staged' WHERE project_id = $1 AND number = $2 AND state = 'validated'";
        sql(text).bind(project).bind(number).run(tx).await?;
        Ok(self.wishes(tx, number).await?.len())
    }

    /// Later drafts of the session go on from those of the same objects that were applied.
    async fn go_on_from(&self, tx: &mut Tx, overlay: &str, applied: &[Draft]) -> Result<()> {
        for later in self.all_drafts(tx, overlay).await? {
            let below = |draft: &&Draft| draft.object == later.object && draft.set < later.set;
            let Some(draft) = applied.iter().find(below) else { continue };
            let base = draft.seen_with(later.base.as_ref());
            let base = base.as_ref().map(serde_json::to_string).transpose()?;
            let text = "UPDATE change_operation SET base = $4
                 WHERE project_id = $1 AND set_number = $2 AND position = $3";
            sql(text).bind(self.who.project_id).bind(later.set).bind(later.position).bind(base).run(tx).await?;
        }
        Ok(())
    }

    /// The operations that are wanted, with what they imply; of an object that two of them change, the last.
    ///
    /// # Errors
    /// There is no such operation; or one that is left out says what one that is wanted says, too; or a rename would be made in
    /// part.
    pub(super) async fn chosen(&self, tx: &mut Tx, wish: &Apply, staged: Vec<Draft>) -> Result<Vec<Draft>> {
        let Some(positions) = &wish.operations else {
            return if staged.is_empty() {
                Err(PackageError::NothingStaged("applied"))
            } else {
                Ok(last_of_each(staged))
            };
        };
        if let Some(position) =
            positions.iter().find(|position| !staged.iter().any(|draft| draft.position == **position))
        {
            return Err(PackageError::NoOperation { number: wish.number, position: *position });
        }
        let (written, renames) = self.written(tx, wish.number).await?;
        if renames && staged.iter().any(|draft| !positions.contains(&draft.position)) {
            return Err(PackageError::RenameInPart { number: wish.number });
        }
        let named: Vec<Draft> = staged.iter().filter(|draft| positions.contains(&draft.position)).cloned().collect();
        let mut implied: BTreeSet<i64> = BTreeSet::new();
        for group in said_twice(&staged) {
            let (mine, left): (Vec<&Draft>, Vec<&Draft>) =
                group.into_iter().partition(|draft| positions.contains(&draft.position));
            let Some(first) = mine.first() else { continue };
            if let Some(other) = left.iter().find(|draft| written.contains(&draft.object)) {
                let (position, with, object) = (first.position, other.position, other.object.to_string());
                return Err(PackageError::SaidTwice { number: wish.number, position, with, object });
            }
            implied.extend(left.iter().map(|draft| draft.position));
        }
        let is_meant = |draft: &Draft| {
            positions.contains(&draft.position) || implied.contains(&draft.position) || goes_along(draft, &named)
        };
        Ok(last_of_each(staged.into_iter().filter(|draft| is_meant(draft)).collect()))
    }

    /// The objects that a set says it changes, without those that the host has added; and whether it renames any.
    async fn written(&self, tx: &mut Tx, number: i64) -> Result<(BTreeSet<Object>, bool)> {
        let text = self.as_written(tx, number).await?;
        let set = change::parse_staged(&serde_json::from_str(&text)?).map_err(PackageError::Contract)?;
        // As it was completed: the one that goes need not be written.
        let whole = change::parse_staged(&self.kept(tx, number).await?.body).map_err(PackageError::Contract)?;
        let renames = !change::wanted(&whole).0.is_empty();
        Ok((set.operations.into_iter().map(|operation| operation.object).collect(), renames))
    }

    async fn revisions_now(&self, tx: &mut Tx, drafts: &[Draft]) -> Result<Revisions> {
        let head = self.head(tx).await?;
        let mut workflows: BTreeMap<&str, String> = BTreeMap::new();
        for id in drafts.iter().filter_map(|draft| draft.object.workflow()) {
            let text = "SELECT revision FROM package_workflow WHERE project_id = $1 AND id = $2";
            if let Some(row) = sql(text).bind(self.who.project_id).bind(id).optional(tx).await? {
                workflows.insert(id, row.get("revision")?);
            }
        }
        let workflow_revision = if workflows.len() == 1 { workflows.into_values().next() } else { None };
        let (agents_revision, assets_revision) = (head.agents_revision, head.assets_revision);
        Ok(Revisions { workflow_revision, agents_revision, assets_revision })
    }
}

/// Agents and workflows that are listed on one side of an edit and not on the other.
fn gone_from(head: &Head, edits: &Edits, present: &Files) -> BTreeSet<Object> {
    let ids = |path: &str, bytes: Option<&Vec<u8>>, list: &str| -> BTreeSet<String> {
        let value: Option<Value> = bytes.and_then(|bytes| serde_json::from_slice(bytes).ok());
        if path == MANIFEST {
            return places_of(value.as_ref()).into_iter().map(|place| place.id).collect();
        }
        let items = value.as_ref().and_then(|value| value.get(list)?.as_array());
        let ids = items.into_iter().flatten().filter_map(|item| item.get("id")?.as_str().map(str::to_owned));
        ids.collect()
    };
    let mut gone = BTreeSet::new();
    for (path, list) in [(Some(MANIFEST), "workflows"), (head.agents_path.as_deref(), "agents")] {
        let Some((path, edited)) = path.and_then(|path| Some((path, edits.get(path)?))) else { continue };
        let (before, after) = (ids(path, present.get(path), list), ids(path, edited.as_ref(), list));
        let changed = before.symmetric_difference(&after).cloned();
        gone.extend(changed.map(if list == "agents" { Object::Agent } else { Object::Workflow }));
    }
    gone
}

/// Says of a risk that the set has only with those that it is based on that it is theirs, too.
fn say_together(kept: &Kept, examined: &mut Examined) {
    let names = examined.chain.names().join(", ");
    if names.is_empty() {
        return;
    }
    let own = change::parse_staged(&kept.body).map(|set| change::impact(&set.operations)).unwrap_or_default();
    for found in examined.report.warnings.iter_mut().filter(|found| found.code.starts_with("RISK_")) {
        if !own.risk_flags.contains(&found.actual) {
            found.message = format!("together with {names}, on which it is based, {}", found.message);
        }
    }
}

/// Whether a package has it: what a set of a chain makes and a later one deletes is not missed by anybody.
fn is_there(package: &Package, object: &Object) -> bool {
    match object {
        // Also one that is no text.
        Object::Asset(path) => package.has_asset(path),
        _ => change::snapshot(package, object).is_some(),
    }
}

/// Each workflow whose graph changes, with the steps of it that say the same in another place.
fn said_twice(staged: &[Draft]) -> Vec<Vec<&Draft>> {
    let text = |side: &Option<Snapshot>, part: Piece| side.as_ref().and_then(|side| side.get(part).map(str::to_owned));
    let mut groups = Vec::new();
    for graph in staged {
        let Object::Workflow(id) = &graph.object else { continue };
        let texts = [text(&graph.base, Piece::Graph), text(&graph.wanted, Piece::Graph)];
        let is_tied = |draft: &&Draft| {
            let Object::Step { workflow, node } = &draft.object else { return false };
            let document = [text(&draft.base, Piece::Document), text(&draft.wanted, Piece::Document)];
            workflow == id
                && change::says_twice(
                    node,
                    [texts[0].as_deref(), texts[1].as_deref()],
                    [document[0].as_deref(), document[1].as_deref()],
                )
        };
        groups.push(std::iter::once(graph).chain(staged.iter().filter(is_tied)).collect());
    }
    groups
}

/// Whether it goes with its workflow.
fn goes_along(draft: &Draft, chosen: &[Draft]) -> bool {
    let Object::Step { workflow, .. } = &draft.object else { return false };
    let goes = |other: &Draft| other.wanted.is_none() && other.object == Object::Workflow(workflow.clone());
    draft.wanted.is_none() && chosen.iter().any(goes)
}

fn edits_between(before: &Files, after: &Files) -> Edits {
    let mut edits: Edits =
        before.keys().filter(|path| !after.contains_key(*path)).map(|path| (path.clone(), None)).collect();
    let new = after.iter().filter(|(path, bytes)| before.get(*path) != Some(bytes));
    edits.extend(new.map(|(path, bytes)| (path.clone(), Some(bytes.clone()))));
    edits
}

/// A file as it was before a change, with what has happened to it since.
fn taken_back(
    piece: Piece,
    [applied, present, former]: [Option<&Vec<u8>>; 3],
) -> std::result::Result<Option<Vec<u8>>, Vec<Clash>> {
    let text_of = |bytes: Option<&Vec<u8>>| text_of(piece, bytes);
    if present == applied {
        return Ok(former.cloned());
    }
    match merge(text_of(applied).as_ref(), text_of(present).as_ref(), text_of(former).as_ref()) {
        Merged::Conflict(clashes) => Err(clashes),
        Merged::Clean(_)
            if [applied, present, former].into_iter().flatten().any(|b| std::str::from_utf8(b).is_err()) =>
        {
            // What is no text was told as one above, and is not to be written so.
            Err(vec![Clash { part: piece, place: ClashPlace::Whole, base: None, current: None, ours: None }])
        }
        Merged::Clean(state) => {
            Ok(state.as_ref().and_then(|state| state.get(piece)).map(|text| text.as_bytes().to_vec()))
        }
    }
}

/// A file as an object that can be merged.
fn text_of(piece: Piece, bytes: Option<&Vec<u8>>) -> Option<Snapshot> {
    bytes.map(|bytes| Snapshot([(piece, String::from_utf8_lossy(bytes).into_owned())].into()))
}

/// How two changes of a file are brought together: graphs, agents and the manifest by value, documents by line and field, and
/// assets by line.
fn piece_of(path: &str) -> Piece {
    match path.rsplit_once('.') {
        _ if path.starts_with(ASSETS_FOLDER) => Piece::Content,
        Some((_, "json")) => Piece::Graph,
        Some((_, "md")) => Piece::Document,
        _ => Piece::Content,
    }
}
