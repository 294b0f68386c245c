//! What can go wrong with a project's database. These messages are the operator's and may name files.

use std::path::PathBuf;
use std::sync::Arc;

use sqlx::migrate::MigrateError;
use toolhost_contract::{ErrorKind, ToolError};

use crate::ask::{AskEnd, AskState};
use crate::mark::Mark;
use crate::outage::Outage;
use crate::sessions::state::SessionState;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the state folder {path} cannot be used: {source}", path = .path.display())]
    Folder { path: PathBuf, source: std::io::Error },
    #[error(
        "{path} is not a database of toolhost, or it is damaged; nothing was changed. `toolhost restore FILE --replace` brings a \
         copy back; or move the file away to begin a new one",
        path = .path.display()
    )]
    Damaged { path: PathBuf, source: sqlx::Error },
    #[error(
        "{path} cannot be written, so nothing can be recorded: {source}. Look whether its disk is full, its folder is \
         read-only, or a limit on the size of files (`ulimit -f`) is in force; what only reads still works",
        path = .path.display()
    )]
    Unwritable { path: PathBuf, source: sqlx::Error },
    /// The file at the path is another one than this process has open.
    #[error(
        "the state folder {folder} was moved or deleted while this host ran; nothing was written. Move it back, and \
         the host continues. If it is lost: stop the host, bring a copy back with `toolhost restore FILE --replace` or run `toolhost init --new` for \
         an empty database, then start the host again",
        folder = .folder.display()
    )]
    Moved { folder: PathBuf },
    /// The same of a file that SQLite keeps beside the database.
    #[error(
        "{path} was deleted or replaced while a host had it open, and part of the database is in it; nothing was written. \
         End every host of this project: the last one to end saves what is still open. Then start again",
        path = .path.display()
    )]
    LogGone { path: PathBuf },
    #[error(
        "the database in the state folder {folder} is missing. Move the folder back, bring a copy back with \
         `toolhost restore FILE --replace`, or run `toolhost init --new` for an empty database",
        folder = .folder.display()
    )]
    Missing { folder: PathBuf },
    #[error("the state folder {folder} cannot be written, so it is only read", folder = .folder.display())]
    OnlyReading { folder: PathBuf },
    #[error(
        "{path} was made by an older toolhost, and it cannot be brought up to date where it cannot be written; copy its \
         folder to a place that can be written, and name that with --state",
        path = .path.display()
    )]
    Older { path: PathBuf },
    #[error("the connection to the database was lost; nothing was written: {source}")]
    NotWritten { source: sqlx::Error },
    /// The connection ended during COMMIT, and what became of it cannot be learnt.
    #[error(
        "the connection to the database was lost while something was written; whether it was is not known: {source}"
    )]
    InDoubt { source: sqlx::Error, mark: Arc<Mark> },
    #[error("another host took this one for dead, so it writes nothing more in the name that it had")]
    TakenOver,
    #[error("the server keeps the lock of this host for a connection that has ended; nothing is started without it")]
    NotPresent,
    #[error("{path} was made by a newer toolhost; nothing was changed. Update toolhost to use it", path = .path.display())]
    Newer { path: PathBuf },
    #[error("the database's address is not a PostgreSQL URL: {source}; it looks like postgres://USER@HOST:5432/NAME")]
    Url { source: sqlx::Error },
    #[error("{place} cannot be reached: {source}; is the server running, and does the database exist?")]
    Unreachable { place: String, source: sqlx::Error },
    #[error("`{0}` cannot be a user's name: 1 to 100 characters, none of them invisible")]
    Name(String),
    #[error(
        "`{name}` differs from the user `{known}` in large and small letters alone: people would take one for the other"
    )]
    NameLike { name: String, known: String },
    #[error("a project keeps at least one owner: make somebody else an owner first")]
    LastOwner,
    #[error("a row is not as it should be: {0}")]
    Row(String),
    #[error("{place} has no connection left: raise its max_connections, or run fewer hosts")]
    Full { place: String },
    #[error("there is no ask-{number} in this project")]
    NoAsk { number: i64 },
    #[error("{}", ended_text(*number, *end, by.as_deref()))]
    AskEnded { number: i64, state: AskState, end: AskEnd, by: Option<String> },
    #[error("rule-{number} is not in force: no rule has this id, or it has expired or was revoked")]
    NoPermit { number: i64 },
    #[error("{max} questions wait for a person already: let somebody answer them first")]
    TooManyAsks { max: i64 },
    #[error("{max} questions of this session wait for people already")]
    TooManyAsksOfSession { max: i64 },
    #[error("what this session asks people would be {bytes} bytes in all; {max} may wait for them")]
    TooLargeAsks { bytes: i64, max: i64 },
    #[error("there is no session `{id}` in this project")]
    NoSession { id: String },
    #[error("more than one session begins with `{typed}`: {ids}")]
    SessionsBeginSo { typed: String, ids: String },
    #[error("session {id} is being run already")]
    SessionRuns { id: String },
    #[error("session {id} has ended: it is {}", state.as_str())]
    SessionEnded { id: String, state: SessionState },
    #[error(
        "session {id} does not run, so it cannot be paused: it {}. `toolhost session resume {id}` continues it, `toolhost session cancel {id}` \
         ends it for good",
        if *state == SessionState::Limited { "was stopped by a limit" } else { "has failed" }
    )]
    SessionStopped { id: String, state: SessionState },
    #[error("{max} messages wait to be heard by session {id} already: wait until it has heard them")]
    TooManyMessages { id: String, max: i64 },
    #[error("{0}")]
    Journal(String),
    #[error("no database is open")]
    Closed,
    #[error("the database's tables could not be brought up to date: {0}")]
    Migrate(#[source] MigrateError),
    #[error("the database: {0}")]
    Sql(#[from] sqlx::Error),
    #[error("the audit could not be written: {why}")]
    Audit { why: String, outage: Option<Outage> },
}

impl Error {
    pub(crate) fn audit(why: impl Into<String>) -> Self {
        Self::Audit { why: why.into(), outage: None }
    }

    /// The same as something that happened to the audit, for each of those who wait for it.
    pub(crate) fn of_audit(&self) -> Self {
        match self {
            Self::Audit { why, outage } => Self::Audit { why: why.clone(), outage: *outage },
            error => Self::Audit { why: error.to_string(), outage: error.outage() },
        }
    }

    /// What keeps the database from working, where the cause lies outside of what was asked for.
    #[must_use]
    pub fn outage(&self) -> Option<Outage> {
        match self {
            Self::Moved { .. } => Some(Outage::Moved),
            Self::LogGone { .. } => Some(Outage::LogGone),
            Self::Missing { .. } => Some(Outage::Missing),
            Self::Unreachable { .. } => Some(Outage::Unreachable),
            Self::Full { .. } => Some(Outage::Busy),
            Self::OnlyReading { .. } => Some(Outage::ReadOnly),
            Self::NotWritten { .. } => Some(Outage::Lost),
            Self::InDoubt { .. } => Some(Outage::InDoubt),
            Self::TakenOver | Self::NotPresent => Some(Outage::TakenOver),
            Self::Folder { source, .. } => Outage::of_io(source),
            Self::Audit { outage, .. } => *outage,
            Self::Sql(source) | Self::Unwritable { source, .. } => Outage::of_sql(source),
            Self::Migrate(MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _)) => {
                Outage::of_sql(source)
            }
            _ => None,
        }
    }

    /// Whether it is the caller who asks for what cannot be, and not the database that fails.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::NoAsk { .. }
                | Self::AskEnded { .. }
                | Self::NoPermit { .. }
                | Self::TooManyAsks { .. }
                | Self::TooManyAsksOfSession { .. }
                | Self::TooLargeAsks { .. }
        )
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        if matches!(error, Error::NoSession { .. }) {
            return Self::new(ErrorKind::NotFound, error.to_string());
        }
        if matches!(error, Error::SessionRuns { .. } | Error::SessionEnded { .. } | Error::SessionStopped { .. }) {
            return Self::new(ErrorKind::Conflict, error.to_string());
        }
        if matches!(error, Error::TooManyMessages { .. }) {
            return Self::new(ErrorKind::Limit, error.to_string());
        }
        if matches!(error, Error::Name(_) | Error::NameLike { .. } | Error::SessionsBeginSo { .. }) {
            return Self::new(ErrorKind::Validation, error.to_string());
        }
        let Some(outage) = error.outage() else { return Self::internal(error) };
        let (message, hint) = outage.told();
        let kind = if outage == Outage::InDoubt { ErrorKind::Unknown } else { ErrorKind::Io };
        let mut told = Self::new(kind, message).hint(hint);
        told.source = Some(Box::new(error));
        told
    }
}

fn ended_text(number: i64, end: AskEnd, by: Option<&str>) -> String {
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    match end {
        AskEnd::Open => format!("ask-{number} has no answer yet"),
        AskEnd::Answered => format!("ask-{number} was answered before{by}"),
        AskEnd::Used => format!("ask-{number} was answered before{by}; a call has used the answer"),
        AskEnd::TakenBack => format!("ask-{number} was answered before{by}, and the answer was taken back"),
        AskEnd::Withdrawn => format!("ask-{number} was withdrawn"),
        AskEnd::SessionCancelled => format!("ask-{number} was withdrawn: its session was cancelled"),
        AskEnd::Unused => {
            format!("ask-{number} was answered{by}, and the answer expired before a call used it")
        }
        AskEnd::Unanswered => format!("ask-{number} has expired"),
    }
}
