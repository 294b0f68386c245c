//! `iteration.update_status`

use crate::Records;
use crate::{Iteration, IterationStatus, Kind, RecordError, RecordId, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, edit};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct UpdateStatus(pub(crate) Records);

/// Moves an iteration on: draft to running; running to paused, completed or failed; paused and failed to running. `current` makes it the one that tools work in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as ITER-001.
    id: String,
    /// The new state; as it is if left out.
    new_status: Option<IterationStatus>,
    /// Make it the current one.
    #[serde(default)]
    current: bool,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for UpdateStatus {
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

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let id = RecordId::of(Kind::Iteration, &input.id)?;
        let saved = match input.new_status {
            Some(status) => {
                let edit = edit(input.expected_version, input.why);
                return Ok(desk.move_iteration(&input.id, status, &edit, input.current).await?);
            }
            None => {
                let saved: Saved<Iteration> = desk.get(&input.id).await?;
                if let Some(expected) = input.expected_version.filter(|expected| *expected != saved.version) {
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
