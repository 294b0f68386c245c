//! `persona.list`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::OfPage;
use crate::tools::given;
use crate::tools::tool::{Listed, RecordTool};
use crate::{Persona, ProjectRecords, Saved};

pub(crate) struct List;

/// Lists the personas of the project.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    page: OfPage,
}

impl RecordTool for List {
    type Input = Input;
    type Output = Listed<Saved<Persona>>;
    const NAME: &'static str = "persona.list";
    const TITLE: &'static str = "List personas";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "one",
            arguments: json!({}),
            files: &[],
            before: &[given::PERSONA],
            expect: Expect::Data(&[("/items/0/name", r#""Ada""#)]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        Ok(Listed::new("personas", desk.list(&input.page.query()?).await?))
    }
}
