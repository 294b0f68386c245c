//! One change set: what it makes of the package, and what a person does with it.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use toolhost_builder::change::{
    self, Change, Clash, ClashPlace, FieldChange, Found, GraphDiff, ObjectDiff, Op, Side as Taken, Stage,
};
use toolhost_builder::packages::{ChangeSetLine, Conflict, Deed};
use toolhost_builder::refs::Object;
use toolhost_contract::{CONFIRM_SOURCE, ErrorCode, ErrorKind, SESSION_MARK, ToolError, visible_json, visible_line};
use toolhost_store::Role;

use super::super::audit::who_made;
use super::super::done::Done;
use super::super::failure::for_people;
use super::super::marks::without_marks;
use super::super::route::{Made, Route, Wanted};
use super::super::split::{SPLIT, Split};
use super::super::text::{When, headline, joined};
use super::super::visitor::{Membership, Visitor};
use super::super::{Place, page, see_done};
use super::changes::{became, change_path, deeds_of, status_words, taken_back_by};
use super::picture::Pictures;
use super::text::{TextPart, split};
use super::{BY_HAND, call, encoded, is_there, place, said, work};
use crate::http::{ChangePreview, WholePackage, envelope};

/// The pages of this file.
pub(in super::super) const ROUTES: &[Route] = &[Route {
    path: "/projects/{project}/builder/changes/{change}",
    name: "builder-change",
    takes_forms: true,
    make: one,
}];

/// Objects, findings and clashes of a set on its page.
const SHOWN_MAX: usize = 100;
/// Characters of one side of a clash, and of a value of a field.
const SIDE_CHARS_MAX: usize = 8000;
const VALUE_CHARS_MAX: usize = 400;

/// The state of a set that was applied.
const APPLIED: &str = "applied";

/// How the codes of warnings begin that tell how much a set changes. What they advise is for a model that made it.
const RISK: &str = "RISK_";

#[derive(Template)]
#[template(path = "builder/change.html")]
struct ChangePage<'a> {
    place: Place<'a>,
    id: String,
    address: String,
    status: &'static str,
    by: String,
    session: Option<(Option<String>, String)>,
    when: When,
    /// The sets that are applied with this one, in their order, and those that were made on this one.
    below: Vec<Link>,
    above: Vec<Link>,
    /// The set that was discarded, and that this one contains text of.
    made_on: Option<Link>,
    is_rejected: bool,
    /// Who gave it up, when, and where the audit has that.
    given_up: Option<(String, When, String)>,
    is_applied: bool,
    /// Each change that applied it or a part of it, the newest first.
    applied: Vec<AppliedRow>,
    /// The goal of the session that staged it.
    purpose: Option<String>,
    error: Option<String>,
    errors: Vec<FoundRow>,
    warnings: Vec<FoundRow>,
    /// What there is to mind though nothing is wrong.
    risks: Vec<String>,
    conflicts: Vec<ClashRow>,
    /// Whether this person may take sides: all clashes are shown.
    can_take_sides: bool,
    operations: Vec<OperationRow>,
    /// Whether some are left out of the preview.
    is_part: bool,
    /// Whether what was chosen cannot be applied: the page shows all of the set, and no button that applies it.
    is_refused: bool,
    objects: Vec<ObjectRow>,
    /// Where the diffs are shown the other way, and what that is called.
    view: (String, &'static str),
    /// Objects that are not shown.
    more: usize,
    deletes: Vec<DeleteRow>,
    digest: String,
    can_apply: bool,
    can_discard: bool,
    is_viewer: bool,
}

/// What became of a set that was applied.
struct AppliedRow {
    /// The number of the change of the package.
    moment: i64,
    by: String,
    when: When,
    /// Where the audit has it.
    href: String,
    /// The operations that it applied, where those are not all of the set.
    part: String,
    /// The sets that were applied with it.
    with: Vec<Link>,
    /// The change that took it back.
    undone_by: Option<i64>,
    /// The change that took that one back again.
    redone_by: Option<i64>,
}

struct Link {
    href: String,
    name: String,
}

struct FoundRow {
    at: String,
    message: String,
    hint: String,
}

/// A place that two have changed.
struct ClashRow {
    /// The name of its field in the form.
    field: String,
    /// The side that was taken when something else was wrong.
    taken: Option<Taken>,
    object: String,
    at: String,
    base: String,
    theirs: String,
    ours: String,
}

struct OperationRow {
    position: i64,
    what: &'static str,
    object: String,
    reason: String,
    is_chosen: bool,
    /// Whether it was not chosen and belongs to what was.
    comes_along: bool,
    /// What became of it, where it is open no longer.
    became: String,
}

/// An object of the tree, with what becomes of it.
struct ObjectRow {
    anchor: String,
    /// Whether it is part of another object of the tree.
    is_inside: bool,
    object: String,
    /// None of an object that is not in the package now: the set makes it, or has deleted it.
    href: Option<String>,
    change: &'static str,
    sign: &'static str,
    counts: String,
    /// The sets below that change it, too; and whether this set itself does.
    also: Vec<Link>,
    is_own: bool,
    files: Vec<FileRow>,
    pictures: Pictures,
    fields: Vec<FieldRow>,
}

struct FileRow {
    path: String,
    text: TextPart,
    /// The same side by side, if that is shown.
    split: Option<Split>,
}

/// A value of the graph that is not as it was.
struct FieldRow {
    at: String,
    /// What became of the whole item; empty where it is a value of one.
    became: &'static str,
    before: String,
    after: String,
}

struct DeleteRow {
    name: String,
    shown: String,
    is_confirmed: bool,
}

fn one(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let id = wanted.part("change").to_owned();
        let Some(form) = &wanted.form else {
            let is_split = wanted.asked("view") == Some(SPLIT);
            let tried = Tried { operations: chosen(&wanted.query), is_split, ..Tried::default() };
            return shown(&visitor, &membership, &id, tried).await;
        };
        match decided(&visitor, &membership, &id, form).await {
            Ok(done) => Ok(see_done(&change_path(&membership, &id), done)),
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => {
                let named = error.details.as_ref().and_then(|details| details.get("deletes")).and_then(Value::as_array);
                let unconfirmed = named.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned));
                let tried = Tried {
                    refused: None,
                    operations: chosen(form),
                    confirmed: confirmed(form),
                    unconfirmed: unconfirmed.collect(),
                    error: Some(error),
                    sides: (0..SHOWN_MAX).filter_map(|number| Some((number, side(form, number)?))).collect(),
                    is_split: false,
                };
                shown(&visitor, &membership, &id, tried).await
            }
        }
    })
}

/// What somebody tried, to be shown to them again.
#[derive(Default)]
struct Tried {
    operations: Option<Vec<i64>>,
    /// Operations that were chosen and cannot be applied without others.
    refused: Option<Vec<i64>>,
    confirmed: BTreeSet<String>,
    /// Deletes that the package named.
    unconfirmed: BTreeSet<String>,
    error: Option<ToolError>,
    sides: BTreeMap<usize, Taken>,
    /// Whether diffs are shown side by side.
    is_split: bool,
}

/// The operations that a form or an address chooses; `None` is all.
fn chosen(fields: &BTreeMap<String, String>) -> Option<Vec<i64>> {
    let numbers = fields.keys().filter_map(|name| name.strip_prefix("op.")?.parse().ok());
    let mut numbers: Vec<i64> = numbers.collect();
    numbers.sort_unstable();
    fields.contains_key("chosen").then_some(numbers)
}

fn confirmed(form: &BTreeMap<String, String>) -> BTreeSet<String> {
    form.keys().filter_map(|name| name.strip_prefix("delete.")).map(str::to_owned).collect()
}

/// Does what a form says.
async fn decided(
    visitor: &Visitor<'_>,
    membership: &Membership,
    id: &str,
    form: &BTreeMap<String, String>,
) -> Result<Done, ToolError> {
    match form.get("decision").map(String::as_str) {
        Some("discard") => {
            let preview = work(membership)?.preview(visitor.by(), id, chosen(form)).await?;
            if form.get("digest") != Some(&preview.digest()?) {
                let message = "The set has changed since the page that you decided on was made";
                return Err(ToolError::new(ErrorKind::Conflict, message).hint("Look at it again below, then decide."));
            }
            call(visitor, membership, "builder.change.discard", json!({ "changeSetId": id })).await?;
            Ok(Done::Discarded)
        }
        Some("sides") => {
            let (work, by, operations) = (work(membership)?, visitor.by(), chosen(form));
            let preview = work.preview(by, id, operations.clone()).await?;
            if form.get("digest") != Some(&preview.digest()?) {
                let message = "It clashes at other places than the page that you chose on has shown";
                return Err(ToolError::new(ErrorKind::Conflict, message).hint("Look at it again below, then choose."));
            }
            work.take_sides(by, id, operations, &sides_of(&preview, form)?).await?;
            Ok(Done::SidesTaken)
        }
        Some("apply") => {
            let operations = chosen(form);
            if operations.as_ref().is_some_and(Vec::is_empty) {
                return Err(none_chosen());
            }
            let preview = work(membership)?.preview(visitor.by(), id, operations.clone()).await?;
            if !matches!(&*preview.change_set.status, "staged" | "validated") {
                let message = format!("The set has another state by now: {}", status_words(&preview.change_set.status));
                return Err(ToolError::new(ErrorKind::Conflict, message).hint("Nothing was applied."));
            }
            if form.get("digest") != Some(&preview.digest()?) {
                let message = "An apply would now do something else than the page that you decided on has shown";
                return Err(ToolError::new(ErrorKind::Conflict, message).hint("Look at it again below, then decide."));
            }
            let confirmed = confirmed(form);
            let missing = deleted(&preview.diff).filter(|name| !confirmed.contains(name)).count();
            if missing > 0 {
                return Err(ToolError::new(ErrorKind::Validation, "Not every object that is deleted is confirmed")
                    .hint("Check each delete that you want."));
            }
            let mut arguments = json!({
                "changeSetId": id, "confirmSource": CONFIRM_SOURCE, "confirmDeletes": confirmed,
            });
            if let Some(operations) = operations {
                arguments["operations"] = json!(operations);
            }
            let applied = call(visitor, membership, "builder.change.apply", arguments).await?;
            let left = applied.get("left").and_then(Value::as_u64).unwrap_or_default();
            Ok(if left > 0 { Done::AppliedInPart } else { Done::Applied })
        }
        _ => Err(ToolError::new(ErrorKind::Validation, "Choose what to do with it")),
    }
}

fn none_chosen() -> ToolError {
    ToolError::new(ErrorKind::Validation, "Choose at least one operation")
}

/// The name of the field of a clash, which is counted over all objects.
fn side_field(number: usize) -> String {
    format!("side.{number}")
}

fn side_word(side: Taken) -> &'static str {
    match side {
        Taken::Theirs => "theirs",
        Taken::Ours => "ours",
    }
}

fn side(form: &BTreeMap<String, String>, number: usize) -> Option<Taken> {
    let said = form.get(&side_field(number))?;
    [Taken::Theirs, Taken::Ours].into_iter().find(|side| side_word(*side) == said)
}

/// The sides that a form takes, of each object.
fn sides_of(
    preview: &ChangePreview,
    form: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Vec<Taken>>, ToolError> {
    let mut number = 0;
    let mut sides = BTreeMap::new();
    for conflict in &preview.conflicts {
        let mut taken = Vec::new();
        for _ in &conflict.clashes {
            let missing = || ToolError::new(ErrorKind::Validation, "Take a side at each clash");
            taken.push(side(form, number).ok_or_else(missing)?);
            number += 1;
        }
        sides.insert(conflict.object.clone(), taken);
    }
    Ok(sides)
}

fn applied(
    visitor: &Visitor<'_>,
    membership: &Membership,
    (deeds, deed): (&[Deed], &Deed),
    set: &ChangeSetLine,
) -> AppliedRow {
    let is_its_own = deed.change_set_id.as_ref() == Some(&set.change_set_id);
    let positions = deed.operations.as_ref().filter(|all| is_its_own && all.len() < set.objects.len());
    let others = deed.change_set_id.iter().chain(&deed.applied_with).filter(|other| **other != set.change_set_id);
    let undo = deeds.iter().find(|other| Some(other.moment) == deed.undone_by);
    AppliedRow {
        moment: deed.moment,
        by: membership.masked_line(&deed.by),
        when: When::of(visitor, deed.created_at_ms),
        href: membership.path(&format!("audit/calls/{}", encoded(&deed.call_id))),
        part: positions.map(|all| numbers(all)).unwrap_or_default(),
        with: others.map(|id| Link { href: change_path(membership, id), name: membership.masked_line(id) }).collect(),
        undone_by: deed.undone_by,
        redone_by: undo.and_then(|undo| undo.undone_by),
    }
}

/// `Operation 2`, `Operations 0, 3`
fn numbers(operations: &[i64]) -> String {
    let all: Vec<String> = operations.iter().map(ToString::to_string).collect();
    format!("Operation{} {}", if all.len() == 1 { "" } else { "s" }, all.join(", "))
}

/// The objects that are gone afterwards.
fn deleted(diff: &[ObjectDiff]) -> impl Iterator<Item = String> {
    diff.iter().filter(|object| object.change == Change::Deleted).map(|object| object.object.to_string())
}

async fn shown(
    visitor: &Visitor<'_>,
    membership: &Membership,
    id: &str,
    tried: Tried,
) -> Result<Response<Body>, ToolError> {
    let (work, by) = (work(membership)?, visitor.by());
    let mut tried = tried;
    if tried.operations.as_ref().is_some_and(Vec::is_empty) {
        tried.error.get_or_insert_with(none_chosen);
        tried.refused = tried.operations.take();
    }
    let preview = match work.preview(by, id, tried.operations.clone()).await {
        // Some operations cannot be applied without others: the page shows all, and says so.
        Err(error) if tried.operations.is_some() && error.kind != ErrorKind::Internal => {
            tried.error.get_or_insert(error);
            tried.refused = tried.operations.take();
            work.preview(by, id, None).await?
        }
        preview => preview?,
    };
    let is_applied = preview.change_set.status == APPLIED;
    let set = &preview.change_set;
    let (sets, whole) = tokio::try_join!(work.changes(by, None, !is_applied), work.package(by))?;
    // What is open may be applied in part.
    let may_have_deeds = is_applied || set.objects.len() > 1;
    let deeds = if may_have_deeds { work.history(by).await? } else { Vec::new() };
    let deeds_of = deeds_of(&deeds, &set.change_set_id).collect();
    let status = tried.error.as_ref().map_or(StatusCode::OK, envelope::status);
    let around = Around { sets: &sets, own: deeds_of, deeds: &deeds, whole: whole.as_deref() };
    let given_up = match &preview.change_set.rejected_by_call {
        Some(call) => who_made(visitor, membership, call).await?,
        None => None,
    };
    let purpose = match set.session_id.starts_with(SESSION_MARK) {
        true => membership.project.sessions.get(membership.project.id, &set.session_id).await.ok(),
        false => None,
    };
    let purpose = purpose.map(|session| headline(membership, &session.title));
    let shown = change_page(visitor, membership, (&preview, &around), &tried)?;
    Ok(page(status, &ChangePage { given_up, purpose, ..shown }))
}

/// Whether what was found is a clash, whose texts stand side by side on the page.
fn is_clash(preview: &ChangePreview, found: &Found) -> bool {
    found.code == ErrorCode::RevisionMismatch.as_str()
        && preview.conflicts.iter().any(|conflict| conflict.object == found.path && !conflict.clashes.is_empty())
}

fn change_page<'a>(
    visitor: &Visitor<'a>,
    membership: &'a Membership,
    (preview, around): (&ChangePreview, &Around<'_>),
    tried: &Tried,
) -> Result<ChangePage<'a>, ToolError> {
    let set = &preview.change_set;
    let link = |id: &String| Link { href: change_path(membership, id), name: membership.masked_line(id) };
    let is_open = matches!(&*set.status, "staged" | "validated");
    let may = membership.role != Role::Viewer;
    let report = preview.report.as_ref().filter(|_| is_open);
    let is_risk = |found: &&Found| found.code.starts_with(RISK);
    let found = |list: fn(&change::Report) -> &Vec<Found>| {
        let all = report.into_iter().flat_map(list).filter(|found| !is_risk(found) && !is_clash(preview, found));
        all.take(SHOWN_MAX).map(|found| FoundRow::of(membership, found)).collect()
    };
    let risks = report.into_iter().flat_map(|report| &report.warnings).filter(is_risk);
    let mut deletes: BTreeSet<String> = deleted(&preview.diff).collect();
    deletes.extend(tried.unconfirmed.iter().cloned());
    let delete = |name: String| DeleteRow {
        shown: membership.masked_line(&name),
        is_confirmed: tried.confirmed.contains(&name),
        name,
    };
    // A set that was staged at a terminal has a name in place of a session. The name of what a page stages tells people nothing.
    let is_named = |id: &&String| !id.is_empty() && !id.starts_with(BY_HAND);
    let session = Some(&set.session_id).filter(is_named).map(|id| {
        let is_agents = id.starts_with(SESSION_MARK);
        let href = is_agents.then(|| membership.path(&format!("builder/sessions/{}", encoded(id))));
        (href, membership.masked_line(id))
    });
    let with: Vec<&String> = around.applied_with(&set.change_set_id);
    let is_below = |id: &String| set.based_on.contains(id) || with.contains(&id);
    let below: Vec<&ChangeSetLine> = around.sets.iter().filter(|other| is_below(&other.change_set_id)).collect();
    Ok(ChangePage {
        place: place(visitor, membership),
        id: membership.masked_line(&set.change_set_id),
        address: change_path(membership, &set.change_set_id),
        status: status_words(&set.status),
        by: membership.masked_line(&set.by),
        session,
        when: When::of(visitor, set.created_at_ms),
        below: set.based_on.iter().map(link).collect(),
        above: around
            .sets
            .iter()
            .filter(|other| other.based_on.contains(&set.change_set_id))
            .map(|other| link(&other.change_set_id))
            .collect(),
        made_on: set.made_on_rejected.as_ref().map(link),
        is_rejected: set.status == "rejected",
        given_up: None,
        is_applied: set.status == APPLIED,
        applied: around.own.iter().map(|deed| applied(visitor, membership, (around.deeds, deed), set)).collect(),
        purpose: None,
        error: tried.error.as_ref().map(said),
        errors: found(|report| &report.errors),
        warnings: found(|report| &report.warnings),
        risks: risks.map(|risk| membership.masked_line(&risk.message)).collect(),
        conflicts: clashes(membership, preview, tried),
        can_take_sides: is_open
            && may
            && preview.conflicts.iter().map(|conflict| conflict.clashes.len()).sum::<usize>() <= SHOWN_MAX,
        operations: operations(membership, (preview, around), tried),
        is_part: tried.operations.is_some(),
        is_refused: tried.refused.is_some(),
        objects: object_rows(membership, (preview, around), &below, tried.is_split),
        view: other_view(tried),
        more: preview.diff.len().saturating_sub(SHOWN_MAX),
        deletes: if is_open && may { deletes.into_iter().map(delete).collect() } else { Vec::new() },
        digest: preview.digest()?,
        can_apply: is_open
            && may
            && tried.refused.is_none()
            && report.is_none_or(|report| report.valid)
            && preview.conflicts.is_empty(),
        can_discard: (is_open || set.status == "blocked") && may,
        is_viewer: !may && is_open,
    })
}

/// The objects that become different, the set's own first. `below`: the sets that it is based on.
fn object_rows(
    membership: &Membership,
    (preview, around): (&ChangePreview, &Around<'_>),
    below: &[&ChangeSetLine],
    is_split: bool,
) -> Vec<ObjectRow> {
    let row = |one: (usize, &ObjectDiff)| {
        let also = below.iter().filter(|line| names(line, &one.1.object)).map(|line| &line.change_set_id);
        let link = |id: &String| Link { href: change_path(membership, id), name: membership.masked_line(id) };
        ObjectRow {
            also: also.map(link).collect(),
            is_own: names(&preview.change_set, &one.1.object),
            ..object_row(membership, &preview.diff, one, (around.whole, is_split))
        }
    };
    own_first(preview).into_iter().take(SHOWN_MAX).enumerate().map(row).collect()
}

/// What stands around a set.
struct Around<'a> {
    sets: &'a [ChangeSetLine],
    /// The changes of the package that applied it or a part of it, the newest first.
    own: Vec<&'a Deed>,
    deeds: &'a [Deed],
    whole: Option<&'a WholePackage>,
}

impl Around<'_> {
    /// The other sets of the change that this one was applied as.
    fn applied_with(&self, id: &String) -> Vec<&String> {
        let all = self.own.first().into_iter().flat_map(|deed| deed.change_set_id.iter().chain(&deed.applied_with));
        all.filter(|other| *other != id).collect()
    }

    /// What became of an operation of the set; empty where it was not applied.
    fn became(&self, set: &ChangeSetLine, position: i64) -> String {
        let is_in = |deed: &&&Deed| {
            let is_its_own = deed.change_set_id.as_ref() == Some(&set.change_set_id);
            !is_its_own || deed.operations.as_ref().is_none_or(|all| all.contains(&position))
        };
        let Some(deed) = self.own.iter().find(is_in) else { return String::new() };
        match taken_back_by(self.deeds, deed) {
            Some(undo) => format!("applied as change {}, taken back by change {undo}", deed.moment),
            None => format!("applied as change {}", deed.moment),
        }
    }
}

/// Whether a set has an operation on an object.
fn names(set: &ChangeSetLine, object: &Object) -> bool {
    let name = object.to_string();
    set.objects.contains(&name)
}

/// What the set itself changes, then what the sets below bring.
fn own_first(preview: &ChangePreview) -> Vec<&ObjectDiff> {
    let (mut own, others): (Vec<_>, Vec<_>) =
        preview.diff.iter().partition(|diff| names(&preview.change_set, &diff.object));
    own.extend(others);
    own
}

/// The address that shows the same operations with their diffs the other way.
fn other_view(tried: &Tried) -> (String, &'static str) {
    let chosen = tried.operations.iter().flatten().map(|position| format!("&op.{position}=1")).collect::<String>();
    let chosen = if tried.operations.is_some() { format!("&chosen=1{chosen}") } else { chosen };
    match tried.is_split {
        true => (format!("?view=unified{chosen}"), "One below the other"),
        false => (format!("?view={SPLIT}{chosen}"), "Side by side"),
    }
}

impl ClashRow {
    fn is_taken(&self, side: &str) -> bool {
        self.taken.is_some_and(|taken| side_word(taken) == side)
    }
}

impl FoundRow {
    fn of(membership: &Membership, found: &Found) -> Self {
        let line = found.line.map(|line| format!(", line {line}")).unwrap_or_default();
        let column = found.column.map(|column| format!(", column {column}")).unwrap_or_default();
        let brings = found.change_set_id.as_ref().map(|id| format!(" ({id} brings it)")).unwrap_or_default();
        let at = if found.file.is_empty() { &found.path } else { &found.file };
        // The other stages are about the package's files, whose fields people write, too.
        let hint = match found.stage {
            Stage::Impact => for_people(&found.hint).unwrap_or_default(),
            _ => found.hint.clone(),
        };
        Self {
            at: membership.masked_line(&format!("{}: {at}{line}{column}{brings}", found.stage.as_str())),
            message: membership.masked_line(&joined(&found.message)),
            hint: membership.masked_line(&hint),
        }
    }
}

/// The clashes of all objects, as far as they are shown.
fn clashes(membership: &Membership, preview: &ChangePreview, tried: &Tried) -> Vec<ClashRow> {
    let all = preview.conflicts.iter().flat_map(|conflict| conflict.clashes.iter().map(move |clash| (conflict, clash)));
    let row = |(number, (conflict, clash)): (usize, (&Conflict, &Clash))| ClashRow {
        field: side_field(number),
        taken: tried.sides.get(&number).copied(),
        object: membership.masked_line(&conflict.object),
        at: match &clash.place {
            ClashPlace::Whole => format!("{}, as a whole", clash.part.as_str()),
            ClashPlace::Lines { first, count } => {
                format!("{}, {count} lines from line {first} on", clash.part.as_str())
            }
            ClashPlace::Pointer { pointer } => membership.masked_line(&format!("{}, {pointer}", clash.part.as_str())),
        },
        base: side_text(clash.base.as_deref()),
        theirs: side_text(clash.current.as_deref()),
        ours: side_text(clash.ours.as_deref()),
    };
    all.take(SHOWN_MAX).enumerate().map(row).collect()
}

fn side_text(text: Option<&str>) -> String {
    text.map_or_else(|| "(nothing)".to_owned(), |text| without_marks(&cut(text, SIDE_CHARS_MAX)))
}

fn cut(text: &str, chars_max: usize) -> String {
    let mut chars = text.chars();
    let mut cut: String = chars.by_ref().take(chars_max).collect();
    if chars.next().is_some() {
        cut.push_str(" […]");
    }
    cut
}

/// The operations of a set, as it was staged.
fn operations(
    membership: &Membership,
    (preview, around): (&ChangePreview, &Around<'_>),
    tried: &Tried,
) -> Vec<OperationRow> {
    let parsed = change::parse(&preview.body).map(|parsed| parsed.set.operations).unwrap_or_default();
    let chosen = tried.refused.as_ref().or(tried.operations.as_ref());
    let all = (0_i64..).zip(&parsed);
    let is_chosen = |position: i64| chosen.is_none_or(|chosen| chosen.contains(&position));
    let is_shown = |object: &Object| preview.diff.iter().any(|diff| diff.object == *object);
    let is_chosen_too =
        |object: &Object| all.clone().any(|(position, operation)| operation.object == *object && is_chosen(position));
    let row = |(position, operation): (i64, &change::Operation)| OperationRow {
        position,
        what: if operation.op == Op::Delete { "delete" } else { "write" },
        object: membership.masked_line(&operation.object.to_string()),
        reason: membership.masked_line(operation.reason.as_deref().unwrap_or_default()),
        is_chosen: is_chosen(position),
        comes_along: tried.operations.is_some() && is_shown(&operation.object) && !is_chosen_too(&operation.object),
        became: around.became(&preview.change_set, position),
    };
    all.clone().map(row).collect()
}

fn object_row(
    membership: &Membership,
    all: &[ObjectDiff],
    (number, diff): (usize, &ObjectDiff),
    (whole, is_split): (Option<&WholePackage>, bool),
) -> ObjectRow {
    let sign = match diff.change {
        Change::Added => "+",
        Change::Modified => "~",
        Change::Deleted => "−",
    };
    let inside = match &diff.object {
        Object::Step { workflow, .. } => Some(Object::Workflow(workflow.clone())),
        _ => None,
    };
    let sum = |count: fn(&change::FileDiff) -> usize| diff.files.iter().map(count).sum::<usize>();
    ObjectRow {
        anchor: format!("object-{number}"),
        is_inside: inside.is_some_and(|inside| all.iter().any(|other| other.object == inside)),
        object: membership.masked_line(&diff.object.to_string()),
        href: whole
            .filter(|whole| is_there(&whole.package, &diff.object))
            // An address would show what the name masks.
            .filter(|_| membership.masked_line(&diff.object.to_string()) == visible_line(&diff.object.to_string()))
            .map(|_| membership.object_path(&diff.object)),
        change: became(diff.change),
        sign,
        also: Vec::new(),
        is_own: true,
        counts: format!("+{} −{}", sum(|file| file.added), sum(|file| file.removed)),
        files: diff
            .files
            .iter()
            .map(|file| FileRow {
                path: membership.masked_line(&format!("{} ({})", file.path, file.part.as_str())),
                text: TextPart::of_diff(&file.unified),
                split: is_split.then(|| split(&file.unified)),
            })
            .collect(),
        pictures: Pictures::of(diff.graph.as_ref(), diff.sides.as_ref(), &diff.object.to_string()),
        fields: diff.graph.as_ref().map(fields).unwrap_or_default(),
    }
}

/// What differs in a graph, value by value.
fn fields(graph: &GraphDiff) -> Vec<FieldRow> {
    let shown = |value: &Option<Value>| match value {
        None => "(nothing)".to_owned(),
        Some(value) => cut(&visible_json(&value.to_string()), VALUE_CHARS_MAX),
    };
    let row = |at: String, field: &FieldChange| FieldRow {
        at: visible_line(&at),
        became: "",
        before: shown(&field.before),
        after: shown(&field.after),
    };
    let of_items = graph.nodes.iter().map(|item| ("node", item)).chain(graph.edges.iter().map(|item| ("edge", item)));
    let mut rows: Vec<FieldRow> = Vec::new();
    for (what, item) in of_items {
        match item.change {
            Change::Modified => {
                rows.extend(item.fields.iter().map(|field| row(format!("{what} {}: {}", item.name, field.name), field)))
            }
            change => rows.push(FieldRow {
                at: visible_line(&format!("{what} {}", item.name)),
                became: became(change),
                before: String::new(),
                after: String::new(),
            }),
        }
    }
    rows.extend(graph.fields.iter().map(|field| row(field.name.clone(), field)));
    rows.truncate(SHOWN_MAX);
    rows
}
