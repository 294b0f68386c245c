//! One record of any kind: its fields, what is said about it, what refers to it, and what it was; and the forms for tickets and tasks.

mod edit;
pub(super) use edit::{Changed, EditPage, edit_work, fill_from};

use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use toolhost_contract::{ErrorKind, ToolError, visible_json};
use toolhost_records::{Kind, RecordId};

use super::calls::{Called, can_edit, listed, text, texts};
use super::done::Done;
use super::failure::sentence;
use super::known::titles;
use super::route::{Made, Route, Wanted};
use super::text::{Shown, TextPage, When, encoded, name, words};
use super::visitor::{Membership, Visitor};
use super::{PLAN, Place, board, page, plan_fields, see, see_done};
use crate::http::envelope;

/// Most of a field on the page of its record; the rest is on a page of its own.
const FIELD_LINES_MAX: usize = 200;
const FIELD_BYTES_MAX: usize = 32 * 1024;
/// Levels of the headings that fields and comments stand below.
const FIELD_LEVEL: usize = 2;
const COMMENT_LEVEL: usize = 3;
/// Most items of a field that is a list.
const ITEMS_MAX: usize = 200;
/// Most of a version.
const VERSION_LINES_MAX: usize = 60;
const VERSION_BYTES_MAX: usize = 6 * 1024;
/// Versions of one page.
const VERSIONS_MAX: i64 = 20;
/// Fields that stand elsewhere on the page.
const ELSEWHERE: &[&str] = &[
    "id",
    "version",
    "iteration",
    "holder",
    "comments",
    "documents",
    "referredBy",
    "createdAtMs",
    "updatedAtMs",
    "title",
    "name",
    "acceptanceCriteria",
];

/// Kinds of records that a person changes by a form.
const WITH_FORM: &[Kind] =
    &[Kind::Ticket, Kind::Task, Kind::Requirement, Kind::Feature, Kind::Milestone, Kind::Component, Kind::Persona];

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/records/{record}", name: "record", takes_forms: true, make: one_record },
    Route { path: "/projects/{project}/board/new", name: "ticket_create", takes_forms: true, make: edit::new_ticket },
    Route { path: "/projects/{project}/plan/tasks/new", name: "task_create", takes_forms: true, make: edit::new_task },
];

#[derive(Template)]
#[template(path = "record.html")]
struct RecordPage<'a> {
    place: Place<'a>,
    address: String,
    id: String,
    kind: &'static str,
    title: String,
    state: String,
    /// States that may follow: the word, and how it is called.
    moves: Vec<(&'static str, String)>,
    /// Short facts in a line each.
    facts: Vec<(&'static str, String)>,
    created: When,
    updated: When,
    criteria: Vec<Criterion>,
    fields: Vec<FieldShown>,
    refers: Vec<Group>,
    comments: Vec<Comment>,
    has_comments: bool,
    versions: Vec<Version>,
    older: Option<i64>,
    can_edit: bool,
    has_form: bool,
    session: Option<String>,
    typed: String,
    error: Option<String>,
    comment_error: Option<String>,
}

struct Criterion {
    number: usize,
    text: String,
    done: bool,
    /// Whether it can be ticked; those of tasks and requirements are only read.
    can_tick: bool,
}

/// A field of a record, by what it holds.
struct FieldShown {
    label: String,
    name: String,
    text: Shown,
    /// Where the text is as it was written; empty where it is so here.
    source: String,
    when: Option<When>,
    items: Vec<Link>,
}

/// Another record, or a text that leads nowhere.
struct Link {
    text: String,
    address: String,
    /// What the other record is called; empty where it is not there.
    title: String,
}

/// Records that refer to this one, by what they are to it.
struct Group {
    label: String,
    links: Vec<Link>,
}

struct Comment {
    author: String,
    when: When,
    text: Shown,
    address: String,
    source: String,
}

struct Version {
    number: i64,
    /// Whether the record is so now.
    is_now: bool,
    change: String,
    by: String,
    why: String,
    when: When,
    content: Shown,
    /// Where its text is, of an artifact; empty for other kinds.
    address: String,
}

/// What somebody tried, to be shown to them again.
#[derive(Default)]
struct Tried {
    typed: String,
    error: Option<String>,
    comment_error: Option<String>,
}

fn missing() -> ToolError {
    ToolError::new(ErrorKind::NotFound, "There is no such record.")
}

/// The address of a record.
pub(super) fn address(membership: &Membership, id: &str) -> String {
    membership.path(&format!("records/{}", encoded(id)))
}

/// A text, with where it leads if it is the id of a record.
fn link(membership: &Membership, text: &str) -> Link {
    let id = RecordId::parse(text).filter(|id| id.to_string() == text);
    Link { text: name(text), address: id.map(|_| address(membership, text)).unwrap_or_default(), title: String::new() }
}

pub(super) fn links<'t>(membership: &Membership, ids: impl Iterator<Item = &'t str>) -> Vec<(String, String)> {
    ids.take(ITEMS_MAX).map(|id| (name(id), address(membership, id))).collect()
}

fn one_record(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let id = RecordId::parse(wanted.part("record")).ok_or_else(missing)?;
        let Some(form) = &wanted.form else {
            return shown(&visitor, &membership, id, &wanted, StatusCode::OK, Tried::default()).await;
        };
        match act(&visitor, &membership, id, form).await {
            Ok(Called::Done(_)) => Ok(see_done(&address(&membership, &id.to_string()), Done::Saved)),
            Ok(Called::Waits(address)) => Ok(see(&address)),
            Err(error) if matches!(error.kind, ErrorKind::Internal | ErrorKind::NotFound) => Err(error),
            Err(error) => {
                let is_comment = form.get("do").is_some_and(|word| word == "comment");
                let message = Some(sentence(&error));
                let (comment_error, error_all) = if is_comment { (message, None) } else { (None, message) };
                let typed = form.get("text").map(|text| text.replace("\r\n", "\n")).unwrap_or_default();
                let tried = Tried { typed, error: error_all, comment_error };
                shown(&visitor, &membership, id, &wanted, envelope::status(&error), tried).await
            }
        }
    })
}

/// Does what a button of the page says.
async fn act(
    visitor: &Visitor<'_>,
    membership: &Membership,
    id: RecordId,
    form: &BTreeMap<String, String>,
) -> Result<Called, ToolError> {
    let field = |name: &str| form.get(name).map(|value| value.trim()).unwrap_or_default();
    let wrong = |message: &str| ToolError::new(ErrorKind::Validation, message);
    let (name, why) = (id.to_string(), field("why"));
    let (tool, mut arguments) = match (field("do"), id.kind) {
        ("comment", Kind::Ticket) => {
            let content = field("text").replace("\r\n", "\n");
            if content.is_empty() {
                return Err(wrong("Write a comment"));
            }
            ("comment.post", json!({ "ticketId": name, "content": content }))
        }
        ("tick" | "untick", Kind::Ticket) => {
            let number: usize = field("number").parse().map_err(|_| wrong("Which criterion is a number"))?;
            let done = field("do") == "tick";
            ("ticket.check_criterion", json!({ "ticketId": name, "number": number, "done": done }))
        }
        ("move", Kind::Ticket) => {
            let arguments = json!({ "ticketId": name, "newState": field("to"), "expectedState": field("from") });
            ("ticket.update_state", arguments)
        }
        ("move", Kind::Task | Kind::Feature) => {
            let tool = if id.kind == Kind::Task { "task.update_status" } else { "feature.update_status" };
            (tool, json!({ "id": name, "newStatus": field("to"), "expectedStatus": field("from") }))
        }
        ("move", Kind::Iteration) => ("iteration.update_status", json!({ "id": name, "newStatus": field("to") })),
        _ => return Err(wrong("This page has no such button")),
    };
    if field("do") == "move" && !why.is_empty() {
        arguments["why"] = why.into();
    }
    visitor.call(membership, tool, arguments).await
}

/// The record, with its comments and documents where it is a ticket.
pub(super) async fn read(
    visitor: &Visitor<'_>,
    membership: &Membership,
    id: RecordId,
) -> Result<Map<String, Value>, ToolError> {
    let (tool, arguments) = match id.kind {
        Kind::Ticket => ("ticket.read", json!({ "ticketId": id.to_string() })),
        _ => ("record.get", json!({ "id": id.to_string() })),
    };
    match visitor.read(membership, tool, arguments).await {
        Ok(Value::Object(record)) => Ok(record),
        Ok(_) => Err(missing()),
        Err(error) if error.kind == ErrorKind::NotFound => Err(missing()),
        Err(error) => Err(error),
    }
}

async fn shown(
    visitor: &Visitor<'_>,
    membership: &Membership,
    id: RecordId,
    wanted: &Wanted,
    status: StatusCode,
    tried: Tried,
) -> Result<Response<Body>, ToolError> {
    let record = read(visitor, membership, id).await?;
    let (section, live) = match id.kind {
        Kind::Ticket => (board::PART, "ticket"),
        Kind::Task => (PLAN, "task"),
        _ => (PLAN, ""),
    };
    let place = Place { live, ..membership.place(visitor, section) };
    let (address, title) = (address(membership, &id.to_string()), title(&record, id));
    if let Some(field) = wanted.asked("field") {
        let text = record.get(field).and_then(Value::as_str).ok_or_else(missing)?;
        let (about, query) = (words(field), format!("field={}&", encoded(field)));
        let back = (address, "The record");
        let whole = TextPage::of(place, (&title, &about), back, query, (text, wanted.asked("part")));
        let whole = whole.or_markdown(text, wanted.asked("view"));
        return Ok(page(StatusCode::OK, &whole));
    }
    let whole = Value::Object(record);
    let mut history = json!({ "id": id.to_string(), "limit": VERSIONS_MAX });
    if let Some(before) = wanted.asked("before").and_then(|before| before.parse::<i64>().ok()).filter(|n| *n > 0) {
        history["before"] = before.into();
    }
    let versions = visitor.read(membership, "record.history", history).await?;
    let versions: Vec<Version> =
        listed(&versions, "versions").0.iter().map(|one| version(visitor, membership, &whole, one)).collect();
    let state = id.kind.machine().map(|machine| text(&whole, machine.field).to_owned()).unwrap_or_default();
    let next = id.kind.machine().map_or(&[][..], |machine| machine.next(&state));
    let at = |field: &str| When::of(visitor, whole.get(field).and_then(Value::as_i64).unwrap_or_default());
    let comments = listed(&whole, "comments").0.iter().map(|one| comment(visitor, membership, one));
    let session = can_edit(membership) && id.kind == Kind::Ticket && membership.project.work.is_some();
    let (mut fields, mut refers) = (fields(visitor, membership, id.kind, &whole), refers(membership, &whole));
    call_by_title(visitor, membership, (&mut fields, &mut refers)).await?;
    Ok(page(
        status,
        &RecordPage {
            place,
            id: id.to_string(),
            kind: id.kind.as_str(),
            moves: next.iter().map(|next| (*next, words(next))).collect(),
            facts: facts(&whole),
            created: at("createdAtMs"),
            updated: at("updatedAtMs"),
            criteria: criteria(&whole, id.kind == Kind::Ticket && can_edit(membership)),
            fields,
            refers,
            comments: comments.collect(),
            has_comments: id.kind == Kind::Ticket,
            older: versions.last().map(|last| last.number).filter(|number| *number > 1),
            versions,
            can_edit: can_edit(membership),
            has_form: can_edit(membership) && WITH_FORM.contains(&id.kind),
            session: session.then(|| membership.path(&format!("sessions/new?ticket={}", encoded(&id.to_string())))),
            typed: tried.typed,
            error: tried.error,
            comment_error: tried.comment_error,
            state,
            title,
            address,
        },
    ))
}

/// Puts what other records are called beside their ids.
async fn call_by_title(
    visitor: &Visitor<'_>,
    membership: &Membership,
    (fields, refers): (&mut [FieldShown], &mut [Group]),
) -> Result<(), ToolError> {
    let lists = fields.iter_mut().map(|field| &mut field.items).chain(refers.iter_mut().map(|group| &mut group.links));
    let links: Vec<&mut Link> = lists.flatten().filter(|link| !link.address.is_empty()).collect();
    let titles = titles(visitor, membership, links.iter().map(|link| &*link.text)).await?;
    for link in links {
        if let Some(title) = titles.get(&link.text) {
            link.title.clone_from(title);
        }
    }
    Ok(())
}

fn title(record: &Map<String, Value>, id: RecordId) -> String {
    let own = ["title", "name"].into_iter().find_map(|field| record.get(field).and_then(Value::as_str));
    own.filter(|own| !own.is_empty()).map_or_else(|| format!("{} {id}", id.kind.as_str()), name)
}

fn facts(record: &Value) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Version", record["version"].to_string())];
    facts.extend(record.get("iteration").map(|number| ("Iteration", number.to_string())));
    facts.extend(record.get("holder").map(|holder| ("Held by", name(text(holder, "name")))));
    facts
}

fn criteria(record: &Value, can_tick: bool) -> Vec<Criterion> {
    let all = listed(record, "acceptanceCriteria").0;
    let one = |(place, one): (usize, &Value)| Criterion {
        number: place + 1,
        text: name(one.as_str().unwrap_or_else(|| text(one, "text"))),
        done: one.get("done").and_then(Value::as_bool).unwrap_or_default(),
        can_tick: can_tick && one.is_object(),
    };
    all.iter().enumerate().take(ITEMS_MAX).map(one).collect()
}

/// What a field is called: as the form of its record calls it, or by its own name in words.
fn label(kind: Kind, field: &str) -> String {
    let of_form = plan_fields::label(kind, field).or_else(|| edit::label(kind, field));
    of_form.map_or_else(|| capitalized(&name(&words(field))), str::to_owned)
}

fn fields(visitor: &Visitor<'_>, membership: &Membership, kind: Kind, record: &Value) -> Vec<FieldShown> {
    let Some(all) = record.as_object() else { return Vec::new() };
    let own = text(record, "id");
    let wanted = all.iter().filter(|(name, value)| {
        let is_empty = value.is_null() || value == &&json!("") || value == &&json!([]) || value == &&json!({});
        !ELSEWHERE.contains(&name.as_str()) && !is_empty
    });
    let shown = wanted.map(|(field, value)| {
        let mut shown = FieldShown {
            label: label(kind, field),
            name: encoded(field),
            text: Shown::default(),
            source: String::new(),
            when: None,
            items: Vec::new(),
        };
        match value {
            Value::Number(at) if field.ends_with("AtMs") => {
                shown.when = Some(When::of(visitor, at.as_i64().unwrap_or_default()));
            }
            Value::String(text) if RecordId::parse(text).is_some() => shown.items = vec![link(membership, text)],
            Value::String(text) => {
                shown.text = Shown::markdown(text, FIELD_LEVEL, FIELD_LINES_MAX, FIELD_BYTES_MAX);
                shown.source = shown.text.source_of(&format!("{}?field={}", address(membership, own), shown.name));
            }
            Value::Array(items) if items.iter().all(Value::is_string) => {
                let texts = items.iter().filter_map(Value::as_str).take(ITEMS_MAX);
                shown.items = texts.map(|text| link(membership, text)).collect();
            }
            other => {
                let json = visible_json(&serde_json::to_string_pretty(other).unwrap_or_default());
                shown.text = Shown::of(&json, FIELD_LINES_MAX, FIELD_BYTES_MAX);
            }
        }
        shown
    });
    shown.collect()
}

/// What refers to the record, a group for each kind. A ticket is told its documents instead; its comments stand on its page.
fn refers(membership: &Membership, record: &Value) -> Vec<Group> {
    let documents = listed(record, "documents").0.iter().map(|paper| text(paper, "id"));
    let mut kinds: BTreeMap<Kind, Vec<Link>> = BTreeMap::new();
    for id in texts(record, "referredBy").chain(documents).take(ITEMS_MAX) {
        if let Some(known) = RecordId::parse(id) {
            kinds.entry(known.kind).or_default().push(link(membership, id));
        }
    }
    kinds.into_iter().map(|(kind, links)| Group { label: plural(kind), links }).collect()
}

/// What several records of a kind are called.
fn plural(kind: Kind) -> String {
    capitalized(&words(kind.as_str())) + "s"
}

fn capitalized(words: &str) -> String {
    let mut words = words.to_owned();
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

fn comment(visitor: &Visitor<'_>, membership: &Membership, one: &Value) -> Comment {
    let address = address(membership, text(one, "id"));
    let content = Shown::markdown(text(one, "content"), COMMENT_LEVEL, FIELD_LINES_MAX, FIELD_BYTES_MAX);
    Comment {
        author: format!("{} ({})", name(text(one, "author")), name(text(one, "authorKind"))),
        when: When::of(visitor, one.get("createdAtMs").and_then(Value::as_i64).unwrap_or_default()),
        source: content.source_of(&format!("{address}?field=content")),
        text: content,
        address,
    }
}

fn version(visitor: &Visitor<'_>, membership: &Membership, record: &Value, one: &Value) -> Version {
    let content = visible_json(&serde_json::to_string_pretty(&one["content"]).unwrap_or_default());
    let number = one.get("version").and_then(Value::as_i64).unwrap_or_default();
    let is_artifact = RecordId::parse(text(record, "id")).is_some_and(|id| id.kind == Kind::Artifact);
    let kind = encoded(text(&one["content"], "kind"));
    let of = record["iteration"].as_i64().unwrap_or_default();
    let path = || membership.path(&format!("plan/artifacts/{kind}?version={number}&iteration={of}"));
    Version {
        number,
        is_now: record["version"].as_i64() == Some(number),
        change: name(text(one, "change")),
        by: name(text(one, "by")),
        why: name(text(one, "why")),
        when: When::of(visitor, one.get("atMs").and_then(Value::as_i64).unwrap_or_default()),
        content: Shown::of(&content, VERSION_LINES_MAX, VERSION_BYTES_MAX),
        address: if is_artifact { path() } else { String::new() },
    }
}
