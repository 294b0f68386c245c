//! Records that a form may name: their ids with what they are called, offered beside the field.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use serde_json::json;
use toolhost_contract::ToolError;
use toolhost_records::{Kind, RecordId};

use super::calls::{listed, text};
use super::forms::{Field, Shape};
use super::text::{name, short};
use super::visitor::{Membership, Visitor};

/// Records that are offered for a field.
const KNOWN_MAX: usize = 100;

/// Characters of what another record is called, beside its id.
const TITLE_CHARS_MAX: usize = 60;

/// The kind of records that a field names, in a form about a record of some kind; `None` for a field that names none.
fn named_by(field: &str, form: Kind) -> Option<Kind> {
    match field {
        "requirementIds" => Some(Kind::Requirement),
        "features" | "relatedFeatures" | "featureId" => Some(Kind::Feature),
        "componentId" => Some(Kind::Component),
        "ticket" => Some(Kind::Ticket),
        // What has to be there before is of the same kind.
        "dependencies" => Some(form),
        _ => None,
    }
}

/// The tool that lists records of a kind, the field of its answer that has them, and the field of each that says what it is called.
fn list_of(kind: Kind) -> Option<(&'static str, &'static str, &'static str)> {
    match kind {
        Kind::Requirement => Some(("requirement.list", "requirements", "title")),
        Kind::Feature => Some(("feature.list", "items", "name")),
        Kind::Component => Some(("design.get", "components", "name")),
        Kind::Task => Some(("task.list", "items", "title")),
        Kind::Ticket => Some(("ticket.list", "items", "title")),
        _ => None,
    }
}

/// The fields with the records that each may name. Where these cannot be read, the ids can still be typed.
pub(super) async fn offered(
    visitor: &Visitor<'_>,
    membership: &Membership,
    form: Kind,
    mut fields: Vec<Field>,
) -> Vec<Field> {
    let mut read: BTreeMap<Kind, Vec<(String, String)>> = BTreeMap::new();
    for field in &mut fields {
        let Some(kind) = named_by(field.name, form) else { continue };
        let Some((tool, list, title)) = list_of(kind) else { continue };
        let known = match read.entry(kind) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let limit = if kind == Kind::Component { json!({}) } else { json!({ "limit": KNOWN_MAX }) };
                let found = visitor.read(membership, tool, limit).await.unwrap_or_default();
                let known = listed(&found, list).0.iter().take(KNOWN_MAX);
                new.insert(known.map(|one| (text(one, "id").to_owned(), name(text(one, title)))).collect())
            }
        };
        let known = known.clone();
        match field.shape {
            Shape::Line => field.shape = Shape::Offered(known),
            _ => field.known = known,
        }
    }
    fields
}

/// What records are called, by their ids; texts that are no ids, and records that are not there, are left out.
pub(super) async fn titles<'t>(
    visitor: &Visitor<'_>,
    membership: &Membership,
    ids: impl Iterator<Item = &'t str>,
) -> Result<BTreeMap<String, String>, ToolError> {
    let ids: BTreeSet<RecordId> = ids.filter_map(RecordId::parse).collect();
    let Some(work) = membership.project.work.as_deref().filter(|_| !ids.is_empty()) else { return Ok(BTreeMap::new()) };
    let ids: Vec<RecordId> = ids.into_iter().collect();
    let titles = work.titles(visitor.by(), &ids).await?;
    Ok(titles.into_iter().map(|(id, title)| (id.to_string(), short(&title, TITLE_CHARS_MAX))).collect())
}

/// Says beside each field which records it names that are not there. Where they cannot be looked up, the tool will say so.
pub(super) async fn complain_of_missing(
    visitor: &Visitor<'_>,
    membership: &Membership,
    form: Kind,
    fields: &mut [Field],
) -> Result<bool, ToolError> {
    let Some(work) = membership.project.work.as_deref() else { return Ok(false) };
    let named: Vec<(usize, Kind, String)> = fields
        .iter()
        .enumerate()
        .filter_map(|(index, field)| Some((index, field, named_by(field.name, form)?)))
        .flat_map(|(index, field, kind)| field.value.lines().map(move |line| (index, kind, line.trim().to_owned())))
        .filter(|(.., line)| !line.is_empty())
        .collect();
    let ids: Vec<RecordId> = named.iter().filter_map(|(.., line)| RecordId::parse(line)).collect();
    let found = if ids.is_empty() { BTreeMap::new() } else { work.titles(visitor.by(), &ids).await? };
    let mut missing: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (index, kind, line) in named {
        let is_there = RecordId::parse(&line).is_some_and(|id| id.kind == kind && found.contains_key(&id));
        if !is_there {
            missing.entry(index).or_default().push(name(&line));
        }
    }
    let is_one = !missing.is_empty();
    for (index, lines) in missing {
        fields[index].error = Some(format!("There is no such record: {}.", lines.join(", ")));
    }
    Ok(is_one)
}
