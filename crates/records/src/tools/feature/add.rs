//! `feature.add`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Feature, ProjectRecords, Saved, Status};

pub(crate) struct Add;

/// Keeps a new feature: what the product will have, to meet its requirements. It begins as pending.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
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
    #[serde(flatten)]
    within: InIteration,
}

impl RecordTool for Add {
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

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
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
