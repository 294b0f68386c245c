//! Bringing a package in, giving it out, and the reads of its objects.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain;
use crate::envelope::{self, Mode, Request, Scope, TargetType};
use crate::limits::Size;
use crate::refs::{Index, Locator, Object, Ref};
use crate::{Edits, Files, Finding, Package, Severity, revision, seal, validate_up_to};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::change::{Cause, derive_agents, derive_asset};
use super::derive::{Derived, head_of};
use super::drafts::{Draft, made_workflows};
use super::error::{PackageError, Result};
use super::part::{Head, Part, Want};
use super::{ProjectPackage, REFS_MAX, WORKFLOWS_LOOKED_AT_MAX};

/// Units asked for at once.
const UNITS_PAGE: i64 = 64;
/// Workflows and assets that are read to tell what an agent does; of steps beyond these, only the names are told.
const AGENT_UNITS_MAX: i64 = 32;
use toolhost_store::db::{Tx, sql};

/// How a workflow is named: by its number here, or by its id in the package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowName {
    Number(i64),
    Id(String),
}

/// What an import has brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Brought {
    pub files: usize,
    pub workflows: usize,
    pub agents: usize,
    pub assets: usize,
    /// Which change of the package it was; none if nothing was different.
    pub moment: Option<i64>,
    /// What is not wrong, but worth a look.
    pub warnings: Vec<Finding>,
}

/// A workflow in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowLine {
    pub number: i64,
    pub id: String,
    pub path: String,
    /// How many nodes its graph has.
    pub steps: i64,
    pub revision: String,
}

/// What a change set that is made now says it was made against.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revisions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_revision: Option<String>,
    pub agents_revision: String,
    pub assets_revision: String,
}

/// An object, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// All fields of the object; `target_snapshot` of the context envelope leaves out what is there twice.
    pub data: Value,
    /// The number and the id of the workflow that it is, or is in, or that was named. One that is only staged has no number.
    pub workflow: Option<(Option<i64>, String)>,
    /// SHA-256 of the canonical JSON of that workflow and of the object.
    pub workflow_revision: Option<String>,
    pub target_revision: String,
    pub revisions: Revisions,
    /// The revisions of the workflows that refer to an agent or an asset, by `workflow:<id>`: what `extensions.baseRevisions` of
    /// a change set takes.
    pub base_revisions: BTreeMap<String, String>,
    /// Whether the session that asked has staged a change of it.
    pub drafted: bool,
    /// Where the session's drafts do not go together with what is there.
    pub problems: Vec<Finding>,
}

/// Which object.
struct Target {
    kind: TargetType,
    id: String,
}

/// What a question about one object takes.
struct Question {
    part: Part,
    target: Target,
    /// The workflow that was named.
    named: Option<String>,
    drafts: Vec<Draft>,
}

impl ProjectPackage {
    /// Keeps a package of at most this size. Nothing is kept of one that is not right.
    pub async fn import(&self, package: &Package, replace: bool, most: Size) -> Result<Brought> {
        let (errors, warnings): (Vec<_>, Vec<_>) =
            validate_up_to(package, most).into_iter().partition(|finding| finding.severity == Severity::Error);
        if !errors.is_empty() {
            return Err(PackageError::Invalid(errors));
        }
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        let moment = match self.head(&mut tx).await {
            Ok(_) if !replace => return Err(PackageError::Exists),
            Ok(head) => {
                let text = "SELECT path FROM package_file WHERE project_id = $1";
                let mut edits = Edits::new();
                for row in sql(text).bind(self.who.project_id).all(&mut tx).await? {
                    edits.insert(row.get("path")?, None);
                }
                edits.extend(package.files().iter().map(|(path, bytes)| (path.clone(), Some(bytes.clone()))));
                self.commit(&mut tx, &head, &edits, &cause("import")).await?
            }
            Err(PackageError::NoPackage) => Some(self.import_first(&mut tx, package, "import").await?),
            Err(error) => return Err(error),
        };
        tx.commit().await?;
        Ok(Brought {
            files: package.files().len(),
            workflows: package.workflows().len(),
            agents: package.agents().len(),
            assets: package.asset_hashes().len(),
            moment,
            warnings,
        })
    }

    /// Keeps a package that was just begun ([`crate::begun`]), where there is none.
    pub async fn begin(&self, package: &Package) -> Result<()> {
        let mut tx = self.db.write().await?;
        tx.lock_project(self.who.project_id).await?;
        match self.head(&mut tx).await {
            Ok(_) => return Err(PackageError::Exists),
            Err(PackageError::NoPackage) => self.import_first(&mut tx, package, "new").await?,
            Err(error) => return Err(error),
        };
        Ok(tx.commit().await?)
    }

    async fn import_first(&self, tx: &mut Tx, package: &Package, kind: &'static str) -> Result<i64> {
        let moment = 1;
        let edits = package.files().iter().map(|(path, bytes)| (path.clone(), Some(bytes.clone()))).collect();
        self.write_files(tx, &edits).await?;
        let mut derived = Derived::new(self.who.project_id, moment);
        let mut seen = BTreeSet::new();
        let mut last_number = 0;
        for (position, workflow) in (0_i64..).zip(package.workflows()) {
            if seen.insert(&workflow.id) {
                last_number += 1;
                derived.workflow(package, workflow, last_number, position)?;
                derived.write_full(tx).await?;
            }
        }
        let places = package.workflows().iter().map(crate::Workflow::place).collect();
        derive_agents(&mut derived, package, places)?;
        for asset in package.assets() {
            derive_asset(&mut derived, asset.path, asset.text.unwrap_or_default().as_bytes())?;
        }
        let head = Head {
            moment,
            head: head_of(package.manifest()),
            agents_path: package.agents_path().map(str::to_owned),
            agents_revision: revision::agents(package),
            assets_revision: revision::assets(package),
            last_number,
        };
        derived.revision("agents", &head.agents_revision);
        derived.revision("assets", &head.assets_revision);
        derived.write(tx).await?;
        self.store_head(tx, &head).await?;
        self.note(tx, moment, &cause(kind)).await?;
        Ok(moment)
    }

    /// All files, byte for byte; what the manifest says of all bytes together is made true.
    pub async fn export(&self) -> Result<Files> {
        let mut tx = self.db.snapshot().await?;
        self.head(&mut tx).await?;
        let mut files = self.all_files(&mut tx).await?;
        seal(&mut files);
        Ok(files)
    }

    /// All files and the change that they are of; no files where that is the change that is `known`.
    pub async fn files_since(&self, known: Option<i64>) -> Result<(i64, Option<Files>)> {
        let mut tx = self.db.snapshot().await?;
        let moment = self.head(&mut tx).await?.moment;
        if known == Some(moment) {
            return Ok((moment, None));
        }
        Ok((moment, Some(self.all_files(&mut tx).await?)))
    }

    pub(super) async fn all_files(&self, tx: &mut Tx) -> Result<Files> {
        let text = "SELECT path, content FROM package_file WHERE project_id = $1";
        let rows = sql(text).bind(self.who.project_id).all(tx).await?;
        rows.into_iter().map(|row| Ok((row.get("path")?, row.get("content")?))).collect()
    }

    /// The workflows, in the order of the manifest.
    pub async fn workflows(&self, from: i64, limit: i64) -> Result<Vec<WorkflowLine>> {
        let mut tx = self.db.snapshot().await?;
        self.head(&mut tx).await?;
        let text = "SELECT number, id, path, steps, revision FROM package_workflow
             WHERE project_id = $1 AND position >= $2 ORDER BY position LIMIT $3";
        let rows = sql(text).bind(self.who.project_id).bind(from).bind(limit).all(&mut tx).await?;
        rows.iter()
            .map(|row| {
                Ok(WorkflowLine {
                    number: row.get("number")?,
                    id: row.get("id")?,
                    path: row.get("path")?,
                    steps: row.get("steps")?,
                    revision: row.get("revision")?,
                })
            })
            .collect()
    }

    /// Reads an object as the session sees it.
    pub async fn read(
        &self,
        kind: TargetType,
        id: &str,
        workflow: Option<&WorkflowName>,
        session: Option<&str>,
    ) -> Result<Snapshot> {
        let mut tx = self.db.snapshot().await?;
        match self.read_in(&mut tx, kind, id, workflow, session).await {
            Err(error) => Err(self.with_near(&mut tx, error, workflow, session).await),
            read => read,
        }
    }

    async fn read_in(
        &self,
        tx: &mut Tx,
        kind: TargetType,
        id: &str,
        workflow: Option<&WorkflowName>,
        session: Option<&str>,
    ) -> Result<Snapshot> {
        let question = self.question(tx, kind, id, workflow, session, None).await?;
        let index = self.index_of(tx, &question).await?;
        let Question { part, target, named, drafts } = question;
        let package = part.package();
        let read = envelope::snapshot(&request(package, &target, named.as_ref(), Mode::Optimize, &[]), &index)?;
        let inside = read.workflow.clone();
        let workflow = match inside {
            Some(id) => Some((self.number_of(tx, &id).await?, id)),
            None => None,
        };
        let of_workflow = workflow.as_ref().and_then(|(_, id)| package.workflow(id));
        let workflow_revision = of_workflow.map(|workflow| revision::workflow(package, workflow));
        let mut target = target;
        if let Some(node) = read.snapshot.pointer("/node_meta/id").and_then(Value::as_str) {
            // It may have been named by its path.
            node.clone_into(&mut target.id);
        }
        let object = match target.kind {
            TargetType::Agent => Some(Object::Agent(target.id.clone())),
            TargetType::Asset => Some(Object::Asset(target.id.clone())),
            TargetType::Workflow | TargetType::Step => None,
        };
        let inbound = object.map(|object| index.find(&Locator::Object(object)).inbound).unwrap_or_default();
        let base_revisions = self.revisions_of(tx, package, &inbound).await?;
        let drafted = drafts.iter().any(|draft| is_target(&draft.object, &target, workflow.as_ref()));
        let of_assets = drafts.iter().any(|draft| matches!(draft.object, Object::Asset(_)));
        let revisions = Revisions {
            workflow_revision: workflow_revision.clone(),
            agents_revision: revision::agents(package),
            // Known without reading them, unless a draft is among them.
            assets_revision: if of_assets { revision::assets(package) } else { part.head.assets_revision.clone() },
        };
        Ok(Snapshot {
            data: read.snapshot,
            workflow,
            workflow_revision,
            target_revision: read.revision,
            problems: part.findings.clone(),
            revisions,
            base_revisions,
            drafted,
        })
    }

    /// The context envelope of an object, and the number and the id of its workflow.
    pub async fn context(
        &self,
        kind: TargetType,
        id: &str,
        workflow: Option<&WorkflowName>,
        mode: Mode,
        tools: &[&str],
        session: Option<&str>,
    ) -> Result<(Value, Option<(Option<i64>, String)>)> {
        let mut tx = self.db.snapshot().await?;
        let built: Result<_> = async {
            let question = self.question(&mut tx, kind, id, workflow, session, Some(mode)).await?;
            let index = self.index_of(&mut tx, &question).await?;
            let Question { part, target, named, .. } = question;
            let package = part.package();
            let problems: Vec<String> = part.findings.iter().map(ToString::to_string).collect();
            let scope =
                Scope { session_id: session, user_id: Some(self.who.user_id), project_id: Some(self.who.project_id) };
            let request = Request { scope, ..request(package, &target, named.as_ref(), mode, tools) };
            let mut envelope = envelope::build_with(&request, &index)?;
            let standing = match session {
                Some(session) => self.standing(&mut tx, session).await?,
                None => None,
            };
            for (field, value) in standing.into_iter().flatten() {
                envelope["session_meta"][field] = value;
            }
            // As the reads tell them: drafts that do not go together with what others have changed since.
            if !problems.is_empty() {
                envelope["session_meta"]["problems"] = json!(problems);
            }
            let id = envelope.pointer("/session_meta/workflow_id").and_then(Value::as_str).map(str::to_owned);
            let workflow = match id {
                Some(id) => Some((self.number_of(&mut tx, &id).await?, id)),
                None => None,
            };
            Ok((envelope, workflow))
        }
        .await;
        // Whatever kept the context from being built has one code, wherever it was noticed.
        match built {
            Ok(built) => Ok(built),
            Err(error) => match self.with_near(&mut tx, error, workflow, session).await {
                PackageError::Store(error) => Err(PackageError::Store(error)),
                error => Err(PackageError::Context(Box::new(error))),
            },
        }
    }

    /// Reads what a question about one object takes; with a mode, all that its context takes.
    async fn question(
        &self,
        tx: &mut Tx,
        kind: TargetType,
        id: &str,
        workflow: Option<&WorkflowName>,
        session: Option<&str>,
        context: Option<Mode>,
    ) -> Result<Question> {
        let is_new = context == Some(Mode::Create);
        let drafts = self.drafts(tx, session).await?;
        let named = match workflow {
            Some(name) => Some(self.workflow_id(tx, name, &drafts).await?),
            None => None,
        };
        let mut target = Target { kind, id: id.to_owned() };
        let mut want = Want {
            asset_names: context.is_some() || has_assets(&drafts),
            workflow_names: context.is_some() && kind == TargetType::Workflow || is_new,
            ..Want::default()
        };
        if context.is_some() {
            // It says whom the package is for.
            want.workflows.extend(self.entry_workflow(tx).await?);
            want.workflows.extend(self.profiled_workflow(tx).await?);
            // It lists the workflows.
            want.workflows.extend(made_workflows(&drafts));
        }
        want.workflows.extend(named.clone());
        match kind {
            TargetType::Workflow => {
                target.id = match (id, &named) {
                    ("", Some(named)) => named.clone(),
                    ("", None) => self.only_workflow(tx).await?,
                    _ => match self.workflow_id(tx, &WorkflowName::Id(id.to_owned()), &drafts).await {
                        Err(PackageError::NotFound { .. }) if is_new => id.to_owned(),
                        found => found?,
                    },
                };
                want.workflows.insert(target.id.clone());
            }
            TargetType::Step if named.is_none() => {
                want.workflows.extend(self.workflows_named(tx, id).await?);
                want.workflows.extend(drafts.iter().filter_map(|d| d.object.workflow().map(str::to_owned)));
            }
            TargetType::Asset => drop(want.assets.insert(id.to_owned())),
            TargetType::Step | TargetType::Agent => {}
        }
        if kind == TargetType::Agent {
            // The steps that an agent does are told with their titles, which stand in their workflows.
            let text =
                "SELECT DISTINCT unit FROM package_ref WHERE project_id = $1 AND target = $2 ORDER BY unit LIMIT $3";
            let agent = Object::Agent(id.to_owned()).to_string();
            let rows = sql(text).bind(self.who.project_id).bind(agent).bind(AGENT_UNITS_MAX).all(tx).await?;
            for row in rows {
                want.add_unit(&row.get::<String>("unit")?);
            }
        }
        if matches!(kind, TargetType::Agent | TargetType::Asset) {
            // Who refers to it may be staged, too.
            want.workflows.extend(drafts.iter().filter_map(|draft| draft.object.workflow().map(str::to_owned)));
        }
        let part = self.part(tx, &want, &drafts).await?;
        Ok(Question { part, target, named, drafts })
    }

    /// The workflow that is meant where none is named: the only one.
    async fn only_workflow(&self, tx: &mut Tx) -> Result<String> {
        self.head(tx).await?;
        let text = "SELECT id FROM package_workflow WHERE project_id = $1 ORDER BY position LIMIT 2";
        match sql(text).bind(self.who.project_id).all(tx).await?.as_slice() {
            [one] => Ok(one.get("id")?),
            _ => Err(PackageError::Unnamed("workflow")),
        }
    }

    /// The workflow that the package begins with; none before it has one.
    async fn entry_workflow(&self, tx: &mut Tx) -> Result<Option<String>> {
        let text = "SELECT id FROM package_workflow WHERE project_id = $1 ORDER BY position LIMIT 1";
        let row = sql(text).bind(self.who.project_id).optional(tx).await?;
        Ok(row.map(|row| row.get("id")).transpose()?)
    }

    /// The first workflow that says whom the package is for, among the first ones of a package.
    async fn profiled_workflow(&self, tx: &mut Tx) -> Result<Option<String>> {
        let text = "SELECT id, path FROM package_workflow WHERE project_id = $1 ORDER BY position LIMIT $2";
        let rows = sql(text).bind(self.who.project_id).bind(PROFILES_LOOKED_FOR_MAX).all(tx).await?;
        let places: Vec<(String, String)> =
            rows.iter().map(|row| Ok((row.get("id")?, row.get("path")?))).collect::<Result<_>>()?;
        let documents = self.files(tx, &places.iter().map(|(_, path)| path.clone()).collect(), None).await?;
        let says = |path: &String| documents.get(path).is_some_and(|bytes| domain::is_said(bytes));
        Ok(places.into_iter().find(|(_, path)| says(path)).map(|(id, _)| id))
    }

    /// Who refers to an agent or an asset stands in other units, which are not at hand.
    async fn index_of(&self, tx: &mut Tx, question: &Question) -> Result<Index> {
        let object = match question.target.kind {
            TargetType::Agent => Object::Agent(question.target.id.clone()),
            TargetType::Asset => Object::Asset(question.target.id.clone()),
            TargetType::Workflow | TargetType::Step => return Ok(Index::default()),
        };
        let (refs, _) = self.inbound(tx, &object, &question.part, &question.drafts).await?;
        let mut index = Index::of(question.part.package());
        index.add(refs);
        Ok(index)
    }

    /// The revisions of the workflows that these references leave, by `workflow:<id>`, as the session sees them.
    pub(super) async fn revisions_of(
        &self,
        tx: &mut Tx,
        package: &Package,
        refs: &[Ref],
    ) -> Result<BTreeMap<String, String>> {
        let ids: BTreeSet<&str> = refs.iter().filter_map(|one| one.from.workflow()).collect();
        let mut found = BTreeMap::new();
        for id in ids.into_iter().take(BASE_REVISIONS_MAX) {
            let revision = match package.workflow(id) {
                Some(workflow) => Some(revision::workflow(package, workflow)),
                None => {
                    let text = "SELECT revision FROM package_workflow WHERE project_id = $1 AND id = $2";
                    let row = sql(text).bind(self.who.project_id).bind(id).optional(tx).await?;
                    row.map(|row| row.get("revision")).transpose()?
                }
            };
            found.extend(revision.map(|revision| (format!("workflow:{id}"), revision)));
        }
        Ok(found)
    }

    /// References to an object from units that are not at hand, and whether there are more.
    pub(super) async fn inbound(
        &self,
        tx: &mut Tx,
        object: &Object,
        part: &Part,
        drafts: &[Draft],
    ) -> Result<(Vec<Ref>, bool)> {
        let text = "SELECT unit, refs FROM package_ref WHERE project_id = $1 AND target = $2 AND unit > $3
             ORDER BY unit LIMIT $4";
        let mut found: Vec<Ref> = Vec::new();
        let mut last = String::new();
        loop {
            let query = sql(text).bind(self.who.project_id).bind(object.to_string()).bind(&last);
            let rows = query.bind(UNITS_PAGE).all(tx).await?;
            for row in &rows {
                last = row.get("unit")?;
                if is_at_hand(&last, part, drafts) {
                    continue;
                }
                let refs: Vec<Ref> = serde_json::from_str(&row.get::<String>("refs")?)?;
                found.extend(refs.into_iter().map(|one| Ref { resolved: true, ..one }));
                if found.len() > REFS_MAX {
                    found.truncate(REFS_MAX);
                    return Ok((found, true));
                }
            }
            if (rows.len() as i64) < UNITS_PAGE {
                return Ok((found, false));
            }
        }
    }

    /// The id of a workflow that is there, or that the session is about to make.
    pub(super) async fn workflow_id(&self, tx: &mut Tx, name: &WorkflowName, drafts: &[Draft]) -> Result<String> {
        let project = self.who.project_id;
        let query = match name {
            WorkflowName::Number(number) => {
                sql("SELECT id FROM package_workflow WHERE project_id = $1 AND number = $2").bind(project).bind(*number)
            }
            WorkflowName::Id(id) => {
                sql("SELECT id FROM package_workflow WHERE project_id = $1 AND id = $2").bind(project).bind(id)
            }
        };
        if let Some(row) = query.optional(tx).await? {
            return Ok(row.get("id")?);
        }
        self.head(tx).await?;
        match name {
            // A number that was sent as a text, where no workflow has it for its id.
            WorkflowName::Id(id)
                if is_number(id) && !drafts.iter().any(|d| d.object == Object::Workflow(id.clone())) =>
            {
                let text = "SELECT id FROM package_workflow WHERE project_id = $1 AND number = $2";
                let number: i64 = id.parse().unwrap_or_default();
                match sql(text).bind(project).bind(number).optional(tx).await? {
                    Some(row) => Ok(row.get("id")?),
                    None => Err(PackageError::NotFound { what: "workflow", name: id.clone() }),
                }
            }
            WorkflowName::Id(id) if drafts.iter().any(|d| d.object == Object::Workflow(id.clone())) => Ok(id.clone()),
            WorkflowName::Id(id) => Err(PackageError::NotFound { what: "workflow", name: id.clone() }),
            WorkflowName::Number(number) => Err(PackageError::NotFound { what: "workflow", name: number.to_string() }),
        }
    }

    async fn number_of(&self, tx: &mut Tx, id: &str) -> Result<Option<i64>> {
        let text = "SELECT number FROM package_workflow WHERE project_id = $1 AND id = $2";
        let row = sql(text).bind(self.who.project_id).bind(id).optional(tx).await?;
        Ok(row.map(|row| row.get("number")).transpose()?)
    }

    /// Workflows in which something has this name.
    pub(super) async fn workflows_named(&self, tx: &mut Tx, name: &str) -> Result<Vec<String>> {
        let text = "SELECT workflow FROM package_name WHERE project_id = $1 AND name = $2 ORDER BY workflow LIMIT $3";
        let query = sql(text).bind(self.who.project_id).bind(name).bind(WORKFLOWS_LOOKED_AT_MAX + 1);
        query.all(tx).await?.iter().map(|row| Ok(row.get("workflow")?)).collect()
    }
}

/// Workflows in which it is looked whether one says whom the package is for, where neither the one that is asked about nor the
/// entry does: a package of ten thousand is read in milliseconds.
const PROFILES_LOOKED_FOR_MAX: i64 = 30;

/// Workflows whose revisions come with a read of what they refer to.
const BASE_REVISIONS_MAX: usize = 50;

/// What was done to the whole package: `import`, or `new`.
fn cause(kind: &'static str) -> Cause<'static> {
    Cause { kind, set: None, operations: None, undoes: None }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether what this unit refers to is read from the unit itself.
fn is_at_hand(unit: &str, part: &Part, drafts: &[Draft]) -> bool {
    let package = part.package();
    match unit.split_once(':') {
        Some(("workflow", id)) => part.base.workflow(id).is_some() || package.workflow(id).is_some(),
        Some((_, path)) => {
            package.files().contains_key(path) || drafts.iter().any(|draft| draft.object.to_string() == unit)
        }
        None => true,
    }
}

fn has_assets(drafts: &[Draft]) -> bool {
    drafts.iter().any(|draft| matches!(draft.object, Object::Asset(_)))
}

fn request<'a>(
    package: &'a Package,
    target: &'a Target,
    workflow: Option<&'a String>,
    mode: Mode,
    tools: &'a [&'a str],
) -> Request<'a> {
    Request {
        package,
        target_type: target.kind,
        target_id: &target.id,
        mode,
        workflow_id: workflow.map(String::as_str),
        tools,
        scope: Scope::default(),
    }
}

fn is_target(object: &Object, target: &Target, workflow: Option<&(Option<i64>, String)>) -> bool {
    match object {
        Object::Workflow(id) => target.kind == TargetType::Workflow && *id == target.id,
        Object::Step { workflow: inside, .. } => {
            // A whole workflow is another one, too, if one of its steps is.
            let is_inside = workflow.is_some_and(|(_, id)| id == inside);
            is_inside && matches!(target.kind, TargetType::Workflow) || is_step(object, target, workflow)
        }
        Object::Agent(id) => target.kind == TargetType::Agent && *id == target.id,
        Object::Asset(path) => target.kind == TargetType::Asset && *path == target.id,
        Object::Package | Object::Variable { .. } => false,
    }
}

fn is_step(object: &Object, target: &Target, workflow: Option<&(Option<i64>, String)>) -> bool {
    let Object::Step { workflow: inside, node } = object else { return false };
    target.kind == TargetType::Step && *node == target.id && workflow.is_some_and(|(_, id)| id == inside)
}
