//! Opening a project's database: one file, one writer, some readers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, SqlSafeStr};
use toolhost_contract::Clock;

use crate::audit::Audit;
use crate::error::{Error, Result};
use crate::presence::Presence;
use crate::reader::Reader;

/// How long a connection waits for another process's write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const READERS_MAX: u32 = 4;
const DATABASE_FILE: &str = "toolhost.db";
const MIGRATION_LOCK_FILE: &str = "migrate.lock";
/// SQLite's result codes for "somebody else is at it"; the upper bits tell more.
const SQLITE_CORRUPT: u32 = 11;
const SQLITE_NOTADB: u32 = 26;

/// Every step from an empty database to this version's, in order.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "project", include_str!("../migrations/0001_project.sql")),
    (2, "audit", include_str!("../migrations/0002_audit.sql")),
];

/// A project's state folder, open.
pub struct Store {
    readers: SqlitePool,
    audit: Audit,
    folder: PathBuf,
}

/// A workspace that is known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub id: i64,
    pub name: String,
}

impl Store {
    /// Opens the database in `folder`, making both if they are not there, and closes the calls that a crashed host left
    /// open as `unknown`.
    pub async fn open(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        make_private(folder).map_err(|source| Error::Folder { path: folder.to_owned(), source })?;
        let file = folder.join(DATABASE_FILE);
        let options = SqliteConnectOptions::new()
            .filename(&file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A commit that was answered survives a power cut, not only a crash of ours.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        let lock = lock(folder).await.map_err(|source| Error::Folder { path: folder.to_owned(), source })?;
        let mut writer = options.connect().await.map_err(|source| unusable(&file, source))?;
        migrate(&mut writer, &file).await?;
        let presence =
            Presence::announce(folder).map_err(|source| Error::Folder { path: folder.to_owned(), source })?;
        drop(lock);
        let readers = SqlitePoolOptions::new().max_connections(READERS_MAX).connect_lazy_with(options.read_only(true));
        let audit = Audit::start(writer, presence, clock).await?;
        Ok(Self { readers, audit, folder: folder.to_owned() })
    }

    /// The project of a workspace folder, registered if it is new.
    pub async fn project(&self, root: &Path, name: &str) -> Result<Project> {
        let root = root.to_string_lossy().into_owned();
        let found: Option<(i64, String)> = sqlx::query_as("SELECT id, name FROM project WHERE root = ?")
            .bind(&root)
            .fetch_optional(&self.readers)
            .await?;
        match found {
            Some((id, name)) => Ok(Project { id, name }),
            None => self.audit.register(root, name.to_owned()).await,
        }
    }

    pub fn audit(&self) -> Audit {
        self.audit.clone()
    }

    pub fn reader(&self) -> Reader {
        Reader::new(self.readers.clone())
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Commits what is still queued. Dropping the store without it loses what a crash would lose.
    pub async fn close(self) -> Result<()> {
        self.audit.flush().await?;
        self.readers.close().await;
        Ok(())
    }
}

/// Other users have no business in the state.
fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Two hosts that open a new folder at once would both turn its database to WAL, which SQLite does not wait for, and both
/// make its tables. Held until dropped.
async fn lock(folder: &Path) -> std::io::Result<std::fs::File> {
    let file = folder.join(MIGRATION_LOCK_FILE);
    let lock = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(file)?;
    let locked = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await;
    locked.map_err(std::io::Error::other)?
}

/// Only a file that is no database, or a broken one, is called damaged: who reads that moves it away.
fn unusable(file: &Path, source: sqlx::Error) -> Error {
    let code = source.as_database_error().and_then(|error| error.code()).and_then(|code| code.parse::<u32>().ok());
    match code.map(|code| code & 0xff) {
        Some(SQLITE_CORRUPT | SQLITE_NOTADB) => Error::Damaged { path: file.to_owned(), source },
        // Busy, full, unreadable, read-only: nothing is wrong with what is in it.
        _ => Error::Sql(source),
    }
}

async fn migrate(writer: &mut SqliteConnection, file: &Path) -> Result<()> {
    let migrations = MIGRATIONS
        .iter()
        .map(|(version, name, sql)| {
            Migration::new(*version, (*name).into(), MigrationType::Simple, sql.into_sql_str(), false)
        })
        .collect();
    match Migrator::with_migrations(migrations).run_direct(None, writer, false).await {
        Ok(()) => Ok(()),
        Err(
            MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_) | MigrateError::VersionNotPresent(_),
        ) => Err(Error::Newer { path: file.to_owned() }),
        Err(MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _)) => Err(unusable(file, source)),
        Err(error) => Err(Error::Migrate(error)),
    }
}
