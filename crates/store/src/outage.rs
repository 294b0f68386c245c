//! Why a database cannot be used, in words for the caller of a tool.
//!
//! [`crate::Error`] is the operator's: it names folders and servers. A caller sees neither, and still has to know whether
//! anything was changed and who can help.

use std::io::ErrorKind as Io;

/// SQLite's result codes, without their upper bits.
const SQLITE_BUSY: u32 = 5;
const SQLITE_READONLY: u32 = 8;
const SQLITE_IOERR: u32 = 10;
const SQLITE_FULL: u32 = 13;
const SQLITE_CANTOPEN: u32 = 14;
/// PostgreSQL's words for a full disk and for a server that takes no changes.
const PG_DISK_FULL: &str = "53100";
const PG_READ_ONLY: &str = "25006";
/// What a server says to connections that it ends, to those that come too early, and to those it has no room for.
const PG_GONE: [&str; 4] = ["57P01", "57P02", "57P03", "53300"];

/// What keeps a database from working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// The state folder is not where it was.
    Moved,
    /// A file beside the database, which belongs to it, is not where it was.
    LogGone,
    /// There was a database, and there is none.
    Missing,
    DiskFull,
    ReadOnly,
    /// The disk itself fails.
    Disk,
    Unreachable,
    /// The connection ended before anything was written.
    Lost,
    /// The connection ended while it was written, and nobody knows whether it was.
    InDoubt,
    /// Other hosts take this one for dead.
    TakenOver,
    /// Another process holds the database, or the server has no room.
    Busy,
}

impl Outage {
    pub(crate) fn of_io(error: &std::io::Error) -> Option<Self> {
        match error.kind() {
            Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => Some(Self::DiskFull),
            Io::ReadOnlyFilesystem | Io::PermissionDenied => Some(Self::ReadOnly),
            _ => None,
        }
    }

    pub(crate) fn of_sql(error: &sqlx::Error) -> Option<Self> {
        use sqlx::Error as E;
        match error {
            E::Io(_) | E::PoolClosed | E::WorkerCrashed | E::Protocol(_) | E::Tls(_) => Some(Self::Unreachable),
            E::PoolTimedOut => Some(Self::Busy),
            E::Database(error) => {
                let code = error.code()?;
                // SQLite's codes are numbers of at most four digits, PostgreSQL's have five characters.
                if code.len() < 5 {
                    return match code.parse::<u32>().ok()? & 0xff {
                        SQLITE_BUSY => Some(Self::Busy),
                        SQLITE_READONLY => Some(Self::ReadOnly),
                        SQLITE_FULL => Some(Self::DiskFull),
                        SQLITE_IOERR | SQLITE_CANTOPEN => Some(Self::Disk),
                        _ => None,
                    };
                }
                match &*code {
                    PG_DISK_FULL => Some(Self::DiskFull),
                    PG_READ_ONLY => Some(Self::ReadOnly),
                    code if PG_GONE.contains(&code) => Some(Self::Unreachable),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// What a caller is told of it: a fact, and what to do next.
    #[must_use]
    pub fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Moved => (
                "the state folder of this host was moved or deleted while the host ran; nothing was changed",
                "a person must move the state folder back, and the host continues; if it is lost: stop the host, restore a \
                 copy or run `toolhost init --new` for an empty database, then start the host again",
            ),
            Self::LogGone => (
                "a file of the database was deleted or replaced while this host ran; nothing was changed",
                "a person must end every host of this project, which saves what is still open, and start the host again",
            ),
            Self::Missing => (
                "the database of this project is missing",
                "a person must restore the state folder, or run `toolhost init --new` for an empty database",
            ),
            Self::DiskFull => (
                "the disk that holds the database is full; nothing was changed",
                "a person must make room on the disk; then repeat the call",
            ),
            Self::ReadOnly => (
                "the database cannot be written, it is read-only; nothing was changed",
                "reading still works; a person must make the database writable for changes",
            ),
            Self::Disk => (
                "the disk that holds the database fails; nothing was changed",
                "a person must look at the disk of the host: it may be full or broken, or a limit on the size of files \
                 (`ulimit -f`) is in force",
            ),
            Self::Unreachable => (
                "the database cannot be reached; nothing was changed",
                "repeat the call later; if it fails again, a person must look at the database server",
            ),
            Self::Lost => ("the connection to the database was lost; nothing was changed", "repeat the call"),
            Self::InDoubt => (
                "the connection to the database was lost during the change; whether it was made is not known",
                "look whether the change is there before you repeat the call",
            ),
            Self::TakenOver => (
                "this host was without its connection for so long that others took it for dead; nothing was changed",
                "repeat the call",
            ),
            Self::Busy => ("the database is busy; nothing was changed", "repeat the call later"),
        }
    }
}
