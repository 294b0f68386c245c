//! Which hosts are alive: each holds a lock that goes when its process dies, on a file of its own or, where hosts share a
//! server, one of the server's.

use std::fs::File;
use std::path::{Path, PathBuf};

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use crate::db::{self, Db, sql};
use crate::error::Result;

/// This host's lock, held until it is dropped.
pub(crate) struct Presence {
    host: String,
    lock: Lock,
}

enum Lock {
    File {
        folder: PathBuf,
        _lock: File,
    },
    /// The server lets go of the lock when the connection ends, however it ends.
    Session {
        connection: PgConnection,
        options: Box<PgConnectOptions>,
    },
}

impl Presence {
    /// A lock on a file below the state folder.
    pub(crate) fn file(state: &Path) -> std::io::Result<Self> {
        let folder = state.join("hosts");
        std::fs::create_dir_all(&folder)?;
        sweep(&folder);
        let host = uuid::Uuid::now_v7().to_string();
        let lock = File::create(folder.join(&host))?;
        lock.try_lock().map_err(std::io::Error::other)?;
        Ok(Self { host, lock: Lock::File { folder, _lock: lock } })
    }

    /// A lock of this connection at the server.
    pub(crate) async fn session(mut connection: PgConnection, options: &PgConnectOptions) -> Result<Self> {
        let host = uuid::Uuid::now_v7().to_string();
        take(&mut connection, &host).await?;
        Ok(Self { host, lock: Lock::Session { connection, options: Box::new(options.clone()) } })
    }

    /// Takes the lock again if its connection has ended: a server that was started anew has forgotten it, and the next
    /// host that opens would take this one for dead.
    pub(crate) async fn hold(&mut self) -> Result<()> {
        let Lock::Session { connection, options } = &mut self.lock else { return Ok(()) };
        if connection.ping().await.is_err() {
            let mut anew = db::connect(options).await?;
            take(&mut anew, &self.host).await?;
            *connection = anew;
        }
        Ok(())
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Whether the process behind `host` still runs. A dead one's file is removed.
    pub(crate) async fn is_alive(&self, host: &str, db: &Db) -> Result<bool> {
        if host == self.host {
            return Ok(true);
        }
        let Lock::File { folder, .. } = &self.lock else {
            let free = sql("SELECT pg_try_advisory_xact_lock($1) AS free").bind(key(host)).read(db).await?;
            return Ok(match free.first() {
                Some(row) => !row.get::<bool>("free")?,
                None => true,
            });
        };
        let path = folder.join(host);
        let Ok(file) = File::open(&path) else { return Ok(false) };
        if file.try_lock().is_err() {
            return Ok(true);
        }
        // Whoever else looks finds no file, which says the same.
        let _ = std::fs::remove_file(path);
        Ok(false)
    }
}

/// Says whether it has the lock: a former connection of ours may hold it until the server notices its end.
async fn take(connection: &mut PgConnection, host: &str) -> Result<bool> {
    let taken = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(key(host)).fetch_one(connection).await?;
    Ok(taken)
}

/// The number of a host's lock: the random half of its id.
fn key(host: &str) -> i64 {
    let id = uuid::Uuid::try_parse(host).map_or(0, |id| id.as_u64_pair().1);
    i64::from_ne_bytes(id.to_ne_bytes())
}

/// Removes what dead hosts left behind.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let dead = File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        // Calls they left open are closed all the same: no file means dead.
        if dead {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if let Lock::File { folder, .. } = &self.lock {
            // Left behind, it is removed by the next host that looks.
            let _ = std::fs::remove_file(folder.join(&self.host));
        }
    }
}
