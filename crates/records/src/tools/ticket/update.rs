//! `ticket.update`

use crate::Records;
use crate::{Criterion, Kind, Priority, RecordId, Saved, Ticket, TicketType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Preview, Tool, ToolError};

use crate::tools::desk::{changing, desk, edit, set, set_or_clear, ticket_id};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Update(pub(crate) Records);

/// Changes the fields you give of a ticket; the others stay as they are. `ticket.update_state` moves it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as TKT-001; the one this session is about if left out.
    ticket_id: Option<String>,
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
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for Update {
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

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let id = RecordId::of(Kind::Ticket, &ticket_id(ctx, input.ticket_id)?)?;
        changing(ctx, &desk(&self.0, ctx)?, id, Self::TITLE).await.map(Some)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let id = ticket_id(ctx, input.ticket_id)?;
        let edit = edit(input.expected_version, input.why);
        let saved = desk.update::<Ticket>(&id, &edit, |content| {
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
