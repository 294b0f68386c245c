//! Runs the tests again and again: a test that fails once in a hundred is a bug today, not bad luck.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::shell;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many times.
    #[arg(long, default_value_t = 10)]
    rounds: u32,
}

/// Stops at the first round that fails, with its exit code.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    for round in 1..=arguments.rounds {
        println!("{}", shell::bold(&format!("== round {round} of {}", arguments.rounds)));
        let status = shell::cargo(root).args(["test", "--workspace", "--locked", "--quiet"]).status()?;
        if !status.success() {
            println!("soak: round {round} failed");
            return Ok(ExitCode::from(shell::exit_code(status)));
        }
    }
    println!("soak: {} rounds passed", arguments.rounds);
    Ok(ExitCode::SUCCESS)
}
