//! `feature.update_status`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Effect, ErrorKind, Example, Expect, Tool, ToolError, Trace};
use toolhost_store::Records;
use toolhost_store::records::{Feature, Saved, Status};

use crate::desk::{desk, edit};
use crate::given;
use crate::sheet::sheet;

pub(crate) struct UpdateStatus(pub(crate) Records);

/// Says where a feature stands. The time of its completion is kept, and taken away when it is opened again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as FEAT-001.
    id: String,
    /// Where it stands.
    new_status: Status,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for UpdateStatus {
    type Input = Input;
    type Output = Saved<Feature>;
    const NAME: &'static str = "feature.update_status";
    const TITLE: &'static str = "Move a feature";
    const EFFECT: Effect = Effect::Writes;
    const TRACE: Trace = Trace::Records;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("update_feature_status")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "it is complete",
                arguments: json!({"id":"FEAT-001","newStatus":"completed"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE],
                expect: Expect::Data(&[("/status", r#""completed""#)]),
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
        let (now, edit) = (desk.now_ms(), edit(input.expected_version, input.why));
        let saved = desk.update::<Feature>(&input.id, &edit, |content| {
            content.status = input.new_status;
            content.completed_at_ms =
                (input.new_status == Status::Completed).then(|| content.completed_at_ms.unwrap_or(now));
            Ok(())
        });
        Ok(saved.await?)
    }
}
