//! `ticket.list`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::text::check_text;
use crate::tools::arguments::{InOrder, OfPage};
use crate::tools::given;
use crate::tools::tool::{Listed, RecordTool};
use crate::{Priority, ProjectRecords, Query, Saved, Ticket, TicketState, TicketType};

pub(crate) struct List;

/// Lists tickets, oldest first.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Only those in this state.
    state: Option<TicketState>,
    /// Only those of this type.
    #[serde(rename = "type")]
    ticket_type: Option<TicketType>,
    /// Only those of this priority.
    priority: Option<Priority>,
    /// Only those assigned to this persona or person.
    #[schemars(length(min = 1, max = 200))]
    assignee: Option<String>,
    #[serde(flatten)]
    order: InOrder,
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
        vec![
            Example {
                says: "the backlog",
                arguments: json!({"state":"backlog"}),
                files: &[],
                before: &[given::TICKET],
                expect: Expect::Data(&[("/items/0/id", r#""TKT-001""#)]),
            },
            Example {
                says: "the newest of high priority",
                arguments: json!({"priority":"high","newestFirst":true}),
                files: &[],
                before: &[
                    ("ticket.create", r#"{"title":"a","priority":"high"}"#),
                    ("ticket.create", r#"{"title":"b","priority":"high"}"#),
                    ("ticket.create", r#"{"title":"c"}"#),
                ],
                expect: Expect::Data(&[("/items/0/title", r#""b""#), ("/items/1/title", r#""a""#)]),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let state = input.state.map(|state| state.as_str().to_owned());
        input.assignee.as_deref().map(|name| check_text(name, "assignee")).transpose()?;
        let query = Query { iteration: Some(0), state, newest_first: input.order.newest_first, ..input.page.query()? };
        let fits = |one: &Ticket| {
            input.ticket_type.is_none_or(|wanted| one.ticket_type == wanted)
                && input.priority.is_none_or(|wanted| one.priority == wanted)
                && input.assignee.as_ref().is_none_or(|wanted| one.assignee.as_ref() == Some(wanted))
        };
        Ok(Listed::new("tickets", desk.list_where(query, fits).await?))
    }
}
