//! `feature.list`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::{InIteration, InOrder, OfPage};
use crate::tools::given;
use crate::tools::tool::{Listed, RecordTool};
use crate::{Feature, Kind, Page, ProjectRecords, Query, RecordId, Saved, Status};

pub(crate) struct List;

/// Lists features, with the tasks and components that name each of them.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Only those that stand there.
    status: Option<Status>,
    /// Only those that meet this requirement.
    requirement_id: Option<String>,
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
    type Output = Listed<Line>;
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

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let names = input.requirement_id.as_deref().map(|id| RecordId::of(Kind::Requirement, id)).transpose()?;
        let state = input.status.map(|status| status.as_str().to_owned());
        let query = Query {
            iteration: Some(iteration),
            state,
            names,
            external_id: input.external_id,
            newest_first: input.order.newest_first,
            ..input.page.query()?
        };
        let Page { items, next } = desk.list::<Feature>(&query).await?;
        let numbers: Vec<i64> = items.iter().filter_map(Saved::record_id).map(|id| id.number).collect();
        let mut tasks = desk.namers(Kind::Feature, &numbers, Kind::Task).await?;
        let mut components = desk.namers(Kind::Feature, &numbers, Kind::Component).await?;
        let texts = |ids: Option<Vec<RecordId>>| ids.unwrap_or_default().iter().map(ToString::to_string).collect();
        let line = |feature: Saved<Feature>| {
            let number = feature.record_id().map_or(0, |id| id.number);
            let (assigned_to_tasks, components) = (texts(tasks.remove(&number)), texts(components.remove(&number)));
            Line { feature, assigned_to_tasks, components }
        };
        Ok(Listed::new("features", Page { items: items.into_iter().map(line).collect(), next }))
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    #[serde(flatten)]
    feature: Saved<Feature>,
    assigned_to_tasks: Vec<String>,
    components: Vec<String>,
}
