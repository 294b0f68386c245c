//! `component.delete`

use crate::Records;
use crate::{Kind, RecordId, Removed};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Preview, Tool, ToolError};

use crate::tools::desk::{deletion, desk, edit, removed};
use crate::tools::given;

pub(crate) struct Delete(pub(crate) Records);

/// Deletes a component. While others name it, it stays, unless `cascade` is set. Its history is kept: `record.restore` brings it back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as COMP-001.
    id: String,
    /// Also while others name it. Its tasks go with it.
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
    const NAME: &'static str = "component.delete";
    const TITLE: &'static str = "Delete a component";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "nobody names it",
                arguments: json!({"id":"COMP-001"}),
                files: &[],
                before: &[given::COMPONENT],
                expect: Expect::Data(&[("/deleted/0", r#""COMP-001""#)]),
            },
            Example {
                says: "while it is used",
                arguments: json!({"id":"COMP-001"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    fn render(&self, output: &Self::Output) -> String {
        removed(output)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let id = RecordId::of(Kind::Component, &input.id)?;
        deletion(&desk(&self.0, ctx)?, id, &edit(input.expected_version, input.why), input.cascade).await.map(Some)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let id = RecordId::of(Kind::Component, &input.id)?;
        Ok(desk.delete(id, &edit(input.expected_version, input.why), input.cascade).await?)
    }
}
