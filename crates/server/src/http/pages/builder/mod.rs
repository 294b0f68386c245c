//! The builder: the workflow package of a project, what agents propose to change in it, and the assistant beside it.

mod agent;
mod assistant;
mod change;
mod changes;
mod edit;
mod layout;
mod new;
mod object;
mod package;
mod picture;
mod remove;
mod text;

pub(super) use agent::ROUTES as AGENT_ROUTES;
pub(super) use assistant::ROUTES as ASSISTANT_ROUTES;
pub(super) use change::ROUTES as CHANGE_ROUTES;
pub(super) use changes::ROUTES as CHANGES_ROUTES;
pub(super) use changes::{change_path, status_words};
pub(super) use edit::{IMPORT, ROUTES as EDIT_ROUTES, UPLOAD_BYTES_MAX};
pub(super) use new::ROUTES as NEW_ROUTES;
pub(super) use object::ROUTES as OBJECT_ROUTES;
pub(super) use package::ROUTES as PACKAGE_ROUTES;

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use toolhost_builder::Package;
use toolhost_builder::packages::{ChangeSetLine, Seen};
use toolhost_builder::refs::Object;
use toolhost_contract::{ErrorKind, ToolError, visible_line};

use super::failure::{begun_large, next_step};
use super::text::in_one_line;
use super::visitor::{Membership, Visitor};
use super::{Place, Section};
use crate::http::{WholePackage, Work};

/// The entry of the menu.
pub(super) const SECTION: Section = Section { path: "builder", title: "Builder" };

/// How the sessions begin that hold what people change on pages.
const BY_HAND: &str = "by-hand-";

/// Findings that explain an error.
const FINDINGS_SAID_MAX: usize = 5;
/// Most items of a list on one page.
const LISTED_MAX: usize = 100;

/// Where the pages of this part are, for the head.
fn place<'a>(visitor: &Visitor<'a>, membership: &'a Membership) -> Place<'a> {
    Place { project: Some(membership), section: SECTION.path, ..visitor.place() }
}

/// What can be done with the project.
fn work(membership: &Membership) -> Result<&dyn Work, ToolError> {
    let missing =
        || ToolError::new(ErrorKind::NotFound, "This server only makes calls: it serves no workflow packages.");
    membership.project.work.as_deref().ok_or_else(missing)
}

/// The package of the project.
async fn whole(visitor: &Visitor<'_>, membership: &Membership) -> Result<Arc<WholePackage>, ToolError> {
    let missing =
        || ToolError::new(ErrorKind::NotFound, "This project has no workflow package.").hint("Its owner imports one.");
    work(membership)?.package(visitor.by()).await?.ok_or_else(missing)
}

/// What a person changes by hand is made on: the package with what they have staged by hand, and not yet applied, over it.
struct ByHand {
    whole: Arc<WholePackage>,
    seen: Option<Seen>,
}

impl ByHand {
    async fn of(visitor: &Visitor<'_>, membership: &Membership) -> Result<Self, ToolError> {
        let whole = whole(visitor, membership).await?;
        let seen = work(membership)?.seen_by(visitor.by(), &session_by_hand(membership)).await?;
        Ok(Self { whole, seen })
    }

    fn package(&self) -> &Package {
        self.seen.as_ref().map_or(&*self.whole.whole, |seen| &seen.package)
    }

    /// The open sets that are counted in: where each is, and its id.
    fn open(&self, membership: &Membership) -> Vec<(String, String)> {
        let sets = self.seen.iter().flat_map(|seen| &seen.sets);
        sets.map(|id| (change_path(membership, id), id.clone())).collect()
    }
}

/// The session that a person's changes by hand are staged in.
fn session_by_hand(membership: &Membership) -> String {
    format!("{BY_HAND}{}", membership.user_id)
}

/// A place, and what it is called.
struct Link {
    href: String,
    name: String,
}

/// A change set in a list, where it stands beside something else.
fn change_link(membership: &Membership, set: &ChangeSetLine) -> Link {
    let name = visible_line(&format!("{} ({}), by {}", set.change_set_id, status_words(&set.status), set.by));
    Link { href: membership.path(&format!("builder/changes/{}", encoded(&set.change_set_id))), name }
}

/// Whether the package has an object, and so a page for it.
fn is_there(package: &Package, object: &Object) -> bool {
    match object {
        Object::Package => true,
        Object::Workflow(id) => package.workflow(id).is_some(),
        Object::Step { workflow, node } => package.workflow(workflow).is_some_and(|found| found.node(node).is_some()),
        Object::Agent(id) => package.agent(id).is_some(),
        Object::Asset(path) => package.has_asset(path),
        Object::Variable { workflow, .. } => package.workflow(workflow).is_some(),
    }
}

/// Calls a tool as the person who looks, and returns its answer.
async fn call(
    visitor: &Visitor<'_>,
    membership: &Membership,
    tool: &str,
    arguments: Value,
) -> Result<Value, ToolError> {
    let outcome = visitor.outcome(membership, tool, arguments).await;
    match outcome.error {
        None => Ok(outcome.data),
        Some(error) => Err(error.into()),
    }
}

/// What went wrong, as a page says it: with its hint, and the findings that explain it.
fn said(error: &ToolError) -> String {
    let findings = error.details.as_ref().and_then(|details| details.get("findings")).and_then(Value::as_array);
    let findings = findings.into_iter().flatten().filter_map(|finding| finding.get("message")?.as_str());
    let findings: String = findings.take(FINDINGS_SAID_MAX).map(|message| format!(" {message}.")).collect();
    let step = next_step(error).map(|step| format!(" {step}")).unwrap_or_default();
    begun_large(&in_one_line(&format!("{}.{findings}{step}", error.message.trim_end_matches('.'))))
}

/// All but what means nothing in an address.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

impl Membership {
    /// Where an object of the package is.
    pub(super) fn object_path(&self, object: &Object) -> String {
        if *object == Object::Package {
            return self.path("builder");
        }
        self.path(&format!("builder/object?name={}", encoded(&object.to_string())))
    }

    /// Where a file of the package is, at a line of it.
    fn file_path(&self, file: &str, line: Option<usize>) -> String {
        let line = line.map(|line| format!("&line={line}#L{line}")).unwrap_or_default();
        self.path(&format!("builder/file?path={}{line}", encoded(file)))
    }
}

/// A page of a long list.
struct Part {
    from: usize,
    /// The address of the next one, without its number.
    next: Option<String>,
}

/// The items of a page, and where the next one is.
fn part<T>(items: Vec<T>, from: Option<&str>, address: &str) -> (Vec<T>, Part) {
    let from = from.and_then(|from| from.parse::<usize>().ok()).unwrap_or(0).min(items.len());
    let is_last = items.len() - from <= LISTED_MAX;
    let mark = if address.contains('?') { '&' } else { '?' };
    let next = (!is_last).then(|| format!("{address}{mark}from={}", from + LISTED_MAX));
    (items.into_iter().skip(from).take(LISTED_MAX).collect(), Part { from, next })
}
