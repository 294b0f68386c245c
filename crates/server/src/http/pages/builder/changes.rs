//! Change sets: their list, and what has become of the package.

use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};
use toolhost_builder::change::Change;
use toolhost_builder::packages::{ChangeSetLine, Deed, UndoPlan, UndoneFile};
use toolhost_builder::refs::Object;
use toolhost_contract::{ErrorKind, ToolError, canonical_json, visible_line};
use toolhost_store::Role;

use super::super::done::Done;
use super::super::route::{Made, Route, Wanted};
use super::super::text::When;
use super::super::visitor::{Membership, Visitor};
use super::super::{Place, page, see_done};
use super::package::counted;
use super::picture::Pictures;
use super::text::TextPart;
use super::{LISTED_MAX, Part, call, encoded, is_there, part, place, said, work};
use crate::http::{WholePackage, envelope};

/// Files of a change that are named.
const FILES_NAMED: usize = 5;
/// Later changes of the same files that are named.
const LATER_MAX: usize = 5;

/// The pages of this file.
pub(in super::super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/builder/changes", name: "builder-changes", takes_forms: false, make: list },
    Route {
        path: "/projects/{project}/builder/history",
        name: "builder-history",
        takes_forms: false,
        make: the_history,
    },
    Route {
        path: "/projects/{project}/builder/history/{moment}/undo",
        name: "builder-undo",
        takes_forms: true,
        make: undo,
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
    status: String,
    by: String,
    objects: String,
    chain: String,
    when: When,
}

/// The states of sets, as a person thinks of them.
const GROUPS: [(&str, &str); 3] = [("open", "open"), ("applied", "applied"), ("rejected", "discarded")];

fn group(status: &str) -> &'static str {
    match status {
        "applied" => "applied",
        "rejected" => "rejected",
        _ => "open",
    }
}

/// A state of a set, in words.
pub(in super::super) fn status_words(status: &str) -> &'static str {
    match status {
        "staged" => "open",
        "validated" => "open, valid",
        "blocked" => "blocked: it was made on a set that was discarded",
        "applied" => "applied",
        "rejected" => "discarded",
        _ => "in an unknown state",
    }
}

/// Objects in a few words.
fn objects_words(membership: &Membership, objects: &[String]) -> String {
    let shown: Vec<&str> = objects.iter().take(3).map(String::as_str).collect();
    let more = objects.len().saturating_sub(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    membership.masked_line(&format!("{}{more}", shown.join(", ")))
}

pub(in super::super) fn change_path(membership: &Membership, id: &str) -> String {
    membership.path(&format!("builder/changes/{}", encoded(id)))
}

/// Each change that applied a set, or a part of it, the newest first.
pub(super) fn deeds_of<'a>(deeds: &'a [Deed], set: &'a String) -> impl Iterator<Item = &'a Deed> {
    deeds.iter().filter(move |deed| deed.change_set_id.as_ref() == Some(set) || deed.applied_with.contains(set))
}

/// The change that took another one back, unless that one was taken back, too.
pub(super) fn taken_back_by(deeds: &[Deed], deed: &Deed) -> Option<i64> {
    let undo = deed.undone_by?;
    let stands = |other: &Deed| other.moment == undo && other.undone_by.is_some();
    (!deeds.iter().any(stands)).then_some(undo)
}

fn row(visitor: &Visitor<'_>, membership: &Membership, set: &ChangeSetLine, deeds: &[Deed]) -> Row {
    let undo = deeds_of(deeds, &set.change_set_id).next().and_then(|deed| taken_back_by(deeds, deed));
    let status = status_words(&set.status);
    Row {
        href: change_path(membership, &set.change_set_id),
        id: membership.masked_line(&set.change_set_id),
        status: undo.map_or(status.to_owned(), |undo| format!("{status}, taken back by change {undo}")),
        by: membership.masked_line(&set.by),
        objects: objects_words(membership, &set.objects),
        chain: membership.masked_line(&set.based_on.join(", ")),
        when: When::of(visitor, set.created_at_ms),
    }
}

fn list(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let (work, by) = (work(&membership)?, visitor.by());
        let sets = work.changes(by, None, false).await?;
        let asked =
            wanted.asked("state").filter(|state| GROUPS.iter().any(|(name, _)| name == state)).unwrap_or("open");
        let shows_applied = asked == "applied" && sets.iter().any(|set| group(&set.status) == asked);
        let deeds = if shows_applied { work.history(by).await? } else { Vec::new() };
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
        let rows = shown.into_iter().map(|set| row(&visitor, &membership, set, &deeds)).collect();
        Ok(page(StatusCode::OK, &ChangesPage { place: place(&visitor, &membership), groups, rows, part }))
    })
}

#[derive(Template)]
#[template(path = "builder/history.html")]
struct HistoryPage<'a> {
    place: Place<'a>,
    deeds: Vec<DeedRow>,
    part: Part,
}

struct DeedRow {
    moment: i64,
    what: String,
    by: String,
    when: When,
    /// What became of which objects, each with its address where it is still there; and how many more there are.
    objects: Vec<(String, String, Option<String>)>,
    more: i64,
    files: String,
    set: Option<(String, String)>,
    /// The sets that were applied with it.
    with: Vec<(String, String)>,
    undone: Option<i64>,
    /// The change that took that one back again.
    redone: Option<i64>,
    /// Later changes that stand, of the same files.
    later: Vec<i64>,
    /// The page that shows what an undo would do.
    undo: Option<String>,
}

/// What an object or a file has become, as a history says it.
pub(super) fn became(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Modified => "changed",
        Change::Deleted => "removed",
    }
}

/// The later changes of the same files that stand. One that takes a change back that came later than this one leaves its files as
/// this one made them.
fn later(deed: &Deed, all: &[Deed]) -> Vec<i64> {
    let touches = |other: &&Deed| {
        let is_undo = other.undoes.is_some_and(|undoes| undoes > deed.moment);
        let stands = other.moment > deed.moment && other.undone_by.is_none() && !is_undo;
        stands && other.files.iter().any(|file| deed.files.contains(file))
    };
    all.iter().filter(touches).map(|other| other.moment).take(LATER_MAX).collect()
}

fn deed_row(
    visitor: &Visitor<'_>,
    membership: &Membership,
    deed: &Deed,
    all: &[Deed],
    whole: Option<&WholePackage>,
) -> DeedRow {
    let what = match (&*deed.kind, deed.undoes) {
        ("undo", Some(moment)) => format!("took change {moment} back"),
        ("apply", _) => "applied".to_owned(),
        // The first one puts files where there were none.
        ("import", _) if deed.files.is_empty() => "the package begins".to_owned(),
        ("import", _) => "imported a package".to_owned(),
        ("new", _) => "began an empty package".to_owned(),
        (other, _) => membership.masked_line(other),
    };
    let set = |id: &String| (change_path(membership, id), membership.masked_line(id));
    let files = usize::try_from(deed.file_count).unwrap_or(usize::MAX);
    let named = deed.files.iter().take(FILES_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = files.saturating_sub(FILES_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    DeedRow {
        moment: deed.moment,
        what,
        by: membership.masked_line(&deed.by),
        when: When::of(visitor, deed.created_at_ms),
        objects: deed
            .objects
            .iter()
            .map(|changed| {
                let object = Object::parse(&changed.object);
                let is_there = object.filter(|object| whole.is_some_and(|whole| is_there(&whole.package, object)));
                let shown = membership.masked_line(&changed.object);
                // An address would show what the name masks.
                let is_whole = shown == visible_line(&changed.object);
                let href = is_there.filter(|_| is_whole).map(|object| membership.object_path(&object));
                (became(changed.change).to_owned(), shown, href)
            })
            .collect(),
        more: deed.object_count - i64::try_from(deed.objects.len()).unwrap_or(i64::MAX),
        later: if deed.undone_by.is_none() { later(deed, all) } else { Vec::new() },
        files: match named.as_str() {
            "" => "all files".to_owned(),
            named => membership.masked_line(&format!("{}: {named}{more}", counted(files, "file"))),
        },
        set: deed.change_set_id.as_ref().map(set),
        with: deed.applied_with.iter().map(set).collect(),
        undone: deed.undone_by,
        redone: all.iter().find(|other| Some(other.moment) == deed.undone_by).and_then(|undo| undo.undone_by),
        undo: (membership.role != Role::Viewer && deed.undone_by.is_none() && !deed.files.is_empty())
            .then(|| membership.path(&format!("builder/history/{}/undo", deed.moment))),
    }
}

fn the_history(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        history(&visitor, &membership, wanted.asked("from")).await
    })
}

#[derive(Template)]
#[template(path = "builder/undo.html")]
struct UndoPage<'a> {
    place: Place<'a>,
    address: String,
    history: String,
    moment: i64,
    error: Option<String>,
    files: Vec<UndoneRow>,
    /// Files that are not shown.
    more: usize,
    /// Of what is shown; empty where nothing can be taken back by this person.
    digest: String,
}

struct UndoneRow {
    path: String,
    change: &'static str,
    pictures: Pictures,
    text: TextPart,
    is_cut: bool,
}

/// What an undo of a change would do. The button does exactly that.
fn undo(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let missing = || ToolError::new(ErrorKind::NotFound, "There is no such change.");
        let moment: i64 = wanted.part("moment").parse().map_err(|_| missing())?;
        let mut error = None;
        if let Some(form) = &wanted.form {
            match take_back(&visitor, &membership, moment, form).await {
                Ok(()) => return Ok(see_done(&membership.path("builder/history"), Done::TakenBack)),
                Err(refused) if refused.kind == ErrorKind::Internal => return Err(refused),
                Err(refused) => error = Some(refused),
            }
        }
        let plan = match work(&membership)?.undo_plan(visitor.by(), moment).await {
            Ok(plan) => Some(plan),
            Err(refused) if matches!(refused.kind, ErrorKind::Internal | ErrorKind::NotFound) => return Err(refused),
            Err(refused) => {
                error.get_or_insert(refused);
                None
            }
        };
        let files = plan.as_ref().map_or(&[][..], |plan| &plan.files);
        let can = membership.role != Role::Viewer && !files.is_empty();
        let digest = plan.as_ref().filter(|_| can).map(digest_of).transpose()?.unwrap_or_default();
        let row = |file: &UndoneFile| UndoneRow {
            path: membership.masked_line(&file.path),
            change: match file.change {
                Change::Added => "comes back",
                Change::Modified => "changes",
                Change::Deleted => "goes",
            },
            pictures: Pictures::of(file.graph.as_ref(), file.sides.as_ref(), &file.path),
            text: TextPart::of_diff(&file.unified),
            is_cut: file.is_cut,
        };
        let status = error.as_ref().map_or(StatusCode::OK, envelope::status);
        let shown = UndoPage {
            place: place(&visitor, &membership),
            address: membership.path(&format!("builder/history/{moment}/undo")),
            history: membership.path("builder/history"),
            moment,
            error: error.as_ref().map(said),
            files: files.iter().take(LISTED_MAX).map(row).collect(),
            more: files.len().saturating_sub(LISTED_MAX),
            digest,
        };
        Ok(page(status, &shown))
    })
}

/// Changes with anything that an undo would do.
fn digest_of(plan: &UndoPlan) -> Result<String, ToolError> {
    let text = canonical_json(plan).map_err(ToolError::internal)?;
    Ok(hex::encode(Sha256::digest(text.as_bytes())))
}

async fn take_back(
    visitor: &Visitor<'_>,
    membership: &Membership,
    moment: i64,
    form: &BTreeMap<String, String>,
) -> Result<(), ToolError> {
    let plan = work(membership)?.undo_plan(visitor.by(), moment).await?;
    if form.get("digest") != Some(&digest_of(&plan)?) {
        let message = "An undo would now do something else than the page that you decided on has shown";
        return Err(ToolError::new(ErrorKind::Conflict, message).hint("Look at it again below, then decide."));
    }
    call(visitor, membership, "builder.change.undo", json!({ "moment": moment })).await.map(drop)
}

async fn history(
    visitor: &Visitor<'_>,
    membership: &Membership,
    from: Option<&str>,
) -> Result<Response<Body>, ToolError> {
    let (work, by) = (work(membership)?, visitor.by());
    let all = work.history(by).await?;
    let whole = work.package(by).await?;
    let address = membership.path("builder/history");
    let (deeds, part) = part(all.iter().collect(), from, &address);
    let deeds = deeds.iter().map(|deed| deed_row(visitor, membership, deed, &all, whole.as_deref())).collect();
    Ok(page(StatusCode::OK, &HistoryPage { place: place(visitor, membership), deeds, part }))
}
