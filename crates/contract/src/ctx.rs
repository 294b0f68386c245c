//! What a running tool is handed.

use crate::shell::Analyzed;
use crate::workspace::{Watch, Workspace};
use tokio_util::sync::CancellationToken;

use crate::background::Background;
use crate::call::Call;
use crate::clock::Clock;
use crate::example::Example;
use crate::facts::Effect;
use crate::people::People;
use crate::session::Session;

/// Everything a tool may use besides its own fields.
pub struct Ctx<'a> {
    pub call: &'a Call,
    /// The workspace as the caller's profile may see it.
    pub workspace: &'a Workspace,
    pub catalog: &'a dyn Catalog,
    pub people: &'a dyn People,
    pub background: &'a dyn Background,
    /// The caller's session, for a command that keeps its `/tmp` and home; `None`: the caller has none.
    pub session: Option<Session>,
    pub grants: Grants,
    /// What the effect rested on when a person allowed this call ([`Preview::rests_on`](crate::Preview)).
    pub approved: Option<serde_json::Value>,
    /// What the call's shell command runs, if it has one. A tool never analyzes a command itself: the host does, once a call.
    pub command: Option<&'a Analyzed>,
    pub clock: &'a dyn Clock,
    /// Cancelled when the caller no longer wants the answer.
    pub cancel: CancellationToken,
    pub progress: std::sync::Arc<dyn ProgressSink>,
}

/// What the profile grants beyond its list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grants {
    /// Longest time limit a command may ask for, in milliseconds.
    pub command_timeout_ms_max: u64,
    /// The same for a command in the background.
    pub background_timeout_ms_max: u64,
}

/// Where a long call stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Grows with every report; seconds for commands.
    pub done: f64,
    pub total: Option<f64>,
    pub message: String,
}

pub trait ProgressSink: Send + Sync {
    fn report(&self, progress: Progress);
}

/// Nobody listens.
#[derive(Debug, Default)]
pub struct Silent;

impl ProgressSink for Silent {
    fn report(&self, _: Progress) {}
}

/// The tools the caller's profile has, for `tool.list`, `tool.describe` and `tool.search`.
pub trait Catalog: Send + Sync {
    /// In the registry's order.
    fn tools(&self) -> Vec<ToolSummary>;

    /// How the caller calls a tool, by its canonical name; `None` if it does not have it.
    fn called(&self, tool: &str) -> Option<String> {
        self.tools().into_iter().map(|summary| summary.name).find(|name| name == tool)
    }

    /// Canonical names of the caller's tools that this name may stand for, best first.
    fn nearest(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }
}

/// A tool as a caller sees it.
#[derive(Debug, Clone)]
pub struct ToolSummary {
    pub name: String,
    pub wire_name: String,
    pub aliases: Vec<String>,
    /// What other hosts call tools that do the same.
    pub called_elsewhere: &'static [&'static str],
    pub title: String,
    pub description: String,
    pub effect: Effect,
    pub input_schema: serde_json::Value,
    pub output_schema: serde_json::Value,
    pub examples: Vec<Example>,
}

impl Ctx<'_> {
    /// Follows a command: cancelled with the call, its progress told to the caller.
    pub fn watch(&self) -> Watch {
        let sink = std::sync::Arc::clone(&self.progress);
        let tell = move |p: crate::workspace::Progress| {
            let seconds = p.elapsed.as_secs_f64();
            let message = format!("running for {seconds:.0} s, {} bytes of output", p.output_bytes);
            sink.report(Progress { done: seconds, total: None, message });
        };
        Watch { cancel: self.cancel.clone(), progress: Some(std::sync::Arc::new(tell)), output: None }
    }
}
