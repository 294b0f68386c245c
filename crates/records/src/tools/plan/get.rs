//! `plan.get`

use crate::Records;
use crate::{Milestone, Query, Saved, Status, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::given;
use crate::tools::sheet::{listed, sheets};
use toolhost_contract::cursor::{after_number, number_cursor};

pub(crate) struct Get(pub(crate) Records);

/// Reads the plan: its milestones and its tasks.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Only tasks in this state.
    status_filter: Option<Status>,
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
    milestones: Vec<Saved<Milestone>>,
    tasks: Vec<Saved<Task>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for Get {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "plan.get";
    const TITLE: &'static str = "Read the plan";
    const FACTS: Facts = Facts::READS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("get_implementation_plan"), Alias::new("get_plan")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "with its tasks",
            arguments: json!({"statusFilter":"pending"}),
            files: &[],
            before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK, given::MILESTONE],
            expect: Expect::Data(&[("/tasks/0/id", r#""TASK-001""#), ("/milestones/0/name", r#""Beta""#)]),
        }]
    }

    fn render(&self, output: &Self::Output) -> String {
        format!(
            "{}\n\n{}",
            listed("milestones", &output.milestones),
            sheets("tasks", &output.tasks, output.next_cursor.as_ref())
        )
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
        let of_iteration = Query { iteration: Some(iteration), limit: input.limit, ..Query::default() };
        let milestones = desk.list(&of_iteration).await?.items;
        let state = input.status_filter.map(|status| status.as_str().to_owned());
        let page = desk.list(&Query { state, after: after_number(input.cursor)?, ..of_iteration }).await?;
        Ok(Output { milestones, tasks: page.items, next_cursor: number_cursor(page.next) })
    }
}
