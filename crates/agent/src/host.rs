//! The tools of one session: what its model is told of them, and the way to the gate.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolhost_contract::{
    AGENT_DOOR, Call, CallId, Caller, CallerKind, Effect, IdSource, Meta, Outcome, ProgressSink, Scope, Session,
    Silent, Trace,
};
use toolhost_host::{Decide, Error, Gate, Hooks, Made, Names, Origin, Presenter, Registered};

use crate::model::ToolSpec;
use crate::tools::SessionTools;

/// Longer than any ask lives.
const PATIENCE: Duration = Duration::from_hours(24 * 365);

/// The tools of a profile as a model is told of them. Made once for all sessions of the profile.
pub struct Catalog {
    profile: String,
    specs: Arc<[ToolSpec]>,
    names: HashSet<String>,
    asked_for: Vec<String>,
}

impl Catalog {
    /// All tools of the profile but those for people only.
    ///
    /// # Errors
    /// If there is no such profile.
    pub fn new(gate: &Gate, profile: &str) -> Result<Arc<Self>, Error> {
        let found = gate.profile(profile)?;
        let tools = || gate.tools_for_models(found);
        let spec = |tool: &Registered| {
            let (description, schema) = Names::Wire.described(gate.registry(), tool);
            ToolSpec { name: tool.wire_name.clone(), description, schema }
        };
        let names = tools().map(|tool| tool.wire_name.clone()).collect();
        let asks = |tool: &&Registered| found.verdict(tool, &Value::Object(Map::new())).decide == Decide::Ask;
        let asked_for = tools().filter(asks).map(|tool| tool.wire_name.clone()).collect();
        let specs = tools().map(spec).collect();
        Ok(Arc::new(Self { profile: profile.to_owned(), specs, names, asked_for }))
    }

    /// Those among these, by wire name.
    fn among(&self, is_meant: impl Fn(&str) -> bool) -> Self {
        let named = |name: &&String| is_meant(name);
        Self {
            profile: self.profile.clone(),
            specs: self.specs.iter().filter(|spec| is_meant(&spec.name)).cloned().collect(),
            names: self.names.iter().filter(named).cloned().collect(),
            asked_for: self.asked_for.iter().filter(named).cloned().collect(),
        }
    }

    /// Tools that a person is asked for whatever the arguments, by the profile's rules or by their nature.
    #[must_use]
    pub fn asked_for(&self) -> &[String] {
        &self.asked_for
    }

    #[must_use]
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Whether the model has a tool of this wire name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

/// How a session ends its calls from outside.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// They end.
    pub(crate) cancel: CancellationToken,
    /// They wait for a person no longer ([`Hooks::let_go`]).
    pub(crate) let_go: CancellationToken,
}

/// The way of one session to the gate: in whose name, with which tools, and where people are asked.
#[derive(Clone)]
pub struct ToolHost {
    gate: Arc<Gate>,
    catalog: Arc<Catalog>,
    tools: SessionTools,
    scope: Scope,
    caller: Caller,
    ids: Arc<dyn IdSource>,
    presenter: Option<Arc<dyn Presenter>>,
    hold: Option<Duration>,
    /// Where its calls come from.
    origin: Option<Arc<Origin>>,
    /// As [`Hooks::only`].
    only: Option<&'static [&'static str]>,
    /// What its commands go on in, in the background, and leave their files in.
    session: Session,
    /// Ends them when the last of these is gone.
    _ends: Arc<DropGuard>,
}

impl ToolHost {
    /// `scope` names the session; its calls come from a model, through the door `agent`.
    #[must_use]
    pub fn new(
        gate: Arc<Gate>,
        (catalog, tools): (Arc<Catalog>, SessionTools),
        scope: Scope,
        persona: String,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        let caller =
            Caller { kind: CallerKind::Model, door: AGENT_DOOR.into(), profile: catalog.profile.clone(), persona };
        let life = CancellationToken::new();
        let (session, ends) = (Session::new(life.clone()), Arc::new(life.drop_guard()));
        Self {
            gate,
            catalog,
            tools,
            scope,
            caller,
            ids,
            presenter: None,
            hold: None,
            origin: None,
            only: None,
            session,
            _ends: ends,
        }
    }

    /// The same for a session on a workflow package: of the profile's tools those that such a session has, in what the
    /// model is told and at the gate.
    #[must_use]
    pub fn on_package(&self) -> Self {
        let tool = |name: &str| self.gate.registry().get(name);
        let is_builders = |name: &str| tool(name).is_some_and(|tool| self.tools.on_package.contains(&&*tool.info.name));
        let catalog = match self.catalog.names.iter().all(|name| is_builders(name)) {
            true => Arc::clone(&self.catalog),
            false => Arc::new(self.catalog.among(is_builders)),
        };
        Self { catalog, only: Some(self.tools.on_package), ..self.clone() }
    }

    /// Where a person can be asked while a call waits.
    #[must_use]
    pub fn presenter(mut self, presenter: Arc<dyn Presenter>) -> Self {
        self.presenter = Some(presenter);
        self
    }

    /// How long a call waits for an answer from elsewhere before it is told to wait itself.
    #[must_use]
    pub fn hold(mut self, hold: Duration) -> Self {
        self.hold = Some(hold);
        self
    }

    /// Where calls come from.
    #[must_use]
    pub fn origin(mut self, origin: Arc<Origin>) -> Self {
        self.origin = Some(origin);
        self
    }

    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The tools that the session calls itself.
    pub(crate) fn own(&self) -> &SessionTools {
        &self.tools
    }

    /// Whether the model has a tool of this canonical name.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.gate.registry().get(tool).is_some_and(|tool| self.catalog.has(&tool.wire_name))
    }

    /// The wire name of what reads an earlier result again, if the model has it.
    pub(crate) fn reread(&self) -> Option<&'static str> {
        Some(self.tools.read_result).filter(|tool| self.catalog.has(tool))
    }

    /// What the worst call of a tool can do. A name that no tool has reads: the gate will refuse it.
    #[must_use]
    pub fn effect(&self, name: &str) -> Effect {
        self.gate.registry().get(name).map_or(Effect::Reads, |tool| tool.info.facts.effect)
    }

    /// Whether calls of a tool may run beside each other, and again. The gate refuses a name that no tool has.
    #[must_use]
    pub fn only_reads(&self, name: &str) -> bool {
        self.gate.registry().get(name).is_none_or(|tool| tool.info.facts.only_reads())
    }

    /// Whether all that a tool does is to ask a person. Who asks the same again finds what was asked, and its answer.
    pub(crate) fn asks(&self, name: &str) -> bool {
        self.effect(name) == Effect::Asks
    }

    /// Whether calls of a tool wait for people, or for what may.
    pub(crate) fn waits(&self, name: &str) -> bool {
        self.gate.registry().get(name).is_some_and(|tool| tool.waits_for_a_person())
    }

    /// How the end of a call is decided whose host died.
    pub(crate) fn trace(&self, name: &str) -> Trace {
        self.gate.registry().get(name).map_or(Trace::None, |tool| tool.info.facts.trace)
    }

    /// Whether the changes of files were made that a call has logged, or its deploy. Unknown where that cannot be read.
    pub(crate) async fn made(&self, id: &CallId, trace: Trace) -> Made {
        let made = match trace {
            Trace::Deploy => self.gate.deployed(id).await,
            _ => self.gate.made(&self.scope, &self.caller.profile, id).await,
        };
        made.unwrap_or_else(|error| {
            tracing::warn!(%error, call = %id, "what a call changed cannot be told from the files");
            Made::Unknown
        })
    }

    /// What a call wrote, as its answer would have told it.
    pub(crate) fn redacted(&self, mut value: Value) -> Value {
        self.gate.redact(&mut value);
        value
    }

    /// What an outcome would say of a call that the loop answers itself.
    pub(crate) async fn meta(&self, id: &CallId, tool: &str) -> Meta {
        let known = self.gate.registry().get(tool);
        Meta {
            tool: known.map_or_else(|| tool.to_owned(), |tool| tool.info.name.to_string()),
            call_id: id.clone(),
            session_id: self.scope.session_id.clone(),
            user_id: self.scope.user_id,
            project_id: self.scope.project_id,
            workflow_id: self.scope.workflow_id,
            revision: None,
            allow_write: self.effect(tool).may_change(),
            duration_ms: 0,
            read: Vec::new(),
            edited: None,
            fence: self.gate.fence().await.to_owned(),
        }
    }

    pub(crate) fn new_id(&self) -> CallId {
        self.ids.call_id()
    }

    /// One call through the gate.
    pub(crate) async fn call(
        &self,
        id: CallId,
        tool: &str,
        arguments: Value,
        ends: &Ends,
        progress: Option<Arc<dyn ProgressSink>>,
    ) -> Outcome {
        let hooks = Hooks {
            cancel: ends.cancel.clone(),
            progress: progress.unwrap_or_else(|| Arc::new(Silent)),
            presenter: self.presenter.clone(),
            hold: self.hold,
            let_go: ends.let_go.clone(),
            names: Names::Wire,
            only: self.only,
            session: Some(self.session.clone()),
            origin: self.origin.clone(),
            ..Hooks::default()
        };
        self.gate.call(self.request(id, tool, arguments), hooks).await
    }

    /// As [`ToolHost::call`], for a call that nobody is there to make again: it waits for a person as long as one may take.
    pub(crate) async fn call_patiently(&self, id: CallId, tool: &str, arguments: Value, ends: &Ends) -> Outcome {
        let hooks = Hooks {
            cancel: ends.cancel.clone(),
            presenter: self.presenter.clone(),
            hold: Some(PATIENCE),
            let_go: ends.let_go.clone(),
            names: Names::Wire,
            only: self.only,
            session: Some(self.session.clone()),
            origin: self.origin.clone(),
            ..Hooks::default()
        };
        self.gate.call(self.request(id, tool, arguments), hooks).await
    }

    fn request(&self, id: CallId, tool: &str, arguments: Value) -> Call {
        Call { id, tool: tool.to_owned(), arguments, scope: self.scope.clone(), caller: self.caller.clone() }
    }
}

fn status(outcome: &Outcome) -> Option<&str> {
    outcome.data.get("status").and_then(Value::as_str)
}

/// Whether a call waits for a person before it runs.
pub(crate) fn is_held(outcome: &Outcome) -> bool {
    status(outcome) == Some("pending_approval")
}

/// Whether a tool that waits for people itself has no answer yet: `pending`, `pending_answer`, `pending_review`.
pub(crate) fn is_pending(outcome: &Outcome) -> bool {
    status(outcome).is_some_and(|status| status.starts_with("pending"))
}
