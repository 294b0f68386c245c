//! The one table of the API: what is routed, what is checked before a handler runs, and what the OpenAPI document says.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::http::HeaderMap;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{BoxFuture, ErrorKind, ToolError};
use toolhost_host::Origin;

use super::HttpLimits;
use super::auth::Principal;
use super::ends::Ends;
use super::envelope::Reply;
use super::token::Right;
use crate::origin;

/// Where calls and decisions come from, as the audit names it.
pub(crate) const DOOR: &str = "http";
/// Where the API begins.
pub(crate) const PREFIX: &str = "/api/v1";
/// The parameter that names the project.
pub(crate) const PROJECT: &str = "project";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Delete,
}

/// What a request brings.
#[derive(Clone, Copy)]
pub(crate) enum Input {
    /// JSON of this schema.
    Json(fn() -> Value),
    /// A workflow package.
    Zip,
}

/// What stands after the question mark.
pub(crate) struct QueryName {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) is_number: bool,
}

/// An operation of the API.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Below [`PREFIX`], with `{name}` for what varies.
    pub(crate) path: &'static str,
    /// How generated clients call it.
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    /// `None`: whoever has a token.
    pub(crate) right: Option<Right>,
    pub(crate) query: &'static [QueryName],
    /// `None`: nothing.
    pub(crate) body: Option<Input>,
    /// The schema of `data` in the answer; `None`: it is no JSON.
    pub(crate) answer: Option<fn() -> Value>,
    pub(crate) run: Handler,
}

pub(crate) type Handler = fn(Asked) -> BoxFuture<'static, Result<Reply, ToolError>>;

/// A handler, as the table holds it.
macro_rules! run {
    ($handler:path) => {
        |asked| Box::pin($handler(asked))
    };
}
pub(crate) use run;

/// A request that may be handled: its caller has the right, and its project is theirs.
pub(crate) struct Asked {
    pub(crate) limits: HttpLimits,
    /// The OpenAPI document.
    pub(crate) document: Arc<str>,
    pub(crate) ends: Arc<Ends>,
    /// Ends what goes on for ever.
    pub(crate) life: CancellationToken,
    pub(crate) principal: Arc<Principal>,
    pub(crate) path: HashMap<String, String>,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) headers: HeaderMap,
    /// Of a body that is JSON.
    pub(crate) body: Value,
    /// Of one that is not.
    pub(crate) bytes: Bytes,
}

impl Asked {
    /// Where a call of this request comes from.
    pub(crate) fn origin(&self) -> Option<Arc<Origin>> {
        let parent = origin::of_headers(&self.headers)?;
        Some(Arc::new(Origin { parent: Some(parent), ..Origin::default() }))
    }

    /// A part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    /// A number of the query.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ToolError> {
        let parse = |text: &String| {
            let message = || format!("`{name}` is a number, not `{}`", toolhost_contract::visible_line(text));
            text.parse().map_err(|_| ToolError::new(ErrorKind::Validation, message()))
        };
        self.query.get(name).map(parse).transpose()
    }

    /// The body.
    ///
    /// # Errors
    /// What does not fit.
    pub(crate) fn body<T: DeserializeOwned>(&mut self) -> Result<T, ToolError> {
        if !self.body.is_object() {
            return Err(ToolError::new(ErrorKind::Validation, "the body does not fit: it is no JSON object"));
        }
        serde_json::from_value(self.body.take()).map_err(|error| {
            let message = format!("the body does not fit: {}", toolhost_contract::visible_line(&error.to_string()));
            ToolError::new(ErrorKind::Validation, message).hint("GET /api/v1/openapi.json says what each request takes")
        })
    }
}

impl Route {
    /// What has to be true before its handler runs.
    ///
    /// # Errors
    /// What is not.
    pub(crate) fn admit(&self, asked: &Asked) -> Result<(), ToolError> {
        if let Some(unknown) = asked.query.keys().find(|name| !self.query.iter().any(|known| known.name == **name)) {
            let known: Vec<_> = self.query.iter().map(|known| format!("`{}`", known.name)).collect();
            let message = format!("there is no query `{}` here", toolhost_contract::visible_line(unknown));
            let error = ToolError::new(ErrorKind::Validation, message);
            return Err(if known.is_empty() { error } else { error.hint(format!("there is {}", known.join(", "))) });
        }
        Ok(())
    }
}

/// Whether a path names the project of its caller.
///
/// # Errors
/// If it does not.
pub(crate) fn admit_project(path: &HashMap<String, String>, principal: &Principal) -> Result<(), ToolError> {
    let is_its_own = |project: &String| *project == principal.project.key || *project == principal.project.name;
    if path.get(PROJECT).is_none_or(is_its_own) { Ok(()) } else { Err(no_project()) }
}

/// The answer for a project that does not exist and for one of somebody else.
pub(crate) fn no_project() -> ToolError {
    ToolError::new(ErrorKind::NotFound, "there is no such project for this token")
}
