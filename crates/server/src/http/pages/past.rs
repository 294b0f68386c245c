//! What the rule of an ask would have allowed in the last week, from the audit.

use std::collections::HashSet;

use serde_json::Value;
use toolhost_contract::{Clock, ToolError, visible_line};
use toolhost_host::Shown;
use toolhost_store::{Ask, Filter};

use super::audit::ask_in;
use super::visitor::Membership;

/// How far back is looked.
const WEEK_MS: i64 = 7 * 24 * 3600 * 1000;
/// How many rows of the audit are looked at, the last ones: one project may have millions.
const ROWS_MAX: i64 = 20_000;
/// How many calls of the tool are looked at, the last ones.
const CALLS_MAX: usize = 500;
/// How many of those that match are shown.
const SHOWN_MAX: usize = 5;
/// How much of the arguments of a call is shown, characters.
const ARGUMENTS_CHARS_MAX: usize = 200;

/// What a rule would have allowed.
pub(super) struct Past {
    pub(super) calls: usize,
    pub(super) allowed: usize,
    /// The last ones of these, the newest first: their arguments.
    pub(super) examples: Vec<String>,
}

impl Past {
    /// # Errors
    /// If the audit cannot be read.
    pub(super) async fn of(
        membership: &Membership,
        (ask, shown): (&Ask, &Shown),
        clock: &dyn Clock,
    ) -> Result<Self, ToolError> {
        let project = &membership.project;
        let end = project.reader.audit_end(project.id).await?;
        let filter = Filter {
            after_seq: end.saturating_sub(ROWS_MAX).max(0),
            tool: Some(shown.tool.clone()),
            since_ms: Some(clock.unix_ms().saturating_sub(WEEK_MS)),
            // A call has two rows, and its arguments stand in one.
            limit: i64::try_from(2 * CALLS_MAX).unwrap_or(i64::MAX),
            last: true,
            ..Filter::default()
        };
        let mut seen = HashSet::new();
        let mut calls = Vec::new();
        for row in project.reader.audit(project.id, &filter).await?.into_iter().rev() {
            let mut body: Value = serde_json::from_str(&row.body).unwrap_or_default();
            let is_of_profile = body["caller"]["profile"] == shown.profile.as_str();
            // The call that is asked about is not of the past.
            let is_other = ask.call["id"] != row.call_id.as_str() && ask_in(&body) != Some(ask.number);
            let is_call =
                is_other && matches!(row.event.as_str(), "started" | "finished") && body["arguments"].is_object();
            if is_of_profile && is_call && calls.len() < CALLS_MAX && seen.insert(row.call_id) {
                calls.push(body["arguments"].take());
            }
        }
        let allowed = shown.rule_allows(calls.clone()).await?;
        let matched: Vec<&Value> = calls.iter().zip(&allowed).filter_map(|(call, is)| is.then_some(call)).collect();
        let example =
            |call: &&Value| visible_line(&call.to_string().chars().take(ARGUMENTS_CHARS_MAX).collect::<String>());
        let examples = matched.iter().take(SHOWN_MAX).map(example).collect();
        Ok(Self { calls: calls.len(), allowed: matched.len(), examples })
    }
}
