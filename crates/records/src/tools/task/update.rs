//! `task.update`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::desk::{set, set_or_clear};
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Edit, Kind, ProjectRecords, RecordId, Saved, Task};

pub(crate) struct Update;

/// Changes the fields you give of a task; the others stay as they are. `task.update_status` moves it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
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
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for Update {
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

    fn changes(&self, _: &Ctx<'_>, input: &Input) -> Result<Option<RecordId>, ToolError> {
        Ok(Some(RecordId::of(Kind::Task, &input.id)?))
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let saved = desk.update::<Task>(&input.id, &input.edit, |content| {
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
