//! The board: tickets by their states, and the moves that their state machine allows.

use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_records::TICKET;

use super::calls::{Called, can_edit, listed, text};
use super::failure::sentence;
use super::forms::{Field, Shape, choice, filled};
use super::route::{Made, Route, Wanted};
use super::text::{encoded, name, words};
use super::visitor::{Membership, Visitor};
use super::{Place, page, see};
use crate::http::envelope;

/// The path of this part, below a project.
pub(super) const PART: &str = "board";
/// Tickets of one state on the whole board, and where one state is shown alone.
const CARDS_MAX: usize = 20;
const CARDS_ALONE_MAX: usize = 50;
pub(super) const TYPES: &[&str] = &["feature", "bug", "chore"];
pub(super) const PRIORITIES: &[&str] = &["high", "medium", "low"];

/// The pages of this part.
pub(super) const ROUTES: &[Route] =
    &[Route { path: "/projects/{project}/board", name: "board", takes_forms: true, make: the_board }];

#[derive(Template)]
#[template(path = "board.html")]
struct BoardPage<'a> {
    place: Place<'a>,
    membership: &'a Membership,
    columns: Vec<Column>,
    has_cards: bool,
    fields: Vec<Field>,
    /// The filter as a query, which moves come back to.
    query: String,
    can_edit: bool,
    error: Option<String>,
}

/// The tickets of a state.
struct Column {
    state: &'static str,
    title: String,
    /// States that may follow: the word, and how it is called.
    moves: Vec<(&'static str, String)>,
    cards: Vec<Card>,
    more: Option<String>,
}

/// A ticket on the board.
struct Card {
    id: String,
    address: String,
    title: String,
    facts: String,
}

fn the_board(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let Some(form) = &wanted.form else {
            return shown(&visitor, &membership, &wanted, StatusCode::OK, None).await;
        };
        match moved(&visitor, &membership, form).await {
            Ok(Called::Done(_)) => Ok(see(&membership.path(&format!("{PART}{}", query(&wanted))))),
            Ok(Called::Waits(address)) => Ok(see(&address)),
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => {
                let status = envelope::status(&error);
                shown(&visitor, &membership, &wanted, status, Some(sentence(&error))).await
            }
        }
    })
}

async fn moved(
    visitor: &Visitor<'_>,
    membership: &Membership,
    form: &BTreeMap<String, String>,
) -> Result<Called, ToolError> {
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    // The state that the person saw: a ticket that somebody else has moved stays where it is.
    let arguments = json!({ "ticketId": field("id"), "newState": field("to"), "expectedState": field("from") });
    visitor.call(membership, "ticket.update_state", arguments).await
}

fn filters(wanted: &Wanted) -> Vec<Field> {
    let fields = vec![
        Field::new("type", "Type", choice(Some("all"), TYPES)),
        Field::new("priority", "Priority", choice(Some("all"), PRIORITIES)),
        Field::new("assignee", "Assignee", Shape::Line),
    ];
    filled(fields, &wanted.query)
}

/// The filter that is set, as a query with its question mark; empty for none.
fn query(wanted: &Wanted) -> String {
    let set = ["type", "priority", "assignee", "state"].into_iter().filter_map(|name| {
        let value = wanted.asked(name).filter(|value| !value.is_empty())?;
        Some(format!("{name}={}", encoded(value)))
    });
    let set: Vec<String> = set.collect();
    if set.is_empty() { String::new() } else { format!("?{}", set.join("&")) }
}

async fn shown(
    visitor: &Visitor<'_>,
    membership: &Membership,
    wanted: &Wanted,
    status: StatusCode,
    error: Option<String>,
) -> Result<Response<Body>, ToolError> {
    let alone = wanted.asked("state").filter(|wanted| TICKET.states.iter().any(|(state, _)| state == wanted));
    let mut columns = Vec::new();
    for (state, next) in TICKET.states.iter().filter(|(state, _)| alone.is_none_or(|alone| alone == *state)) {
        let limit = if alone.is_some() { CARDS_ALONE_MAX } else { CARDS_MAX };
        let mut arguments = json!({ "state": state, "limit": limit, "newestFirst": true });
        for (field, words) in [("type", TYPES), ("priority", PRIORITIES)] {
            if let Some(word) = wanted.asked(field).filter(|word| words.contains(word)) {
                arguments[field] = word.into();
            }
        }
        if let Some(assignee) = wanted.asked("assignee").filter(|assignee| !assignee.is_empty()) {
            arguments["assignee"] = assignee.into();
        }
        if let Some(cursor) = wanted.asked("cursor").filter(|_| alone.is_some()) {
            arguments["cursor"] = cursor.into();
        }
        let data = visitor.read(membership, "ticket.list", arguments).await?;
        let (items, cursor) = listed(&data, "items");
        let more = cursor.map(|cursor| {
            // On the whole board the column begins anew, alone.
            let query = query(wanted);
            let join = if query.is_empty() { "?" } else { "&" };
            let alone = if alone.is_some() { format!("cursor={}", encoded(cursor)) } else { format!("state={state}") };
            format!("{query}{join}{alone}")
        });
        columns.push(Column {
            state,
            title: words(state),
            moves: next.iter().map(|next| (*next, words(next))).collect(),
            cards: items.iter().map(|ticket| card(membership, ticket)).collect(),
            more,
        });
    }
    Ok(page(
        status,
        &BoardPage {
            place: Place { live: "ticket", ..membership.place(visitor, PART) },
            membership,
            has_cards: columns.iter().any(|column| !column.cards.is_empty()),
            columns,
            fields: filters(wanted),
            query: query(wanted),
            can_edit: can_edit(membership),
            error,
        },
    ))
}

fn card(membership: &Membership, ticket: &Value) -> Card {
    let id = text(ticket, "id");
    let facts = ["type", "priority", "assignee"].map(|field| name(text(ticket, field)));
    let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    Card {
        id: id.to_owned(),
        address: membership.path(&format!("records/{}", encoded(id))),
        title: name(text(ticket, "title")),
        facts: facts.join(" · "),
    }
}
