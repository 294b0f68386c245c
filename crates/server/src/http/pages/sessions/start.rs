//! The form that starts a session.

use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use toolhost_contract::{ErrorKind, ToolError, visible_line};
use toolhost_records::{Kind, RecordId};

use super::{PART, address, can_work};
use crate::http::pages::failure::sentence;
use crate::http::pages::forms::{Field, Shape, choice, complain, filled};
use crate::http::pages::known::offered;
use crate::http::pages::route::Wanted;
use crate::http::pages::visitor::{Membership, Visitor};
use crate::http::pages::{Place, page, see};
use crate::http::work::{ModelLine, NewRun, Target, Work};

/// The profiles of sessions where a person names none, as at a terminal.
const WORKSPACE_PROFILE: &str = "developer";
const PACKAGE_PROFILE: &str = "builder";
/// What a session on a workflow package can be about.
const TARGETS: &[&str] = &["workflow", "step", "agent", "asset"];

#[derive(Template)]
#[template(path = "session_start.html")]
struct StartPage<'a> {
    place: Place<'a>,
    membership: &'a Membership,
    /// What is wrong, and belongs to no field.
    error: Option<String>,
    fields: Vec<Field>,
}

fn fields(membership: &Membership, models: &[ModelLine]) -> Vec<Field> {
    let usual = format!("the default ({WORKSPACE_PROFILE}, or {PACKAGE_PROFILE} for a workflow package)");
    let mut profiles = vec![(String::new(), usual)];
    profiles.extend(membership.project.gate.profiles().iter().map(|profile| {
        let label = match profile.description.as_str() {
            "" => profile.name.clone(),
            about => format!("{}: {}", profile.name, about.trim_end_matches('.')),
        };
        (profile.name.clone(), super::super::text::name(&label))
    }));
    vec![
        Field::new("goal", "Goal", Shape::Text(5)).needed().hint("What the agent is to do, in your words."),
        Field::new("profile", "Profile", Shape::Choice(profiles)).hint("Which tools it has, and what it may do."),
        Field::new("persona", "Persona", Shape::Line)
            .hint("The name that commits and comments of the agent have. Leave it empty for the default."),
        model_field(models),
        Field::new("ticket", "Ticket", Shape::Line).hint("The ticket that the work is about, such as TKT-001."),
        Field::new("files", "Files to begin with", Shape::Text(2))
            .hint("Files and folders of the workspace that the agent looks at first: a path in each line, such as src/main.rs."),
        Field::new("kind", "Target in the workflow package", choice(Some("none: work in the workspace"), TARGETS)),
        Field::new("id", "Id of the target", Shape::Line).hint("Such as step-03; for an asset, its path."),
        Field::new("workflow", "Workflow of the target", Shape::Line)
            .hint("Only for a step of which several workflows have one of this id."),
        Field::new("create", "The target does not exist yet: create it", Shape::Check),
    ]
}

/// The models that sessions can have. A server that cannot tell them still starts sessions.
pub(in super::super) async fn models_of(visitor: &Visitor<'_>, membership: &Membership) -> Vec<ModelLine> {
    match &membership.project.work {
        Some(work) => work.models(visitor.by()).await.unwrap_or_default(),
        None => Vec::new(),
    }
}

/// Where a form asks for the model.
pub(in super::super) fn model_field(models: &[ModelLine]) -> Field {
    let usual = usual_of(models);
    if models.is_empty() {
        let hint = "The operator of this server has configured no model: no session can start until one is.";
        return Field::new("model", "Model", Shape::Line).hint(hint);
    }
    let mut choices = offers_of(models);
    if usual.is_empty() && choices.len() > 1 {
        choices.insert(0, (String::new(), "choose one".to_owned()));
    }
    let first = choices.first().map(|(name, _)| name.clone()).unwrap_or_default();
    let value = if usual.is_empty() { first } else { usual };
    let hint = "The operator of this server has configured these.";
    Field::new("model", "Model", Shape::Choice(choices)).hint(hint).value(value).needed()
}

/// Models as words that a field offers.
fn offers_of(models: &[ModelLine]) -> Vec<(String, String)> {
    let label = |model: &ModelLine| {
        let name = visible_line(&model.name);
        if model.is_usual { format!("{name} (the default)") } else { name }
    };
    models.iter().map(|model| (model.name.clone(), label(model))).collect()
}

/// The model of sessions that name none; empty where there is none.
pub(in super::super) fn usual_of(models: &[ModelLine]) -> String {
    models.iter().find(|model| model.is_usual).map(|model| model.name.clone()).unwrap_or_default()
}

pub(super) async fn answer(visitor: &Visitor<'_>, wanted: &Wanted) -> Result<Response<Body>, ToolError> {
    let membership = visitor.membership(wanted.part("project")).await?;
    if !can_work(&membership) {
        let error = ToolError::new(ErrorKind::Permission, "You cannot start sessions in this project.");
        return Err(error.hint("Its editors and owners can, where the server runs sessions."));
    }
    let models = models_of(visitor, &membership).await;
    let Some(form) = &wanted.form else {
        // Another page may have said which ticket or target.
        let fields = filled(fields(&membership, &models), &wanted.query);
        return Ok(shown(visitor, &membership, StatusCode::OK, fields, None).await);
    };
    let mut fields = filled(fields(&membership, &models), form);
    check_model(form, &mut fields, &models);
    check_ticket(visitor, &membership, form, &mut fields).await?;
    let Some(run) = run(form, &mut fields, &membership) else {
        return Ok(shown(visitor, &membership, StatusCode::BAD_REQUEST, fields, None).await);
    };
    match work(&membership)?.start(visitor.by(), run).await {
        Ok(session) => Ok(see(&address(&membership, &session.id))),
        Err(error) if error.kind == ErrorKind::Internal => Err(error),
        Err(error) => {
            let message = sentence(&error);
            // The port names what it has refused by the words of its fields.
            let about = ["files", "model", "ticket", "persona", "profile"].into_iter().find(|name| {
                error.message.contains(name) && form.get(*name).is_some_and(|typed| !typed.trim().is_empty())
            });
            let about = about.or_else(|| of_target(&error, form));
            let is_beside = about.is_some_and(|name| complain(&mut fields, name, &message));
            let error = (!is_beside).then_some(message);
            Ok(shown(visitor, &membership, StatusCode::BAD_REQUEST, fields, error).await)
        }
    }
}

/// The field of the target that was refused: the one whose text the refusal repeats.
fn of_target(error: &ToolError, form: &BTreeMap<String, String>) -> Option<&'static str> {
    let typed = |name: &str| form.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
    typed("kind")?;
    ["id", "workflow"].into_iter().find(|name| typed(name).is_some_and(|typed| error.message.contains(typed)))
}

async fn shown(
    visitor: &Visitor<'_>,
    membership: &Membership,
    status: StatusCode,
    fields: Vec<Field>,
    error: Option<String>,
) -> Response<Body> {
    let fields = offered(visitor, membership, Kind::Ticket, fields).await;
    page(status, &StartPage { place: membership.place(visitor, PART), membership, error, fields })
}

/// What is done with the project besides calls.
///
/// # Errors
/// If this server only makes calls.
pub(super) fn work(membership: &Membership) -> Result<&dyn Work, ToolError> {
    let missing = || ToolError::new(ErrorKind::NotFound, "This server runs no sessions.");
    membership.project.work.as_deref().ok_or_else(missing)
}

/// Says so beside the field where no such model is known.
fn check_model(form: &BTreeMap<String, String>, fields: &mut [Field], models: &[ModelLine]) {
    let typed = form.get("model").map(|model| model.trim()).filter(|model| !model.is_empty());
    if typed.is_none() && !models.is_empty() && usual_of(models).is_empty() {
        complain(fields, "model", "This server has no default model: choose one.");
    }
    if typed.is_some_and(|typed| !models.is_empty() && models.iter().all(|model| model.name != typed)) {
        let known: Vec<&str> = models.iter().map(|model| &*model.name).collect();
        complain(
            fields,
            "model",
            &visible_line(&format!("There is no such model here. Choose one of: {}.", known.join(", "))),
        );
    }
}

/// Says so beside the field where the project has no such ticket.
async fn check_ticket(
    visitor: &Visitor<'_>,
    membership: &Membership,
    form: &BTreeMap<String, String>,
    fields: &mut [Field],
) -> Result<(), ToolError> {
    let Some(typed) = form.get("ticket").map(|ticket| ticket.trim()).filter(|ticket| !ticket.is_empty()) else {
        return Ok(());
    };
    let id = RecordId::parse(typed).filter(|id| id.kind == Kind::Ticket);
    let is_there = match id {
        Some(id) => !work(membership)?.titles(visitor.by(), &[id]).await?.is_empty(),
        None => false,
    };
    if !is_there {
        complain(fields, "ticket", "There is no such ticket.");
    }
    Ok(())
}

/// What the form asks for. `None`: something is wrong with it, which stands beside its fields.
fn run(form: &BTreeMap<String, String>, fields: &mut [Field], membership: &Membership) -> Option<NewRun> {
    let typed = |name: &str| form.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let mut is_right = fields.iter().all(|field| field.error.is_none());
    let mut wrong = |name: &str, message: &str| is_right &= !complain(fields, name, message);
    if typed("goal").is_none() {
        wrong("goal", "Say what the agent is to do.");
    }
    let target = typed("kind").map(|kind| {
        if !TARGETS.contains(&kind) {
            wrong("kind", "A target is a workflow, a step, an agent or an asset.");
        }
        if typed("id").is_none() {
            wrong("id", "Say which one: its id.");
        }
        Target {
            kind: kind.to_owned(),
            id: typed("id").unwrap_or_default().to_owned(),
            workflow: typed("workflow").map(str::to_owned),
            is_new: form.get("create").is_some_and(|value| value == "on"),
        }
    });
    if target.is_some() && typed("files").is_some() {
        wrong("files", "A session on the workflow package has no files: leave this empty, or choose no target.");
    }
    if target.is_none() && typed("id").is_some() {
        wrong("kind", "Say what the target is, or leave its id empty.");
    }
    let usual = if target.is_some() { PACKAGE_PROFILE } else { WORKSPACE_PROFILE };
    let profile = typed("profile").unwrap_or(usual).to_owned();
    if membership.project.gate.profile(&profile).is_err() {
        wrong("profile", "There is no such profile here: choose one of the list.");
    }
    is_right.then(|| NewRun {
        goal: typed("goal").unwrap_or_default().replace("\r\n", "\n"),
        profile,
        persona: typed("persona").map(str::to_owned),
        model: typed("model").map(str::to_owned),
        ticket: typed("ticket").map(str::to_owned),
        files: typed("files")
            .into_iter()
            .flat_map(str::lines)
            .map(str::trim)
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect(),
        target,
        origin: None,
    })
}
