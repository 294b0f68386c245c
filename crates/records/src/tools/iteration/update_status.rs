//! `iteration.update_status`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Edit, Iteration, IterationStatus, Kind, ProjectRecords, RecordError, RecordId, Saved};

pub(crate) struct UpdateStatus;

/// Moves an iteration on: draft to running; running to paused, completed or failed; paused and failed to running. `current` makes it the one that tools work in.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Which one, such as ITER-001.
    id: String,
    /// The new state; as it is if left out.
    new_status: Option<IterationStatus>,
    /// Make it the current one.
    #[serde(default)]
    current: bool,
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for UpdateStatus {
    type Input = Input;
    type Output = Saved<Iteration>;
    const NAME: &'static str = "iteration.update_status";
    const TITLE: &'static str = "Move an iteration";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "it runs",
                arguments: json!({"id":"ITER-001","newStatus":"running"}),
                files: &[],
                before: &[given::ITERATION],
                expect: Expect::Data(&[("/status", r#""running""#)]),
            },
            Example {
                says: "not from the start",
                arguments: json!({"id":"ITER-001","newStatus":"completed"}),
                files: &[],
                before: &[given::ITERATION],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let id = RecordId::of(Kind::Iteration, &input.id)?;
        let saved = match input.new_status {
            Some(status) => {
                return Ok(desk.move_iteration(&input.id, status, &input.edit, input.current).await?);
            }
            None => {
                let saved: Saved<Iteration> = desk.get(&input.id).await?;
                if let Some(expected) = input.edit.expected_version.filter(|expected| *expected != saved.version) {
                    return Err(RecordError::Stale { id, expected, found: saved.version }.into());
                }
                saved
            }
        };
        if input.current {
            desk.enter_iteration(id).await?;
        }
        Ok(saved)
    }
}
