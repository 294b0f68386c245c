//! `feature.update_status`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Edit, Feature, ProjectRecords, Saved, Status};

pub(crate) struct UpdateStatus;

/// Moves a feature to another state: pending to in_progress, in_progress to completed or blocked, blocked to in_progress, completed back to in_progress (reopened, `why` is required). It starts only when the features it depends on are completed.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Which one, such as FEAT-001.
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

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        Ok(desk.move_feature(&input.id, input.new_status, input.expected_status, &input.edit).await?)
    }
}
