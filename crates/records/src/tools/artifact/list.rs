//! `artifact.list`

use crate::Records;
use crate::{Artifact, ArtifactKind, Query, Saved};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::given;
use crate::tools::sheet::listed;

pub(crate) struct List(pub(crate) Records);

/// Lists the documents of the iteration, without their texts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    items: Vec<Line>,
}

impl Tool for List {
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

    fn render(&self, output: &Self::Output) -> String {
        listed("artifacts", &output.items)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
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
