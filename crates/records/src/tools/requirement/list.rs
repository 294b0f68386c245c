//! `requirement.list`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::cursor::number_cursor;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::{InIteration, InOrder, OfPage};
use crate::tools::given;
use crate::tools::sheet::{listed, sheets};
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Category, Feature, Kind, Page, Priority, ProjectRecords, Query, RecordError, Requirement, Saved};

pub(crate) struct List;

/// Lists requirements, with the features that are to meet each of them.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Only those that matter so much.
    priority: Option<Priority>,
    /// Only those of this category.
    category: Option<Category>,
    #[serde(flatten)]
    within: InIteration,
    #[serde(flatten)]
    order: InOrder,
    #[serde(flatten)]
    page: OfPage,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    requirements: Vec<Line>,
    /// The features that name them.
    features: Vec<Saved<Feature>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl RecordAnswer for Output {
    fn text(&self) -> String {
        format!(
            "{}\n\nfeatures\n{}",
            sheets("requirements", &self.requirements, self.next_cursor.as_ref()),
            listed("features", &self.features)
        )
    }
}

impl RecordTool for List {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "requirement.list";
    const TITLE: &'static str = "List requirements";
    const FACTS: Facts = Facts::READS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("get_requirements")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "with their features",
            arguments: json!({}),
            files: &[],
            before: &[given::REQUIREMENT, given::FEATURE],
            expect: Expect::Data(&[
                ("/requirements/0/id", r#""REQ-001""#),
                ("/requirements/0/relatedFeatures/0", r#""FEAT-001""#),
                ("/features/0/name", r#""Login""#),
            ]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let fits = |one: &Requirement| {
            input.priority.is_none_or(|wanted| one.priority == wanted)
                && input.category.is_none_or(|wanted| one.category == wanted)
        };
        let newest_first = input.order.newest_first;
        let query = Query { iteration: Some(iteration), newest_first, ..input.page.query()? };
        let Page { items: found, next } = desk.list_where::<Requirement>(query, fits).await?;
        let numbers: Vec<i64> = found.iter().filter_map(Saved::record_id).map(|id| id.number).collect();
        let mut namers = desk.namers(Kind::Requirement, &numbers, Kind::Feature).await?;
        let mut requirements = Vec::new();
        let mut named = std::collections::BTreeSet::new();
        for requirement in found {
            let features = requirement.record_id().and_then(|id| namers.remove(&id.number)).unwrap_or_default();
            named.extend(features.iter().copied());
            requirements
                .push(Line { requirement, related_features: features.iter().map(ToString::to_string).collect() });
        }
        let mut features = Vec::new();
        for id in named {
            match desk.get::<Feature>(&id.to_string()).await {
                Ok(feature) => features.push(feature),
                // Deleted since it was found.
                Err(RecordError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Output { requirements, features, next_cursor: number_cursor(next) })
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(flatten)]
    requirement: Saved<Requirement>,
    related_features: Vec<String>,
}
