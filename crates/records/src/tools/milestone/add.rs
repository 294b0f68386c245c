//! `milestone.add`

use crate::Records;
use crate::{Milestone, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Add(pub(crate) Records);

/// Keeps a new milestone: features that are done together, by a date.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// What it is called.
    #[schemars(length(min = 1, max = 500))]
    name: String,
    /// Such as FEAT-001.
    #[serde(default)]
    features: Vec<String>,
    /// The date, such as 2026-12-24.
    #[schemars(regex(pattern = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}.*)?$"))]
    deadline: Option<String>,
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
}

impl Tool for Add {
    type Input = Input;
    type Output = Saved<Milestone>;
    const NAME: &'static str = "milestone.add";
    const TITLE: &'static str = "Add a milestone";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "with a date",
            arguments: json!({"name":"Beta","features":["FEAT-001"],"deadline":"2026-12-24"}),
            files: &[],
            before: &[given::REQUIREMENT, given::FEATURE],
            expect: Expect::Data(&[("/id", r#""MILE-001""#)]),
        }]
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
        let content = Milestone {
            name: input.name,
            features: input.features,
            deadline: input.deadline.filter(|date| !date.is_empty()),
        };
        Ok(desk.create(content, iteration, None).await?)
    }
}
