//! `iteration.create`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Inheritance, Iteration, NewIteration, ProjectRecords, Saved};

pub(crate) struct Create;

/// Begins a new iteration, which becomes the current one, with copies of what it inherits from its base.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// What it is about.
    #[schemars(length(min = 1, max = 500))]
    title: String,
    /// What it is to reach.
    #[serde(default)]
    description: String,
    /// The number of the iteration it builds on; 0 for what belongs to none.
    #[schemars(range(min = 0))]
    base: Option<i64>,
    /// What it takes over from its base: nothing, the plan, or the plan and the artifacts.
    #[serde(default = "inheritance_default")]
    inheritance: Inheritance,
}

impl RecordTool for Create {
    type Input = Input;
    type Output = Saved<Iteration>;
    const NAME: &'static str = "iteration.create";
    const TITLE: &'static str = "Begin an iteration";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("pm_create_iteration")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "the first",
                arguments: json!({"title":"Basics"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/id", r#""ITER-001""#), ("/status", r#""draft""#)]),
            },
            Example {
                says: "on another",
                arguments: json!({"title":"More","base":1,"inheritance":"full"}),
                files: &[],
                before: &[given::ITERATION],
                expect: Expect::Data(&[("/id", r#""ITER-002""#), ("/inheritance", r#""full""#)]),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let new = NewIteration {
            title: input.title,
            description: input.description,
            base: input.base,
            inheritance: input.inheritance,
        };
        Ok(desk.begin_iteration(&new).await?)
    }
}

fn inheritance_default() -> Inheritance {
    Inheritance::Partial
}
