//! Wakes whoever waits for what is written to a project, by this process or another one.
//!
//! A wake-up is a hint: whoever is woken looks at the database, and looks every [`LOOK_EVERY`] without one, so nothing is lost with a
//! hint. A server says when something was committed (`LISTEN`), on a connection of its own. A file says nothing, but each commit is
//! written to the log beside it, and to ask when that was written last takes no query.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use crate::connect::{CONNECT_TIMEOUT, prepare};
use crate::db::Pools;
use crate::file::{DatabaseFile, LogMark};
use crate::reader::Reader;

/// How long nobody looks without a wake-up.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often it is asked when the log of a file was written last.
const ASK_EVERY: Duration = Duration::from_millis(25);
/// How often it is looked for what was committed once the log was written: the log is written before its commit can be seen, and the
/// time of a file may stay the same for several milliseconds.
const LOOKS_AFTER: u32 = 4;
/// How long to wait before a server is connected to again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// What the triggers of a server's tables notify, with the number of the project.
const CHANNEL: &str = "toolhost_events";

/// Why somebody is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// Something was written.
    Told,
    /// Nothing is known of it, and nobody has looked for a while.
    Unsure,
}

/// Wakes one who waits for what is written to a project.
pub struct Wakes {
    source: Source,
    looked: Instant,
}

enum Source {
    File {
        file: Arc<DatabaseFile>,
        seen: Option<LogMark>,
        looks: u32,
    },
    Server {
        told: Arc<Notify>,
        /// Says that the connection is to be made again.
        doubt: Arc<Notify>,
        listening: JoinHandle<()>,
    },
}

impl Reader {
    /// Wakes one who waits for what is written to a project.
    #[must_use]
    pub fn wakes(&self, project: i64) -> Wakes {
        let source = match &self.db().pools {
            Pools::Sqlite { readers, .. } | Pools::Reading { readers, .. } => {
                Source::File { file: readers.file(), seen: None, looks: 0 }
            }
            Pools::Postgres(server) => {
                let (told, doubt): (Arc<Notify>, Arc<Notify>) = (Arc::default(), Arc::default());
                let listening = listen(server.links.options().clone(), project, Arc::clone(&told), Arc::clone(&doubt));
                Source::Server { told, doubt, listening: tokio::spawn(listening) }
            }
        };
        Wakes { source, looked: Instant::now() }
    }
}

impl Wakes {
    /// Waits until it is time to look.
    pub async fn next(&mut self) -> Woken {
        let latest = self.looked + LOOK_EVERY;
        let woken = match &mut self.source {
            Source::File { file, seen, looks } => loop {
                sleep(ASK_EVERY).await;
                let mark = file.log_mark();
                if mark != *seen {
                    (*seen, *looks) = (mark, LOOKS_AFTER);
                }
                if *looks > 0 {
                    *looks -= 1;
                    break Woken::Told;
                }
                if Instant::now() >= latest {
                    break Woken::Unsure;
                }
            },
            Source::Server { told, .. } => tokio::select! {
                () = told.notified() => Woken::Told,
                () = sleep_until(latest) => Woken::Unsure,
            },
        };
        self.looked = Instant::now();
        woken
    }

    /// Something was found without a wake-up: a connection of which no word comes may be dead.
    pub fn missed(&self) {
        if let Source::Server { doubt, .. } = &self.source {
            doubt.notify_one();
        }
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        if let Source::Server { listening, .. } = &self.source {
            listening.abort();
        }
    }
}

/// Listens for ever, on one connection after the other.
async fn listen(options: PgConnectOptions, project: i64, told: Arc<Notify>, doubt: Arc<Notify>) {
    let project = project.to_string();
    loop {
        match listener(&options).await {
            Ok(mut listener) => {
                // What was written before it listened.
                told.notify_one();
                loop {
                    let word = tokio::select! {
                        word = listener.try_recv() => word,
                        () = doubt.notified() => Ok(None),
                    };
                    match word {
                        Ok(Some(word)) if word.payload() == project => told.notify_one(),
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(error) => {
                            tracing::debug!(%error, "the connection that listens has failed");
                            break;
                        }
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "the server cannot be listened to"),
        }
        sleep(AGAIN_AFTER).await;
    }
}

/// A connection that listens. The driver has one only with a pool around it.
async fn listener(options: &PgConnectOptions) -> sqlx::Result<PgListener> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(CONNECT_TIMEOUT)
        .after_connect(|connection, _| Box::pin(prepare(connection)))
        .connect_with(options.clone())
        .await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}
