//! The search over pages, projects and open asks: what the palette shows, too.

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use toolhost_contract::{ToolError, visible_line};
use toolhost_host::ask_id;

use super::route::{Made, Route, Wanted};
use super::visitor::Visitor;
use super::{Place, SECTIONS, page};

/// The pages of this part.
pub(super) const ROUTES: &[Route] =
    &[Route { path: "/search", name: "search", takes_forms: false, make: what_is_found }];

/// What is shown at once.
const FOUND_MAX: usize = 30;
/// Asks of one project that are looked at.
const ASKS_MAX: i64 = 200;
/// The longest search, characters; what follows is left out.
const QUERY_CHARS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage<'a> {
    place: Place<'a>,
    query: String,
    found: Vec<Row>,
    /// How many were found beside these.
    more: usize,
}

/// Something that was found.
struct Row {
    address: String,
    title: String,
    about: String,
}

fn what_is_found(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let query: String = wanted.asked("q").unwrap_or_default().chars().take(QUERY_CHARS_MAX).collect();
        search(&visitor, &query).await
    })
}

async fn search(visitor: &Visitor<'_>, query: &str) -> Result<Response<Body>, ToolError> {
    let row = |address: &str, title: &str, about: &str| Row {
        address: address.to_owned(),
        title: title.to_owned(),
        about: about.to_owned(),
    };
    let mut rows = vec![row("/", "Inbox", "what agents ask"), row("/projects", "Projects", "all that you are in")];
    for membership in visitor.memberships().await?.0 {
        let name = visible_line(&membership.project.name);
        let sections = SECTIONS.iter();
        rows.extend(sections.map(|section| row(&membership.path(section.path), section.title, &name)));
        let asks = membership.project.gate.queue().asks();
        for ask in asks.open_after(membership.project.id, 0, ASKS_MAX).await?.asks {
            let id = ask_id(ask.number);
            rows.push(Row {
                address: membership.address(&id),
                title: visible_line(&ask.summary.replace(['\n', '\t'], " ")),
                about: format!("{id} · {} · {} · {name}", visible_line(&ask.persona), visible_line(&ask.tool)),
            });
        }
    }
    let query = query.trim();
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    rows.retain(|row| {
        let text = format!("{} {}", row.title, row.about).to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    });
    let more = rows.len().saturating_sub(FOUND_MAX);
    rows.truncate(FOUND_MAX);
    Ok(page(StatusCode::OK, &SearchPage { place: visitor.place(), query: visible_line(query), found: rows, more }))
}
