//! `feature.list`

use crate::Records;
use crate::{Feature, Kind, Query, RecordId, Saved, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::given;
use crate::tools::sheet::sheets;
use toolhost_contract::cursor::{after_number, number_cursor};

pub(crate) struct List(pub(crate) Records);

/// Lists features, with the tasks and components that name each of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Only those that stand there.
    status: Option<Status>,
    /// Only those that meet this requirement.
    requirement_id: Option<String>,
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
    items: Vec<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for List {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "feature.list";
    const TITLE: &'static str = "List features";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "with their tasks",
            arguments: json!({}),
            files: &[],
            before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK],
            expect: Expect::Data(&[("/items/0/assignedToTasks/0", r#""TASK-001""#)]),
        }]
    }

    fn render(&self, output: &Self::Output) -> String {
        sheets("features", &output.items, output.next_cursor.as_ref())
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
        let names = input.requirement_id.as_deref().map(|id| RecordId::of(Kind::Requirement, id)).transpose()?;
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
        let page = desk.list::<Feature>(&query).await?;
        let numbers: Vec<i64> = page.items.iter().filter_map(Saved::record_id).map(|id| id.number).collect();
        let mut tasks = desk.namers(Kind::Feature, &numbers, Kind::Task).await?;
        let mut components = desk.namers(Kind::Feature, &numbers, Kind::Component).await?;
        let mut items = Vec::new();
        for feature in page.items {
            let number = feature.record_id().map_or(0, |id| id.number);
            let texts = |ids: Option<Vec<RecordId>>| ids.unwrap_or_default().iter().map(ToString::to_string).collect();
            items.push(Line {
                feature,
                assigned_to_tasks: texts(tasks.remove(&number)),
                components: texts(components.remove(&number)),
            });
        }
        Ok(Output { items, next_cursor: number_cursor(page.next) })
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(flatten)]
    feature: Saved<Feature>,
    assigned_to_tasks: Vec<String>,
    components: Vec<String>,
}
