//! The arguments of one call, with its shell command analyzed: once, off the async workers, for everything that looks at it.

use std::sync::Arc;

use serde_json::Value;
use toolhost_contract::ToolError;
use toolhost_sandbox::Analyzed;

use crate::policy::{Looked, command_of};

/// Analyzes shell commands. It is handed to the gate, which calls it once for each call that has a command.
pub type Analyzer = Arc<dyn Fn(&str) -> Analyzed + Send + Sync>;

/// The arguments of a call and, if its tool takes a shell command, what that command runs.
#[derive(Clone)]
pub(crate) struct Arguments {
    pub(crate) json: Value,
    command: Option<Analyzed>,
}

impl Arguments {
    /// Analyzes the command on a thread that may block.
    pub(crate) async fn analyze(analyzer: &Analyzer, tool: &str, json: Value) -> Result<Self, ToolError> {
        let Some(text) = command_of(tool, &json).map(str::to_owned) else { return Ok(Self { json, command: None }) };
        let analyzer = Arc::clone(analyzer);
        let command = tokio::task::spawn_blocking(move || analyzer(&text)).await.map_err(ToolError::internal)?;
        Ok(Self { json, command: Some(command) })
    }

    /// What its shell command runs.
    pub(crate) fn command(&self) -> Option<&Analyzed> {
        self.command.as_ref()
    }

    pub(crate) fn looked<'a>(&'a self, tool: &'a str) -> Looked<'a> {
        Looked::new(tool, &self.json, self.command())
    }
}
