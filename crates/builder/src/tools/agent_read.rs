//! `builder.agent.read`

use crate::envelope::TargetType;
use crate::packages::Packages;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError, WorkflowRef};

use super::given::PACKAGE;
use super::{Read, Workflow, session, shelf, workflow_of};

pub(crate) struct AgentRead(pub(crate) Packages);

/// Reads an agent of the package, and which steps it does.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The id of the agent.
    agent_id: String,
    /// The workflow that the question is about: its number or its id.
    workflow_id: Option<Workflow>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Object {
    agent_definition: Value,
    /// The steps that it does, in all workflows.
    referenced_steps: Vec<Value>,
}

impl Tool for AgentRead {
    type Input = Input;
    type Output = Read<Object>;
    const NAME: &'static str = "builder.agent.read";
    const TITLE: &'static str = "Read an agent";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "with its steps",
                arguments: json!({"agentId": "ada"}),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Data(&[
                    ("/agent_definition/metadata/name", "\"Ada\""),
                    ("/referenced_steps/0/node_id", "\"begin\""),
                ]),
            },
            Example {
                says: "one that is not there",
                arguments: json!({"agentId": "bob"}),
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
        let workflow = workflow_of(ctx, input.workflow_id);
        let shelf = shelf(&self.0, ctx)?;
        Read::new(shelf.read(TargetType::Agent, &input.agent_id, workflow.as_ref(), session(ctx)).await?)
    }
}
