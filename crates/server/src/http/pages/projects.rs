//! The projects of a person, and what is going on in each.

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use toolhost_contract::{ToolError, visible_line};

use super::asks::ASKS;
use super::route::{Made, Route, Wanted};
use super::visitor::{Visitor, heard_of_all};
use super::{Place, page, see};

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[
    Route { path: "/projects", name: "projects", takes_forms: false, make: all_projects },
    Route { path: "/projects/{project}", name: "project", takes_forms: false, make: home },
];

#[derive(Template)]
#[template(path = "projects.html")]
struct ProjectsPage<'a> {
    place: Place<'a>,
    projects: Vec<Row>,
    /// Whether a project of the server could not be opened.
    is_one_closed: bool,
}

/// A project in the list.
struct Row {
    name: String,
    key: String,
    /// What the person is in it.
    role: &'static str,
    /// Asks that nobody has answered yet.
    open: usize,
}

fn all_projects(visitor: Visitor<'_>, _: Wanted) -> Made<'_> {
    Box::pin(async move { list(&visitor).await })
}

/// A project begins with its sessions.
fn home(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move { Ok(see(&visitor.membership(wanted.part("project")).await?.path("sessions"))) })
}

async fn list(visitor: &Visitor<'_>) -> Result<Response<Body>, ToolError> {
    let (memberships, is_one_closed) = visitor.memberships().await?;
    let mut projects = Vec::new();
    for membership in &memberships {
        let project = &membership.project;
        projects.push(Row {
            name: visible_line(&project.name),
            key: membership.key(),
            role: membership.role.as_str(),
            open: project.gate.queue().asks().open_numbers(project.id).await?.len(),
        });
    }
    let heard = heard_of_all(&memberships);
    let place = Place { live: ASKS, heard: &heard, ..visitor.place() };
    Ok(page(StatusCode::OK, &ProjectsPage { place, projects, is_one_closed }))
}
