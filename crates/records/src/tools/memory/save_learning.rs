//! `memory.save_learning`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::tool::{Once, RecordTool};
use crate::{Learning, ProjectRecords};

pub(crate) struct SaveLearning;

/// Remembers something to do better next time. What is already there is not kept twice.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// What is to be remembered.
    #[schemars(length(min = 1))]
    content: String,
    #[serde(flatten)]
    within: InIteration,
}

impl RecordTool for SaveLearning {
    type Input = Input;
    type Output = Once<Learning>;
    const NAME: &'static str = "memory.save_learning";
    const TITLE: &'static str = "Save a learning";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("save_learning")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "a habit",
            arguments: json!({"content":"run the tests before the commit"}),
            files: &[],
            before: &[],
            expect: Expect::Data(&[("/id", r#""LRN-001""#)]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        Once::keep(desk, Learning { content: input.content }, iteration).await
    }
}
