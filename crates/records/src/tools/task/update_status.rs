//! `task.update_status`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::desk::claimant;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Edit, ProjectRecords, Saved, Status, Task};

pub(crate) struct UpdateStatus;

/// Moves a task to another state: pending to in_progress, in_progress to completed or blocked, blocked to in_progress. It starts only when the tasks it depends on are completed, and stays where it is while somebody else holds it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Which one, such as TASK-001.
    id: String,
    /// The new state.
    new_status: Status,
    /// Move it only if it is still in this state.
    expected_status: Option<Status>,
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for UpdateStatus {
    type Input = Input;
    type Output = Saved<Task>;
    const NAME: &'static str = "task.update_status";
    const TITLE: &'static str = "Move a task";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("update_task_status")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "it begins",
                arguments: json!({"id":"TASK-001","newStatus":"in_progress"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK],
                expect: Expect::Data(&[("/status", r#""in_progress""#)]),
            },
            Example {
                says: "not at once",
                arguments: json!({"id":"TASK-001","newStatus":"completed"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        Ok(desk.move_task(&input.id, input.new_status, input.expected_status, &claimant(ctx), &input.edit).await?)
    }
}
