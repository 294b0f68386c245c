//! `toolhost backup` and `toolhost restore`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use serde_json::json;
use toolhost::Need;
use toolhost_contract::Durability;
use toolhost_store::Store;

use super::project::put_aside;
use crate::known::Known;
use crate::settings::{Resolved, Settings, folder_name};
use crate::{Usage, print, projects, wire};

/// How the name of a copy ends.
const ENDING: &str = "toolhost.db";
/// How the names of state folders begin that are being restored.
const RESTORING: &str = ".restoring-";
/// Where copies are made that nobody has named a place for.
const BACKUPS: &str = "backups";

/// Copy the project's database into one file: records, asks, packages, audit, members. Hosts may go on meanwhile
///
/// The copy has no files of the workspace, no configuration and no keys of models. Hashes of tokens are in it, and whatever agents wrote: keep
/// it where only you can read it.
#[derive(clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to make, outside the workspace, where agents could read it [default: the project's name and the time, in the folder
    /// `backups` beside the project's own state]
    file: Option<PathBuf>,
}

/// Make the project's database from a copy of `toolhost backup`
///
/// The copy may come from this folder or another one, on this machine or another. The command verifies its audit first, and changes nothing if
/// the copy is damaged.
#[derive(clap::Args)]
pub(crate) struct RestoreArgs {
    /// The copy
    file: PathBuf,
    /// Put the records aside that this folder has already
    #[arg(long)]
    replace: bool,
}

pub(crate) async fn back_up(args: BackupArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let resolved = of_this_machine(settings)?;
    if !Store::is_in(&resolved.state) {
        return Err(Usage::error(format!("{} has no records to copy", resolved.root.display())));
    }
    let file = match args.file {
        Some(file) => std::path::absolute(file)?,
        None => resolved.data.join(BACKUPS).join(name_of(&resolved)),
    };
    ensure!(!file.exists(), "{} is there already: name another file", file.display());
    let folder = file.parent().context("the file has no folder")?;
    if file.starts_with(resolved.data.join(BACKUPS)) {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    if folder.starts_with(&resolved.root) {
        return Err(Usage::error(format!(
            "{} is in the workspace, where agents could read the whole audit: name a file elsewhere",
            file.display()
        )));
    }
    // Only its owner can read it from its first byte on, and nobody finds half of it under its name.
    let part = tempfile::Builder::new()
        .prefix(".toolhost-backup-")
        .tempfile_in(&folder)
        .with_context(|| format!("{} cannot be written", folder.display()))?;
    Store::back_up(&resolved.state, part.path()).await?;
    let bytes = part.as_file().metadata()?.len();
    part.persist_noclobber(&file).with_context(|| format!("{} cannot be made", file.display()))?;
    let connection = wire::connect(&resolved, Need::Writing).await?;
    let arguments = json!({ "file": file, "bytes": bytes });
    connection.record(&connection.who(), "project.backup", arguments, async { anyhow::Ok(()) }).await?;
    connection.close().await?;
    if settings.json {
        print::json(&json!({ "file": file, "bytes": bytes, "root": resolved.root }))?;
    } else {
        print::line(format_args!("{} has all of {}, {bytes} bytes", file.display(), resolved.root.display()));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn restore(args: RestoreArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let resolved = of_this_machine(settings)?;
    ensure!(args.file.is_file(), "{} is no file", args.file.display());
    ensure!(
        !Store::is_in_use(&resolved.state),
        "a host has the project of {} open: end it first",
        resolved.root.display()
    );
    let has = Store::is_in(&resolved.state);
    if has && !args.replace {
        bail!("{} has records of its own: `--replace` puts them aside", resolved.root.display());
    }
    let states = resolved.state.parent().context("the state folder has no folder")?;
    std::fs::create_dir_all(states).with_context(|| states.display().to_string())?;
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    let making = tempfile::Builder::new().prefix(RESTORING).permissions(private).tempdir_in(states)?;
    let (from, rows) = fill(making.path(), &args.file, &resolved.root).await?;
    // From here on nothing can be wrong with the copy.
    // Without a database, something else may be left there.
    let aside = if resolved.state.exists() { Some(put_aside(&resolved)?) } else { None };
    std::fs::rename(making.keep(), &resolved.state)
        .with_context(|| format!("{} cannot be made", resolved.state.display()))?;
    Known::new(&resolved.data, &resolved.state, &folder_name(&resolved.state)).has_database();
    let connection = wire::connect(&resolved, Need::Writing).await?;
    let arguments = json!({ "file": args.file, "root": from });
    connection.record(&connection.who(), "project.restore", arguments, async { anyhow::Ok(()) }).await?;
    let members = connection.store().people().members(connection.project().id).await?;
    connection.close().await?;
    if settings.json {
        print::json(&json!({ "root": resolved.root, "copyOf": from, "auditRows": rows, "aside": aside }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(aside) = aside {
        print::line(format_args!("what this folder had is in {}", aside.display()));
    }
    let members: Vec<String> = members
        .iter()
        .map(|member| format!("{} ({})", print::visible_line(&member.name), member.role.as_str()))
        .collect();
    print::aside(format_args!("its members, as in the copy: {}", members.join(", ")));
    print::aside("tokens that were revoked after the copy was made are valid again: `toolhost token list` shows them");
    print::line(format_args!(
        "the project of {} goes on in {}, with {rows} verified rows of its audit",
        from.display(),
        resolved.root.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Makes a database from a copy and gives it this workspace. Answers whose it was, and the verified rows of its audit.
async fn fill(state: &Path, copy: &Path, root: &Path) -> anyhow::Result<(PathBuf, u64)> {
    Store::restore(copy, state).await?;
    let store = Store::open_known(state, projects::clock(), toolhost::SUBJECTS, Durability::Power).await?;
    let known = store.reader().projects().await?;
    let [project] = known.as_slice() else {
        bail!("{} has {} projects, and one can be restored", copy.display(), known.len());
    };
    // It is there, so nobody is made its owner.
    let id = store.project(Path::new(&project.root), &project.name, "").await?.id;
    let verdict = store.reader().verify_audit(id).await?;
    if let Some(first) = verdict.problems.first() {
        bail!("the audit of {} does not hold: row {} {}", copy.display(), first.seq, first.what);
    }
    let from = PathBuf::from(&project.root);
    if from != root {
        store.move_project(&from, root).await?;
    }
    store.close().await?;
    Ok((from, verdict.rows))
}

/// The project, in a file of this machine.
fn of_this_machine(settings: &Settings) -> anyhow::Result<Resolved> {
    if settings.shared_database()?.is_some() {
        return Err(Usage::error(
            "a shared database is copied by its server's own tools, all projects at once: `pg_dump --format=custom`, and `pg_restore` to \
             bring it back",
        ));
    }
    settings.resolve()
}

fn name_of(resolved: &Resolved) -> String {
    let name = resolved.root.file_name().map(|name| name.to_string_lossy().into_owned());
    // Colons are no part of names on some disks.
    let time = print::time(projects::clock().unix_ms()).replace(['-', ':'], "");
    format!("{}-{time}.{ENDING}", name.unwrap_or_else(|| "project".to_owned()))
}
