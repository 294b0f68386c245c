//! `requirement.update`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::desk::set;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Category, Edit, Kind, Priority, ProjectRecords, RecordId, Requirement, Saved};

pub(crate) struct Update;

/// Changes the fields you give of a requirement; the others stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
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
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for Update {
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

    fn changes(&self, _: &Ctx<'_>, input: &Input) -> Result<Option<RecordId>, ToolError> {
        Ok(Some(RecordId::of(Kind::Requirement, &input.id)?))
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let saved = desk.update::<Requirement>(&input.id, &input.edit, |content| {
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
