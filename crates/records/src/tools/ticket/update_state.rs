//! `ticket.update_state`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::OfTicket;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Edit, Kind, ProjectRecords, RecordError, RecordId, Saved, Ticket, TicketState};

pub(crate) struct UpdateState;

/// Moves a ticket to the next state (backlog, research, plan_approval, in_progress, verification, done) or back: research to backlog, plan_approval and in_progress to research, verification to in_progress. done is final.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    of: OfTicket,
    /// The new state.
    new_state: TicketState,
    /// Move it only if it is still in this state.
    expected_state: Option<TicketState>,
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for UpdateState {
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

    async fn run(&self, ctx: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let id = input.of.id(ctx)?;
        let record = RecordId::of(Kind::Ticket, &id)?;
        let saved = desk.update::<Ticket>(&id, &input.edit, |content| {
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
