//! The connections of one process to an SQLite file: a few, taken in turn.
//!
//! The driver's own pool asks each connection that comes back whether it is well, on another thread, and only then lends it
//! again: who reads twice in a row opens a second connection, and who writes twice waits. A connection to a file has
//! nothing to be asked. It goes back as it is, at once, unless it has failed.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Database, SqlSafeStr, Sqlite, SqliteConnection};
use sqlx_core::transaction::TransactionManager;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connect::ACQUIRE_TIMEOUT;
use crate::error::Result;
use crate::file::{DatabaseFile, Open};

/// How long it is waited without a word.
const NOTICE_AFTER: Duration = Duration::from_secs(2);

type Transactions = <Sqlite as Database>::TransactionManager;

/// So many connections, opened when they are first needed.
#[derive(Clone)]
pub(crate) struct SqlitePool {
    options: Arc<SqliteConnectOptions>,
    file: Arc<DatabaseFile>,
    idle: Arc<Mutex<Vec<Open>>>,
    /// One for each connection that may be lent, first come, first served.
    permits: Arc<Semaphore>,
    count: u32,
}

/// A connection, lent. A transaction on it that was not committed when it is dropped has not happened.
pub(crate) struct SqliteConn {
    /// `None` once it has failed, and while it is dropped.
    connection: Option<Open>,
    file: Arc<DatabaseFile>,
    idle: Arc<Mutex<Vec<Open>>>,
    in_transaction: bool,
    waits_for_disk: bool,
    /// Given back after the connection: fields go after [`Drop::drop`].
    _permit: OwnedSemaphorePermit,
}

impl SqlitePool {
    /// `first`: a connection that has read something already.
    pub(crate) fn new(
        options: SqliteConnectOptions,
        count: u32,
        file: Arc<DatabaseFile>,
        first: Option<SqliteConnection>,
    ) -> Self {
        let permits = Arc::new(Semaphore::new(count as usize));
        let first = first.map(|first| Open::of(first, Arc::clone(&file)));
        let idle = Arc::new(Mutex::new(first.into_iter().collect()));
        // One that is opened later finds the same file, or none.
        Self { options: Arc::new(options.create_if_missing(false)), file, idle, permits, count }
    }

    /// Waits for a connection. Refused where the database is no longer at its path.
    pub(crate) async fn take(&self) -> Result<SqliteConn> {
        let permit = tokio::time::timeout(ACQUIRE_TIMEOUT, Arc::clone(&self.permits).acquire_owned()).await;
        let permit = permit.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_| sqlx::Error::PoolClosed)?;
        self.file.is_there()?;
        // The one used last has what it read still in its cache.
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => Open::of(reading(&self.options).await?, Arc::clone(&self.file)),
        };
        let (file, idle) = (Arc::clone(&self.file), Arc::clone(&self.idle));
        let connection = Some(connection);
        Ok(SqliteConn { connection, file, idle, in_transaction: false, waits_for_disk: false, _permit: permit })
    }

    /// Waits for a connection and begins a transaction on it.
    pub(crate) async fn begin(&self, statement: &'static str) -> Result<SqliteConn> {
        let mut lane = self.take().await?;
        match lane.begin(statement).await {
            Ok(()) => return Ok(lane),
            // SQLite ended a transaction by itself, such as on a full disk, and the driver has not noticed. That connection
            // is gone; the next one knows nothing of it.
            Err(sqlx::Error::InvalidSavePointStatement) => drop(lane),
            Err(error) => return Err(error.into()),
        }
        let mut lane = self.take().await?;
        lane.begin(statement).await?;
        Ok(lane)
    }

    /// Lets the connections that nobody has give back what they keep in memory of the database.
    pub(crate) async fn rest(&self) {
        // The one used last is taken first, and goes back last: it is the next to be lent, as before.
        let count = self.idle.lock().unwrap_or_else(PoisonError::into_inner).len();
        let mut rested = Vec::new();
        for _ in 0..count {
            let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else { break };
            let connection = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let (file, idle) = (Arc::clone(&self.file), Arc::clone(&self.idle));
            let mut lane =
                SqliteConn { connection, file, idle, in_transaction: false, waits_for_disk: false, _permit: permit };
            let Ok(connection) = lane.connection() else { break };
            let done = sqlx::query("PRAGMA shrink_memory").execute(connection).await;
            if let Err(error) = lane.discard_if_dead(done) {
                tracing::debug!(%error, "a connection to the database kept its memory");
            }
            rested.push(lane);
        }
        while let Some(lane) = rested.pop() {
            drop(lane);
        }
    }

    pub(crate) fn file(&self) -> Arc<DatabaseFile> {
        Arc::clone(&self.file)
    }

    /// The state folder, where the log of this database is no longer in it.
    pub(crate) fn folder_without_log(&self) -> Option<&Path> {
        self.file.log_is_gone().then(|| self.file.folder())
    }

    /// Waits until all are back, and closes them.
    pub(crate) async fn close(&self) {
        // Closed only here: then there is nobody to wait for.
        let all = self.permits.acquire_many(self.count).await;
        self.permits.close();
        drop(all);
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in idle.into_iter().filter_map(Open::into_connection) {
            if let Err(error) = connection.close().await {
                tracing::debug!(%error, "a connection to the database could not be closed");
            }
        }
    }
}

impl SqliteConn {
    async fn begin(&mut self, statement: &'static str) -> sqlx::Result<()> {
        // Before it begins: who stops waiting meanwhile leaves nothing begun.
        self.in_transaction = true;
        let begun = {
            let mut beginning = Box::pin(Transactions::begin(self.connection()?, Some(statement.into_sql_str())));
            match tokio::time::timeout(NOTICE_AFTER, &mut beginning).await {
                Ok(begun) => begun,
                Err(_) => {
                    tracing::warn!("another process holds the database; this one waits until it is free");
                    beginning.await
                }
            }
        };
        if begun.is_err() {
            // Whatever is in the way would be in everybody's way.
            self.connection = None;
        }
        begun
    }

    /// Nothing has happened if the database is no longer at its path.
    pub(crate) async fn commit(mut self) -> Result<()> {
        self.file.is_there()?;
        Transactions::commit(self.connection()?).await?;
        self.in_transaction = false;
        if self.waits_for_disk {
            let file = Arc::clone(&self.file);
            let synced = tokio::task::spawn_blocking(move || file.sync_log()).await;
            synced.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(sqlx::Error::Io)?;
        }
        Ok(())
    }

    /// Its commit returns when the disk has what it wrote.
    pub(crate) fn wait_for_disk(&mut self) {
        self.waits_for_disk = true;
    }

    pub(crate) fn connection(&mut self) -> sqlx::Result<&mut SqliteConnection> {
        self.connection.as_mut().ok_or(sqlx::Error::WorkerCrashed)?.connection()
    }

    /// Looks at how something went. A connection whose thread has ended is not lent again.
    pub(crate) fn discard_if_dead<T>(&mut self, done: sqlx::Result<T>) -> sqlx::Result<T> {
        if matches!(done, Err(sqlx::Error::WorkerCrashed | sqlx::Error::Io(_))) {
            self.connection = None;
        }
        done
    }
}

impl Drop for SqliteConn {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if self.in_transaction
            && let Ok(connection) = connection.connection()
        {
            Transactions::start_rollback(connection);
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

/// A connection that has read something.
pub(crate) async fn reading(options: &SqliteConnectOptions) -> sqlx::Result<SqliteConnection> {
    let mut connection = options.connect().await?;
    sqlx::query("SELECT count(*) FROM sqlite_master").execute(&mut connection).await?;
    Ok(connection)
}
