//! The database file that this process has open, which must stay the one at its path.
//!
//! SQLite goes on with a file that was deleted or moved, and says that all is well: what it writes then is gone with the
//! last process that has it open, or is in another place than where the next process looks.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// What a path led to when it was opened.
pub(crate) struct DatabaseFile {
    folder: PathBuf,
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl DatabaseFile {
    /// The file at `path`, which has just been opened in the state folder `folder`.
    pub(crate) fn opened(folder: &Path, path: &Path) -> std::io::Result<Self> {
        let there = std::fs::metadata(path)?;
        Ok(Self { folder: folder.to_owned(), path: path.to_owned(), device: there.dev(), inode: there.ino() })
    }

    /// Refuses if the path leads elsewhere by now, or nowhere.
    pub(crate) fn is_there(&self) -> Result<()> {
        match std::fs::metadata(&self.path) {
            Ok(there) if (there.dev(), there.ino()) == (self.device, self.inode) => Ok(()),
            _ => Err(Error::Moved { folder: self.folder.clone() }),
        }
    }
}
