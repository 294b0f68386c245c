//! `design.get`

use crate::Records;
use crate::{Component, Design, Query, Saved};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::given;
use crate::tools::sheet::{sheet, sheets};
use toolhost_contract::cursor::{after_number, number_cursor};

pub(crate) struct Get(pub(crate) Records);

/// Reads the design: its style, data, technology and deployment, and its components.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
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
    /// What was said besides the components, if anything was.
    #[serde(skip_serializing_if = "Option::is_none")]
    design: Option<Saved<Design>>,
    components: Vec<Saved<Component>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for Get {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "design.get";
    const TITLE: &'static str = "Read the design";
    const FACTS: Facts = Facts::READS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("get_design_document"), Alias::new("get_design")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "with its components",
            arguments: json!({}),
            files: &[],
            before: &[given::COMPONENT, ("design.update", r#"{"architectureStyle":"one page"}"#)],
            expect: Expect::Data(&[("/components/0/name", r#""web""#), ("/design/architectureStyle", r#""one page""#)]),
        }]
    }

    fn render(&self, output: &Self::Output) -> String {
        let design = output.design.as_ref().map(|design| format!("{}\n\n", sheet(design))).unwrap_or_default();
        format!("{design}{}", sheets("components", &output.components, output.next_cursor.as_ref()))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
        let of_iteration = Query { iteration: Some(iteration), limit: input.limit, ..Query::default() };
        let design = desk.list::<Design>(&of_iteration).await?.items.pop();
        let page = desk.list::<Component>(&Query { after: after_number(input.cursor)?, ..of_iteration }).await?;
        Ok(Output { design, components: page.items, next_cursor: number_cursor(page.next) })
    }
}
