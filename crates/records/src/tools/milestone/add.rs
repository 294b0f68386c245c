//! `milestone.add`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Milestone, ProjectRecords, Saved};

pub(crate) struct Add;

/// Keeps a new milestone: features that are done together, by a date.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
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
    #[serde(flatten)]
    within: InIteration,
}

impl RecordTool for Add {
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

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        super::check_day(input.deadline.as_deref())?;
        let iteration = input.within.number(desk).await?;
        let content = Milestone {
            name: input.name,
            features: input.features,
            deadline: input.deadline.filter(|date| !date.is_empty()),
        };
        Ok(desk.create(content, iteration, None).await?)
    }
}
