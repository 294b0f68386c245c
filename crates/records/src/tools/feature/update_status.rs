//! `feature.update_status`

use crate::Records;
use crate::{Feature, Saved, Status};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, edit};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct UpdateStatus(pub(crate) Records);

/// Moves a feature to another state: pending to in_progress, in_progress to completed or blocked, blocked to in_progress, completed back to in_progress (reopened, `why` is required). It starts only when the features it depends on are completed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as FEAT-001.
    id: String,
    /// The new state.
    new_status: Status,
    /// Move it only if it is still in this state.
    expected_status: Option<Status>,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history. Required to reopen a completed feature.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for UpdateStatus {
    type Input = Input;
    type Output = Saved<Feature>;
    const NAME: &'static str = "feature.update_status";
    const TITLE: &'static str = "Move a feature";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("update_feature_status")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "work on it begins",
                arguments: json!({"id":"FEAT-001","newStatus":"in_progress"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE],
                expect: Expect::Data(&[("/status", r#""in_progress""#)]),
            },
            Example {
                says: "not at once",
                arguments: json!({"id":"FEAT-001","newStatus":"completed"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
            Example {
                says: "an unknown state",
                arguments: json!({"id":"FEAT-001","newStatus":"done"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE],
                expect: Expect::Fails(ErrorKind::Validation),
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
        let edit = edit(input.expected_version, input.why);
        Ok(desk.move_feature(&input.id, input.new_status, input.expected_status, &edit).await?)
    }
}
