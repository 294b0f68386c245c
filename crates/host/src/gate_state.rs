//! State and helpers that the gate and `asking` share. `asking/hearing.rs` and `asking/proposal.rs` extend it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use toolhost_contract::workspace::Workspace;
use toolhost_contract::{
    Background, Call, CallerKind, Catalog, Ctx, ErrorKind, Grants, OUTPUT_TAIL_BYTES, People, Progress, ProgressSink,
    Redactor, ToolError, ToolSummary,
};

use crate::arguments::Arguments;
use crate::config::GateConfig;
use crate::hooks::{Hooks, Pace};
use crate::limits::Limiter;
use crate::names::Names;
use crate::profile::Profile;
use crate::quota::QuotaKeeper;
use crate::registry::{Registered, nearest_tools};

pub(crate) struct GateState {
    pub(crate) config: GateConfig,
    pub(crate) limiter: Limiter,
    pub(crate) quotas: QuotaKeeper,
}

/// A call's slot among those that run at once.
pub(crate) enum RunSlot {
    /// Released on drop.
    Taken { _slot: OwnedSemaphorePermit },
    /// A tool that waits for a person needs no slot.
    NeedsNone,
}

impl GateState {
    /// The tools a profile has, in the registry's order.
    pub(crate) fn tools_of<'a>(&'a self, profile: &'a Profile) -> impl Iterator<Item = &'a Registered> {
        self.config.registry.tools().iter().filter(|tool| profile.has(&tool.info.name))
    }

    /// What the shell command of a call runs, for policy, preview and tool alike; and where its paths lead, if that may matter.
    pub(crate) async fn analyze(
        &self,
        tool: &Registered,
        profile: &Profile,
        arguments: Value,
        hooks: &Hooks,
    ) -> Result<Arguments, ToolError> {
        let deadline = Duration::from_millis(self.config.limits.call_timeout_ms);
        let analyzed = async {
            let mut analyzed = Arguments::analyze(&self.config.analyzer, &tool.kinds, arguments).await?;
            // Paths are resolved only if a rule may read them; a permit by rule is looked for only after a rule asks.
            if profile.looks_at_paths(&tool.info.name) {
                analyzed.follow(&tool.kinds, &*self.config.executor).await;
            }
            Ok(analyzed)
        };
        tokio::select! {
            biased;
            analyzed = analyzed => analyzed,
            () = tokio::time::sleep(deadline) => Err(timed_out(deadline)),
            () = hooks.cancel.cancelled() => Err(cancelled()),
        }
    }

    /// A place for the call, if there is one at once.
    pub(crate) fn free_run_slot(&self, tool: &Registered, hooks: &Hooks) -> Option<RunSlot> {
        if tool.waits() {
            return Some(RunSlot::NeedsNone);
        }
        let ready = hooks.pace_of(tool).is_none_or(Pace::is_ready);
        ready.then(|| self.limiter.free_slot()).flatten().map(|slot| RunSlot::Taken { _slot: slot })
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// The call is cancelled meanwhile.
    pub(crate) async fn run_slot(&self, tool: &Registered, hooks: &Hooks) -> Result<RunSlot, ToolError> {
        if let Some(place) = self.free_run_slot(tool, hooks) {
            return Ok(place);
        }
        let slot = async {
            if let Some(pace) = hooks.pace_of(tool) {
                pace.ready().await;
            }
            self.limiter.slot().await
        };
        tokio::select! {
            slot = slot => Ok(RunSlot::Taken { _slot: slot? }),
            () = hooks.cancel.cancelled() => Err(cancelled()),
        }
    }

    /// What a tool is handed, to run or to say what it would do.
    #[expect(clippy::too_many_arguments, reason = "these are the parts of one value")]
    pub(crate) fn ctx<'a>(
        &'a self,
        call: &'a Call,
        workspace: &'a Workspace,
        catalog: &'a dyn Catalog,
        people: &'a dyn People,
        background: &'a dyn Background,
        profile: &Profile,
        hooks: &Hooks,
        cancel: CancellationToken,
    ) -> Ctx<'a> {
        Ctx {
            call,
            workspace,
            catalog,
            people,
            background,
            session: hooks.session.as_ref().map(|session| session.for_caller(&caller_of(call))),
            approved: None,
            command: None,
            grants: Grants {
                command_timeout_ms_max: profile.limits.command_timeout_ms,
                background_timeout_ms_max: self.config.limits.background_timeout_ms,
            },
            clock: &*self.config.clock,
            cancel,
            progress: Arc::new(Redacted {
                sink: Arc::clone(&hooks.progress),
                redactor: Arc::clone(&self.config.redactor),
            }),
        }
    }
}

/// What a tool says of its progress, without secrets.
struct Redacted {
    sink: Arc<dyn ProgressSink>,
    redactor: Arc<Redactor>,
}

impl ProgressSink for Redacted {
    fn report(&self, mut progress: Progress) {
        self.redactor.redact(&mut progress.message);
        if let Some(output) = &mut progress.output {
            self.redactor.redact(output);
            // Only now: what is left of a secret whose beginning was cut off would not be known as one.
            let from = output.ceil_char_boundary(output.len().saturating_sub(OUTPUT_TAIL_BYTES));
            let from = if from == 0 { 0 } else { output[from..].find('\n').map_or(output.len(), |end| from + end + 1) };
            output.drain(..from);
        }
        self.sink.report(progress);
    }
}

/// The tools of one caller, for the tools that tell of them.
pub(crate) struct ProfileCatalog<'a> {
    pub(crate) state: &'a GateState,
    pub(crate) profile: &'a Profile,
    pub(crate) names: Names,
    pub(crate) kind: CallerKind,
    /// As [`Hooks::only`].
    pub(crate) only: Option<&'static [&'static str]>,
}

impl ProfileCatalog<'_> {
    fn has(&self, tool: &Registered) -> bool {
        let name = &*tool.info.name;
        let forbidden = tool.info.facts.is_for_people() && self.kind == CallerKind::Model;
        !forbidden && self.profile.has(name) && self.only.is_none_or(|only| only.contains(&name))
    }
}

impl Catalog for ProfileCatalog<'_> {
    fn tools(&self) -> Vec<ToolSummary> {
        let registry = &self.state.config.registry;
        let told = |tool: &Registered| {
            let (description, input_schema) = self.names.described(registry, tool);
            let output_schema = self.names.in_schema(registry, tool.info.output_schema.value());
            ToolSummary { description, input_schema, output_schema, ..tool.summary() }
        };
        self.state.tools_of(self.profile).filter(|tool| self.has(tool)).map(told).collect()
    }

    fn called(&self, tool: &str) -> Option<String> {
        let tool = self.state.config.registry.get(tool).filter(|tool| self.has(tool))?;
        Some(self.names.of(tool).to_owned())
    }

    fn nearest(&self, name: &str) -> Vec<String> {
        let own = self.state.tools_of(self.profile).filter(|tool| self.has(tool));
        nearest_tools(name, own).into_iter().map(|tool| tool.info.name.to_string()).collect()
    }
}

/// For whom a call is made: what commands of a session leave in `/tmp` and in their home is for no other caller.
fn caller_of(call: &Call) -> String {
    let (scope, caller) = (&call.scope, &call.caller);
    json!([scope.user_id, scope.project_id, caller.profile, caller.persona]).to_string()
}

pub(crate) fn cancelled() -> ToolError {
    ToolError::new(ErrorKind::Cancelled, "the call was cancelled")
}

pub(crate) fn timed_out(deadline: Duration) -> ToolError {
    let message = format!("the call took longer than {} ms", deadline.as_millis());
    ToolError::new(ErrorKind::Timeout, message).hint("ask for less at once")
}
