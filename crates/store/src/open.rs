//! Opening the database: a file of this machine, or a server that many hosts share.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, SqlSafeStr, SqlStr};
use toolhost_contract::Clock;

use crate::asks::Asks;
use crate::audit::Audit;
use crate::db::{self, ACQUIRE_TIMEOUT, BUSY_TIMEOUT, Db, sql};
use crate::dialect;
use crate::error::{Error, Result};
use crate::file_log::FileLog;
use crate::lanes::Lanes;
use crate::people::{self, People};
use crate::presence::Presence;
use crate::reader::Reader;
use crate::records::Records;
use crate::sessions::Sessions;

const READERS_MAX: u32 = 4;
/// Connections of one host to a PostgreSQL server.
const SERVER_CONNECTIONS_MAX: u32 = 8;
const SERVER_SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// How long a change may stand still before the server ends it.
const IDLE_CHANGE_MAX: Duration = Duration::from_secs(60);
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
    (11, "ask_seen", include_str!("../migrations/0011_ask_seen.sql")),
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
        let writer = Lanes::new(options.clone(), 1);
        let mut first = writer.take().await.map_err(|source| unusable(&file, source))?;
        let migrated = migrate(first.connection()?, |sql| sql.into_sql_str()).await;
        drop(first);
        migrated.map_err(|error| migration_failed(error, &file, unusable))?;
        let presence = Presence::file(folder).map_err(|source| Error::Folder { path: folder.to_owned(), source })?;
        drop(lock);
        let readers = Lanes::new(options.read_only(true), READERS_MAX);
        Self::with(Db::Sqlite { readers, writer }, presence, clock, file.display().to_string()).await
    }

    /// Connects to a PostgreSQL database, `postgres://USER@HOST:PORT/NAME`, and brings its tables up to date.
    pub async fn connect(url: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        if !SERVER_SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
            // The driver takes any, and what it then takes for the name of the database may be a password.
            let source = sqlx::Error::Configuration("it does not begin with postgres://".into());
            return Err(Error::Url { source });
        }
        let options = PgConnectOptions::from_str(url).map_err(|source| Error::Url { source })?;
        let place = db::place(&options);
        let options = options.application_name("toolhost").disable_statement_logging();
        let mut first = db::connect(&options).await?;
        let migrated = migrate(&mut first, |sql| AssertSqlSafe(dialect::postgres(sql)).into_sql_str()).await;
        migrated.map_err(|error| migration_failed(error, Path::new(&place), |_, source| Error::Sql(source)))?;
        let presence = Presence::session(first, &options).await?;
        let pool = PgPoolOptions::new()
            .max_connections(SERVER_CONNECTIONS_MAX)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .after_connect(|connection, _| Box::pin(async move { prepare(connection).await }));
        let pool = pool.connect_lazy_with(options);
        Self::with(Db::Postgres(pool), presence, clock, place).await
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
        Asks::new(self.db.clone(), Arc::clone(&self.clock), self.audit.host())
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
        self.audit.flush().await?;
        self.db.close().await;
        Ok(())
    }
}

/// How this host's connections to a server behave.
async fn prepare(connection: &mut PgConnection) -> std::result::Result<(), sqlx::Error> {
    let settings = [
        // A host that hangs in the middle of a change must not stop all others for good.
        ("lock_timeout", BUSY_TIMEOUT.as_millis().to_string()),
        ("idle_in_transaction_session_timeout", IDLE_CHANGE_MAX.as_millis().to_string()),
        // Every query walks an index made for it, whatever is bound; planning each call anew costs more than the walk.
        ("plan_cache_mode", "force_generic_plan".to_owned()),
    ];
    for (setting, value) in settings {
        sqlx::query("SELECT set_config($1, $2, false)").bind(setting).bind(value).execute(&mut *connection).await?;
    }
    Ok(())
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
