//! What an approval is bound to.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolhost_contract::{Call, ToolError, ToolInfo, canonical_value};

/// SHA-256 over the canonical JSON (RFC 8785) of tool, version, arguments, caller, project and what else
/// decides what the arguments mean.
pub(crate) fn digest(info: &ToolInfo, arguments: &Value, call: &Call) -> Result<String, ToolError> {
    let bound = json!({
        "tool": info.name,
        "version": info.version,
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
    let canonical = canonical_value(&bound).map_err(ToolError::internal)?;
    Ok(hex::encode(Sha256::digest(canonical)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use toolhost_contract::{CallId, Caller, CallerKind, Packed, Scope};

    use super::*;

    fn info(name: &'static str, version: u32) -> ToolInfo {
        ToolInfo {
            name: name.into(),
            title: "".into(),
            description: String::new(),
            facts: toolhost_testkit::facts::WRITES,
            version,
            aliases: Vec::new(),
            other_names: &[],
            called_elsewhere: &[],
            input_schema: Value::Null,
            output_schema: Packed::new(&Value::Null),
            examples: Vec::new(),
        }
    }

    fn call() -> Call {
        let caller = Caller {
            kind: CallerKind::Model,
            door: "mcp".into(),
            profile: "developer".to_owned(),
            persona: "agent".to_owned(),
        };
        let scope = Scope { user_id: 1, project_id: 1, ..Scope::default() };
        Call { id: CallId::new("c"), tool: "t".to_owned(), arguments: Value::Null, scope, caller }
    }

    #[test]
    fn another_tool_version_user_or_project_is_another_call() {
        let arguments = json!({ "a": 1, "b": [1, 2] });
        let of = |info: &ToolInfo, arguments: &Value, call: &Call| digest(info, arguments, call).unwrap();
        let same = of(&info("t", 1), &arguments, &call());
        assert_eq!(
            of(&info("t", 1), &json!({ "b": [1, 2], "a": 1 }), &call()),
            same,
            "the order of names says nothing"
        );
        let other_id = Call { id: CallId::new("d"), tool: "alias".to_owned(), ..call() };
        assert_eq!(of(&info("t", 1), &arguments, &other_id), same, "the same call, asked again by another name");
        let mut other_user = call();
        other_user.scope.user_id = 2;
        let mut other_project = call();
        other_project.scope.project_id = 2;
        let flipped = [
            of(&info("u", 1), &arguments, &call()),
            of(&info("t", 2), &arguments, &call()),
            of(&info("t", 1), &json!({ "a": 1, "b": [2, 1] }), &call()),
            of(&info("t", 1), &json!({ "a": "1", "b": [1, 2] }), &call()),
            of(&info("t", 1), &arguments, &other_user),
            of(&info("t", 1), &arguments, &other_project),
        ];
        for (n, other) in flipped.iter().enumerate() {
            assert_ne!(*other, same, "{n}");
        }
    }
}
