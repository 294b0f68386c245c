//! `requirement.delete`

use crate::Records;
use crate::{Kind, RecordId, Removed};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Preview, Tool, ToolError};

use crate::tools::desk::{deletion, desk, edit, removed};
use crate::tools::given;

pub(crate) struct Delete(pub(crate) Records);

/// Deletes a requirement. While others name it, it stays, unless `cascade` is set. Its history is kept: `record.restore` brings it back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as REQ-001.
    id: String,
    /// Also while others name it. Features that name it lose it.
    #[serde(default)]
    cascade: bool,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for Delete {
    type Input = Input;
    type Output = Removed;
    const NAME: &'static str = "requirement.delete";
    const TITLE: &'static str = "Delete a requirement";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("delete_requirement")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "nobody names it",
                arguments: json!({"id":"REQ-001"}),
                files: &[],
                before: &[given::REQUIREMENT],
                expect: Expect::Data(&[("/deleted/0", r#""REQ-001""#)]),
            },
            Example {
                says: "while it is used",
                arguments: json!({"id":"REQ-001"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    fn render(&self, output: &Self::Output) -> String {
        removed(output)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let id = RecordId::of(Kind::Requirement, &input.id)?;
        deletion(&desk(&self.0, ctx)?, id, &edit(input.expected_version, input.why), input.cascade).await.map(Some)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let id = RecordId::of(Kind::Requirement, &input.id)?;
        Ok(desk.delete(id, &edit(input.expected_version, input.why), input.cascade).await?)
    }
}
