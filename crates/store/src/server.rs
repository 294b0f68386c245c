//! A PostgreSQL server as one host sees it: in whose name it writes, and what became of a commit that was not answered.
//!
//! Two problems have one answer. A host that lost its connection may have been taken for dead, and must then write
//! nothing; and a connection that ends during COMMIT does not say whether the commit happened. So each host has a few
//! slots, rows of its own, and every transaction that writes puts a number of its own into one of them first. Whoever
//! takes a host for dead deletes its slots, and its next transaction finds none. And whoever does not know whether a
//! transaction has happened looks for its number: the slot has it, or it has not.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Connection, PgConnection, Postgres, Row as _};

use toolhost_contract::Clock;

use crate::connect::{connect, end_process, place};
use crate::error::{Error, Result};
use crate::host_name::HostName;
use crate::links::{Link, Links};
use crate::mark::{Mark, Slots};

/// Transactions of one host that may write at once, those included that ended without an answer.
pub(crate) const SLOTS: i64 = 32;
/// How long it is tried to learn what became of a commit.
const DOUBT_MAX: Duration = Duration::from_secs(5);
/// How long to wait before looking again.
const DOUBT_PAUSE: Duration = Duration::from_millis(100);
/// How long a look waits for a transaction that may still be under way.
const LOOK_MS: &str = "500";
/// What the server calls a lock that was waited for too long.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The connections of one host to its server.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) links: Links,
    host: HostName,
    slots: Arc<Slots>,
}

/// A transaction. Dropped without a commit, it has not happened.
pub(crate) struct ServerTx {
    pub(crate) link: Link,
    server: Server,
    /// `None`: it only reads.
    mark: Option<Mark>,
}

impl Server {
    pub(crate) fn new(links: Links, host: HostName) -> Self {
        let free = Mutex::new((0..SLOTS).collect());
        Self { links, host, slots: Arc::new(Slots { free, next: AtomicI64::new(1) }) }
    }

    /// Begins to write, in the name of this host. Refused once another host has taken it for dead.
    pub(crate) async fn write(&self) -> Result<ServerTx> {
        // Whatever the server's default: behind the project's lock, each query must see what was committed last.
        let mut link = self.links.begin("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
        let slot = self.slots.free.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let slot = slot.ok_or_else(|| Error::Full { place: place(self.links.options()) })?;
        let number = self.slots.next.fetch_add(1, Ordering::Relaxed);
        let mut mark = Mark { host: self.host.get(), slot, number, process: 0, slots: Arc::clone(&self.slots) };
        let text =
            "UPDATE host_slot SET number = $3 WHERE host = $1 AND slot = $2 RETURNING pg_backend_pid() AS process";
        let marked = sqlx::query(text).bind(&*mark.host).bind(slot).bind(number);
        let (connection, watch) = link.parts()?;
        let marked = watch.answered(marked.fetch_optional(connection)).await;
        let Some(marked) = link.discard_if_dead(marked)? else {
            return Err(Error::TakenOver);
        };
        mark.process = marked.try_get("process")?;
        Ok(ServerTx { link, server: self.clone(), mark: Some(mark) })
    }

    pub(crate) async fn snapshot(&self) -> Result<ServerTx> {
        let link = self.links.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        Ok(ServerTx { link, server: self.clone(), mark: None })
    }

    /// What became of a transaction: `None` where that cannot be learnt now.
    pub(crate) async fn happened(&self, mark: &Mark) -> Option<bool> {
        tokio::time::timeout(DOUBT_MAX, async {
            loop {
                match self.look(mark).await {
                    Ok(told) => return told,
                    Err(error) => tracing::debug!(%error, ?mark, "what became of a commit cannot be learnt yet"),
                }
                tokio::time::sleep(DOUBT_PAUSE).await;
            }
        })
        .await
        .ok()
        .flatten()
    }

    /// One look, on a connection of its own. It waits for the transaction's end, and brings it about if it hangs.
    async fn look(&self, mark: &Mark) -> Result<Option<bool>> {
        let mut anew = connect(self.links.options()).await?;
        sqlx::query("SELECT set_config('lock_timeout', $1, false)").bind(LOOK_MS).execute(&mut anew).await?;
        let text = "SELECT number FROM host_slot WHERE host = $1 AND slot = $2 FOR UPDATE";
        let found = sqlx::query(text).bind(&*mark.host).bind(mark.slot).fetch_optional(&mut anew).await;
        let told = match found {
            Ok(Some(row)) => Some(row.try_get::<i64, _>("number")? == mark.number),
            // The slots of a host that was taken for dead are gone, and with them what they said.
            Ok(None) => None,
            Err(error) => {
                let code = error.as_database_error().and_then(|error| error.code());
                if code.as_deref() == Some(LOCK_NOT_AVAILABLE) {
                    end_process(&mut anew, mark.process).await?;
                }
                return Err(error.into());
            }
        };
        // Nothing is lost with a connection that cannot say good-bye.
        let _ = anew.close().await;
        Ok(told)
    }
}

impl ServerTx {
    /// Takes its slots from a host that seems dead. False where one of them is being used, so that the host is not dead.
    pub(crate) async fn fence_off(&mut self, host: &str) -> Result<bool> {
        let all = sqlx::query("SELECT slot FROM host_slot WHERE host = $1").bind(host);
        let all = self.all(all).await?.len();
        let free = sqlx::query("SELECT slot FROM host_slot WHERE host = $1 FOR UPDATE SKIP LOCKED").bind(host);
        if self.all(free).await?.len() < all {
            return Ok(false);
        }
        self.all(sqlx::query("DELETE FROM host_slot WHERE host = $1").bind(host)).await?;
        Ok(true)
    }

    async fn all(&mut self, query: Query<'_, Postgres, PgArguments>) -> Result<Vec<PgRow>> {
        let (connection, watch) = self.link.parts()?;
        let rows = watch.answered(query.fetch_all(connection)).await;
        Ok(self.link.discard_if_dead(rows)?)
    }

    /// When it returns, the transaction has happened. An error says whether it has not, or that nobody knows.
    pub(crate) async fn commit(self) -> Result<()> {
        let Self { link, server, mark } = self;
        let Err(error) = link.commit().await else { return Ok(()) };
        let Some(mark) = mark else { return Err(error.into()) };
        match server.happened(&mark).await {
            Some(true) => Ok(()),
            Some(false) => Err(Error::NotWritten { source: error }),
            None => Err(Error::InDoubt { source: error, mark: Arc::new(mark) }),
        }
    }
}

/// The time of the server that hosts share: leases and deadlines are read by all of them, and their own clocks differ.
pub(crate) struct ServerClock {
    host: Arc<dyn Clock>,
    /// The server's time when it was asked, and this host's own reckoning at that moment.
    unix_ms: i64,
    at: Duration,
}

impl ServerClock {
    pub(crate) async fn of(connection: &mut PgConnection, host: Arc<dyn Clock>) -> Result<Arc<dyn Clock>> {
        let text = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
        let unix_ms = sqlx::query_scalar(text).fetch_one(connection).await?;
        let at = host.monotonic();
        Ok(Arc::new(Self { host, unix_ms, at }))
    }
}

impl Clock for ServerClock {
    fn unix_ms(&self) -> i64 {
        let since = self.host.monotonic().saturating_sub(self.at);
        self.unix_ms.saturating_add(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.host.monotonic()
    }
}

/// Gives a host its slots.
pub(crate) async fn make_slots(connection: &mut PgConnection, host: &str) -> Result<()> {
    let text = "INSERT INTO host_slot (host, slot, number) SELECT $1, slot, 0 FROM generate_series(0, $2 - 1) AS slot";
    sqlx::query(text).bind(host).bind(SLOTS).execute(connection).await?;
    Ok(())
}

/// Whether a host has its slots, or was taken for dead.
pub(crate) async fn has_slots(connection: &mut PgConnection, host: &str) -> Result<bool> {
    let text = "SELECT EXISTS (SELECT 1 FROM host_slot WHERE host = $1)";
    Ok(sqlx::query_scalar(text).bind(host).fetch_one(connection).await?)
}
