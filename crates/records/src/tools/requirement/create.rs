//! `requirement.create`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::tool::RecordTool;
use crate::{Category, Priority, ProjectRecords, Requirement, Saved};

pub(crate) struct Create;

/// Keeps a new requirement: what must be true of the product. Its id (REQ-001, …) is in the answer.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// What it is called.
    #[schemars(length(min = 1, max = 500))]
    title: String,
    /// What must be true, and for whom.
    description: String,
    /// How much it matters.
    priority: Priority,
    /// Whether it is about what the product does, or how well.
    category: Category,
    /// How one sees that it holds, one sentence each.
    acceptance_criteria: Vec<String>,
    #[serde(flatten)]
    within: InIteration,
}

impl RecordTool for Create {
    type Input = Input;
    type Output = Saved<Requirement>;
    const NAME: &'static str = "requirement.create";
    const TITLE: &'static str = "Create a requirement";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("create_requirement")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a functional one",
                arguments: json!({"title":"Sign in","description":"Users sign in","priority":"high","category":"functional","acceptanceCriteria":["a form"]}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/id", r#""REQ-001""#), ("/version", r#"1"#)]),
            },
            Example {
                says: "an unknown priority",
                arguments: json!({"title":"Sign in","description":"","priority":"urgent","category":"functional","acceptanceCriteria":[]}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let content = Requirement {
            title: input.title,
            description: input.description,
            priority: input.priority,
            category: input.category,
            acceptance_criteria: input.acceptance_criteria,
        };
        Ok(desk.create(content, iteration, None).await?)
    }
}
