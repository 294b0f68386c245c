//! The one table of the API: what is routed, what is checked before a handler runs, and what the OpenAPI document says.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::http::HeaderMap;
use bytes::Bytes;
use schemars::{Schema, SchemaGenerator};
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

/// The schema of a type: it is added to those of the document.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schema of a type, as the table holds it.
macro_rules! schema {
    ($type:ty) => {
        |generator| generator.subschema_for::<$type>()
    };
}
pub(crate) use schema;

/// The body of a request.
#[derive(Clone, Copy)]
pub(crate) enum Input {
    Json(SchemaOf),
    /// A workflow package.
    Zip,
}

/// What an operation answers with if it succeeds.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// An envelope with data of this schema.
    Data(SchemaOf),
    /// The outcome of a call, with data of this schema; or what says that the call waits for a person.
    Call(SchemaOf),
    /// A workflow package, and its revision as `ETag`.
    Package,
    /// Server-sent events, each with data of this schema.
    Events(SchemaOf),
    /// The OpenAPI document.
    Document,
}

/// What the value of a parameter looks like.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Uuid,
    Flag,
    /// From the first to the second.
    Number(i64, i64),
    /// One of these.
    Words(&'static [&'static str]),
}

/// A parameter behind the question mark, or a header.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) kind: Kind,
    /// What holds where it is left out, as JSON.
    pub(crate) default: Option<&'static str>,
}

impl Parameter {
    pub(crate) const fn text(name: &'static str, description: &'static str) -> Self {
        Self { name, description, kind: Kind::Text, default: None }
    }

    pub(crate) const fn flag(name: &'static str, description: &'static str) -> Self {
        Self { name, description, kind: Kind::Flag, default: Some("false") }
    }

    pub(crate) const fn number(name: &'static str, description: &'static str) -> Self {
        Self { name, description, kind: Kind::Number(0, i64::MAX), default: None }
    }
}

/// Rows of a page where nobody says how many.
const PAGE_DEFAULT: i64 = 50;
/// Most rows of a page.
const PAGE_MAX: i64 = 500;

pub(crate) const LIMIT: Parameter = Parameter {
    name: "limit",
    description: "Most rows of the page",
    kind: Kind::Number(1, PAGE_MAX),
    default: Some("50"),
};
pub(crate) const AFTER: Parameter = Parameter::number("after", "The number of the last row of the page before");

/// What a request brings besides its path.
pub(crate) struct Takes {
    pub(crate) query: &'static [Parameter],
    /// Headers that the operation reads.
    pub(crate) headers: &'static [Parameter],
    pub(crate) body: Option<Input>,
}

/// A request with nothing but its path.
pub(crate) const NOTHING: Takes = Takes { query: &[], headers: &[], body: None };

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
    pub(crate) takes: Takes,
    pub(crate) answer: Answer,
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

    /// How many rows the page may have.
    ///
    /// # Errors
    /// If it is too many, or none.
    pub(crate) fn limit(&self) -> Result<i64, ToolError> {
        let limit = self.number(LIMIT.name)?.unwrap_or(PAGE_DEFAULT);
        if (1..=PAGE_MAX).contains(&limit) {
            return Ok(limit);
        }
        Err(ToolError::new(ErrorKind::Validation, format!("`limit` goes from 1 to {PAGE_MAX}")))
    }

    /// A parameter of the query that is `true` or `false`; the latter where it is left out.
    ///
    /// # Errors
    /// If it is neither.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ToolError> {
        match self.query.get(name).map(String::as_str) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(ToolError::new(ErrorKind::Validation, format!("`{name}` is `true` or `false`"))),
        }
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
        let query = self.takes.query;
        if let Some(unknown) = asked.query.keys().find(|name| !query.iter().any(|known| known.name == **name)) {
            let known: Vec<_> = query.iter().map(|known| format!("`{}`", known.name)).collect();
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
