//! Copies of a SQLite database: whole, of one moment, and checked.

use std::path::Path;

use sqlx::ConnectOptions;
use sqlx::Connection;
use sqlx::sqlite::SqliteConnectOptions;

use crate::connect::BUSY_TIMEOUT;
use crate::error::{Error, Result};
use crate::open::{DATABASE_FILE, Store, make_private, unusable};

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
        copy(copy_of, &folder.join(DATABASE_FILE)).await
    }
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
