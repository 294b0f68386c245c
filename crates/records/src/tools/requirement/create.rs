//! `requirement.create`

use crate::Records;
use crate::{Category, Priority, Requirement, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::sheet::sheet;

pub(crate) struct Create(pub(crate) Records);

/// Keeps a new requirement: what must be true of the product. Its id (REQ-001, …) is in the answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
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
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
}

impl Tool for Create {
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

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
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
