//! `task.create`

use crate::Records;
use crate::{Saved, Status, Task};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Create(pub(crate) Records);

/// Keeps a new task: a piece of work for a feature, in a component. It begins as pending.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// What is to be done.
    #[schemars(length(min = 1, max = 500))]
    title: String,
    /// How, and what to mind.
    description: String,
    /// The feature it is for, such as FEAT-001.
    feature_id: String,
    /// The component it changes, such as COMP-001.
    component_id: String,
    /// How one sees that it is done.
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
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
}

impl Tool for Create {
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
                says: "after a task that is not there",
                arguments: json!({"title":"x","description":"","featureId":"FEAT-001","componentId":"COMP-001","acceptanceCriteria":[],"dependencies":["TASK-009"]}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT],
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
        let content = Task {
            title: input.title,
            description: input.description,
            status: Status::Pending,
            feature_id: Some(input.feature_id),
            component_id: Some(input.component_id),
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
