//! Calls of tools that a person makes, over the API or on a page: through the gate as every call, with the person's role as the limit.

use std::sync::Arc;

use serde_json::Value;
use toolhost_contract::{Call, Caller, CallerKind, Outcome, Scope};
use toolhost_host::{Hooks, Origin};

use super::projects::OpenProject;

/// The profile of what people do, as at a terminal: their role is what limits them.
const PROFILE_OF_PEOPLE: &str = "all";

/// Who calls, and where.
pub(crate) struct Doer<'a> {
    pub(crate) project: &'a OpenProject,
    pub(crate) user_id: i64,
    pub(crate) user: &'a str,
    /// As the audit names it.
    pub(crate) door: &'static str,
    /// Where the request came from.
    pub(crate) origin: Option<Arc<Origin>>,
}

impl Doer<'_> {
    pub(crate) async fn call(self, tool: &str, arguments: Value) -> Outcome {
        let caller = Caller {
            kind: CallerKind::Person,
            door: self.door.into(),
            profile: PROFILE_OF_PEOPLE.to_owned(),
            persona: self.user.to_owned(),
        };
        let call = Call {
            id: self.project.ids.call_id(),
            tool: tool.to_owned(),
            arguments,
            scope: Scope {
                user_id: self.user_id,
                project_id: self.project.id,
                session_id: None,
                workflow_id: None,
                ticket_id: None,
            },
            caller,
        };
        self.project.gate.call(call, Hooks { origin: self.origin, ..Hooks::default() }).await
    }
}
