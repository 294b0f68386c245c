//! What a person changes of an agent by hand. What its form does not show stays as it is.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Value, json};
use toolhost_builder::refs::Object;
use toolhost_builder::revision;
use toolhost_contract::{ErrorKind, ToolError, visible_line};
use toolhost_store::Role;

use super::super::forms::{Field, Shape, complain, filled};
use super::super::route::{Made, Route, Wanted};
use super::super::visitor::Visitor;
use super::super::{page, see};
use super::changes::change_path;
use super::edit::{need, stage};
use super::new::NewPage;
use super::{ByHand, encoded, place, said};
use crate::http::envelope;

/// The pages of this file.
pub(in super::super) const ROUTES: &[Route] = &[Route {
    path: "/projects/{project}/builder/agents/{agent}/edit",
    name: "builder-agent-edit",
    takes_forms: true,
    make: edit,
}];

/// The address of the form of an agent, below its project.
pub(super) fn edit_path(id: &str) -> String {
    format!("builder/agents/{}/edit", encoded(id))
}

/// A field of the form: its name, where it stands in the definition, its label and lines, and whether it must say something.
type Part = (&'static str, &'static str, &'static str, u8, bool);

const PARTS: [Part; 9] = [
    ("name", "/metadata/name", "Name", 1, true),
    ("title", "/metadata/title", "Title", 1, true),
    ("icon", "/metadata/icon", "Icon", 1, true),
    ("description", "/metadata/description", "What it is good for", 2, false),
    ("role", "/persona/role", "Role", 3, true),
    ("identity", "/persona/identity", "Identity", 3, true),
    ("style", "/persona/communication_style", "Style", 2, true),
    ("principles", "/persona/principles", "Principles", 5, true),
    ("actions", "/critical_actions", "What it must always do", 4, false),
];
/// Those that are lists: a line of the form is an item.
const LISTS: [&str; 2] = ["principles", "actions"];

/// A part of a definition as the form shows it.
fn shown_part(definition: &Value, pointer: &str) -> String {
    match definition.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn fields(definition: &Value) -> Vec<Field> {
    let field = |(name, pointer, label, rows, _): Part| {
        let shape = if rows > 1 { Shape::Text(rows) } else { Shape::Line };
        let field = Field::new(name, label, shape).value(shown_part(definition, pointer));
        if LISTS.contains(&name) { field.hint("One in each line.") } else { field }
    };
    PARTS.map(field).into()
}

/// The definition with what was typed. Parts that are shown as they were stay as they are.
fn changed(definition: &Value, form: &BTreeMap<String, String>) -> Value {
    let mut changed = definition.clone();
    for (name, pointer, _, _, is_needed) in PARTS {
        let Some(typed) = form.get(name).map(|text| text.trim().replace("\r\n", "\n")) else { continue };
        if typed == shown_part(definition, pointer).trim() {
            continue;
        }
        let lines = || typed.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
        let value = if LISTS.contains(&name) { json!(lines()) } else { json!(typed) };
        // Each part is a field of the definition, or of an object in it.
        let mut names = pointer.trim_start_matches('/').split('/');
        let (Some(first), second) = (names.next(), names.next()) else { continue };
        let (object, field) = match second {
            Some(second) => (&mut changed[first], second),
            None => (&mut changed, first),
        };
        if let (Value::Object(fields), true) = (&mut *object, typed.is_empty() && !is_needed) {
            fields.shift_remove(field);
        } else {
            object[field] = value;
        }
    }
    changed
}

fn edit(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        need(&membership, membership.role != Role::Viewer)?;
        let id = wanted.part("agent");
        let by_hand = ByHand::of(&visitor, &membership).await?;
        let missing = || ToolError::new(ErrorKind::NotFound, "The package has no agent with this id.");
        let agent = by_hand.package().agent(id).ok_or_else(missing)?;
        let object = Object::Agent(id.to_owned());
        let mut shown = NewPage {
            place: place(&visitor, &membership),
            title: format!("Edit the agent {}", visible_line(id)),
            action: membership.path(&edit_path(id)),
            back: membership.object_path(&object),
            error: None,
            is_set: true,
            revision: Some(revision::agents(by_hand.package())),
            open: by_hand.open(&membership),
            fields: fields(&agent.value),
        };
        let Some(form) = &wanted.form else { return Ok(page(StatusCode::OK, &shown)) };
        shown.fields = filled(shown.fields, form);
        shown.revision = form.get("revision").cloned();
        let is_empty = |field: &&Field| field.value.trim().is_empty();
        let needed: Vec<&str> = PARTS.iter().filter(|part| part.4).map(|part| part.0).collect();
        let missing: Vec<&str> = shown.fields.iter().filter(is_empty).map(|field| field.name).collect();
        let missing: Vec<&str> = missing.into_iter().filter(|name| needed.contains(name)).collect();
        for name in &missing {
            complain(&mut shown.fields, name, "This is needed.");
        }
        if !missing.is_empty() {
            return Ok(page(StatusCode::BAD_REQUEST, &shown));
        }
        let definition = changed(&agent.value, form);
        let staged = async {
            if definition == agent.value {
                return Err(ToolError::new(ErrorKind::Validation, "Nothing is different"));
            }
            let (target, payload) = (json!({ "agentId": id }), json!({ "agent_definition": definition }));
            let revision = shown.revision.as_deref().unwrap_or_default();
            stage(&visitor, &membership, ("agent", target, payload), (revision, "")).await
        };
        match staged.await {
            Ok(set) => Ok(see(&change_path(&membership, &set))),
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => {
                shown.error = Some(said(&error));
                Ok(page(envelope::status(&error), &shown))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_changed_is_another() {
        let definition = json!({
            "id": "a", "metadata": { "name": "A", "title": "T", "icon": "x", "description": "old", "module": "m" },
            "persona": { "role": "r", "identity": "i", "communication_style": "s", "principles": "one text\nof two lines" },
            "menu": [{ "trigger": "go" }], "critical_actions": ["keep"],
        });
        let as_shown: BTreeMap<String, String> =
            fields(&definition).into_iter().map(|field| (field.name.to_owned(), field.value)).collect();
        assert_eq!(changed(&definition, &as_shown), definition);
        let mut typed = as_shown;
        for (name, value) in [("role", "new"), ("description", " "), ("actions", "keep\r\n\r\n more ")] {
            typed.insert(name.to_owned(), value.to_owned());
        }
        let mut expected = definition.clone();
        expected["persona"]["role"] = json!("new");
        expected["metadata"] = json!({ "name": "A", "title": "T", "icon": "x", "module": "m" });
        expected["critical_actions"] = json!(["keep", "more"]);
        assert_eq!(changed(&definition, &typed), expected);
    }
}
