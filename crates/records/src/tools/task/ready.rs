//! `task.ready`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::{InIteration, OfPage};
use crate::tools::given;
use crate::tools::tool::{Listed, RecordTool};
use crate::{ProjectRecords, Query, Saved, Task};

pub(crate) struct Ready;

/// Lists the tasks that can be worked on now: nobody holds them, and every task they depend on is completed.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    within: InIteration,
    #[serde(flatten)]
    page: OfPage,
}

impl RecordTool for Ready {
    type Input = Input;
    type Output = Listed<Saved<Task>>;
    const NAME: &'static str = "task.ready";
    const TITLE: &'static str = "List tasks that are ready";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "only the first of two",
            arguments: json!({}),
            files: &[],
            before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK, given::WAITING_TASK],
            expect: Expect::Data(&[("/items/0/id", r#""TASK-001""#)]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let Query { after, limit, .. } = input.page.query()?;
        let page = desk.ready(Some(iteration), after, limit).await?;
        Ok(Listed::new("tasks are ready", page))
    }
}
