//! `toolhost completions`

use std::io::Write;
use std::process::ExitCode;

/// Print completions for a shell
#[derive(clap::Args)]
pub(crate) struct Args {
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Whoever reads may stop in the middle, which the library takes for a bug.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut crate::whole_command()?, "toolhost", &mut text);
    // A closed pipe is the reader's choice.
    let _ = std::io::stdout().write_all(&text);
    Ok(ExitCode::SUCCESS)
}
