//! `comment.list`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::{InOrder, OfPage, OfTicket};
use crate::tools::given;
use crate::tools::tool::{Listed, RecordTool};
use crate::{Comment, ProjectRecords, Query, Saved, Ticket};

pub(crate) struct List;

/// Lists what was said about a ticket, oldest first.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    of: OfTicket,
    #[serde(flatten)]
    order: InOrder,
    #[serde(flatten)]
    page: OfPage,
}

impl RecordTool for List {
    type Input = Input;
    type Output = Listed<Saved<Comment>>;
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

    async fn run(&self, ctx: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let id = input.of.id(ctx)?;
        let ticket = desk.get::<Ticket>(&id).await?;
        let query = Query { names: ticket.record_id(), newest_first: input.order.newest_first, ..input.page.query()? };
        let page = desk.list(&query).await?;
        Ok(Listed::new("comments", page))
    }
}
