//! `builder.change.apply`

use crate::packages::{Applied, Apply, ProjectPackage};
use crate::refs::Object;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{CONFIRM_SOURCE, Callers, Ctx, ErrorCode, ErrorKind, Example, Expect, Facts, ToolError};

use super::given::STAGED;
use super::set_number;
use super::tool::{PackageAnswer, PackageTool};

pub(crate) struct ChangeApply;

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

impl PackageAnswer for Applied {
    fn text(&self) -> String {
        let names = |objects: &[Object]| objects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let id = &self.change_set_id;
        let mut text = match self.moment {
            Some(moment) => format!("{id} is applied as change {moment}: {}", names(&self.objects)),
            None => format!("{id} is applied; nothing is different, as it was so already"),
        };
        if !self.based_on.is_empty() {
            text.push_str(&format!("\nwith what it is based on: {}", self.based_on.join(", ")));
        }
        if !self.merged.is_empty() {
            text.push_str(&format!("\nmerged with what somebody else has changed: {}", names(&self.merged)));
        }
        if self.left > 0 {
            text.push_str(&format!("\n{} of its operations are still staged", self.left));
        }
        for warning in &self.warnings {
            text.push_str(&format!("\nnote: {} ({})", warning.message, warning.code));
        }
        text
    }
}

impl PackageTool for ChangeApply {
    type Input = Input;
    type Output = Applied;
    const NAME: &'static str = "builder.change.apply";
    const TITLE: &'static str = "Apply a staged change";
    const FACTS: Facts = Facts { callers: Callers::People, ..Facts::WRITES_RECORDS };

    fn examples(&self) -> Vec<Example> {
        vec![
            STAGED.example(
                "all of it",
                json!({"changeSetId": "cs-1", "confirmSource": "ui_manual_apply"}),
                Expect::Data(&[("/status", "\"applied\""), ("/moment", "2"), ("/left", "0")]),
            ),
            STAGED.example(
                "without saying that a person means it",
                json!({"changeSetId": "cs-1"}),
                Expect::Fails(ErrorKind::Validation),
            ),
        ]
    }

    async fn run(&self, _: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<Applied, ToolError> {
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
        Ok(package.apply(&wish).await?)
    }
}
