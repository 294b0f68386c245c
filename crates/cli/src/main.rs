//! The binary `toolhost`: arguments, environment, output. It stands on the facade, which wires the crates together.

mod asks;
mod attention;
mod bridge;
mod changes;
mod command_limits;
mod commands;
mod deploy_target;
mod editor;
mod fold;
mod hosting;
mod idle;
mod instructions;
mod keyboard;
mod keys;
mod known;
mod logins;
mod markdown;
mod model;
mod notify;
mod output;
mod personas;
mod print;
mod projects;
mod remotes;
mod selection;
mod server_table;
mod settings;
mod signals;
mod since;
mod size;
mod socket;
mod terminal;
mod terminals;
mod tls;
mod tokens;
mod toml_file;
mod traces;
mod webhook;
mod wire;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use toolhost_contract::{ErrorKind, ToolError};
use toolhost_sandbox::Allocator;

use crate::commands::{Command, families};
use crate::print::ColorFlag;
use crate::settings::Settings;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Exit codes, as the README promises them.
const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;
const EXIT_DENIED: u8 = 3;
const EXIT_HELD_BACK: u8 = 4;

/// What was typed is wrong, though clap could not know.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    pub(crate) fn error(message: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self(message.into()))
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Tools that AI agents are given and people can trust.
///
/// Every call passes one gate: who are you, may you, are the arguments right, must a person agree. It runs in a fence
/// that the kernel holds, and it is written down.
#[derive(Parser)]
#[command(name = "toolhost", version, max_term_width = 100, propagate_version = true)]
#[command(after_help = "Exit codes: 0 ok, 1 the tool or task failed, 2 usage, 3 denied, 4 files stay back.")]
struct Cli {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    // Before anything else: the helper inside the fence must stay one thread and need nothing of the environment.
    if let Some(code) = toolhost::fence_helper(std::env::args_os()) {
        return code;
    }
    toolhost_sandbox::keep_little_memory();
    let typed = match Typed::read() {
        Ok(typed) => typed,
        Err(code) => return code,
    };
    let manners = typed.manners();
    print::use_colours(manners.color);
    print::start_log(manners.verbose, manners.quiet, manners.utc);
    match run(typed) {
        Ok(code) => code,
        Err(error) => {
            let (kind, exit_code) = kind_of(&error);
            if manners.json {
                print::failure_json(kind, exit_code, &error);
            } else {
                print::failure(&error);
            }
            ExitCode::from(exit_code)
        }
    }
}

/// What an error is for a program that reads it, and the exit code.
fn kind_of(error: &anyhow::Error) -> (&'static str, u8) {
    let of_host: Option<&toolhost::Error> = error.downcast_ref();
    let of_tool = error.downcast_ref::<ToolError>().map(|error| error.kind);
    let typed_wrong = error.is::<Usage>()
        || of_tool == Some(ErrorKind::Validation)
        || matches!(error.downcast_ref(), Some(toolhost_host::Error::UnknownProfile { .. }))
        || of_host.is_some_and(toolhost::Error::is_usage);
    if typed_wrong {
        ("usage", EXIT_USAGE)
    } else if of_host.is_some_and(toolhost::Error::is_denied) || of_tool == Some(ErrorKind::Permission) {
        ("denied", EXIT_DENIED)
    } else {
        ("failed", EXIT_FAILED)
    }
}

/// How the program speaks.
struct Manners {
    json: bool,
    color: ColorFlag,
    verbose: u8,
    quiet: bool,
    utc: bool,
}

/// What was typed.
enum Typed {
    Command(Box<Cli>),
    /// A family of tools, and what stands after it.
    Family(String, Box<clap::ArgMatches>),
}

impl Typed {
    /// Reads the command line. An error is the exit code: the help that was asked for, or what is wrong, is printed by then.
    ///
    /// The families' commands are made of the schemas of all tools, which takes a moment that an agent's host need not
    /// spend: they are only made when the other commands do not fit.
    fn read() -> Result<Self, ExitCode> {
        if let Ok(cli) = Cli::try_parse() {
            return Ok(Self::Command(Box::new(cli)));
        }
        // A house whose own tools do not fit together; the plain error says at least what was mistyped.
        let command = whole_command().unwrap_or_else(|_| Cli::command());
        let matches = command.try_get_matches().map_err(|error| mistyped(&error))?;
        match matches.subcommand() {
            Some((name, inner)) if families::is_family(name) => {
                Ok(Self::Family(name.to_owned(), Box::new(inner.clone())))
            }
            _ => {
                let cli = Cli::from_arg_matches(&matches).map_err(|error| mistyped(&error))?;
                Ok(Self::Command(Box::new(cli)))
            }
        }
    }
}

impl Typed {
    fn manners(&self) -> Manners {
        let (json, color, verbose, quiet, utc) = match self {
            Self::Command(cli) => {
                let settings = &cli.settings;
                (settings.json, settings.color, settings.verbose, settings.quiet, settings.utc)
            }
            Self::Family(_, matches) => {
                let color = matches.get_one("color").copied();
                let flag = |name| matches.get_flag(name);
                (flag("json"), color, matches.get_count("verbose"), flag("quiet"), flag("utc"))
            }
        };
        Manners { json, color: color.unwrap_or(ColorFlag::Auto), verbose, quiet, utc }
    }
}

/// Says what was mistyped, or gives the help that was asked for, and answers the exit code.
fn mistyped(error: &clap::Error) -> ExitCode {
    // What else was typed is not known.
    let wants_json = std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
    if wants_json && error.use_stderr() {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned();
        print::failure_json("usage", EXIT_USAGE, &anyhow::Error::msg(text));
        return ExitCode::from(EXIT_USAGE);
    }
    // A closed pipe is the reader's choice.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { 0 })
}

/// Every command there is.
pub(crate) fn whole_command() -> anyhow::Result<clap::Command> {
    Ok(commands::with_help(Cli::command().subcommands(families::commands()?)))
}

fn run(typed: Typed) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let entered = runtime.enter();
    // Before anything is written: a limit on the size of files (`ulimit -f`) makes writes fail, as a full disk does, and does
    // not end the process. A handler, unlike "ignored", is not handed down to the programs that this one starts.
    let _kept = tokio::signal::unix::signal(toolhost_sandbox::file_limit_signal().into())?;
    drop(entered);
    // On a worker: what it waits for is mostly another task of the same worker, and this thread would be woken each time.
    let work = runtime.spawn(async move {
        match typed {
            Typed::Command(cli) => commands::run(cli.command, &cli.settings).await,
            Typed::Family(name, matches) => families::run(&name, &matches).await,
        }
    });
    let code = match runtime.block_on(work) {
        Ok(code) => code,
        Err(error) => Err(error.into()),
    };
    // A thread that waits on a terminal or a slow disk must not keep the process.
    runtime.shutdown_background();
    code
}
