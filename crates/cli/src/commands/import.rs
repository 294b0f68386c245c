//! `toolhost import`

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use toolhost::Need;
use toolhost_records::Records;
use toolhost_records::foreign;
use toolhost_records::{Again, Extent, Imported, ProjectRecords, RecordError};
use toolhost_store::Role;

use crate::settings::Settings;
use crate::wire;
use crate::{Usage, print};

/// Longest line of an export, bytes: a record and what JSON makes of its characters.
const LINE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Longest export that is read, bytes: it is kept in memory until it is imported.
const EXPORT_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// Longest file of another system, bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Import records from an export, a Cowork Forge project or beads
///
/// If the import fails, nothing is imported. Records of an export keep their ids; records of
/// other systems get new ids. Beads issues that were imported before are updated.
#[derive(clap::Args)]
#[command(override_usage = "toolhost import [OPTIONS] [FORMAT] <PATH>")]
pub(crate) struct Args {
    /// `cowork DIR`, `beads FILE`, or the FILE of an export
    #[arg(required = true, num_args = 1..=2, value_names = ["FORMAT", "PATH"])]
    what: Vec<PathBuf>,
    /// Import the intact part of an export that was cut off or changed
    ///
    /// Exports of earlier versions need it too: they have no `end` line that states their
    /// contents. An incomplete last line is left out. A reference to a missing record is removed
    /// from the record that has it; a record that cannot exist without the missing one, such as
    /// a task without its feature, is left out, and `toolhost record restore` can bring it back
    /// later. Everything left out is listed.
    #[arg(long)]
    partial: bool,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let (format, path) = match args.what.as_slice() {
        [path] => ("export", path),
        [format, path] => match format.to_str() {
            Some(format @ ("cowork" | "beads" | "export")) => (format, path),
            _ => {
                return Err(Usage::error(format!(
                    "unknown format `{}`: use `export`, `cowork` or `beads`",
                    format.display()
                )));
            }
        },
        _ => return Err(Usage::error("no file is named: pass the path of an export")),
    };
    if args.partial && format != "export" {
        return Err(Usage::error(
            "`--partial` works with Toolhost exports only: other formats do not state what is missing",
        ));
    }
    let extent = if args.partial { Extent::Partial } else { Extent::Whole };
    let resolved = settings.resolve()?;
    let connection = wire::connect(&resolved, Need::Writing).await?;
    connection.need_role(Role::Editor).await?;
    let who = connection.who();
    let desk = Records::new(connection.store().database()).desk(who.clone())?;
    let mut arguments = json!({ "format": format, "from": path.file_name().map(|name| name.to_string_lossy()) });
    if args.partial {
        arguments["partial"] = true.into();
    }
    let work = async {
        read(&desk, format, path, extent).await.with_context(|| format!("nothing was imported from {}", path.display()))
    };
    let (imported, notes) = connection.record(&who, "import", arguments, work).await?;
    connection.close().await?;
    if settings.json {
        print::json(&json!({ "imported": imported, "notes": notes }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (kind, count) in &imported.records {
        print::line(format_args!("{count:>6} {kind}"));
    }
    if imported.updated > 0 {
        print::line(format_args!("{:>6} updated", imported.updated));
    }
    if imported.unchanged > 0 {
        print::line(format_args!("{:>6} already here, unchanged", imported.unchanged));
    }
    for note in notes {
        print::note(format_args!("{} {}", print::paint(print::WARN, "note:"), print::visible(&note)));
    }
    Ok(ExitCode::SUCCESS)
}

async fn read(
    desk: &ProjectRecords,
    format: &str,
    path: &Path,
    extent: Extent,
) -> anyhow::Result<(Imported, Vec<String>)> {
    let bundle = match format {
        "export" => {
            let file = std::fs::File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
            // Read before the import begins: while it runs, others wait, and a file may be slow to come.
            let lines: Vec<Result<String, RecordError>> =
                lines(std::io::BufReader::new(file.take(EXPORT_BYTES_MAX))).collect();
            let bytes: usize = lines.iter().flatten().map(String::len).sum();
            anyhow::ensure!((bytes as u64) < EXPORT_BYTES_MAX, "it is longer than {EXPORT_BYTES_MAX} bytes");
            let mut imported = desk.import(lines.into_iter(), extent).await?;
            let notes = std::mem::take(&mut imported.notes);
            return Ok((imported, notes));
        }
        "cowork" => foreign::cowork(&cowork(path)?)?,
        _ => foreign::beads(&text(path)?)?,
    };
    let again = if format == "beads" { Again::Updates } else { Again::Doubles };
    let (current, why) = (bundle.current.as_deref(), format!("from {format}"));
    let imported = desk.import_drafts(bundle.drafts, current, &why, again).await?;
    Ok((imported, bundle.notes))
}

/// The lines of a file, none of them longer than [`LINE_BYTES_MAX`].
fn lines(mut file: impl BufRead) -> impl Iterator<Item = Result<String, RecordError>> {
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = (&mut file).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        match read {
            Ok(0) => None,
            Ok(_) if !line.ends_with(b"\n") && line.len() as u64 == LINE_BYTES_MAX => {
                Some(Err(std::io::Error::other(format!("a line is longer than {LINE_BYTES_MAX} bytes")).into()))
            }
            Ok(_) => {
                let is_last = !line.ends_with(b"\n");
                match String::from_utf8(line) {
                    Ok(text) => Some(Ok(text)),
                    // Cut off within a character: as incomplete as if it were cut off before it.
                    Err(error) if is_last && error.utf8_error().error_len().is_none() => {
                        let whole = error.utf8_error().valid_up_to();
                        let mut bytes = error.into_bytes();
                        bytes.truncate(whole);
                        Some(Ok(String::from_utf8_lossy(&bytes).into_owned()))
                    }
                    Err(error) => Some(Err(std::io::Error::other(error).into())),
                }
            }
            Err(error) => Some(Err(error.into())),
        }
    })
}

/// Reads the files of a Cowork Forge project: the folder itself, or its `.cowork-v2`.
fn cowork(folder: &Path) -> anyhow::Result<foreign::Files> {
    let inner = folder.join(".cowork-v2");
    // A link would lead to a folder that nobody named.
    let is_folder = std::fs::symlink_metadata(&inner).is_ok_and(|there| there.is_dir());
    let root = if is_folder { inner } else { folder.to_owned() };
    let is_project = root.join("project.json").is_file();
    if !is_project && !["iterations", "memory"].iter().any(|part| root.join(part).is_dir()) {
        let lacks = if is_folder {
            "its `.cowork-v2/` folder has no `project.json`, `iterations/` or `memory/`"
        } else {
            "it has no `.cowork-v2/` folder, and no `project.json`, `iterations/` or `memory/` of its own"
        };
        return Err(Usage::error(format!("{} is not a Cowork Forge project: {lacks}", folder.display())));
    }
    let mut files = foreign::Files::new();
    collect(&root, &root, &mut files)?;
    Ok(files)
}

/// Every file that can hold records, by its path below the root.
fn collect(root: &Path, folder: &Path, files: &mut foreign::Files) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            // The generated code is no record, and may be large.
            if !matches!(entry.file_name().to_str(), Some("workspace" | "logs")) {
                collect(root, &path, files)?;
            }
        } else if kind.is_file() && matches!(path.extension().and_then(|end| end.to_str()), Some("json" | "md")) {
            let name = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            files.insert(name, text(&path)?);
        }
    }
    Ok(())
}

fn text(path: &Path) -> anyhow::Result<String> {
    let size = std::fs::metadata(path).with_context(|| format!("{} cannot be read", path.display()))?.len();
    anyhow::ensure!(size <= FILE_BYTES_MAX, "{} is {size} bytes long; {FILE_BYTES_MAX} is the most", path.display());
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read as text", path.display()))
}
