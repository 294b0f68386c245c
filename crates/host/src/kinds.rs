//! How rules look at the arguments of a tool: as paths, as a command, or as any text.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolhost_contract::workspace::WsPath;
use toolhost_contract::{ErrorKind, Facts, ToolError, visible_line};

/// Which arguments of a tool are more to a rule than text, as the tool's facts say it. An ask keeps them, so that it can be
/// answered where its tool is not at hand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentKinds {
    /// Paths in the workspace: a rule sees them as the tool does, `./a//b` as `a/b`.
    paths: Vec<String>,
    /// The shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// What that command reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<String>,
}

impl ArgumentKinds {
    pub(crate) fn of(facts: &Facts) -> Self {
        Self {
            paths: facts.paths.iter().map(|name| (*name).to_owned()).collect(),
            command: facts.command.map(|command| command.name.to_owned()),
            input: facts.command.map(|command| command.input.to_owned()),
        }
    }

    pub(crate) fn is_path(&self, argument: &str) -> bool {
        self.paths.iter().any(|name| name == argument)
    }

    pub(crate) fn is_command(&self, argument: &str) -> bool {
        self.command.as_deref() == Some(argument)
    }

    /// Whether the tool takes a path under another name and gives it a new one.
    pub(crate) fn is_move(&self) -> bool {
        MOVED.iter().all(|name| self.is_path(name))
    }

    /// Whether the tool takes one path or a list of paths for the same.
    pub(crate) fn takes_several(&self) -> bool {
        ONE_OR_SEVERAL.iter().all(|name| self.is_path(name))
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Whether each path stays in the workspace as it is written. Where links lead, the tool says itself.
    ///
    /// # Errors
    /// What is wrong with the first that does not.
    pub(crate) fn check_paths(&self, arguments: &Value) -> Result<(), ToolError> {
        for name in self.paths() {
            let one_or_several =
                arguments.get(name).map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
            for path in one_or_several.unwrap_or_default().iter().filter_map(Value::as_str) {
                WsPath::parse(path).map_err(|error| {
                    let message = format!("`{}` cannot be a path in the workspace: {error}", visible_line(name));
                    ToolError::new(ErrorKind::Validation, message)
                })?;
            }
        }
        Ok(())
    }

    /// The arguments that a person must have seen to know what runs.
    pub(crate) fn telling(&self) -> impl Iterator<Item = &str> {
        self.paths().chain(self.command.as_deref()).chain(self.input.as_deref())
    }

    /// The shell command of a call.
    pub(crate) fn command_in<'a>(&self, arguments: &'a Value) -> Option<&'a str> {
        arguments.get(self.command.as_deref()?)?.as_str()
    }

    /// Whether the command of a call has something to read.
    pub(crate) fn has_input(&self, arguments: &Value) -> bool {
        let input = self.input.as_deref().and_then(|name| arguments.get(name)?.as_str());
        input.is_some_and(|input| !input.is_empty())
    }
}

/// The two paths of a tool that moves a file.
pub(crate) const MOVED: [&str; 2] = ["from", "to"];
/// The arguments of a tool that takes one path or several.
pub(crate) const ONE_OR_SEVERAL: [&str; 2] = ["path", "paths"];
