//! `milestone.update`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::desk::{set, set_or_clear};
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Edit, Kind, Milestone, ProjectRecords, RecordId, Saved};

pub(crate) struct Update;

/// Changes the fields you give of a milestone; the others stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
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
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for Update {
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

    fn changes(&self, _: &Ctx<'_>, input: &Input) -> Result<Option<RecordId>, ToolError> {
        Ok(Some(RecordId::of(Kind::Milestone, &input.id)?))
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        super::check_day(input.deadline.as_deref())?;
        let saved = desk.update::<Milestone>(&input.id, &input.edit, |content| {
            set(&mut content.name, input.name);
            set(&mut content.features, input.features);
            set_or_clear(&mut content.deadline, input.deadline);
            Ok(())
        });
        Ok(saved.await?)
    }
}
