//! `milestone.update`

use crate::Records;
use crate::{Kind, Milestone, RecordId, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Preview, Tool, ToolError};

use crate::tools::desk::{changing, desk, edit, set, set_or_clear};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Update(pub(crate) Records);

/// Changes the fields you give of a milestone; the others stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as MILE-001.
    id: String,
    /// What it is called.
    #[schemars(length(min = 1, max = 500))]
    name: Option<String>,
    /// All of them.
    features: Option<Vec<String>>,
    /// The date, such as 2026-12-24; empty for none.
    #[schemars(regex(pattern = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}.*)?$"))]
    deadline: Option<String>,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for Update {
    type Input = Input;
    type Output = Saved<Milestone>;
    const NAME: &'static str = "milestone.update";
    const TITLE: &'static str = "Change a milestone";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "no date any more",
            arguments: json!({"id":"MILE-001","deadline":""}),
            files: &[],
            before: &[given::REQUIREMENT, given::FEATURE, given::MILESTONE],
            expect: Expect::Data(&[("/version", r#"2"#), ("/name", r#""Beta""#)]),
        }]
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let id = RecordId::of(Kind::Milestone, &input.id)?;
        changing(ctx, &desk(&self.0, ctx)?, id, Self::TITLE).await.map(Some)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let edit = edit(input.expected_version, input.why);
        let saved = desk.update::<Milestone>(&input.id, &edit, |content| {
            set(&mut content.name, input.name);
            set(&mut content.features, input.features);
            set_or_clear(&mut content.deadline, input.deadline);
            Ok(())
        });
        Ok(saved.await?)
    }
}
