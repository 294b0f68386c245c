//! `ticket.list`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::OfPage;
use crate::tools::given;
use crate::tools::tool::{Listed, RecordTool};
use crate::{ProjectRecords, Query, Saved, Ticket, TicketState};

pub(crate) struct List;

/// Lists tickets, oldest first.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Only those in this state.
    state: Option<TicketState>,
    #[serde(flatten)]
    page: OfPage,
}

impl RecordTool for List {
    type Input = Input;
    type Output = Listed<Saved<Ticket>>;
    const NAME: &'static str = "ticket.list";
    const TITLE: &'static str = "List tickets";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "the backlog",
            arguments: json!({"state":"backlog"}),
            files: &[],
            before: &[given::TICKET],
            expect: Expect::Data(&[("/items/0/id", r#""TKT-001""#)]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let state = input.state.map(|state| state.as_str().to_owned());
        let query = Query { iteration: Some(0), state, ..input.page.query()? };
        let page = desk.list(&query).await?;
        Ok(Listed::new("tickets", page))
    }
}
