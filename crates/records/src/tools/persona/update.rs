//! `persona.update`

use crate::Records;
use crate::{Kind, Persona, RecordId, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Preview, Tool, ToolError};

use crate::tools::desk::{changing, desk, edit, set};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Update(pub(crate) Records);

/// Changes the fields you give of a persona; the others stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
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
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for Update {
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

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let id = RecordId::of(Kind::Persona, &input.id)?;
        changing(ctx, &desk(&self.0, ctx)?, id, Self::TITLE).await.map(Some)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let edit = edit(input.expected_version, input.why);
        let saved = desk.update::<Persona>(&input.id, &edit, |content| {
            set(&mut content.name, input.name);
            set(&mut content.role, input.role);
            set(&mut content.personality, input.personality);
            Ok(())
        });
        Ok(saved.await?)
    }
}
