//! `builder.agent.read`

use crate::envelope::TargetType;
use crate::packages::ProjectPackage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use super::given::PACKAGE;
use super::tool::{PackageTool, Read};
use super::{Workflow, workflow_of};

pub(crate) struct AgentRead;

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
#[schemars(rename = "Agent")]
pub(crate) struct Object {
    agent_definition: Value,
    /// The steps that it does, in all workflows.
    referenced_steps: Vec<Value>,
}

impl PackageTool for AgentRead {
    type Input = Input;
    type Output = Read<Object>;
    const NAME: &'static str = "builder.agent.read";
    const TITLE: &'static str = "Read an agent";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            PACKAGE.example(
                "with its steps",
                json!({"agentId": "ada"}),
                Expect::Data(&[
                    ("/agent_definition/metadata/name", "\"Ada\""),
                    ("/referenced_steps/0/node_id", "\"begin\""),
                ]),
            ),
            PACKAGE.example("one that is not there", json!({"agentId": "bob"}), Expect::Fails(ErrorKind::NotFound)),
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<Self::Output, ToolError> {
        let workflow = workflow_of(ctx, input.workflow_id);
        Read::object(ctx, package, TargetType::Agent, &input.agent_id, workflow).await
    }
}
