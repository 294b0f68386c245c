//! Opening a host: everything that it needs is handed in here.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolhost_agent::SessionObserver;
use toolhost_contract::workspace::Error as WorkspaceError;
use toolhost_contract::workspace::{Executor, POLICY_FILE, ReadSpan, WsPath};
use toolhost_contract::{Clock, Deploys, Durability, IdSource, RandomIds, SystemClock};
use toolhost_deploy::{DeployKey, DeployRules, Deployment};
use toolhost_host::{
    Asking, CallObserver, Gate, GateConfig, Limits, Members, Profiles, Queue, Redactor, Registry, Tightening,
};
use toolhost_sandbox::{FenceChoice, LocalConfig, LocalExecutor};
use toolhost_store::{Database, Store};

use crate::connection::{Connection, is_unwritable, key_of};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::kit::Kit;
use crate::limits::{POLICY_BYTES_MAX, USER_DEFAULT};
use crate::terminal::Terminal;

/// The door that calls of the embedding program come through, as the audit names it.
const DOOR_DEFAULT: &str = "embedded";
/// `PATH` of commands.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";
/// Home of commands.
const HOME_DEFAULT: &str = "/home/agent";
/// Where commands have private temporary folders in the Landlock tier.
const TEMP_DEFAULT: &str = "/tmp";
/// Where `/tmp` and home of sessions are kept: on a disk, where `/tmp` may be memory.
const SESSIONS_DEFAULT: &str = "/var/tmp";
/// Below the state folder: what git obeys, to be restored after commands.
const GUARD_FOLDER: &str = "guard";

/// How a user proves who they are.
enum Proof {
    /// The program that embeds the host knows.
    None,
    Terminal(Terminal),
    OfVisitors,
}

/// What a program does with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Need {
    #[default]
    Writing,
    /// A database that cannot be written is opened to be read only.
    Reading,
}

impl Host {
    pub fn builder() -> Builder {
        Builder::default()
    }
}

/// Settings of a host. Only a database and a project (or a workspace) have no default.
#[must_use]
pub struct Builder {
    state: Option<PathBuf>,
    server: Option<String>,
    must_exist: bool,
    durability: Durability,
    need: Need,
    workspace: Option<PathBuf>,
    /// The folder that names the project where it is not on this machine.
    elsewhere: Option<PathBuf>,
    fence_program: Option<PathBuf>,
    fence: FenceChoice,
    local: Option<LocalConfig>,
    deploy: Option<(PathBuf, DeployRules, DeployKey)>,
    project: Option<String>,
    user: Option<String>,
    proof: Proof,
    door: Cow<'static, str>,
    profiles: String,
    profiles_of: String,
    secrets: Vec<(String, String)>,
    asking: Asking,
    limits: Limits,
    observer: Option<Arc<dyn CallObserver>>,
    session_observer: Option<Arc<dyn SessionObserver>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            state: None,
            server: None,
            must_exist: false,
            durability: Durability::default(),
            need: Need::Writing,
            workspace: None,
            elsewhere: None,
            fence_program: None,
            fence: FenceChoice::Auto,
            local: None,
            deploy: None,
            project: None,
            user: None,
            proof: Proof::None,
            door: DOOR_DEFAULT.into(),
            profiles: String::new(),
            profiles_of: "of this program".to_owned(),
            secrets: Vec::new(),
            asking: Asking::default(),
            limits: Limits::default(),
            observer: None,
            session_observer: None,
            clock: Arc::new(SystemClock::default()),
            ids: Arc::new(RandomIds),
        }
    }
}

impl Builder {
    /// The folder of the SQLite database; created if it does not exist. Never inside the workspace.
    pub fn state(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state = Some(folder.into());
        self
    }

    /// A PostgreSQL database that many hosts share, `postgres://USER@HOST:PORT/NAME`, instead of a file in the state folder.
    pub fn database(mut self, url: impl Into<String>) -> Self {
        self.server = Some(url.into());
        self
    }

    /// A state folder without a database is an error: it is known to have had one.
    pub fn must_exist(mut self, must_exist: bool) -> Self {
        self.must_exist = must_exist;
        self
    }

    /// What a write that was answered survives; a server survives what it is set up for.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    pub fn need(mut self, need: Need) -> Self {
        self.need = need;
        self
    }

    /// The folder that tools may work in, behind the strongest fence that holds here. Without one, tools for files, commands
    /// and git fail, and those for records and packages work.
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Some(folder.into());
        self
    }

    /// The project of a folder that is not on this machine, or is gone: its records, asks and packages are there, and tools for files,
    /// commands and git fail.
    pub fn workspace_elsewhere(mut self, folder: impl Into<PathBuf>) -> Self {
        self.elsewhere = Some(folder.into());
        self
    }

    /// The program that begins each fenced command: `toolhost-fence`, or a program whose `main` begins with
    /// [`fence_helper`](crate::fence_helper). It must not lie inside the workspace.
    pub fn fence_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.fence_program = Some(program.into());
        self
    }

    /// Another fence than the strongest that holds here.
    pub fn fence(mut self, fence: FenceChoice) -> Self {
        self.fence = fence;
        self
    }

    /// Where the workspace is deployed to, which of its files, and what seals the journal there.
    pub fn deploy_to(mut self, target: PathBuf, rules: DeployRules, key: DeployKey) -> Self {
        self.deploy = Some((target, rules, key));
        self
    }

    /// A workspace with all its settings: limits of commands, remotes. Replaces [`Builder::workspace`],
    /// [`Builder::fence_program`] and [`Builder::fence`].
    pub fn local(mut self, config: LocalConfig) -> Self {
        self.local = Some(config);
        self
    }

    /// The project's name. A new project belongs to the user who opens it first. Without a name, the project is that of the
    /// workspace's path.
    pub fn project(mut self, name: impl Into<String>) -> Self {
        self.project = Some(name.into());
        self
    }

    /// The user in whose name this host acts; if left out: `local`, or who has signed in where [`Builder::terminal`] says.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.user = Some(name.into());
        self
    }

    /// On a shared database the user is the person whose login of a command line this is, and nobody else. In a file, the file's owner is
    /// proof enough.
    pub fn terminal(mut self, terminal: Terminal) -> Self {
        self.proof = Proof::Terminal(terminal);
        self
    }

    /// Each caller is authenticated by the program, which calls [`Host::as_user`]: where [`Builder::user`] names nobody, the host itself has
    /// the name of an owner of the project.
    pub fn for_visitors(mut self) -> Self {
        self.proof = Proof::OfVisitors;
        self
    }

    /// How the audit names where calls come from; `embedded` if left out.
    pub fn door(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.door = name.into();
        self
    }

    /// Further profiles, as `[profiles.NAME]` tables in TOML.
    pub fn profiles(mut self, toml: impl Into<String>) -> Self {
        self.profiles = toml.into();
        self
    }

    /// Where the text of [`Builder::profiles`] comes from, for errors: `of config.toml`.
    pub fn profiles_of(mut self, whose: impl Into<String>) -> Self {
        self.profiles_of = whose.into();
        self
    }

    /// Names and values, usually environment variables: values whose names look like secrets are removed from answers, from
    /// prompts and from the audit.
    pub fn redact(mut self, pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        self.secrets.extend(pairs);
        self
    }

    /// How people are asked for approvals, and what happens where nobody answers.
    pub fn asking(mut self, asking: Asking) -> Self {
        self.asking = asking;
        self
    }

    /// Limits of calls.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Who is told how each call ends, to count calls. It is called on the task of the call and must not wait for anything.
    pub fn observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Who is told of each run of a session and each reply of its model, to trace them.
    pub fn session_observer(mut self, observer: Arc<dyn SessionObserver>) -> Self {
        self.session_observer = Some(observer);
        self
    }

    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Opens everything.
    ///
    /// # Errors
    /// If a setting is missing or wrong, or the database, the workspace or the profiles cannot be opened.
    pub async fn open(self) -> Result<Host> {
        let local = self.local_executor()?;
        let deployment = self.deployment(local.as_deref());
        let database = Database::default();
        let tools = crate::tools(&database, deployment.as_ref());
        // Beside the disk, not after it: an agent waits for this.
        let registry = tokio::task::spawn_blocking(move || Registry::new(tools));
        let connection = self.connect().await?;
        let store = connection.store();
        store.give_to(&database);
        let kit = self.kit_with(registry.await??, local, deployment).await?;
        if let Some(probing) = kit.local.clone() {
            // Probing the fence takes a few milliseconds, which pass while the caller does something else.
            tokio::spawn(async move { probing.report().await });
        }
        let gate = self.gate(store, &kit);
        // A database of this machine, and a project that is this very folder: the calls ran here, and their processes have
        // ended.
        let ran_here = self.server.is_none() && self.project.is_none();
        if self.need == Need::Writing
            && ran_here
            && let Err(error) = gate.decide_unknown(&store.reader(), connection.project().id).await
        {
            tracing::warn!(%error, "calls that a crash left unknown stay so");
        }
        let executor = kit.executor();
        Ok(Host::new(connection, gate, kit, executor, (self.asking, self.clock, self.session_observer)))
    }

    #[expect(clippy::disallowed_methods, reason = "the gate itself is handed the analyzer here")]
    fn gate(&self, store: &Store, kit: &Kit) -> Arc<Gate> {
        let redactor = Arc::new(self.redactor());
        Gate::new(GateConfig {
            registry: Arc::clone(&kit.registry),
            profiles: Arc::clone(&kit.profiles),
            executor: kit.executor(),
            deploys: kit.deployment.as_ref().map(|deployment| Arc::new(deployment.clone()) as Arc<dyn Deploys>),
            audit: store.audit(),
            file_log: store.file_log(),
            queue: Queue::new(store.asks(), store.audit(), store.people(), Arc::clone(&redactor)),
            asking: self.asking,
            members: Arc::new(Members::new(store.people(), Arc::clone(&self.clock))),
            quotas: store.quotas(),
            redactor,
            analyzer: Arc::new(toolhost_host::analyze),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
            limits: self.limits,
            observer: self.observer.clone(),
        })
    }

    fn redactor(&self) -> Redactor {
        Redactor::new(self.secrets.iter().cloned())
    }

    /// Opens the database alone, finds the project in it, and the user.
    ///
    /// # Errors
    /// If the database cannot be opened, or has no such user.
    pub async fn connect(&self) -> Result<Connection> {
        let (store, unrecorded) = self.open_store().await?;
        // Folders of different machines may have one path; a name says which are one project.
        let root = match &self.elsewhere {
            Some(root) => Some(root.clone()),
            None => self.root()?,
        };
        let (key, name) = match (self.project.as_ref().filter(|_| self.elsewhere.is_none()), root) {
            (Some(name), _) => (key_of(name)?, name.clone()),
            (None, Some(root)) => {
                let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
                (root, name.unwrap_or_else(|| "project".to_owned()))
            }
            (None, None) => return Err(Error::NoProject),
        };
        let user = self.proven(&store, &key).await?;
        let project = store.project(&key, &name, &user).await?;
        let redactor = Arc::new(self.redactor());
        let store = Arc::new(store);
        Connection::new(store, project, &user, (self.door.clone(), Arc::clone(&self.ids), redactor), unrecorded).await
    }

    /// The user, as far as they have to prove who they are.
    async fn proven(&self, store: &Store, key: &Path) -> Result<String> {
        let named = self.user.as_deref();
        let said = named.unwrap_or(USER_DEFAULT);
        match &self.proof {
            Proof::OfVisitors if named.is_none() => Ok(store.owner_of(key).await?.unwrap_or_else(|| said.to_owned())),
            _ if self.server.is_none() => Ok(said.to_owned()),
            Proof::Terminal(terminal) => Ok(terminal.login(store, named).await?.user),
            Proof::OfVisitors | Proof::None => Ok(said.to_owned()),
        }
    }

    /// The workspace's folder, canonical.
    fn root(&self) -> Result<Option<PathBuf>> {
        let Some(root) = self.local.as_ref().map(|config| &config.root).or(self.workspace.as_ref()) else {
            return Ok(None);
        };
        let found = root.canonicalize();
        found.map(Some).map_err(|source| Error::Workspace { root: root.clone(), source })
    }

    /// The store, and why it can only be read.
    async fn open_store(&self) -> Result<(Store, Option<toolhost_store::Error>)> {
        let clock = || Arc::clone(&self.clock);
        let may_read = |error: &toolhost_store::Error| self.need == Need::Reading && is_unwritable(error);
        if let Some(url) = &self.server {
            return match Store::connect(url, clock(), crate::SUBJECTS).await {
                Err(error) if may_read(&error) => {
                    Ok((Store::connect_reading(url, clock(), crate::SUBJECTS).await?, Some(error)))
                }
                connected => Ok((connected?, None)),
            };
        }
        let state = self.state.as_ref().ok_or(Error::NoDatabase)?;
        let opened = match self.must_exist {
            true => Store::open_known(state, clock(), crate::SUBJECTS, self.durability).await,
            false => Store::open(state, clock(), crate::SUBJECTS, self.durability).await,
        };
        match opened {
            Err(error) if may_read(&error) => match Store::open_reading(state, clock(), crate::SUBJECTS).await {
                Ok(store) => Ok((store, Some(error))),
                // Nothing can be read there either, and why is the first thing that went wrong.
                Err(toolhost_store::Error::Missing { .. }) => Err(error.into()),
                // What keeps it from being read, too, is the better thing to say.
                Err(error) => Err(error.into()),
            },
            opened => Ok((opened?, None)),
        }
    }

    /// Opens the workspace and loads the profiles, without a database: its tools find no records.
    ///
    /// # Errors
    /// If the workspace cannot be opened, or a profile is wrong.
    pub async fn kit(&self) -> Result<Kit> {
        let local = self.local_executor()?;
        let deployment = self.deployment(local.as_deref());
        self.kit_with(crate::registry(&Database::default())?, local, deployment).await
    }

    async fn kit_with(
        &self,
        registry: Registry,
        local: Option<Arc<LocalExecutor>>,
        deployment: Option<Deployment>,
    ) -> Result<Kit> {
        let registry = Arc::new(registry);
        if let Some(local) = &local
            && let Err(error) = local.settle().await
        {
            tracing::error!(%error, "what a former host's commands have added to git's index");
        }
        let tightening = match &local {
            Some(local) => tightening(&**local, &registry).await?,
            None => None,
        };
        let profiles = Profiles::load(&registry, crate::PROFILES, &[&self.profiles], tightening.as_ref())
            .map_err(|source| Error::Profiles { whose: self.profiles_of.clone(), source })?;
        Ok(Kit { registry, profiles: Arc::new(profiles), local, deployment })
    }

    fn deployment(&self, local: Option<&LocalExecutor>) -> Option<Deployment> {
        let ((target, rules, key), local) = (self.deploy.clone()?, local?);
        Some(Deployment::new(local.root().to_owned(), target, rules, key))
    }

    fn local_executor(&self) -> Result<Option<Arc<LocalExecutor>>> {
        let config = match (&self.local, self.root()?) {
            (Some(config), _) => config.clone(),
            (None, Some(root)) => self.local_config(root)?,
            (None, None) => return Ok(None),
        };
        let root = config.root.clone();
        let opened = LocalExecutor::open(config).map_err(|source| Error::Workspace { root, source })?;
        Ok(Some(Arc::new(opened)))
    }

    fn local_config(&self, root: PathBuf) -> Result<LocalConfig> {
        let state = self.state.clone().ok_or(Error::NoState)?;
        // A folder that does not exist yet is where its parent is.
        let real = state.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
        let leads_up = state.components().any(|part| part == std::path::Component::ParentDir);
        if real.is_some_and(|real| real.starts_with(&root)) || (!leads_up && state.starts_with(&root)) {
            return Err(Error::StateInWorkspace { state });
        }
        Ok(LocalConfig {
            root,
            helper: self.fence_program.clone().ok_or(Error::NoFenceProgram)?,
            fence: self.fence,
            path: PATH_DEFAULT.to_owned(),
            home: PathBuf::from(HOME_DEFAULT),
            temp: PathBuf::from(TEMP_DEFAULT),
            sessions: PathBuf::from(SESSIONS_DEFAULT),
            guard: state.join(GUARD_FOLDER),
            env: Vec::new(),
            toolchains: Vec::new(),
            command_cgroup: None,
            remotes: Vec::new(),
            limits: toolhost_sandbox::Limits::default(),
            durability: self.durability,
        })
    }
}

/// The project's own policy, as it is now: what an agent writes there later changes nothing.
async fn tightening(executor: &dyn Executor, registry: &Registry) -> Result<Option<Tightening>> {
    let path = WsPath::parse(POLICY_FILE).map_err(|error| Error::Policy { source: error.into() })?;
    match executor.read(&path, ReadSpan { start: 0, bytes_max: POLICY_BYTES_MAX }).await {
        Ok(content) if content.size > POLICY_BYTES_MAX => Err(Error::PolicySize),
        Ok(content) => Ok(Some(Tightening::parse(&String::from_utf8_lossy(&content.bytes), registry)?)),
        Err(WorkspaceError::NotFound { .. }) => Ok(None),
        Err(source) => Err(Error::Policy { source }),
    }
}
