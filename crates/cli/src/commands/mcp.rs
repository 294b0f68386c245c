//! `toolhost mcp`

use std::process::ExitCode;
use std::sync::Arc;

use toolhost::{Host, Need};
use toolhost_contract::{IdSource, RandomIds};
use toolhost_host::Names;
use toolhost_server::mcp::{CALLS_MAX_DEFAULT, Door, Listed, Offers, Results, serve_stdio};

use crate::idle::GiveMemoryBack;
use crate::instructions::{self, Told};
use crate::personas;
use crate::settings::{CALLS_MAX, Resolved, Settings};
use crate::traces::Tracing;
use crate::wire::Observers;
use crate::{Usage, bridge, signals, wire};

/// Serve an agent over MCP on standard input and output
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Pass everything on to a server that runs already, at this address, with the token in TOOLHOST_TOKEN: its project and its profile
    /// apply
    #[arg(long, value_name = "URL", env = "TOOLHOST_SERVER", conflicts_with_all = ["profile", "dotted_names", "tools", "output_schemas", "results", "client_approvals", "ticket", "session"])]
    server: Option<String>,
    /// The profile of the agent: its tools, rules and fence [default: the persona's role, else developer]
    #[arg(long, env = "TOOLHOST_PROFILE")]
    profile: Option<String>,
    /// Dotted tool names (`file.read`) instead of wire names (`file_read`)
    #[arg(long)]
    dotted_names: bool,
    /// Which tools the client is told of: all of the profile, or the few that most work is done with, one that finds the others
    /// (`tool_search`) and three that call what it has found
    #[arg(long, value_enum, value_name = "WHICH", env = "TOOLHOST_TOOLS", default_value_t = ToolsFlag::All)]
    tools: ToolsFlag,
    /// List what each tool answers, as a JSON Schema, too: the list is then three times as long
    #[arg(long)]
    output_schemas: bool,
    /// What an answer holds: its text, its structure, or both. By itself that is text for clients which show a model nothing but the
    /// structure where there is one (such as Claude Code, Codex and VS Code), and both for all others
    #[arg(long, value_enum, value_name = "FORM", env = "TOOLHOST_RESULTS")]
    results: Option<ResultsFlag>,
    /// The agent's name: the author of its commits; a persona of the project brings its profile along
    #[arg(long, default_value = "agent", env = "TOOLHOST_PERSONA")]
    persona: String,
    /// Let forms in the client answer approvals: whoever writes this program's input can then approve
    #[arg(long, env = "TOOLHOST_CLIENT_APPROVALS")]
    client_approvals: bool,
    /// Ignore `approvals.client = true`: only terminals and `toolhost review` approve
    #[arg(long, env = "TOOLHOST_NO_CLIENT_APPROVALS")]
    no_client_approvals: bool,
    /// Requests of the client that are served at once; further ones wait [default: 64]
    #[arg(long, value_name = "COUNT", env = "TOOLHOST_CALLS_MAX", value_parser = calls_max)]
    calls_max: Option<usize>,
    /// The ticket the work is about: tools for tickets take it where none is named
    #[arg(long, env = "TOOLHOST_TICKET")]
    ticket: Option<String>,
    /// The session that calls belong to; name the one of an earlier run to go on with what it has staged
    #[arg(long, value_name = "ID", value_parser = session)]
    session: Option<String>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum ToolsFlag {
    All,
    Search,
}

impl From<ToolsFlag> for Listed {
    fn from(flag: ToolsFlag) -> Self {
        match flag {
            ToolsFlag::All => Self::All,
            ToolsFlag::Search => Self::Core,
        }
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ResultsFlag {
    Text,
    Structured,
    Both,
}

impl From<ResultsFlag> for Results {
    fn from(flag: ResultsFlag) -> Self {
        match flag {
            ResultsFlag::Text => Self::Text,
            ResultsFlag::Structured => Self::Structured,
            ResultsFlag::Both => Self::Both,
        }
    }
}

/// Longest name of a session.
const SESSION_CHARS_MAX: usize = 64;

/// An agent can still read where the state cannot be written. A note on standard error says that nothing is recorded.
async fn open(resolved: &Resolved, observers: &Observers) -> anyhow::Result<Host> {
    match wire::open_observed(resolved, Need::Writing, observers).await {
        Err(error) if wire::is_only_readable(&error) => wire::open_observed(resolved, Need::Reading, observers).await,
        opened => opened,
    }
}

/// The variable that holds the token for a server: what stands on the command line is seen by every user of the machine.
const TOKEN: &str = "TOOLHOST_TOKEN";

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    if let Some(server) = &args.server {
        let token = std::env::var(TOKEN).map_err(|_| {
            Usage::error(format!("{TOKEN} is not set: `toolhost token create` makes a token, which goes there"))
        })?;
        bridge::run(server, &token, signals::ended_by_signal()).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let resolved = settings.resolve()?;
    let tracing = Tracing::start();
    let (mut host, client) = (open(&resolved, &tracing.observers(None)).await?, resolved.client);
    wire::about_ticket(&mut host, args.ticket).await?;
    let role = personas::role(&host, &args.persona, args.profile.as_deref(), "developer").await?;
    let profile = host.gate().profile(&role.profile)?;
    if args.tools == ToolsFlag::Search && !profile.has("tool.search") {
        anyhow::bail!(
            "`--tools search` needs the tool `tool.search`, which the profile `{}` does not have: add it to the profile, or leave the option out",
            profile.name
        );
    }
    let names = if args.dotted_names { Names::Dotted } else { Names::Wire };
    let told =
        Told { persona: &args.persona, personality: role.personality.as_deref(), names, listed: args.tools.into() };
    let instructions = instructions::of(&host, profile, &told).await;
    let session = args.session.unwrap_or_else(|| RandomIds.call_id().to_string());
    let door = Door {
        gate: Arc::clone(host.gate()),
        ids: Arc::clone(host.ids()),
        scope: host.scope(Some(session)),
        profile: role.profile,
        persona: args.persona,
        user: host.connection().user().name.clone(),
        ask_in_client: (args.client_approvals || client.approvals) && !args.no_client_approvals,
        calls_max: args.calls_max.or(client.calls_max).unwrap_or(CALLS_MAX_DEFAULT),
        when_idle: Arc::new(GiveMemoryBack(Some(host.store().caches()))),
        listed: args.tools.into(),
        core: &instructions::CORE,
        offers: Offers::BUILT_IN,
        output_schemas: args.output_schemas,
        results: args.results.map(Results::from),
        names,
        instructions,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    // On a thread of the runtime's own: what it wakes is then beside it, and not across threads.
    let served = tokio::spawn(serve_stdio(door, crate::signals::ended_by_signal())).await;
    // What is queued is written also when the connection failed.
    let closed = host.close().await;
    tracing.close().await;
    closed?;
    served??;
    Ok(ExitCode::SUCCESS)
}

fn calls_max(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| CALLS_MAX.contains(count));
    count.ok_or_else(|| format!("a number from {} to {}", CALLS_MAX.start(), CALLS_MAX.end()))
}

/// A name that can be told, and that is no number of a call.
fn session(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    if text.is_empty() || text.len() > SESSION_CHARS_MAX || !text.chars().all(is_plain) {
        return Err(format!("1 to {SESSION_CHARS_MAX} letters, digits and `._:-`"));
    }
    Ok(text.to_owned())
}
