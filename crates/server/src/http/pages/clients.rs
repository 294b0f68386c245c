//! The clients of a project: which have called lately, and how to connect one.

use std::collections::BTreeMap;

use askama::Template;
use axum::http::StatusCode;
use toolhost_store::Filter;

use super::route::{Made, Route, Wanted};
use super::text::{When, count, name};
use super::visitor::{PLACE, Visitor};
use super::{Place, page};
use crate::http::told;

/// The page of this file.
pub(super) const ROUTES: &[Route] =
    &[Route { path: "/projects/{project}/access/clients", name: "clients", takes_forms: false, make: clients }];

/// Rows of the audit that are looked at, the last ones.
const ROWS_MAX: i64 = 1000;
/// Clients that are named.
const CLIENTS_MAX: usize = 50;

#[derive(Template)]
#[template(path = "clients.html")]
struct ClientsPage<'a> {
    place: Place<'a>,
    /// Where members and tokens are.
    access: String,
    clients: Vec<Client>,
    /// The address of this project for clients, as the browser names the server.
    server: String,
}

/// Somebody who has called, by the door they came through.
struct Client {
    name: String,
    door: String,
    /// Empty for what is done without one.
    profile: String,
    rows: String,
    last: When,
}

fn clients(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let filter = Filter { limit: ROWS_MAX, last: true, ..Filter::default() };
        let rows = membership.project.reader.audit(membership.project.id, &filter).await?;
        let mut found: BTreeMap<[String; 3], (i64, u64)> = BTreeMap::new();
        for row in &rows {
            let content = row.content();
            let text = |field: &str| content["caller"][field].as_str().unwrap_or_default().to_owned();
            let key = [text("persona"), text("door"), text("profile")];
            // What people do on these pages is no client's.
            if key[1].is_empty() || key[1] == PLACE {
                continue;
            }
            let seen = found.entry(key).or_default();
            *seen = (seen.0.max(row.at_ms), seen.1 + 1);
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(_, (last, _))| std::cmp::Reverse(*last));
        let clients = found.iter().take(CLIENTS_MAX).map(|([persona, door, profile], (last, rows))| Client {
            name: name(if persona.is_empty() { "without a name" } else { persona }),
            door: name(door),
            profile: if profile.is_empty() { String::new() } else { format!("profile {}", name(profile)) },
            rows: count(*rows),
            last: When::of(&visitor, *last),
        });
        let clients = clients.collect();
        let place = Place { live: told::CALLS, ..membership.place(&visitor, "access") };
        let server = format!("{}/mcp/{}", wanted.server, membership.key());
        Ok(page(StatusCode::OK, &ClientsPage { place, access: membership.path("access"), clients, server }))
    })
}
