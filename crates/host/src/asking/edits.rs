//! What a person writes in place of a call's arguments, looked at while they can still correct it.

use std::sync::Arc;

use serde_json::Value;
use toolhost_contract::workspace::Executor;
use toolhost_contract::{Answer, ToolError};

use crate::profile::Profiles;
use crate::registry::Registry;
use crate::shown::Shown;

/// What edited arguments are held against while they can still be corrected. The gate holds them against the same again.
pub struct EditRules {
    pub registry: Arc<Registry>,
    pub profiles: Arc<Profiles>,
    /// Where paths lead; none without a workspace.
    pub workspace: Option<Arc<dyn Executor>>,
}

impl EditRules {
    /// Whether the tool takes what an answer writes, and no rule denies it. Other answers write nothing.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub async fn check(&self, shown: &Shown, answer: &Answer) -> Result<(), ToolError> {
        match answer {
            Answer::AllowEdited { arguments } => self.check_arguments(shown, arguments).await,
            _ => Ok(()),
        }
    }

    async fn check_arguments(&self, shown: &Shown, arguments: &Value) -> Result<(), ToolError> {
        let Some(tool) = self.registry.get(&shown.tool) else { return Ok(()) };
        // A profile that another host has is that host's to apply.
        let Ok(profile) = self.profiles.get(&shown.profile) else { return tool.check(arguments) };
        profile.check_denied(tool, arguments.clone(), self.workspace.as_deref()).await
    }
}
