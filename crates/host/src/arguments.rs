//! The arguments of one call, with its shell command analyzed: once, off the async workers, for everything that looks at it.

use std::sync::Arc;

use serde_json::Value;
use toolhost_contract::ToolError;
use toolhost_contract::shell::Analyzed;
use toolhost_contract::workspace::{Executor, WsPath};

use crate::kinds::ArgumentKinds;
use crate::policy::{Looked, analyzed, with_input};
use crate::registry::Registered;

/// Analyzes shell commands. It is handed to the gate, which calls it once for each call that has a command.
pub type Analyzer = Arc<dyn Fn(&str) -> Analyzed + Send + Sync>;

/// The arguments of a call and, if its tool takes a shell command, what that command runs.
#[derive(Clone)]
pub(crate) struct Arguments {
    pub(crate) json: Value,
    command: Option<Analyzed>,
    /// The same with the places that its paths lead to.
    places: Option<Value>,
}

impl Arguments {
    /// Analyzes the command on a thread that may block.
    pub(crate) async fn analyze(analyzer: &Analyzer, kinds: &ArgumentKinds, json: Value) -> Result<Self, ToolError> {
        let Some(text) = kinds.command_in(&json).map(str::to_owned) else {
            return Ok(Self { json, command: None, places: None });
        };
        let analyzer = Arc::clone(analyzer);
        let command = tokio::task::spawn_blocking(move || analyzer(&text)).await.map_err(ToolError::internal)?;
        let command = with_input(command, kinds, &json);
        Ok(Self { json, command: Some(command), places: None })
    }

    /// Of a call that is explained and not made, with where its paths lead in a workspace.
    pub(crate) async fn explained(kinds: &ArgumentKinds, json: Value, workspace: Option<&dyn Executor>) -> Self {
        let mut arguments = Self { command: analyzed(kinds, &json), json, places: None };
        if let Some(workspace) = workspace {
            arguments.follow(kinds, workspace).await;
        }
        arguments
    }

    /// What its shell command runs.
    pub(crate) fn command(&self) -> Option<&Analyzed> {
        self.command.as_ref()
    }

    /// Looks up where its paths lead, for rules that speak of them.
    pub(crate) async fn follow(&mut self, kinds: &ArgumentKinds, executor: &dyn Executor) {
        if self.places.is_some() || !kinds.paths().any(|name| self.json.get(name).is_some()) {
            return;
        }
        let mut places = self.json.clone();
        for name in kinds.paths() {
            let paths: Vec<&mut Value> = match places.get_mut(name) {
                Some(Value::Array(items)) => items.iter_mut().collect(),
                Some(one) => vec![one],
                None => Vec::new(),
            };
            for path in paths {
                let Some(parsed) = path.as_str().and_then(|text| WsPath::parse(text).ok()) else { continue };
                // What leads nowhere, or out, the tool says itself.
                if let Ok(spot) = executor.spot(&parsed, true).await {
                    *path = Value::from(spot.path.as_str());
                }
            }
        }
        self.places = Some(places);
    }

    pub(crate) fn looked<'a>(&'a self, tool: &'a Registered) -> Looked<'a> {
        Looked::new(&tool.info.name, &tool.kinds, &self.json, self.command()).leading_to(self.places.as_ref())
    }
}
