//! `task.list`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::{InIteration, InOrder, OfPage};
use crate::tools::given;
use crate::tools::tool::{Listed, RecordTool};
use crate::{Kind, ProjectRecords, Query, RecordId, Saved, Status, Task};

pub(crate) struct List;

/// Lists tasks.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Only those in this state.
    status: Option<Status>,
    /// Only those for this feature.
    feature_id: Option<String>,
    /// Only the one with this id in the system it was imported from, such as bd-12.
    #[schemars(length(min = 1, max = 200))]
    external_id: Option<String>,
    #[serde(flatten)]
    within: InIteration,
    #[serde(flatten)]
    order: InOrder,
    #[serde(flatten)]
    page: OfPage,
}

impl RecordTool for List {
    type Input = Input;
    type Output = Listed<Saved<Task>>;
    const NAME: &'static str = "task.list";
    const TITLE: &'static str = "List tasks";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "pending ones",
            arguments: json!({"status":"pending"}),
            files: &[],
            before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK],
            expect: Expect::Data(&[("/items/0/id", r#""TASK-001""#)]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let names = input.feature_id.as_deref().map(|id| RecordId::of(Kind::Feature, id)).transpose()?;
        let state = input.status.map(|status| status.as_str().to_owned());
        let query = Query {
            iteration: Some(iteration),
            state,
            names,
            external_id: input.external_id,
            newest_first: input.order.newest_first,
            ..input.page.query()?
        };
        let page = desk.list(&query).await?;
        Ok(Listed::new("tasks", page))
    }
}
