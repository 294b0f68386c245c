//! `toolhost completions`

use std::process::ExitCode;

/// Print completions for a shell
#[derive(clap::Args)]
pub(crate) struct Args {
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    clap_complete::generate(args.shell, &mut crate::whole_command()?, "toolhost", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}
