//! What an approval is bound to.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolhost_contract::{Call, Facts, ToolError};

/// SHA-256 over the canonical JSON (RFC 8785) of tool, version, arguments, caller, project and what else
/// decides what the arguments mean.
pub(crate) fn digest(facts: &Facts, arguments: &Value, call: &Call) -> Result<String, ToolError> {
    let bound = json!({
        "tool": facts.name,
        "version": facts.version,
        "arguments": arguments,
        "caller": {
            "kind": call.caller.kind,
            "profile": call.caller.profile,
            "persona": call.caller.persona,
            "userId": call.scope.user_id,
            "sessionId": call.scope.session_id,
        },
        "projectId": call.scope.project_id,
        "workflowId": call.scope.workflow_id,
        "ticketId": call.scope.ticket_id,
    });
    let canonical = serde_json_canonicalizer::to_vec(&bound).map_err(ToolError::internal)?;
    Ok(hex::encode(Sha256::digest(canonical)))
}
