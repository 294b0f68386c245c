//! The policy of a project: what each profile may do, the rules that people have granted, and what would be decided of a call.

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::Value;
use toolhost_contract::workspace::Access;
use toolhost_contract::{ErrorKind, ToolError, visible_line};
use toolhost_host::{Decide, Person, Profile, Registered, rule_id, rule_number, rule_words};
use toolhost_store::{Permit, Role};

use super::asks::Risk;
use super::failure::begun_large;
use super::marks::without_marks;
use super::route::{Made, Route, Wanted};
use super::text::When;
use super::visitor::{Membership, PLACE, Visitor};
use super::{Place, page, see};
use crate::http::envelope;

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/policy", name: "policy", takes_forms: true, make: policy },
    Route { path: "/projects/{project}/policy/profiles/{profile}", name: "profile", takes_forms: false, make: profile },
];

/// The section of these pages.
const SECTION: &str = "policy";
/// Rules that people have granted, in the list.
const RULES_MAX: i64 = 200;

#[derive(Template)]
#[template(path = "policy.html")]
struct PolicyPage<'a> {
    place: Place<'a>,
    address: String,
    profiles: Vec<ProfileLine>,
    granted: Vec<Granted>,
    may_revoke: bool,
    tried: Tried,
    /// What is wrong with what was typed, by field.
    wrong: Wrong,
    error: Option<String>,
}

/// What is wrong with a call that was typed in.
#[derive(Default)]
struct Wrong {
    tool: Option<String>,
    profile: Option<String>,
    arguments: Option<String>,
}

#[derive(Template)]
#[template(path = "profile.html")]
struct ProfilePage<'a> {
    place: Place<'a>,
    address: String,
    name: String,
    about: String,
    access: &'static str,
    network: Vec<String>,
    rules: Vec<RuleLine>,
    tools: Vec<ToolLine>,
}

struct ProfileLine {
    name: String,
    about: String,
    tools: usize,
    address: String,
}

struct RuleLine {
    decide: &'static str,
    class: &'static str,
    text: String,
    why: String,
}

struct ToolLine {
    name: String,
    title: String,
    effect: &'static str,
}

/// A rule that a person has granted.
struct Granted {
    id: String,
    profile: String,
    words: String,
    by: String,
    holds: bool,
    state: When,
}

/// A call whose decision is asked for, as it was typed, and what would be decided of it.
#[derive(Default)]
struct Tried {
    tool: String,
    profile: String,
    arguments: String,
    verdict: Option<RuleLine>,
}

fn decided(decide: Decide) -> (&'static str, &'static str) {
    match decide {
        Decide::Allow => ("allowed", "good"),
        Decide::Ask => ("a person is asked", "warn"),
        Decide::Deny => ("denied", "bad"),
    }
}

fn place<'a>(visitor: &Visitor<'a>, membership: &'a Membership) -> Place<'a> {
    Place { project: Some(membership), section: SECTION, ..visitor.place() }
}

fn policy(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        if let Some(form) = &wanted.form {
            let id = form.get("revoke").map(String::as_str).unwrap_or_default();
            return revoke(&visitor, &membership, id).await;
        }
        let asked = |name: &str| wanted.asked(name).map(str::trim).unwrap_or_default().to_owned();
        let tried =
            Tried { tool: asked("tool"), profile: asked("profile"), arguments: asked("arguments"), verdict: None };
        let is_asked = wanted.query.contains_key("tool");
        let (tried, wrong) = match verdict(&membership, &tried).await? {
            _ if !is_asked => (tried, Wrong::default()),
            Ok(verdict) => (Tried { verdict: Some(verdict), ..tried }, Wrong::default()),
            Err(wrong) => (tried, wrong),
        };
        let tried = Tried { tool: visible_line(&tried.tool), arguments: without_marks(&tried.arguments), ..tried };
        let page_of = policy_page(&visitor, &membership, (tried, wrong), None).await?;
        Ok(page(StatusCode::OK, &page_of))
    })
}

async fn policy_page<'a>(
    visitor: &Visitor<'a>,
    membership: &'a Membership,
    (tried, wrong): (Tried, Wrong),
    error: Option<String>,
) -> Result<PolicyPage<'a>, ToolError> {
    let gate = &membership.project.gate;
    let permits = gate.queue().asks().permits(membership.project.id, RULES_MAX).await?;
    let line = |profile: &Profile| ProfileLine {
        name: visible_line(&profile.name),
        about: visible_line(&profile.description),
        tools: profile.tools.len(),
        address: membership.path(&format!("policy/profiles/{}", super::encoded(&profile.name))),
    };
    Ok(PolicyPage {
        place: place(visitor, membership),
        address: membership.path(SECTION),
        profiles: gate.profiles().iter().map(line).collect(),
        granted: permits.into_iter().map(|permit| granted(visitor, membership, &permit)).collect(),
        may_revoke: membership.role <= Role::Editor,
        tried,
        wrong,
        error,
    })
}

fn granted(visitor: &Visitor<'_>, membership: &Membership, permit: &Permit) -> Granted {
    let kinds = membership.project.gate.registry().get(&permit.tool).map(Registered::kinds);
    let conditions = serde_json::from_value(permit.conditions.clone()).unwrap_or_default();
    let ended = permit.revoked_at_ms;
    Granted {
        id: rule_id(permit.number),
        profile: visible_line(&permit.profile),
        words: visible_line(&rule_words(&permit.tool, &conditions, kinds)),
        by: visible_line(&permit.granted_by),
        holds: ended.is_none() && permit.expires_at_ms > visitor.clock.unix_ms(),
        state: When::of(visitor, ended.unwrap_or(permit.expires_at_ms)),
    }
}

/// What would be decided, or all that is wrong with the question.
async fn verdict(membership: &Membership, tried: &Tried) -> Result<Result<RuleLine, Wrong>, ToolError> {
    let project = &membership.project;
    let (tool, profile) = (project.gate.registry().get(&tried.tool), project.gate.profile(&tried.profile));
    let text = if tried.arguments.is_empty() { "{}" } else { &tried.arguments };
    let arguments = serde_json::from_str::<Value>(text);
    let (Some(tool), Ok(profile), Ok(arguments)) = (tool, profile.as_ref(), &arguments) else {
        let example = "Write the arguments as JSON, such as {\"path\": \"a.txt\"}";
        return Ok(Err(Wrong {
            tool: tool.is_none().then(|| match tried.tool.as_str() {
                "" => "Name a tool.".to_owned(),
                typed => membership.no_tool(typed),
            }),
            profile: profile.is_err().then(|| "There is no such profile.".to_owned()),
            arguments: arguments.err().map(|error| format!("The arguments are not JSON: {error}. {example}")),
        }));
    };
    if !profile.has(&tool.info.name) {
        let text = format!("the profile does not have {}", tool.info.name);
        return Ok(Ok(RuleLine { decide: "denied", class: "bad", text, why: String::new() }));
    }
    let (verdict, permit) = project.gate.explain(project.id, profile, tool, arguments.clone()).await?;
    let (decide, class) = decided(verdict.decide);
    Ok(Ok(match permit {
        Some(permit) => RuleLine {
            decide: "allowed",
            class: "good",
            text: format!("{}, which {} granted", rule_id(permit.number), visible_line(&permit.granted_by)),
            why: begun_large(&visible_line(&verdict.why)),
        },
        None => RuleLine {
            decide,
            class,
            // A rule without a reason of its own is the reason.
            why: match &verdict.rule {
                Some(rule) if verdict.why.contains(rule.as_str()) => String::new(),
                _ => begun_large(&visible_line(&verdict.why)),
            },
            text: match verdict.rule {
                Some(rule) if verdict.why.contains(&rule) => visible_line(&verdict.why).replace('`', ""),
                Some(rule) => visible_line(&rule),
                None => "no rule names it; what the tool can do decides".to_owned(),
            },
        },
    }))
}

async fn revoke(visitor: &Visitor<'_>, membership: &Membership, id: &str) -> Result<Response<Body>, ToolError> {
    let unknown = || ToolError::new(ErrorKind::NotFound, "There is no such rule.");
    let number = rule_number(id).ok_or_else(unknown)?;
    let project = &membership.project;
    let person = Person { user_id: membership.user_id, project_id: project.id, name: visitor.login.user.clone() };
    match project.gate.queue().revoke(&person, number, PLACE).await {
        Ok(()) => Ok(see(&membership.path(SECTION))),
        Err(error) if error.kind == ErrorKind::Internal => Err(error),
        Err(error) => {
            let status = envelope::status(&error);
            let shown =
                policy_page(visitor, membership, (Tried::default(), Wrong::default()), Some(error.message)).await?;
            Ok(page(status, &shown))
        }
    }
}

fn profile(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let gate = &membership.project.gate;
        let unknown = |_| ToolError::new(ErrorKind::NotFound, "There is no such profile.");
        let profile = gate.profile(wanted.part("profile")).map_err(unknown)?;
        let rules = profile.rules.iter().map(|rule| {
            let (decide, class) = decided(rule.decide);
            let why = visible_line(rule.why.as_deref().unwrap_or_default());
            RuleLine { decide, class, text: visible_line(&rule.text), why }
        });
        let tools = gate.tools_of(profile).map(|tool| ToolLine {
            name: tool.info.name.to_string(),
            title: tool.info.title.to_string(),
            effect: match Risk(tool.info.facts.effect).word() {
                "" => "asks a person",
                word => word,
            },
        });
        let fence = &profile.fence;
        let shown = ProfilePage {
            place: place(&visitor, &membership),
            address: membership.path(SECTION),
            name: visible_line(&profile.name),
            about: visible_line(&profile.description),
            access: match fence.workspace {
                Access::Read => "may be read",
                Access::Write => "may be read and written",
            },
            network: fence.network.iter().map(|host| visible_line(&host.to_string())).collect(),
            rules: rules.collect(),
            tools: tools.collect(),
        };
        Ok(page(StatusCode::OK, &shown))
    })
}
