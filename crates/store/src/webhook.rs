//! Where the owners of a project want its asks to be told.

use std::sync::Arc;

use serde::Serialize;
use toolhost_contract::Clock;

use crate::db::{Db, Row, sql};
use crate::error::Result;

/// Webhooks of one project; each is a task of every server, and a request for each ask.
pub const WEBHOOKS_MAX: i64 = 10;

/// Where an owner wants the asks of a project to be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub id: String,
    /// With some services its path is a password.
    pub url: String,
    pub created_by: String,
    pub created_at_ms: i64,
}

/// The webhooks of all projects of a database.
#[derive(Clone)]
pub struct Webhooks {
    db: Db,
    clock: Arc<dyn Clock>,
}

impl Webhooks {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self { db, clock }
    }

    /// The oldest first.
    pub async fn list(&self, project: i64) -> Result<Vec<Webhook>> {
        let select = "SELECT id, url, created_by, created_at_ms FROM webhook WHERE project_id = $1
             ORDER BY created_at_ms, id";
        sql(select).bind(project).read(&self.db).await?.iter().map(webhook).collect()
    }

    pub async fn get(&self, project: i64, id: &str) -> Result<Option<Webhook>> {
        Ok(self.list(project).await?.into_iter().find(|webhook| webhook.id == id))
    }

    /// `None` where the project has [`WEBHOOKS_MAX`] already.
    pub async fn add(&self, project: i64, id: &str, url: &str, by: &str) -> Result<Option<Webhook>> {
        let mut tx = self.db.write().await?;
        tx.lock_project(project).await?;
        let count = "SELECT count(*) AS count FROM webhook WHERE project_id = $1";
        let count: i64 = sql(count).bind(project).one(&mut tx).await?.get("count")?;
        if count >= WEBHOOKS_MAX {
            return Ok(None);
        }
        let added = Webhook {
            id: id.to_owned(),
            url: url.to_owned(),
            created_by: by.to_owned(),
            created_at_ms: self.clock.unix_ms(),
        };
        let insert = "INSERT INTO webhook (project_id, id, url, created_by, created_at_ms) VALUES ($1, $2, $3, $4, $5)";
        let insert = sql(insert).bind(project).bind(&added.id).bind(&added.url);
        insert.bind(&added.created_by).bind(added.created_at_ms).run(&mut tx).await?;
        tx.commit().await?;
        Ok(Some(added))
    }

    /// Answers whether there was one.
    pub async fn remove(&self, project: i64, id: &str) -> Result<bool> {
        let mut tx = self.db.write().await?;
        let delete = "DELETE FROM webhook WHERE project_id = $1 AND id = $2 RETURNING id";
        let gone = !sql(delete).bind(project).bind(id).all(&mut tx).await?.is_empty();
        tx.commit().await?;
        Ok(gone)
    }
}

fn webhook(row: &Row) -> Result<Webhook> {
    Ok(Webhook {
        id: row.get("id")?,
        url: row.get("url")?,
        created_by: row.get("created_by")?,
        created_at_ms: row.get("created_at_ms")?,
    })
}
