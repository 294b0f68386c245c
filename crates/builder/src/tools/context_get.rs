//! `builder.context.get`

use crate::envelope::{Mode, TargetType};
use crate::packages::ProjectPackage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError, WorkflowRef};

use super::given::PACKAGE;
use super::tool::{PackageAnswer, PackageTool};
use super::{Workflow, session, workflow_of};

pub(crate) struct ContextGet;

/// Returns the context for work on one object of the package: the object, what it depends on, the rules that the validator
/// checks, and the tools that may be used. Each fact is there once: `node_meta` and `adjacent_edges` of a step leave out what
/// its front matter says.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// What kind of object.
    target_type: TargetType,
    /// Which: the id of a workflow, a node or an agent, or the path of an asset.
    target_id: String,
    /// Whether it is being made, or is there and is to become better.
    mode: Mode,
    /// The workflow: its number or its id. May be left out where the target tells it.
    workflow_id: Option<Workflow>,
}

/// Exactly seven sections.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Output {
    session_meta: Map<String, Value>,
    domain_profile: Map<String, Value>,
    normative_baseline: Map<String, Value>,
    target_snapshot: Map<String, Value>,
    dependency_digest: Map<String, Value>,
    tool_capabilities: Map<String, Value>,
    revision_info: Map<String, Value>,
    #[serde(skip)]
    number: Option<Option<i64>>,
}

impl PackageAnswer for Output {
    fn revision(&self) -> Option<String> {
        self.revision_info.get("target").and_then(Value::as_str).map(str::to_owned)
    }

    fn workflow(&self) -> Option<WorkflowRef> {
        let revision = self.revision_info.get("revisions").and_then(|all| all.get("workflowRevision")?.as_str());
        self.number.map(|number| WorkflowRef { number, revision: revision.map(str::to_owned) })
    }
}

impl PackageTool for ContextGet {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "builder.context.get";
    const TITLE: &'static str = "Get the context of an object";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            PACKAGE.example(
                "to make a step better",
                json!({"targetType": "step", "targetId": "begin", "mode": "optimize", "workflowId": "main"}),
                Expect::Data(&[
                    ("/session_meta/workflow_id", "\"main\""),
                    ("/target_snapshot/step_path", "\"steps/begin.md\""),
                    ("/tool_capabilities/allow_write", "false"),
                ]),
            ),
            PACKAGE.example(
                "an agent that is not there",
                json!({"targetType": "agent", "targetId": "bob", "mode": "optimize"}),
                Expect::Fails(ErrorKind::NotFound),
            ),
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<Output, ToolError> {
        let workflow = workflow_of(ctx, input.workflow_id);
        let tools = ctx.catalog.tools().into_iter().filter(|tool| tool.name.starts_with("builder."));
        // As the caller calls them.
        let allowed: Vec<String> = tools.filter_map(|tool| ctx.catalog.called(&tool.name)).collect();
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        let (kind, id, session) = (input.target_type, &input.target_id, session(ctx));
        let (envelope, workflow) = package.context(kind, id, workflow.as_ref(), input.mode, &allowed, session).await?;
        let mut output: Output = serde_json::from_value(envelope).map_err(ToolError::internal)?;
        output.number = workflow.map(|(number, _)| number);
        Ok(output)
    }
}
