//! The binary `toolhost`: arguments, environment, output. The only place that wires the crates together.

mod approver;
mod commands;
mod print;
mod settings;
mod wire;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;
use crate::settings::Settings;

/// Exit codes, as the README promises them.
const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;

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
#[command(after_help = "Exit codes: 0 ok, 1 the tool or task failed, 2 usage, 3 denied.")]
struct Cli {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    // Before anything else: the helper inside the fence must stay one thread and need nothing of the environment.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == toolhost_sandbox::helper::SUBCOMMAND) {
        return toolhost_sandbox::helper::main(arguments.collect());
    }
    let cli = Cli::parse();
    print::start_log();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            print::failure(&error);
            let typed_wrong = error.is::<Usage>()
                || matches!(error.downcast_ref(), Some(toolhost_host::Error::UnknownProfile { .. }));
            ExitCode::from(if typed_wrong { EXIT_USAGE } else { EXIT_FAILED })
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(commands::run(cli.command, &cli.settings));
    // A thread that waits on a terminal or a slow disk must not keep the process.
    runtime.shutdown_background();
    code
}
