//! Which hosts are alive: each holds a lock that goes when its process dies, on a file of its own or, where hosts share a
//! server, one of the server's.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::connect::{connect, prepare, process_of};
use crate::db::{Db, sql, sql_of};
use crate::error::{Error, Result};
use crate::host_name::{HostName, fresh};
use crate::server;

/// How long a server may take to say that a connection is well.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the lock is tried for while a former connection of ours still has it, and how long to wait in between.
const TAKE_TRIES: u32 = 50;
const TAKE_PAUSE: Duration = Duration::from_millis(100);
/// How long it may take in all to make sure of the lock, or to get another one: whoever writes to the audit waits for it.
const HOLD_TIMEOUT: Duration = Duration::from_secs(20);

/// This host's lock, held until it is dropped.
pub(crate) struct Presence {
    host: HostName,
    lock: Lock,
}

enum Lock {
    File {
        folder: PathBuf,
        name: Arc<str>,
        _lock: File,
    },
    Session(Box<Session>),
    /// A host that writes nothing needs no lock.
    Nowhere {
        folder: Option<PathBuf>,
    },
}

/// The server lets go of a lock when it notices that its connection has ended, however it ends.
struct Session {
    connection: PgConnection,
    options: PgConnectOptions,
    /// Whether this very connection has the lock.
    held: bool,
    /// The server's process behind the connection that had it last.
    process: i32,
    /// The server did not answer in time: what is under way on the connection is unknown.
    lost: bool,
    /// [`HOLD_TIMEOUT`], but for tests.
    limit: Duration,
}

impl Presence {
    /// A lock on a file below the state folder.
    pub(crate) fn file(state: &Path) -> std::io::Result<Self> {
        let folder = state.join("hosts");
        std::fs::create_dir_all(&folder)?;
        sweep(&folder);
        let host = HostName::new();
        let name = host.get();
        let lock = File::create(folder.join(&*name))?;
        lock.try_lock().map_err(std::io::Error::other)?;
        Ok(Self { host, lock: Lock::File { folder, name, _lock: lock } })
    }

    /// Whether some host has its lock below the state folder.
    pub(crate) fn others_are_there(state: &Path) -> bool {
        let hosts = std::fs::read_dir(state.join("hosts")).into_iter().flatten().flatten();
        hosts.map(|entry| File::open(entry.path())).any(|file| file.is_ok_and(|file| file.try_lock().is_err()))
    }

    /// No lock: for who only reads.
    pub(crate) fn nowhere(state: Option<&Path>) -> Self {
        let folder = state.map(|state| state.join("hosts"));
        Self { host: HostName::new(), lock: Lock::Nowhere { folder } }
    }

    pub(crate) fn is_nowhere(&self) -> bool {
        matches!(self.lock, Lock::Nowhere { .. })
    }

    /// A lock of this connection at the server, and the slots without which this host writes nothing.
    pub(crate) async fn session(mut connection: PgConnection, options: &PgConnectOptions) -> Result<Self> {
        let host = HostName::new();
        prepare(&mut connection).await?;
        let process = process_of(&mut connection).await?;
        let held = take(&mut connection, &host.get()).await?;
        server::make_slots(&mut connection, &host.get()).await?;
        let (options, lost, limit) = (options.clone(), false, HOLD_TIMEOUT);
        let session = Session { connection, options, held, process, lost, limit };
        Ok(Self { host, lock: Lock::Session(Box::new(session)) })
    }

    /// Makes sure that this host has its lock; without it, the next host that opens takes this one for dead. An error if
    /// it cannot be had, or if that has happened.
    pub(crate) async fn hold(&mut self) -> Result<()> {
        let Lock::Session(session) = &mut self.lock else { return Ok(()) };
        let limit = session.limit;
        match tokio::time::timeout(limit, session.hold(&self.host.get())).await {
            Ok(held) => held,
            Err(_) => Err(session.lose()),
        }
    }

    /// Goes on as another host. Whatever the former one had begun must have ended.
    pub(crate) async fn begin_anew(&mut self) -> Result<()> {
        let Lock::Session(session) = &mut self.lock else { return Ok(()) };
        let (former, name) = (self.host.get(), fresh());
        let limit = session.limit;
        match tokio::time::timeout(limit, session.begin_as(&name)).await {
            Ok(begun) => begun?,
            Err(_) => return Err(session.lose()),
        }
        tracing::warn!(%former, now = %name, "this host was taken for dead and goes on under another name");
        // Only now: whoever writes in a name needs its slots.
        self.host.change(name);
        Ok(())
    }

    pub(crate) fn host(&self) -> HostName {
        self.host.clone()
    }

    /// Gives up what is kept for this host, in the database or as its file.
    pub(crate) async fn leave(&mut self) {
        self.remove_file();
        if let Lock::File { folder, .. } = &self.lock {
            self.lock = Lock::Nowhere { folder: Some(folder.clone()) };
        }
        if let Lock::Session(session) = &mut self.lock {
            let text = "DELETE FROM host_slot WHERE host = $1";
            let host = self.host.get();
            let left = sqlx::query(text).bind(&*host).execute(&mut session.connection);
            // Whoever opens next removes what is left.
            match tokio::time::timeout(PING_TIMEOUT, left).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "the slots of this host could not be removed"),
                Err(_) => tracing::debug!("the server does not say whether the slots of this host are removed"),
            }
            // The lock goes with its connection, also while a handle of the store lives on.
            self.lock = Lock::Nowhere { folder: None };
        }
    }

    fn remove_file(&self) {
        if let Lock::File { folder, name, .. } = &self.lock {
            // Left behind, it is removed by the next host that looks.
            let _ = std::fs::remove_file(folder.join(&**name));
        }
    }

    /// Whether the process behind `host` still runs. A dead one's file is removed.
    pub(crate) async fn is_alive(&self, host: &str, db: &Db) -> Result<bool> {
        if host == &*self.host.get() {
            return Ok(true);
        }
        let (Lock::File { folder, .. } | Lock::Nowhere { folder: Some(folder) }) = &self.lock else {
            return Ok(held_locks(db).await?.contains(&key(host)));
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

    /// The hosts that share a server, have slots there, and are dead.
    pub(crate) async fn dead_with_slots(&self, db: &Db) -> Result<Vec<String>> {
        let Lock::Session(_) = &self.lock else { return Ok(Vec::new()) };
        // The slots first: a host takes its lock before it makes them.
        let rows = sql("SELECT DISTINCT host FROM host_slot ORDER BY host").read(db).await?;
        let held = held_locks(db).await?;
        let me = self.host.get();
        let hosts = rows.iter().map(|row| row.get("host")).collect::<Result<Vec<String>>>()?;
        Ok(hosts.into_iter().filter(|host| **host != *me && !held.contains(&key(host))).collect())
    }
}

impl Session {
    /// Makes sure of a connection that answers. A new one does not have the lock.
    async fn connect_if_gone(&mut self) -> Result<()> {
        if !self.lost {
            let answers = tokio::time::timeout(PING_TIMEOUT, self.connection.ping()).await;
            if answers.is_ok_and(|ping| ping.is_ok()) {
                return Ok(());
            }
        }
        self.held = false;
        let mut anew = connect(&self.options).await?;
        prepare(&mut anew).await?;
        (self.connection, self.lost) = (anew, false);
        Ok(())
    }

    /// The server did not answer in time.
    fn lose(&mut self) -> Error {
        (self.held, self.lost) = (false, true);
        Error::NotPresent
    }

    async fn begin_as(&mut self, host: &str) -> Result<()> {
        self.connect_if_gone().await?;
        self.held = take(&mut self.connection, host).await?;
        self.process = process_of(&mut self.connection).await?;
        server::make_slots(&mut self.connection, host).await
    }

    async fn hold(&mut self, host: &str) -> Result<()> {
        self.connect_if_gone().await?;
        if self.held {
            return Ok(());
        }
        let process = process_of(&mut self.connection).await?;
        for _ in 0..TAKE_TRIES {
            if take(&mut self.connection, host).await? {
                (self.held, self.process) = (true, process);
                break;
            }
            // A server that has not noticed the end of our former connection keeps the lock for it.
            if self.process != process {
                end_former(&mut self.connection, self.process, key(host)).await?;
            }
            tokio::time::sleep(TAKE_PAUSE).await;
        }
        if !self.held {
            return Err(Error::NotPresent);
        }
        // Somebody may have looked meanwhile, and found nobody.
        if server::has_slots(&mut self.connection, host).await? { Ok(()) } else { Err(Error::TakenOver) }
    }
}

/// Says whether it has the lock.
async fn take(connection: &mut PgConnection, host: &str) -> Result<bool> {
    let taken = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(key(host)).fetch_one(connection).await?;
    Ok(taken)
}

/// The key of an advisory lock, of which the server shows both halves.
const HELD_KEY: &str = "((CAST(classid AS BIGINT) << 32) | CAST(objid AS BIGINT))";

/// Ends our former connection at the server's end, if that is who holds the lock.
async fn end_former(connection: &mut PgConnection, process: i32, key: i64) -> Result<()> {
    let text = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
             AND pid = $1 AND {HELD_KEY} = $2"
    );
    sqlx::query(AssertSqlSafe(text)).bind(process).bind(key).execute(connection).await?;
    Ok(())
}

/// The keys of all hosts that are there. Trying for their locks would say the same, and take them for a moment from those
/// they belong to.
async fn held_locks(db: &Db) -> Result<BTreeSet<i64>> {
    let text = format!(
        "SELECT {HELD_KEY} AS key FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    );
    sql_of(text).read(db).await?.iter().map(|row| row.get("key")).collect()
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
        self.remove_file();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use sqlx::ConnectOptions;
    use sqlx::postgres::PgSslMode;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// No test waits longer for anything.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A server that takes every connection, says that it is ready, and then never says anything again.
    async fn silent() -> PgConnectOptions {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut startup = [0; 4];
                    stream.read_exact(&mut startup).await.unwrap();
                    let rest = usize::try_from(u32::from_be_bytes(startup)).unwrap() - startup.len();
                    stream.read_exact(&mut vec![0; rest]).await.unwrap();
                    // "You may come in", and "ready for a query".
                    stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").await.unwrap();
                    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.unwrap();
                });
            }
        });
        let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(port);
        options.username("x").database("x").ssl_mode(PgSslMode::Disable)
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_waited_for_no_longer_than_the_limit() {
        let options = silent().await;
        let connection = tokio::time::timeout(PATIENCE, options.connect()).await.unwrap().unwrap();
        let limit = Duration::from_millis(200);
        let session = Session { connection, options, held: true, process: 1, lost: false, limit };
        let mut presence = Presence { host: HostName::new(), lock: Lock::Session(Box::new(session)) };
        let host = presence.host().get();
        // The second time on a connection of its own, which it does not get an answer on, either.
        for _ in 0..2 {
            let held = tokio::time::timeout(PATIENCE, presence.hold()).await.unwrap();
            assert!(matches!(held, Err(Error::NotPresent)), "{held:?}");
        }
        let begun = tokio::time::timeout(PATIENCE, presence.begin_anew()).await.unwrap();
        assert!(matches!(begun, Err(Error::NotPresent)), "{begun:?}");
        assert_eq!(presence.host().get(), host, "whoever has no lock goes by no other name");
    }
}
