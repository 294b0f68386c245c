//! `ticket.update`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::OfTicket;
use crate::tools::desk::{set, set_or_clear};
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Criterion, Edit, Kind, Priority, ProjectRecords, RecordId, Saved, Ticket, TicketType};

pub(crate) struct Update;

/// Changes the fields you give of a ticket; the others stay as they are. `ticket.update_state` moves it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    of: OfTicket,
    /// What is asked for.
    #[schemars(length(min = 1, max = 500))]
    title: Option<String>,
    /// What for, and what to mind.
    description: Option<String>,
    /// What kind of work it is.
    #[serde(rename = "type")]
    ticket_type: Option<TicketType>,
    /// How much it matters.
    priority: Option<Priority>,
    /// All of them; those that stay the same stay ticked.
    acceptance_criteria: Option<Vec<String>>,
    /// A persona or a person; empty for nobody.
    assignee: Option<String>,
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for Update {
    type Input = Input;
    type Output = Saved<Ticket>;
    const NAME: &'static str = "ticket.update";
    const TITLE: &'static str = "Change a ticket";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "who does it",
            arguments: json!({"ticketId":"TKT-001","assignee":"Ada"}),
            files: &[],
            before: &[given::TICKET],
            expect: Expect::Data(&[("/assignee", r#""Ada""#)]),
        }]
    }

    fn changes(&self, ctx: &Ctx<'_>, input: &Input) -> Result<Option<RecordId>, ToolError> {
        Ok(Some(RecordId::of(Kind::Ticket, &input.of.id(ctx)?)?))
    }

    async fn run(&self, ctx: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let id = input.of.id(ctx)?;
        let saved = desk.update::<Ticket>(&id, &input.edit, |content| {
            set(&mut content.title, input.title);
            set(&mut content.description, input.description);
            set(&mut content.ticket_type, input.ticket_type);
            set(&mut content.priority, input.priority);
            set_or_clear(&mut content.assignee, input.assignee);
            if let Some(texts) = input.acceptance_criteria {
                let ticked =
                    |text: &String| content.acceptance_criteria.iter().any(|one| one.done && one.text == *text);
                let criteria = texts.into_iter().map(|text| Criterion { done: ticked(&text), text }).collect();
                content.acceptance_criteria = criteria;
            }
            Ok(())
        });
        Ok(saved.await?)
    }
}
