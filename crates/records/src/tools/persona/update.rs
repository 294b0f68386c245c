//! `persona.update`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::desk::set;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Edit, Kind, Persona, ProjectRecords, RecordId, Saved};

pub(crate) struct Update;

/// Changes the fields you give of a persona; the others stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Which one, such as PERS-001.
    id: String,
    /// The name that commits and comments carry.
    #[schemars(length(min = 1, max = 100))]
    name: Option<String>,
    /// The profile whose tools it gets.
    role: Option<String>,
    /// How it works and speaks.
    personality: Option<String>,
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for Update {
    type Input = Input;
    type Output = Saved<Persona>;
    const NAME: &'static str = "persona.update";
    const TITLE: &'static str = "Change a persona";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "its role",
            arguments: json!({"id":"PERS-001","role":"reviewer"}),
            files: &[],
            before: &[given::PERSONA],
            expect: Expect::Data(&[("/role", r#""reviewer""#)]),
        }]
    }

    fn changes(&self, _: &Ctx<'_>, input: &Input) -> Result<Option<RecordId>, ToolError> {
        Ok(Some(RecordId::of(Kind::Persona, &input.id)?))
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let saved = desk.update::<Persona>(&input.id, &input.edit, |content| {
            set(&mut content.name, input.name);
            set(&mut content.role, input.role);
            set(&mut content.personality, input.personality);
            Ok(())
        });
        Ok(saved.await?)
    }
}
