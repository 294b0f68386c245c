//! demo
use crate::settings::Settings;
use std::process::ExitCode;
/// Take the two-minute tour
#[derive(clap::Args)]
pub(crate) struct Args {}
pub(crate) async fn run(_: Args, _: &Settings) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
