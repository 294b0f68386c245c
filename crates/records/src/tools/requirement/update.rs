//! `requirement.update`

use crate::Records;
use crate::{Category, Kind, Priority, RecordId, Requirement, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Preview, Tool, ToolError};

use crate::tools::desk::{changing, desk, edit, set};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Update(pub(crate) Records);

/// Changes the fields you give of a requirement; the others stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as REQ-001.
    id: String,
    /// What it is called.
    #[schemars(length(min = 1, max = 500))]
    title: Option<String>,
    /// What must be true, and for whom.
    description: Option<String>,
    /// How much it matters.
    priority: Option<Priority>,
    /// Whether it is about what the product does, or how well.
    category: Option<Category>,
    /// All of them: they take the place of those there are.
    acceptance_criteria: Option<Vec<String>>,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for Update {
    type Input = Input;
    type Output = Saved<Requirement>;
    const NAME: &'static str = "requirement.update";
    const TITLE: &'static str = "Change a requirement";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("update_requirement")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "its priority",
                arguments: json!({"id":"REQ-001","priority":"low"}),
                files: &[],
                before: &[given::REQUIREMENT],
                expect: Expect::Data(&[("/priority", r#""low""#), ("/version", r#"2"#), ("/title", r#""Sign in""#)]),
            },
            Example {
                says: "somebody else was faster",
                arguments: json!({"id":"REQ-001","priority":"low","expectedVersion":7}),
                files: &[],
                before: &[given::REQUIREMENT],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let id = RecordId::of(Kind::Requirement, &input.id)?;
        changing(ctx, &desk(&self.0, ctx)?, id, Self::TITLE).await.map(Some)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let edit = edit(input.expected_version, input.why);
        let saved = desk.update::<Requirement>(&input.id, &edit, |content| {
            set(&mut content.title, input.title);
            set(&mut content.description, input.description);
            set(&mut content.priority, input.priority);
            set(&mut content.category, input.category);
            set(&mut content.acceptance_criteria, input.acceptance_criteria);
            Ok(())
        });
        Ok(saved.await?)
    }
}
