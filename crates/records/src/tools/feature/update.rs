//! `feature.update`

use crate::Records;
use crate::{Feature, Kind, RecordId, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, Preview, Tool, ToolError};

use crate::tools::desk::{changing, desk, edit, set, set_or_clear};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Update(pub(crate) Records);

/// Changes the fields you give of a feature; the others stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as FEAT-001.
    id: String,
    /// What it is called.
    #[schemars(length(min = 1, max = 500))]
    name: Option<String>,
    /// What it does.
    description: Option<String>,
    /// All requirements it meets.
    requirement_ids: Option<Vec<String>>,
    /// All of them.
    completion_criteria: Option<Vec<String>>,
    /// Such as `3h`; empty for none.
    estimated_effort: Option<String>,
    /// All features that must be there before.
    dependencies: Option<Vec<String>>,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for Update {
    type Input = Input;
    type Output = Saved<Feature>;
    const NAME: &'static str = "feature.update";
    const TITLE: &'static str = "Change a feature";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("update_feature")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "its name",
            arguments: json!({"id":"FEAT-001","name":"Sign-in form"}),
            files: &[],
            before: &[given::REQUIREMENT, given::FEATURE],
            expect: Expect::Data(&[("/name", r#""Sign-in form""#), ("/version", r#"2"#)]),
        }]
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let id = RecordId::of(Kind::Feature, &input.id)?;
        changing(ctx, &desk(&self.0, ctx)?, id, Self::TITLE).await.map(Some)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let edit = edit(input.expected_version, input.why);
        let saved = desk.update::<Feature>(&input.id, &edit, |content| {
            set(&mut content.name, input.name);
            set(&mut content.description, input.description);
            set(&mut content.requirement_ids, input.requirement_ids);
            set(&mut content.completion_criteria, input.completion_criteria);
            set_or_clear(&mut content.estimated_effort, input.estimated_effort);
            set(&mut content.dependencies, input.dependencies);
            Ok(())
        });
        Ok(saved.await?)
    }
}
