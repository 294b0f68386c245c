//! `task.update`

use crate::Records;
use crate::{Kind, RecordId, Saved, Task};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Preview, Tool, ToolError};

use crate::tools::desk::{changing, desk, edit, set, set_or_clear};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Update(pub(crate) Records);

/// Changes the fields you give of a task; the others stay as they are. `task.update_status` moves it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as TASK-001.
    id: String,
    /// What is to be done.
    #[schemars(length(min = 1, max = 500))]
    title: Option<String>,
    /// How, and what to mind.
    description: Option<String>,
    /// The feature it is for, such as FEAT-001; empty for none.
    feature_id: Option<String>,
    /// The component it changes, such as COMP-001; empty for none.
    component_id: Option<String>,
    /// All of them: how one sees that it is done.
    acceptance_criteria: Option<Vec<String>>,
    /// All tasks that must be completed before, such as TASK-001.
    dependencies: Option<Vec<String>>,
    /// All paths of files it will make.
    files_to_create: Option<Vec<String>>,
    /// Such as `3h`, `2 days` or `1 week`.
    estimated_effort: Option<String>,
    /// All words to find it by.
    labels: Option<Vec<String>>,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for Update {
    type Input = Input;
    type Output = Saved<Task>;
    const NAME: &'static str = "task.update";
    const TITLE: &'static str = "Change a task";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "what it waits for",
                arguments: json!({"id":"TASK-002","dependencies":[]}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK, given::WAITING_TASK],
                expect: Expect::Data(&[("/dependencies", r#"[]"#)]),
            },
            Example {
                says: "in a circle",
                arguments: json!({"id":"TASK-001","dependencies":["TASK-002"]}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK, given::WAITING_TASK],
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

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let id = RecordId::of(Kind::Task, &input.id)?;
        changing(ctx, &desk(&self.0, ctx)?, id, Self::TITLE).await.map(Some)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let edit = edit(input.expected_version, input.why);
        let saved = desk.update::<Task>(&input.id, &edit, |content| {
            set(&mut content.title, input.title);
            set(&mut content.description, input.description);
            set_or_clear(&mut content.feature_id, input.feature_id);
            set_or_clear(&mut content.component_id, input.component_id);
            set(&mut content.acceptance_criteria, input.acceptance_criteria);
            if input.dependencies.is_some() {
                content.unknown_dependencies.clear();
            }
            set(&mut content.dependencies, input.dependencies);
            set(&mut content.files_to_create, input.files_to_create);
            set_or_clear(&mut content.estimated_effort, input.estimated_effort);
            set(&mut content.labels, input.labels);
            Ok(())
        });
        Ok(saved.await?)
    }
}
