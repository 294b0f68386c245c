//! `cargo xtask package`: whether the crates could be published.
//!
//! Packing finds what a manifest lacks, dependencies without a version, and files that are not in a crate's own folder. It
//! does not build, so that each run of the tests can afford it; `verify` builds each crate from its package alone, which
//! finds included files that lie outside.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::shell;

/// What is for this repository alone.
const UNPUBLISHED: [&str; 2] = ["toolhost-testkit", "xtask"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    extent: Option<Extent>,
}

#[derive(clap::Subcommand, Clone, Copy)]
enum Extent {
    /// Build each crate from its package alone, as `cargo publish` does before it uploads.
    Verify,
}

pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let mut cargo = shell::cargo(root);
    match arguments.extent {
        // Siblings that are not published yet are found in the workspace.
        Some(Extent::Verify) => cargo.args(["publish", "--dry-run"]),
        None => cargo.args(["package", "--no-verify", "--quiet"]),
    };
    // What is not committed is judged, too.
    cargo.args(["--workspace", "--locked", "--allow-dirty"]);
    for name in UNPUBLISHED {
        cargo.args(["--exclude", name]);
    }
    let status = cargo.status().context("cannot start cargo")?;
    Ok(ExitCode::from(shell::exit_code(status)))
}
