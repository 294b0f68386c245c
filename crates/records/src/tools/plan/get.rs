//! `plan.get`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::cursor::number_cursor;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::{InIteration, OfPage};
use crate::tools::given;
use crate::tools::sheet::{listed, sheets};
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Milestone, ProjectRecords, Query, Saved, Status, Task};

pub(crate) struct Get;

/// Reads the plan: its milestones and its tasks.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Only tasks in this state.
    status_filter: Option<Status>,
    #[serde(flatten)]
    within: InIteration,
    #[serde(flatten)]
    page: OfPage,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    milestones: Vec<Saved<Milestone>>,
    tasks: Vec<Saved<Task>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl RecordAnswer for Output {
    fn text(&self) -> String {
        format!(
            "{}\n\n{}",
            listed("milestones", &self.milestones),
            sheets("tasks", &self.tasks, self.next_cursor.as_ref())
        )
    }
}

impl RecordTool for Get {
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

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let query = Query { iteration: Some(iteration), ..input.page.query()? };
        let milestones = desk.list(&Query { after: None, ..query.clone() }).await?.items;
        let state = input.status_filter.map(|status| status.as_str().to_owned());
        let page = desk.list(&Query { state, ..query }).await?;
        Ok(Output { milestones, tasks: page.items, next_cursor: number_cursor(page.next) })
    }
}
