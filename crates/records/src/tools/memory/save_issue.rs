//! `memory.save_issue`

use crate::Records;
use crate::{Issue, Saved};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::sheet::sheet;

pub(crate) struct SaveIssue(pub(crate) Records);

/// Remembers something that is wrong, until it is resolved. What is already there is not kept twice.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The stage of the work, such as design or coding.
    #[schemars(length(min = 1, max = 100))]
    stage: String,
    /// What is to be remembered.
    #[schemars(length(min = 1))]
    content: String,
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    #[serde(flatten)]
    saved: Saved<Issue>,
    /// It was already there, and nothing was added.
    duplicate: bool,
}

impl Tool for SaveIssue {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "memory.save_issue";
    const TITLE: &'static str = "Save an issue";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("save_issue")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "a flaky test",
            arguments: json!({"stage":"coding","content":"the login test is flaky"}),
            files: &[],
            before: &[],
            expect: Expect::Data(&[("/id", r#""ISS-001""#), ("/resolved", r#"false"#)]),
        }]
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.saved.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        let note = if output.duplicate { "already there\n" } else { "" };
        format!("{note}{}", sheet(&output.saved))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
        let (saved, new) = desk
            .create_once(
                Issue {
                    stage: input.stage,
                    content: input.content,
                    resolved: false,
                    resolution: None,
                    resolved_at_ms: None,
                },
                iteration,
            )
            .await?;
        Ok(Output { saved, duplicate: !new })
    }
}
