//! `check.feature_coverage`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Body, Feature, Kind, ProjectRecords, RecordId, Requirement, Saved};

pub(crate) struct FeatureCoverage;

/// Checks in both directions whether the plan covers what is wanted: requirements without a feature, and features
/// without a requirement, a task or a component.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    within: InIteration,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// There is something to cover, and nothing is left uncovered.
    covered: bool,
    requirements: usize,
    features: usize,
    requirements_without_features: Vec<Line>,
    features_without_requirements: Vec<Line>,
    features_without_tasks: Vec<Line>,
    features_without_components: Vec<Line>,
}

impl RecordAnswer for Output {}

#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Line {
    id: String,
    title: String,
}

/// A requirement, a feature, a component, and two tasks one after the other.
pub(super) const SMALL_PLAN: &[(&str, &str)] = &[
    (
        "requirement.create",
        r#"{"title":"Sign in","description":"","priority":"high","category":"functional","acceptanceCriteria":["a form"]}"#,
    ),
    ("feature.add", r#"{"name":"Login","description":"","requirementIds":["REQ-001"],"completionCriteria":["works"]}"#),
    (
        "component.add",
        r#"{"name":"web","componentType":"other","responsibilities":["shows"],"technology":"HTML","relatedFeatures":["FEAT-001"]}"#,
    ),
    (
        "task.create",
        r#"{"title":"Build","description":"","featureId":"FEAT-001","componentId":"COMP-001","acceptanceCriteria":[]}"#,
    ),
    (
        "task.create",
        r#"{"title":"Test","description":"","featureId":"FEAT-001","componentId":"COMP-001","acceptanceCriteria":[],"dependencies":["TASK-001"]}"#,
    ),
];

impl RecordTool for FeatureCoverage {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "check.feature_coverage";
    const TITLE: &'static str = "Check what the plan covers";
    const FACTS: Facts = Facts::READS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("check_feature_coverage")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "all is covered",
                arguments: json!({}),
                files: &[],
                before: SMALL_PLAN,
                expect: Expect::Data(&[("/covered", "true"), ("/features", "1")]),
            },
            Example {
                says: "a requirement that nothing meets",
                arguments: json!({}),
                files: &[],
                before: SMALL_PLAN.first_chunk::<1>().map_or(&[], |first| first),
                expect: Expect::Data(&[("/covered", "false"), ("/requirementsWithoutFeatures/0/id", "\"REQ-001\"")]),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let requirements = lines::<Requirement>(desk, iteration).await?;
        let features = lines::<Feature>(desk, iteration).await?;
        let without = async |lines: &BTreeMap<i64, Line>, kind: Kind, by: Kind| -> Result<Vec<Line>, ToolError> {
            let numbers: Vec<i64> = lines.keys().copied().collect();
            let namers = desk.namers(kind, &numbers, by).await?;
            Ok(lines.iter().filter(|(number, _)| !namers.contains_key(number)).map(|(_, line)| line.clone()).collect())
        };
        let requirements_without_features = without(&requirements, Kind::Requirement, Kind::Feature).await?;
        let features_without_tasks = without(&features, Kind::Feature, Kind::Task).await?;
        let features_without_components = without(&features, Kind::Feature, Kind::Component).await?;
        let features_without_requirements: Vec<Line> = desk
            .all::<Feature>(Some(iteration))
            .await?
            .into_iter()
            .filter(|feature| feature.content.requirement_ids.is_empty())
            .map(|feature| line(&feature))
            .collect();
        let covered = !(requirements.is_empty() && features.is_empty())
            && requirements_without_features.is_empty()
            && features_without_requirements.is_empty()
            && features_without_tasks.is_empty()
            && features_without_components.is_empty();
        Ok(Output {
            covered,
            requirements: requirements.len(),
            features: features.len(),
            requirements_without_features,
            features_without_requirements,
            features_without_tasks,
            features_without_components,
        })
    }
}

async fn lines<T: Body>(desk: &ProjectRecords, iteration: i64) -> Result<BTreeMap<i64, Line>, ToolError> {
    let number = |saved: &Saved<T>| saved.record_id().map_or(0, |id: RecordId| id.number);
    Ok(desk.all::<T>(Some(iteration)).await?.iter().map(|saved| (number(saved), line(saved))).collect())
}

fn line<T: Body>(saved: &Saved<T>) -> Line {
    Line { id: saved.id.clone(), title: saved.content.title().to_owned() }
}
