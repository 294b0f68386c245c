//! Logins: people who have proven who they are, and what they prove it with from then on.
//!
//! A login is one browser of one person. Its secret has 256 random bits and is kept as its SHA-256, as that of a token is.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use toolhost_contract::Clock;

use crate::db::{Db, Row, sql};
use crate::error::{Error, Result};
use crate::people::is_name;
use crate::terminals::{Terminals, note_proven};

/// How exact the last use is: a row is written this seldom.
const USE_NOTED_MS: i64 = 60_000;

/// How a person has proven who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Proof {
    /// With a link that works once, made by somebody who may.
    Link,
    /// At an OpenID provider.
    Openid,
}

/// A login as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    /// SHA-256 of the secret, hex.
    #[serde(skip)]
    pub hash: String,
    pub user: String,
    pub how: Proof,
    pub created_at_ms: i64,
    /// To the minute.
    pub used_at_ms: i64,
    pub expires_at_ms: i64,
}

/// How long a login holds.
#[derive(Debug, Clone, Copy)]
pub struct LoginLife {
    /// Since it was last used.
    pub idle: Duration,
    /// In all.
    pub longest: Duration,
}

/// The logins of a database.
#[derive(Clone)]
pub struct Logins {
    db: Db,
    clock: Arc<dyn Clock>,
    life: LoginLife,
}

impl Proof {
    fn as_str(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Openid => "openid",
        }
    }
}

impl Default for LoginLife {
    fn default() -> Self {
        Self { idle: Duration::from_secs(12 * 3600), longest: Duration::from_secs(7 * 24 * 3600) }
    }
}

impl Logins {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>, life: LoginLife) -> Self {
        Self { db, clock, life }
    }

    /// The command lines of the same people.
    #[must_use]
    pub fn terminals(&self) -> Terminals {
        Terminals::new(self.db.clone(), Arc::clone(&self.clock))
    }

    /// Keeps a link that signs in a user, once, if it is opened in time. `hash` is the SHA-256 of its secret, hex.
    ///
    /// # Errors
    /// [`Error::Name`] if no user can have this name.
    pub async fn add_link(&self, hash: &str, user: &str, lives: Duration) -> Result<()> {
        named(user)?;
        let now = self.clock.unix_ms();
        let mut tx = self.db.write().await?;
        sql("DELETE FROM login_link WHERE expires_at_ms <= $1").bind(now).run(&mut tx).await?;
        let insert = "INSERT INTO login_link (hash, user_name, expires_at_ms) VALUES ($1, $2, $3)";
        sql(insert).bind(hash).bind(user).bind(now.saturating_add(ms(lives))).run(&mut tx).await?;
        tx.commit().await
    }

    /// Whom a link signs in; `None` if it was used, is too old, or never was one.
    pub async fn link(&self, hash: &str) -> Result<Option<String>> {
        let select = "SELECT user_name FROM login_link WHERE hash = $1 AND expires_at_ms > $2";
        let rows = sql(select).bind(hash).bind(self.clock.unix_ms()).read(&self.db).await?;
        rows.first().map(|row| row.get("user_name")).transpose()
    }

    /// Uses a link up, and makes a login of it, whose secret has the hash `login`. `None` if the link signs nobody in: of many who
    /// open it at once, one is signed in.
    pub async fn use_link(&self, link: &str, login: &str) -> Result<Option<Login>> {
        let now = self.clock.unix_ms();
        let mut tx = self.db.write().await?;
        let select = sql("SELECT user_name FROM login_link WHERE hash = $1 AND expires_at_ms > $2");
        let found = select.bind(link).bind(now).all(&mut tx).await?;
        let user: Option<String> = found.first().map(|row| row.get("user_name")).transpose()?;
        let Some(user) = user else { return Ok(None) };
        if sql("DELETE FROM login_link WHERE hash = $1").bind(link).run(&mut tx).await? != 1 {
            return Ok(None);
        }
        let made = self.insert(&mut tx, login, &user, Proof::Link, now).await?;
        tx.commit().await?;
        Ok(Some(made))
    }

    /// Makes a login of a user who has proven elsewhere who they are. `hash` is the SHA-256 of its secret, hex.
    ///
    /// # Errors
    /// [`Error::Name`] if no user can have this name.
    pub async fn create(&self, hash: &str, user: &str, how: Proof) -> Result<Login> {
        named(user)?;
        let now = self.clock.unix_ms();
        let mut tx = self.db.write().await?;
        let made = self.insert(&mut tx, hash, user, how, now).await?;
        tx.commit().await?;
        Ok(made)
    }

    async fn insert(&self, tx: &mut crate::db::Tx, hash: &str, user: &str, how: Proof, now: i64) -> Result<Login> {
        let expires_at_ms = now.saturating_add(ms(self.life.longest));
        let old = now.saturating_sub(ms(self.life.idle));
        let delete = sql("DELETE FROM login WHERE expires_at_ms <= $1 OR used_at_ms <= $2");
        delete.bind(now).bind(old).run(tx).await?;
        let insert = "INSERT INTO login (hash, user_name, how, created_at_ms, used_at_ms, expires_at_ms)
                      VALUES ($1, $2, $3, $4, $5, $6)";
        let insert = sql(insert).bind(hash).bind(user).bind(how.as_str()).bind(now).bind(now).bind(expires_at_ms);
        insert.run(tx).await?;
        note_proven(tx, user, now).await?;
        let (hash, user) = (hash.to_owned(), user.to_owned());
        Ok(Login { hash, user, how, created_at_ms: now, used_at_ms: now, expires_at_ms })
    }

    /// The login whose secret has this hash, if it holds now.
    pub async fn valid(&self, hash: &str) -> Result<Option<Login>> {
        let now = self.clock.unix_ms();
        let select = "SELECT * FROM login WHERE hash = $1 AND expires_at_ms > $2 AND used_at_ms > $3";
        let select = sql(select).bind(hash).bind(now).bind(now.saturating_sub(ms(self.life.idle)));
        select.read(&self.db).await?.first().map(login).transpose()
    }

    /// Notes that a login was used now, unless that was noted a moment ago.
    pub async fn used(&self, login: &Login) -> Result<()> {
        let now = self.clock.unix_ms();
        if now - login.used_at_ms < USE_NOTED_MS {
            return Ok(());
        }
        let mut tx = self.db.write_lightly().await?;
        sql("UPDATE login SET used_at_ms = $1 WHERE hash = $2").bind(now).bind(&login.hash).run(&mut tx).await?;
        tx.commit().await
    }

    /// Ends a login. Says whether there was one.
    pub async fn end(&self, hash: &str) -> Result<bool> {
        let mut tx = self.db.write().await?;
        let ended = sql("DELETE FROM login WHERE hash = $1").bind(hash).run(&mut tx).await? == 1;
        tx.commit().await?;
        Ok(ended)
    }

    /// Ends all logins and links of a user. Says how many logins there were.
    pub async fn end_all(&self, user: &str) -> Result<u64> {
        let mut tx = self.db.write().await?;
        sql("DELETE FROM login_link WHERE user_name = $1").bind(user).run(&mut tx).await?;
        let ended = sql("DELETE FROM login WHERE user_name = $1").bind(user).run(&mut tx).await?;
        tx.commit().await?;
        Ok(ended)
    }
}

fn named(user: &str) -> Result<()> {
    if is_name(user) { Ok(()) } else { Err(Error::Name(user.to_owned())) }
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn login(row: &Row) -> Result<Login> {
    let how: String = row.get("how")?;
    Ok(Login {
        hash: row.get("hash")?,
        user: row.get("user_name")?,
        how: if how == Proof::Openid.as_str() { Proof::Openid } else { Proof::Link },
        created_at_ms: row.get("created_at_ms")?,
        used_at_ms: row.get("used_at_ms")?,
        expires_at_ms: row.get("expires_at_ms")?,
    })
}
