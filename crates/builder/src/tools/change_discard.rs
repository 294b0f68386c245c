//! `builder.change.discard`

use crate::packages::{Discarded, ProjectPackage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use super::given::STAGED;
use super::of_whom;
use super::tool::{PackageAnswer, PackageTool};

pub(crate) struct ChangeDiscard;

/// Gives up a staged change set, or all that the session has staged.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The session; its own if left out.
    session_id: Option<String>,
    /// Such as cs-3; all if left out.
    change_set_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Discarded")]
pub(crate) struct Output {
    /// The ids of the change sets that are given up.
    discarded: Vec<String>,
    /// Those that were made on one of these and contain its text: they can no longer be applied.
    blocked: Vec<String>,
    /// Those that refer to what one of these makes: they have to be validated again.
    unvalidated: Vec<String>,
}

impl PackageAnswer for Output {
    fn text(&self) -> String {
        let mut text = format!("discarded {}: listed as rejected", self.discarded.join(", "));
        if !self.blocked.is_empty() {
            let names = self.blocked.join(", ");
            text += &format!("\nmade on it, and blocked: {names} (discard those, or stage their changes again)");
        }
        if !self.unvalidated.is_empty() {
            text +=
                &format!("\nrefer to what it makes, and have to be validated again: {}", self.unvalidated.join(", "));
        }
        text
    }
}

impl PackageTool for ChangeDiscard {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "builder.change.discard";
    const TITLE: &'static str = "Discard a staged change";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            STAGED.example("one set", json!({"changeSetId": "cs-1"}), Expect::Data(&[("/discarded/0", "\"cs-1\"")])),
            STAGED.example("one that is not there", json!({"changeSetId": "cs-7"}), Expect::Fails(ErrorKind::NotFound)),
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<Output, ToolError> {
        let set = input.change_set_id.as_deref();
        let discarded = of_whom(ctx, input.session_id, set, async |whose, number| package.discard(whose, number).await);
        let Discarded { discarded, blocked, unvalidated } = discarded.await?;
        Ok(Output { discarded, blocked, unvalidated })
    }
}
