//! The connections of one host to its server: a few, taken in turn, none of them trusted.
//!
//! The hard problem is a connection that is dead without a word, as after a router has forgotten it: what is sent on it
//! goes nowhere, and no error ever comes. A time limit alone cannot tell it from a query that waits for somebody's long
//! import. So whoever waits asks the server, on a connection of its own, whether it is at work for the first one: where it
//! is not, time after time, no answer will come.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, Database, PgConnection, Postgres, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::connect::{ACQUIRE_TIMEOUT, CONNECT_TIMEOUT, connect, end_process, prepare, process_of};
use crate::error::Result;

/// Connections of one host to its server.
const LINKS_MAX: u32 = 8;
/// How long an answer is waited for without asking whether anybody works at it, and how long a connection that nobody
/// uses may take to say that it is well.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// How often in a row the server says that it does nothing for a connection until that is given up. What it has answered
/// may still be on its way.
const IDLE_LOOKS_MAX: u32 = 3;
/// How long it is tried to use a connection again whose work was given up.
const SETTLE_MAX: Duration = Duration::from_secs(5);
/// How long a host that ends waits for what is still under way.
const CLOSE_MAX: Duration = Duration::from_secs(5);

type Transactions = <Postgres as Database>::TransactionManager;

/// So many connections, opened when they are first needed.
#[derive(Clone)]
pub(crate) struct Links {
    options: Arc<PgConnectOptions>,
    idle: Arc<Mutex<Vec<Line>>>,
    /// One for each connection that may be lent, first come, first served.
    permits: Arc<Semaphore>,
}

/// A connection, and the server's process behind it.
struct Line {
    connection: PgConnection,
    process: i32,
}

/// A connection, lent. A transaction on it that was not committed when it is dropped has not happened.
pub(crate) struct Link {
    /// `None` once it has failed, and while it is dropped.
    line: Option<Line>,
    links: Links,
    /// Something was begun on it and has not ended.
    is_begun: bool,
    permit: Option<OwnedSemaphorePermit>,
}

/// Watches over one connection.
pub(crate) struct Watch {
    links: Links,
    process: i32,
}

impl Links {
    pub(crate) fn new(options: PgConnectOptions) -> Self {
        let permits = Arc::new(Semaphore::new(LINKS_MAX as usize));
        Self { options: Arc::new(options), idle: Arc::default(), permits }
    }

    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// Waits for a connection that answers.
    pub(crate) async fn take(&self) -> Result<Link> {
        let permit = timeout(ACQUIRE_TIMEOUT, Arc::clone(&self.permits).acquire_owned()).await;
        let permit = permit.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_| sqlx::Error::PoolClosed)?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let line = match idle {
            Some(mut line) => {
                let answers = timeout(SILENCE_MAX, line.connection.ping()).await.is_ok_and(|ping| ping.is_ok());
                answers.then_some(line)
            }
            None => None,
        };
        let line = match line {
            Some(line) => line,
            None => self.connect().await?,
        };
        Ok(Link { line: Some(line), links: self.clone(), is_begun: false, permit: Some(permit) })
    }

    /// Waits for a connection and begins a transaction on it.
    pub(crate) async fn begin(&self, statement: &'static str) -> Result<Link> {
        let mut link = self.take().await?;
        let (connection, watch) = link.parts()?;
        let begun = watch.answered(Transactions::begin(connection, Some(statement.into_sql_str()))).await;
        link.discard_if_dead(begun)?;
        Ok(link)
    }

    async fn connect(&self) -> Result<Line> {
        // What has become of one may have become of all: none of them is worth the wait.
        self.forget();
        let mut connection = connect(&self.options).await?;
        let prepared = timeout(CONNECT_TIMEOUT, async {
            prepare(&mut connection).await?;
            process_of(&mut connection).await
        });
        let process = prepared.await.map_err(|_| silent())??;
        Ok(Line { connection, process })
    }

    /// Lets go of all connections that nobody uses. A dead one cannot be told good-bye, so they are just dropped.
    fn forget(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Waits until all are back, but not for ever, and closes them.
    pub(crate) async fn close(&self) {
        let all = timeout(CLOSE_MAX, self.permits.acquire_many(LINKS_MAX)).await;
        self.permits.close();
        drop(all);
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for Line { connection, .. } in idle {
            // Nothing is lost with a connection that cannot say good-bye.
            let _ = timeout(SILENCE_MAX, connection.close()).await;
        }
    }
}

impl Link {
    /// The connection, for a query, and who watches over it meanwhile.
    pub(crate) fn parts(&mut self) -> sqlx::Result<(&mut PgConnection, Watch)> {
        let Line { connection, process } = self.line.as_mut().ok_or(sqlx::Error::WorkerCrashed)?;
        self.is_begun = true;
        Ok((connection, Watch { links: self.links.clone(), process: *process }))
    }

    /// Looks at how something went. A connection that failed is not lent again.
    pub(crate) fn discard_if_dead<T>(&mut self, done: sqlx::Result<T>) -> sqlx::Result<T> {
        use sqlx::Error as E;
        if matches!(done, Err(E::Io(_) | E::Protocol(_) | E::Tls(_) | E::WorkerCrashed)) {
            self.line = None;
            self.links.forget();
        }
        done
    }

    pub(crate) async fn commit(mut self) -> sqlx::Result<()> {
        let (connection, watch) = self.parts()?;
        let committed = watch.answered(Transactions::commit(connection)).await;
        self.discard_if_dead(committed)?;
        self.is_begun = false;
        Ok(())
    }

    /// A query outside of any transaction has ended.
    pub(crate) fn ended(mut self) {
        self.is_begun = false;
    }
}

impl Watch {
    /// Waits for an answer as long as the server works at it.
    pub(crate) async fn answered<T>(self, work: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
        let mut work = std::pin::pin!(work);
        let mut idle = 0;
        loop {
            if let Ok(done) = timeout(SILENCE_MAX, &mut work).await {
                return done;
            }
            idle = if self.is_at_work().await? { 0 } else { idle + 1 };
            if idle == IDLE_LOOKS_MAX {
                tracing::warn!("a connection to the server is dead without a word; it is given up");
                // It may hold locks there that nobody would ever let go of.
                let _ = self.asked(async |server| end_process(server, self.process).await).await;
                return Err(silent());
            }
        }
    }

    /// Whether the server does anything for the connection. An error where the server cannot be asked.
    async fn is_at_work(&self) -> sqlx::Result<bool> {
        let text = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity
             WHERE pid = $1 AND application_name = 'toolhost' AND COALESCE(state, '') NOT LIKE 'idle%')";
        let asked =
            self.asked(async |server| sqlx::query_scalar(text).bind(self.process).fetch_one(server).await).await;
        match asked {
            // Being there is all it has to do, even if it has no room for another one.
            Err(sqlx::Error::Database(_)) => Ok(true),
            asked => asked,
        }
    }

    /// Asks the server something on a connection of its own.
    async fn asked<T>(&self, question: impl AsyncFnOnce(&mut PgConnection) -> sqlx::Result<T>) -> sqlx::Result<T> {
        let asked = timeout(CONNECT_TIMEOUT, async {
            let mut anew = self.links.options.connect().await?;
            let told = question(&mut anew).await?;
            let _ = anew.close().await;
            Ok(told)
        });
        asked.await.map_err(|_| silent())?
    }
}

fn silent() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "the connection does not answer any more"))
}

impl Drop for Link {
    fn drop(&mut self) {
        let (Some(mut line), Some(permit)) = (self.line.take(), self.permit.take()) else { return };
        let idle = Arc::clone(&self.links.idle);
        let back = move |line| idle.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        if !self.is_begun {
            return back(line);
        }
        // Without a runtime, the connection ends here, and the server notices.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let settled = timeout(SETTLE_MAX, async {
                if Transactions::get_transaction_depth(&line.connection) > 0 {
                    Transactions::rollback(&mut line.connection).await
                } else {
                    line.connection.ping().await
                }
            });
            if settled.await.is_ok_and(|settled| settled.is_ok()) {
                back(line);
            }
            drop(permit);
        });
    }
}
