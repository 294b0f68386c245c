//! `builder.change.validate`

use crate::packages::Packages;
use crate::packages::Validated;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use super::given::{PACKAGE, STAGED};
use super::{of_whom, shelf, told};

pub(crate) struct ChangeValidate(pub(crate) Packages);

/// Says of a staged change set whether it could be applied: its schema, the rules of packages, references, impact and
/// security, in that order. Each finding has a place, a code, what was expected and what was found, and a hint.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The session; its own if left out.
    session_id: Option<String>,
    /// Such as cs-3; the last one staged if left out.
    change_set_id: Option<String>,
}

impl Tool for ChangeValidate {
    type Input = Input;
    type Output = Validated;
    const NAME: &'static str = "builder.change.validate";
    const TITLE: &'static str = "Validate a staged change";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "one that may be applied",
                arguments: json!({"changeSetId": "cs-1"}),
                files: PACKAGE.0,
                before: STAGED,
                expect: Expect::Data(&[("/valid", "true"), ("/schemaFailed", "false"), ("/status", "\"validated\"")]),
            },
            Example {
                says: "nothing is staged",
                arguments: json!({}),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    fn render(&self, output: &Validated) -> String {
        told(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Validated, ToolError> {
        let shelf = shelf(&self.0, ctx)?;
        let set = input.change_set_id.as_deref();
        of_whom(ctx, input.session_id, set, async |whose, number| shelf.validate(whose, number).await).await
    }
}
