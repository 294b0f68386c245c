//! `task.claim`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::desk::claimant;
use crate::tools::given;
use crate::tools::sheet::sheet;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Kind, ProjectRecords, RecordId, Saved, Task};

pub(crate) struct Claim;

/// Takes a task to work on, so that nobody else does: it becomes in_progress and is yours until the lease ends. Without an id, the first ready one. Claim it again to hold it for longer; complete or block it to let it go.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Which one; the first that is ready if left out.
    id: Option<String>,
    /// How long it is yours, in seconds.
    #[schemars(range(min = 1, max = 604_800))]
    #[serde(default = "lease_default")]
    lease_seconds: i64,
    #[serde(flatten)]
    within: InIteration,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// The task, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Saved<Task>>,
    /// Somebody else held it, and their lease ended: check what is already done.
    taken_over: bool,
}

impl RecordAnswer for Output {
    fn text(&self) -> String {
        let Some(task) = &self.task else { return "no task is ready".to_owned() };
        let note = if self.taken_over {
            "somebody else held it, and their lease ended: check what is already done\n"
        } else {
            ""
        };
        format!("yours\n{note}{}", sheet(task))
    }

    fn revision(&self) -> Option<String> {
        self.task.as_ref().and_then(Saved::revision)
    }
}

impl RecordTool for Claim {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "task.claim";
    const TITLE: &'static str = "Claim a task";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "the first that is ready",
                arguments: json!({}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK],
                expect: Expect::Data(&[
                    ("/task/id", r#""TASK-001""#),
                    ("/task/status", r#""in_progress""#),
                    ("/takenOver", r#"false"#),
                ]),
            },
            Example {
                says: "one that waits for another",
                arguments: json!({"id":"TASK-002"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK, given::WAITING_TASK],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let id = input.id.as_deref().map(|id| RecordId::of(Kind::Task, id)).transpose()?;
        let lease_ms = input.lease_seconds.saturating_mul(1000);
        let claim = desk.claim(id, Some(iteration), &claimant(ctx), lease_ms).await?;
        let taken_over = claim.as_ref().is_some_and(|claim| claim.taken_over);
        Ok(Output { task: claim.map(|claim| claim.task), taken_over })
    }
}

/// Half an hour: long enough for a piece of work, short enough for a lost worker.
fn lease_default() -> i64 {
    30 * 60
}
