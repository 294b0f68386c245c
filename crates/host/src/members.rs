//! Who belongs to which project.

use toolhost_contract::{Effect, ErrorKind, Scope, ToolError};

/// Step 3 of the gate. A project that does not exist and one of somebody else give the same answer.
pub trait Membership: Send + Sync {
    fn authorize(&self, scope: &Scope, effect: Effect) -> Result<(), ToolError>;
}

/// One person, one project: the machine's user in the project they opened.
#[derive(Debug, Clone, Copy)]
pub struct LocalOwner {
    pub user_id: i64,
    pub project_id: i64,
}

impl Membership for LocalOwner {
    fn authorize(&self, scope: &Scope, _: Effect) -> Result<(), ToolError> {
        if scope.user_id == self.user_id && scope.project_id == self.project_id {
            return Ok(());
        }
        let message = format!("user {} has no project {}", scope.user_id, scope.project_id);
        Err(ToolError::new(ErrorKind::Permission, message))
    }
}
