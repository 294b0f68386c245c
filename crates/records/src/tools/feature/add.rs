//! `feature.add`

use crate::Records;
use crate::{Feature, Saved, Status};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Add(pub(crate) Records);

/// Keeps a new feature: what the product will have, to meet its requirements. It begins as pending.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// What it is called.
    #[schemars(length(min = 1, max = 500))]
    name: String,
    /// What it does.
    description: String,
    /// The requirements it meets, such as REQ-001.
    requirement_ids: Vec<String>,
    /// How one sees that it is complete.
    completion_criteria: Vec<String>,
    /// Such as `3h` or `2 days`.
    estimated_effort: Option<String>,
    /// Features that must be there before.
    #[serde(default)]
    dependencies: Vec<String>,
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
}

impl Tool for Add {
    type Input = Input;
    type Output = Saved<Feature>;
    const NAME: &'static str = "feature.add";
    const TITLE: &'static str = "Add a feature";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("add_feature")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "for a requirement",
                arguments: json!({"name":"Login","description":"A login form","requirementIds":["REQ-001"],"completionCriteria":["works"]}),
                files: &[],
                before: &[given::REQUIREMENT],
                expect: Expect::Data(&[("/id", r#""FEAT-001""#), ("/status", r#""pending""#)]),
            },
            Example {
                says: "for a requirement that is not there",
                arguments: json!({"name":"Login","description":"","requirementIds":["REQ-009"],"completionCriteria":[]}),
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
        let content = Feature {
            name: input.name,
            description: input.description,
            status: Status::Pending,
            requirement_ids: input.requirement_ids,
            completion_criteria: input.completion_criteria,
            estimated_effort: input.estimated_effort,
            dependencies: input.dependencies,
            labels: Vec::new(),
            external_id: None,
            completed_at_ms: None,
        };
        Ok(desk.create(content, iteration, None).await?)
    }
}
