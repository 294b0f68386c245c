//! A session in a house: a scripted model, the real gate, store and tools.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use toolhost_agent::model::Script;
use toolhost_agent::session::{
    Control, Event, LoopLimits, LoopResult, Opening, SessionState, Watch, run_tool_loop, step,
};
use toolhost_agent::start::{self, About, BuilderTarget, StartError, Task};
use toolhost_agent::{Catalog, Model, ToolHost};
use toolhost_builder::envelope::{Mode, TargetType};
use toolhost_contract::{CallId, Effect, Journal, RandomIds, Scope, SystemClock};
use toolhost_store::{Entry, Event as Row, Held, NewSession};

use crate::{House, USER};

/// What watchers were told.
#[derive(Default)]
pub struct Seen(Mutex<Vec<Event>>);

impl Watch for Seen {
    fn event(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Seen {
    pub fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}

/// A session of a house.
pub struct Sitting<'a> {
    pub house: &'a House,
    pub id: String,
    pub tools: ToolHost,
    pub limits: LoopLimits,
    pub control: Control,
    pub seen: Arc<Seen>,
    pub profile: String,
}

pub fn work(goal: &str) -> Task {
    Task::Workspace { goal: goal.to_owned(), schema: None }
}

pub fn script(turns: &Value) -> Script {
    Script::parse("script", &serde_json::json!({ "turns": turns }).to_string()).unwrap()
}

/// To make this object of the sample clearer.
pub fn target(target_type: TargetType, id: &str, mode: Mode) -> Task {
    let workflow_id = (target_type == TargetType::Step).then(|| "research-report".to_owned());
    let goal = "make it clearer".to_owned();
    Task::Builder(BuilderTarget {
        goal,
        target_type,
        target_id: id.to_owned(),
        mode,
        workflow_id,
        context_budget: None,
        reserve_for_response: None,
        all_tools: false,
    })
}

impl<'a> Sitting<'a> {
    pub fn new(house: &'a House, profile: &str) -> Self {
        Self::of(house, profile, &start::session_id())
    }

    pub fn of(house: &'a House, profile: &str, id: &str) -> Self {
        let scope = Scope {
            user_id: USER,
            project_id: house.project.id,
            session_id: Some(id.to_owned()),
            workflow_id: None,
            ticket_id: None,
        };
        let catalog = Catalog::new(&house.gate, profile).unwrap();
        let tools = ToolHost::new(
            Arc::clone(&house.gate),
            (catalog, toolhost::SESSION_TOOLS),
            scope,
            "Ada".to_owned(),
            Arc::new(RandomIds),
        );
        Self {
            house,
            id: id.to_owned(),
            tools,
            limits: LoopLimits::default(),
            control: Control::default(),
            seen: Arc::default(),
            profile: profile.to_owned(),
        }
    }

    pub fn about(&self, ticket: Option<&str>) -> About {
        About {
            project: self.house.project.name.clone(),
            profile: self.profile.clone(),
            persona: "Ada".to_owned(),
            ticket: ticket.map(str::to_owned),
            ..About::default()
        }
    }

    pub async fn opening(&self, model: &dyn Model, task: &Task) -> Result<Opening, StartError> {
        start::opening(&self.tools, model, task, &self.about(None)).await
    }

    /// Makes the session and runs it as far as it goes.
    pub async fn play(&self, model: &dyn Model, task: &Task) -> LoopResult {
        let opening = self.opening(model, task).await.unwrap();
        self.begin(&opening).await;
        self.go_on(model).await
    }

    pub async fn begin(&self, opening: &Opening) {
        let new = NewSession {
            project_id: self.house.project.id,
            user_id: USER,
            id: self.id.clone(),
            profile: self.profile.clone(),
            model: "script".to_owned(),
            title: opening.goal.clone(),
            steps: vec![(step::OPEN.to_owned(), serde_json::to_value(opening).unwrap())],
        };
        self.house.store.sessions().create(&new).await.unwrap();
    }

    pub async fn hold(&self) -> Held {
        self.house.store.sessions().hold(self.house.project.id, &self.id).await.unwrap()
    }

    /// Makes the session as one whose host was killed with these steps kept.
    pub async fn killed_after(&self, opening: &Opening, steps: &[(String, Value)]) {
        self.begin(opening).await;
        let held = self.hold().await;
        for (name, body) in steps {
            held.keep(name, body.clone(), None).await.unwrap();
        }
        held.settle().await.unwrap();
    }

    /// A row of the audit that the host wrote for a call of the session before it was killed.
    pub async fn noted(&self, (tool, effect): (&str, Effect), event: Row, id: &CallId, outcome: Option<Value>) {
        let row = Entry {
            event,
            call_id: id.clone(),
            session_id: Some(self.id.clone()),
            user_id: USER,
            project_id: self.house.project.id,
            caller: serde_json::json!({}),
            tool: tool.to_owned(),
            effect: Some(effect.as_str().to_owned()),
            arguments: Value::Null,
            digest: None,
            decision: None,
            outcome,
            duration_ms: None,
            fence: String::new(),
            trace: toolhost_contract::Trace::None,
        };
        self.house.store.audit().append(row).await.unwrap();
    }

    /// Runs the session from where it stands, and lets go of it as a killed host would: without a word.
    pub async fn go_on(&self, model: &dyn Model) -> LoopResult {
        let held = self.hold().await;
        self.go_on_with(&held, model).await
    }

    pub async fn go_on_with(&self, held: &Held, model: &dyn Model) -> LoopResult {
        let clock = SystemClock::default();
        let state = SessionState::open(held, &clock).unwrap();
        let watch: Arc<dyn Watch> = Arc::<Seen>::clone(&self.seen);
        run_tool_loop(&state, model, &self.tools, &self.limits, &self.control, &watch).await.unwrap()
    }

    /// What each call of the session was answered with, in the order in which they were asked for.
    pub async fn contents(&self) -> Vec<(String, Value)> {
        let steps = self.house.store.sessions().steps(self.house.project.id, &self.id, -1, 10_000).await.unwrap();
        let calls = steps.into_iter().filter(|row| row.step.starts_with("call_"));
        let mut calls: Vec<(String, Value)> = calls.map(|row| (row.step, row.body)).collect();
        // Reads at once are kept as they end.
        calls.sort_by_key(|(step, _)| step.split('_').filter_map(|part| part.parse().ok()).collect::<Vec<u32>>());
        calls
    }
}
