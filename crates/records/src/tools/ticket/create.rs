//! `ticket.create`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::tool::RecordTool;
use crate::{Criterion, Priority, ProjectRecords, Saved, Ticket, TicketState, TicketType};

pub(crate) struct Create;

/// Keeps a new ticket: work that somebody asked for. It begins in the backlog.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// What is asked for.
    #[schemars(length(min = 1, max = 500))]
    title: String,
    /// What for, and what to mind.
    #[serde(default)]
    description: String,
    /// What kind of work it is.
    #[serde(rename = "type", default = "type_default")]
    ticket_type: TicketType,
    /// How much it matters.
    #[serde(default = "priority_default")]
    priority: Priority,
    /// What must hold before it is done; each can be ticked.
    #[serde(default)]
    acceptance_criteria: Vec<String>,
    /// A persona or a person.
    assignee: Option<String>,
}

impl RecordTool for Create {
    type Input = Input;
    type Output = Saved<Ticket>;
    const NAME: &'static str = "ticket.create";
    const TITLE: &'static str = "Create a ticket";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "with criteria",
            arguments: json!({"title":"Dark mode","acceptanceCriteria":["pages are dark"]}),
            files: &[],
            before: &[],
            expect: Expect::Data(&[
                ("/id", r#""TKT-001""#),
                ("/state", r#""backlog""#),
                ("/acceptanceCriteria/0/done", r#"false"#),
            ]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let acceptance_criteria =
            input.acceptance_criteria.into_iter().map(|text| Criterion { text, done: false }).collect();
        let content = Ticket {
            title: input.title,
            description: input.description,
            ticket_type: input.ticket_type,
            state: TicketState::Backlog,
            priority: input.priority,
            acceptance_criteria,
            assignee: input.assignee,
        };
        Ok(desk.create(content, 0, None).await?)
    }
}

fn type_default() -> TicketType {
    TicketType::Feature
}

fn priority_default() -> Priority {
    Priority::Medium
}
