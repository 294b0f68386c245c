//! `task.ready`

use crate::Records;
use crate::{Saved, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::given;
use crate::tools::sheet::sheets;
use toolhost_contract::cursor::{after_number, number_cursor};

pub(crate) struct Ready(pub(crate) Records);

/// Lists the tasks that can be worked on now: nobody holds them, and every task they depend on is completed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
    /// Most records of one answer.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default = "crate::tools::desk::limit_default")]
    limit: i64,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    items: Vec<Saved<Task>>,
    /// Pass it as `cursor` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for Ready {
    type Input = Input;
    type Output = Output;
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

    fn render(&self, output: &Self::Output) -> String {
        sheets("tasks are ready", &output.items, output.next_cursor.as_ref())
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
        let page = desk.ready(Some(iteration), after_number(input.cursor)?, input.limit).await?;
        Ok(Output { items: page.items, next_cursor: number_cursor(page.next) })
    }
}
