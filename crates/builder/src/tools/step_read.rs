//! `builder.step.read`

use crate::envelope::TargetType;
use crate::packages::Packages;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError, WorkflowRef};

use super::given::PACKAGE;
use super::{Read, Workflow, session, shelf};

pub(crate) struct StepRead(pub(crate) Packages);

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
pub(crate) struct Object {
    step_markdown: String,
    step_path: String,
    frontmatter: Option<Value>,
    /// The node in the graph.
    node_meta: Value,
    /// The edges that lead to it and from it.
    adjacent_edges: Vec<Value>,
}

impl Tool for StepRead {
    type Input = Input;
    type Output = Read<Object>;
    const NAME: &'static str = "builder.step.read";
    const TITLE: &'static str = "Read a step";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "by its node",
                arguments: json!({"workflowId": "main", "nodeId": "begin"}),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Data(&[("/step_path", "\"steps/begin.md\""), ("/node_meta/agentId", "\"ada\"")]),
            },
            Example {
                says: "by its file",
                arguments: json!({"workflowId": 1, "stepPath": "steps/begin.md"}),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Data(&[("/node_meta/id", "\"begin\"")]),
            },
            Example {
                says: "a node that is not there",
                arguments: json!({"workflowId": "main", "nodeId": "other"}),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Fails(ErrorKind::NotFound),
            },
        ]
    }

    fn render(&self, output: &Self::Output) -> String {
        output.text()
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        Some(output.target.clone())
    }

    fn workflow(&self, output: &Self::Output) -> Option<WorkflowRef> {
        output.workflow.clone()
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let workflow = input.workflow_id.into();
        // Not a rule of the schema: providers of models refuse a tool whose schema has one at its top.
        let id = match (input.node_id, input.step_path) {
            (Some(id), None) | (None, Some(id)) => id,
            (named, _) => {
                let how = if named.is_some() { "both `nodeId` and `stepPath` are given" } else { "no step is named" };
                return Err(ToolError::new(ErrorKind::Validation, how).hint("pass one of `nodeId` and `stepPath`"));
            }
        };
        Read::new(shelf(&self.0, ctx)?.read(TargetType::Step, &id, Some(&workflow), session(ctx)).await?)
    }
}
