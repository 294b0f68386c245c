//! `memory.promote_to_pattern`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Pattern, ProjectRecords, Saved};

pub(crate) struct PromoteToPattern;

/// Keeps a way of doing things in the project, made of an insight, an issue or a learning.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// What it is called.
    #[schemars(length(min = 1, max = 500))]
    name: String,
    /// How it is done.
    #[schemars(length(min = 1))]
    description: String,
    /// When to do it.
    #[serde(default)]
    usage: Vec<String>,
    /// Words to find it by.
    #[serde(default)]
    tags: Vec<String>,
    /// How it looks.
    code_example: Option<String>,
    /// The insight, issue or learning it is made of, such as INS-001. Each becomes one pattern at most.
    source_id: Option<String>,
    #[serde(flatten)]
    within: InIteration,
}

impl RecordTool for PromoteToPattern {
    type Input = Input;
    type Output = Saved<Pattern>;
    const NAME: &'static str = "memory.promote_to_pattern";
    const TITLE: &'static str = "Keep a pattern";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("promote_to_pattern")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "of an insight",
            arguments: json!({"name":"One writer","description":"write through one connection","tags":["sqlite"],"sourceId":"INS-001"}),
            files: &[],
            before: &[given::INSIGHT],
            expect: Expect::Data(&[("/id", r#""PAT-001""#)]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let content = Pattern {
            name: input.name,
            description: input.description,
            usage: input.usage,
            tags: input.tags,
            code_example: input.code_example,
            source_id: input.source_id,
        };
        Ok(desk.promote(content, iteration).await?)
    }
}
