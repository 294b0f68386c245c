//! Toolhost's tools for agents of adk-rust: every tool of a profile as an [`adk_core::Tool`].
//!
//! A door like the others: each call goes through [`Gate::call`] as a model's, so policy, people, limits, the fence and the
//! audit hold for an agent of adk-rust as for any other. It refuses to know what the tools do, which model calls them, and
//! how an agent is run. Start with [`Toolset::new`].

use std::fmt;
use std::sync::Arc;

use adk_core::{ReadonlyContext, Tool, ToolContext};
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{Call, Caller, CallerKind, IdSource, Progress, ProgressSink, RandomIds, Scope};
use toolhost_host::{Gate, Hooks, Names};

/// Where these calls come from, for the audit.
const DOOR: &str = "adk";
/// Under which label progress is told.
const PROGRESS_STREAM: &str = "progress";
/// Progress notes that may wait for a slow agent; further ones are dropped.
const NOTES_MAX: usize = 16;

/// The tools of one profile, in the host's order.
#[derive(Clone)]
pub struct Toolset {
    tools: Vec<Arc<dyn Tool>>,
}

/// What every tool of a set has in common.
struct Shared {
    gate: Arc<Gate>,
    ids: Arc<dyn IdSource>,
    scope: Scope,
    caller: Caller,
    answers: Answers,
}

/// The form of what a call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// `{ok, data, error, meta}`.
    Outcomes,
    /// `{output, error?, metadata?}`, as Bonsai's tools answer.
    ToolResults,
}

/// One tool.
struct Hosted {
    shared: Arc<Shared>,
    /// As model APIs take it: `file_read`.
    wire_name: String,
    description: String,
    parameters: Value,
    reads: bool,
}

impl Toolset {
    /// The tools of `caller.profile`, to be called in the name of `scope`. Whatever `caller.kind` says, the caller is a
    /// model, and tools that only people may run are left out. Where `scope` names no session, calls belong to the
    /// session of the agent that makes them.
    ///
    /// Fails where there is no such profile.
    pub fn new(gate: &Arc<Gate>, scope: Scope, caller: Caller) -> toolhost_host::Result<Self> {
        Self::with_ids(gate, scope, caller, Arc::new(RandomIds))
    }

    /// As [`Toolset::new`], with tools that return a `ToolResult` instead of the outcome.
    pub fn of_tool_results(gate: &Arc<Gate>, scope: Scope, caller: Caller) -> toolhost_host::Result<Self> {
        Self::make(gate, scope, caller, Arc::new(RandomIds), Answers::ToolResults)
    }

    /// As [`Toolset::new`], with the source of the calls' ids.
    pub fn with_ids(
        gate: &Arc<Gate>,
        scope: Scope,
        caller: Caller,
        ids: Arc<dyn IdSource>,
    ) -> toolhost_host::Result<Self> {
        Self::make(gate, scope, caller, ids, Answers::Outcomes)
    }

    fn make(
        gate: &Arc<Gate>,
        scope: Scope,
        caller: Caller,
        ids: Arc<dyn IdSource>,
        answers: Answers,
    ) -> toolhost_host::Result<Self> {
        let caller = Caller { kind: CallerKind::Model, door: DOOR.into(), ..caller };
        let shared = Arc::new(Shared { gate: Arc::clone(gate), ids, scope, caller, answers });
        let profile = gate.profile(&shared.caller.profile)?;
        let tools = gate.tools_for_models(profile);
        let tools = tools.map(|tool| -> Arc<dyn Tool> {
            Arc::new(Hosted {
                shared: Arc::clone(&shared),
                wire_name: tool.wire_name.clone(),
                description: tool.info.description.clone(),
                parameters: tool.info.input_schema.clone(),
                reads: tool.info.facts.only_reads(),
            })
        });
        Ok(Self { tools: tools.collect() })
    }

    /// The tools, for an agent's builder.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }
}

#[async_trait]
impl adk_core::Toolset for Toolset {
    fn name(&self) -> &str {
        "toolhost"
    }

    async fn tools(&self, _: Arc<dyn ReadonlyContext>) -> adk_core::Result<Vec<Arc<dyn Tool>>> {
        Ok(self.tools.clone())
    }
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools.iter().map(|tool| tool.name())).finish()
    }
}

#[async_trait]
impl Tool for Hosted {
    fn name(&self) -> &str {
        &self.wire_name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters_schema(&self) -> Option<Value> {
        Some(self.parameters.clone())
    }

    fn is_read_only(&self) -> bool {
        self.reads
    }

    fn is_concurrency_safe(&self) -> bool {
        self.reads
    }

    /// The outcome, `{ok, data, error, meta}` or as a `ToolResult`, of successes and failures alike: a model goes on from either. Dropping the
    /// future cancels the call, which still ends with its row in the audit.
    async fn execute(&self, ctx: Arc<dyn ToolContext>, args: Value) -> adk_core::Result<Value> {
        let Shared { gate, ids, scope, caller, answers } = &*self.shared;
        let mut scope = scope.clone();
        scope.session_id.get_or_insert_with(|| ctx.session_id().to_owned());
        let call =
            Call { id: ids.call_id(), tool: self.wire_name.clone(), arguments: args, scope, caller: caller.clone() };
        let cancel = CancellationToken::new();
        let _gone = cancel.clone().drop_guard();
        let (queue, mut notes) = mpsc::channel(NOTES_MAX);
        let progress = Arc::new(Notes { queue });
        let running = gate.call(call, Hooks { cancel, progress, names: Names::Wire, ..Hooks::default() });
        tokio::pin!(running);
        let outcome = loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                Some(note) = notes.recv() => ctx.emit_progress(PROGRESS_STREAM, &note.message).await,
            }
        };
        let answer = match answers {
            Answers::Outcomes => serde_json::to_value(&outcome),
            Answers::ToolResults => serde_json::to_value(outcome.tool_result()),
        };
        answer.map_err(|error| {
            adk_core::AdkError::tool(format!("the outcome of call {} is not JSON: {error}", outcome.meta.call_id))
        })
    }
}

/// Passes a call's progress on, in order.
struct Notes {
    queue: mpsc::Sender<Progress>,
}

impl ProgressSink for Notes {
    fn report(&self, progress: Progress) {
        // An agent that does not listen gets fewer notes.
        let _ = self.queue.try_send(progress);
    }
}
