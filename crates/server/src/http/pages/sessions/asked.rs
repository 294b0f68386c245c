//! Which calls of a session a person was asked about, and what became of each.

use std::collections::BTreeMap;

use serde_json::Value;
use toolhost_contract::ToolError;
use toolhost_host::{ask_id, ask_number};
use toolhost_store::AskSummary;

use super::AUDIT_ROWS_MAX;
use crate::http::pages::asks::ended::in_words;
use crate::http::pages::visitor::Membership;

/// An ask that a call was held by.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) address: String,
    pub(super) id: String,
    /// `allow, by ann`; empty while nobody has answered.
    pub(super) ended: String,
}

impl Asked {
    fn of(membership: &Membership, ask: &AskSummary) -> Self {
        let id = ask_id(ask.number);
        Self { address: membership.address(&id), ended: in_words(ask), id }
    }
}

/// The asks that held these calls, by the ids of the calls. The audit knows: a call that asked and one that used the answer may be two.
pub(super) async fn asks_of(membership: &Membership, calls: &[String]) -> Result<BTreeMap<String, Asked>, ToolError> {
    let project = &membership.project;
    let mut numbers: BTreeMap<String, i64> = BTreeMap::new();
    for row in project.reader.audit_of_calls(project.id, calls, AUDIT_ROWS_MAX).await? {
        let ask = row.content().pointer("/decision/ask").and_then(Value::as_str).and_then(ask_number);
        numbers.extend(ask.map(|number| (row.call_id.clone(), number)));
    }
    let mut found = BTreeMap::new();
    for (call, number) in numbers {
        found.extend(ask_of(membership, number).await?.map(|ask| (call, ask)));
    }
    Ok(found)
}

pub(super) async fn ask_of(membership: &Membership, number: i64) -> Result<Option<Asked>, ToolError> {
    let project = &membership.project;
    let ask = project.gate.queue().asks().summary(project.id, number).await?;
    Ok(ask.map(|ask| Asked::of(membership, &ask)))
}
