//! The entry for programs that read packages: one dispatcher with the parameters that the CrewAgent seed BAI-2.4 freezes.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolhost_contract::{Call, Caller, CallerKind, IdSource, RandomIds, Scope};

use toolhost_host::{Gate, Hooks};

/// The tools that [`execute_semantic_read_tool`] runs, and no others.
pub const SEMANTIC_READ_TOOLS: [&str; 6] = [
    "builder.context.get",
    "builder.workflow.read",
    "builder.step.read",
    "builder.agent.read",
    "builder.asset.read",
    "builder.refs.find",
];
/// The profile that has these six tools.
const PROFILE: &str = "builder-read";

/// Reads from a package as a model would, through the whole gate: who is it, may they, are the arguments right; and it
/// is recorded. The answer is the envelope `{ok, data, error, meta}` with `meta.allowWrite` false.
///
/// Any other tool is answered with `AI_TOOL_NOT_ALLOWED`, and `builder.change.apply` with `AI_TOOL_FORBIDDEN`.
pub async fn execute_semantic_read_tool(
    gate: &Arc<Gate>,
    user_id: i64,
    project_id: i64,
    workflow_id: Option<i64>,
    session_id: Option<&str>,
    tool_name: &str,
    arguments: Map<String, Value>,
) -> Value {
    let call = Call {
        id: RandomIds.call_id(),
        tool: tool_name.to_owned(),
        arguments: Value::Object(arguments),
        scope: Scope { user_id, project_id, session_id: session_id.map(str::to_owned), workflow_id, ticket_id: None },
        caller: Caller {
            kind: CallerKind::Model,
            door: "library".into(),
            profile: PROFILE.to_owned(),
            persona: "builder".to_owned(),
        },
    };
    let outcome = gate.call(call, Hooks::default()).await;
    // An outcome has no maps with other keys than texts, and no numbers that are none.
    serde_json::to_value(&outcome).unwrap_or(Value::Null)
}
