//! Deploys: what one would do now, what there were, and taking the newest one back.

use askama::Template;
use axum::http::StatusCode;
use serde_json::{Value, json};
use toolhost_contract::{ErrorKind, visible_line};
use toolhost_store::Role;

use super::calls::{Called, items, number, text};
use super::done::Done;
use super::failure::sentence;
use super::route::{Made, Route, Wanted};
use super::visitor::{Membership, Visitor};
use super::{Place, encoded, page, see, see_done};
use crate::http::{DeployLine, DeployUndo, envelope};

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/deploy", name: "deploy", takes_forms: true, make: deploy },
    Route { path: "/projects/{project}/deploy/undo", name: "deploy_undo", takes_forms: true, make: undo },
];

/// The tool that deploys.
const DEPLOY: &str = "deploy.copy";
/// What a deploy's plan consists of, and how people name it.
const DEPLOY_PARTS: &[(&str, &str)] = &[
    ("new", "New"),
    ("changed", "Changed"),
    ("orphans", "Deleted there, because it is gone here"),
    ("protected", "Not deleted, although it is gone here"),
    ("refused", "Not taken along"),
];
/// The first parts are what a deploy does; the others are what it leaves.
const DEPLOY_DEEDS: usize = 3;
/// The section of these pages.
const SECTION: &str = "deploy";
/// Deploys in the list of those that there were.
const HISTORY_MAX: usize = 50;
/// Paths of one kind on a page; the others are counted.
const PATHS_MAX: usize = 200;
/// A part of so many paths is shown open.
const OPEN_MAX: u64 = 20;

#[derive(Template)]
#[template(path = "deploy.html")]
struct DeployPage<'a> {
    place: Place<'a>,
    address: String,
    audit: String,
    error: Option<String>,
    /// Whether a folder is set that a deploy copies to.
    has_target: bool,
    plan: Vec<DeployPart>,
    /// Whether a deploy would do anything, and whether this person may ask for it.
    is_something: bool,
    can_ask: bool,
    history: Vec<HistoryLine>,
    /// The page that takes the newest deploy back.
    undo: Option<String>,
}

/// One kind of what a deploy does.
struct DeployPart {
    title: &'static str,
    total: u64,
    paths: Vec<String>,
    is_open: bool,
}

/// A deploy that was made.
struct HistoryLine {
    call: String,
    when: String,
    who: String,
    what: String,
    state: &'static str,
}

#[derive(Template)]
#[template(path = "deploy_undo.html")]
struct UndoPage<'a> {
    place: Place<'a>,
    address: String,
    deploy: String,
    error: Option<String>,
    /// Empty where there is nothing to undo.
    parts: Vec<DeployPart>,
    conflicts: Vec<String>,
    /// Empty where the person may not, or it cannot be.
    digest: String,
}

fn place<'a>(visitor: &Visitor<'a>, membership: &'a Membership) -> Place<'a> {
    Place { project: Some(membership), section: SECTION, ..visitor.place() }
}

impl DeployPart {
    fn of(title: &'static str, total: u64, paths: Vec<String>) -> Self {
        Self { title, total, paths, is_open: (1..=OPEN_MAX).contains(&total) }
    }

    fn of_all(title: &'static str, paths: &[String]) -> Self {
        let shown = paths.iter().take(PATHS_MAX).map(|path| visible_line(path)).collect();
        Self::of(title, paths.len() as u64, shown)
    }
}

impl HistoryLine {
    fn of(visitor: &Visitor<'_>, membership: &Membership, deploy: &DeployLine) -> Self {
        let DeployLine { new, changed, deleted, .. } = deploy;
        Self {
            call: membership.path(&format!("audit/calls/{}", encoded(&deploy.id))),
            when: visitor.time_since(deploy.at_ms),
            who: visible_line(&deploy.who),
            what: format!("{new} new, {changed} changed, {deleted} deleted"),
            state: match deploy.state {
                "undone" => "taken back",
                "done" => "",
                _ => "not finished",
            },
        }
    }
}

/// What a deploy would do. The button makes the call: it asks, as it always does, and the ask shows the plan that a yes is bound to.
fn deploy(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let mut error = None;
        // A call that cannot be made is not tried: it would stand in the audit as a failure.
        let mut has_target = membership.project.work.as_deref().is_none_or(|work| work.deploys().has_target());
        if wanted.form.is_some() && has_target {
            match visitor.call(&membership, DEPLOY, json!({})).await {
                Ok(Called::Waits(ask)) => return Ok(see(&ask)),
                Ok(Called::Done(_)) => {}
                Err(refused) => error = Some(sentence(&refused)),
            }
        }
        let mut plan = Vec::new();
        let found = match has_target {
            true => visitor.read(&membership, DEPLOY, json!({ "dryRun": true })).await,
            false => Ok(Value::Null),
        };
        match found {
            Ok(Value::Null) => {}
            Ok(found) => {
                for (name, title) in DEPLOY_PARTS {
                    let part = found.get(*name).unwrap_or(&Value::Null);
                    let paths = items(part, "paths").iter().filter_map(Value::as_str).map(visible_line);
                    let kept = items(part, "files").iter();
                    let kept = kept.map(|file| visible_line(&format!("{}: {}", text(file, "path"), text(file, "why"))));
                    plan.push(DeployPart::of(title, number(part, "total").unwrap_or(0), paths.chain(kept).collect()));
                }
            }
            // What the tool says then is for an agent.
            Err(why) if why.kind == ErrorKind::NotFound => has_target = false,
            Err(why) => error = error.or(Some(sentence(&why))),
        }
        let deploys = match &membership.project.work {
            Some(work) => work.deploys().list(visitor.by()).await?,
            None => Vec::new(),
        };
        let history = deploys.iter().take(HISTORY_MAX).map(|deploy| HistoryLine::of(&visitor, &membership, deploy));
        let is_something = plan.iter().take(DEPLOY_DEEDS).any(|part| part.total > 0);
        let shown = DeployPage {
            place: place(&visitor, &membership),
            address: membership.path(SECTION),
            audit: format!("{}?tool={DEPLOY}", membership.path("audit")),
            error,
            has_target,
            plan,
            can_ask: membership.role <= Role::Editor && is_something,
            is_something,
            history: history.collect(),
            undo: deploys.iter().any(|deploy| deploy.state == "done").then(|| membership.path("deploy/undo")),
        };
        Ok(page(StatusCode::OK, &shown))
    })
}

/// What taking the newest deploy back would do. The button does exactly that.
fn undo(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let (work, by) = (membership.work()?.deploys(), visitor.by());
        let mut error = None;
        if let Some(form) = &wanted.form {
            let digest = form.get("digest").map(String::as_str).unwrap_or_default();
            let recent = visitor.need_recent("This changes files outside the workspace, and you signed in a while ago");
            let undone = match recent {
                Ok(()) => work.undo(by, digest).await,
                Err(refused) => Err(refused),
            };
            match undone {
                Ok(()) => return Ok(see_done(&membership.path(SECTION), Done::DeployTakenBack)),
                Err(refused) if refused.kind == ErrorKind::Internal => return Err(refused),
                Err(refused) => error = Some(refused),
            }
        }
        let plan = work.undo_plan(by).await?;
        let status = error.as_ref().map_or(StatusCode::OK, envelope::status);
        let (mut parts, mut conflicts, mut digest) = (Vec::new(), Vec::new(), String::new());
        if let Some(plan) = &plan {
            let DeployUndo { restored, removed, returned, conflicts: changed, .. } = plan;
            for (title, paths) in [
                ("Back as it was", restored),
                ("Removed, because it came with the deploy", removed),
                ("Comes back", returned),
            ] {
                parts.push(DeployPart::of_all(title, paths));
            }
            conflicts = changed.iter().take(PATHS_MAX).map(|conflict| visible_line(conflict)).collect();
            if changed.is_empty() && membership.role <= Role::Editor {
                digest = plan.digest()?;
            }
        }
        let shown = UndoPage {
            place: place(&visitor, &membership),
            address: membership.path("deploy/undo"),
            deploy: membership.path(SECTION),
            error: error.as_ref().map(sentence),
            parts,
            conflicts,
            digest,
        };
        Ok(page(status, &shown))
    })
}
