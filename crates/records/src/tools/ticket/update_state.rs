//! `ticket.update_state`

use crate::Records;
use crate::{Kind, RecordError, RecordId, Saved, Ticket, TicketState};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, edit, ticket_id};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct UpdateState(pub(crate) Records);

/// Moves a ticket to the next state (backlog, research, plan_approval, in_progress, verification, done) or back: research to backlog, plan_approval and in_progress to research, verification to in_progress. done is final.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as TKT-001; the one this session is about if left out.
    ticket_id: Option<String>,
    /// The new state.
    new_state: TicketState,
    /// Move it only if it is still in this state.
    expected_state: Option<TicketState>,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for UpdateState {
    type Input = Input;
    type Output = Saved<Ticket>;
    const NAME: &'static str = "ticket.update_state";
    const TITLE: &'static str = "Move a ticket";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "it is looked into",
                arguments: json!({"ticketId":"TKT-001","newState":"research","expectedState":"backlog"}),
                files: &[],
                before: &[given::TICKET],
                expect: Expect::Data(&[("/state", r#""research""#)]),
            },
            Example {
                says: "not at once",
                arguments: json!({"ticketId":"TKT-001","newState":"done"}),
                files: &[],
                before: &[given::TICKET],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let id = ticket_id(ctx, input.ticket_id)?;
        let edit = edit(input.expected_version, input.why);
        let record = RecordId::of(Kind::Ticket, &id)?;
        let saved = desk.update::<Ticket>(&id, &edit, |content| {
            if let Some(expected) = input.expected_state.filter(|expected| *expected != content.state) {
                let (from, expected) = (content.state.as_str().to_owned(), expected.as_str().to_owned());
                return Err(RecordError::NotInState { id: record, from, expected });
            }
            if content.state == input.new_state {
                let state = content.state.as_str();
                let allowed = crate::TICKET.next(state);
                return Err(RecordError::Transition {
                    id: record,
                    from: state.to_owned(),
                    to: state.to_owned(),
                    allowed,
                });
            }
            content.state = input.new_state;
            Ok(())
        });
        Ok(saved.await?)
    }
}
