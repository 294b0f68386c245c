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
    /// Whether they may answer what people are asked.
    pub approver: bool,
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

    /// Whether members of this role may answer what people are asked, where nobody has said otherwise.
    #[must_use]
    pub fn approves(self) -> bool {
        self <= Self::Editor
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
    ///
    /// # Errors
    /// If it is no name, or differs from a known one in large and small letters alone: people would take one for the other.
    pub async fn add_user(&self, name: &str) -> Result<i64> {
        if !is_name(name) {
            return Err(Error::Name(name.to_owned()));
        }
        let mut tx = self.db.write().await?;
        let names = sql("SELECT name FROM account WHERE lower(name) = lower($1)").bind(name).all(&mut tx).await?;
        let names: Vec<String> = names.iter().map(|row| row.get("name")).collect::<Result<_>>()?;
        if let (false, Some(known)) = (names.iter().any(|known| known == name), names.first()) {
            return Err(Error::NameLike { name: name.to_owned(), known: known.clone() });
        }
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

    /// Whether the user may answer what people are asked in the project: a right of its own beside the role. `false` for a stranger.
    pub async fn is_approver(&self, project: i64, user: i64) -> Result<bool> {
        let select = "SELECT role, approver FROM member WHERE project_id = $1 AND account_id = $2";
        let rows = sql(select).bind(project).bind(user).read(&self.db).await?;
        let Some(row) = rows.first() else { return Ok(false) };
        let role: String = row.get("role")?;
        Ok(Role::parse(&role).is_some_and(|role| row.get("approver").is_ok_and(|said| approves(role, said))))
    }

    pub async fn members(&self, project: i64) -> Result<Vec<Member>> {
        let select =
            "SELECT a.id AS id, a.name AS name, m.role AS role, m.approver AS approver FROM member m JOIN account a ON a.id = m.account_id
             WHERE m.project_id = $1 ORDER BY a.name";
        let mut members = Vec::new();
        for row in sql(select).bind(project).read(&self.db).await? {
            let role: String = row.get("role")?;
            let Some(role) = Role::parse(&role) else { continue };
            let approver = approves(role, row.get("approver")?);
            members.push(Member { id: row.get("id")?, name: row.get("name")?, role, approver });
        }
        Ok(members)
    }

    /// Whether another owner than this one has to do with the user: in a project of which `owner` is no owner.
    pub async fn is_elsewhere(&self, user: i64, owner: i64) -> Result<bool> {
        let select = "SELECT m.project_id AS id FROM member m WHERE m.account_id = $1 AND NOT EXISTS (
             SELECT 1 FROM member o WHERE o.project_id = m.project_id AND o.account_id = $2 AND o.role = 'owner') LIMIT 1";
        Ok(!sql(select).bind(user).bind(owner).read(&self.db).await?.is_empty())
    }

    /// Makes the user a member, or changes what they are. The last owner stays one.
    pub async fn set_role(&self, project: i64, user: i64, role: Role) -> Result<()> {
        self.set_member(project, user, role, None).await.map(|_| ())
    }

    /// As [`People::set_role`], and gives the right to answer what people are asked, or takes it; `None` leaves it unchanged. Says whether
    /// they have it now.
    pub async fn set_member(&self, project: i64, user: i64, role: Role, approver: Option<bool>) -> Result<bool> {
        let mut tx = self.db.write().await?;
        tx.lock_project(project).await?;
        if role != Role::Owner {
            another_owner(&mut tx, project, user).await?;
        }
        set_role(&mut tx, project, user, role).await?;
        if let Some(approver) = approver {
            let update = sql("UPDATE member SET approver = $1 WHERE project_id = $2 AND account_id = $3");
            update.bind(i64::from(approver)).bind(project).bind(user).run(&mut tx).await?;
        }
        let select = sql("SELECT approver FROM member WHERE project_id = $1 AND account_id = $2");
        let said = select.bind(project).bind(user).one(&mut tx).await?.get("approver")?;
        tx.commit().await?;
        Ok(approves(role, said))
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

fn approves(role: Role, said: Option<i64>) -> bool {
    said.map_or(role.approves(), |said| said == 1)
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
