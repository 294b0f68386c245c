//! The forms that create and change tickets and tasks, by the tools that agents do it with.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use toolhost_contract::{ErrorKind, REDACTED, ToolError};
use toolhost_records::{Kind, RecordId};

use super::super::calls::{Called, can_edit, complain_about, text, texts};
use super::super::done::Done;
use super::super::failure::sentence;
use super::super::forms::{Field, Shape, choice, complain, filled};
use super::super::known::{complain_of_missing, offered};
use super::super::route::{Made, Wanted};
use super::super::visitor::{Membership, Visitor};
use super::super::{PLAN, Place, board, page, see, see_done};
use super::{address, missing, read};
use crate::http::envelope;

#[derive(Template)]
#[template(path = "record_edit.html")]
pub(in super::super) struct EditPage<'a> {
    pub(in super::super) place: Place<'a>,
    pub(in super::super) title: String,
    /// Where the form is sent.
    pub(in super::super) action: String,
    pub(in super::super) back: String,
    pub(in super::super) error: Option<String>,
    /// The version that is changed; empty for a new record.
    pub(in super::super) version: String,
    pub(in super::super) fields: Vec<Field>,
}

/// What a form is about.
struct About {
    kind: Kind,
    /// `None`: it is to be created.
    id: Option<RecordId>,
}

/// Fields that hold a text in each line.
const LISTS: &[&str] = &["acceptanceCriteria", "dependencies", "filesToCreate", "labels"];

pub(super) fn new_ticket(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move { answer(&visitor, &wanted, About { kind: Kind::Ticket, id: None }).await })
}

pub(super) fn new_task(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move { answer(&visitor, &wanted, About { kind: Kind::Task, id: None }).await })
}

pub(in super::super) fn edit_work(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let id = RecordId::parse(wanted.part("record")).filter(|id| matches!(id.kind, Kind::Ticket | Kind::Task));
        // Membership comes first: others are not told which kinds of records have forms.
        let Some(id) = id else {
            visitor.membership(wanted.part("project")).await?;
            return Err(missing());
        };
        answer(&visitor, &wanted, About { kind: id.kind, id: Some(id) }).await
    })
}

/// What the form of tickets, or of tasks, calls a field.
pub(super) fn label(kind: Kind, field: &str) -> Option<&'static str> {
    let fields = matches!(kind, Kind::Ticket | Kind::Task).then(|| fields(kind)).unwrap_or_default();
    fields.iter().find(|known| known.name == field).map(|known| known.label)
}

fn fields(kind: Kind) -> Vec<Field> {
    let mut fields = vec![
        Field::new("title", "Title", Shape::Line).hint("What is asked for."),
        Field::new("description", "Description", Shape::Text(6)).hint("What for, and what to mind."),
    ];
    if kind == Kind::Ticket {
        fields.extend([
            Field::new("type", "Type", choice(None, board::TYPES)).value("feature"),
            Field::new("priority", "Priority", choice(None, board::PRIORITIES)).value("medium"),
            Field::new("acceptanceCriteria", "Acceptance criteria", Shape::Text(4))
                .hint("One in each line: what must hold before it is done."),
            Field::new("assignee", "Assignee", Shape::Line).hint("A persona or a person."),
        ]);
    } else {
        fields.extend([
            Field::new("featureId", "Feature", Shape::Line).hint("Such as FEAT-001. A task of a plan has one."),
            Field::new("componentId", "Component", Shape::Line).hint("Such as COMP-001. A task of a plan has one."),
            Field::new("acceptanceCriteria", "Acceptance criteria", Shape::Text(4))
                .hint("One in each line: how one sees that it is done."),
            Field::new("dependencies", "Waits for", Shape::Text(3))
                .hint("One in each line: tasks that must be completed before, such as TASK-001."),
            Field::new("estimatedEffort", "Effort", Shape::Line).hint("Such as 3h, 2 days or 1 week."),
            Field::new("filesToCreate", "Files", Shape::Text(2)).hint("One path in each line: files it will make."),
            Field::new("labels", "Labels", Shape::Text(2)).hint("One in each line: words to find it by."),
        ]);
    }
    fields
}

/// The fields with what the record has.
pub(in super::super) fn fill_from(mut fields: Vec<Field>, record: &Value) -> Vec<Field> {
    for field in &mut fields {
        field.value = match record.get(field.name) {
            Some(Value::Array(items)) if items.iter().any(Value::is_object) => {
                items.iter().map(|one| text(one, "text")).collect::<Vec<_>>().join("\n")
            }
            Some(Value::Array(_)) => texts(record, field.name).collect::<Vec<_>>().join("\n"),
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        };
    }
    fields
}

/// What a form of a record that is there changes: its fields with what was typed, of which only these differ from what the record shows.
pub(in super::super) struct Changed {
    pub(in super::super) fields: Vec<Field>,
    pub(in super::super) names: BTreeSet<&'static str>,
    /// What is wrong with the form as a whole, or with its fields.
    pub(in super::super) error: Option<ToolError>,
}

impl Changed {
    /// `found`: the record as it is now. A field that was sent as it is shown stays as it is kept: a secret in it is masked here.
    pub(in super::super) fn of(fields: Vec<Field>, form: &BTreeMap<String, String>, found: &Value) -> Self {
        let blank = fields.iter().map(|field| Field::new(field.name, field.label, Shape::Line)).collect();
        let shown = fill_from(blank, found);
        let mut fields = filled(fields, form);
        let (mut names, mut error) = (BTreeSet::new(), None);
        for (field, shown) in fields.iter_mut().zip(&shown) {
            if !form.contains_key(field.name) || field.value.trim() == shown.value.trim() {
                continue;
            }
            if field.value.contains(REDACTED) {
                let why = "A secret of it is masked here: leave the field as it was, or write all of it anew.";
                field.error = Some(why.to_owned());
                error =
                    Some(ToolError::new(ErrorKind::Validation, "A masked secret would take the place of the secret"));
            }
            names.insert(field.name);
        }
        let version = form.get("version").and_then(|version| version.trim().parse::<i64>().ok());
        if version.is_none() || version != found["version"].as_i64() {
            let other = ToolError::new(
                ErrorKind::Conflict,
                "The record is another by now than the one this form was opened on",
            );
            error = Some(other.hint("Nothing was changed. Open the form again, and make your change there."));
        } else if names.is_empty() {
            error = Some(ToolError::new(ErrorKind::Validation, "Nothing is different"));
        }
        Self { fields, names, error }
    }
}

async fn answer(visitor: &Visitor<'_>, wanted: &Wanted, about: About) -> Result<Response<Body>, ToolError> {
    let membership = visitor.membership(wanted.part("project")).await?;
    if !can_edit(&membership) {
        let error = ToolError::new(ErrorKind::Permission, "You are a viewer of this project: you may look.");
        return Err(error.hint("Its editors and owners change records."));
    }
    let Some(form) = &wanted.form else {
        let Some(id) = about.id else {
            let fields = filled(fields(about.kind), &wanted.query);
            return Ok(shown(visitor, &membership, &about, StatusCode::OK, (fields, String::new()), None).await);
        };
        let record = Value::Object(read(visitor, &membership, id).await?);
        let (fields, version) = (fill_from(fields(about.kind), &record), record["version"].to_string());
        return Ok(shown(visitor, &membership, &about, StatusCode::OK, (fields, version), None).await);
    };
    let version = form.get("version").cloned().unwrap_or_default();
    let mut fields = filled(fields(about.kind), form);
    if form.get("title").map_or(about.id.is_none(), |title| title.trim().is_empty()) {
        complain(&mut fields, "title", "Give it a title.");
        return Ok(shown(visitor, &membership, &about, StatusCode::BAD_REQUEST, (fields, version), None).await);
    }
    if complain_of_missing(visitor, &membership, about.kind, &mut fields).await? {
        return Ok(shown(visitor, &membership, &about, StatusCode::BAD_REQUEST, (fields, version), None).await);
    }
    let mut sent: Vec<&Field> = fields.iter().collect();
    if let Some(id) = about.id {
        let found = Value::Object(read(visitor, &membership, id).await?);
        let changed = Changed::of(self::fields(about.kind), form, &found);
        if let Some(error) = changed.error {
            let (status, fields) = (envelope::status(&error), changed.fields);
            let error = fields.iter().all(|field| field.error.is_none()).then(|| sentence(&error));
            return Ok(shown(visitor, &membership, &about, status, (fields, version), error).await);
        }
        sent.retain(|field| changed.names.contains(field.name));
    }
    let (tool, arguments) = call(&about, form, &sent);
    match visitor.call(&membership, tool, arguments).await {
        Ok(Called::Done(record)) => {
            let done = if about.id.is_some() { Done::Saved } else { Done::Created };
            Ok(see_done(&address(&membership, text(&record, "id")), done))
        }
        Ok(Called::Waits(address)) => Ok(see(&address)),
        Err(error) if error.kind == ErrorKind::Internal => Err(error),
        Err(error) => {
            let is_beside = complain_about(&mut fields, &error);
            let status = envelope::status(&error);
            let error = (!is_beside).then(|| sentence(&error));
            Ok(shown(visitor, &membership, &about, status, (fields, version), error).await)
        }
    }
}

/// The call that does what a form says.
fn call(about: &About, form: &BTreeMap<String, String>, fields: &[&Field]) -> (&'static str, Value) {
    let mut arguments = json!({});
    for field in fields {
        let value = field.value.trim();
        if LISTS.contains(&field.name) {
            let lines = value.lines().map(str::trim).filter(|line| !line.is_empty());
            arguments[field.name] = lines.collect::<Vec<_>>().into();
        } else if !value.is_empty() || (about.id.is_some() && !matches!(field.name, "type" | "priority")) {
            // An empty text clears a field of a record that has one.
            arguments[field.name] = value.into();
        }
    }
    if let Some(version) = form.get("version").and_then(|version| version.parse::<i64>().ok()) {
        // The tool refuses the change if somebody else has changed the record since the form was opened.
        arguments["expectedVersion"] = version.into();
    }
    match (about.kind, about.id) {
        (Kind::Ticket, None) => ("ticket.create", arguments),
        (Kind::Ticket, Some(id)) => {
            arguments["ticketId"] = id.to_string().into();
            ("ticket.update", arguments)
        }
        (_, None) => ("task.create", arguments),
        (_, Some(id)) => {
            arguments["id"] = id.to_string().into();
            ("task.update", arguments)
        }
    }
}

async fn shown(
    visitor: &Visitor<'_>,
    membership: &Membership,
    about: &About,
    status: StatusCode,
    (fields, version): (Vec<Field>, String),
    error: Option<String>,
) -> Response<Body> {
    let (section, word) = match about.kind {
        Kind::Ticket => (board::PART, "ticket"),
        _ => (PLAN, "task"),
    };
    let (title, action, back) = match about.id {
        Some(id) => {
            let record = address(membership, &id.to_string());
            (format!("Edit {id}"), format!("{record}/edit"), record)
        }
        None if about.kind == Kind::Ticket => {
            (format!("Create a {word}"), membership.path("board/new"), membership.path("board"))
        }
        None => (format!("Create a {word}"), membership.path("plan/tasks/new"), membership.path("plan/tasks")),
    };
    let fields = offered(visitor, membership, about.kind, fields).await;
    page(status, &EditPage { place: membership.place(visitor, section), title, action, back, error, version, fields })
}
