//! Connections to a database: how long each thing is waited for, and how those to a server are made and ended.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};

use crate::error::{Error, Result};

/// How long a connection waits for another process's write. SQLite looks again after 100 ms at most.
/// Longer than the longest import: who waits for it is not to be told that the database is locked.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(1800);
/// How long to wait before asking a full server again.
const FULL_PAUSE: Duration = Duration::from_millis(100);
/// How long a task waits for a connection of its process.
pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(1800);

/// How long a change may stand still before the server ends it.
const IDLE_CHANGE_MAX: Duration = Duration::from_secs(60);
/// How soon, how often and how many times a server asks whether a silent client is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_COUNT: u32 = 3;
/// How long what a server has sent may stay without an answer.
const UNANSWERED_MAX: Duration = Duration::from_secs(30);
/// How long a server may take to accept a connection.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How this host's connections to a server behave.
pub(crate) async fn prepare(connection: &mut PgConnection) -> sqlx::Result<()> {
    let settings = [
        // A host that hangs in the middle of a change must not stop all others for good.
        ("lock_timeout", BUSY_TIMEOUT.as_millis().to_string()),
        ("idle_in_transaction_session_timeout", IDLE_CHANGE_MAX.as_millis().to_string()),
        // Every query walks an index made for it, whatever is bound; planning each call anew costs more than the walk.
        ("plan_cache_mode", "force_generic_plan".to_owned()),
        // A machine that is gone without a word is noticed by its server within the minute, and not after two hours.
        ("tcp_keepalives_idle", KEEPALIVE_IDLE.as_secs().to_string()),
        ("tcp_keepalives_interval", KEEPALIVE_EVERY.as_secs().to_string()),
        ("tcp_keepalives_count", KEEPALIVE_COUNT.to_string()),
        ("tcp_user_timeout", UNANSWERED_MAX.as_millis().to_string()),
    ];
    let (names, values): (Vec<&str>, Vec<String>) = settings.into_iter().unzip();
    let text = "SELECT set_config(name, value, false) FROM unnest($1, $2) AS setting (name, value)";
    sqlx::query(text).bind(names).bind(values).execute(connection).await?;
    Ok(())
}

/// The server for people to read: what identifies it without a password.
pub(crate) fn place(options: &PgConnectOptions) -> String {
    let (user, host, port) = (options.get_username(), options.get_host(), options.get_port());
    format!("postgres://{user}@{host}:{port}/{}", options.get_database().unwrap_or_default())
}

/// Connects; waits for a server that is there but has no room, or is about to start.
pub(crate) async fn connect(options: &PgConnectOptions) -> Result<PgConnection> {
    let unreachable = |source| Error::Unreachable { place: place(options), source };
    let given_up = tokio::time::Instant::now() + ACQUIRE_TIMEOUT;
    loop {
        let source = match tokio::time::timeout(CONNECT_TIMEOUT, options.connect()).await {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(source)) => source,
            Err(_) => return Err(unreachable(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))),
        };
        if !is_full(&source) {
            return Err(unreachable(source));
        }
        if tokio::time::Instant::now() >= given_up {
            return Err(Error::Full { place: place(options) });
        }
        tokio::time::sleep(FULL_PAUSE).await;
    }
}

/// `too_many_connections` and `cannot_connect_now`: a moment later there may be room.
fn is_full(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    matches!(code.as_deref(), Some("53300" | "57P03"))
}

/// Ends a process of the server that runs a transaction whose client has gone.
pub(crate) async fn end_process(connection: &mut PgConnection, process: i32) -> sqlx::Result<()> {
    let text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE pid = $1 AND datname = current_database() AND application_name = 'toolhost'";
    sqlx::query(text).bind(process).execute(connection).await?;
    Ok(())
}

/// The server's process behind a connection.
pub(crate) async fn process_of(connection: &mut PgConnection) -> Result<i32> {
    Ok(sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await?)
}
