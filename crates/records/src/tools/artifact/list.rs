//! `artifact.list`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::given;
use crate::tools::sheet::listed;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Artifact, ArtifactKind, ProjectRecords, Query, Saved};

pub(crate) struct List;

/// Lists the documents of the iteration, without their texts.
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
    items: Vec<Line>,
}

impl RecordAnswer for Output {
    fn text(&self) -> String {
        listed("artifacts", &self.items)
    }
}

impl RecordTool for List {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "artifact.list";
    const TITLE: &'static str = "List artifacts";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "one of them",
            arguments: json!({}),
            files: &[],
            before: &[given::ARTIFACT],
            expect: Expect::Data(&[("/items/0/kind", r#""prd""#)]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let query = Query { iteration: Some(iteration), limit: i64::MAX, ..Query::default() };
        let line = |saved: Saved<Artifact>| Line {
            id: saved.id,
            version: saved.version,
            kind: saved.content.kind,
            characters: saved.content.content.chars().count(),
            updated_at_ms: saved.updated_at_ms,
        };
        Ok(Output { items: desk.list(&query).await?.items.into_iter().map(line).collect() })
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Line {
    id: String,
    version: i64,
    kind: ArtifactKind,
    characters: usize,
    updated_at_ms: i64,
}
