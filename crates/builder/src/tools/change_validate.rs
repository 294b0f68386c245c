//! `builder.change.validate`

use crate::packages::{ProjectPackage, Validated};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use super::given::{PACKAGE, STAGED};
use super::of_whom;
use super::tool::{PackageAnswer, PackageTool};

pub(crate) struct ChangeValidate;

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

impl PackageAnswer for Validated {}

impl PackageTool for ChangeValidate {
    type Input = Input;
    type Output = Validated;
    const NAME: &'static str = "builder.change.validate";
    const TITLE: &'static str = "Validate a staged change";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            STAGED.example(
                "one that may be applied",
                json!({"changeSetId": "cs-1"}),
                Expect::Data(&[("/valid", "true"), ("/schemaFailed", "false"), ("/status", "\"validated\"")]),
            ),
            PACKAGE.example("nothing is staged", json!({}), Expect::Fails(ErrorKind::Validation)),
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<Validated, ToolError> {
        let set = input.change_set_id.as_deref();
        of_whom(ctx, input.session_id, set, async |whose, number| package.validate(whose, number).await).await
    }
}
