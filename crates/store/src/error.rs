//! What can go wrong with a project's database. These messages are the operator's and may name files.

use std::path::PathBuf;

use crate::asks::AskState;
use crate::sessions::SessionState;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the state folder {path} cannot be used: {source}", path = .path.display())]
    Folder { path: PathBuf, source: std::io::Error },
    #[error(
        "{path} is not a database of toolhost, or it is damaged; nothing was changed. Restore a copy, or move the file \
         away to begin a new one",
        path = .path.display()
    )]
    Damaged { path: PathBuf, source: sqlx::Error },
    #[error("{path} was made by a newer toolhost; nothing was changed. Update toolhost to use it", path = .path.display())]
    Newer { path: PathBuf },
    #[error("the database's address is not a PostgreSQL URL: {source}; it looks like postgres://USER@HOST:5432/NAME")]
    Url { source: sqlx::Error },
    #[error("{place} cannot be reached: {source}; is the server running, and does the database exist?")]
    Unreachable { place: String, source: sqlx::Error },
    #[error("`{0}` cannot be a user's name: 1 to 100 characters, none of them invisible")]
    Name(String),
    #[error("a project keeps at least one owner: make somebody else an owner first")]
    LastOwner,
    #[error("a row is not as it should be: {0}")]
    Row(String),
    #[error("{place} has no connection left: raise its max_connections, or run fewer hosts")]
    Full { place: String },
    #[error("there is no ask-{number} in this project")]
    NoAsk { number: i64 },
    #[error("{}", ended_text(*number, *state, by.as_deref()))]
    AskEnded { number: i64, state: AskState, by: Option<String> },
    #[error("there is no rule {number} that is in force")]
    NoPermit { number: i64 },
    #[error("{max} questions wait for a person already: let somebody answer them first")]
    TooManyAsks { max: i64 },
    #[error("{max} questions of this session wait for people already")]
    TooManyAsksOfSession { max: i64 },
    #[error("what this session asks people would be {bytes} bytes in all; {max} may wait for them")]
    TooLargeAsks { bytes: i64, max: i64 },
    #[error("there is no session `{id}` in this project")]
    NoSession { id: String },
    #[error("session {id} is being run already")]
    SessionRuns { id: String },
    #[error("session {id} has ended: it is {}", state.as_str())]
    SessionEnded { id: String, state: SessionState },
    #[error("{0}")]
    Journal(String),
    #[error("no database is open")]
    Closed,
    #[error("the database's tables could not be brought up to date: {0}")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    #[error("the database: {0}")]
    Sql(#[from] sqlx::Error),
    #[error("the audit could not be written: {0}")]
    Audit(String),
}

impl Error {
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

fn ended_text(number: i64, state: AskState, by: Option<&str>) -> String {
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    match state {
        AskState::Open => format!("ask-{number} has no answer yet"),
        AskState::Answered => format!("ask-{number} has been answered{by}"),
        AskState::Used => format!("ask-{number} was answered{by}, and the answer has been used"),
        AskState::Withdrawn => format!("ask-{number} was withdrawn"),
        AskState::Expired => format!("ask-{number} has expired"),
    }
}
