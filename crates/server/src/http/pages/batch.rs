//! Several asks at once: a page that lists every effect, and decides exactly what it has shown.
//!
//! An approval is decided here only where its whole effect stands on the page. Calls that a person allows each time anew, long effects, reviews
//! and questions are answered on their own pages. No rule is made here.

use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use toolhost_contract::{ErrorKind, ToolError, visible_line};
use toolhost_host::Shown;
use toolhost_store::{Ask, AskKind, AskState};

use super::asks::{FIELD, Risk, answer, asks_always, field, found};
use super::parts::{Line, Parts};
use super::route::{Made, Route, Wanted};
use super::visitor::{Membership, Visitor};
use super::{Place, page, see};

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[Route { path: "/batch", name: "batch", takes_forms: true, make: several }];

/// Most asks at once.
const ASKS_MAX: usize = 50;
/// Most bytes of all their effects.
const BYTES_MAX: usize = 512 * 1024;

#[derive(Template)]
#[template(path = "batch.html")]
struct BatchPage<'a> {
    place: Place<'a>,
    asks: Vec<Effect>,
    left_out: Vec<LeftOut>,
    /// How many have just been decided.
    done: usize,
    text: String,
    error: Option<String>,
}

/// An ask with all that it would do.
struct Effect {
    /// The name of its field.
    field: String,
    address: String,
    id: String,
    project: String,
    summary: String,
    who: String,
    why: String,
    tool: String,
    risk: Risk,
    digest: String,
    lines: Vec<Line>,
    unmasked: Vec<Line>,
}

/// One that is not decided here.
struct LeftOut {
    /// Empty where there is none.
    address: String,
    name: String,
    why: String,
}

fn several(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        match &wanted.form {
            None => {
                let names: Vec<&str> = wanted.query.keys().filter_map(|name| name.strip_prefix(FIELD)).collect();
                show(&visitor, &names, (Vec::new(), Tried::default())).await
            }
            Some(form) => decide(&visitor, form).await,
        }
    })
}

/// What was tried, to be shown again.
#[derive(Default)]
struct Tried {
    done: usize,
    text: String,
    error: Option<String>,
}

/// Why an ask is not decided together with others; `None` if it can be.
fn alone(membership: &Membership, ask: &Ask, shown: &Shown) -> Option<&'static str> {
    match () {
        () if ask.state != AskState::Open => Some("it is not open any more"),
        () if !membership.approver => Some("you may look at it only"),
        () if shown.kind != AskKind::Approval => Some("it is no approval"),
        () if asks_always(membership, &ask.tool) => Some("a person allows it each time anew"),
        () if shown.second_person && ask.user_id == membership.user_id => Some("somebody else has to allow it"),
        () if shown.left_out > 0 => Some("not all of its effect is there"),
        () if shown.is_long() => Some("its effect is long"),
        () => None,
    }
}

/// An ask by the name that forms have for it: the key of its project, and its id.
async fn named(visitor: &Visitor<'_>, name: &str) -> Result<(Membership, Ask, Shown), ToolError> {
    let unknown = || ToolError::new(ErrorKind::NotFound, "There is no such ask.");
    let (key, id) = name.rsplit_once('/').ok_or_else(unknown)?;
    let membership = visitor.membership(key).await.map_err(|error| match error.kind {
        ErrorKind::NotFound => unknown(),
        _ => error,
    })?;
    let (ask, shown) = found(&membership, id).await?;
    Ok((membership, ask, shown))
}

fn left_out(membership: &Membership, ask: &Ask, shown: &Shown, why: &str) -> LeftOut {
    let id = toolhost_host::ask_id(ask.number);
    let name = format!("{id}: {}", visible_line(&shown.summary.replace('\n', " ")));
    LeftOut { address: membership.address(&id), name, why: why.to_owned() }
}

/// The page with the effects of these asks, and what was left out before.
async fn show(
    visitor: &Visitor<'_>,
    names: &[&str],
    (mut out, tried): (Vec<LeftOut>, Tried),
) -> Result<Response<Body>, ToolError> {
    let (mut asks, mut bytes) = (Vec::new(), 0);
    for name in names {
        let (membership, ask, shown) = match named(visitor, name).await {
            Ok(found) => found,
            Err(error) if error.kind == ErrorKind::NotFound => {
                out.push(LeftOut {
                    address: String::new(),
                    name: visible_line(name),
                    why: "there is no such ask".to_owned(),
                });
                continue;
            }
            Err(error) => return Err(error),
        };
        bytes += shown.detail.len() + shown.unmasked.len();
        let is_too_much = asks.len() >= ASKS_MAX || bytes > BYTES_MAX;
        match alone(&membership, &ask, &shown).or(is_too_much.then_some("it is too much for one page")) {
            Some(why) => out.push(left_out(&membership, &ask, &shown, why)),
            None => asks.push(Effect::of(&membership, &ask, &shown)),
        }
    }
    let status = if tried.error.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let Tried { done, text, error } = tried;
    Ok(page(status, &BatchPage { place: visitor.place(), asks, left_out: out, done, text, error }))
}

impl Effect {
    fn of(membership: &Membership, ask: &Ask, shown: &Shown) -> Self {
        let id = toolhost_host::ask_id(ask.number);
        let (lines, unmasked) = Parts::of(&shown.detail, &shown.unmasked).lines(1, true);
        Self {
            field: field(membership, &id),
            address: membership.address(&id),
            project: visible_line(&membership.project.name),
            summary: visible_line(&shown.summary.replace('\n', " ")),
            who: visible_line(&shown.persona),
            why: visible_line(&shown.why),
            tool: visible_line(&shown.tool),
            risk: Risk(shown.effect),
            digest: shown.digest(),
            lines,
            unmasked,
            id,
        }
    }
}

/// Decides the asks that a form names, each as its page has shown it.
async fn decide(visitor: &Visitor<'_>, form: &BTreeMap<String, String>) -> Result<Response<Body>, ToolError> {
    let word = form.get("decision").map(String::as_str).unwrap_or_default();
    let text = form.get("text").map(|text| text.replace("\r\n", "\n")).unwrap_or_default();
    let asked: Vec<(&str, &str)> =
        form.iter().filter_map(|(name, digest)| Some((name.strip_prefix(FIELD)?, digest.as_str()))).collect();
    let names: Vec<&str> = asked.iter().map(|(name, _)| *name).collect();
    let wrong = match word {
        "deny" if text.trim().is_empty() => Some("Say why not: the agents read it."),
        "allow" | "deny" => None,
        _ => Some("Allow all of these, or deny them."),
    };
    if let Some(wrong) = wrong {
        let tried = Tried { done: 0, text, error: Some(wrong.to_owned()) };
        return show(visitor, &names, (Vec::new(), tried)).await;
    }
    let (mut out, mut done) = (Vec::new(), 0);
    for (name, digest) in asked.iter().take(ASKS_MAX) {
        let (membership, ask, shown) = named(visitor, name).await?;
        if let Some(why) = alone(&membership, &ask, &shown) {
            out.push(left_out(&membership, &ask, &shown, why));
            continue;
        }
        let field = |field: &str| if field == "digest" { *digest } else { "" };
        match answer(visitor, &membership, (&ask, &shown), (word, &text, field)).await {
            Ok(()) => done += 1,
            Err(error) if error.kind == ErrorKind::Internal => return Err(error),
            Err(error) => out.push(left_out(&membership, &ask, &shown, &error.message)),
        }
    }
    if out.is_empty() {
        return Ok(see("/"));
    }
    let error = Some("Not all of these were decided: those below were left out.".to_owned());
    show(visitor, &[], (out, Tried { done, text: String::new(), error })).await
}
