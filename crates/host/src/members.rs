//! Who belongs to which project, and what they may do there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use toolhost_contract::BoxFuture;
use toolhost_contract::{Callers, Clock, ErrorKind, Scope, ToolError, ToolInfo};
use toolhost_store::{People, Role};

/// How long a role that was read is believed. Who was removed may still call for so long.
const ROLE_TTL: Duration = Duration::from_secs(1);
/// Roles remembered at once.
const ROLES_MAX: usize = 10_000;

/// Step 3 of the gate. A project that does not exist and one of somebody else give the same answer.
pub trait Membership: Send + Sync {
    fn authorize<'a>(&'a self, scope: &'a Scope, tool: &'a ToolInfo) -> BoxFuture<'a, Result<(), ToolError>>;
}

/// What a user was in a project, and until when that is believed.
type Known = (Option<Role>, Duration);

/// The memberships of the store.
pub struct Members {
    people: People,
    clock: Arc<dyn Clock>,
    /// By user and project.
    known: Mutex<HashMap<(i64, i64), Known>>,
}

impl Members {
    pub fn new(people: People, clock: Arc<dyn Clock>) -> Self {
        Self { people, clock, known: Mutex::default() }
    }

    async fn role(&self, user: i64, project: i64) -> Result<Option<Role>, ToolError> {
        let now = self.clock.monotonic();
        if let Some((role, until)) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&(user, project))
            && *until > now
        {
            return Ok(*role);
        }
        let role = self.people.role(project, user).await.map_err(ToolError::from)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ROLES_MAX {
            known.clear();
        }
        known.insert((user, project), (role, now + ROLE_TTL));
        Ok(role)
    }
}

impl Membership for Members {
    fn authorize<'a>(&'a self, scope: &'a Scope, tool: &'a ToolInfo) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            match self.role(scope.user_id, scope.project_id).await? {
                None => {
                    let message = format!("user {} has no project {}", scope.user_id, scope.project_id);
                    Err(ToolError::new(ErrorKind::Permission, message))
                }
                Some(Role::Viewer) if tool.facts.effect.may_change() => {
                    let message = "as a viewer of this project you may read, and this changes something";
                    Err(ToolError::new(ErrorKind::Permission, message)
                        .hint("an owner of the project can make you an editor"))
                }
                Some(role) if tool.facts.callers == Callers::Owners && role != Role::Owner => {
                    let message = format!("only an owner of this project may run `{}`", tool.name);
                    Err(ToolError::new(ErrorKind::Permission, message).hint("ask an owner to do it"))
                }
                Some(_) => Ok(()),
            }
        })
    }
}
