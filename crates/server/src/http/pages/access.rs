//! Who and what has access to a project: its members, its tokens, and the fence around what runs there.

use std::collections::BTreeMap;
use std::time::Duration;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use toolhost_contract::workspace::FenceReport;
use toolhost_contract::{ErrorKind, ToolError, visible_line};
use toolhost_store::{Member, Role, Token};

use super::done::Done;
use super::failure::sentence;
use super::route::{Made, Route, Wanted};
use super::text::When;
use super::visitor::{Membership, Visitor};
use super::{Place, page, see, see_done};
use crate::http::envelope;
use crate::http::token::Right;
use crate::http::work::{NewRole, TokenMade, TokenWish};

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/access", name: "access", takes_forms: false, make: access },
    Route { path: "/projects/{project}/access/members", name: "members", takes_forms: true, make: members },
    Route { path: "/projects/{project}/access/tokens", name: "tokens", takes_forms: true, make: tokens },
];

/// The section of these pages.
const SECTION: &str = "access";
/// How long a token lives if nothing else is said, days.
const TOKEN_DAYS: u64 = 30;
/// The longest that a token made here lives, days.
const TOKEN_DAYS_MAX: u64 = 365;
const DAY_SECONDS: u64 = 24 * 3600;
/// Said to somebody who gives access and has signed in long ago.
const STALE: &str = "You give access to others, and you signed in a while ago";

/// The values of the field `role`. `none` ends a membership.
const ROLES: [&str; 4] = ["viewer", "editor", "owner", "none"];

#[derive(Template)]
#[template(path = "access.html")]
struct AccessPage<'a> {
    place: Place<'a>,
    address: String,
    is_owner: bool,
    members: Vec<MemberLine>,
    tokens: Vec<TokenLine>,
    profiles: Vec<String>,
    /// Each with what it is for.
    rights: Vec<(&'static str, &'static str)>,
    days_max: u64,
    fence: FenceLines,
    /// What was typed into a form that was refused.
    typed: BTreeMap<String, String>,
    /// What is wrong with single fields, by their names.
    wrong: BTreeMap<&'static str, String>,
    error: Option<String>,
    /// A token that was just made, and its secret.
    made: Option<(String, String)>,
}

impl AccessPage<'_> {
    fn typed(&self, name: &str) -> &str {
        self.typed.get(name).map(String::as_str).unwrap_or_default()
    }

    /// What is wrong with a field.
    fn wrong(&self, name: &str) -> Option<&str> {
        self.wrong.get(name).map(String::as_str)
    }

    /// Whether the refused form was the one that makes a token. That form is then shown open.
    fn is_token(&self) -> bool {
        !self.typed.is_empty() && !self.typed.contains_key("member")
    }
}

struct MemberLine {
    name: String,
    role: &'static str,
    /// Whether they answer what people are asked.
    approver: bool,
    is_self: bool,
}

struct TokenLine {
    id: String,
    name: String,
    user: String,
    profiles: String,
    rights: String,
    used: Option<When>,
    state: &'static str,
    ends: When,
}

struct FenceLines {
    tier: &'static str,
    about: &'static str,
    kernel: String,
    runs_as: String,
    holes: Vec<String>,
    why: Vec<String>,
}

impl FenceLines {
    fn of(report: FenceReport) -> Self {
        let tier = report.word();
        Self {
            tier,
            about: match tier {
                "full" => {
                    "A command reaches this project and what its profile grants, and nothing else: the kernel holds it (namespaces, Landlock, seccomp)."
                }
                "landlock" => {
                    "A command reaches this project and what its profile grants: the kernel holds it (Landlock and seccomp, without namespaces of its own)."
                }
                "off" => "The operator has turned the fence off: commands run bare.",
                _ => "Commands are refused: this machine cannot hold them.",
            },
            kernel: visible_line(&report.probe.kernel),
            runs_as: visible_line(&report.probe.runs_as),
            holes: report.holes.iter().map(|hole| visible_line(hole)).collect(),
            why: report.why.iter().map(|why| visible_line(why)).collect(),
        }
    }
}

/// What a page shows besides what is stored.
#[derive(Default)]
struct Said {
    typed: BTreeMap<String, String>,
    wrong: BTreeMap<&'static str, String>,
    error: Option<String>,
    made: Option<(String, String)>,
}

/// Why a form was not taken: what is wrong by field, or a refusal of all of it.
enum Untaken {
    Fields(BTreeMap<&'static str, String>),
    Refused(ToolError),
}

impl From<ToolError> for Untaken {
    fn from(error: ToolError) -> Self {
        Self::Refused(error)
    }
}

async fn access_page<'a>(
    visitor: &Visitor<'a>,
    membership: &'a Membership,
    said: Said,
) -> Result<AccessPage<'a>, ToolError> {
    let project = &membership.project;
    let is_owner = membership.role == Role::Owner;
    let member = |member: Member| MemberLine {
        name: visible_line(&member.name),
        role: member.role.as_str(),
        approver: member.approver,
        is_self: member.id == membership.user_id,
    };
    // Tokens are the owners' business, as in the API.
    let tokens = if is_owner { project.tokens.list(project.id).await? } else { Vec::new() };
    Ok(AccessPage {
        place: Place { project: Some(membership), section: SECTION, ..visitor.place() },
        address: membership.path(SECTION),
        is_owner,
        members: project.people.members(project.id).await?.into_iter().map(member).collect(),
        tokens: tokens.into_iter().map(|token| token_line(visitor, token)).collect(),
        profiles: project.gate.profiles().iter().map(|profile| visible_line(&profile.name)).collect(),
        rights: Right::ALL.into_iter().map(|right| (right.as_str(), right.about())).collect(),
        days_max: TOKEN_DAYS_MAX,
        fence: FenceLines::of(project.gate.fence_report().await),
        typed: said.typed,
        wrong: said.wrong,
        error: said.error,
        made: said.made,
    })
}

fn token_line(visitor: &Visitor<'_>, token: Token) -> TokenLine {
    let state = match (token.revoked_at_ms, token.expires_at_ms > visitor.clock.unix_ms()) {
        (Some(_), _) => "revoked",
        (None, true) => "valid",
        (None, false) => "expired",
    };
    TokenLine {
        state,
        ends: When::of(visitor, token.revoked_at_ms.unwrap_or(token.expires_at_ms)),
        id: token.id,
        name: visible_line(&token.name),
        user: visible_line(&token.user),
        profiles: visible_line(&token.profiles.join(", ")),
        rights: visible_line(&token.scopes.join(", ")),
        used: token.last_used_at_ms.map(|at| When::of(visitor, at)),
    }
}

fn access(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        Ok(page(StatusCode::OK, &access_page(&visitor, &membership, Said::default()).await?))
    })
}

/// The answer to a form: the list anew, or what was typed with what is wrong with it.
async fn answered<'a>(
    visitor: &Visitor<'a>,
    membership: &'a Membership,
    typed: BTreeMap<String, String>,
    done: Result<(), Untaken>,
) -> Result<Response<Body>, ToolError> {
    let (status, said) = match done {
        Ok(()) => return Ok(see(&membership.path(SECTION))),
        Err(Untaken::Refused(error)) if error.kind == ErrorKind::Internal => return Err(error),
        Err(Untaken::Refused(error)) => {
            (envelope::status(&error), Said { typed, error: Some(sentence(&error)), ..Said::default() })
        }
        Err(Untaken::Fields(wrong)) => (StatusCode::BAD_REQUEST, Said { typed, wrong, ..Said::default() }),
    };
    Ok(page(status, &access_page(visitor, membership, said).await?))
}

fn members(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let Some(form) = wanted.form else { return Ok(see(&membership.path(SECTION))) };
        let done = set_member(&visitor, &membership, &form).await;
        if done.is_ok() {
            let what = if form.contains_key("add") { Done::MemberAdded } else { Done::Saved };
            return Ok(see_done(&membership.path(SECTION), what));
        }
        answered(&visitor, &membership, form, done).await
    })
}

async fn set_member(
    visitor: &Visitor<'_>,
    membership: &Membership,
    form: &BTreeMap<String, String>,
) -> Result<(), Untaken> {
    let field = |name: &str| form.get(name).map(|text| text.trim()).unwrap_or_default();
    let mut wrong = BTreeMap::new();
    if field("member").is_empty() {
        wrong.insert("member", "Say who.".to_owned());
    }
    if !ROLES.contains(&field("role")) {
        wrong.insert("role", format!("Choose {}.", ROLES.join(", ")));
    }
    if !wrong.is_empty() {
        return Err(Untaken::Fields(wrong));
    }
    if membership.role != Role::Owner {
        return Err(ToolError::new(ErrorKind::Permission, "Members are for owners of the project to change").into());
    }
    visitor.need_recent(STALE)?;
    if field("member") == visitor.login.user {
        let message = "What you are yourself is changed by another owner";
        return Err(ToolError::new(ErrorKind::Conflict, message).into());
    }
    let approver = match field("approver") {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    };
    let role = Some(field("role")).filter(|role| *role != "none").map(|role| NewRole { role, approver });
    match membership.work()?.set_member(visitor.by(), field("member"), role).await {
        // All else that the form has is a choice.
        Err(error) if error.kind == ErrorKind::Validation && field("add") == "on" => {
            Err(Untaken::Fields([("member", sentence(&error))].into()))
        }
        done => Ok(done.map(drop)?),
    }
}

fn tokens(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let Some(form) = wanted.form else { return Ok(see(&membership.path(SECTION))) };
        let by = visitor.by();
        if let Some(id) = form.get("revoke") {
            let done = match membership.work() {
                Ok(work) => work.revoke_token(by, id).await,
                Err(error) => Err(error),
            };
            return answered(&visitor, &membership, BTreeMap::new(), done.map_err(Untaken::Refused)).await;
        }
        match make_token(&visitor, &membership, &form).await {
            // The secret is shown this once, so it is in this answer and no redirect follows.
            Ok(made) => {
                let said = Said { made: Some((visible_line(&made.name), made.token)), ..Said::default() };
                Ok(page(StatusCode::OK, &access_page(&visitor, &membership, said).await?))
            }
            Err(untaken) => answered(&visitor, &membership, form, Err(untaken)).await,
        }
    })
}

async fn make_token(
    visitor: &Visitor<'_>,
    membership: &Membership,
    form: &BTreeMap<String, String>,
) -> Result<TokenMade, Untaken> {
    let field = |name: &str| form.get(name).map(|text| text.trim()).unwrap_or_default();
    let mut wrong = BTreeMap::new();
    if field("name").is_empty() {
        wrong.insert("name", "Give the token a name.".to_owned());
    }
    if membership.project.gate.profile(field("profile")).is_err() {
        wrong.insert("profile", "Choose one of the profiles.".to_owned());
    }
    let days = if field("days").is_empty() { Ok(TOKEN_DAYS) } else { field("days").parse() };
    let days = days.ok().filter(|days| (1..=TOKEN_DAYS_MAX).contains(days));
    if days.is_none() {
        wrong.insert("days", format!("A token lives for 1 to {TOKEN_DAYS_MAX} days."));
    }
    let rights: Vec<Right> = Right::ALL.into_iter().filter(|right| field(right.as_str()) == "on").collect();
    if rights.is_empty() {
        wrong.insert("rights", "Choose at least one.".to_owned());
    }
    let members = membership.project.people.members(membership.project.id).await.map_err(ToolError::from)?;
    if !field("for").is_empty() && !members.iter().any(|member| member.name == field("for")) {
        wrong.insert("for", "Nobody in this project has this name.".to_owned());
    }
    let Some(days) = days.filter(|_| wrong.is_empty()) else { return Err(Untaken::Fields(wrong)) };
    let wish = TokenWish {
        name: field("name").to_owned(),
        profiles: vec![field("profile").to_owned()],
        rights,
        acts_for: Some(field("for")).filter(|name| !name.is_empty()).map(str::to_owned),
        lives: Duration::from_secs(days * DAY_SECONDS),
    };
    visitor.need_recent(STALE)?;
    Ok(membership.work()?.make_token(visitor.by(), wish).await?)
}
