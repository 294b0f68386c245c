//! The database's files that this process has open, which must stay those at their paths.
//!
//! SQLite goes on with a file that was deleted or moved, and says that all is well: what it writes then is gone with the
//! last process that has it open, or is in another place than where the next process looks. That is so for the database
//! and for the two files beside it: the log (`-wal`), where every change is first, and its index (`-shm`), by which
//! processes know of each other's changes. SQLite removes those two when the last connection is closed, so they are the
//! same for as long as this process has a connection.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::SqliteConnection;

use crate::error::{Error, Result};

/// What SQLite appends to the name of a database for the log and for its index.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// What a path led to when it was opened.
pub(crate) struct DatabaseFile {
    folder: PathBuf,
    path: PathBuf,
    identity: Identity,
    beside: [PathBuf; 2],
    used: Mutex<Used>,
}

/// When the log was written last, and how long it is. Each commit is written to it. Nobody may open the index to look there: SQLite's
/// locks on a file are this process's, and closing any handle of the file lets go of them.
pub(crate) type LogMark = (i64, i64, u64);

/// A device and an inode.
type Identity = (u64, u64);

/// What this process's connections use beside the database.
#[derive(Default)]
struct Used {
    connections: usize,
    beside: [Option<Identity>; 2],
}

/// A connection of this process.
pub(crate) struct Open {
    /// `None` while it is dropped.
    connection: Option<SqliteConnection>,
    file: Arc<DatabaseFile>,
}

impl DatabaseFile {
    /// The file at `path`, which has just been opened in the state folder `folder`.
    pub(crate) fn opened(folder: &Path, path: &Path) -> std::io::Result<Self> {
        let there = std::fs::metadata(path)?;
        let beside = beside(path);
        let identity = (there.dev(), there.ino());
        Ok(Self { folder: folder.to_owned(), path: path.to_owned(), identity, beside, used: Mutex::default() })
    }

    /// Refuses if a path leads elsewhere by now, or nowhere.
    pub(crate) fn is_there(&self) -> Result<()> {
        if at(&self.path) != Some(self.identity) {
            return Err(Error::Moved { folder: self.folder.clone() });
        }
        match self.first_of_beside(|used, there| there != Some(used)) {
            Some(path) => Err(Error::LogGone { path }),
            None => Ok(()),
        }
    }

    /// Waits until the disk has all that was committed. SQLite itself does so only with `synchronous = FULL`, for each commit.
    pub(crate) fn sync_log(&self) -> std::io::Result<()> {
        match std::fs::File::open(&self.beside[0]) {
            Ok(log) => log.sync_data(),
            // All of it is in the database, which was waited for.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// `None` where there is no log.
    pub(crate) fn log_mark(&self) -> Option<LogMark> {
        std::fs::metadata(&self.beside[0]).ok().map(|log| (log.mtime(), log.mtime_nsec(), log.len()))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the log or its index is no longer where it was.
    pub(crate) fn log_is_gone(&self) -> bool {
        self.first_of_beside(|used, there| there != Some(used)).is_some()
    }

    /// Whether there is another log, or another index, than this process has open.
    fn has_another_log(&self) -> bool {
        self.first_of_beside(|used, there| there.is_some_and(|there| there != used)).is_some()
    }

    fn first_of_beside(&self, is_it: impl Fn(Identity, Option<Identity>) -> bool) -> Option<PathBuf> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = used.beside.iter().zip(&self.beside);
        let found = files.find(|(used, path)| used.is_some_and(|used| is_it(used, at(path))));
        found.map(|(_, path)| path.clone())
    }
}

/// The first file missing beside a database that others have open. Whoever opens the database then begins another log, and
/// neither finds the other's changes.
pub(crate) fn missing_beside(database: &Path) -> Option<PathBuf> {
    beside(database).into_iter().find(|path| at(path).is_none())
}

impl Open {
    /// A connection that has read something: only then its files beside the database are open.
    pub(crate) fn of(connection: SqliteConnection, file: Arc<DatabaseFile>) -> Self {
        {
            let mut used = file.used.lock().unwrap_or_else(PoisonError::into_inner);
            used.connections += 1;
            for (used, path) in used.beside.iter_mut().zip(&file.beside) {
                *used = used.or_else(|| at(path));
            }
        }
        Self { connection: Some(connection), file }
    }

    pub(crate) fn connection(&mut self) -> sqlx::Result<&mut SqliteConnection> {
        self.connection.as_mut().ok_or(sqlx::Error::WorkerCrashed)
    }

    /// The connection, to be closed; `None` where closing would do harm.
    pub(crate) fn into_connection(mut self) -> Option<SqliteConnection> {
        if self.file.has_another_log() { None } else { self.connection.take() }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && self.file.has_another_log()
        {
            // The last one that is closed writes its log into the database and removes the log at the path: other hosts'
            // changes would be overwritten, and lost. Left open, it ends with this process as if that were killed. It
            // still counts, so that no further connection is opened.
            std::mem::forget(connection);
            return;
        }
        let mut used = self.file.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.connections -= 1;
        if used.connections == 0 {
            *used = Used::default();
        }
    }
}

fn at(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|there| (there.dev(), there.ino()))
}

fn beside(database: &Path) -> [PathBuf; 2] {
    BESIDE.map(|end| {
        let mut path = database.as_os_str().to_owned();
        path.push(end);
        path.into()
    })
}
