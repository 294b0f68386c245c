//! `ticket.check_criterion`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::OfTicket;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Edit, ProjectRecords, RecordError, Saved, Ticket};

pub(crate) struct CheckCriterion;

/// Ticks an acceptance criterion of a ticket, or takes the tick away.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    of: OfTicket,
    /// Which one, counted from 1.
    #[schemars(range(min = 1))]
    number: usize,
    /// Whether it holds.
    #[serde(default = "yes")]
    done: bool,
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for CheckCriterion {
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

    async fn run(&self, ctx: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let id = input.of.id(ctx)?;
        let saved = desk.update::<Ticket>(&id, &input.edit, |content| {
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
