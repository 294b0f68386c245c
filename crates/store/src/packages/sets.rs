//! Change sets: staging them, looking at them, giving them up.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolhost_builder::change::{
    self, ChangeSet, Check, Found, Impact, ObjectDiff, Operation, Parsed, Rename, Report, Revision, Snapshot, Stage,
    impact, overlay, proposed, renames,
};
use toolhost_builder::refs::Object;
use toolhost_builder::schema::Schemas;
use toolhost_builder::{Finding, Package, Severity, revision};

use super::drafts::{Draft, last_of_each};
use super::error::{PackageError, Result};
use super::part::{Part, Want};
use super::read::WorkflowName;
use super::{Shelf, WORKFLOWS_LOOKED_AT_MAX};
use crate::db::{Row, Tx, sql};

/// Change sets that a session may keep staged.
pub const SETS_STAGED_MAX: usize = 100;
/// Change sets of one list.
const LISTED_MAX: i64 = 200;
/// The counter that numbers change sets; no kind of record.
const COUNTER: &str = "change_set";

/// A change set that has been staged.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Staged {
    /// Such as `cs-3`.
    pub change_set_id: String,
    /// `staged`.
    pub status: String,
    /// What the session now sees otherwise.
    pub objects: Vec<Object>,
    pub warnings: Vec<Finding>,
    pub impact: Impact,
}

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

/// Whose change sets are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose<'a> {
    /// Those of a session of the caller's.
    Session(&'a str),
    /// The one that is named, whoever staged it: for people.
    Anybody,
}

/// A change set in a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeSetLine {
    pub change_set_id: String,
    pub session_id: String,
    pub by: String,
    /// `staged`, `validated`, `applied` or `rejected`.
    pub status: String,
    pub objects: Vec<String>,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
}

/// A change set's row.
pub(super) struct Kept {
    pub(super) number: i64,
    pub(super) overlay: String,
    pub(super) state: String,
    pub(super) body: Value,
}

/// A change set with what stands around it: what it was made for, what it makes of it.
pub struct Preview {
    pub line: ChangeSetLine,
    pub body: Value,
    pub diff: Vec<ObjectDiff>,
}

impl Shelf {
    /// Keeps a change set in the session's overlay; nobody else sees it.
    pub async fn stage(&self, session: &str, value: &Value) -> Result<Staged> {
        let Parsed { mut set, mut warnings } = change::parse(value).map_err(PackageError::Contract)?;
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        let overlay = self.overlay(session);
        self.room_for_one_more(&mut tx, &overlay).await?;
        let drafts = self.drafts(&mut tx, session.into()).await?;
        self.name_workflows(&mut tx, &mut set, &drafts).await?;
        let mut want = Want::objects(set.operations.iter().map(|operation| &operation.object));
        want.manifest = set.operations.iter().any(|operation| matches!(operation.object, Object::Workflow(_)));
        let (asked, unclear) = change::wanted(&set);
        warnings.extend(unclear);
        for rename in &asked {
            for unit in self.units_with(&mut tx, &rename.from).await? {
                want.add_unit(&unit);
            }
        }
        let part = self.part(&mut tx, &want, &drafts).await?;
        for rename in &asked {
            follow(&mut set, part.package(), rename)?;
        }
        let wanted = wishes(part.package(), &set.operations)?;
        let number = self.new_number(&mut tx).await?;
        let mut objects = Vec::new();
        let mut moments = BTreeMap::new();
        for (object, state) in &wanted {
            let position = set.operations.iter().rposition(|operation| operation.object == *object).unwrap_or_default();
            let position = i64::try_from(position).unwrap_or(i64::MAX);
            let base = self.base_of(&mut tx, &set, object, &part, &drafts, &mut moments).await?;
            let draft = Draft { set: number, position, object: object.clone(), base, wanted: state.clone() };
            self.keep_draft(&mut tx, &draft).await?;
            objects.push(object.clone());
        }
        warnings.extend(part.findings.iter().cloned());
        let impact = impact(&set.operations);
        let body = set.to_value();
        let now = self.clock.unix_ms();
        let text = "INSERT INTO change_set (project_id, number, session_id, account_id, by_name, state, body,
                 created_at_ms, updated_at_ms, overlay) VALUES ($1, $2, $3, $4, $5, 'staged', $6, $7, $7, $8)";
        let query = sql(text).bind(self.who.project_id).bind(number).bind(session).bind(self.who.user_id);
        query.bind(&self.who.name).bind(body.to_string()).bind(now).bind(overlay).run(&mut tx).await?;
        tx.commit().await?;
        Ok(Staged { change_set_id: set_id(number), status: "staged".to_owned(), objects, warnings, impact })
    }

    /// Says of a staged set whether it could be applied now; keeps what it says.
    pub async fn validate(&self, whose: Whose<'_>, number: Option<i64>) -> Result<Validated> {
        let mut tx = self.db.snapshot().await?;
        let kept = self.staged_set(&mut tx, whose, number, "validated").await?;
        let drafts: Vec<Draft> = self
            .all_drafts(&mut tx, &kept.overlay)
            .await?
            .into_iter()
            .filter(|draft| draft.set <= kept.number)
            .collect();
        let drafts = last_of_each(drafts);
        let part = self.part_for(&mut tx, &drafts).await?;
        let mut report = change::validate(&Check {
            schemas: &Schemas::compiled(),
            base: &part.base,
            after: part.package(),
            set: &kept.body,
            unwritten: &part.findings,
        });
        report.warnings.extend(outdated(&part, &drafts));
        drop(tx);
        let state = if report.valid { "validated" } else { "staged" };
        let mut tx = self.db.write().await?;
        let text = "UPDATE change_set SET state = $3, report = $4, updated_at_ms = $5
             WHERE project_id = $1 AND number = $2 AND state IN ('staged', 'validated')";
        let query = sql(text).bind(self.who.project_id).bind(kept.number).bind(state);
        let kept_still = query.bind(serde_json::to_string(&report)?).bind(self.clock.unix_ms()).run(&mut tx).await?;
        if kept_still == 0 {
            return Err(PackageError::NothingStaged("validated"));
        }
        tx.commit().await?;
        Ok(Validated { change_set_id: set_id(kept.number), status: state.to_owned(), report })
    }

    /// Gives up a staged set, or all that the session has staged.
    pub async fn discard(&self, whose: Whose<'_>, number: Option<i64>) -> Result<Vec<String>> {
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        let numbers = match (number, whose) {
            (None, Whose::Session(session)) => self.open_numbers(&mut tx, &self.overlay(session)).await?,
            _ => vec![self.staged_set(&mut tx, whose, number, "discarded").await?.number],
        };
        if numbers.is_empty() {
            return Err(PackageError::NothingStaged("discarded"));
        }
        for number in &numbers {
            for text in [
                "UPDATE change_set SET state = 'rejected', updated_at_ms = $3 WHERE project_id = $1 AND number = $2",
                "UPDATE change_operation SET state = 'rejected'
                 WHERE project_id = $1 AND set_number = $2 AND state = 'staged' AND $3 > 0",
            ] {
                let query = sql(text).bind(self.who.project_id).bind(*number).bind(self.clock.unix_ms());
                query.run(&mut tx).await?;
            }
        }
        tx.commit().await?;
        Ok(numbers.into_iter().map(set_id).collect())
    }

    /// The change sets, the newest first; those of one session if it is named, those that may still be applied if wished.
    pub async fn change_sets(&self, session: Option<&str>, open_only: bool) -> Result<Vec<ChangeSetLine>> {
        let mut tx = self.db.snapshot().await?;
        let text = "SELECT number, session_id, by_name, state, created_at_ms FROM change_set
             WHERE project_id = $1 AND ($2 = '' OR session_id = $2) AND ($3 = 0 OR state IN ('staged', 'validated'))
             ORDER BY number DESC LIMIT $4";
        let query = sql(text).bind(self.who.project_id).bind(session.unwrap_or_default());
        let rows = query.bind(i64::from(open_only)).bind(LISTED_MAX).all(&mut tx).await?;
        let mut lines = Vec::new();
        for row in rows {
            lines.push(self.line(&mut tx, &row).await?);
        }
        Ok(lines)
    }

    /// A change set and what it would change of the package as it is now.
    pub async fn preview(&self, number: i64) -> Result<Preview> {
        let mut tx = self.db.snapshot().await?;
        let text = "SELECT number, session_id, overlay, by_name, state, created_at_ms, body FROM change_set
             WHERE project_id = $1 AND number = $2";
        let row = sql(text).bind(self.who.project_id).bind(number).optional(&mut tx).await?;
        let row = row.ok_or_else(|| no_set(number))?;
        let line = self.line(&mut tx, &row).await?;
        let drafts: Vec<Draft> = self
            .all_drafts(&mut tx, &row.get::<String>("overlay")?)
            .await?
            .into_iter()
            .filter(|draft| draft.set <= number)
            .collect();
        let own: BTreeSet<Object> = self.wishes(&mut tx, number).await?.into_iter().map(|draft| draft.object).collect();
        let drafts: Vec<Draft> = last_of_each(drafts).into_iter().filter(|draft| own.contains(&draft.object)).collect();
        let part = self.part_for(&mut tx, &drafts).await?;
        let objects: Vec<Object> = own.into_iter().collect();
        let diff = change::diff(&part.base, part.package(), &objects);
        Ok(Preview { line, body: serde_json::from_str(&row.get::<String>("body")?)?, diff })
    }

    /// The set that is meant: the one named, which must be the session's, or the last one staged.
    pub(super) async fn staged_set(
        &self,
        tx: &mut Tx,
        whose: Whose<'_>,
        number: Option<i64>,
        wish: &'static str,
    ) -> Result<Kept> {
        let overlay = match whose {
            Whose::Session(session) => Some(self.overlay(session)),
            Whose::Anybody => None,
        };
        let number = match number {
            Some(number) => Some(number),
            None => self.open_numbers(tx, overlay.as_deref().unwrap_or_default()).await?.last().copied(),
        };
        let number = number.ok_or(PackageError::NothingStaged(wish))?;
        let kept = self.kept(tx, number).await?;
        if overlay.is_some_and(|overlay| kept.overlay != overlay) {
            // Said as of one that is not there: whose it is is nobody's business.
            return Err(no_set(number));
        }
        expect_open(kept, wish)
    }

    pub(super) async fn kept(&self, tx: &mut Tx, number: i64) -> Result<Kept> {
        let text = "SELECT number, overlay, state, body FROM change_set WHERE project_id = $1 AND number = $2";
        let row = sql(text).bind(self.who.project_id).bind(number).optional(tx).await?.ok_or_else(|| no_set(number))?;
        Ok(Kept {
            number: row.get("number")?,
            overlay: row.get("overlay")?,
            state: row.get("state")?,
            body: serde_json::from_str(&row.get::<String>("body")?)?,
        })
    }

    /// What the objects of these drafts take, and what refers to those that go.
    pub(super) async fn part_for(&self, tx: &mut Tx, drafts: &[Draft]) -> Result<Part> {
        let mut want = Want::objects(drafts.iter().map(|draft| &draft.object));
        want.manifest = drafts.iter().any(|draft| matches!(draft.object, Object::Workflow(_)));
        for draft in drafts.iter().filter(|draft| draft.wanted.is_none()) {
            for unit in self.units_with(tx, &draft.object).await? {
                want.add_unit(&unit);
            }
        }
        self.part(tx, &want, drafts).await
    }

    /// Units that refer to an object.
    pub(super) async fn units_with(&self, tx: &mut Tx, object: &Object) -> Result<Vec<String>> {
        let text = "SELECT unit FROM package_ref WHERE project_id = $1 AND target = $2 ORDER BY unit LIMIT $3";
        let query = sql(text).bind(self.who.project_id).bind(object.to_string()).bind(WORKFLOWS_LOOKED_AT_MAX * 10);
        query.all(tx).await?.iter().map(|row| Ok(row.get("unit")?)).collect()
    }

    async fn all_drafts(&self, tx: &mut Tx, overlay: &str) -> Result<Vec<Draft>> {
        let mut all = Vec::new();
        for number in self.open_numbers(tx, overlay).await? {
            all.extend(self.wishes(tx, number).await?);
        }
        Ok(all)
    }

    pub(super) async fn open_numbers(&self, tx: &mut Tx, overlay: &str) -> Result<Vec<i64>> {
        let text = "SELECT number FROM change_set WHERE project_id = $1 AND overlay = $2
             AND state IN ('staged', 'validated') ORDER BY number";
        let rows = sql(text).bind(self.who.project_id).bind(overlay).all(tx).await?;
        rows.iter().map(|row| Ok(row.get("number")?)).collect()
    }

    async fn room_for_one_more(&self, tx: &mut Tx, overlay: &str) -> Result<()> {
        if self.open_numbers(tx, overlay).await?.len() >= SETS_STAGED_MAX {
            return Err(PackageError::TooMany { max: SETS_STAGED_MAX, what: "staged change sets" });
        }
        Ok(())
    }

    async fn line(&self, tx: &mut Tx, row: &Row) -> Result<ChangeSetLine> {
        let number: i64 = row.get("number")?;
        let text = "SELECT object FROM change_operation WHERE project_id = $1 AND set_number = $2 ORDER BY position";
        let objects = sql(text).bind(self.who.project_id).bind(number).all(tx).await?;
        Ok(ChangeSetLine {
            change_set_id: set_id(number),
            session_id: row.get("session_id")?,
            by: row.get("by_name")?,
            status: row.get("state")?,
            objects: objects.iter().map(|row| row.get("object")).collect::<std::result::Result<_, _>>()?,
            created_at_ms: row.get("created_at_ms")?,
        })
    }

    /// Operations may name a workflow by its number, as reads do.
    async fn name_workflows(&self, tx: &mut Tx, set: &mut ChangeSet, drafts: &[Draft]) -> Result<()> {
        for operation in &mut set.operations {
            let (Object::Workflow(id) | Object::Step { workflow: id, .. }) = &mut operation.object else { continue };
            match self.workflow_id(tx, &WorkflowName::Id(id.clone()), drafts).await {
                Ok(real) => id.clone_from(&real),
                // It is about to be made, or validation says that it is not there.
                Err(PackageError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The object as it was when the change was begun: what the revision says that was sent along.
    async fn base_of(
        &self,
        tx: &mut Tx,
        set: &ChangeSet,
        object: &Object,
        part: &Part,
        drafts: &[Draft],
        moments: &mut BTreeMap<(String, String), Option<Part>>,
    ) -> Result<Option<Snapshot>> {
        let draft = drafts.iter().find(|draft| draft.object == *object);
        let current = change::snapshot(&part.base, object);
        let (field, scope) = scope_of(object);
        let Some(declared) = base_revision(set, &scope) else {
            return match (draft, &current) {
                (Some(draft), _) if draft.base.is_none() => Ok(None),
                (None, None) => Ok(None),
                _ => Err(PackageError::NoRevision { field, object: object.to_string() }),
            };
        };
        let is_current = revisions_of(&part.base, part, object).chain(revisions_of(part.package(), part, object));
        if is_current.into_iter().any(|known| known == declared) {
            return Ok(draft.map_or(current, |draft| draft.base.clone()));
        }
        let key = (scope.clone(), declared.clone());
        if !moments.contains_key(&key) {
            let then = match self.moment_of(tx, &scope, &declared).await? {
                Some(at) => {
                    let objects: Vec<&Object> = set.operations.iter().map(|operation| &operation.object).collect();
                    let want = Want { at: Some(at), ..Want::objects(objects) };
                    Some(self.part(tx, &want, &[]).await?)
                }
                None => None,
            };
            moments.insert(key.clone(), then);
        }
        match (draft, moments.get(&key).and_then(Option::as_ref)) {
            (Some(draft), Some(_)) => Ok(draft.base.clone()),
            (None, Some(then)) => Ok(change::snapshot(&then.base, object)),
            // Nothing of an object that is not there can be lost.
            (None, None) if current.is_none() => Ok(None),
            _ => Err(PackageError::UnknownRevision { scope, revision: declared }),
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

/// What has changed below the drafts since they were begun: told before an apply has to merge or to refuse.
fn outdated(part: &Part, drafts: &[Draft]) -> Vec<Found> {
    let moved = drafts.iter().filter(|draft| change::snapshot(&part.base, &draft.object) != draft.base);
    let found = moved.map(|draft| Found {
        stage: Stage::Impact,
        code: MISMATCH.to_owned(),
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

/// The code of what somebody else has changed.
pub(super) const MISMATCH: &str = "AI_REVISION_BASE_MISMATCH";

/// Against which revision of a scope a set says that it was made.
fn base_revision(set: &ChangeSet, scope: &str) -> Option<String> {
    // A set over several workflows has one of each in the part of the contract that is open.
    let named = set.extensions.get("baseRevisions").and_then(|revisions| revisions.get(scope));
    if let Some(revision) = named.and_then(Value::as_str) {
        return Some(revision.to_owned());
    }
    let declared = match scope {
        "agents" => &set.revisions.agents_revision,
        "assets" => &set.revisions.assets_revision,
        _ => &set.revisions.workflow_revision,
    };
    declared.as_ref().map(|revision| match revision {
        Revision::Hash(hash) => hash.clone(),
        Revision::Number(number) => number.to_string(),
    })
}

/// Adds to a set what makes everything refer to an object by its other name. What the set changes itself is changed on.
fn follow(set: &mut ChangeSet, package: &Package, rename: &Rename) -> Result<()> {
    let changed = overlay(package, &wishes(package, &set.operations)?).0;
    for operation in renames(&changed, &rename.from, &rename.to) {
        match set.operations.iter_mut().find(|known| known.object == operation.object && known.op == operation.op) {
            Some(known) => known.payload = operation.payload,
            None => set.operations.push(operation),
        }
    }
    Ok(())
}

/// What each object is to be, workflows first: a step's file is where their graph says.
fn wishes(package: &Package, operations: &[Operation]) -> Result<Vec<(Object, Option<Snapshot>)>> {
    let is_workflow = |operation: &&Operation| matches!(operation.object, Object::Workflow(_));
    let mut wanted: Vec<(Object, Option<Snapshot>)> = Vec::new();
    let mut findings = Vec::new();
    let mut seen_as = package.clone();
    for is_first in [true, false] {
        for operation in operations.iter().filter(|operation| is_workflow(operation) == is_first) {
            match proposed(&seen_as, operation) {
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

/// The field of a change set that says against what this was made, and the scope of that revision.
fn scope_of(object: &Object) -> (&'static str, String) {
    match object {
        Object::Agent(_) => ("revisions.agentsRevision", "agents".to_owned()),
        Object::Asset(_) => ("revisions.assetsRevision", "assets".to_owned()),
        other => ("revisions.workflowRevision", format!("workflow:{}", other.workflow().unwrap_or_default())),
    }
}

/// The revisions that whoever has read this object now may have been told: of it, and of what it is in.
fn revisions_of<'a>(package: &'a Package, part: &Part, object: &Object) -> impl Iterator<Item = String> + use<'a> {
    let mut found = Vec::new();
    match object {
        Object::Agent(id) => {
            found.push(revision::agents(package));
            found.extend(package.agent(id).map(revision::agent));
        }
        Object::Asset(path) => {
            found.push(part.head.assets_revision.clone());
            found.push(revision::assets(package));
            found.extend(package.asset(path).map(|asset| revision::asset(package, &asset)));
        }
        other => {
            let workflow = other.workflow().and_then(|id| package.workflow(id));
            found.extend(workflow.map(|workflow| revision::workflow(package, workflow)));
            if let (Some(workflow), Object::Step { node, .. }) = (workflow, other) {
                found.extend(workflow.step(node).map(|step| revision::step(package, step)));
            }
        }
    }
    found.into_iter()
}

impl Want {
    /// What a reference stands in.
    pub(super) fn add_unit(&mut self, unit: &str) {
        match unit.split_once(':') {
            Some(("workflow", id)) => drop(self.workflows.insert(id.to_owned())),
            Some(("asset", path)) => drop(self.assets.insert(path.to_owned())),
            _ => {}
        }
    }
}

pub(super) fn expect_open(kept: Kept, wish: &'static str) -> Result<Kept> {
    match kept.state.as_str() {
        "staged" | "validated" => Ok(kept),
        _ => Err(PackageError::Ended { number: kept.number, state: kept.state, wish }),
    }
}

/// Such as `cs-3`.
pub(super) fn set_id(number: i64) -> String {
    format!("cs-{number}")
}

fn no_set(number: i64) -> PackageError {
    PackageError::NotFound { what: "change set", name: set_id(number) }
}
