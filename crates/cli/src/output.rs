//! Where an export goes: standard output, a pipe, or a file that is whole or not there.

use std::fs::File;
use std::io::{BufWriter, Error, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::TempPath;

/// How the name of an export begins while it is written.
const PART_PREFIX: &str = ".export-";

/// An export that is being written.
pub(crate) enum Output {
    Stream(BufWriter<Box<dyn Write + Send>>),
    /// Beside its place first, under a name that nobody could prepare: an export that stops half-way is not taken for a whole
    /// one, and an earlier one stays.
    Part(BufWriter<File>, TempPath, PathBuf),
}

impl Output {
    /// To a file, or to standard output.
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stream(BufWriter::new(Box::new(std::io::stdout())))) };
        let there = std::fs::symlink_metadata(path).ok().map(|there| there.file_type());
        anyhow::ensure!(there.is_none_or(|there| !there.is_dir()), "{} is a folder: name a file", path.display());
        if std::fs::metadata(path).is_ok_and(|target| !target.is_file()) {
            // A pipe or a device takes what comes; nothing takes its place.
            let file = File::create(path).with_context(|| unwritable(path))?;
            return Ok(Self::Stream(BufWriter::new(Box::new(file))));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sweep(folder);
        let made = tempfile::Builder::new().prefix(PART_PREFIX).tempfile_in(folder);
        let part = made.with_context(|| unwritable(path))?;
        // Held as long as this process lives: who sweeps leaves it alone.
        let _ = part.as_file().try_lock();
        let (file, part) = part.into_parts();
        Ok(Self::Part(BufWriter::new(file), part, path.to_owned()))
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: &str) -> std::io::Result<()> {
        match self {
            Self::Stream(out) => writeln!(out, "{line}"),
            Self::Part(out, _, path) => writeln!(out, "{line}")
                .map_err(|error| Error::new(error.kind(), format!("{}: {error}", unwritable(path)))),
        }
    }

    /// All is written: the file takes its place.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stream(mut out) => Ok(out.flush()?),
            Self::Part(out, part, path) => {
                let file = out.into_inner().map_err(std::io::IntoInnerError::into_error);
                file.and_then(|file| file.sync_all()).with_context(|| unwritable(&path))?;
                part.persist(&path).with_context(|| unwritable(&path))
            }
        }
    }
}

fn unwritable(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}

/// Removes what exports that were killed left in a folder.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_part = entry.file_name().to_string_lossy().starts_with(PART_PREFIX);
        // Only plain files are opened: a FIFO of that name would keep us waiting.
        if !is_part || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            // Somebody else's may stay: it is only in the way.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
