//! Who uses the host, and who may do what in which project.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolhost_contract::{Clock, is_deceptive};

use crate::db::{Db, Tx, sql};
use crate::error::{Error, Result};

/// Longest name of a user, characters.
const NAME_CHARS_MAX: usize = 100;

/// What a member may do; each may do what those after it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Manages: members, and everything below.
    Owner,
    /// Reads and writes.
    Editor,
    /// Reads.
    Viewer,
}

/// A user, and what they are in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    pub id: i64,
    pub name: String,
    pub role: Role,
}

/// Users and memberships.
#[derive(Clone)]
pub struct People {
    db: Db,
    clock: Arc<dyn Clock>,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Owner, Self::Editor, Self::Viewer];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Editor => "editor",
            Self::Viewer => "viewer",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

impl People {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self { db, clock }
    }

    /// The user of this name, if there is one.
    pub async fn user(&self, name: &str) -> Result<Option<i64>> {
        let rows = sql("SELECT id FROM account WHERE name = $1").bind(name).read(&self.db).await?;
        rows.first().map(|row| row.get("id")).transpose()
    }

    /// The user of this name, made if it is new.
    pub async fn add_user(&self, name: &str) -> Result<i64> {
        let mut tx = self.db.write().await?;
        let id = account(&mut tx, name, self.clock.unix_ms()).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// What the user is in the project; `None` for a stranger, and for a project that does not exist.
    pub async fn role(&self, project: i64, user: i64) -> Result<Option<Role>> {
        let select = "SELECT role FROM member WHERE project_id = $1 AND account_id = $2";
        let rows = sql(select).bind(project).bind(user).read(&self.db).await?;
        let role: Option<String> = rows.first().map(|row| row.get("role")).transpose()?;
        Ok(role.as_deref().and_then(Role::parse))
    }

    pub async fn members(&self, project: i64) -> Result<Vec<Member>> {
        let select =
            "SELECT a.id AS id, a.name AS name, m.role AS role FROM member m JOIN account a ON a.id = m.account_id
             WHERE m.project_id = $1 ORDER BY a.name";
        let mut members = Vec::new();
        for row in sql(select).bind(project).read(&self.db).await? {
            let role: String = row.get("role")?;
            let Some(role) = Role::parse(&role) else { continue };
            members.push(Member { id: row.get("id")?, name: row.get("name")?, role });
        }
        Ok(members)
    }

    /// Makes the user a member, or changes what they are. The last owner stays one.
    pub async fn set_role(&self, project: i64, user: i64, role: Role) -> Result<()> {
        let mut tx = self.db.write().await?;
        tx.lock_project(project).await?;
        if role != Role::Owner {
            another_owner(&mut tx, project, user).await?;
        }
        set_role(&mut tx, project, user, role).await?;
        tx.commit().await
    }

    /// Says whether there was such a member.
    pub async fn remove(&self, project: i64, user: i64) -> Result<bool> {
        let mut tx = self.db.write().await?;
        tx.lock_project(project).await?;
        another_owner(&mut tx, project, user).await?;
        let delete = sql("DELETE FROM member WHERE project_id = $1 AND account_id = $2");
        let removed = delete.bind(project).bind(user).run(&mut tx).await? == 1;
        tx.commit().await?;
        Ok(removed)
    }
}

/// Two names that look the same should be the same.
pub(crate) fn is_name(name: &str) -> bool {
    let length = name.chars().count();
    (1..=NAME_CHARS_MAX).contains(&length) && name.trim() == name && !name.chars().any(is_deceptive)
}

/// A project without an owner could never be managed again.
async fn another_owner(tx: &mut Tx, project: i64, user: i64) -> Result<()> {
    let owners = sql("SELECT account_id FROM member WHERE project_id = $1 AND role = 'owner'");
    let owners: Vec<i64> =
        owners.bind(project).all(tx).await?.iter().map(|row| row.get("account_id")).collect::<Result<_>>()?;
    if owners == [user] { Err(Error::LastOwner) } else { Ok(()) }
}

pub(crate) async fn account(tx: &mut Tx, name: &str, now_ms: i64) -> Result<i64> {
    if !is_name(name) {
        return Err(Error::Name(name.to_owned()));
    }
    let insert = "INSERT INTO account (name, created_at_ms) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    sql(insert).bind(name).bind(now_ms).run(tx).await?;
    sql("SELECT id FROM account WHERE name = $1").bind(name).one(tx).await?.get("id")
}

pub(crate) async fn set_role(tx: &mut Tx, project: i64, user: i64, role: Role) -> Result<()> {
    let upsert = "INSERT INTO member (project_id, account_id, role) VALUES ($1, $2, $3)
         ON CONFLICT (project_id, account_id) DO UPDATE SET role = excluded.role";
    sql(upsert).bind(project).bind(user).bind(role.as_str()).run(tx).await?;
    Ok(())
}
