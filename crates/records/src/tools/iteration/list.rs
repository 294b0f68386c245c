//! `iteration.list`

use crate::Records;
use crate::{Iteration, Query, Saved};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::desk;
use crate::tools::given;
use crate::tools::sheet::sheets;
use toolhost_contract::cursor::{after_number, number_cursor};

pub(crate) struct List(pub(crate) Records);

/// Lists the iterations, and says which one is current.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
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
    /// The number of the current one; 0 if there is none.
    current: i64,
    items: Vec<Saved<Iteration>>,
    /// Pass it as `cursor` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for List {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "iteration.list";
    const TITLE: &'static str = "List iterations";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "one",
            arguments: json!({}),
            files: &[],
            before: &[given::ITERATION],
            expect: Expect::Data(&[("/current", r#"1"#), ("/items/0/title", r#""Basics""#)]),
        }]
    }

    fn render(&self, output: &Self::Output) -> String {
        format!("current: {}\n\n{}", output.current, sheets("iterations", &output.items, output.next_cursor.as_ref()))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let query = Query { after: after_number(input.cursor)?, limit: input.limit, ..Query::default() };
        let page = desk.list(&query).await?;
        let current = desk.current_iteration().await?;
        Ok(Output { current, items: page.items, next_cursor: number_cursor(page.next) })
    }
}
