//! `builder.change.undo`

use crate::packages::{ProjectPackage, Undone};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Callers, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use super::given::{APPLIED, PACKAGE};
use super::tool::{PackageAnswer, PackageTool};

pub(crate) struct ChangeUndo;

/// Takes back a change that was applied to the package. What somebody has changed elsewhere since stays; where both touch,
/// nothing is changed. Only a person may.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The number of the change in the package's history.
    #[schemars(range(min = 1))]
    moment: i64,
}

impl PackageAnswer for Undone {
    fn text(&self) -> String {
        let files = self.files.join(", ");
        match self.moment {
            Some(moment) => format!("change {} is taken back by change {moment}: {files}", self.undoes),
            None => format!("nothing is different: change {} had been taken back by others", self.undoes),
        }
    }
}

impl PackageTool for ChangeUndo {
    type Input = Input;
    type Output = Undone;
    const NAME: &'static str = "builder.change.undo";
    const TITLE: &'static str = "Undo an applied change";
    const FACTS: Facts = Facts { callers: Callers::People, ..Facts::WRITES_RECORDS };

    fn examples(&self) -> Vec<Example> {
        vec![
            APPLIED.example(
                "the last one",
                json!({"moment": 2}),
                Expect::Data(&[("/undoes", "2"), ("/files/0", "\"assets/new.md\"")]),
            ),
            PACKAGE.example("the first import", json!({"moment": 1}), Expect::Fails(ErrorKind::Conflict)),
        ]
    }

    async fn run(&self, _: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<Undone, ToolError> {
        Ok(package.undo(input.moment).await?)
    }
}
