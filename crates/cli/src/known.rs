//! Which state folders have had a database.
//!
//! Kept apart from the folders themselves, so that one that was deleted or moved is missed: without it, the next command
//! would begin an empty database in its place and say that there is nothing.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// Below the data folder: a file for each state folder.
const FOLDER: &str = "known";
/// Folders remembered at most; a machine that makes state folders by the thousand makes them to throw them away.
const FOLDERS_MAX: usize = 10_000;

/// What is remembered of one state folder.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    marker: PathBuf,
    state: PathBuf,
}

impl Known {
    /// `name` is the state folder's own among all others.
    pub(crate) fn new(data: &Path, state: &Path, name: &str) -> Self {
        Self { marker: data.join(FOLDER).join(name), state: state.to_owned() }
    }

    /// Whether a database has been there.
    pub(crate) fn had_database(&self) -> bool {
        self.marker.exists()
    }

    /// A database is there. Nothing depends on whether that can be written down, but for being warned later.
    pub(crate) fn has_database(&self) {
        if self.had_database() {
            return;
        }
        if let Err(error) = self.write() {
            tracing::debug!(%error, "that there is a database could not be written down");
        }
    }

    /// Somebody wants a new database in the place of the one that was there.
    pub(crate) fn forget(&self) -> anyhow::Result<()> {
        match std::fs::remove_file(&self.marker) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{} cannot be removed", self.marker.display()))
            }
            _ => Ok(()),
        }
    }

    fn write(&self) -> std::io::Result<()> {
        let folder = self.marker.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        if std::fs::read_dir(folder)?.count() >= FOLDERS_MAX {
            return Err(std::io::Error::other(format!("{FOLDERS_MAX} state folders are known already")));
        }
        // Whole before it has its name. The text is for people who look; what counts is that it is there.
        let part = tempfile::NamedTempFile::new_in(folder)?;
        std::fs::write(part.path(), format!("{}\n", self.state.display()))?;
        part.persist(&self.marker)?;
        Ok(())
    }
}
