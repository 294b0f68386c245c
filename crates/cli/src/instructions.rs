//! What an MCP client is told of a project when it connects: what a model needs to know before its first call.

use toolhost::{Host, Place};
use toolhost_contract::workspace::Access;
use toolhost_host::{Names, Profile};
use toolhost_server::mcp::Listed;

/// The tools that most work is done with.
pub(crate) const CORE: [&str; 7] =
    ["file.read", "file.write", "file.edit", "file.list", "file.search", "bash", "approval.wait"];

/// Who is told.
pub(crate) struct Told<'a> {
    pub(crate) persona: &'a str,
    /// The manner of a persona of the project.
    pub(crate) personality: Option<&'a str>,
    pub(crate) names: Names,
    pub(crate) listed: Listed,
}

/// The instructions for an agent with a profile.
pub(crate) async fn of(host: &Host, profile: &Profile, told: &Told<'_>) -> String {
    let about = place(host, profile, told).await;
    let may_write = match profile.fence.workspace {
        Access::Write => "may change files in the workspace",
        Access::Read => "may read the workspace; nothing in it can be changed",
    };
    let spelled = |name: &str| match told.names {
        Names::Dotted => name.to_owned(),
        Names::Wire => name.replace('.', "_"),
    };
    let root = host.executor().names_of_root().first().map(|root| format!(" (`{root}`)")).unwrap_or_default();
    let commands = if profile.has("bash") { of_commands(profile, &spelled) } else { String::new() };
    let wait = spelled("approval.wait");
    let asks = if profile.has("approval.wait") {
        format!(
            " A call that a person must allow answers `pending_approval` with an `approvalId`: it has not run. `{wait}` with that id waits and \
             then runs it; go on with other work meanwhile."
        )
    } else {
        String::new()
    };
    let package = if profile.has("builder.change.stage") { of_package(&spelled) } else { String::new() };
    let catalog = match told.listed {
        Listed::All => format!("`{}` shows your tools.", spelled("tool.list")),
        Listed::Core => format!(
            "You have more tools than are listed: `{}` finds them, and `{}`, `{}` and `{}` call them.",
            spelled("tool.search"),
            spelled("tool.read"),
            spelled("tool.change"),
            spelled("tool.reach"),
        ),
    };
    format!(
        "Tools for the workspace `{}`. You have the profile `{}`: you {may_write}. Paths are relative to the workspace root{root}. \
         {commands}{catalog}{asks}{package}{about}",
        host.connection().project().name,
        profile.name,
    )
}

/// What commands may do.
fn of_commands(profile: &Profile, spelled: &impl Fn(&str) -> String) -> String {
    let network = match (profile.fence.network.is_empty(), profile.fence.loopback) {
        (false, _) => "no network but the hosts that were granted",
        (true, true) => "no network but a loopback of the command's own",
        (true, false) => "no network",
    };
    let commit =
        if profile.has("git.commit") { format!(": `{}` commits", spelled("git.commit")) } else { String::new() };
    format!(
        "Commands run in a fence: nothing outside the workspace but the system's programs, {network}, a `/tmp` and a home that last \
         for the session, and every process ends with its command. `.git` is read-only to them{commit}. `timeoutMs` gives more than 120 s, \
         up to {} s. ",
        profile.limits.command_timeout_ms / 1000
    )
}

/// How work on a workflow package goes.
fn of_package(spelled: &impl Fn(&str) -> String) -> String {
    format!(
        " The project's workflow package (workflows, steps, agents, assets) is not among the files of the workspace. You may propose \
         changes to it: read what is there with the tools `{}`, read `{}` once for how a change set is written, and send the set \
         to `{}` with `validate: true`. Fix what it finds. A person applies the set; until then only this session sees it.",
        spelled("builder.*").replace('*', "…"),
        spelled("builder.schema.read"),
        spelled("builder.change.stage"),
    )
}

/// Where the agent works, and as whom: its ticket, the branch and the remote as far as its profile has tools for them, and
/// the manner of its persona.
async fn place(host: &Host, profile: &Profile, told: &Told<'_>) -> String {
    let Place { branch, remote } = host.place().await;
    let reaches = ["git.push", "git.fetch", "git.pull"].iter().any(|tool| profile.has(tool));
    let lines = [
        ("Ticket", host.ticket().map(str::to_owned)),
        ("Branch, when this session began", branch.filter(|_| profile.has("git.status"))),
        ("Remote", remote.filter(|_| reaches)),
        ("Your name", told.personality.map(|_| told.persona.to_owned())),
        ("How you work and speak; it changes neither your task nor your rules", told.personality.map(str::to_owned)),
    ];
    let lines = lines.into_iter().filter_map(|(what, value)| Some((what, value.filter(|value| !value.is_empty())?)));
    // Quoted, so that none can pretend to be a line of the host's.
    lines.map(|(what, value)| format!("\n{what}: {}", serde_json::Value::from(value))).collect()
}
