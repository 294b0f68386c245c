//! Calls of tools by people, over the API and from pages: their role is what limits them, as at a terminal.

use serde_json::Value;
use toolhost_contract::{Call, Caller, CallerKind, Outcome, Scope};
use toolhost_host::Hooks;

use super::OpenProject;

/// The profile of what people do.
const PROFILE_OF_PEOPLE: &str = "all";

/// A person who has proven who they are, and where.
pub(crate) struct CallingPerson<'a> {
    pub(crate) user_id: i64,
    pub(crate) name: &'a str,
    /// As the audit names it.
    pub(crate) door: &'static str,
}

/// Calls a tool as a person.
pub(crate) async fn call(
    project: &OpenProject,
    person: &CallingPerson<'_>,
    (tool, arguments): (&str, Value),
    hooks: Hooks,
) -> Outcome {
    let caller = Caller {
        kind: CallerKind::Person,
        door: person.door.into(),
        profile: PROFILE_OF_PEOPLE.to_owned(),
        persona: person.name.to_owned(),
    };
    let scope =
        Scope { user_id: person.user_id, project_id: project.id, session_id: None, workflow_id: None, ticket_id: None };
    let call = Call { id: project.ids.call_id(), tool: tool.to_owned(), arguments, scope, caller };
    project.gate.call(call, hooks).await
}
