//! Calls of tools that a page makes for the person who looks at it, and what they come to.

use serde_json::Value;
use toolhost_contract::{ErrorKind, Outcome, ToolError};
use toolhost_store::Role;

use super::failure::{begun_large, sentence};
use super::forms::{Field, complain};
use super::visitor::{Membership, PLACE, Visitor};
use crate::http::by_person::Doer;

/// What a call came to.
pub(super) enum Called {
    Done(Value),
    /// Somebody has to agree first: the address of the ask.
    Waits(String),
}

impl Visitor<'_> {
    /// Makes a call in the person's name, and answers all that it comes to.
    pub(super) async fn outcome(&self, membership: &Membership, tool: &str, arguments: Value) -> Outcome {
        let doer = Doer {
            project: &membership.project,
            user_id: membership.user_id,
            user: &self.login.user,
            door: PLACE,
            origin: None,
        };
        doer.call(tool, arguments).await
    }

    /// Makes a call in the person's name.
    ///
    /// # Errors
    /// If the call fails.
    pub(super) async fn call(
        &self,
        membership: &Membership,
        tool: &str,
        arguments: Value,
    ) -> Result<Called, ToolError> {
        let Outcome { data, error, .. } = self.outcome(membership, tool, arguments).await;
        if let Some(error) = error {
            return Err(error.into());
        }
        let status = data.get("status").and_then(Value::as_str).unwrap_or_default();
        match data.get("approvalId").and_then(Value::as_str) {
            Some(ask) if status.starts_with("pending_") => Ok(Called::Waits(membership.address(ask))),
            _ => Ok(Called::Done(data)),
        }
    }

    /// Makes a call that changes nothing, and answers its data.
    ///
    /// # Errors
    /// If the call fails, or waits for somebody.
    pub(super) async fn read(&self, membership: &Membership, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        match self.call(membership, tool, arguments).await? {
            Called::Done(data) => Ok(data),
            Called::Waits(_) => {
                let error =
                    ToolError::new(ErrorKind::Permission, format!("The policy of this project asks before {tool}."));
                Err(error.hint("Ask an owner of the project to let people read without an ask."))
            }
        }
    }
}

/// Says what a call was refused for beside the fields that it is about. `false`: it is about something else, and is said above the form.
pub(super) fn complain_about(fields: &mut [Field], error: &ToolError) -> bool {
    let violations = error.details.as_ref().and_then(|details| details.get("violations")).and_then(Value::as_array);
    if let Some(violations) = violations.filter(|violations| !violations.is_empty()) {
        let name_of = |violation: &Value| {
            let path = text(violation, "path").trim_start_matches('/').split('/').next().unwrap_or_default().to_owned();
            fields.iter().find(|field| field.name == path).map(|field| (field.name, field.hint))
        };
        let Some(named) = violations.iter().map(name_of).collect::<Option<Vec<_>>>() else { return false };
        for (violation, (name, hint)) in violations.iter().zip(named) {
            let (expected, actual) = (text(violation, "expected"), text(violation, "actual"));
            // A pattern is for programs; the field's own hint, which stands below, has an example.
            let message = match expected {
                _ if expected.contains('^') && !hint.is_empty() => {
                    "This is not written as it has to be: see below.".to_owned()
                }
                "at least 1 items" | "at least 1 characters" => "This is needed.".to_owned(),
                _ if actual.is_empty() => format!("Expected {expected}."),
                _ => format!("Expected {expected}, got {actual}."),
            };
            complain(fields, name, &super::marks::without_marks(&message));
        }
        return true;
    }
    let message = sentence(error);
    let is_named = |field: &&Field| {
        message.contains(&format!("`{}`", field.name)) || message.starts_with(&format!("{}:", field.name))
    };
    match fields.iter().filter(is_named).map(|field| field.name).collect::<Vec<_>>()[..] {
        [name] => {
            // The field stands beside it.
            let named = [format!("`{name}`: "), format!("{name}: ")];
            let bare = named.iter().find_map(|named| message.strip_prefix(named.as_str())).unwrap_or(&message);
            complain(fields, name, &begun_large(bare))
        }
        // The iteration is named by its id.
        [] if message.contains("iteration `ITER-") => complain(fields, "iteration", &begun_large(&message)),
        _ => false,
    }
}

/// Whether the person may change records.
pub(super) fn can_edit(membership: &Membership) -> bool {
    membership.role != Role::Viewer
}

/// The records of a list that a tool has answered, and the cursor of its next page.
pub(super) fn listed<'v>(data: &'v Value, field: &str) -> (&'v [Value], Option<&'v str>) {
    (items(data, field), data.get("nextCursor").and_then(Value::as_str))
}

/// A text of a record; empty where it has none of this name.
pub(super) fn text<'v>(record: &'v Value, field: &str) -> &'v str {
    record.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A number of a record, if it has one of this name.
pub(super) fn number(record: &Value, field: &str) -> Option<u64> {
    record.get(field).and_then(Value::as_u64)
}

/// A list of a record; empty where it has none of this name.
pub(super) fn items<'v>(record: &'v Value, field: &str) -> &'v [Value] {
    record.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of a list of a record.
pub(super) fn texts<'v>(record: &'v Value, field: &str) -> impl Iterator<Item = &'v str> {
    record.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
