//! `iteration.list`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::cursor::number_cursor;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::OfPage;
use crate::tools::given;
use crate::tools::sheet::sheets;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Iteration, ProjectRecords, Saved};

pub(crate) struct List;

/// Lists the iterations, and says which one is current.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    page: OfPage,
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

impl RecordAnswer for Output {
    fn text(&self) -> String {
        format!("current: {}\n\n{}", self.current, sheets("iterations", &self.items, self.next_cursor.as_ref()))
    }
}

impl RecordTool for List {
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

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let query = input.page.query()?;
        let page = desk.list(&query).await?;
        let current = desk.current_iteration().await?;
        Ok(Output { current, items: page.items, next_cursor: number_cursor(page.next) })
    }
}
