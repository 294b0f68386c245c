//! A session as it went: its conversation up to one step, and ways to the steps around it. What came later is not shown.

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use toolhost_contract::ToolError;

use super::conversation::{Item, items, tell_asks};
use super::{PART, address};
use crate::http::pages::route::Wanted;
use crate::http::pages::text::{duration, headline};
use crate::http::pages::visitor::Visitor;
use crate::http::pages::{Place, page};

/// Steps that are read before and behind the one that is shown: some of them only the agent reads.
const AROUND: i64 = 40;
/// Items of a page: the step, and what led to it.
const ITEMS_MAX: usize = 4;

#[derive(Template)]
#[template(path = "session_replay.html")]
struct ReplayPage<'a> {
    place: Place<'a>,
    address: String,
    title: String,
    number: i64,
    of: i64,
    since: String,
    items: Vec<Item>,
    previous: Option<i64>,
    next: Option<i64>,
    last: i64,
}

pub(super) async fn show(visitor: &Visitor<'_>, wanted: &Wanted) -> Result<Response<Body>, ToolError> {
    let membership = visitor.membership(wanted.part("project")).await?;
    let (project, id) = (&membership.project, wanted.part("session"));
    let row = project.sessions.get(project.id, id).await?;
    let registry = project.gate.registry();
    // What stands at the end may be for the agent alone.
    let end = project.steps(id, row.steps - AROUND - 1, AROUND).await?;
    let last = items(visitor, registry, &end).last().map_or(0, |item| item.seq);
    let at = wanted.asked("step").and_then(|step| step.parse().ok()).unwrap_or(0).clamp(0, last);
    let after = (at - AROUND).max(0) - 1;
    let rows = project.steps(id, after, 2 * AROUND).await?;
    let (so_far, later) = rows.split_at(rows.partition_point(|row| row.seq <= at));
    let mut shown = items(visitor, registry, so_far);
    let next = items(visitor, registry, later).first().map(|item| item.seq);
    let previous = shown.iter().rev().nth(1).map(|item| item.seq);
    shown.drain(..shown.len().saturating_sub(ITEMS_MAX));
    tell_asks(&membership, so_far, &mut shown).await?;
    shown.iter_mut().for_each(|item| item.calls_said = "It calls:");
    if let Some(current) = shown.last_mut() {
        current.is_current = true;
    }
    let since_ms = so_far.last().map_or(0, |step| step.at_ms.saturating_sub(row.created_at_ms));
    Ok(page(
        StatusCode::OK,
        &ReplayPage {
            place: membership.place(visitor, PART),
            address: address(&membership, id),
            title: headline(&membership, &row.title),
            number: shown.last().map_or(at, |item| item.seq) + 1,
            of: last + 1,
            since: duration(u64::try_from(since_ms).unwrap_or_default()),
            items: shown,
            previous,
            next,
            last,
        },
    ))
}
