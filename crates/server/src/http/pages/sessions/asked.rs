//! Which calls of a session a person was asked about, and what became of each; and whether one under way waits for an answer now.

use std::collections::BTreeMap;

use serde_json::Value;
use toolhost_contract::ToolError;
use toolhost_host::ask_id;
use toolhost_store::{AskKind, AskSummary, SessionRow, StepRow};

use super::AUDIT_ROWS_MAX;
use super::steps::{ask_of_wait, calls_of, kind_of};
use crate::http::pages::audit::ask_in;
use crate::http::pages::ended::in_words;
use crate::http::pages::visitor::Membership;

/// An ask that a call was held by.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) address: String,
    pub(super) id: String,
    /// `ann allowed it`; empty while nobody has answered.
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
        numbers.extend(ask_in(&row.content()).map(|number| (row.call_id.clone(), number)));
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

/// Steps that are read of the end of a session: its last turn is among them unless more of its calls have ended.
const LAST_STEPS: i64 = 64;

/// Whether a call under way waits for one of these open asks. An older ask may be open while the agent does something else.
///
/// # Errors
/// If the database does not answer.
pub(super) async fn waits_for_one(
    membership: &Membership,
    row: &SessionRow,
    open: &[AskSummary],
) -> Result<bool, ToolError> {
    if !row.running || open.is_empty() {
        return Ok(false);
    }
    let steps = membership.project.steps(&row.id, row.steps - LAST_STEPS - 1, LAST_STEPS).await?;
    let under_way = under_way(&steps);
    let is_open = |number: i64| open.iter().any(|ask| ask.number == number);
    let asks_by_itself =
        |tool: &str| open.iter().any(|ask| ask.kind != AskKind::Approval && is_same_tool(&ask.tool, tool));
    if under_way.iter().any(|call| call.waits_for.is_some_and(is_open) || asks_by_itself(&call.tool)) {
        return Ok(true);
    }
    let ids: Vec<String> = under_way.iter().map(|call| call.id.clone()).collect();
    if asks_of(membership, &ids).await?.values().any(|ask| ask.ended.is_empty()) {
        return Ok(true);
    }
    // The audit has no row of a call that is held: it begins when somebody has agreed.
    let project = &membership.project;
    let rows = project.reader.audit_of_calls(project.id, &ids, AUDIT_ROWS_MAX).await?;
    let is_held = |call: &UnderWay| {
        let of_tool = |ask: &AskSummary| is_same_tool(&ask.tool, &call.tool);
        rows.iter().all(|row| row.call_id != call.id) && open.iter().any(of_tool)
    };
    Ok(under_way.iter().any(is_held))
}

/// Whether these name one tool: models write `_` where a name has a dot.
fn is_same_tool(one: &str, other: &str) -> bool {
    one.replace('.', "_") == other.replace('.', "_")
}

/// A call of the last turn that has not ended.
struct UnderWay {
    id: String,
    tool: String,
    /// The ask that it was told to wait for.
    waits_for: Option<i64>,
}

fn under_way(steps: &[StepRow]) -> Vec<UnderWay> {
    let Some(at) = steps.iter().rposition(|row| kind_of(&row.step).0 == "turn") else { return Vec::new() };
    let (turn, after) = (&steps[at].body, &steps[at + 1..]);
    let ids = turn.get("callIds").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let calls = calls_of(turn).enumerate().filter(|(_, (step, ..))| after.iter().all(|row| row.step != *step));
    let under_way = calls.map(|(number, (_, tool, arguments))| UnderWay {
        id: ids.get(number).and_then(Value::as_str).unwrap_or_default().to_owned(),
        tool: tool.to_owned(),
        waits_for: ask_of_wait(arguments),
    });
    under_way.collect()
}
