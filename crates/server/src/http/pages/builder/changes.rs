//! Change sets: their list, and what has become of the package.

use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::json;
use toolhost_builder::packages::{ChangeSetLine, Deed};
use toolhost_contract::{ErrorKind, ToolError, visible_line};
use toolhost_store::Role;

use super::super::route::{Made, Route, Wanted};
use super::super::text::When;
use super::super::visitor::{Membership, Visitor};
use super::super::{Place, page, see};
use super::package::counted;
use super::{Part, call, encoded, part, place, said, work};
use crate::http::envelope;

/// The pages of this file.
pub(in super::super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/builder/changes", name: "builder-changes", takes_forms: false, make: list },
    Route {
        path: "/projects/{project}/builder/history",
        name: "builder-history",
        takes_forms: true,
        make: the_history,
    },
];

#[derive(Template)]
#[template(path = "builder/changes.html")]
struct ChangesPage<'a> {
    place: Place<'a>,
    groups: Vec<Group>,
    rows: Vec<Row>,
    part: Part,
}

/// Sets of one state, and how many there are.
struct Group {
    href: String,
    words: String,
    is_this: bool,
}

struct Row {
    href: String,
    id: String,
    status: &'static str,
    by: String,
    objects: String,
    chain: String,
    when: When,
}

/// The states of sets, as a person thinks of them.
const GROUPS: [(&str, &str); 3] = [("open", "open"), ("applied", "applied"), ("rejected", "given up")];

fn group(status: &str) -> &'static str {
    match status {
        "applied" => "applied",
        "rejected" => "rejected",
        _ => "open",
    }
}

/// A state of a set, in words.
pub(super) fn status_words(status: &str) -> &'static str {
    match status {
        "staged" => "open, not yet validated",
        "validated" => "open, valid",
        "blocked" => "blocked: it was made on a set that was given up",
        "applied" => "applied",
        "rejected" => "given up",
        _ => "in an unknown state",
    }
}

/// Objects in a few words.
fn objects_words(objects: &[String]) -> String {
    let shown: Vec<&str> = objects.iter().take(3).map(String::as_str).collect();
    let more = objects.len().saturating_sub(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    visible_line(&format!("{}{more}", shown.join(", ")))
}

pub(super) fn change_path(membership: &Membership, id: &str) -> String {
    membership.path(&format!("builder/changes/{}", encoded(id)))
}

fn row(membership: &Membership, set: &ChangeSetLine) -> Row {
    Row {
        href: change_path(membership, &set.change_set_id),
        id: visible_line(&set.change_set_id),
        status: status_words(&set.status),
        by: visible_line(&set.by),
        objects: objects_words(&set.objects),
        chain: visible_line(&set.based_on.join(", ")),
        when: When::on(set.created_at_ms),
    }
}

fn list(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let sets = work(&membership)?.changes(&visitor.login.user, None, false).await?;
        let asked =
            wanted.asked("state").filter(|state| GROUPS.iter().any(|(name, _)| name == state)).unwrap_or("open");
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        sets.iter().for_each(|set| *counts.entry(group(&set.status)).or_default() += 1);
        let groups = GROUPS.iter().map(|(name, words)| Group {
            href: membership.path(&format!("builder/changes?state={name}")),
            words: format!("{} {words}", counts.get(name).copied().unwrap_or_default()),
            is_this: *name == asked,
        });
        let groups = groups.collect();
        let shown = sets.iter().filter(|set| group(&set.status) == asked).collect();
        let address = membership.path(&format!("builder/changes?state={asked}"));
        let (shown, part) = part(shown, wanted.asked("from"), &address);
        let rows = shown.into_iter().map(|set| row(&membership, set)).collect();
        Ok(page(StatusCode::OK, &ChangesPage { place: place(&visitor, &membership), groups, rows, part }))
    })
}

#[derive(Template)]
#[template(path = "builder/history.html")]
struct HistoryPage<'a> {
    place: Place<'a>,
    address: String,
    error: Option<String>,
    deeds: Vec<DeedRow>,
    part: Part,
}

struct DeedRow {
    moment: i64,
    what: String,
    by: String,
    when: When,
    files: String,
    set: Option<(String, String)>,
    undone: Option<i64>,
    can_undo: bool,
}

fn deed_row(membership: &Membership, deed: &Deed) -> DeedRow {
    let what = match (&*deed.kind, deed.undoes) {
        ("undo", Some(moment)) => format!("took change {moment} back"),
        ("apply", _) => "applied".to_owned(),
        ("import", _) => "imported a package".to_owned(),
        ("new", _) => "began an empty package".to_owned(),
        (other, _) => visible_line(other),
    };
    let files = usize::try_from(deed.file_count).unwrap_or(usize::MAX);
    let named = deed.files.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    DeedRow {
        moment: deed.moment,
        what,
        by: visible_line(&deed.by),
        when: When::on(deed.created_at_ms),
        files: match named.as_str() {
            "" => "all files".to_owned(),
            named => visible_line(&format!("{}: {named}", counted(files, "file"))),
        },
        set: deed.change_set_id.as_ref().map(|id| (change_path(membership, id), visible_line(id))),
        undone: deed.undone_by,
        can_undo: membership.role != Role::Viewer && deed.undone_by.is_none() && !deed.files.is_empty(),
    }
}

fn the_history(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let Some(form) = &wanted.form else {
            return history(&visitor, &membership, wanted.asked("from"), None).await;
        };
        match undo(&visitor, &membership, form).await {
            Ok(()) => Ok(see(&membership.path("builder/history"))),
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => history(&visitor, &membership, None, Some(&error)).await,
        }
    })
}

async fn undo(
    visitor: &Visitor<'_>,
    membership: &Membership,
    form: &BTreeMap<String, String>,
) -> Result<(), ToolError> {
    let moment: Option<i64> = form.get("moment").and_then(|moment| moment.parse().ok());
    let moment = moment.ok_or_else(|| ToolError::new(ErrorKind::Validation, "No change is named"))?;
    call(visitor, membership, "builder.change.undo", json!({ "moment": moment })).await.map(drop)
}

async fn history(
    visitor: &Visitor<'_>,
    membership: &Membership,
    from: Option<&str>,
    error: Option<&ToolError>,
) -> Result<Response<Body>, ToolError> {
    let deeds = work(membership)?.history(&visitor.login.user).await?;
    let address = membership.path("builder/history");
    let (deeds, part) = part(deeds, from, &address);
    let status = error.map_or(StatusCode::OK, envelope::status);
    let deeds = deeds.iter().map(|deed| deed_row(membership, deed)).collect();
    let error = error.map(said);
    Ok(page(status, &HistoryPage { place: place(visitor, membership), address, error, deeds, part }))
}
