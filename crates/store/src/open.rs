//! Opening the database: a file of this machine, or a server that many hosts share.

use std::cmp::Ordering;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, SqlSafeStr, SqlStr, SqliteConnection};
use toolhost_contract::Clock;

use crate::asks::Asks;
use crate::audit::Audit;
use crate::db::{self, ACQUIRE_TIMEOUT, BUSY_TIMEOUT, Db, sql};
use crate::dialect;
use crate::error::{Error, Result};
use crate::file::DatabaseFile;
use crate::file_log::FileLog;
use crate::lanes::Lanes;
use crate::people::{self, People};
use crate::presence::Presence;
use crate::reader::Reader;
use crate::records::Records;
use crate::server::{Server, ServerClock};
use crate::sessions::Sessions;

const READERS_MAX: u32 = 4;
/// Connections of one host to a PostgreSQL server.
const SERVER_CONNECTIONS_MAX: u32 = 8;
const SERVER_SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// The last of the steps that a database has seen.
const VERSION_HERE: &str = "SELECT COALESCE(max(version), 0) FROM _sqlx_migrations";
const DATABASE_FILE: &str = "toolhost.db";
const MIGRATION_LOCK_FILE: &str = "migrate.lock";
/// SQLite's result codes for "somebody else is at it"; the upper bits tell more.
const SQLITE_CORRUPT: u32 = 11;
const SQLITE_NOTADB: u32 = 26;

/// Every step from an empty database to this version's, in order.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "project", include_str!("../migrations/0001_project.sql")),
    (2, "audit", include_str!("../migrations/0002_audit.sql")),
    (3, "people", include_str!("../migrations/0003_people.sql")),
    (4, "record", include_str!("../migrations/0004_record.sql")),
    (5, "memory", include_str!("../migrations/0005_memory.sql")),
    (6, "ask", include_str!("../migrations/0006_ask.sql")),
    (7, "file_change", include_str!("../migrations/0007_file_change.sql")),
    (8, "package", include_str!("../migrations/0008_package.sql")),
    (9, "session", include_str!("../migrations/0009_session.sql")),
    (10, "host", include_str!("../migrations/0010_host.sql")),
    (11, "ask_seen", include_str!("../migrations/0011_ask_seen.sql")),
    (12, "history_call", include_str!("../migrations/0012_history_call.sql")),
    (13, "discarded_by", include_str!("../migrations/0013_discarded_by.sql")),
];

/// A database, open.
pub struct Store {
    db: Db,
    audit: Audit,
    sessions: Sessions,
    clock: Arc<dyn Clock>,
    place: String,
}

/// A workspace that is known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub id: i64,
    pub name: String,
}

impl Store {
    /// Opens the SQLite database in `folder`, making both if they are not there, and closes the calls that a crashed
    /// host left open as `unknown`.
    pub async fn open(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        make_private(folder).map_err(|source| Error::Folder { path: folder.to_owned(), source })?;
        Self::open_file(folder, clock).await
    }

    /// As [`Store::open`], where a database is known to have been: one that is not there is an error.
    pub async fn open_known(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        if !Self::is_in(folder) {
            return Err(Error::Missing { folder: folder.to_owned() });
        }
        Self::open_file(folder, clock).await
    }

    /// Opens the database in `folder` to read it and nothing else, where it cannot be written: the disk is full, or the
    /// folder is read-only. No call is recorded.
    pub async fn open_reading(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        if !Self::is_in(folder) {
            return Err(Error::Missing { folder: folder.to_owned() });
        }
        let file = folder.join(DATABASE_FILE);
        let options = SqliteConnectOptions::new().filename(&file).read_only(true).disable_statement_logging();
        let (options, mut first) = match reading(&options).await {
            Ok(first) => (options, first),
            // Beside a database with nothing in its log, SQLite wants to make files that cannot be made. Nobody can change
            // it meanwhile: whoever writes makes the same files first.
            Err(_) if log_is_empty(&file) => {
                let options = options.immutable(true);
                let first = reading(&options).await.map_err(|source| unusable(&file, source))?;
                (options, first)
            }
            Err(source) => return Err(unusable(&file, source)),
        };
        let opened = DatabaseFile::opened(folder, &file);
        let opened = Arc::new(opened.map_err(|source| Error::Folder { path: folder.to_owned(), source })?);
        is_this_version(sqlx::query_scalar(VERSION_HERE).fetch_one(&mut first).await?, &file)?;
        let readers = Lanes::new(options, READERS_MAX, opened, Some(first));
        let db = Db::Reading { readers, folder: folder.into() };
        let audit = Audit::reading(db.clone(), Presence::nowhere(Some(folder)), Arc::clone(&clock));
        let sessions = Sessions::new(db.clone(), Arc::clone(&clock), audit.clone());
        Ok(Self { db, audit, sessions, clock, place: file.display().to_string() })
    }

    /// As [`Store::open_reading`], for a database on a server that takes no changes.
    pub async fn connect_reading(url: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        let (place, options) = server_options(url)?;
        let mut first = db::connect(&options).await?;
        let clock = if clock.is_the_machines() { ServerClock::of(&mut first, clock).await? } else { clock };
        let here: i64 = sqlx::query_scalar(VERSION_HERE).fetch_one(&mut first).await?;
        is_this_version(here, Path::new(&place))?;
        let presence = Presence::nowhere(None);
        // A transaction that would write has no slots, and is refused before it has done anything.
        let db = Db::Postgres(Server::new(server_pool(options), presence.host()));
        let audit = Audit::reading(db.clone(), presence, Arc::clone(&clock));
        let sessions = Sessions::new(db.clone(), Arc::clone(&clock), audit.clone());
        Ok(Self { db, audit, sessions, clock, place })
    }

    /// Whether there is a database in a state folder. SQLite takes an empty file for one that is about to be made.
    #[must_use]
    pub fn is_in(folder: &Path) -> bool {
        std::fs::metadata(folder.join(DATABASE_FILE)).is_ok_and(|there| there.len() > 0)
    }

    async fn open_file(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let unusable_folder = |source| Error::Folder { path: folder.to_owned(), source };
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
        let lock = lock(folder).await.map_err(unusable_folder)?;
        let mut first = options.connect().await.map_err(|source| unusable(&file, source))?;
        let opened = Arc::new(DatabaseFile::opened(folder, &file).map_err(unusable_folder)?);
        let migrated = migrate(&mut first, |sql| sql.into_sql_str()).await;
        migrated.map_err(|error| migration_failed(error, &file, unusable))?;
        let presence = Presence::file(folder).map_err(unusable_folder)?;
        drop(lock);
        let writer = Lanes::new(options.clone(), 1, Arc::clone(&opened), Some(first));
        let readers = Lanes::new(options.read_only(true), READERS_MAX, opened, None);
        Self::with(Db::Sqlite { readers, writer }, presence, clock, file.display().to_string()).await
    }

    /// Connects to a PostgreSQL database, `postgres://USER@HOST:PORT/NAME`, and brings its tables up to date.
    pub async fn connect(url: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        let (place, options) = server_options(url)?;
        let mut first = db::connect(&options).await?;
        let clock = if clock.is_the_machines() { ServerClock::of(&mut first, clock).await? } else { clock };
        let migrated = migrate(&mut first, |sql| AssertSqlSafe(dialect::postgres(sql)).into_sql_str()).await;
        migrated.map_err(|error| migration_failed(error, Path::new(&place), |_, source| Error::Sql(source)))?;
        let presence = Presence::session(first, &options).await?;
        let server = Server::new(server_pool(options), presence.host());
        Self::with(Db::Postgres(server), presence, clock, place).await
    }

    async fn with(db: Db, presence: Presence, clock: Arc<dyn Clock>, place: String) -> Result<Self> {
        let audit = Audit::start(db.clone(), presence, Arc::clone(&clock)).await?;
        let sessions = Sessions::new(db.clone(), Arc::clone(&clock), audit.clone());
        Ok(Self { db, audit, sessions, clock, place })
    }

    /// The project of a workspace, registered if it is new; whoever registers it owns it.
    pub async fn project(&self, root: &Path, name: &str, owner: &str) -> Result<Project> {
        let root = root.to_string_lossy().into_owned();
        let select = || sql("SELECT id, name FROM project WHERE root = $1").bind(&root);
        let project =
            |row: crate::db::Row| -> Result<Project> { Ok(Project { id: row.get("id")?, name: row.get("name")? }) };
        if let Some(row) = select().read(&self.db).await?.pop() {
            return project(row);
        }
        let now = self.clock.unix_ms();
        let mut tx = self.db.write().await?;
        let insert =
            "INSERT INTO project (root, name, created_at_ms) VALUES ($1, $2, $3) ON CONFLICT (root) DO NOTHING";
        let new = sql(insert).bind(&root).bind(name).bind(now).run(&mut tx).await? == 1;
        let found = project(select().one(&mut tx).await?)?;
        if new {
            let owner = people::account(&mut tx, owner, now).await?;
            people::set_role(&mut tx, found.id, owner, people::Role::Owner).await?;
        }
        tx.commit().await?;
        Ok(found)
    }

    pub fn audit(&self) -> Audit {
        self.audit.clone()
    }

    pub fn reader(&self) -> Reader {
        Reader::new(self.db.clone())
    }

    pub fn records(&self) -> Records {
        Records::new(self.db.clone(), Arc::clone(&self.clock))
    }

    /// The sessions of agents.
    pub fn sessions(&self) -> Sessions {
        self.sessions.clone()
    }

    pub fn asks(&self) -> Asks {
        Asks::new(self.db.clone(), Arc::clone(&self.clock), self.audit.host_name())
    }

    pub fn file_log(&self) -> FileLog {
        FileLog::new(self.db.clone(), Arc::clone(&self.clock))
    }

    pub fn people(&self) -> People {
        People::new(self.db.clone(), Arc::clone(&self.clock))
    }

    /// A server's URL without what must not be shown.
    pub fn address(url: &str) -> String {
        let known = SERVER_SCHEMES.iter().any(|scheme| url.starts_with(scheme));
        let options = PgConnectOptions::from_str(url).ok().filter(|_| known);
        options.map_or_else(|| "not a PostgreSQL URL".to_owned(), |options| db::place(&options))
    }

    /// The file, or the server without its password: for people to read.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Commits what is still queued. Dropping the store without it loses what a crash would lose.
    pub async fn close(self) -> Result<()> {
        self.audit.leave().await?;
        self.db.close().await;
        Ok(())
    }
}

fn server_options(url: &str) -> Result<(String, PgConnectOptions)> {
    if !SERVER_SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
        // The driver takes any, and what it then takes for the name of the database may be a password.
        let source = sqlx::Error::Configuration("it does not begin with postgres://".into());
        return Err(Error::Url { source });
    }
    let options = PgConnectOptions::from_str(url).map_err(|source| Error::Url { source })?;
    let place = db::place(&options);
    Ok((place, options.application_name("toolhost").disable_statement_logging()))
}

fn server_pool(options: PgConnectOptions) -> PgPool {
    let pool = PgPoolOptions::new()
        .max_connections(SERVER_CONNECTIONS_MAX)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| Box::pin(async move { db::prepare(connection).await }));
    pool.connect_lazy_with(options)
}

/// A connection that has read something.
async fn reading(options: &SqliteConnectOptions) -> std::result::Result<SqliteConnection, sqlx::Error> {
    let mut connection = options.connect().await?;
    sqlx::query("SELECT count(*) FROM sqlite_master").execute(&mut connection).await?;
    Ok(connection)
}

/// Whether all of a database is in its file.
fn log_is_empty(file: &Path) -> bool {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(true, |log| log.len() == 0)
}

/// Tables of another version cannot be brought up to date without writing.
fn is_this_version(here: i64, place: &Path) -> Result<()> {
    let newest = MIGRATIONS.last().map_or(0, |(version, _, _)| *version);
    match here.cmp(&newest) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(Error::Newer { path: place.to_owned() }),
        Ordering::Less => Err(Error::Older { path: place.to_owned() }),
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

async fn migrate<C: Migrate>(
    connection: &mut C,
    text: impl Fn(&'static str) -> SqlStr,
) -> std::result::Result<(), MigrateError> {
    let migrations = MIGRATIONS
        .iter()
        .map(|(version, name, sql)| Migration::new(*version, (*name).into(), MigrationType::Simple, text(sql), false))
        .collect();
    Migrator::with_migrations(migrations).run_direct(None, connection, false).await
}

fn migration_failed(error: MigrateError, place: &Path, broken: fn(&Path, sqlx::Error) -> Error) -> Error {
    match error {
        MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_) | MigrateError::VersionNotPresent(_) => {
            Error::Newer { path: place.to_owned() }
        }
        MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) => broken(place, source),
        error => Error::Migrate(error),
    }
}
