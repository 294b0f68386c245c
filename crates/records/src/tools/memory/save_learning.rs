//! `memory.save_learning`

use crate::Records;
use crate::{Learning, Saved};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::sheet::sheet;

pub(crate) struct SaveLearning(pub(crate) Records);

/// Remembers something to do better next time. What is already there is not kept twice.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
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
    saved: Saved<Learning>,
    /// It was already there, and nothing was added.
    duplicate: bool,
}

impl Tool for SaveLearning {
    type Input = Input;
    type Output = Output;
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
        let (saved, new) = desk.create_once(Learning { content: input.content }, iteration).await?;
        Ok(Output { saved, duplicate: !new })
    }
}
