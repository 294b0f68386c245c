//! `design.get`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::cursor::number_cursor;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::{InIteration, OfPage};
use crate::tools::given;
use crate::tools::sheet::{sheet, sheets};
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Component, Design, ProjectRecords, Query, Saved};

pub(crate) struct Get;

/// Reads the design: its style, data, technology and deployment, and its components.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    within: InIteration,
    #[serde(flatten)]
    page: OfPage,
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

impl RecordAnswer for Output {
    fn text(&self) -> String {
        let design = self.design.as_ref().map(|design| format!("{}\n\n", sheet(design))).unwrap_or_default();
        format!("{design}{}", sheets("components", &self.components, self.next_cursor.as_ref()))
    }
}

impl RecordTool for Get {
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

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let query = Query { iteration: Some(iteration), ..input.page.query()? };
        let design = desk.list::<Design>(&Query { after: None, ..query.clone() }).await?.items.pop();
        let page = desk.list::<Component>(&query).await?;
        Ok(Output { design, components: page.items, next_cursor: number_cursor(page.next) })
    }
}
