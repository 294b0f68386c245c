//! `feature.update`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use crate::tools::desk::{set, set_or_clear};
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Edit, Feature, Kind, ProjectRecords, RecordId, Saved};

pub(crate) struct Update;

/// Changes the fields you give of a feature; the others stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
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
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for Update {
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

    fn changes(&self, _: &Ctx<'_>, input: &Input) -> Result<Option<RecordId>, ToolError> {
        Ok(Some(RecordId::of(Kind::Feature, &input.id)?))
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let saved = desk.update::<Feature>(&input.id, &input.edit, |content| {
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
