//! The tools of one session: what its model is told of them, and the way to the gate.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{Call, CallId, Caller, CallerKind, Effect, IdSource, Outcome, ProgressSink, Scope, Silent};
use toolhost_host::{Error, Gate, Hooks, Presenter};

use crate::model::ToolSpec;

/// The tools of a profile as a model is told of them. Made once for all sessions of the profile.
pub struct Catalog {
    profile: String,
    specs: Arc<[ToolSpec]>,
    effects: HashMap<String, Effect>,
}

impl Catalog {
    /// All tools of the profile but those for people only.
    ///
    /// # Errors
    /// If there is no such profile.
    pub fn new(gate: &Gate, profile: &str) -> Result<Arc<Self>, Error> {
        let found = gate.profile(profile)?;
        let tools = || gate.tools_of(found).filter(|tool| !tool.facts.people_only);
        let spec = |tool: &toolhost_host::Registered| ToolSpec {
            name: tool.wire_name.clone(),
            description: tool.facts.description.clone(),
            schema: tool.facts.input_schema.clone(),
        };
        let effects = tools().map(|tool| (tool.wire_name.clone(), tool.facts.effect)).collect();
        Ok(Arc::new(Self { profile: profile.to_owned(), specs: tools().map(spec).collect(), effects }))
    }

    #[must_use]
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Whether the model has a tool of this wire name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.effects.contains_key(name)
    }
}

/// The way of one session to the gate: in whose name, with which tools, and where people are asked.
pub struct ToolHost {
    gate: Arc<Gate>,
    catalog: Arc<Catalog>,
    scope: Scope,
    caller: Caller,
    ids: Arc<dyn IdSource>,
    presenter: Option<Arc<dyn Presenter>>,
    hold: Option<Duration>,
}

impl ToolHost {
    /// `scope` names the session; its calls come from a model, through the door `agent`.
    #[must_use]
    pub fn new(gate: Arc<Gate>, catalog: Arc<Catalog>, scope: Scope, persona: String, ids: Arc<dyn IdSource>) -> Self {
        let caller =
            Caller { kind: CallerKind::Model, door: "agent".into(), profile: catalog.profile.clone(), persona };
        Self { gate, catalog, scope, caller, ids, presenter: None, hold: None }
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

    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What the worst call of a tool can do. A name that is none of the profile's reads: the gate will refuse it.
    #[must_use]
    pub fn effect(&self, name: &str) -> Effect {
        let by_name = || self.gate.registry().get(name).map(|tool| tool.facts.effect);
        self.catalog.effects.get(name).copied().or_else(by_name).unwrap_or(Effect::Reads)
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
        cancel: &CancellationToken,
        progress: Option<Arc<dyn ProgressSink>>,
    ) -> Outcome {
        let call =
            Call { id, tool: tool.to_owned(), arguments, scope: self.scope.clone(), caller: self.caller.clone() };
        let hooks = Hooks {
            cancel: cancel.clone(),
            progress: progress.unwrap_or_else(|| Arc::new(Silent)),
            presenter: self.presenter.clone(),
            hold: self.hold,
        };
        self.gate.call(call, hooks).await
    }
}
