//! The one function every call passes.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, oneshot};
use tokio_util::task::TaskTracker;
use toolhost_contract::workspace::{FenceReport, Tier, Workspace};
use toolhost_contract::{
    Answer, Approval, BoxFuture, Call, CallId, CallerKind, Effect, ErrorCode, ErrorKind, Made, Outcome, Preview, Scope,
    Success, ToolError, Trace,
};
use toolhost_store::{Ask, AskChange, Permit};

use crate::arguments::Arguments;
use crate::asking::edits::EditRules;
use crate::asking::{AskOutcome, AskedCall, Case};
use crate::background::{CallBackground, Job, Jobs, without_output};
use crate::config::GateConfig;
use crate::digest::digest;
use crate::error::Result as ConfigResult;
use crate::gate_state::{GateState, ProfileCatalog, RunSlot, cancelled, timed_out};
use crate::hooks::Hooks;
use crate::limits::Limiter;
use crate::names::Told;
use crate::observe::{EndedCall, PersonAnswer};
use crate::people::{CallPeople, RunStoredCall};
use crate::policy::{Decide, Verdict};
use crate::profile::{Profile, Profiles};
use crate::queue::answer_of;
use crate::queue::{Queue, rule_id};
use crate::quota::QuotaKeeper;
use crate::record::{Record, for_asker, is_pending, keepable};
use crate::registry::{Registered, Registry};
use crate::shown::Shown;
use crate::undo::{Logged, made};
use crate::unstopped::Unstopped;

/// How long a tool may take to end after its deadline or cancellation, before it is dropped.
const END_GRACE: Duration = Duration::from_secs(5);

/// How long the end of a host waits for calls to end.
const CLOSING_MAX: Duration = Duration::from_secs(30);

/// What a call may take besides its command.
const COMMAND_MARGIN_MS: u64 = 10_000;
/// Calls that may be under way or waiting; further ones are refused.
const CALLS_OPEN_MAX: usize = 1024;

/// The gate of one host.
pub struct Gate {
    pub(crate) state: GateState,
    /// The fence of commands here as one word, where there is one.
    fence: OnceCell<&'static str>,
    /// Calls under way.
    calls: TaskTracker,
    /// Those that have answered before their end.
    jobs: Jobs,
    /// This gate, for a call that goes on in a task of its own.
    own: Weak<Self>,
}

/// How much a gate has in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateLoad {
    /// Calls that have not ended.
    pub open: usize,
    /// Those of them that hold a place among the calls that run at once.
    pub running: usize,
}

/// What a call has to do with the background.
struct GoesOn {
    /// Takes the answer of a call that gives it before its end.
    first: Option<oneshot::Sender<Outcome>>,
    /// The call, once it has answered so.
    job: Option<Arc<Job>>,
}

/// What came of running a tool.
struct Ran {
    result: Result<Success, ToolError>,
    /// The ask whose answer it used, and that answer.
    used: Option<(i64, PersonAnswer)>,
    /// How long it has waited for a person while it ran.
    waited: Duration,
    /// The call, where it has answered before this end.
    job: Option<Arc<Job>>,
}

/// What is known of a call that the gate itself has failed at.
struct Failed {
    id: CallId,
    tool: String,
    scope: Scope,
}

impl Gate {
    pub fn new(config: GateConfig) -> Arc<Self> {
        let limiter = Limiter::new(config.limits);
        let quotas = QuotaKeeper::new(config.quotas.clone(), Arc::clone(&config.clock));
        Arc::new_cyclic(|own| Self {
            state: GateState { config, limiter, quotas },
            fence: OnceCell::new(),
            calls: TaskTracker::new(),
            jobs: Jobs::default(),
            own: own.clone(),
        })
    }

    pub fn registry(&self) -> &Registry {
        &self.state.config.registry
    }

    /// What people are asked.
    pub fn queue(&self) -> &Queue {
        &self.state.config.queue
    }

    pub fn profile(&self, name: &str) -> ConfigResult<&Profile> {
        self.state.config.profiles.get(name)
    }

    pub fn profiles(&self) -> &Arc<Profiles> {
        &self.state.config.profiles
    }

    /// What a person's edit of a call is held against before it is an answer.
    pub fn edit_rules(&self) -> EditRules {
        let config = &self.state.config;
        EditRules {
            registry: Arc::clone(&config.registry),
            profiles: Arc::clone(&config.profiles),
            workspace: Some(Arc::clone(&config.executor)),
        }
    }

    /// What a call that waits for a person would do with other arguments, as the person is shown it. It asks nobody and does nothing.
    ///
    /// # Errors
    /// The tool does not take the arguments, a rule denies them, or the tool cannot say what it would do.
    pub async fn preview_edited(&self, ask: &Ask, shown: &Shown, arguments: Value) -> Result<Preview, ToolError> {
        self.edit_rules().check(shown, &Answer::AllowEdited { arguments: arguments.clone() }).await?;
        let gone = || ToolError::new(ErrorKind::NotFound, "the tool of this call is not there any more");
        let tool = self.registry().get(&ask.tool).ok_or_else(gone)?;
        let profile = self.profile(&shown.profile).map_err(|_| gone())?;
        let call: Call = serde_json::from_value(ask.call.clone()).map_err(ToolError::internal)?;
        let hooks = Hooks::default();
        let (arguments, _) = tool.fitted(tool.given(&arguments, None), self.state.config.executor.names_of_root())?;
        let arguments = self.state.analyze(tool, profile, arguments, &hooks).await?;
        let verdict = profile.decide(tool, &arguments.looked(tool));
        let case = Case { call: &call, tool, profile, verdict: &verdict, hooks: &hooks };
        let mut preview = self.state.preview(case, &arguments).await?;
        self.redact_text(&mut preview.summary);
        self.redact_text(&mut preview.detail);
        Ok(preview)
    }

    /// What would be decided of a call that is not made, and the rule that a person has granted for it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn explain(
        &self,
        project: i64,
        profile: &Profile,
        tool: &Registered,
        arguments: Value,
    ) -> Result<(Verdict, Option<Permit>), ToolError> {
        let explained = profile.explain(tool, arguments, Some(&*self.state.config.executor)).await;
        let permit = match explained.verdict.decide {
            Decide::Ask => self.queue().explain_permit(project, &profile.name, tool, &explained).await?,
            Decide::Allow | Decide::Deny => None,
        };
        Ok((explained.verdict, permit))
    }

    /// Which fence holds around commands here.
    pub async fn fence_report(&self) -> FenceReport {
        self.state.config.executor.report().await
    }

    /// The tools a profile has, in the registry's order.
    pub fn tools_of<'a>(&'a self, profile: &'a Profile) -> impl Iterator<Item = &'a Registered> {
        self.state.tools_of(profile)
    }

    /// Those of a profile that a model is told of where it is told of all: not those for people, and not the one that finds tools.
    pub fn tools_for_models<'a>(&'a self, profile: &'a Profile) -> impl Iterator<Item = &'a Registered> {
        self.tools_of(profile).filter(|tool| tool.is_told() && !tool.info.facts.is_for_people())
    }

    /// Runs one call. It never fails: each call ends in an outcome and an audit row, even when the caller has gone.
    pub async fn call(self: &Arc<Self>, call: Call, hooks: Hooks) -> Outcome {
        let gate = Arc::clone(self);
        let failed = Failed { id: call.id.clone(), tool: call.tool.clone(), scope: call.scope.clone() };
        // A task of its own: a caller that stops waiting does not stop the call halfway to its last row.
        match self.calls.spawn(async move { gate.conduct(call, hooks).await }).await {
            Ok(outcome) => outcome,
            Err(error) => self.failed(failed, error),
        }
    }

    /// The same on the task of the caller, who has to poll it all the time: between two tasks an answer that takes a fifth of a
    /// millisecond loses a part of that. A call whose future is dropped goes on in a task of its own.
    pub async fn call_here(self: &Arc<Self>, call: Call, hooks: Hooks) -> Outcome {
        let gate = Arc::clone(self);
        let failed = Failed { id: call.id.clone(), tool: call.tool.clone(), scope: call.scope.clone() };
        let conducted = async move { AssertUnwindSafe(gate.conduct(call, hooks)).catch_unwind().await };
        match Unstopped::new(&self.calls, conducted).await {
            Ok(outcome) => outcome,
            Err(panic) => self.failed(failed, format!("the gate panicked: {}", panic_text(&*panic))),
        }
    }

    /// What is answered where the gate itself has failed.
    fn failed(&self, Failed { id, tool, scope }: Failed, error: impl std::fmt::Display) -> Outcome {
        let error = error.to_string();
        tracing::error!(call = %id, %error, "the gate itself failed");
        let call = Call { id, tool, arguments: Value::Null, scope, caller: nobody() };
        let record = Record::new(&call, &self.state.config.redactor);
        self.outcome(&call, &record, Err(ToolError::internal(error)), Duration::ZERO, "")
    }

    /// How many calls are under way.
    #[must_use]
    pub fn load(&self) -> GateLoad {
        GateLoad { open: self.calls.len(), running: self.state.limiter.taken() }
    }

    /// Waits until no call is under way. Calls that begin meanwhile are waited for too.
    pub async fn settle(&self) {
        self.calls.close();
        self.calls.wait().await;
        self.calls.reopen();
    }

    /// Ends what goes on in the background, waits until no call is under way, and removes the folders of sessions: a command that is left alone when its host goes is put
    /// back by nobody. What takes longer than half a minute is left to the next host.
    pub async fn close(&self) {
        self.jobs.end_all();
        if tokio::time::timeout(CLOSING_MAX, self.settle()).await.is_err() {
            tracing::error!("calls are still under way at the end of the host");
        }
        if tokio::time::timeout(CLOSING_MAX, self.state.config.executor.close()).await.is_err() {
            tracing::error!("the folders of sessions hold so much that the next host has to remove the rest");
        }
    }

    /// Runs a call to its end, or until it answers and goes on in the background.
    async fn conduct(&self, call: Call, hooks: Hooks) -> Outcome {
        let resolved = self.registry().resolve(&call.tool);
        let may_go_on = resolved.is_some_and(|resolved| resolved.tool.info.facts.command.is_some());
        let Some(gate) = self.own.upgrade().filter(|_| may_go_on && hooks.session.is_some()) else {
            return self.conduct_whole(call, hooks, None).await;
        };
        let failed = Failed { id: call.id.clone(), tool: call.tool.clone(), scope: call.scope.clone() };
        let (first, begun) = oneshot::channel();
        let whole = self.calls.spawn(async move { gate.conduct_whole(call, hooks, Some(first)).await });
        tokio::select! {
            // Where both are there, the call has ended.
            biased;
            outcome = whole => outcome.unwrap_or_else(|error| self.failed(failed, error)),
            Ok(outcome) = begun => outcome,
        }
    }

    async fn conduct_whole(&self, call: Call, hooks: Hooks, first: Option<oneshot::Sender<Outcome>>) -> Outcome {
        let began = self.state.config.clock.monotonic();
        let mut record = Record::new(&call, &self.state.config.redactor);
        record.began = began;
        let mut goes_on = GoesOn { first, job: None };
        let tool = self.registry().get(&call.tool).map_or(&*record.tool, |tool| &*tool.info.name);
        tracing::info!(call = %call.id, tool, door = &*call.caller.door, "a call began");
        let fence = self.fence().await;
        let passed =
            AssertUnwindSafe(self.pass(&call, &hooks, fence, (&mut record, &mut goes_on))).catch_unwind().await;
        let result = passed
            .unwrap_or_else(|panic| Err(ToolError::internal(format!("the gate panicked: {}", panic_text(&*panic)))));
        let told = self.audience(&call, &hooks);
        let result = result.map(|success| told.success(success)).map_err(|error| told.error(error));
        let took = self.state.config.clock.monotonic().saturating_sub(began);
        record.times.total = took;
        let outcome = self.outcome(&call, &record, result, took, fence);
        self.observe(&call, &hooks, &record, &outcome);
        let (tool, duration_ms) = (outcome.meta.tool.as_str(), outcome.meta.duration_ms);
        let exit_code = outcome.data.get("exitCode").and_then(Value::as_i64).filter(|code| *code != 0);
        tracing::info!(call = %call.id, tool, outcome = word(&outcome), exit_code, duration_ms, "a call ended");
        if record.trace == Trace::Deploy {
            self.note_recovered(&call).await;
        }
        // Step 10, record "finished" and answer. What only read need not wait for the disk.
        let row = record.finished(&call, &outcome);
        let audit = &self.state.config.audit;
        // What a command in the background has printed is for its own session to read.
        let quiet = goes_on.job.as_ref().filter(|job| job.goes_on).map(|_| without_output(&outcome));
        let written = match record.answer.and_then(|number| for_asker(number, quiet.as_ref().unwrap_or(&outcome))) {
            Some(kept) => audit.append_with(row, kept).await,
            None if record.started => audit.append(row).await,
            None => audit.note(row).await,
        };
        if let Err(error) = written {
            tracing::error!(call = %call.id, %error, "the end of a call could not be recorded");
        }
        if let Some(job) = goes_on.job {
            job.ended(&outcome);
        }
        outcome
    }

    /// Whom a call's outcome is for.
    fn audience<'a>(&'a self, call: &Call, hooks: &Hooks) -> Told<'a> {
        let profile = self.profile(&call.caller.profile).ok();
        Told { registry: &self.state.config.registry, profile, kind: call.caller.kind, names: hooks.names }
    }

    /// Whatever looks at a deploy first recovers what a crash left of one, and that is a deed of its own.
    async fn note_recovered(&self, call: &Call) {
        let recovered = self.state.config.deploys.as_ref().map(|deploys| deploys.take_recovered()).unwrap_or_default();
        if recovered.is_empty() {
            return;
        }
        let row = Record::recovered(call, self.state.config.ids.call_id(), &recovered);
        if let Err(error) = self.state.config.audit.append(row).await {
            tracing::error!(call = %call.id, %error, ?recovered, "what was recovered of a deploy could not be recorded");
        }
    }

    /// The steps of "The life of a call" in ARCHITECTURE.md, in their order.
    async fn pass(
        &self,
        call: &Call,
        hooks: &Hooks,
        fence: &str,
        (record, goes_on): (&mut Record, &mut GoesOn),
    ) -> Result<Success, ToolError> {
        if self.calls.len() > CALLS_OPEN_MAX {
            let message = format!("more than {CALLS_OPEN_MAX} calls are under way");
            return Err(ToolError::new(ErrorKind::Limit, message).hint("wait for answers before the next call"));
        }
        // 1. Resolve
        let resolved = self.state.config.registry.resolve(&call.tool);
        let resolved = resolved.ok_or_else(|| self.audience(call, hooks).unknown(&call.tool))?;
        let tool = resolved.tool;
        record.tool = tool.info.name.to_string();
        record.effect = Some(tool.info.facts.effect);
        record.trace = tool.info.facts.trace;
        let arguments = tool.given(&call.arguments, resolved.alias);
        record.arguments =
            keepable(&arguments, &self.state.config.redactor, self.state.config.limits.audit_string_bytes);

        // 2. Profile
        let profile =
            self.profile(&call.caller.profile).map_err(|e| ToolError::new(ErrorKind::Permission, e.to_string()))?;
        if tool.info.facts.is_for_people() && call.caller.kind == CallerKind::Model {
            let message = format!("only a person may run `{}`", tool.info.name);
            return Err(ToolError::new(ErrorKind::Permission, message).hint("ask the person to do it"));
        }
        profile.admit(tool, &self.state.config.registry)?;
        if hooks.only.is_some_and(|only| !only.contains(&&*tool.info.name)) {
            let message = format!("`{}` is not among the tools of this session", tool.info.name);
            let error = ToolError::new(ErrorKind::Permission, message).code(ErrorCode::ToolNotAllowed);
            return Err(self.state.config.registry.with_list(error));
        }

        if let Some(through) = &hooks.through {
            through.admit(tool)?;
        }

        // 3. Authorize
        self.state.config.members.authorize(&call.scope, &tool.info).await?;

        // 4. Validate
        let (arguments, notes) = tool.fitted(arguments, self.state.config.executor.names_of_root())?;
        let notes: Vec<String> = resolved
            .is_elsewhere
            .then(|| format!("`{}` as `{}`", call.tool, tool.wire_name))
            .into_iter()
            .chain(notes)
            .collect();
        if !notes.is_empty() {
            record.arguments =
                keepable(&arguments, &self.state.config.redactor, self.state.config.limits.audit_string_bytes);
            record.read = notes;
        }

        // 5. Limits
        let session = call.scope.session_id.as_deref().unwrap_or("");
        let _open = self.state.quotas.admit_call(call, tool).await?;
        self.state.limiter.admit(session, resolved.alias, profile.limits)?;

        // 6. Policy
        let arguments = self.state.analyze(tool, profile, arguments, hooks).await?;
        let verdict = profile.decide(tool, &arguments.looked(tool));
        record.judged(&verdict);
        record.digest = Some(digest(&tool.info, &arguments.json, call)?);
        verdict.check_denied(&tool.info.name)?;
        let permit = self.permit(call, tool, &verdict, &arguments, record).await?;
        let must_ask = verdict.decide != Decide::Allow && permit.is_none();

        // 7. Approve; 8. Record "started"
        let waits_since = record.begins_to_wait(self.now(), must_ask);
        let (arguments, approved, slot) = if must_ask {
            let case = Case { call, tool, profile, verdict: &verdict, hooks };
            let asked = AskedCall::ask(&self.state, case, arguments, fence, record).await;
            record.times.waiting = self.since(waits_since);
            match asked? {
                AskOutcome::Runs { arguments, approved, slot } => (arguments, approved, slot),
                AskOutcome::Pending(success) => return Ok(success),
            }
        } else {
            let slot = self.state.run_slot(tool, hooks).await;
            record.times.waiting = self.since(waits_since);
            let slot = slot?;
            self.starts(call, permit, fence, (tool, record)).await?;
            (arguments, None, slot)
        };

        // 9. Run
        let runs_since = record.begins_to_run(self.now());
        let first = goes_on.first.take();
        let ran = self.run(call, tool, profile, (arguments, approved), hooks, (record, first, slot)).await;
        if let (None, Some((number, person))) = (record.answer, ran.used) {
            (record.answer, record.person) = (Some(number), Some(person));
        }
        goes_on.job = ran.job;
        record.times.waiting_inside = ran.waited;
        record.times.running = self.since(runs_since);
        ran.result
    }

    fn now(&self) -> Duration {
        self.state.config.clock.monotonic()
    }

    fn since(&self, then: Duration) -> Duration {
        self.now().saturating_sub(then)
    }

    /// Whether anybody is told how calls end.
    #[must_use]
    pub fn is_observed(&self) -> bool {
        self.state.config.observer.is_some()
    }

    fn observe(&self, call: &Call, hooks: &Hooks, record: &Record, outcome: &Outcome) {
        let Some(observer) = &self.state.config.observer else { return };
        // A name that no tool has may be any text.
        let tool = record.effect.and_then(|_| self.registry().get(&record.tool));
        observer.ended(&EndedCall {
            id: &call.id,
            tool: tool.map(|tool| &*tool.info.name),
            wire_name: tool.map(|tool| &*tool.wire_name),
            effect: record.effect,
            origin: hooks.origin.as_deref(),
            session: call.scope.session_id.as_deref(),
            is_asked: record.is_asked,
            door: &call.caller.door,
            outcome: word(outcome),
            denied_by: record.denied_by.as_deref(),
            answer: record.person,
            times: record.times,
        });
    }

    /// The permission by a rule, with which a person has allowed calls like this one, where it needs one. An answer that a person gave to
    /// this very call goes before each rule, until a call has used it: a no stays a no, and other arguments stay those.
    async fn permit(
        &self,
        call: &Call,
        tool: &Registered,
        verdict: &Verdict,
        arguments: &Arguments,
        record: &mut Record,
    ) -> Result<Option<Permit>, ToolError> {
        if verdict.decide == Decide::Allow || tool.info.facts.approval != Approval::ByPolicy {
            return Ok(None);
        }
        let queue = &self.state.config.queue;
        let Some(permit) = queue.permit_for(call, &arguments.looked(tool)).await? else { return Ok(None) };
        if self.state.config.asking.second_person && !queue.is_of_another(&permit, call.scope.user_id).await? {
            return Ok(None);
        }
        if let Some(digest) = &record.digest {
            let said = queue.asks().unused_of(call.scope.project_id, digest).await.map_err(ToolError::from)?;
            if said.iter().any(|ask| answer_of(ask) != Answer::Allow) {
                return Ok(None);
            }
        }
        record.decision = Some(json!({ "policy": verdict, "rule": rule_id(permit.number), "by": permit.granted_by }));
        Ok(Some(permit))
    }

    /// Step 8 for a call that nobody is asked about. Where its rule came with the answer to an ask about this very call, the call uses that
    /// answer, too: otherwise the ask would seem to wait for its call for ever.
    async fn starts(
        &self,
        call: &Call,
        permit: Option<Permit>,
        fence: &str,
        (tool, record): (&Registered, &mut Record),
    ) -> Result<(), ToolError> {
        let (asks, audit) = (self.state.config.queue.asks(), &self.state.config.audit);
        if let (Some(Permit { ask_number: number, .. }), Some(digest)) = (permit, &record.digest)
            && asks.is_unused(call.scope.project_id, number, digest).await.map_err(ToolError::from)?
        {
            let row = record.started(call, fence);
            audit.append_with(row, AskChange::UseBesideRule { number }).await.map_err(ToolError::from)?;
            (record.answer, record.started) = (Some(number), true);
        } else if tool.info.facts.effect.may_change() {
            audit.append(record.started(call, fence)).await.map_err(ToolError::from)?;
            record.started = true;
        }
        Ok(())
    }

    /// How long a call of this tool may take.
    fn deadline(&self, tool: &Registered, profile: &Profile) -> Duration {
        let mut deadline_ms = self.state.config.limits.call_timeout_ms;
        if tool.info.facts.effect == Effect::Executes {
            // What the profile grants its commands they get, with time to tell how they ended.
            deadline_ms = deadline_ms.max(profile.limits.command_timeout_ms.saturating_add(COMMAND_MARGIN_MS));
        }
        if tool.waits_for_a_person() {
            // A person takes their time, and has a limit of their own.
            deadline_ms = deadline_ms.max(self.state.config.asking.lives_ms.saturating_add(COMMAND_MARGIN_MS));
        }
        Duration::from_millis(deadline_ms)
    }

    async fn run(
        &self,
        call: &Call,
        tool: &Registered,
        profile: &Profile,
        (arguments, approved): (Arguments, Option<Value>),
        hooks: &Hooks,
        (record, first, slot): (&Record, Option<oneshot::Sender<Outcome>>, RunSlot),
    ) -> Ran {
        let fence = self.fence().await;
        let log = Arc::new(Logged::new(self.state.config.file_log.clone(), call));
        let workspace = Workspace::new(Arc::clone(&self.state.config.executor), profile.fence.clone()).logged(log);
        let catalog = ProfileCatalog {
            state: &self.state,
            profile,
            names: hooks.names,
            kind: call.caller.kind,
            only: hooks.only,
        };
        let cancel = hooks.cancel.child_token();
        let digest = record.digest.clone().unwrap_or_default();
        let people = CallPeople::of((&self.state, self), call, hooks, tool, digest);
        // The answer of a call that goes on: the same as it would be at the end, but for what it says.
        let answer = |success: Success| {
            let result = Ok(self.audience(call, hooks).success(success));
            self.outcome(call, record, result, Duration::ZERO, fence)
        };
        let background = CallBackground {
            jobs: &self.jobs,
            call,
            hooks,
            limits: &self.state.config.limits,
            redactor: &self.state.config.redactor,
            cancel: cancel.clone(),
            first: Mutex::new(first),
            slot: Mutex::new(Some(slot)),
            answer: &answer,
            begun: OnceLock::new(),
        };
        let mut ctx = self.state.ctx(call, &workspace, &catalog, &people, &background, profile, hooks, cancel.clone());
        ctx.approved = approved;
        ctx.command = arguments.command();
        let running = AssertUnwindSafe(tool.tool.run(&ctx, arguments.json.clone())).catch_unwind();
        tokio::pin!(running);
        let deadline = self.deadline(tool, profile);
        let over = async {
            tokio::time::sleep(deadline).await;
            if background.begun.get().is_some() {
                let longer = Duration::from_millis(self.state.config.limits.background_timeout_ms + COMMAND_MARGIN_MS);
                tokio::time::sleep(longer.saturating_sub(deadline)).await;
            }
        };
        let session_over = async {
            match &hooks.session {
                Some(session) => session.ended().await,
                None => std::future::pending().await,
            }
        };
        let (end, why) = tokio::select! {
            end = &mut running => (Some(end), None),
            () = over => (None, Some(timed_out(deadline))),
            () = hooks.cancel.cancelled() => (None, Some(cancelled())),
            () = session_over => (None, Some(cancelled())),
        };
        let (used, job) = (people.used.get().copied(), background.begun.get().cloned());
        let ran = |result| Ran { result, used, waited: people.waited(), job };
        let end = match end {
            Some(end) => end,
            None => {
                cancel.cancel();
                // A tool that ends in time may still say how; what changed has changed, and the caller must know.
                let late = tokio::time::timeout(END_GRACE, &mut running).await;
                return ran(match (late, why) {
                    (Ok(Ok(Ok(success))), _) if tool.info.facts.effect.may_change() => self.within_limit(tool, success),
                    // What had to be put back, or looked at by a person, is told all the same.
                    (Ok(Ok(Err(error))), _) if error.kind != ErrorKind::Cancelled || error.details.is_some() => {
                        Err(error)
                    }
                    (_, Some(error)) => Err(error),
                    (_, None) => Err(cancelled()),
                });
            }
        };
        ran(match end {
            Ok(Ok(success)) => self.within_limit(tool, success),
            Ok(Err(error)) => Err(error),
            Err(panic) => Err(ToolError::internal(format!("`{}` panicked: {}", tool.info.name, panic_text(&*panic)))),
        })
    }

    /// Whether the changes of files were made that a call has logged whose host has died.
    ///
    /// # Errors
    /// If there is no such profile, or log or files cannot be read.
    pub async fn made(&self, scope: &Scope, profile: &str, call: &CallId) -> std::result::Result<Made, ToolError> {
        let profile = self.profile(profile).map_err(ToolError::internal)?;
        let workspace = Workspace::new(Arc::clone(&self.state.config.executor), profile.fence.clone());
        made(&self.state.config.file_log, scope.project_id, &workspace, call.as_str()).await
    }

    /// Whether a call whose host has died has deployed the workspace. An interrupted deploy is finished or
    /// discarded first, as the next deploy would do.
    ///
    /// # Errors
    /// If the target or its journal cannot be read.
    pub async fn deployed(&self, call: &CallId) -> Result<Made, ToolError> {
        match &self.state.config.deploys {
            Some(deploys) => deploys.made(call).await,
            None => Ok(Made::Unknown),
        }
    }

    /// Removes the host's secrets from what a caller is told besides outcomes.
    pub fn redact(&self, value: &mut Value) {
        self.state.config.redactor.redact_json(value);
    }

    /// The same for a text.
    pub fn redact_text(&self, text: &mut String) {
        self.state.config.redactor.redact(text);
    }

    /// An ask for a person who may not answer it: secrets are masked.
    pub fn for_lookers(&self, shown: &Shown) -> Shown {
        shown.for_lookers(&self.state.config.redactor)
    }

    /// The fence of commands here as one word, as [`toolhost_contract::Meta::fence`] tells it.
    pub async fn fence(&self) -> &str {
        let asked = || async {
            let report = self.state.config.executor.report().await;
            // What is refused now, because the machine is too busy to tell, may be fenced later.
            report.tier.map(Tier::as_str).ok_or(report.word())
        };
        match self.fence.get_or_try_init(asked).await {
            Ok(word) => word,
            Err(refused) => refused,
        }
    }
}

impl RunStoredCall for Gate {
    fn run_stored(&self, call: Call, hooks: Hooks) -> BoxFuture<'_, Outcome> {
        Box::pin(self.conduct(call, hooks))
    }
}

/// How a call ended, for the log: `ok`, `pending`, or the kind of its error.
fn word(outcome: &Outcome) -> &'static str {
    match &outcome.error {
        Some(error) => error.kind.as_str(),
        None if is_pending(outcome) => "pending",
        None => "ok",
    }
}

fn nobody() -> toolhost_contract::Caller {
    toolhost_contract::Caller {
        kind: CallerKind::Model,
        door: "none".into(),
        profile: String::new(),
        persona: String::new(),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
