//! `toolhost call`

use std::io::{IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use toolhost::{Host, Need};
use toolhost_contract::{ErrorKind, Outcome};
use toolhost_host::Hooks;

use crate::print;
use crate::settings::Settings;
use crate::terminal::{self, Terminal};
use crate::wire;
use crate::{EXIT_DENIED, Usage};

/// Longest arguments read from standard input, bytes.
const INPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Call one tool and print the outcome
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Any of the tool's names, such as file.read, file_read or read_file
    tool: String,
    /// The arguments as a JSON object; `-` reads them from standard input
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// Whose tools, rules and fence apply
    #[arg(long, default_value = "all", env = "TOOLHOST_PROFILE")]
    profile: String,
    /// How the outcome is printed [default: text, or json with --json]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Where a person has to agree and nobody is at this terminal: wait until somebody has answered elsewhere
    #[arg(long)]
    wait: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Text,
    /// The envelope: ok, data, error and meta
    Json,
    /// Bonsai's form: output, error and metadata
    ToolResult,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let arguments = arguments(args.arguments.as_deref())?;
    let made = make(settings, &args.tool, arguments, &args.profile, args.wait).await?;
    match args.format {
        Some(Format::ToolResult) => print::json(&made.outcome.tool_result())?,
        Some(Format::Json) => show(&made.outcome, true)?,
        Some(Format::Text) => show(&made.outcome, false)?,
        None => show(&made.outcome, settings.json)?,
    }
    let is_text = matches!(args.format, Some(Format::Text)) || (args.format.is_none() && !settings.json);
    let waiting = made.outcome.data.get("approvalId").and_then(Value::as_str).filter(|_| is_pending(&made.outcome));
    if let Some(id) = waiting.filter(|_| is_text) {
        let then = print::paint(print::DIM, "then run it and see what comes of it with");
        let profile = &args.profile;
        let fetch = format_args!("toolhost call approval.wait '{{\"approvalId\": \"{id}\"}}' --profile {profile}");
        print::aside(format_args!("{then} {fetch}"));
    }
    made.end().await
}

/// A call that was made, its row perhaps still on the way into the database.
pub(super) struct Made {
    pub(super) outcome: Outcome,
    host: Host,
    profile: String,
}

impl Made {
    /// Makes another call, whose outcome takes the place of the one before.
    pub(super) async fn call_again(&mut self, tool: &str, arguments: Value) {
        let hooks = Hooks { cancel: crate::signals::ended_by_signal(), ..Hooks::default() };
        self.outcome = self.host.gate().call(self.host.request(tool, arguments, &self.profile), hooks).await;
    }

    /// Ends as the call did. A person who only reads has the answer before, and does not wait long for the row.
    pub(super) async fn end(self) -> anyhow::Result<ExitCode> {
        if self.outcome.meta.allow_write {
            self.host.close().await?;
        } else {
            wire::close_reading(self.host.connection()).await?;
        }
        Ok(exit_code(&self.outcome))
    }
}

/// Makes one call as the person at the keyboard.
pub(super) async fn make(
    settings: &Settings,
    tool: &str,
    arguments: Value,
    profile: &str,
    wait: bool,
) -> anyhow::Result<Made> {
    let host = wire::open_for(settings, Need::Reading).await?;
    host.gate().profile(profile)?;
    let mut hooks = Hooks::default();
    let watched = std::io::stderr().is_terminal();
    if watched {
        hooks.progress = Arc::new(print::Running);
    }
    hooks.cancel = crate::signals::ended_by_signal();
    if terminal::is_there() {
        hooks.presenter = Some(Arc::new(Terminal::of(&host)));
    }
    hooks.hold = Some(if wait { Duration::from_millis(host.asking().lives_ms) } else { Duration::ZERO });
    let outcome = host.gate().call(host.request(tool, arguments, profile), hooks).await;
    if watched {
        print::clear_line();
    }
    Ok(Made { outcome, host, profile: profile.to_owned() })
}

fn arguments(text: Option<&str>) -> anyhow::Result<Value> {
    let text = match text {
        None => return Ok(Value::Null),
        Some("-") => {
            if std::io::stdin().is_terminal() {
                print::aside("reading the arguments from standard input; end with Ctrl-D");
            }
            let mut text = String::new();
            std::io::stdin().take(INPUT_BYTES_MAX).read_to_string(&mut text).context("standard input")?;
            text
        }
        Some(text) => text.to_owned(),
    };
    let value: Value =
        serde_json::from_str(&text).map_err(|error| Usage::error(format!("the arguments are not JSON: {error}")))?;
    if !value.is_object() {
        return Err(Usage::error("the arguments must be a JSON object, such as '{\"path\": \"README.md\"}'"));
    }
    Ok(value)
}

pub(super) fn show(outcome: &Outcome, json: bool) -> anyhow::Result<()> {
    if json {
        return print::json(outcome);
    }
    if outcome.ok {
        let text = outcome.text.strip_suffix('\n').unwrap_or(&outcome.text);
        print::answer(text);
        if let Some(id) = outcome.data.get("approvalId").and_then(Value::as_str).filter(|_| is_pending(outcome)) {
            print::aside(format_args!("{} toolhost review decide {id}", print::paint(print::DIM, "answer it with")));
        }
    } else {
        print::note(format_args!("{} {}", print::paint(print::BAD, "error:"), print::visible(&outcome.text)));
    }
    Ok(())
}

pub(super) fn exit_code(outcome: &Outcome) -> ExitCode {
    match &outcome.error {
        None if is_pending(outcome) => ExitCode::from(EXIT_DENIED),
        None => ExitCode::SUCCESS,
        Some(error) if matches!(error.kind, ErrorKind::Denied | ErrorKind::Permission) => ExitCode::from(EXIT_DENIED),
        Some(_) => ExitCode::FAILURE,
    }
}

/// Whether the call waits for a person and has not run.
fn is_pending(outcome: &Outcome) -> bool {
    let status = outcome.data.get("status").and_then(Value::as_str);
    status.is_some_and(|status| status.starts_with("pending_")) && outcome.data.get("approvalId").is_some()
}
