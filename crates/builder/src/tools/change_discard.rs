//! `builder.change.discard`

use crate::packages::Discarded;
use crate::packages::Packages;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use super::given::{PACKAGE, STAGED};
use super::{of_whom, shelf};

pub(crate) struct ChangeDiscard(pub(crate) Packages);

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
pub(crate) struct Output {
    /// The ids of the change sets that are given up.
    discarded: Vec<String>,
    /// Those that were made on one of these and contain its text: they can no longer be applied.
    blocked: Vec<String>,
    /// Those that refer to what one of these makes: they have to be validated again.
    unvalidated: Vec<String>,
}

impl Tool for ChangeDiscard {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "builder.change.discard";
    const TITLE: &'static str = "Discard a staged change";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "one set",
                arguments: json!({"changeSetId": "cs-1"}),
                files: PACKAGE.0,
                before: STAGED,
                expect: Expect::Data(&[("/discarded/0", "\"cs-1\"")]),
            },
            Example {
                says: "one that is not there",
                arguments: json!({"changeSetId": "cs-7"}),
                files: PACKAGE.0,
                before: STAGED,
                expect: Expect::Fails(ErrorKind::NotFound),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        let mut text = format!("discarded {}: listed as rejected", output.discarded.join(", "));
        if !output.blocked.is_empty() {
            let names = output.blocked.join(", ");
            text += &format!("\nmade on it, and blocked: {names} (discard those, or stage their changes again)");
        }
        if !output.unvalidated.is_empty() {
            text +=
                &format!("\nrefer to what it makes, and have to be validated again: {}", output.unvalidated.join(", "));
        }
        text
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let shelf = shelf(&self.0, ctx)?;
        let set = input.change_set_id.as_deref();
        let discarded = of_whom(ctx, input.session_id, set, async |whose, number| shelf.discard(whose, number).await);
        let Discarded { discarded, blocked, unvalidated } = discarded.await?;
        Ok(Output { discarded, blocked, unvalidated })
    }
}
