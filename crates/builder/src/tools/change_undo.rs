//! `builder.change.undo`

use crate::packages::Packages;
use crate::packages::Undone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Callers, Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use super::given::{APPLIED, PACKAGE};
use super::shelf;

pub(crate) struct ChangeUndo(pub(crate) Packages);

/// Takes back a change that was applied to the package. What somebody has changed elsewhere since stays; where both touch,
/// nothing is changed. Only a person may.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The number of the change in the package's history.
    #[schemars(range(min = 1))]
    moment: i64,
}

impl Tool for ChangeUndo {
    type Input = Input;
    type Output = Undone;
    const NAME: &'static str = "builder.change.undo";
    const TITLE: &'static str = "Undo an applied change";
    const FACTS: Facts = Facts { callers: Callers::People, ..Facts::WRITES_RECORDS };

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "the last one",
                arguments: json!({"moment": 2}),
                files: PACKAGE.0,
                before: APPLIED,
                expect: Expect::Data(&[("/undoes", "2"), ("/files/0", "\"assets/new.md\"")]),
            },
            Example {
                says: "the first import",
                arguments: json!({"moment": 1}),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    fn render(&self, output: &Undone) -> String {
        let files = output.files.join(", ");
        match output.moment {
            Some(moment) => format!("change {} is taken back by change {moment}: {files}", output.undoes),
            None => format!("nothing is different: change {} had been taken back by others", output.undoes),
        }
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Undone, ToolError> {
        Ok(shelf(&self.0, ctx)?.undo(input.moment).await?)
    }
}
