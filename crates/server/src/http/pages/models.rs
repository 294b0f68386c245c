//! The models that the operator has configured, and a test of the connection to one.

use askama::Template;
use axum::http::StatusCode;
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_store::Role;

use super::failure::sentence;
use super::route::{Made, Route, Wanted};
use super::text::name;
use super::visitor::Visitor;
use super::{Place, page};
use crate::http::envelope;

/// The page of this file.
pub(super) const ROUTES: &[Route] =
    &[Route { path: "/projects/{project}/policy/models", name: "models", takes_forms: true, make: models }];

#[derive(Template)]
#[template(path = "models.html")]
struct ModelsPage<'a> {
    place: Place<'a>,
    address: String,
    /// Where the policy is.
    policy: String,
    models: Vec<Line>,
    is_owner: bool,
    /// What a test has come to: whether the model answered, and in words.
    tried: Option<(bool, String)>,
}

struct Line {
    /// As addresses and forms name it.
    value: String,
    name: String,
    is_usual: bool,
}

fn models(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let is_owner = membership.role == Role::Owner;
        let (work, by) = (membership.project.work.as_deref(), visitor.by());
        let mut status = StatusCode::OK;
        let mut tried = None;
        if let Some(form) = &wanted.form {
            let model = form.get("model").map(String::as_str).unwrap_or_default();
            let result = match (is_owner, work) {
                (true, Some(work)) => work.try_model(by, model).await,
                (true, None) => membership.work().map(drop),
                (false, _) => Err(ToolError::new(ErrorKind::Permission, "Only owners of the project test models")),
            };
            tried = Some(match result {
                Ok(()) => (true, format!("{} has answered.", name(model))),
                Err(error) if error.kind == ErrorKind::Internal => return Err(error),
                Err(error) => {
                    status = envelope::status(&error);
                    (false, sentence(&error))
                }
            });
        }
        let known = match work {
            Some(work) => work.models(by).await?,
            None => Vec::new(),
        };
        let line = |model: crate::http::ModelLine| Line {
            name: name(&model.name),
            is_usual: model.is_usual,
            value: model.name,
        };
        let shown = ModelsPage {
            place: membership.place(&visitor, "policy"),
            address: membership.path("policy/models"),
            policy: membership.path("policy"),
            models: known.into_iter().map(line).collect(),
            is_owner,
            tried,
        };
        Ok(page(status, &shown))
    })
}
