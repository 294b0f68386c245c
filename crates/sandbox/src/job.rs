//! A command, with what only the fence itself may ask for.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use crate::session_folders::Entered;
use toolhost_contract::workspace::Command;

/// What runs in the fence: a caller's command, or one of the fence's own.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) command: Command,
    /// It looks for what git obeys: it also reads the repositories around the workspace, and prints paths as they are.
    pub(crate) finds_git: bool,
    /// Files outside that it reads besides.
    pub(crate) also_reads: Vec<PathBuf>,
    /// The private folders of its session.
    pub(crate) folders: Option<Arc<Entered>>,
}

impl From<Command> for Job {
    fn from(command: Command) -> Self {
        Self { command, finds_git: false, also_reads: Vec::new(), folders: None }
    }
}

impl Deref for Job {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.command
    }
}
