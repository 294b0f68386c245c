//! `ticket.list`

use crate::Records;
use crate::{Query, Saved, Ticket, TicketState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::desk;
use crate::tools::given;
use crate::tools::sheet::sheets;
use toolhost_contract::cursor::{after_number, number_cursor};

pub(crate) struct List(pub(crate) Records);

/// Lists tickets, oldest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Only those in this state.
    state: Option<TicketState>,
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
    items: Vec<Saved<Ticket>>,
    /// Pass it as `cursor` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for List {
    type Input = Input;
    type Output = Output;
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

    fn render(&self, output: &Self::Output) -> String {
        sheets("tickets", &output.items, output.next_cursor.as_ref())
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let state = input.state.map(|state| state.as_str().to_owned());
        let query = Query {
            iteration: Some(0),
            state,
            after: after_number(input.cursor)?,
            limit: input.limit,
            ..Query::default()
        };
        let page = desk.list(&query).await?;
        Ok(Output { items: page.items, next_cursor: number_cursor(page.next) })
    }
}
