//! Tokens: what a program proves with who it is, where a host is reached over a network.
//!
//! A token belongs to one project, one user and some profiles. Its secret has 256 random bits and is kept as its SHA-256: it is no
//! password that could be guessed, so nothing slower is needed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use toolhost_contract::{Clock, is_deceptive};

use crate::db::{Db, Row, sql, sql_of};
use crate::error::{Error, Result};

/// Longest name of a token, characters.
const NAME_CHARS_MAX: usize = 100;
/// How exact the last use is: a row is written this seldom.
const USE_NOTED_MS: i64 = 60_000;

/// A token to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub project_id: i64,
    pub account_id: i64,
    /// Short, and no secret: people name the token by it.
    pub id: String,
    pub name: String,
    /// SHA-256 of the secret, hex.
    pub hash: String,
    /// The first one is that of a client that names none.
    pub profiles: Vec<String>,
    pub scopes: Vec<String>,
    pub expires_at_ms: i64,
}

/// A token as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    pub id: String,
    pub name: String,
    /// The user in whose name its calls are made.
    pub user: String,
    #[serde(skip)]
    pub user_id: i64,
    #[serde(skip)]
    pub project_id: i64,
    pub profiles: Vec<String>,
    pub scopes: Vec<String>,
    pub created_at_ms: i64,
    pub expires_at_ms: i64,
    /// To the minute.
    pub last_used_at_ms: Option<i64>,
    pub revoked_at_ms: Option<i64>,
}

/// The tokens of all projects of a database.
#[derive(Clone)]
pub struct Tokens {
    db: Db,
    clock: Arc<dyn Clock>,
}

impl Token {
    /// Whether it still opens anything.
    #[must_use]
    pub fn is_valid_at(&self, now_ms: i64) -> bool {
        self.revoked_at_ms.is_none() && now_ms < self.expires_at_ms
    }
}

impl Tokens {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self { db, clock }
    }

    /// Makes a token.
    ///
    /// # Errors
    /// [`Error::Name`] if its name is none.
    pub async fn create(&self, new: &NewToken) -> Result<()> {
        let length = new.name.chars().count();
        let is_name = (1..=NAME_CHARS_MAX).contains(&length) && !new.name.chars().any(is_deceptive);
        if !is_name || new.name.trim() != new.name {
            return Err(Error::Name(new.name.clone()));
        }
        let mut tx = self.db.write().await?;
        sql(
            "INSERT INTO token (project_id, id, account_id, name, hash, profiles, scopes, created_at_ms, expires_at_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(new.project_id)
        .bind(&new.id)
        .bind(new.account_id)
        .bind(&new.name)
        .bind(&new.hash)
        .bind(new.profiles.join(" "))
        .bind(new.scopes.join(" "))
        .bind(self.clock.unix_ms())
        .bind(new.expires_at_ms)
        .run(&mut tx)
        .await?;
        tx.commit().await
    }

    /// The token whose secret has this hash, if it opens its project now: it has not ended, and its user is a member.
    pub async fn valid(&self, hash: &str) -> Result<Option<Token>> {
        let text = format!("{SELECT} JOIN member m ON {IS_MEMBER} WHERE t.hash = $1 AND {HOLDS} $2");
        let rows = sql_of(text).bind(hash).bind(self.clock.unix_ms()).read(&self.db).await?;
        rows.first().map(token).transpose()
    }

    /// Whether a token opens its project now.
    pub async fn is_valid(&self, token: &Token) -> Result<bool> {
        let text = format!(
            "SELECT t.id FROM token t JOIN member m ON {IS_MEMBER} WHERE t.project_id = $1 AND t.id = $2 AND {HOLDS} $3"
        );
        let query = sql_of(text).bind(token.project_id).bind(&token.id).bind(self.clock.unix_ms());
        Ok(!query.read(&self.db).await?.is_empty())
    }

    /// The ids of all that open their project now.
    pub async fn valid_ids(&self, project: i64) -> Result<BTreeSet<String>> {
        let text = format!(
            "SELECT t.id AS id FROM token t JOIN member m ON {IS_MEMBER} WHERE t.project_id = $1 AND {HOLDS} $2"
        );
        let rows = sql_of(text).bind(project).bind(self.clock.unix_ms()).read(&self.db).await?;
        rows.iter().map(|row| row.get("id")).collect()
    }

    /// All of a project, the newest first.
    pub async fn list(&self, project: i64) -> Result<Vec<Token>> {
        let text = format!("{SELECT} WHERE t.project_id = $1 ORDER BY t.created_at_ms DESC, t.id");
        sql_of(text).bind(project).read(&self.db).await?.iter().map(token).collect()
    }

    /// Ends a token for good. Says whether there was one that was not ended.
    pub async fn revoke(&self, project: i64, id: &str) -> Result<bool> {
        let mut tx = self.db.write().await?;
        let update = "UPDATE token SET revoked_at_ms = $1 WHERE project_id = $2 AND id = $3 AND revoked_at_ms IS NULL";
        let revoked = sql(update).bind(self.clock.unix_ms()).bind(project).bind(id).run(&mut tx).await? == 1;
        tx.commit().await?;
        Ok(revoked)
    }

    /// Notes that a token was used now, unless that was noted a moment ago.
    pub async fn used(&self, token: &Token) -> Result<()> {
        let now = self.clock.unix_ms();
        if token.last_used_at_ms.is_some_and(|last| now - last < USE_NOTED_MS) {
            return Ok(());
        }
        let mut tx = self.db.write_lightly().await?;
        let update = "UPDATE token SET last_used_at_ms = $1 WHERE project_id = $2 AND id = $3";
        sql(update).bind(now).bind(token.project_id).bind(&token.id).run(&mut tx).await?;
        tx.commit().await
    }
}

const IS_MEMBER: &str = "m.project_id = t.project_id AND m.account_id = t.account_id";
/// A time follows.
const HOLDS: &str = "t.revoked_at_ms IS NULL AND t.expires_at_ms >";

const SELECT: &str = "SELECT t.*, a.name AS user_name FROM token t JOIN account a ON a.id = t.account_id";

fn token(row: &Row) -> Result<Token> {
    let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    Ok(Token {
        id: row.get("id")?,
        name: row.get("name")?,
        user: row.get("user_name")?,
        user_id: row.get("account_id")?,
        project_id: row.get("project_id")?,
        profiles: words(row.get("profiles")?),
        scopes: words(row.get("scopes")?),
        created_at_ms: row.get("created_at_ms")?,
        expires_at_ms: row.get("expires_at_ms")?,
        last_used_at_ms: row.get("last_used_at_ms")?,
        revoked_at_ms: row.get("revoked_at_ms")?,
    })
}
