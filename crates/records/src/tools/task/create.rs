//! `task.create`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{ProjectRecords, Saved, Status, Task};

pub(crate) struct Create;

/// Creates a task: a piece of work, for a feature and in a component where it belongs to a plan. Its first state is pending.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// What is to be done.
    #[schemars(length(min = 1, max = 500))]
    title: String,
    /// How, and what to mind.
    #[serde(default)]
    description: String,
    /// The feature it is for, such as FEAT-001. A task of a plan has one.
    feature_id: Option<String>,
    /// The component it changes, such as COMP-001. A task of a plan has one.
    component_id: Option<String>,
    /// How one sees that it is done.
    #[serde(default)]
    acceptance_criteria: Vec<String>,
    /// Tasks that must be completed before, such as TASK-001.
    #[serde(default)]
    dependencies: Vec<String>,
    /// Paths of files it will make.
    #[serde(default)]
    files_to_create: Vec<String>,
    /// Such as `3h`, `2 days` or `1 week`.
    estimated_effort: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    labels: Vec<String>,
    #[serde(flatten)]
    within: InIteration,
}

impl RecordTool for Create {
    type Input = Input;
    type Output = Saved<Task>;
    const NAME: &'static str = "task.create";
    const TITLE: &'static str = "Create a task";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("create_task")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "for a feature",
                arguments: json!({"title":"Build the form","description":"With two fields","featureId":"FEAT-001","componentId":"COMP-001","acceptanceCriteria":["it sends"]}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT],
                expect: Expect::Data(&[("/id", r#""TASK-001""#), ("/status", r#""pending""#)]),
            },
            Example {
                says: "a quick one, outside of a plan",
                arguments: json!({"title":"Renew the certificate"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/id", r#""TASK-001""#), ("/status", r#""pending""#)]),
            },
            Example {
                says: "after a task that is not there",
                arguments: json!({"title":"x","description":"","featureId":"FEAT-001","componentId":"COMP-001","acceptanceCriteria":[],"dependencies":["TASK-009"]}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT],
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let content = Task {
            title: input.title,
            description: input.description,
            status: Status::Pending,
            feature_id: input.feature_id,
            component_id: input.component_id,
            dependencies: input.dependencies,
            unknown_dependencies: Vec::new(),
            estimated_effort: input.estimated_effort,
            files_to_create: input.files_to_create,
            acceptance_criteria: input.acceptance_criteria,
            labels: input.labels,
            external_id: None,
            started_at_ms: None,
            completed_at_ms: None,
        };
        Ok(desk.create(content, iteration, None).await?)
    }
}
