//! An MCP door: what it needs, handed in.

use std::sync::Arc;

use toolhost_contract::{IdSource, Scope};
use toolhost_host::{Gate, Names};

use super::offers::Offers;
use super::slots::Tidy;

/// Everything an MCP door needs, handed in.
pub struct Door {
    pub gate: Arc<Gate>,
    pub ids: Arc<dyn IdSource>,
    pub scope: Scope,
    /// The profile of whoever is on the other side, set by the operator.
    pub profile: String,
    pub persona: String,
    /// The user in whose name the agent works; who answers in the client is taken for them.
    pub user: String,
    /// Whether people may be asked in the client, where it can: then whoever speaks for the client decides.
    pub ask_in_client: bool,
    /// Calls of the client that are served at once; further ones wait.
    pub calls_max: usize,
    /// What is done when the client has asked nothing for a moment.
    pub when_idle: Arc<dyn Tidy>,
    /// Which tools the client is told of.
    pub listed: Listed,
    /// The tools that most work is done with, by canonical name.
    pub core: &'static [&'static str],
    /// What the client is offered besides tools.
    pub offers: &'static Offers,
    /// Which names the client sees.
    pub names: Names,
    /// Whether lists of tools have their output schemas: two thirds of their text.
    pub output_schemas: bool,
    /// What answers hold; `None`: as the client needs it.
    pub results: Option<Results>,
    pub instructions: String,
    pub version: String,
}

/// Which tools a list of tools has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// All of the profile.
    All,
    /// The core, one that finds tools, and those that call what it has found.
    Core,
}

/// The beginning of the name of clients that load tools as a model needs them, and take hints which to load.
const LOADS_TOOLS: &str = "claude-code";

/// Whether a client of this name is told which tools to load.
pub(crate) fn takes_hints(client: &str) -> bool {
    client.starts_with(LOADS_TOOLS)
}

/// What the answer to a call holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// The text, which is complete on its own.
    Text,
    /// The outcome as JSON, which is complete on its own.
    Structured,
    Both,
}

/// Beginnings of the names of clients that show a model the structure of an answer where it has one, and never its text: the model then reads
/// escaped JSON of three times the length.
const SHOW_STRUCTURE: [&str; 5] = ["claude-code", "codex", "Visual Studio Code", "vscode", "pydantic-ai"];

impl Results {
    /// What a client of this name needs.
    pub(crate) fn needed_by(client: &str) -> Self {
        let shows_structure = SHOW_STRUCTURE.iter().any(|name| client.starts_with(name));
        if shows_structure { Self::Text } else { Self::Both }
    }
}
