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
mod tool;
pub(crate) mod workflow_read;

use crate::packages::{PackageError, Packages, Whose, WorkflowName};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use toolhost_contract::{AnyTool, CallerKind, Ctx, ErrorCode, ErrorKind, ToolError};

use self::tool::{PackageTool, on};

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

/// Every tool for packages, in the order lists show them.
pub fn all(packages: &Packages) -> Vec<Box<dyn AnyTool>> {
    vec![
        on(packages, context_get::ContextGet),
        on(packages, workflow_read::WorkflowRead),
        on(packages, step_read::StepRead),
        on(packages, agent_read::AgentRead),
        on(packages, asset_read::AssetRead),
        on(packages, refs_find::RefsFind),
        Box::new(schema_read::SchemaRead),
        on(packages, change_stage::ChangeStage),
        on(packages, change_validate::ChangeValidate),
        on(packages, change_discard::ChangeDiscard),
        on(packages, change_apply::ChangeApply),
        on(packages, change_undo::ChangeUndo),
        on(packages, package_import::PackageImport),
    ]
}

/// The schema of what a tool for packages answers, for a document that describes it. A tool that is not here may answer anything.
pub fn answer_schema(tool: &str, generator: &mut SchemaGenerator) -> Schema {
    fn of<T: PackageTool>(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T::Output>()
    }
    match tool {
        workflow_read::WorkflowRead::NAME => of::<workflow_read::WorkflowRead>(generator),
        step_read::StepRead::NAME => of::<step_read::StepRead>(generator),
        agent_read::AgentRead::NAME => of::<agent_read::AgentRead>(generator),
        asset_read::AssetRead::NAME => of::<asset_read::AssetRead>(generator),
        refs_find::RefsFind::NAME => of::<refs_find::RefsFind>(generator),
        change_stage::ChangeStage::NAME => of::<change_stage::ChangeStage>(generator),
        change_validate::ChangeValidate::NAME => of::<change_validate::ChangeValidate>(generator),
        change_discard::ChangeDiscard::NAME => of::<change_discard::ChangeDiscard>(generator),
        change_apply::ChangeApply::NAME => of::<change_apply::ChangeApply>(generator),
        change_undo::ChangeUndo::NAME => of::<change_undo::ChangeUndo>(generator),
        _ => Schema::default(),
    }
}
