//! A request to run a tool.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::CallId;

/// One request to run a tool, as a door hands it to the gate.
///
/// Its JSON is kept with what people are asked about it, so that another process can run it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub id: CallId,
    /// The name as it was asked for: canonical, wire or alias.
    pub tool: String,
    /// The arguments as they came; an object once they are validated.
    pub arguments: Value,
    pub scope: Scope,
    pub caller: Caller,
}

/// What the call is about. Ids are the store's; sessions are named by their door.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    pub user_id: i64,
    pub project_id: i64,
    pub session_id: Option<String>,
    pub workflow_id: Option<i64>,
    /// The ticket that the work is about: tools for tickets take it where none is named.
    pub ticket_id: Option<String>,
}

/// The door of our own model loop. Its sessions outlive their processes, so what one waits for is never another's.
pub const AGENT_DOOR: &str = "agent";
/// The door of the pages that people look at in a browser. What such a page reads is no call of the project's quota.
pub const WORKBENCH_DOOR: &str = "workbench";

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Caller {
    pub kind: CallerKind,
    /// The door the call came through: `mcp`, `cli`, [`AGENT_DOOR`].
    pub door: Cow<'static, str>,
    /// The profile whose tools, rules and fence apply.
    pub profile: String,
    /// Name shown as author of what the call makes, such as commits.
    pub persona: String,
}

/// What an interface in which a person has confirmed an apply sends as `confirmSource` of `builder.change.apply`.
pub const CONFIRM_SOURCE: &str = "ui_manual_apply";

/// Some tools only a person may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallerKind {
    Model,
    Person,
}
