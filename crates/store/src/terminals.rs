//! Logins of command lines: who a person at a terminal is, where several people share a database.
//!
//! The terminal makes a secret of 256 random bits and stores it in a file. The database has its SHA-256, once a person who has signed in in a
//! browser confirmed it. The first command line of a database needs nobody: there is nobody yet who could confirm it.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use toolhost_contract::Clock;

use crate::db::{Db, Row, Tx, sql};
use crate::error::{Error, Result};
use crate::people::is_name;

/// How long a terminal is signed in.
const LOGIN_LIVES: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a terminal waits to be confirmed.
pub const TERMINAL_ASK_LIVES: Duration = Duration::from_secs(600);
/// Longest name of a terminal, characters.
const TERMINAL_CHARS_MAX: usize = 100;
/// How exact the last use is: a row is written this seldom.
const USE_NOTED_MS: i64 = 60_000;

/// The login of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminalLogin {
    /// SHA-256 of the secret, hex.
    #[serde(skip)]
    pub hash: String,
    pub user: String,
    /// What the terminal calls itself.
    pub terminal: String,
    pub created_at_ms: i64,
    /// To the minute.
    pub used_at_ms: i64,
    pub expires_at_ms: i64,
}

/// A terminal that waits to be confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalAsk {
    pub code: String,
    pub terminal: String,
    pub expires_at_ms: i64,
}

/// The logins of command lines of a database.
#[derive(Clone)]
pub struct Terminals {
    db: Db,
    clock: Arc<dyn Clock>,
}

impl Terminals {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self { db, clock }
    }

    /// Waits to be confirmed. `hash` is the SHA-256 of the secret, hex.
    ///
    /// # Errors
    /// If the code is taken.
    pub async fn ask(&self, code: &str, hash: &str, terminal: &str) -> Result<()> {
        let now = self.clock.unix_ms();
        let mut tx = self.db.write().await?;
        sql("DELETE FROM terminal_ask WHERE expires_at_ms <= $1").bind(now).run(&mut tx).await?;
        let insert = "INSERT INTO terminal_ask (code, hash, terminal, expires_at_ms) VALUES ($1, $2, $3, $4)";
        let terminal: String = terminal.chars().take(TERMINAL_CHARS_MAX).collect();
        let insert = sql(insert).bind(code).bind(hash).bind(terminal).bind(now.saturating_add(ms(TERMINAL_ASK_LIVES)));
        insert.run(&mut tx).await?;
        tx.commit().await
    }

    /// The terminal that waits with this code.
    pub async fn asked(&self, code: &str) -> Result<Option<TerminalAsk>> {
        let select = sql("SELECT * FROM terminal_ask WHERE code = $1 AND expires_at_ms > $2");
        let rows = select.bind(code).bind(self.clock.unix_ms()).read(&self.db).await?;
        let ask = |row: &Row| {
            Ok(TerminalAsk {
                code: row.get("code")?,
                terminal: row.get("terminal")?,
                expires_at_ms: row.get("expires_at_ms")?,
            })
        };
        rows.first().map(ask).transpose()
    }

    /// Signs in the terminal that waits with this code. Of several people who confirm it at once, one signs it in.
    pub async fn confirm(&self, code: &str, user: &str) -> Result<Option<TerminalLogin>> {
        let now = self.clock.unix_ms();
        let mut tx = self.db.write().await?;
        let select = sql("SELECT hash, terminal FROM terminal_ask WHERE code = $1 AND expires_at_ms > $2");
        let Some(row) = select.bind(code).bind(now).optional(&mut tx).await? else { return Ok(None) };
        let (hash, terminal): (String, String) = (row.get("hash")?, row.get("terminal")?);
        if sql("DELETE FROM terminal_ask WHERE code = $1").bind(code).run(&mut tx).await? != 1 {
            return Ok(None);
        }
        let made = insert(&mut tx, (&hash, user, &terminal), now).await?;
        tx.commit().await?;
        Ok(Some(made))
    }

    /// Refuses the terminal that waits with this code. Says whether there was one.
    pub async fn refuse(&self, code: &str) -> Result<bool> {
        let mut tx = self.db.write().await?;
        let refused = sql("DELETE FROM terminal_ask WHERE code = $1").bind(code).run(&mut tx).await? == 1;
        tx.commit().await?;
        Ok(refused)
    }

    /// The login whose secret has this hash, if it holds now.
    pub async fn valid(&self, hash: &str) -> Result<Option<TerminalLogin>> {
        let select = sql("SELECT * FROM terminal_login WHERE hash = $1 AND expires_at_ms > $2");
        select.bind(hash).bind(self.clock.unix_ms()).read(&self.db).await?.first().map(login).transpose()
    }

    /// Notes that a login was used now, unless that was noted a moment ago.
    pub async fn used(&self, login: &TerminalLogin) -> Result<()> {
        let now = self.clock.unix_ms();
        if now - login.used_at_ms < USE_NOTED_MS {
            return Ok(());
        }
        let mut tx = self.db.write_lightly().await?;
        let update = sql("UPDATE terminal_login SET used_at_ms = $1 WHERE hash = $2");
        update.bind(now).bind(&login.hash).run(&mut tx).await?;
        tx.commit().await
    }

    /// Signs in the first command line of a database, where nobody has ever proven who they are. `None` if somebody has.
    ///
    /// # Errors
    /// [`Error::Name`] if no user can have this name.
    pub async fn first(&self, hash: &str, user: &str, terminal: &str) -> Result<Option<TerminalLogin>> {
        if !is_name(user) {
            return Err(Error::Name(user.to_owned()));
        }
        if self.has_proven_users().await? {
            return Ok(None);
        }
        let now = self.clock.unix_ms();
        let mut tx = self.db.write().await?;
        // Two commands at once wait for each other at the unique column.
        if !note_proven(&mut tx, user, now).await? {
            return Ok(None);
        }
        let made = insert(&mut tx, (hash, user, terminal), now).await?;
        tx.commit().await?;
        Ok(Some(made))
    }

    async fn has_proven_users(&self) -> Result<bool> {
        Ok(!sql("SELECT user_name FROM proven_user LIMIT 1").read(&self.db).await?.is_empty())
    }

    /// Whether a user has ever proven who they are.
    pub async fn is_proven(&self, user: &str) -> Result<bool> {
        let rows = sql("SELECT user_name FROM proven_user WHERE user_name = $1").bind(user).read(&self.db).await?;
        Ok(!rows.is_empty())
    }

    /// Ends a login. Says whether there was one.
    pub async fn end(&self, hash: &str) -> Result<bool> {
        let mut tx = self.db.write().await?;
        let ended = sql("DELETE FROM terminal_login WHERE hash = $1").bind(hash).run(&mut tx).await? == 1;
        tx.commit().await?;
        Ok(ended)
    }

    /// Ends all logins of a user's command lines. Says how many there were.
    pub async fn end_all(&self, user: &str) -> Result<u64> {
        let mut tx = self.db.write().await?;
        let ended = sql("DELETE FROM terminal_login WHERE user_name = $1").bind(user).run(&mut tx).await?;
        tx.commit().await?;
        Ok(ended)
    }
}

/// Notes that a user has proven who they are. Says whether nobody had before. Links that were made for them until then end: an owner made them
/// for somebody who could not make their own.
pub(crate) async fn note_proven(tx: &mut Tx, user: &str, now: i64) -> Result<bool> {
    let known = sql("SELECT user_name FROM proven_user WHERE user_name = $1").bind(user).optional(tx).await?;
    if known.is_some() {
        return Ok(false);
    }
    sql("DELETE FROM login_link WHERE user_name = $1").bind(user).run(tx).await?;
    let first = "INSERT INTO proven_user (user_name, since_ms, is_first) VALUES ($1, $2, 1) ON CONFLICT DO NOTHING";
    if sql(first).bind(user).bind(now).run(tx).await? == 1 {
        return Ok(true);
    }
    let further = "INSERT INTO proven_user (user_name, since_ms) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    sql(further).bind(user).bind(now).run(tx).await?;
    Ok(false)
}

async fn insert(tx: &mut Tx, (hash, user, terminal): (&str, &str, &str), now: i64) -> Result<TerminalLogin> {
    sql("DELETE FROM terminal_login WHERE expires_at_ms <= $1").bind(now).run(tx).await?;
    let expires_at_ms = now.saturating_add(ms(LOGIN_LIVES));
    let text = "INSERT INTO terminal_login (hash, user_name, terminal, created_at_ms, used_at_ms, expires_at_ms)
                VALUES ($1, $2, $3, $4, $5, $6)";
    let terminal: String = terminal.chars().take(TERMINAL_CHARS_MAX).collect();
    let row = sql(text).bind(hash).bind(user).bind(&terminal).bind(now).bind(now).bind(expires_at_ms);
    row.run(tx).await?;
    note_proven(tx, user, now).await?;
    let (hash, user) = (hash.to_owned(), user.to_owned());
    Ok(TerminalLogin { hash, user, terminal, created_at_ms: now, used_at_ms: now, expires_at_ms })
}

fn login(row: &Row) -> Result<TerminalLogin> {
    Ok(TerminalLogin {
        hash: row.get("hash")?,
        user: row.get("user_name")?,
        terminal: row.get("terminal")?,
        created_at_ms: row.get("created_at_ms")?,
        used_at_ms: row.get("used_at_ms")?,
        expires_at_ms: row.get("expires_at_ms")?,
    })
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
