//! Opening the database: a file of this machine, or a server that many hosts share.

use std::cmp::Ordering;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, SqlSafeStr};
use toolhost_contract::{Clock, Durability};

use crate::asks::Asks;
use crate::audit::Audit;
use crate::connect::{self, BUSY_TIMEOUT};
use crate::db::{Db, Pools, sql};
use crate::error::{Error, Result};
use crate::file::{self, DatabaseFile};
use crate::file_log::FileLog;
use crate::keyed_calls::KeyedCalls;
use crate::links::Links;
use crate::logins::{LoginLife, Logins};
use crate::outage::Outage;
use crate::people::{self, People};
use crate::presence::Presence;
use crate::quota::Quotas;
use crate::reader::Reader;
use crate::server::{Server, ServerClock};
use crate::sessions::Sessions;
use crate::sqlite_pool::{SqlitePool, reading};
use crate::subject::{Database, Subjects};
use crate::terminals::Terminals;
use crate::tokens::Tokens;
use crate::webhook::Webhooks;

const READERS_MAX: u32 = 4;
/// How long a host that ends waits for its server to take the last rows. Without them its calls end as those of a dead one.
const LEAVE_MAX: Duration = Duration::from_secs(10);
const SERVER_SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// The last of the steps that a database has seen.
const VERSION_HERE: &str = "SELECT COALESCE(max(version), 0) FROM _sqlx_migrations";
pub(crate) const DATABASE_FILE: &str = "toolhost.db";
const MIGRATION_LOCK_FILE: &str = "migrate.lock";
/// How often a missing log is looked for while hosts run, and how long to wait in between.
const LOG_TRIES: u32 = 20;
const LOG_PAUSE: Duration = Duration::from_millis(50);
/// SQLite's result codes for "somebody else is at it"; the upper bits tell more.
const SQLITE_CORRUPT: u32 = 11;
const SQLITE_NOTADB: u32 = 26;

/// A step of a database, in the words of each engine. What has run once stays as it is, to the byte: each database knows its hash.
pub(crate) struct Step {
    version: i64,
    name: &'static str,
    pub(crate) sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! steps {
    ($($version:literal $name:literal $file:literal),+ $(,)?) => {
        &[$(Step {
            version: $version,
            name: $name,
            sqlite: include_str!(concat!("../migrations/sqlite/", $file)),
            postgres: include_str!(concat!("../migrations/postgres/", $file)),
        }),+]
    };
}

/// Every step from an empty database to this version's, in order.
const STEPS: &[Step] = steps![
    1 "project" "0001_project.sql",
    2 "audit" "0002_audit.sql",
    3 "people" "0003_people.sql",
    4 "record" "0004_record.sql",
    5 "memory" "0005_memory.sql",
    6 "ask" "0006_ask.sql",
    7 "file_change" "0007_file_change.sql",
    8 "package" "0008_package.sql",
    9 "session" "0009_session.sql",
    10 "host" "0010_host.sql",
    11 "ask_seen" "0011_ask_seen.sql",
    12 "history_call" "0012_history_call.sql",
    13 "discarded_by" "0013_discarded_by.sql",
    14 "open_call_trace" "0014_open_call_trace.sql",
    15 "audit_unknown" "0015_audit_unknown.sql",
    16 "change_set_chain" "0016_change_set_chain.sql",
    17 "change_set_written" "0017_change_set_written.sql",
    18 "change_set_told" "0018_change_set_told.sql",
    19 "token" "0019_token.sql",
    20 "session_event" "0020_session_event.sql",
    21 "login" "0021_login.sql",
    22 "terminal_login" "0022_terminal_login.sql",
    23 "approver" "0023_approver.sql",
    24 "quota" "0024_quota.sql",
    25 "webhook" "0025_webhook.sql",
    26 "found_and_told" "0026_found_and_told.sql",
    27 "session_message" "0027_session_message.sql",
];

/// What a process keeps of a database in memory, for the next queries.
pub struct Caches {
    db: Db,
}

impl Caches {
    /// Gives it back: for a host that is idle.
    pub async fn give_back(&self) {
        self.db.rest().await;
    }
}

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
    /// host left open as `unknown`, unless one of the subjects can tell how they ended.
    pub async fn open(
        folder: &Path,
        clock: Arc<dyn Clock>,
        subjects: Subjects,
        durability: Durability,
    ) -> Result<Self> {
        make_private(folder).map_err(|source| Error::Folder { path: folder.to_owned(), source })?;
        Self::open_file(folder, clock, subjects, durability).await
    }

    /// As [`Store::open`], where a database is known to have been: one that is not there is an error.
    pub async fn open_known(
        folder: &Path,
        clock: Arc<dyn Clock>,
        subjects: Subjects,
        durability: Durability,
    ) -> Result<Self> {
        if !Self::is_in(folder) {
            return Err(Error::Missing { folder: folder.to_owned() });
        }
        Self::open_file(folder, clock, subjects, durability).await
    }

    /// Opens the database in `folder` to read it and nothing else, where it cannot be written: the disk is full, or the
    /// folder is read-only. No call is recorded.
    pub async fn open_reading(folder: &Path, clock: Arc<dyn Clock>, subjects: Subjects) -> Result<Self> {
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
        let readers = SqlitePool::new(options, READERS_MAX, opened, Some(first));
        let db = Db { pools: Pools::Reading { readers, folder: folder.into() } };
        let audit = Audit::reading(db.clone(), subjects, Presence::nowhere(Some(folder)), Arc::clone(&clock));
        let sessions = Sessions::new(db.clone(), subjects, Arc::clone(&clock), audit.clone());
        Ok(Self { db, audit, sessions, clock, place: file.display().to_string() })
    }

    /// As [`Store::open_reading`], for a database on a server that takes no changes.
    pub async fn connect_reading(url: &str, clock: Arc<dyn Clock>, subjects: Subjects) -> Result<Self> {
        let (place, options) = server_options(url)?;
        let mut first = connect::connect(&options).await?;
        let clock = if clock.is_the_machines() { ServerClock::of(&mut first, clock).await? } else { clock };
        let here: i64 = sqlx::query_scalar(VERSION_HERE).fetch_one(&mut first).await?;
        is_this_version(here, Path::new(&place))?;
        let presence = Presence::nowhere(None);
        // A transaction that would write has no slots, and is refused before it has done anything.
        let db = Db { pools: Pools::Postgres(Server::new(Links::new(options), presence.host())) };
        let audit = Audit::reading(db.clone(), subjects, presence, Arc::clone(&clock));
        let sessions = Sessions::new(db.clone(), subjects, Arc::clone(&clock), audit.clone());
        Ok(Self { db, audit, sessions, clock, place })
    }

    /// Whether there is a database in a state folder. SQLite takes an empty file for one that is about to be made.
    #[must_use]
    pub fn is_in(folder: &Path) -> bool {
        std::fs::metadata(folder.join(DATABASE_FILE)).is_ok_and(|there| there.len() > 0)
    }

    async fn open_file(
        folder: &Path,
        clock: Arc<dyn Clock>,
        subjects: Subjects,
        durability: Durability,
    ) -> Result<Self> {
        let unusable_folder = |source| Error::Folder { path: folder.to_owned(), source };
        let file = folder.join(DATABASE_FILE);
        let options = SqliteConnectOptions::new()
            .filename(&file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // Without `Full` the log is written at each commit and waited for when it is copied into the database, which is whole
            // at any time. A commit that has to be waited for is, by `Tx::commit`.
            .synchronous(match durability {
                Durability::Process => SqliteSynchronous::Normal,
                Durability::Power => SqliteSynchronous::Full,
            })
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        let lock = lock(folder).await.map_err(unusable_folder)?;
        if Self::is_in(folder) {
            others_have_their_log(folder, &file).await?;
        }
        let mut first = options.connect().await.map_err(|source| unusable(&file, source))?;
        let opened = Arc::new(DatabaseFile::opened(folder, &file).map_err(unusable_folder)?);
        let migrated = migrate(&mut first, |step| step.sqlite).await;
        migrated.map_err(|error| migration_failed(error, &file, unusable))?;
        let presence = Presence::file(folder).map_err(unusable_folder)?;
        drop(lock);
        let writer = SqlitePool::new(options.clone(), 1, Arc::clone(&opened), Some(first));
        let readers = SqlitePool::new(options.read_only(true), READERS_MAX, opened, None);
        Self::with(
            Db { pools: Pools::Sqlite { readers, writer } },
            subjects,
            presence,
            clock,
            file.display().to_string(),
        )
        .await
    }

    /// Connects to a PostgreSQL database, `postgres://USER@HOST:PORT/NAME`, and brings its tables up to date.
    pub async fn connect(url: &str, clock: Arc<dyn Clock>, subjects: Subjects) -> Result<Self> {
        let (place, options) = server_options(url)?;
        let mut first = connect::connect(&options).await?;
        let clock = if clock.is_the_machines() { ServerClock::of(&mut first, clock).await? } else { clock };
        let migrated = migrate(&mut first, |step| step.postgres).await;
        migrated.map_err(|error| migration_failed(error, Path::new(&place), |_, source| Error::Sql(source)))?;
        let presence = Presence::session(first, &options).await?;
        let server = Server::new(Links::new(options), presence.host());
        Self::with(Db { pools: Pools::Postgres(server) }, subjects, presence, clock, place).await
    }

    async fn with(
        db: Db,
        subjects: Subjects,
        presence: Presence,
        clock: Arc<dyn Clock>,
        place: String,
    ) -> Result<Self> {
        let audit = Audit::start(db.clone(), subjects, presence, Arc::clone(&clock)).await?;
        let sessions = Sessions::new(db.clone(), subjects, Arc::clone(&clock), audit.clone());
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

    /// An owner of the project of a workspace; `None` if there is no such project.
    pub async fn owner_of(&self, root: &Path) -> Result<Option<String>> {
        let select = "SELECT a.name AS name FROM project p JOIN member m ON m.project_id = p.id JOIN account a ON a.id = m.account_id
             WHERE p.root = $1 AND m.role = 'owner' ORDER BY a.id LIMIT 1";
        let rows = sql(select).bind(root.to_string_lossy().into_owned()).read(&self.db).await?;
        rows.first().map(|row| row.get("name")).transpose()
    }

    /// Gives the project of a workspace's folder another folder. Does nothing where the database has no project of that folder.
    pub async fn move_project(&self, from: &Path, to: &Path) -> Result<()> {
        let mut tx = self.db.write().await?;
        let update = sql("UPDATE project SET root = $1 WHERE root = $2");
        let update = update.bind(to.to_string_lossy().into_owned()).bind(from.to_string_lossy().into_owned());
        update.run(&mut tx).await?;
        tx.commit().await
    }

    /// Whether a host has the database in a state folder open.
    #[must_use]
    pub fn is_in_use(folder: &Path) -> bool {
        Presence::others_are_there(folder)
    }

    pub fn audit(&self) -> Audit {
        self.audit.clone()
    }

    pub fn reader(&self) -> Reader {
        Reader::new(self.db.clone())
    }

    /// The database, for what is kept in it by others.
    pub fn database(&self) -> Database {
        let database = Database::default();
        self.give_to(&database);
        database
    }

    /// Lets a handle that was made before this was opened lead here. One that leads somewhere already stays as it is.
    pub fn give_to(&self, database: &Database) {
        database.lead_to(self.db.clone(), Arc::clone(&self.clock));
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

    /// People who have proven who they are, for as long as that holds.
    pub fn logins(&self, life: LoginLife) -> Logins {
        Logins::new(self.db.clone(), Arc::clone(&self.clock), life)
    }

    /// Command lines of people who have proven who they are.
    pub fn terminals(&self) -> Terminals {
        Terminals::new(self.db.clone(), Arc::clone(&self.clock))
    }

    pub fn tokens(&self) -> Tokens {
        Tokens::new(self.db.clone(), Arc::clone(&self.clock))
    }

    pub fn keyed_calls(&self) -> KeyedCalls {
        KeyedCalls::new(self.db.clone(), Arc::clone(&self.clock))
    }

    pub fn quotas(&self) -> Quotas {
        Quotas::new(self.db.clone())
    }

    pub fn webhooks(&self) -> Webhooks {
        Webhooks::new(self.db.clone(), Arc::clone(&self.clock))
    }

    pub fn people(&self) -> People {
        People::new(self.db.clone(), Arc::clone(&self.clock))
    }

    /// A server's URL without what must not be shown.
    pub fn address(url: &str) -> String {
        let known = SERVER_SCHEMES.iter().any(|scheme| url.starts_with(scheme));
        let options = PgConnectOptions::from_str(url).ok().filter(|_| known);
        options.map_or_else(|| "not a PostgreSQL URL".to_owned(), |options| connect::place(&options))
    }

    /// The file, or the server without its password: for people to read.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What this process keeps of the database in memory.
    pub fn caches(&self) -> Caches {
        Caches { db: self.db.clone() }
    }

    /// Commits what is still queued, and closes the database for all handles of this store. Dropping the store without it
    /// loses what a crash would lose.
    pub async fn close(&self) -> Result<()> {
        // Where the log was deleted, closing saves what is in it; nobody may open the database before that.
        let _lock = match &self.db.pools {
            Pools::Sqlite { writer, .. } => match writer.folder_without_log() {
                Some(folder) => lock(folder).await.ok(),
                None => None,
            },
            Pools::Postgres(_) | Pools::Reading { .. } => None,
        };
        let left = match &self.db.pools {
            Pools::Postgres(_) => tokio::time::timeout(LEAVE_MAX, self.audit.leave()).await,
            Pools::Sqlite { .. } | Pools::Reading { .. } => Ok(self.audit.leave().await),
        };
        // Closing a file saves its log, also where the last rows could not be written. A server may not answer.
        if matches!(left, Ok(Ok(()))) || !matches!(self.db.pools, Pools::Postgres(_)) {
            self.db.close().await;
        }
        left.map_err(|_| Error::Audit {
            why: "the server did not take the last rows in time".to_owned(),
            outage: Some(Outage::Unreachable),
        })?
    }
}

fn server_options(url: &str) -> Result<(String, PgConnectOptions)> {
    if !SERVER_SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
        // The driver takes any, and what it then takes for the name of the database may be a password.
        let source = sqlx::Error::Configuration("it does not begin with postgres://".into());
        return Err(Error::Url { source });
    }
    let options = PgConnectOptions::from_str(url).map_err(|source| Error::Url { source })?;
    let place = connect::place(&options);
    Ok((place, options.application_name("toolhost").disable_statement_logging()))
}

/// Whether all of a database is in its file.
fn log_is_empty(file: &Path) -> bool {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(true, |log| log.len() == 0)
}

/// Tables of another version cannot be brought up to date without writing.
fn is_this_version(here: i64, place: &Path) -> Result<()> {
    let newest = STEPS.last().map_or(0, |step| step.version);
    match here.cmp(&newest) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(Error::Newer { path: place.to_owned() }),
        Ordering::Less => Err(Error::Older { path: place.to_owned() }),
    }
}

/// Other users have no business in the state.
pub(crate) fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Refuses where hosts run and the log that they write is gone: opening would begin another one. A host that is just ending
/// may have removed its log a moment before its lock.
async fn others_have_their_log(folder: &Path, database: &Path) -> Result<()> {
    for _ in 0..LOG_TRIES {
        // In this order: a host removes its log at its end only.
        let Some(path) = file::missing_beside(database) else { return Ok(()) };
        if !Presence::others_are_there(folder) {
            return Ok(());
        }
        tokio::time::sleep(LOG_PAUSE).await;
        tracing::debug!(path = %path.display(), "hosts run, and this file of their database is missing");
    }
    file::missing_beside(database).map_or(Ok(()), |path| Err(Error::LogGone { path }))
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
pub(crate) fn unusable(file: &Path, source: sqlx::Error) -> Error {
    let code = source.as_database_error().and_then(|error| error.code()).and_then(|code| code.parse::<u32>().ok());
    match code.map(|code| code & 0xff) {
        Some(SQLITE_CORRUPT | SQLITE_NOTADB) => Error::Damaged { path: file.to_owned(), source },
        // Nothing is wrong with what is in it.
        _ if matches!(Outage::of_sql(&source), Some(Outage::DiskFull | Outage::ReadOnly | Outage::Disk)) => {
            Error::Unwritable { path: file.to_owned(), source }
        }
        _ => Error::Sql(source),
    }
}

pub(crate) async fn migrate<C: Migrate>(
    connection: &mut C,
    text: impl Fn(&Step) -> &'static str,
) -> std::result::Result<(), MigrateError> {
    let migration = |step: &Step| {
        Migration::new(step.version, step.name.into(), MigrationType::Simple, text(step).into_sql_str(), false)
    };
    Migrator::with_migrations(STEPS.iter().map(migration).collect()).run_direct(None, connection, false).await
}

pub(crate) fn migration_failed(error: MigrateError, place: &Path, broken: fn(&Path, sqlx::Error) -> Error) -> Error {
    match error {
        MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_) | MigrateError::VersionNotPresent(_) => {
            Error::Newer { path: place.to_owned() }
        }
        MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) => broken(place, source),
        error => Error::Migrate(error),
    }
}
