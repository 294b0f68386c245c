//! The forms that create and change records of the plan, by the tools that agents do it with.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_records::RecordId;

use super::calls::{Called, can_edit, complain_about, text};
use super::done::Done;
use super::failure::sentence;
use super::forms::{Field, complain, filled};
use super::known::{complain_of_missing, offered};
use super::plan_fields::{CHANGED, KINDS, Kind, fields};
use super::record::{Changed, EditPage, address, edit_work, fill_from, read};
use super::route::{Made, Route, Wanted};
use super::visitor::{Membership, Visitor};
use super::{PLAN, page, see, see_done};
use crate::http::envelope;

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/plan/new/{kind}", name: "record_create", takes_forms: true, make: new },
    Route { path: "/projects/{project}/records/{record}/edit", name: "record_edit", takes_forms: true, make: edit },
];

/// Fields that hold a text in each line.
const LISTS: &[&str] = &[
    "acceptanceCriteria",
    "requirementIds",
    "completionCriteria",
    "dependencies",
    "features",
    "responsibilities",
    "relatedFeatures",
];
/// Fields that are a number.
const NUMBERS: &[&str] = &["iteration", "base"];
/// The lists that a tool wants even where they are empty.
const LISTS_NEEDED: &[&str] = &["acceptanceCriteria", "requirementIds", "completionCriteria", "responsibilities"];

/// The forms of a page of the plan: where each is, and what it is called.
pub(super) fn buttons(membership: &Membership, list: &str) -> Vec<(String, &'static str)> {
    if !can_edit(membership) {
        return Vec::new();
    }
    let of_list = KINDS.iter().filter(|kind| kind.list == list);
    of_list.map(|kind| (membership.path(&format!("plan/new/{}", kind.word)), kind.title)).collect()
}

fn new(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let missing = || ToolError::new(ErrorKind::NotFound, "Records of this kind are not created here.");
        let kind = KINDS.iter().find(|kind| kind.word == wanted.part("kind")).ok_or_else(missing)?;
        if !can_edit(&membership) {
            let error = ToolError::new(ErrorKind::Permission, "You are a viewer of this project: you may look.");
            return Err(error.hint("Its editors and owners create records."));
        }
        let Some(form) = &wanted.form else {
            let fields = filled(fields(kind), &wanted.query);
            return Ok(shown(&visitor, &membership, kind, StatusCode::OK, fields, None).await);
        };
        let mut fields = filled(fields(kind), form);
        let made = arguments(&mut fields, None);
        let record = CHANGED.iter().find(|(_, word, _)| *word == kind.word).map(|(record, ..)| *record);
        let is_one_missing = match record {
            Some(record) => complain_of_missing(&visitor, &membership, record, &mut fields).await?,
            None => false,
        };
        let arguments = match made.filter(|_| !is_one_missing) {
            Some(arguments) => arguments,
            None => return Ok(shown(&visitor, &membership, kind, StatusCode::BAD_REQUEST, fields, None).await),
        };
        match visitor.call(&membership, kind.tool, arguments).await {
            Ok(Called::Done(record)) => Ok(see_done(&made_at(&membership, kind, &record), Done::Created)),
            Ok(Called::Waits(address)) => Ok(see(&address)),
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => {
                let is_beside = complain_about(&mut fields, &error);
                let error_all = (!is_beside).then(|| sentence(&error));
                Ok(shown(&visitor, &membership, kind, envelope::status(&error), fields, error_all).await)
            }
        }
    })
}

fn edit(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let id = RecordId::parse(wanted.part("record"));
        match id.filter(|id| CHANGED.iter().any(|(kind, ..)| *kind == id.kind)) {
            Some(id) => change(&visitor, &wanted, id).await,
            // Tickets and tasks have forms of their own.
            None => edit_work(visitor, wanted).await,
        }
    })
}

/// The form of a record that is there.
async fn change(visitor: &Visitor<'_>, wanted: &Wanted, id: RecordId) -> Result<Response<Body>, ToolError> {
    let membership = visitor.membership(wanted.part("project")).await?;
    let missing = || ToolError::new(ErrorKind::NotFound, "Records of this kind are not changed here.");
    let (_, word, tool) = *CHANGED.iter().find(|(kind, ..)| *kind == id.kind).ok_or_else(missing)?;
    let kind = KINDS.iter().find(|kind| kind.word == word).ok_or_else(missing)?;
    if !can_edit(&membership) {
        let error = ToolError::new(ErrorKind::Permission, "You are a viewer of this project: you may look.");
        return Err(error.hint("Its editors and owners change records."));
    }
    let record = address(&membership, &id.to_string());
    let edit = async |fields, version: String, error| EditPage {
        place: membership.place(visitor, PLAN),
        title: format!("Edit {id}"),
        action: format!("{record}/edit"),
        back: record.clone(),
        error,
        version,
        fields: offered(visitor, &membership, id.kind, fields).await,
    };
    // A record stays in its iteration.
    let fields = || fields(kind).into_iter().filter(|field| field.name != "iteration").collect::<Vec<_>>();
    let Some(form) = &wanted.form else {
        let found = Value::Object(read(visitor, &membership, id).await?);
        let version = found["version"].to_string();
        return Ok(page(StatusCode::OK, &edit(fill_from(fields(), &found), version, None).await));
    };
    let version = form.get("version").cloned().unwrap_or_default();
    let found = Value::Object(read(visitor, &membership, id).await?);
    let Changed { mut fields, names, error } = Changed::of(fields(), form, &found);
    if let Some(error) = error {
        let is_beside = fields.iter().any(|field| field.error.is_some());
        let above = (!is_beside).then(|| sentence(&error));
        return Ok(page(envelope::status(&error), &edit(fields, version, above).await));
    }
    let made = arguments(&mut fields, Some(&names));
    let is_one_missing = complain_of_missing(visitor, &membership, id.kind, &mut fields).await?;
    let Some(mut arguments) = made.filter(|_| !is_one_missing) else {
        return Ok(page(StatusCode::BAD_REQUEST, &edit(fields, version, None).await));
    };
    arguments["id"] = id.to_string().into();
    if let Ok(version) = version.parse::<i64>() {
        // The tool refuses the change if somebody else has changed the record since the form was opened.
        arguments["expectedVersion"] = version.into();
    }
    match visitor.call(&membership, tool, arguments).await {
        Ok(Called::Done(_)) => Ok(see_done(&record, Done::Saved)),
        Ok(Called::Waits(address)) => Ok(see(&address)),
        Err(error) if matches!(error.kind, ErrorKind::Internal | ErrorKind::NotFound) => Err(error),
        Err(error) => {
            let is_beside = complain_about(&mut fields, &error);
            let error_all = (!is_beside).then(|| sentence(&error));
            Ok(page(envelope::status(&error), &edit(fields, version, error_all).await))
        }
    }
}

/// The page of a record that was created, or the list that it stands in.
fn made_at(membership: &Membership, kind: &Kind, record: &Value) -> String {
    let id = RecordId::parse(text(record, "id")).map(|id| id.to_string());
    id.filter(|_| matches!(kind.list, "plan" | "plan/features"))
        .map_or_else(|| membership.path(kind.list), |id| address(membership, &id))
}

/// What the form asks for; of a record that is there, of the fields that are `changed`. `None`: something is wrong with it, which
/// stands beside its fields.
fn arguments(fields: &mut [Field], changed: Option<&BTreeSet<&'static str>>) -> Option<Value> {
    let (mut arguments, mut wrong) = (json!({}), BTreeMap::new());
    let is_new = changed.is_none();
    let sent = fields.iter().filter(|field| changed.is_none_or(|names| names.contains(field.name)));
    for field in sent {
        let value = field.value.trim();
        if LISTS.contains(&field.name) {
            let lines: Vec<&str> = value.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            if !lines.is_empty() || !is_new || LISTS_NEEDED.contains(&field.name) {
                arguments[field.name] = lines.into();
            }
        } else if value.is_empty() {
            match field.name {
                _ if field.is_needed => drop(wrong.insert(field.name, "This is needed.")),
                "description" => arguments[field.name] = "".into(),
                // Of a record that is there, an empty text clears the field.
                _ if !is_new => arguments[field.name] = "".into(),
                _ => {}
            }
        } else if NUMBERS.contains(&field.name) {
            match value.parse::<u32>() {
                Ok(number) => arguments[field.name] = number.into(),
                Err(_) => drop(wrong.insert(field.name, "This is a number, 0 or above.")),
            }
        } else {
            arguments[field.name] = value.into();
        }
    }
    let value = |name: &str| fields.iter().find(|field| field.name == name).map(|field| field.value.trim());
    if value("componentType") == Some("other") && value("otherType") == Some("") {
        wrong.insert("otherType", "Say what it is.");
    }
    for (name, why) in &wrong {
        complain(fields, name, why);
    }
    wrong.is_empty().then_some(arguments)
}

async fn shown(
    visitor: &Visitor<'_>,
    membership: &Membership,
    kind: &Kind,
    status: StatusCode,
    fields: Vec<Field>,
    error: Option<String>,
) -> Response<Body> {
    let new = EditPage {
        place: membership.place(visitor, PLAN),
        title: kind.title.to_owned(),
        action: membership.path(&format!("plan/new/{}", kind.word)),
        back: membership.path(kind.list),
        error,
        // A new record has none.
        version: String::new(),
        fields: match CHANGED.iter().find(|(_, word, _)| *word == kind.word) {
            Some((record, ..)) => offered(visitor, membership, *record, fields).await,
            // Records of other kinds name none.
            None => fields,
        },
    };
    page(status, &new)
}
