//! Pages for people: what a browser shows of this server.
//!
//! Every page works without script: links and forms, and nothing that a GET decides. Who looks at one has signed in ([`sign_in`]). What
//! agents have written is text here, never markup: the templates escape all that they are given.

mod access;
mod asks;
mod audit;
mod batch;
mod board;
mod builder;
mod calls;
mod clients;
mod deeds;
mod deploys;
mod done;
mod ended;
mod failure;
mod files;
mod forms;
mod heard;
mod known;
mod live;
mod markdown;
mod marks;
mod models;
mod multipart;
mod parts;
mod past;
mod plan;
mod plan_fields;
mod plan_new;
mod policy;
mod projects;
mod question;
mod record;
mod route;
mod routes;
mod search;
mod sessions;
mod sign_in;
mod split;
mod terminals;
mod text;
mod visitor;
mod when;

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use toolhost_contract::ToolError;

use super::envelope;

pub(crate) use routes::{Pages, router};
pub use sign_in::SignIn;

use done::Done;
use visitor::Membership;

/// What a page may load and where it may lead: this server, and no code that is not a file of it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";
/// Where files of the pages are, below it by name.
const STATIC: &str = "/static";

/// A file that pages load.
struct File {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const FILES: &[File] = &[
    File {
        name: "toolhost.css",
        kind: "text/css; charset=utf-8",
        bytes: include_bytes!("../../../static/toolhost.css"),
    },
    File {
        name: "toolhost.js",
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../../static/toolhost.js"),
    },
    File { name: "toolhost.svg", kind: "image/svg+xml", bytes: include_bytes!("../../../static/toolhost.svg") },
];

/// A section of a project: its path below the project, and its name in the menu.
struct Section {
    path: &'static str,
    title: &'static str,
}

/// The section of the plan: its pages, and those of records that stand in it.
const PLAN: &str = "plan";

/// The menu of a project, in this order.
const SECTIONS: &[Section] = &[
    Section { path: "sessions", title: "Sessions" },
    builder::SECTION,
    Section { path: "board", title: "Board" },
    Section { path: PLAN, title: "Plan" },
    Section { path: "files", title: "Files" },
    Section { path: "deploy", title: "Deploy" },
    Section { path: "audit", title: "Audit" },
    Section { path: "policy", title: "Policy" },
    Section { path: "access", title: "Access" },
];

/// Where a page is: what the head of each page shows.
#[derive(Clone, Copy, Default)]
struct Place<'a> {
    /// Who looks; `None` before somebody has signed in.
    user: Option<&'a str>,
    /// The project that the page is about.
    project: Option<&'a Membership>,
    /// The path of the section that the page is in; empty in none.
    section: &'static str,
    /// Which changes of the project, or of all projects where it is about none, make the page fetch itself again: words of
    /// [`Told::kinds`](super::told::Told), separated by blanks. A page that shows what somebody has typed has none.
    live: &'static str,
    /// What was just done by a form; empty for nothing.
    done: &'static str,
    /// Where the projects stood of which the page tells, of a page that is about none in particular.
    heard: &'a str,
}

impl<'a> Place<'a> {
    /// What the stream of the page begins after.
    fn heard(&self) -> &str {
        self.project.map_or(self.heard, |membership| &*membership.heard)
    }

    /// A page that is about no project.
    fn of(user: Option<&'a str>) -> Self {
        Self { user, ..Self::default() }
    }

    fn sections(&self) -> &'static [Section] {
        SECTIONS
    }
}

/// A text as a part of an address.
fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// A page that says what is wrong.
#[derive(Template)]
#[template(path = "problem.html")]
struct Problem<'a> {
    title: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
    place: Place<'a>,
}

/// A page as an answer.
fn page(status: StatusCode, page: &impl Template) -> Response<Body> {
    let text = match page.render() {
        Ok(text) => text,
        Err(error) => return envelope::problem(&ToolError::internal(error)),
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    guard(response.headers_mut());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// What keeps a page from being shown inside another, kept by a cache, or named to wherever its links lead.
fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // Not `no-referrer`: browsers then say of a page's own forms that they come from nowhere.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// The page for a failure.
pub(crate) fn problem(status: StatusCode, error: &ToolError, user: Option<&str>) -> Response<Body> {
    if let Some(source) = &error.source {
        tracing::error!(error = %source, "a page failed");
    }
    let title = match status {
        StatusCode::NOT_FOUND => "There is no such page",
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "This is not open to you",
        _ => "That did not work",
    };
    page(
        status,
        &Problem { title, message: &error.message, hint: failure::next_step(error).as_deref(), place: Place::of(user) },
    )
}

/// A redirect to an address of this server, as an answer to a form.
fn see(address: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    guard(response.headers_mut());
    if let Ok(address) = HeaderValue::from_str(address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    response
}

/// The same, and the page there says what was done.
fn see_done(address: &str, done: Done) -> Response<Body> {
    let mut response = see(address);
    response.extensions_mut().insert(done);
    response
}

/// A file that pages load.
fn file(name: &str) -> Option<Response<Body>> {
    let file = FILES.iter().find(|file| file.name == name)?;
    let mut response = Response::new(Body::from(file.bytes));
    guard(response.headers_mut());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    // A new version of the program has new ones: they are asked for again each hour.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
    Some(response)
}
