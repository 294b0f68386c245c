//! `builder.change.apply`

use crate::packages::Packages;
use crate::packages::{Applied, Apply};
use crate::refs::Object;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{CONFIRM_SOURCE, Callers, Ctx, ErrorCode, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use super::given::{PACKAGE, STAGED};
use super::{set_number, shelf};

pub(crate) struct ChangeApply(pub(crate) Packages);

/// Applies a staged change set to the package, for everybody. Only a person may: what a model stages, it cannot apply.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Such as cs-3.
    change_set_id: String,
    /// `ui_manual_apply`: that a person has looked at it and wants it.
    #[serde(default)]
    confirm_source: String,
    /// The positions of the operations that are wanted, from 0; all if left out.
    operations: Option<Vec<i64>>,
    /// The objects that the set deletes, each by its name, such as `step:main/step-03`.
    #[serde(default)]
    confirm_deletes: Vec<String>,
}

impl Tool for ChangeApply {
    type Input = Input;
    type Output = Applied;
    const NAME: &'static str = "builder.change.apply";
    const TITLE: &'static str = "Apply a staged change";
    const FACTS: Facts = Facts { callers: Callers::People, ..Facts::WRITES_RECORDS };

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "all of it",
                arguments: json!({"changeSetId": "cs-1", "confirmSource": "ui_manual_apply"}),
                files: PACKAGE.0,
                before: STAGED,
                expect: Expect::Data(&[("/status", "\"applied\""), ("/moment", "2"), ("/left", "0")]),
            },
            Example {
                says: "without saying that a person means it",
                arguments: json!({"changeSetId": "cs-1"}),
                files: PACKAGE.0,
                before: STAGED,
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    fn render(&self, output: &Applied) -> String {
        let names = |objects: &[Object]| objects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let id = &output.change_set_id;
        let mut text = match output.moment {
            Some(moment) => format!("{id} is applied as change {moment}: {}", names(&output.objects)),
            None => format!("{id} is applied; nothing is different, as it was so already"),
        };
        if !output.based_on.is_empty() {
            text.push_str(&format!("\nwith what it is based on: {}", output.based_on.join(", ")));
        }
        if !output.merged.is_empty() {
            text.push_str(&format!("\nmerged with what somebody else has changed: {}", names(&output.merged)));
        }
        if output.left > 0 {
            text.push_str(&format!("\n{} of its operations are still staged", output.left));
        }
        for warning in &output.warnings {
            text.push_str(&format!("\nnote: {} ({})", warning.message, warning.code));
        }
        text
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Applied, ToolError> {
        if input.confirm_source != CONFIRM_SOURCE {
            return Err(ToolError::new(ErrorKind::Validation, "a person has to confirm this")
                .code(ErrorCode::ApplyUnconfirmed)
                .hint("`toolhost change apply` shows what changes, and asks"));
        }
        let wish = Apply {
            number: set_number(&input.change_set_id)?,
            operations: input.operations,
            deletes: input.confirm_deletes.into_iter().collect(),
        };
        Ok(shelf(&self.0, ctx)?.apply(&wish).await?)
    }
}
