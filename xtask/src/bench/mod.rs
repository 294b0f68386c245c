//! Measures the budgets of ARCHITECTURE.md, each against a peer in the same run: a ratio survives a slow machine, a
//! number of milliseconds does not.
//!
//! [`playground`] makes the files both sides work on, [`client`] speaks MCP, [`peers`] knows the others, [`rows`] has
//! one function per measurement, and [`table`] judges and prints.

mod agent;
mod client;
mod http;
mod http_rows;
mod packages;
mod peers;
mod people;
mod playground;
mod records;
mod rows;
mod table;
mod workbench;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread::available_parallelism;

use anyhow::Result;

use crate::bench::packages::Packages;
use crate::bench::peers::Peers;
use crate::bench::playground::Playground;
use crate::bench::records::Shelves;
use crate::bench::rows::Stage;
use crate::shell;

/// Below the target folder: never committed, gone with `cargo clean`.
const PEERS_DEFAULT: &str = "target/peers";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where the peers are installed; a relative path begins at the root of the repository.
    #[arg(long, value_name = "DIR", default_value = PEERS_DEFAULT)]
    peers: PathBuf,
    /// Install the peers there first, with npm and cargo.
    #[arg(long)]
    install_peers: bool,
    /// Measure this program instead of building ours.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Measure only the rows whose name has this in it.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// Measures, prints the table, and fails if a budget is broken or a row could not be measured.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let folder = root.join(&arguments.peers);
    if arguments.install_peers {
        peers::install(root, &folder)?;
    }
    let program = match &arguments.program {
        Some(program) => fs::canonicalize(program)?,
        None => build(root, &["--package", "toolhost-cli"], "dist/toolhost")?,
    };
    let stage = Stage {
        root: root.to_owned(),
        program,
        peers: Peers::find(&folder),
        playground: Playground::make()?,
        shelves: Shelves::default(),
        packages: Packages::default(),
    };
    println!("{}", machine(root));
    for missing in stage.peers.missing() {
        println!("note: {missing}; `cargo xtask bench --install-peers` installs it, without it ours stands alone");
    }
    let rows = rows::measure(&stage, arguments.only.as_deref().unwrap_or_default());
    println!("\n{}", table::render(&rows));
    Ok(if rows.iter().all(table::Row::is_kept) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn build(root: &Path, what: &[&str], product: &str) -> Result<PathBuf> {
    shell::must_run(shell::cargo(root).args(["build", "--profile", "dist", "--locked"]).args(what))?;
    let target = shell::target(root);
    Ok(target.join(product))
}

/// Numbers come with the machine and the commit they were taken on.
fn machine(root: &Path) -> String {
    let describe = ["describe", "--always", "--dirty", "--exclude=*"];
    let commit = shell::stdout_of(Command::new("git").args(describe).current_dir(root)).unwrap_or_default();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("an unknown processor");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = available_parallelism().map_or(1, usize::from);
    format!(
        "commit {}, {cores} cores of {}, Linux {}",
        commit.trim(),
        model.trim_start_matches([' ', '\t', ':']),
        kernel.trim()
    )
}
