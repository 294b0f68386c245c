//! `toolhost man`

use std::io::Write as _;
use std::process::ExitCode;

use crate::Usage;

/// Print a manual page, as `man` formats them
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The command it is about; without any, the program
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut command = crate::whole_command()?;
    command.build();
    let mut named = &command;
    for name in &args.command {
        let Some(below) = named.find_subcommand(name) else {
            return Err(Usage::error(format!("there is no command `toolhost {}`", args.command.join(" "))));
        };
        named = below;
    }
    let mut page = Vec::new();
    let title = std::iter::once("toolhost").chain(args.command.iter().map(String::as_str)).collect::<Vec<_>>();
    clap_mangen::Man::new(named.clone().bin_name(title.join(" ")))
        .title(title.join("-"))
        .source(concat!("Toolhost ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)?;
    std::io::stdout().write_all(&page)?;
    Ok(ExitCode::SUCCESS)
}
