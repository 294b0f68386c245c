//! `toolhost project`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use serde_json::json;
use toolhost::Need;
use toolhost_contract::Durability;
use toolhost_store::Store;

use crate::known::Known;
use crate::projects::{self, Found};
use crate::settings::{Resolved, Settings, folder_name};
use crate::{Usage, print, wire};

/// Folder below the data folder for state folders that `--replace` has put aside.
const ASIDE: &str = "aside";

/// The projects of this machine: list them, and take one along to another folder
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the projects, the one last worked in first
    List,
    /// Say that a project's folder was moved: its records, its audit and its rules go on in the new place
    Move {
        /// The folder as it was called
        from: PathBuf,
        /// The folder as it is called now [default: the working directory]
        to: Option<PathBuf>,
        /// Put the records aside that the new folder has already
        #[arg(long)]
        replace: bool,
    },
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::List => list(settings).await,
        Command::Move { from, to, replace } => take_along(&from, to, replace, settings).await,
    }
}

async fn list(settings: &Settings) -> anyhow::Result<ExitCode> {
    let found = projects::all(&settings.projects()?).await?;
    if settings.json {
        let shown = |found: &Found| {
            json!({ "name": found.name, "root": found.root, "state": found.state, "isThere": found.is_there(),
                "lastMs": found.last_ms, "problem": found.problem })
        };
        print::json(&found.iter().map(shown).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        print::aside("no project is known here: `toolhost init` in its folder begins one");
        return Ok(ExitCode::SUCCESS);
    }
    let row = |found: &Found| {
        let state = match &found.problem {
            Some(problem) => print::first_line(problem),
            None if found.is_there() => String::new(),
            None => "gone: `toolhost project move`".to_owned(),
        };
        let last = found.last_ms.map(print::local_time).unwrap_or_default();
        vec![print::cell(&found.name), last, print::cell(&found.root.display().to_string()), print::cell(&state)]
    };
    print::table(&["name", "last call", "folder", ""], &found.iter().map(row).collect::<Vec<_>>());
    Ok(ExitCode::SUCCESS)
}

async fn take_along(from: &Path, to: Option<PathBuf>, replace: bool, settings: &Settings) -> anyhow::Result<ExitCode> {
    let projects = settings.projects()?;
    let resolved = match to {
        Some(to) => settings.with_root(Some(to)),
        None => settings.with_root(None),
    }
    .staying_here()
    .resolve()?;
    // As it was written down: without `.`, `..` and a slash at the end.
    let from: PathBuf = std::path::absolute(from)?.components().collect();
    ensure!(from != resolved.root, "{} is where it was: name the folder that it was in before", from.display());
    let former = projects.join(folder_name(&from));
    if !Store::is_in(&former) {
        return Err(Usage::error(format!(
            "no project of {} is known here: `toolhost project list` shows which there are",
            from.display()
        )));
    }
    ensure!(!from.exists(), "{} is still there: move the folder first, then say so", from.display());
    let in_use = |what: &Path| format!("a host has the project of {} open: end it first", what.display());
    ensure!(!Store::is_in_use(&former), in_use(&from));
    ensure!(!Store::is_in_use(&resolved.state), in_use(&resolved.root));
    let aside = match (Store::is_in(&resolved.state), replace) {
        (false, _) => None,
        (true, true) => Some(put_aside(&resolved)?),
        (true, false) => bail!("{} has records of its own: `--replace` puts them aside", resolved.root.display()),
    };
    take_records(&from, &former, &resolved).await?;
    let connection = wire::connect(&resolved, Need::Writing).await?;
    let arguments = json!({ "from": from, "to": resolved.root });
    connection.record(&connection.who(), "project.move", arguments, async { anyhow::Ok(()) }).await?;
    connection.close().await?;
    if settings.json {
        print::json(&json!({ "from": from, "root": resolved.root, "state": resolved.state, "aside": aside }))?;
    } else {
        if let Some(aside) = aside {
            print::line(format_args!("what this folder had is in {}", aside.display()));
        }
        print::line(format_args!("the project of {} goes on in {}", from.display(), resolved.root.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Moves the state folder of a workspace out of the way.
pub(super) fn put_aside(resolved: &Resolved) -> anyhow::Result<PathBuf> {
    let folder = resolved.data.join(ASIDE);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    // Made by nobody else: its name is drawn.
    let aside =
        tempfile::Builder::new().prefix(&format!("{}-", folder_name(&resolved.root))).tempdir_in(&folder)?.keep();
    std::fs::rename(&resolved.state, &aside).with_context(|| aside.display().to_string())?;
    Ok(aside)
}

/// Gives the state folder of one workspace to another. After a crash half-way the user types the same command again.
async fn take_records(from: &Path, former: &Path, resolved: &Resolved) -> anyhow::Result<()> {
    let store = Store::open_known(former, projects::clock(), toolhost::SUBJECTS, Durability::Power).await?;
    store.move_project(from, &resolved.root).await?;
    store.close().await?;
    // A host that opens it meanwhile notices that its state folder was moved, and writes nothing.
    std::fs::rename(former, &resolved.state)
        .with_context(|| format!("{} cannot be moved to {}", former.display(), resolved.state.display()))?;
    let known = |state: &Path| Known::new(&resolved.data, state, &folder_name(state));
    known(&resolved.state).has_database();
    known(former).forget()
}
