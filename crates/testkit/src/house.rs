//! A whole house in this process: a real store, a real executor and a real gate over the tools a test hands in.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use toolhost_contract::workspace::Remote;
use toolhost_contract::{
    AnyTool, Call, Caller, CallerKind, Clock, Deploys, Durability, IdSource, Outcome, Scope, ToolInfo,
};
use toolhost_deploy::{DeployKey, DeployRules, Deployment};
use toolhost_host::{
    Analyzer, Asking, CallObserver, Gate, GateConfig, Hooks, Limits, Members, Person, Presenter, Profiles, Queue,
    Redactor, Registry, Tightening, Unattended,
};
use toolhost_sandbox::{FenceChoice, LocalConfig, LocalExecutor};
use toolhost_store::{Database, Filter, Project, Store, Subjects, Verdict};

use crate::clock::{CountingIds, FakeClock};
use crate::people::{Speaking, Voice};
use crate::workspace::TempWorkspace;

/// The one person who owns the project: the first user of a new database.
pub const USER: i64 = 1;
const OWNER: &str = "local";

/// Tools are made of the records they keep.
/// Those who keep tables of their own in a database.
pub const SUBJECTS: Subjects = &[&toolhost_records::Traces, &toolhost_builder::packages::Traces];

type Tools = Box<dyn FnOnce(&Database, Option<&Deployment>) -> Vec<Box<dyn AnyTool>>>;

/// What a house is made of.
pub struct HouseBuilder {
    tools: Tools,
    /// A PostgreSQL database instead of a file.
    database: Option<String>,
    workspace: TempWorkspace,
    profile: String,
    helper: PathBuf,
    operator: String,
    project_policy: Option<String>,
    voice: Option<Arc<dyn Voice>>,
    asking: Asking,
    limits: Limits,
    observer: Option<Arc<dyn CallObserver>>,
    secrets: Vec<(String, String)>,
    persona: String,
    deploy: Option<(PathBuf, DeployRules, DeployKey)>,
    remotes: Vec<Remote>,
    fence: FenceChoice,
    analyzer: Analyzer,
}

/// A gate, open, with its workspace and its store.
pub struct House {
    pub workspace: TempWorkspace,
    pub gate: Arc<Gate>,
    pub store: Store,
    pub project: Project,
    pub clock: Arc<FakeClock>,
    ids: Arc<CountingIds>,
    voice: Option<Arc<dyn Voice>>,
    profile: String,
    persona: String,
}

/// The built-in tools, as they are listed: none of them can be called.
pub fn every_tool() -> Vec<Box<dyn AnyTool>> {
    toolhost::tools(&Database::default(), None)
}

impl HouseBuilder {
    /// A house with these tools, whose callers have the profile `all`, and where nobody can be asked.
    pub fn new(tools: Vec<Box<dyn AnyTool>>) -> Self {
        Self::of(|_, _| tools)
    }

    /// As [`HouseBuilder::new`], with tools that keep records.
    pub fn of(tools: impl FnOnce(&Database, Option<&Deployment>) -> Vec<Box<dyn AnyTool>> + 'static) -> Self {
        Self {
            tools: Box::new(tools),
            database: None,
            workspace: TempWorkspace::new(),
            profile: "all".to_owned(),
            // Without a helper no fence holds, and commands are refused.
            helper: PathBuf::from("/usr/bin/false"),
            operator: String::new(),
            project_policy: None,
            voice: None,
            asking: Asking { unattended: Unattended::Deny, ..Asking::default() },
            limits: Limits::default(),
            observer: None,
            secrets: Vec::new(),
            persona: "Test Agent".to_owned(),
            deploy: None,
            remotes: Vec::new(),
            fence: FenceChoice::Auto,
            analyzer: Arc::new(toolhost_host::analyze),
        }
    }

    /// Keeps everything in this PostgreSQL database, if one is named.
    pub fn database(mut self, url: Option<String>) -> Self {
        self.database = url;
        self
    }

    pub fn workspace(mut self, workspace: TempWorkspace) -> Self {
        self.workspace = workspace;
        self
    }

    /// The profile of whoever calls.
    pub fn profile(mut self, name: &str) -> Self {
        name.clone_into(&mut self.profile);
        self
    }

    pub fn persona(mut self, name: &str) -> Self {
        name.clone_into(&mut self.persona);
        self
    }

    /// Where the workspace is deployed to, and by which rules.
    pub fn deploy(mut self, target: PathBuf, rules: DeployRules) -> Self {
        self.deploy = Some((target, rules, DeployKey::new([7; 32])));
        self
    }

    /// Remotes that the operator grants.
    pub fn remotes(mut self, remotes: Vec<Remote>) -> Self {
        self.remotes = remotes;
        self
    }

    /// Another fence than the strongest.
    pub fn fence(mut self, fence: FenceChoice) -> Self {
        self.fence = fence;
        self
    }

    /// A program that routes `sandbox-exec`: without one, commands are refused.
    pub fn helper(mut self, program: impl Into<PathBuf>) -> Self {
        self.helper = program.into();
        self
    }

    /// The operator's profile tables, TOML.
    pub fn operator(mut self, toml: &str) -> Self {
        toml.clone_into(&mut self.operator);
        self
    }

    /// What `toolhost.toml` in the project says.
    pub fn project_policy(mut self, toml: &str) -> Self {
        self.project_policy = Some(toml.to_owned());
        self
    }

    /// A person who is asked while a call waits.
    pub fn person(mut self, voice: impl Voice) -> Self {
        self.voice = Some(Arc::new(voice));
        self
    }

    /// How people are asked; a house refuses what would need one, unless this says otherwise.
    pub fn asking(mut self, asking: Asking) -> Self {
        self.asking = asking;
        self
    }

    pub fn observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What analyzes the shell commands of calls.
    pub fn analyzer(mut self, analyzer: Analyzer) -> Self {
        self.analyzer = analyzer;
        self
    }

    /// A variable of the host's own environment.
    pub fn host_variable(mut self, name: &str, value: &str) -> Self {
        self.secrets.push((name.to_owned(), value.to_owned()));
        self
    }

    pub async fn build(self) -> House {
        let clock = Arc::new(FakeClock::default());
        let shared_clock: Arc<dyn Clock> = Arc::<FakeClock>::clone(&clock);
        let store = match &self.database {
            None => Store::open(&self.workspace.state(), Arc::clone(&shared_clock), SUBJECTS, Durability::default())
                .await
                .unwrap(),
            Some(url) => Store::connect(url, Arc::clone(&shared_clock), SUBJECTS).await.unwrap(),
        };
        let executor = LocalExecutor::open(LocalConfig {
            root: self.workspace.root(),
            helper: self.helper,
            fence: self.fence,
            path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
            home: PathBuf::from("/home/agent"),
            temp: std::env::temp_dir(),
            sessions: "/var/tmp".into(),
            guard: self.workspace.state().join("guard"),
            env: Vec::new(),
            toolchains: Vec::new(),
            command_cgroup: None,
            remotes: self.remotes,
            limits: toolhost_sandbox::Limits::default(),
            durability: Durability::default(),
        })
        .unwrap();
        let root = executor.root().to_owned();
        let deployment = self.deploy.map(|(target, rules, key)| Deployment::new(root, target, rules, key));
        let registry = Arc::new(Registry::new((self.tools)(&store.database(), deployment.as_ref())).unwrap());
        let tightening = self.project_policy.as_deref().map(|text| Tightening::parse(text, &registry).unwrap());
        let profiles =
            Profiles::load(&registry, toolhost_tools::PROFILES, &[&self.operator], tightening.as_ref()).unwrap();
        let project = store.project(&self.workspace.root(), "ws", OWNER).await.unwrap();
        let redactor = Arc::new(Redactor::new(self.secrets));
        let ids = Arc::new(CountingIds::default());
        let gate = Gate::new(GateConfig {
            registry,
            profiles: Arc::new(profiles),
            executor: Arc::new(executor),
            deploys: deployment.map(|deployment| Arc::new(deployment) as Arc<dyn Deploys>),
            audit: store.audit(),
            file_log: store.file_log(),
            queue: Queue::new(store.asks(), store.audit(), store.people(), Arc::clone(&redactor)),
            asking: self.asking,
            members: Arc::new(Members::new(store.people(), Arc::clone(&shared_clock))),
            quotas: store.quotas(),
            redactor,
            analyzer: self.analyzer,
            clock: shared_clock,
            ids: Arc::<CountingIds>::clone(&ids),
            limits: self.limits,
            observer: self.observer,
        });
        House {
            workspace: self.workspace,
            gate,
            store,
            project,
            clock,
            ids,
            voice: self.voice,
            profile: self.profile,
            persona: self.persona,
        }
    }
}

impl House {
    /// A call by a model with the house's own profile, in the session `s1`.
    pub fn request(&self, tool: &str, arguments: Value) -> Call {
        Call {
            id: self.ids.call_id(),
            tool: tool.to_owned(),
            arguments,
            scope: Scope {
                user_id: USER,
                project_id: self.project.id,
                session_id: Some("s1".to_owned()),
                workflow_id: None,
                ticket_id: None,
            },
            caller: Caller {
                kind: CallerKind::Model,
                door: "test".into(),
                profile: self.profile.clone(),
                persona: self.persona.clone(),
            },
        }
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.run(self.request(tool, arguments)).await
    }

    /// As the caller for whom the tool is: a person where no model may.
    pub async fn call_rightly(&self, info: &ToolInfo, arguments: Value) -> Outcome {
        let mut call = self.request(&info.name, arguments);
        if info.facts.is_for_people() {
            call.caller.kind = CallerKind::Person;
        }
        self.run(call).await
    }

    pub async fn call_as(&self, profile: &str, tool: &str, arguments: Value) -> Outcome {
        let mut call = self.request(tool, arguments);
        profile.clone_into(&mut call.caller.profile);
        self.run(call).await
    }

    pub async fn run(&self, call: Call) -> Outcome {
        self.gate.call(call, self.hooks()).await
    }

    /// As every call of the house has them.
    pub fn hooks(&self) -> Hooks {
        let speaking = |voice| Speaking { voice, person: self.owner(), queue: self.gate.queue().clone() };
        let presenter = self.voice.clone().map(|voice| -> Arc<dyn Presenter> { Arc::new(speaking(voice)) });
        Hooks { presenter, ..Hooks::default() }
    }

    /// The person who owns the project.
    pub fn owner(&self) -> Person {
        Person { user_id: USER, project_id: self.project.id, name: OWNER.to_owned() }
    }

    /// The data of a call that must succeed.
    pub async fn data(&self, tool: &str, arguments: Value) -> Value {
        let outcome = self.call(tool, arguments).await;
        assert!(outcome.ok, "{tool}: {outcome:?}");
        outcome.data
    }

    /// All rows of the audit, as they are chained.
    pub async fn rows(&self) -> Vec<Value> {
        self.store.audit().flush().await.unwrap();
        let filter = Filter { limit: i64::MAX, ..Filter::default() };
        let rows = self.store.reader().audit(self.project.id, &filter).await.unwrap();
        rows.iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect()
    }

    /// The events of one call, in order: `started`, `finished`, …
    pub async fn events_of(&self, outcome: &Outcome) -> Vec<String> {
        let id = outcome.meta.call_id.as_str();
        let rows = self.rows().await;
        rows.iter().filter(|row| row["callId"] == id).map(|row| row["event"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn verify(&self) -> Verdict {
        self.store.audit().flush().await.unwrap();
        self.store.reader().verify_audit(self.project.id).await.unwrap()
    }
}
