//! What the tools for packages have in common: whose package they work on, and how their answers read.

use std::collections::BTreeMap;
use std::future::Future;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolhost_contract::{AnyTool, Ctx, ErrorKind, Example, Facts, Tool, ToolError, WorkflowRef};
use toolhost_store::Who;

use super::session;
use crate::envelope::TargetType;
use crate::packages::{Packages, ProjectPackage, Revisions, Snapshot, WorkflowName};

/// A tool that works on the package of the caller's project, in the caller's name.
pub(crate) trait PackageTool: Send + Sync + 'static {
    type Input: DeserializeOwned + JsonSchema + Send;
    type Output: PackageAnswer;

    /// As [`Tool::NAME`].
    const NAME: &'static str;
    const TITLE: &'static str;
    const FACTS: Facts;

    fn examples(&self) -> Vec<Example>;

    fn run(
        &self,
        ctx: &Ctx<'_>,
        package: &ProjectPackage,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// The answer of a tool for packages.
pub(crate) trait PackageAnswer: Serialize + JsonSchema + Send + Sized {
    /// As [`Tool::render`].
    fn text(&self) -> String {
        told(self)
    }

    /// As [`Tool::revision`].
    fn revision(&self) -> Option<String> {
        None
    }

    /// As [`Tool::workflow`].
    fn workflow(&self) -> Option<WorkflowRef> {
        None
    }
}

/// A tool, and the packages it works on.
struct OnPackages<T> {
    packages: Packages,
    tool: T,
}

/// The tool as the host holds it.
pub(crate) fn on<T: PackageTool>(packages: &Packages, tool: T) -> Box<dyn AnyTool> {
    Box::new(OnPackages { packages: packages.clone(), tool })
}

impl<T: PackageTool> Tool for OnPackages<T> {
    type Input = T::Input;
    type Output = T::Output;
    const NAME: &'static str = T::NAME;
    const TITLE: &'static str = T::TITLE;
    const FACTS: Facts = T::FACTS;

    fn examples(&self) -> Vec<Example> {
        self.tool.examples()
    }

    fn render(&self, output: &Self::Output) -> String {
        output.text()
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn workflow(&self, output: &Self::Output) -> Option<WorkflowRef> {
        output.workflow()
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Self::Input) -> Result<Self::Output, ToolError> {
        self.tool.run(ctx, &package_of(&self.packages, ctx)?, input).await
    }
}

/// The package of the caller's project, changed in the caller's name.
fn package_of(packages: &Packages, ctx: &Ctx<'_>) -> Result<ProjectPackage, ToolError> {
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

/// An object that was read: its fields, and what a change of it has to say.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Read{T}")]
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

impl<T: DeserializeOwned> Read<T> {
    /// The object as the caller's session sees it.
    pub(crate) async fn object(
        ctx: &Ctx<'_>,
        package: &ProjectPackage,
        kind: TargetType,
        id: &str,
        workflow: Option<WorkflowName>,
    ) -> Result<Self, ToolError> {
        Self::new(package.read(kind, id, workflow.as_ref(), session(ctx)).await?)
    }

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
}

impl<T: Serialize + JsonSchema + Send> PackageAnswer for Read<T> {
    fn revision(&self) -> Option<String> {
        Some(self.target.clone())
    }

    fn workflow(&self) -> Option<WorkflowRef> {
        self.workflow.clone()
    }
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
