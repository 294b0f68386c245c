//! `ticket.check_criterion`

use crate::Records;
use crate::{RecordError, Saved, Ticket};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, edit, ticket_id};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct CheckCriterion(pub(crate) Records);

/// Ticks an acceptance criterion of a ticket, or takes the tick away.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as TKT-001; the one this session is about if left out.
    ticket_id: Option<String>,
    /// Which one, counted from 1.
    #[schemars(range(min = 1))]
    number: usize,
    /// Whether it holds.
    #[serde(default = "yes")]
    done: bool,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for CheckCriterion {
    type Input = Input;
    type Output = Saved<Ticket>;
    const NAME: &'static str = "ticket.check_criterion";
    const TITLE: &'static str = "Tick a criterion";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "the second",
                arguments: json!({"ticketId":"TKT-001","number":2}),
                files: &[],
                before: &[given::TICKET],
                expect: Expect::Data(&[
                    ("/acceptanceCriteria/1/done", r#"true"#),
                    ("/acceptanceCriteria/0/done", r#"false"#),
                ]),
            },
            Example {
                says: "one that is not there",
                arguments: json!({"ticketId":"TKT-001","number":3}),
                files: &[],
                before: &[given::TICKET],
                expect: Expect::Fails(ErrorKind::Validation),
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
        let saved = desk.update::<Ticket>(&id, &edit, |content| {
            let count = content.acceptance_criteria.len();
            match content.acceptance_criteria.get_mut(input.number.wrapping_sub(1)) {
                Some(criterion) => criterion.done = input.done,
                None => {
                    let problem = format!("there is no criterion {}; the ticket has {count}", input.number);
                    return Err(RecordError::Field { field: "number".to_owned(), problem });
                }
            }
            Ok(())
        });
        Ok(saved.await?)
    }
}

fn yes() -> bool {
    true
}
