//! `comment.list`

use crate::Records;
use crate::{Comment, Query, Saved, Ticket};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, ticket_id};
use crate::tools::given;
use crate::tools::sheet::sheets;
use toolhost_contract::cursor::{after_number, number_cursor};

pub(crate) struct List(pub(crate) Records);

/// Lists what was said about a ticket, oldest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as TKT-001; the one this session is about if left out.
    ticket_id: Option<String>,
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
    items: Vec<Saved<Comment>>,
    /// Pass it as `cursor` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for List {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "comment.list";
    const TITLE: &'static str = "List comments";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "all of it",
            arguments: json!({"ticketId":"TKT-001"}),
            files: &[],
            before: &[given::TICKET, ("comment.post", r#"{"ticketId":"TKT-001","content":"I begin"}"#)],
            expect: Expect::Data(&[("/items/0/content", r#""I begin""#)]),
        }]
    }

    fn render(&self, output: &Self::Output) -> String {
        sheets("comments", &output.items, output.next_cursor.as_ref())
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let id = ticket_id(ctx, input.ticket_id)?;
        let ticket = desk.get::<Ticket>(&id).await?;
        let query = Query {
            names: ticket.record_id(),
            after: after_number(input.cursor)?,
            limit: input.limit,
            ..Query::default()
        };
        let page = desk.list(&query).await?;
        Ok(Output { items: page.items, next_cursor: number_cursor(page.next) })
    }
}
