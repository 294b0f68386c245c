//! What stands in the audit, as a sentence: calls of tools, and what people do beside tools.

use serde_json::Value;
use toolhost_contract::{told_arguments, visible_line};
use toolhost_host::Registry;

/// Deeds of people that are not calls of tools: the name in the audit, a title, and the argument that names what the deed was done to.
const DEEDS: &[(&str, &str, &str)] = &[
    ("change history", "Look at the history of the package", ""),
    ("change list", "List change sets", "sessionId"),
    ("change show", "Look at a change set", "changeSetId"),
    ("change undo plan", "Look at what an undo would do", "moment"),
    ("change.sides", "Choose between two sides of a change set", "changeSetId"),
    ("deploy.run", "Deploy", "to"),
    ("deploy.undo", "Undo a deploy", "deploy"),
    ("member.add", "Add or change a member", "name"),
    ("member.invite", "Make a link that signs a member in", "name"),
    ("member.remove", "Remove a member", "name"),
    ("package import", "Import a package", ""),
    ("package export", "Export the package", ""),
    ("package list", "List the package", ""),
    ("package new", "Begin an empty package", "name"),
    ("package seen", "Look at the package with open change sets", "sessionId"),
    ("package show", "Look at the package", ""),
    ("project.backup", "Back the project up", "file"),
    ("project.move", "Move the project", "to"),
    ("project.restore", "Restore the project", "file"),
    ("quota.set", "Change the quota", ""),
    ("session.cancel", "Cancel a session", ""),
    ("session.fork", "Fork a session", "of"),
    ("session.pause", "Pause a session", ""),
    ("session.resume", "Resume a session", ""),
    ("session.say", "Say something to a session", "text"),
    ("session.start", "Start a session", "goal"),
    ("token.create", "Make a token", "name"),
    ("token.revoke", "Revoke a token", "id"),
    ("undo", "Undo changes of files", "calls"),
    ("webhook.add", "Add a webhook", "to"),
    ("webhook.remove", "Remove a webhook", "webhook"),
    ("webhook.test", "Test a webhook", "webhook"),
];

/// Arguments that tell what a call is about, if it has neither a path nor a command. The first one that is there is used.
const ABOUT: &[&str] = &["title", "name", "question", "changeSetId", "approvalId", "id", "content", "query", "path"];

/// A row of the audit as a sentence: `Edit a file: a.txt`, `Create a task: Import them`, `Add or change a member: ann, role editor`. The
/// name alone where nothing is known of it, as of a tool that is not there any more.
pub(super) fn deed(registry: &Registry, name: &str, arguments: &Value) -> String {
    if let Some(tool) = registry.get(name) {
        let facts = &tool.info.facts;
        let is = |field: &str| !arguments.get(field).is_none_or(Value::is_null);
        let mut leading = facts.command.map(|command| command.name).into_iter().chain(facts.paths.iter().copied());
        let about = ABOUT.iter().find(|field| arguments.get(**field).is_some_and(Value::is_string));
        let a_try = if facts.dry_run.is_some_and(|field| arguments.get(field) == Some(&Value::Bool(true))) {
            ", as a try"
        } else {
            ""
        };
        if let Some(told) = told_otherwise(name, arguments) {
            return format!("{}: {told}", tool.info.title);
        }
        if let Some(objects) = objects_of(arguments) {
            return format!("{}: {}", tool.info.title, visible_line(&objects));
        }
        if let (false, Some(field)) = (leading.any(is), about) {
            let on = told_arguments(
                &[*field],
                None,
                &Value::Object([((*field).to_owned(), arguments[*field].clone())].into_iter().collect()),
            );
            return format!("{}{a_try}: {on}", tool.info.title);
        }
    }
    let told = registry.told_call(name, arguments).or_else(|| {
        let (_, title, on) = DEEDS.iter().find(|(deed, ..)| *deed == name)?;
        let fields = arguments.as_object().is_some_and(|fields| fields.values().any(|value| !value.is_null()));
        Some(((*title).to_owned(), if fields { told_arguments(&[on], None, arguments) } else { String::new() }))
    });
    match told {
        Some((title, on)) if on.is_empty() => title,
        Some((title, on)) => format!("{title}: {on}"),
        None => visible_line(name),
    }
}

/// The arguments of calls that would be a riddle field by field.
fn told_otherwise(name: &str, arguments: &Value) -> Option<String> {
    let text = |field: &str| Some(visible_line(arguments.get(field)?.as_str()?));
    match name {
        "builder.change.undo" => Some(format!("change {}", arguments.get("moment")?.as_i64()?)),
        "ticket.update_state" => {
            let from = text("expectedState").map(|from| format!(" from {from}")).unwrap_or_default();
            Some(format!("{}{from} to {}", text("ticketId")?, text("newState")?))
        }
        _ => None,
    }
}

/// Objects of a change set that a sentence names.
const OBJECTS_MAX: usize = 3;

/// What the target of an operation is named by, in the order of an object's name.
const TARGET: [&str; 4] = ["workflowId", "nodeId", "agentId", "path"];

/// The objects that a staged change set is about: `agent:clerk, step:main/begin and 2 more`.
fn objects_of(arguments: &Value) -> Option<String> {
    let operations = arguments.pointer("/changeSet/operations")?.as_array()?;
    let object = |operation: &Value| {
        let kind = operation.get("targetType")?.as_str()?;
        let target = operation.get("target")?;
        let parts = TARGET.iter().filter_map(|field| target.get(*field)?.as_str()).collect::<Vec<_>>();
        let verb = if operation.get("op").and_then(Value::as_str) == Some("delete") { "without " } else { "" };
        Some(format!("{verb}{kind}:{}", parts.join("/")))
    };
    let mut objects: Vec<String> = operations.iter().filter_map(object).collect();
    objects.dedup();
    let more = objects.len().saturating_sub(OBJECTS_MAX);
    objects.truncate(OBJECTS_MAX);
    let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!objects.is_empty()).then(|| format!("{}{and_more}", objects.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolhost_host::Registry;

    use super::{deed, objects_of};

    #[test]
    fn a_change_set_is_told_by_its_objects() {
        let op =
            |op: &str, kind: &str, target: serde_json::Value| json!({ "op": op, "targetType": kind, "target": target });
        let step = json!({ "workflowId": "main", "nodeId": "begin" });
        let mut operations = vec![op("upsert", "agent", json!({ "agentId": "clerk" })), op("delete", "step", step)];
        let told = |operations: &[serde_json::Value]| objects_of(&json!({ "changeSet": { "operations": operations } }));
        let both = told(&operations);
        assert!(both.as_deref().is_some_and(|both| both == "agent:clerk, without step:main/begin"), "{both:?}");
        operations.extend((0..3).map(|n| op("upsert", "asset", json!({ "path": format!("assets/{n}.md") }))));
        assert!(told(&operations).is_some_and(|told| told.ends_with("asset:assets/0.md and 2 more")));
        assert_eq!(told(&[]), None);
    }

    #[test]
    #[expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]
    fn a_deed_that_is_no_tool_is_a_sentence_and_what_nobody_knows_is_its_name() {
        let none = Registry::new(Vec::new()).unwrap();
        let told = |name: &str, arguments| deed(&none, name, &arguments);
        assert_eq!(told("session.say", json!({ "text": "Use tabs" })), "Say something to a session: Use tabs");
        assert_eq!(told("session.pause", json!({})), "Pause a session");
        assert_eq!(
            told("member.add", json!({ "name": "ann", "role": "editor" })),
            "Add or change a member: ann, role `editor`"
        );
        assert_eq!(told("gone.tool", json!({ "a": 1 })), "gone.tool");
    }
}
