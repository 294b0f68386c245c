//! `task.list`

use crate::Records;
use crate::{Kind, Query, RecordId, Saved, Status, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::given;
use crate::tools::sheet::sheets;
use toolhost_contract::cursor::{after_number, number_cursor};

pub(crate) struct List(pub(crate) Records);

/// Lists tasks.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Only those in this state.
    status: Option<Status>,
    /// Only those for this feature.
    feature_id: Option<String>,
    /// Only the one with this id in the system it was imported from, such as bd-12.
    #[schemars(length(min = 1, max = 200))]
    external_id: Option<String>,
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
    /// Most records of one answer.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default = "crate::tools::desk::limit_default")]
    limit: i64,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    items: Vec<Saved<Task>>,
    /// Pass it as `cursor` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for List {
    type Input = Input;
    type Output = Output;
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

    fn render(&self, output: &Self::Output) -> String {
        sheets("tasks", &output.items, output.next_cursor.as_ref())
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
        let names = input.feature_id.as_deref().map(|id| RecordId::of(Kind::Feature, id)).transpose()?;
        let state = input.status.map(|status| status.as_str().to_owned());
        let query = Query {
            iteration: Some(iteration),
            state,
            names,
            external_id: input.external_id,
            after: after_number(input.cursor)?,
            limit: input.limit,
            ..Query::default()
        };
        let page = desk.list(&query).await?;
        Ok(Output { items: page.items, next_cursor: number_cursor(page.next) })
    }
}
