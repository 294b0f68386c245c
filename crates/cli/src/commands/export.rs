//! `toolhost export`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use toolhost::{Need, Recording};
use toolhost_records::ProjectRecords;
use toolhost_records::Records;
use toolhost_store::Role;

use crate::print;
use crate::settings::Settings;
use crate::wire;

/// How the name of an export begins while it is written.
const PART_PREFIX: &str = ".export-";

/// Write all records and their history as JSON Lines, which `import` reads back
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file; standard output otherwise
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let resolved = settings.resolve()?;
    let connection = wire::connect(&resolved, Need::Reading).await?;
    connection.need_role(Role::Viewer).await?;
    let who = connection.who();
    let desk = Records::new(connection.store().database()).desk(who.clone())?;
    let arguments =
        json!({ "to": args.output.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy()) });
    let owns = connection.need_role(Role::Owner).await.is_ok();
    let recording = if owns { wire::IF_WRITABLE } else { Recording::Required };
    let work = write(&desk, args.output.as_deref());
    let lines = connection.record_if(recording, &who, "export", arguments, work).await?;
    wire::close_reading(&connection).await?;
    if let Some(path) = args.output {
        if settings.json {
            print::json(&json!({ "file": path, "lines": lines }))?;
        } else {
            print::note(format_args!("{lines} lines written to {}", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes what exports that were killed left in a folder.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_part = entry.file_name().to_string_lossy().starts_with(PART_PREFIX);
        // Only plain files are opened: a FIFO of that name would keep us waiting.
        if !is_part || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        if std::fs::File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            // Somebody else's may stay: it is only in the way.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Writes the lines and says how many.
async fn write(desk: &ProjectRecords, output: Option<&Path>) -> anyhow::Result<u64> {
    let lines = match output {
        None => {
            let mut out = std::io::BufWriter::new(std::io::stdout());
            let lines = desk.export(&mut |line| Ok(writeln!(out, "{}", print::exported(line))?)).await?;
            out.flush()?;
            lines
        }
        Some(path) => {
            let unwritable = || format!("{} cannot be written", path.display());
            let there = std::fs::symlink_metadata(path).ok().map(|there| there.file_type());
            anyhow::ensure!(there.is_none_or(|there| !there.is_dir()), "{} is a folder: name a file", path.display());
            if std::fs::metadata(path).is_ok_and(|target| !target.is_file()) {
                // A pipe or a device takes what comes; nothing takes its place.
                let mut out = std::io::BufWriter::new(std::fs::File::create(path).with_context(unwritable)?);
                let lines = desk.export(&mut |line| Ok(writeln!(out, "{line}")?)).await?;
                out.flush().with_context(unwritable)?;
                return Ok(lines);
            }
            // Beside its place first, under a name that nobody could prepare: an export that stops half-way is not taken
            // for a whole one.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            sweep(folder);
            let part = tempfile::Builder::new().prefix(PART_PREFIX).tempfile_in(folder).with_context(unwritable)?;
            // Held as long as this process lives: who sweeps leaves it alone.
            let _ = part.as_file().try_lock();
            let mut out = std::io::BufWriter::new(part);
            let lines = desk.export(&mut |line| Ok(writeln!(out, "{line}")?)).await?;
            let part = out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(unwritable)?;
            part.as_file().sync_all().with_context(unwritable)?;
            part.persist(path).with_context(unwritable)?;
            lines
        }
    };
    Ok(lines)
}
