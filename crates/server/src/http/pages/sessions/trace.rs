//! Where the time of a session went: its replies and calls as a waterfall, each call with the gate's share, the wait for a person or a
//! place, and the run.
//!
//! The shares are those of the audit, which is asked for the calls of this page alone. A call without rows there has the time that the
//! session itself has kept.

use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::Value;
use toolhost_contract::ToolError;
use toolhost_store::StepRow;

use super::steps::{kind_of, number, text};
use super::{AUDIT_ROWS_MAX, PART, address};
use crate::http::pages::route::Wanted;
use crate::http::pages::text::{duration, headline, name};
use crate::http::pages::visitor::{Membership, Visitor};
use crate::http::pages::{Place, page};
use crate::http::told;

/// Steps of one page.
const STEPS_MAX: i64 = 100;
/// A slow step takes at least so long, milliseconds.
const SLOW_MS: u64 = 1000;
/// The width of the waterfall, in its own units.
const WIDTH: u64 = 1000;
/// The narrowest bar that can be seen.
const BAR_MIN: u64 = 3;

#[derive(Template)]
#[template(path = "session_trace.html")]
struct TracePage<'a> {
    place: Place<'a>,
    address: String,
    title: String,
    bars: Vec<Bar>,
    /// Which steps are shown: `all`, `slow` or `failed`.
    only: &'static str,
    total: String,
    sums: Vec<(&'static str, String)>,
    before: i64,
    earlier: Option<i64>,
    is_newest: bool,
}

/// A reply or a call.
struct Bar {
    step: String,
    name: String,
    is_bad: bool,
    sentence: String,
    /// Pieces of the bar: class, place and width.
    pieces: Vec<(&'static str, u64, u64)>,
}

/// What is known of the time of a step.
struct Span<'r> {
    row: &'r StepRow,
    is_call: bool,
    begins_ms: i64,
    total_ms: u64,
    waited_ms: u64,
    ran_ms: u64,
}

impl Span<'_> {
    fn gate_ms(&self) -> u64 {
        self.total_ms.saturating_sub(self.waited_ms).saturating_sub(self.ran_ms)
    }

    fn is_bad(&self) -> bool {
        self.is_call && self.row.body.get("ok").and_then(Value::as_bool) == Some(false)
    }
}

/// What the audit knows of the end of a call.
struct Ended {
    at_ms: i64,
    total_ms: u64,
    waited_ms: u64,
    ran_ms: u64,
}

pub(super) async fn show(visitor: &Visitor<'_>, wanted: &Wanted) -> Result<Response<Body>, ToolError> {
    let membership = visitor.membership(wanted.part("project")).await?;
    let (project, id) = (&membership.project, wanted.part("session"));
    let row = project.sessions.get(project.id, id).await?;
    let before = wanted.asked("before").and_then(|before| before.parse().ok()).unwrap_or(row.steps);
    let before = before.clamp(0, row.steps);
    let first = (before - STEPS_MAX).max(0);
    let steps = project.steps(id, first - 1, before - first).await?;
    let ended = ended(&membership, &steps).await?;
    let spans: Vec<Span<'_>> = steps.iter().filter_map(|row| span(row, &ended)).collect();
    let only = match wanted.asked("only") {
        Some("slow") => "slow",
        Some("failed") => "failed",
        _ => "all",
    };
    let begins = spans.iter().map(|span| span.begins_ms).min().unwrap_or_default();
    let ends = spans.iter().map(|span| span.begins_ms.saturating_add_unsigned(span.total_ms)).max();
    let total_ms = u64::try_from(ends.unwrap_or(begins).saturating_sub(begins)).unwrap_or_default();
    let wanted_span = |span: &&Span<'_>| match only {
        "slow" => span.total_ms >= SLOW_MS,
        "failed" => span.is_bad(),
        _ => true,
    };
    let sum = |of: fn(&Span<'_>) -> u64| duration(spans.iter().map(of).sum());
    Ok(page(
        StatusCode::OK,
        &TracePage {
            place: Place { live: told::SESSIONS, ..membership.place(visitor, PART) },
            address: address(&membership, id),
            title: headline(&membership, &row.title),
            bars: spans.iter().filter(wanted_span).map(|span| bar(span, begins, total_ms)).collect(),
            only,
            total: duration(total_ms),
            sums: vec![
                ("Model", sum(|span| if span.is_call { 0 } else { span.total_ms })),
                ("Gate", sum(|span| if span.is_call { span.gate_ms() } else { 0 })),
                ("Waiting", sum(|span| span.waited_ms)),
                ("Running", sum(|span| span.ran_ms)),
            ],
            before,
            earlier: (first > 0).then_some(first),
            is_newest: before == row.steps,
        },
    ))
}

/// How the calls of these steps have ended, by their ids.
async fn ended(membership: &Membership, steps: &[StepRow]) -> Result<BTreeMap<String, Ended>, ToolError> {
    let calls = steps.iter().filter(|row| kind_of(&row.step).0 == "call");
    let ids: Vec<String> = calls.map(|row| text(&row.body, "callId").to_owned()).collect();
    let project = &membership.project;
    let rows = project.reader.audit_of_calls(project.id, &ids, AUDIT_ROWS_MAX).await?;
    let ended = rows.into_iter().filter(|row| row.event == "finished").map(|row| {
        let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
        let ended = Ended {
            at_ms: row.at_ms,
            total_ms: number(&body, "durationMs"),
            waited_ms: number(&body["outcome"], "waitedMs"),
            ran_ms: number(&body["outcome"], "ranMs"),
        };
        (row.call_id, ended)
    });
    Ok(ended.collect())
}

fn span<'r>(row: &'r StepRow, ended: &BTreeMap<String, Ended>) -> Option<Span<'r>> {
    let is_call = match kind_of(&row.step).0 {
        "turn" => false,
        "call" => true,
        _ => return None,
    };
    let known = ended.get(text(&row.body, "callId")).filter(|_| is_call);
    let (at_ms, total_ms, waited_ms, ran_ms) = match known {
        Some(known) => (known.at_ms, known.total_ms, known.waited_ms, known.ran_ms),
        None => (row.at_ms, number(&row.body, "ms"), 0, 0),
    };
    Some(Span { row, is_call, begins_ms: at_ms.saturating_sub_unsigned(total_ms), total_ms, waited_ms, ran_ms })
}

fn bar(span: &Span<'_>, begins_ms: i64, total_ms: u64) -> Bar {
    let place = |ms: u64| {
        let wide = u128::from(ms) * u128::from(WIDTH) / u128::from(total_ms.max(1));
        u64::try_from(wide).unwrap_or(WIDTH).min(WIDTH)
    };
    let after = u64::try_from(span.begins_ms.saturating_sub(begins_ms)).unwrap_or_default();
    let parts = match span.is_call {
        true => vec![("gate", span.gate_ms()), ("wait", span.waited_ms), ("run", span.ran_ms)],
        false => vec![("model", span.total_ms)],
    };
    let mut at = after;
    let mut pieces = Vec::new();
    for (class, took) in parts {
        let (from, to) = (place(at).min(WIDTH - BAR_MIN), place(at.saturating_add(took)));
        // A call that took no time is still one.
        if took > 0 || (pieces.is_empty() && class != "gate" && span.total_ms == 0) {
            pieces.push((class, from, to.saturating_sub(from).max(BAR_MIN)));
        }
        at = at.saturating_add(took);
    }
    let is_bad = span.is_bad();
    Bar {
        step: span.row.step.clone(),
        name: if span.is_call { name(text(&span.row.body, "tool")) } else { turn_name(&span.row.step) },
        is_bad,
        sentence: sentence(span, is_bad),
        pieces,
    }
}

fn turn_name(step: &str) -> String {
    format!("Model, turn {}", u64::from(kind_of(step).1) + 1)
}

/// `2.4 s: gate 3 ms, waiting 2.0 s, running 397 ms`
fn sentence(span: &Span<'_>, is_bad: bool) -> String {
    let mut sentence = duration(span.total_ms);
    if span.is_call {
        let parts = [("gate", span.gate_ms()), ("waiting", span.waited_ms), ("running", span.ran_ms)];
        let parts: Vec<String> =
            parts.iter().filter(|(_, ms)| *ms > 0).map(|(what, ms)| format!("{what} {}", duration(*ms))).collect();
        if !parts.is_empty() {
            sentence.push_str(&format!(": {}", parts.join(", ")));
        }
    }
    if is_bad {
        let code = text(&span.row.body, "code");
        sentence.push_str(if code.is_empty() { " · failed" } else { " · failed: " });
        sentence.push_str(&name(code));
    }
    sentence
}
