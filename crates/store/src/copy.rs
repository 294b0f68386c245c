//! Copies of a SQLite database: whole, of one moment, and checked.

use std::collections::BTreeSet;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

use crate::connect::BUSY_TIMEOUT;
use crate::error::{Error, Result};
use crate::open::{DATABASE_FILE, Store, make_private, migrate, migration_failed, unusable};

impl Store {
    /// Writes a copy of the SQLite database in a state folder to a file, which must be empty or not there yet. Hosts may write to the
    /// database meanwhile: the copy is what it was at one moment.
    ///
    /// # Errors
    /// If there is no such database, it is damaged, or the file cannot be written.
    pub async fn back_up(folder: &Path, to: &Path) -> Result<()> {
        if !Self::is_in(folder) {
            return Err(Error::Missing { folder: folder.to_owned() });
        }
        copy(&folder.join(DATABASE_FILE), to).await
    }

    /// Makes the database of a state folder, which has none yet, from such a copy.
    ///
    /// # Errors
    /// If the copy is none or is damaged, or the folder has a database or cannot be written.
    pub async fn restore(copy_of: &Path, folder: &Path) -> Result<()> {
        let unusable_folder = |source| Error::Folder { path: folder.to_owned(), source };
        if Self::is_in(folder) {
            return Err(unusable_folder(std::io::Error::other("it has a database already")));
        }
        make_private(folder).map_err(unusable_folder)?;
        let file = folder.join(DATABASE_FILE);
        // Made by us, so that nobody else can read it.
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file).map_err(unusable_folder)?;
        copy(copy_of, &file).await?;
        as_made_here(&file).await
    }
}

/// Brings a copy up to date, and refuses one that holds anything besides the tables of this version: a trigger or a view in a copy from
/// elsewhere would change later what people decide.
async fn as_made_here(file: &Path) -> Result<()> {
    let broken = |error| migration_failed(error, file, unusable);
    let mut fresh =
        SqliteConnectOptions::new().in_memory(true).connect().await.map_err(|error| unusable(file, error))?;
    migrate(&mut fresh, |step| step.sqlite).await.map_err(broken)?;
    let own = objects(&mut fresh).await?;
    let mut copied = SqliteConnectOptions::new()
        .filename(file)
        .disable_statement_logging()
        .connect()
        .await
        .map_err(|error| unusable(file, error))?;
    // What runs by itself is looked for before anything is written.
    let runs = |object: &&Object| object.0 == "trigger" || object.0 == "view";
    if let Some(found) = objects(&mut copied).await?.iter().filter(runs).find(|found| !own.contains(found)) {
        return Err(foreign(file, found));
    }
    migrate(&mut copied, |step| step.sqlite).await.map_err(broken)?;
    let now = objects(&mut copied).await?;
    copied.close().await?;
    match now.symmetric_difference(&own).next() {
        Some(found) => Err(foreign(file, found)),
        None => Ok(()),
    }
}

/// Kind, name and definition.
type Object = (String, String, String);

/// What a database is made of, but for what SQLite and the library of migrations make themselves.
async fn objects(connection: &mut SqliteConnection) -> Result<BTreeSet<Object>> {
    let text = "SELECT type, name, coalesce(sql, '') FROM sqlite_master
                WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> '_sqlx_migrations'";
    let rows: Vec<Object> = sqlx::query_as(text).fetch_all(connection).await?;
    Ok(rows.into_iter().collect())
}

fn foreign(file: &Path, (kind, name, _): &Object) -> Error {
    let what = format!("the {kind} `{name}` is not as toolhost makes it");
    Error::Damaged { path: file.to_owned(), source: sqlx::Error::Protocol(what) }
}

/// Reads all of one database and writes it into another, then looks whether all of it is there.
async fn copy(from: &Path, to: &Path) -> Result<()> {
    let reading = |file: &Path| {
        let options = SqliteConnectOptions::new().filename(file).read_only(true).busy_timeout(BUSY_TIMEOUT);
        options.disable_statement_logging()
    };
    let mut source = reading(from).connect().await.map_err(|error| unusable(from, error))?;
    let into = sqlx::query("VACUUM INTO $1").bind(to.to_string_lossy().into_owned());
    into.execute(&mut source).await.map_err(|error| unusable(from, error))?;
    source.close().await?;
    let mut copied = reading(to).connect().await.map_err(|error| unusable(to, error))?;
    let found: String = sqlx::query_scalar("PRAGMA integrity_check(1)")
        .fetch_one(&mut copied)
        .await
        .map_err(|error| unusable(to, error))?;
    copied.close().await?;
    if found != "ok" {
        return Err(Error::Damaged { path: to.to_owned(), source: sqlx::Error::Protocol(found) });
    }
    let synced = std::fs::File::open(to).and_then(|file| file.sync_all());
    synced.map_err(|source| Error::Folder { path: to.to_owned(), source })
}
