//! Arguments that several tools for records take: each a part of their input, flattened into it.

use schemars::JsonSchema;
use serde::Deserialize;
use toolhost_contract::cursor::after_number;
use toolhost_contract::{Ctx, ErrorKind, ToolError};

use crate::{Kind, ProjectRecords, Query, RecordId};

/// Records of one page unless more or fewer are asked for.
pub(crate) const LIMIT_DEFAULT: i64 = 100;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct InIteration {
    /// Iteration. Default: the current one; 0: records in none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OfPage {
    /// Most records of one answer.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default = "limit_default")]
    pub(crate) limit: i64,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InOrder {
    /// Newest first.
    #[serde(default)]
    pub(crate) newest_first: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfTicket {
    /// Such as TKT-001. Default: the ticket of this session.
    ticket_id: Option<String>,
}

impl InIteration {
    /// The iteration that is meant: the one asked for, which must be there, or the current one.
    pub(crate) async fn number(&self, desk: &ProjectRecords) -> Result<i64, ToolError> {
        match self.iteration {
            None => Ok(desk.current_iteration().await?),
            Some(0) => Ok(0),
            Some(number) => {
                desk.get_any(RecordId { kind: Kind::Iteration, number }).await?;
                Ok(number)
            }
        }
    }
}

impl OfPage {
    /// All records, as far as they fit the page.
    pub(crate) fn query(self) -> Result<Query, ToolError> {
        Ok(Query { after: after_number(self.cursor)?, limit: self.limit, ..Query::default() })
    }
}

impl OfTicket {
    /// The ticket that is meant: the one named, or the one the work is about.
    pub(crate) fn id(&self, ctx: &Ctx<'_>) -> Result<String, ToolError> {
        self.ticket_id.clone().or_else(|| ctx.call.scope.ticket_id.clone()).ok_or_else(|| {
            ToolError::new(ErrorKind::Validation, "which ticket? this session is about none")
                .hint("pass `ticketId`; `ticket.list` shows the tickets")
        })
    }
}

fn limit_default() -> i64 {
    LIMIT_DEFAULT
}
