//! `builder.workflow.read`

use crate::envelope::TargetType;
use crate::packages::Packages;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError, WorkflowRef};

use super::given::PACKAGE;
use super::{Read, Workflow, session, shelf, workflow_of};

pub(crate) struct WorkflowRead(pub(crate) Packages);

/// Reads a workflow: its document, its graph and a line for each step.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The workflow: its number or its id. An empty text is the only workflow of the package; of several, the answer names all.
    workflow_id: Workflow,
}

#[derive(Serialize, Deserialize, JsonSchema)]
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

impl Tool for WorkflowRead {
    type Input = Input;
    type Output = Read<Object>;
    const NAME: &'static str = "builder.workflow.read";
    const TITLE: &'static str = "Read a workflow";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "by its id",
                arguments: json!({"workflowId": "main"}),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Data(&[
                    ("/graph_json/entryNodeId", "\"begin\""),
                    ("/step_index/0/node_id", "\"begin\""),
                ]),
            },
            Example {
                says: "by its number",
                arguments: json!({"workflowId": 1}),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Data(&[("/drafted", "false")]),
            },
            Example {
                says: "one that is not there",
                arguments: json!({"workflowId": "other"}),
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
        let asked = Some(input.workflow_id).filter(|asked| !matches!(asked, Workflow::Id(id) if id.is_empty()));
        let name = workflow_of(ctx, asked);
        Read::new(shelf(&self.0, ctx)?.read(TargetType::Workflow, "", name.as_ref(), session(ctx)).await?)
    }
}
