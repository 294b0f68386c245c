//! What a page is to the table of pages: its address, and how it is made.

use std::collections::{BTreeMap, HashMap};

use axum::body::Body;
use axum::http::Response;
use toolhost_contract::{BoxFuture, ToolError};

use super::visitor::Visitor;

/// What a page is made of.
pub(super) struct Wanted {
    /// The parts of the path that vary, by name.
    pub(super) path: HashMap<String, String>,
    pub(super) query: BTreeMap<String, String>,
    /// What a form says; `None` where nothing was sent, and so nothing may change.
    pub(super) form: Option<BTreeMap<String, String>>,
    /// Whether the answer is shown: a HEAD request has none of it.
    pub(super) shows: bool,
    /// The address of the server as the browser uses it: `https://tools.example`.
    pub(super) server: String,
    /// Files of the form, by the names of their fields.
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Wanted {
    /// A part of the path; empty if the route has none of this name.
    pub(super) fn part(&self, name: &str) -> &str {
        self.path.get(name).map(String::as_str).unwrap_or_default()
    }

    /// A parameter of the query.
    pub(super) fn asked(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }
}

/// A page that is being made.
pub(super) type Made<'a> = BoxFuture<'a, Result<Response<Body>, ToolError>>;

/// The pages of one shape.
pub(super) struct Route {
    /// As axum writes it.
    pub(super) path: &'static str,
    /// As metrics name it.
    pub(super) name: &'static str,
    /// Whether forms are sent here.
    pub(super) takes_forms: bool,
    pub(super) make: for<'a> fn(Visitor<'a>, Wanted) -> Made<'a>,
}
