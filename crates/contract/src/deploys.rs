//! Deploys of a workspace, as far as the host records and decides them.

use serde_json::Value;

use crate::{BoxFuture, CallId, ToolError};

/// How the audit names what was recovered of a deploy that a crash had interrupted.
pub const RECOVERY: &str = "deploy.recover";

/// Whether what a call had begun was done when its host died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// Everything is as it was before.
    No,
    /// Everything is as the call was to leave it.
    Yes,
    /// Something else has changed it since, or it cannot be compared.
    Unknown,
}

/// The deploys of one workspace.
pub trait Deploys: Send + Sync {
    /// What a crash had left of deploys and has been recovered since this was last asked: a JSON object for each, for the
    /// audit.
    fn take_recovered(&self) -> Vec<Value>;

    /// Whether a call whose host has died has deployed the workspace. What it had begun is finished or discarded first, as
    /// the next deploy would.
    fn made<'a>(&'a self, call: &'a CallId) -> BoxFuture<'a, Result<Made, ToolError>>;
}
