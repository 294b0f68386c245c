//! `memory.save_issue`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::tool::{Once, RecordTool};
use crate::{Issue, ProjectRecords};

pub(crate) struct SaveIssue;

/// Remembers something that is wrong, until it is resolved. What is already there is not kept twice.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// The stage of the work, such as design or coding.
    #[schemars(length(min = 1, max = 100))]
    stage: String,
    /// What is to be remembered.
    #[schemars(length(min = 1))]
    content: String,
    #[serde(flatten)]
    within: InIteration,
}

impl RecordTool for SaveIssue {
    type Input = Input;
    type Output = Once<Issue>;
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

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let (stage, content) = (input.stage, input.content);
        let issue = Issue { stage, content, resolved: false, resolution: None, resolved_at_ms: None };
        Once::keep(desk, issue, iteration).await
    }
}
