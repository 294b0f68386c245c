//! What stands in the audit, as a sentence: calls of tools, and what people do beside tools.

use serde_json::Value;
use toolhost_contract::{told_arguments, visible_line};
use toolhost_host::Registry;

/// What people do that is no call of a tool: the name in the audit, a title, and the argument that tells what it was done to.
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

/// A row of the audit as a sentence: `Edit a file: a.txt`, `Add or change a member: ann, role editor`. The name alone where nothing is known
/// of it, as of a tool that is not there any more.
pub(super) fn deed(registry: &Registry, name: &str, arguments: &Value) -> String {
    let told = registry.told_call(name, arguments).or_else(|| {
        let (_, title, on) = DEEDS.iter().find(|(deed, ..)| *deed == name)?;
        let fields = arguments.as_object().is_some_and(|fields| !fields.is_empty());
        Some(((*title).to_owned(), if fields { told_arguments(&[on], None, arguments) } else { String::new() }))
    });
    match told {
        Some((title, on)) if on.is_empty() => title,
        Some((title, on)) => format!("{title}: {on}"),
        None => visible_line(name),
    }
}
