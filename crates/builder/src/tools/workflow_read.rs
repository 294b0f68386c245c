//! `builder.workflow.read`

use crate::envelope::TargetType;
use crate::packages::ProjectPackage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use super::given::PACKAGE;
use super::tool::{PackageTool, Read};
use super::{Workflow, workflow_of};

pub(crate) struct WorkflowRead;

/// Reads a workflow: its document, its graph and a line for each step.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The workflow: its number or its id. An empty text is the only workflow of the package; of several, the answer names all.
    workflow_id: Workflow,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Workflow")]
pub(crate) struct Object {
    workflow_md: String,
    /// The graph; its text while it is not JSON.
    graph_json: Value,
    /// Id, type, title, file and agent of each node.
    step_index: Vec<Value>,
    frontmatter: Option<Value>,
    /// Its name, description and tags, as the manifest lists them.
    about: Option<Value>,
}

impl PackageTool for WorkflowRead {
    type Input = Input;
    type Output = Read<Object>;
    const NAME: &'static str = "builder.workflow.read";
    const TITLE: &'static str = "Read a workflow";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            PACKAGE.example(
                "by its id",
                json!({"workflowId": "main"}),
                Expect::Data(&[("/graph_json/entryNodeId", "\"begin\""), ("/step_index/0/node_id", "\"begin\"")]),
            ),
            PACKAGE.example("by its number", json!({"workflowId": 1}), Expect::Data(&[("/drafted", "false")])),
            PACKAGE.example(
                "one that is not there",
                json!({"workflowId": "other"}),
                Expect::Fails(ErrorKind::NotFound),
            ),
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<Self::Output, ToolError> {
        let asked = Some(input.workflow_id).filter(|asked| !matches!(asked, Workflow::Id(id) if id.is_empty()));
        Read::object(ctx, package, TargetType::Workflow, "", workflow_of(ctx, asked)).await
    }
}
