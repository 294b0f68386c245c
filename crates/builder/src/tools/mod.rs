//! Tools for workflow packages: reads, and change sets that a person applies (CrewAgent seeds BAI-2.4 and BAI-3).

pub(crate) mod agent_read;
pub(crate) mod asset_read;
pub(crate) mod change_apply;
pub(crate) mod change_discard;
pub(crate) mod change_stage;
pub(crate) mod change_undo;
pub(crate) mod change_validate;
pub(crate) mod context_get;
mod given;
pub(crate) mod package_import;
pub(crate) mod refs_find;
pub(crate) mod schema_read;
pub(crate) mod step_read;
pub(crate) mod workflow_read;

use std::collections::BTreeMap;

use crate::packages::Packages;
use crate::packages::{PackageError, ProjectPackage, Revisions, Snapshot, Whose, WorkflowName};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolhost_contract::{AnyTool, CallerKind, Ctx, ErrorCode, ErrorKind, ToolError, WorkflowRef};
use toolhost_store::Who;

/// A workflow: its number, as `meta.workflowId` tells it, or its id in the package.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Workflow {
    Number(i64),
    Id(String),
}

impl From<Workflow> for WorkflowName {
    fn from(workflow: Workflow) -> Self {
        match workflow {
            Workflow::Number(number) => Self::Number(number),
            Workflow::Id(id) => Self::Id(id),
        }
    }
}

/// An object that was read: its fields, and what a change of it has to say.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Read<T> {
    #[serde(flatten)]
    object: T,
    /// Sent along as `revisions` of a change set, they say what it was made against.
    revisions: Revisions,
    /// Of an agent and an asset: the revisions of the workflows that refer to it. A set that renames or deletes it changes those,
    /// too, and takes these as `extensions: {"baseRevisions": …}`.
    #[serde(rename = "baseRevisions", default, skip_serializing_if = "BTreeMap::is_empty")]
    base_revisions: BTreeMap<String, String>,
    /// Whether this shows what the session has staged, and not yet what everybody sees.
    drafted: bool,
    /// Where the session's drafts do not go together with what others have changed since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    #[serde(skip)]
    target: String,
    #[serde(skip)]
    workflow: Option<WorkflowRef>,
}

impl<T: DeserializeOwned + Serialize> Read<T> {
    fn new(read: Snapshot) -> Result<Self, ToolError> {
        let workflow =
            read.workflow.map(|(number, _)| WorkflowRef { number, revision: read.workflow_revision.clone() });
        Ok(Self {
            object: serde_json::from_value(read.data).map_err(ToolError::internal)?,
            revisions: read.revisions,
            base_revisions: read.base_revisions,
            drafted: read.drafted,
            problems: read.problems.iter().map(ToString::to_string).collect(),
            target: read.target_revision,
            workflow,
        })
    }

    fn text(&self) -> String {
        told(self)
    }
}

/// The package of the caller's project, changed in the caller's name.
fn shelf(packages: &Packages, ctx: &Ctx<'_>) -> Result<ProjectPackage, ToolError> {
    let call = ctx.call;
    if has_zero(&call.arguments) {
        // PostgreSQL keeps no such text, and no name of a package has one.
        return Err(ToolError::new(ErrorKind::Validation, "a text has a zero character").hint("leave it out"));
    }
    Ok(packages.shelf(Who {
        project_id: call.scope.project_id,
        user_id: call.scope.user_id,
        name: call.caller.persona.clone(),
        call_id: call.id.to_string(),
    })?)
}

fn has_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_zero),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains('\0') || has_zero(value)),
        _ => false,
    }
}

/// The session through whose drafts the package is seen.
fn session<'a>(ctx: &'a Ctx<'_>) -> Option<&'a str> {
    ctx.call.scope.session_id.as_deref()
}

/// The session that stages: the caller's. A person may name one, a model's call is about its own.
fn staging_session(ctx: &Ctx<'_>, asked: Option<String>) -> Result<String, ToolError> {
    let own = ctx.call.scope.session_id.clone();
    match (asked, own) {
        (None, Some(own)) => Ok(own),
        (Some(asked), Some(own)) if asked == own => Ok(own),
        (Some(asked), _) if ctx.call.caller.kind == CallerKind::Person => Ok(asked),
        (Some(asked), _) => {
            let message = format!("`{asked}` is not the session of this call");
            Err(ToolError::new(ErrorKind::Validation, message)
                .code(ErrorCode::OtherContext)
                .hint("leave `sessionId` out: it is known"))
        }
        (None, None) => Err(ToolError::new(ErrorKind::Validation, "which session? this call belongs to none")
            .hint("pass `sessionId`, a name of your choice under which the set is staged; or call from a session")),
    }
}

/// Whose change sets are meant: those of the call's session; for a person who names one set, anybody's.
async fn of_whom<T>(
    ctx: &Ctx<'_>,
    asked: Option<String>,
    set: Option<&str>,
    then: impl AsyncFnOnce(Whose<'_>, Option<i64>) -> Result<T, PackageError>,
) -> Result<T, ToolError> {
    let number = set.map(set_number).transpose()?;
    if number.is_some() && asked.is_none() && ctx.call.caller.kind == CallerKind::Person {
        return Ok(then(Whose::Anybody, number).await?);
    }
    let session = staging_session(ctx, asked)?;
    Ok(then(Whose::Session(&session), number).await?)
}

/// The workflow that is meant: the one named, or the one that the work is about.
fn workflow_of(ctx: &Ctx<'_>, asked: Option<Workflow>) -> Option<WorkflowName> {
    asked.map(WorkflowName::from).or_else(|| ctx.call.scope.workflow_id.map(WorkflowName::Number))
}

/// The number of a change set, such as `cs-3`.
fn set_number(id: &str) -> Result<i64, ToolError> {
    id.strip_prefix("cs-").and_then(|number| number.parse().ok()).ok_or_else(|| {
        ToolError::new(ErrorKind::Validation, format!("`{id}` is not the id of a change set: it looks like cs-3"))
    })
}

/// An answer as text: documents as they are, the rest as JSON.
fn told(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => sections(&fields),
        Ok(other) => other.to_string(),
        Err(error) => format!("the answer cannot be shown: {error}"),
    }
}

fn sections(fields: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        match value {
            Value::String(long) if long.contains('\n') => text.push_str(&format!("## {name}\n{long}\n\n")),
            Value::String(short) => text.push_str(&format!("{name}: {short}\n")),
            Value::Null => {}
            other => text.push_str(&format!("{name}: {other:#}\n")),
        }
    }
    text.trim_end().to_owned()
}

/// Every tool for packages, in the order lists show them.
pub fn all(packages: &Packages) -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(context_get::ContextGet(packages.clone())),
        Box::new(workflow_read::WorkflowRead(packages.clone())),
        Box::new(step_read::StepRead(packages.clone())),
        Box::new(agent_read::AgentRead(packages.clone())),
        Box::new(asset_read::AssetRead(packages.clone())),
        Box::new(refs_find::RefsFind(packages.clone())),
        Box::new(schema_read::SchemaRead),
        Box::new(change_stage::ChangeStage(packages.clone())),
        Box::new(change_validate::ChangeValidate(packages.clone())),
        Box::new(change_discard::ChangeDiscard(packages.clone())),
        Box::new(change_apply::ChangeApply(packages.clone())),
        Box::new(change_undo::ChangeUndo(packages.clone())),
        Box::new(package_import::PackageImport(packages.clone())),
    ]
}
