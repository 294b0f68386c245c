//! `milestone.list`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::{InIteration, InOrder, OfPage};
use crate::tools::given;
use crate::tools::tool::{Listed, RecordTool};
use crate::{Milestone, ProjectRecords, Query, Saved};

pub(crate) struct List;

/// Lists milestones.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    within: InIteration,
    #[serde(flatten)]
    order: InOrder,
    #[serde(flatten)]
    page: OfPage,
}

impl RecordTool for List {
    type Input = Input;
    type Output = Listed<Saved<Milestone>>;
    const NAME: &'static str = "milestone.list";
    const TITLE: &'static str = "List milestones";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "all of them",
            arguments: json!({}),
            files: &[],
            before: &[given::REQUIREMENT, given::FEATURE, given::MILESTONE],
            expect: Expect::Data(&[("/items/0/deadline", r#""2026-12-24""#)]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let query = Query { iteration: Some(iteration), newest_first: input.order.newest_first, ..input.page.query()? };
        let page = desk.list(&query).await?;
        Ok(Listed::new("milestones", page))
    }
}
