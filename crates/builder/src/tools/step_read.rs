//! `builder.step.read`

use crate::envelope::TargetType;
use crate::packages::ProjectPackage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use super::Workflow;
use super::given::PACKAGE;
use super::tool::{PackageTool, Read};

pub(crate) struct StepRead;

/// Reads a step of a workflow: its text and its place in the graph. Name it by its node or by its file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The workflow: its number or its id.
    workflow_id: Workflow,
    /// The id of its node. Pass this or `stepPath`, not both.
    node_id: Option<String>,
    /// The path of its file in the package. Pass this or `nodeId`, not both.
    step_path: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Step")]
pub(crate) struct Object {
    step_markdown: String,
    step_path: String,
    frontmatter: Option<Value>,
    /// The node in the graph.
    node_meta: Value,
    /// The edges that lead to it and from it.
    adjacent_edges: Vec<Value>,
}

impl PackageTool for StepRead {
    type Input = Input;
    type Output = Read<Object>;
    const NAME: &'static str = "builder.step.read";
    const TITLE: &'static str = "Read a step";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            PACKAGE.example(
                "by its node",
                json!({"workflowId": "main", "nodeId": "begin"}),
                Expect::Data(&[("/step_path", "\"steps/begin.md\""), ("/node_meta/agentId", "\"ada\"")]),
            ),
            PACKAGE.example(
                "by its file",
                json!({"workflowId": 1, "stepPath": "steps/begin.md"}),
                Expect::Data(&[("/node_meta/id", "\"begin\"")]),
            ),
            PACKAGE.example(
                "a node that is not there",
                json!({"workflowId": "main", "nodeId": "other"}),
                Expect::Fails(ErrorKind::NotFound),
            ),
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<Self::Output, ToolError> {
        // Not a rule of the schema: providers of models refuse a tool whose schema has one at its top.
        let id = match (input.node_id, input.step_path) {
            (Some(id), None) | (None, Some(id)) => id,
            (named, _) => {
                let how = if named.is_some() { "both `nodeId` and `stepPath` are given" } else { "no step is named" };
                return Err(ToolError::new(ErrorKind::Validation, how).hint("pass one of `nodeId` and `stepPath`"));
            }
        };
        Read::object(ctx, package, TargetType::Step, &id, Some(input.workflow_id.into())).await
    }
}
