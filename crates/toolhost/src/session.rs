//! Sessions of a model: created, taken, run and released; the next request in the same session; pause and cancel.

use std::sync::Arc;

use serde_json::json;
use toolhost_agent::session::{
    AnswerForm, Control, EndStep, LoopLimits, LoopResult, Opening, ResultForm, SessionState as Loop, Status, Watch,
    run_tool_loop, step,
};
use toolhost_agent::start::{self, About, BuilderTarget, Task};
use toolhost_agent::{BegunRun, Catalog, ObservedModel, ToolHost};
use toolhost_builder::envelope::{Mode, TargetType};
use toolhost_contract::workspace::{Access, Fence, Workspace, WsPath};
use toolhost_contract::{Redactor, Signal, is_blank, is_deceptive};
use toolhost_host::{Origin, Presenter, ask_id, wire_name};
use toolhost_store::{Held, NewSession, Role, SessionRow, SessionState};

use crate::error::{Error, Result};
use crate::events::{Filling, Queue, Run};
use crate::host::Host;
use crate::models::OpenModel;
use crate::place::Place;

/// Replies of the model in one run of a session in the workspace; the builder's are frozen at 8.
pub const WORKSPACE_ITERATIONS: u32 = 50;
/// Files that a session can be given to begin with.
const SESSION_FILES_MAX: usize = 50;
/// Answers that a session is told of when it goes on.
const ANSWERED_MAX: i64 = 20;
/// The profiles of sessions that name none.
const BUILDER: &str = "builder";
const DEVELOPER: &str = "developer";
/// As commits and comments name who works.
const PERSONA_DEFAULT: &str = "Toolhost Agent";

/// Replies of the model in one run where no limit is named.
#[must_use]
pub fn iterations_default(answer: &AnswerForm) -> u32 {
    match answer {
        AnswerForm::Change => LoopLimits::default().max_iterations,
        AnswerForm::Text | AnswerForm::Json { .. } => WORKSPACE_ITERATIONS,
    }
}

/// A session to be started.
#[must_use]
#[derive(Clone)]
pub struct SessionRequest {
    task: Task,
    profile: Option<String>,
    persona: String,
    ticket: Option<String>,
    files: Vec<String>,
    limits: Option<LoopLimits>,
    results: Option<ResultForm>,
    presenter: Option<Arc<dyn Presenter>>,
}

impl SessionRequest {
    pub fn new(task: Task) -> Self {
        let persona = PERSONA_DEFAULT.to_owned();
        Self {
            task,
            profile: None,
            persona,
            ticket: None,
            files: Vec::new(),
            limits: None,
            results: None,
            presenter: None,
        }
    }

    /// A session that works with the project's files and records and answers in words.
    pub fn plain(goal: impl Into<String>) -> Self {
        Self::new(Task::Workspace { goal: goal.into(), schema: None })
    }

    /// A session that creates or improves one object of the workflow package, and answers with a staged change set. `id` is an
    /// id, or the path of an asset.
    pub fn builder(goal: impl Into<String>, mode: Mode, target_type: TargetType, id: impl Into<String>) -> Self {
        Self::new(Task::Builder(BuilderTarget {
            goal: goal.into(),
            target_type,
            target_id: id.into(),
            mode,
            workflow_id: None,
            context_budget: None,
            reserve_for_response: None,
            all_tools: false,
        }))
    }

    /// Whose tools, rules and fence apply; `developer` or, for a package, `builder` if left out. A persona with a record
    /// brings its own, which this may only narrow.
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self
    }

    /// Who works, as commits and comments name them.
    pub fn persona(mut self, name: impl Into<String>) -> Self {
        self.persona = name.into();
        self
    }

    /// The ticket that the work is about.
    pub fn ticket(mut self, id: impl Into<String>) -> Self {
        self.ticket = Some(id.into());
        self
    }

    /// Files and folders of the workspace that the agent is to look at first, as paths from its root. They are named in the
    /// goal; the agent reads them with its tools.
    pub fn files(mut self, files: Vec<String>) -> Self {
        self.files = files;
        self
    }

    pub fn limits(mut self, limits: LoopLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// How results are told to the model, instead of what is usual for the task.
    pub fn results(mut self, form: ResultForm) -> Self {
        self.results = Some(form);
        self
    }

    /// Where a person can be asked while a call waits.
    pub fn presenter(mut self, presenter: Arc<dyn Presenter>) -> Self {
        self.presenter = Some(presenter);
        self
    }
}

/// A session of this host's user: it is stored in the database, and survives this process. Cloning it is cheap.
#[derive(Clone)]
pub struct Session {
    host: Host,
    id: String,
    tools: ToolHost,
    model: OpenModel,
    opening: Arc<Opening>,
    limits: LoopLimits,
    control: Control,
    origin: Option<Arc<Origin>>,
}

impl Host {
    /// Creates a session; [`Session::run`] runs it.
    ///
    /// # Errors
    /// If the user is not an editor of the project, the profile does not fit, the target cannot be read through the gate, or
    /// its context does not fit into the model's window.
    pub async fn start(&self, request: SessionRequest, model: &OpenModel) -> Result<Session> {
        // Whoever may only read has no business with the operator's model.
        self.connection().need_role(Role::Editor).await?;
        let (Task::Workspace { goal, .. } | Task::Builder(BuilderTarget { goal, .. })) = &request.task;
        expect_short(goal)?;
        let mut host = self.clone();
        if let Some(ticket) = &request.ticket {
            host.about_ticket(Some(ticket.clone())).await?;
        }
        let asked = match &request.task {
            Task::Workspace { goal, .. } => Some(goal.clone()),
            Task::Builder(_) => None,
        };
        let task = host.with_files(request.task, &request.files).await?;
        let (usual, answer) = match task {
            Task::Workspace { .. } => (DEVELOPER, AnswerForm::Text),
            Task::Builder(_) => (BUILDER, AnswerForm::Change),
        };
        let limits = request.limits.unwrap_or_else(|| limits_default(&answer));
        let role = host.persona_role(&request.persona, request.profile.as_deref(), usual).await?;
        let Place { branch, remote } = host.place().await;
        let id = start::session_id();
        let tools = host.tools(&id, &role.profile, &request.persona, request.presenter)?;
        let about = About {
            project: host.connection().project().name.clone(),
            profile: role.profile.clone(),
            persona: request.persona,
            personality: role.personality,
            ticket: host.ticket().map(str::to_owned),
            branch,
            remote,
            replies: Some(limits.max_iterations),
        };
        let mut opening = start::opening(&tools, &*model.model, &task, &about).await?;
        opening.results = request.results.unwrap_or(opening.results);
        let new = NewSession {
            project_id: host.connection().project().id,
            user_id: host.connection().user().id,
            id: id.clone(),
            profile: role.profile,
            model: model.spec.clone(),
            // The files to begin with are for the agent.
            title: asked.unwrap_or_else(|| opening.goal.clone()),
            steps: vec![(step::OPEN.to_owned(), serde_json::to_value(&opening)?)],
        };
        let told = json!({ "goal": new.title, "profile": new.profile, "model": new.model });
        let create = async { Ok::<_, Error>(host.store().sessions().create(&new).await?) };
        host.connection().record_session(&id, "session.start", told, create).await?;
        let (model, opening) = (model.clone(), Arc::new(opening));
        Ok(Session { host, id, tools, model, opening, limits, control: Control::default(), origin: None })
    }

    /// The task, with the files that its agent begins with.
    async fn with_files(&self, mut task: Task, files: &[String]) -> Result<Task> {
        if files.is_empty() {
            return Ok(task);
        }
        let Task::Workspace { goal, .. } = &mut task else { return Err(Error::FilesOfPackage) };
        if files.len() > SESSION_FILES_MAX {
            return Err(Error::TooManyFiles { most: SESSION_FILES_MAX, asked: files.len() });
        }
        let workspace = Workspace::new(Arc::clone(self.executor()), Fence::closed(Access::Read));
        goal.push_str("\n\nLook at these first:");
        for file in files {
            let wrong = |why: String| Error::SessionFile { file: file.clone(), why };
            // A line break in a file's name would add a line to the goal.
            if file.contains(is_deceptive) {
                return Err(wrong("its name has line breaks, or characters that cannot be seen".to_owned()));
            }
            let path = WsPath::parse(file).map_err(|error| wrong(error.to_string()))?;
            let spot = workspace.spot(&path, true).await.map_err(|error| wrong(error.to_string()))?;
            if spot.kind.is_none() {
                return Err(wrong("the workspace has no such file or folder".to_owned()));
            }
            goal.push_str(&format!("\n- {path}"));
        }
        Ok(task)
    }

    /// A session of this user that can go on: it was interrupted, paused or stopped at a limit, it failed, or it has given its
    /// answer. `model`: usually that of [`SessionRow::model`], which [`Host::session`] tells.
    ///
    /// # Errors
    /// If there is none, it is another user's, it was cancelled, or its persona's role allows less by now.
    pub async fn resume(&self, id: &str, model: &OpenModel) -> Result<Session> {
        let found = self.resumable(id).await?;
        let project = self.connection().project().id;
        let first = self.store().sessions().steps(project, id, -1, 1).await?;
        let opening: Opening =
            serde_json::from_value(first.into_iter().next().map(|row| row.body).unwrap_or_default())?;
        let mut host = self.clone();
        host.set_ticket(opening.ticket.clone());
        host.persona_role(&opening.persona, Some(&found.profile), &found.profile).await?;
        let tools = host.tools(id, &found.profile, &opening.persona, None)?;
        let (limits, opening) = (limits_default(&opening.answer), Arc::new(opening));
        Ok(Session {
            host,
            id: id.to_owned(),
            tools,
            model: model.clone(),
            opening,
            limits,
            control: Control::default(),
            origin: None,
        })
    }

    /// Where a session stands that this user may resume.
    ///
    /// # Errors
    /// As [`Host::resume`].
    pub async fn resumable(&self, id: &str) -> Result<SessionRow> {
        self.connection().need_role(Role::Editor).await?;
        let found = self.store().sessions().get(self.connection().project().id, id).await?;
        if found.user_id != self.connection().user().id {
            return Err(Error::SessionOfOther { id: id.to_owned() });
        }
        if found.state == SessionState::Cancelled {
            return Err(Error::SessionCancelled { id: id.to_owned() });
        }
        Ok(found)
    }

    /// Leaves a message for a session of this user, whether somebody runs it or not: one at work hears it before its next turn, any other
    /// when it goes on. Answers where the session stands then.
    ///
    /// # Errors
    /// As [`Host::resumable`]; if the message is empty or too long, or too many wait to be heard.
    pub async fn leave_message(&self, id: &str, text: &str) -> Result<SessionRow> {
        if is_blank(text) {
            return Err(Error::EmptyMessage);
        }
        expect_short(text)?;
        self.resumable(id).await?;
        let (sessions, project) = (self.store().sessions(), self.connection().project().id);
        let leave = async { Ok::<_, Error>(sessions.leave(project, id, text).await?) };
        self.connection().record_session(id, "session.say", json!({ "text": text }), leave).await?;
        Ok(sessions.get(project, id).await?)
    }

    /// Where a session of the project stands.
    ///
    /// # Errors
    /// If the user may not read the project, or there is no such session.
    pub async fn session(&self, id: &str) -> Result<SessionRow> {
        self.connection().need_role(Role::Viewer).await?;
        Ok(self.store().sessions().get(self.connection().project().id, id).await?)
    }

    /// Stops a session after the call under way, wherever it runs.
    ///
    /// # Errors
    /// If it has ended, or is another user's and this one is not the owner.
    pub async fn pause(&self, id: &str) -> Result<SessionRow> {
        self.connection().signal(id, Signal::Pause).await
    }

    /// Ends a session for good, wherever it runs.
    ///
    /// # Errors
    /// As [`Host::pause`].
    pub async fn cancel(&self, id: &str) -> Result<SessionRow> {
        self.connection().signal(id, Signal::Cancel).await
    }

    /// The tools of a session, on their way to the gate.
    fn tools(&self, id: &str, profile: &str, persona: &str, presenter: Option<Arc<dyn Presenter>>) -> Result<ToolHost> {
        let catalog = Catalog::new(self.gate(), profile)?;
        let scope = self.scope(Some(id.to_owned()));
        let tools = ToolHost::new(
            Arc::clone(self.gate()),
            (catalog, crate::SESSION_TOOLS),
            scope,
            persona.to_owned(),
            Arc::clone(self.ids()),
        );
        Ok(match presenter {
            Some(presenter) => tools.presenter(presenter),
            None => tools,
        })
    }
}

impl crate::Connection {
    /// Tells a session to stop.
    ///
    /// # Errors
    /// As [`Host::pause`].
    pub async fn signal(&self, id: &str, signal: Signal) -> Result<SessionRow> {
        self.need_role(Role::Editor).await?;
        let (sessions, project) = (self.store().sessions(), self.project().id);
        // A session belongs to its user; an owner answers for all.
        if sessions.get(project, id).await?.user_id != self.user().id {
            self.need_role(Role::Owner).await?;
        }
        let what = match signal {
            Signal::Pause => "session.pause",
            Signal::Cancel => "session.cancel",
        };
        let want = async { Ok::<_, Error>(sessions.want(project, id, signal).await?) };
        self.record_session(id, what, json!({}), want).await
    }
}

fn limits_default(answer: &AnswerForm) -> LoopLimits {
    LoopLimits { max_iterations: iterations_default(answer), ..LoopLimits::default() }
}

impl Session {
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The first step: the goal, the prompt and the form of the answer.
    #[must_use]
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Stops the runs of this handle and its clones from this process.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The same session with other limits for its next runs.
    #[must_use]
    pub fn with_limits(mut self, limits: LoopLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The same session, stopped by this control.
    #[must_use]
    pub fn with_control(mut self, control: Control) -> Self {
        self.control = control;
        self
    }

    /// The same session, whose next runs were asked for by this operation of a trace.
    #[must_use]
    pub fn with_origin(mut self, origin: Option<Arc<Origin>>) -> Self {
        self.origin = origin;
        self
    }

    /// The same session, whose person is asked here while a call waits.
    #[must_use]
    pub fn with_presenter(mut self, presenter: Arc<dyn Presenter>) -> Self {
        self.tools = self.tools.presenter(presenter);
        self
    }

    /// Runs the session in a task of its own until it ends or is stopped.
    #[must_use]
    pub fn run(&self) -> Run {
        self.spawn(None)
    }

    /// Goes on with another request, in a task of its own. The model is first told what has changed since it spoke last.
    pub fn say(&self, message: impl Into<String>) -> Run {
        self.spawn(Some(message.into()))
    }

    fn spawn(&self, message: Option<String>) -> Run {
        let queue = Arc::new(Queue::default());
        let (session, filling) = (self.clone(), Filling(Arc::clone(&queue)));
        let task = tokio::spawn(async move {
            let watch: Arc<dyn Watch> = Arc::<Queue>::clone(&filling.0);
            session.run_watched(message, &watch).await
        });
        Run::new(self.id.clone(), queue, task)
    }

    /// Takes the session, runs it until it ends or is stopped, and releases it for the next process.
    ///
    /// # Errors
    /// If it runs elsewhere or has ended, or its journal cannot be written. A session that fails or reaches a limit has a
    /// result that says so.
    pub async fn run_watched(&self, message: Option<String>, watch: &Arc<dyn Watch>) -> Result<LoopResult> {
        if let Some(text) = message {
            self.host.leave_message(&self.id, &text).await?;
        }
        let (mut result, mut is_told) = self.run_once(watch).await?;
        // Somebody has said something after the run had looked for messages for the last time.
        while is_told && result.status == Status::Completed {
            match self.run_once(watch).await {
                Ok(next) => (result, is_told) = next,
                // Whoever was faster goes on with it, and hears the message.
                Err(Error::Store(toolhost_store::Error::SessionRuns { .. })) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(result)
    }

    /// One run, and whether it ended with messages that nobody has heard.
    async fn run_once(&self, watch: &Arc<dyn Watch>) -> Result<(LoopResult, bool)> {
        let found = self.host.resumable(&self.id).await?;
        let (sessions, connection) = (self.host.store().sessions(), self.host.connection());
        let project = connection.project().id;
        if found.state == SessionState::Done && sessions.unheard(project, &self.id).await?.is_empty() {
            return Err(Error::SessionDone { id: self.id.clone() });
        }
        let held = sessions.hold(project, &self.id).await?;
        // What was said is recorded as that, and the first run is the start itself.
        if !self.hear(&held).await? && (found.steps > 1 || found.state != SessionState::Active) {
            let goes_on = async { Ok::<_, Error>(()) };
            connection.record_session(&self.id, "session.resume", json!({}), goes_on).await?;
        }
        let result = self.run_held(&held, watch).await?;
        let code = result.error.as_ref().map(|error| error.code.as_str());
        if let Some(error) = &result.error {
            // A provider may repeat a key in what it says, and other members of the project read this.
            let mut message = error.message.clone();
            Redactor::default().redact(&mut message);
            let end = EndStep { code: error.code.as_str().to_owned(), message };
            let turns = result.iterations;
            let free = (0..u32::MAX).find(|number| !held.has(&step::end(turns, *number))).unwrap_or(u32::MAX);
            held.say(&step::end(turns, free), serde_json::to_value(end)?).await?;
        }
        let is_told = held.release(state_of(result.status), code).await?;
        Ok((result, is_told))
    }

    /// Runs a session that was taken, and tells the host's observer of it.
    async fn run_held(&self, held: &Held, watch: &Arc<dyn Watch>) -> Result<LoopResult> {
        let (clock, model) = (&**self.host.clock(), &*self.model.model);
        let state = Loop::open(held, clock)?;
        let Some(observer) = self.host.session_observer() else {
            return Ok(run_tool_loop(&state, model, &self.tools, &self.limits, &self.control, watch).await?);
        };
        let run = observer.begins(&BegunRun {
            session: &self.id,
            model: &model.facts().name,
            persona: &self.opening.persona,
            origin: self.origin.as_deref(),
        });
        let (model, tools) = (ObservedModel { model, run: &*run, clock }, self.tools.clone().origin(run.origin()));
        let ended = run_tool_loop(&state, &model, &tools, &self.limits, &self.control, watch).await;
        run.ended(ended.as_ref().ok());
        Ok(ended?)
    }

    /// Which of its asks were answered while it did not run: nobody but the model can use an answer.
    async fn answered(&self) -> Result<Option<String>> {
        let (asks, project) = (self.host.connection().queue(), self.host.connection().project().id);
        let answered = asks.asks().answered_of_session(project, &self.id, ANSWERED_MAX).await?;
        if answered.is_empty() {
            return Ok(None);
        }
        let told = answered.iter().map(|ask| format!("{} ({})", ask_id(ask.number), wire_name(&ask.tool)));
        let told = told.collect::<Vec<_>>().join(", ");
        let wait = wire_name(crate::session_tools::WAIT);
        Ok(Some(format!(
            "People have answered meanwhile: {told}. `{wait}` with such an id as `approvalId` gives the answer, or runs the \
             call that was allowed."
        )))
    }

    /// Adds what people have said before the next turn, and what has happened since the last one. Says whether somebody has.
    async fn hear(&self, held: &Held) -> Result<bool> {
        let project = self.host.connection().project().id;
        if self.host.store().sessions().unheard(project, &self.id).await?.is_empty() {
            return Ok(false);
        }
        let turns = (0..u32::MAX).take_while(|turn| held.has(&step::turn(*turn))).count();
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        let free = || (0..u32::MAX).find(|number| !held.has(&step::say(turns, *number))).unwrap_or(u32::MAX);
        let since = start::since(&self.tools, &*self.model.model, &self.opening).await;
        let mut since = match (since, self.answered().await?) {
            (Some(since), Some(answered)) => Some(format!("{since}\n\n{answered}")),
            (since, answered) => since.or(answered),
        };
        // It is told before the first message.
        while held.hear(&step::say(turns, free()), since.take().as_deref()).await? {}
        Ok(true)
    }
}

/// Characters of a message or a goal. A longer text would fill a model's window for good, since what a person says is never put away.
const SAID_CHARS_MAX: usize = 100_000;

fn expect_short(text: &str) -> Result<()> {
    match text.chars().count() {
        chars if chars > SAID_CHARS_MAX => Err(Error::SaidTooLong { chars, max: SAID_CHARS_MAX }),
        _ => Ok(()),
    }
}

fn state_of(status: Status) -> SessionState {
    match status {
        Status::Completed => SessionState::Done,
        Status::Paused => SessionState::Paused,
        Status::Limited => SessionState::Limited,
        Status::Failed => SessionState::Failed,
        Status::Cancelled => SessionState::Cancelled,
    }
}
