//! What the operator says: flags, `TOOLHOST_*` variables, and the configuration file; in this order of precedence.
//!
//! None of it is read from the workspace: an agent can write there.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::command_limits::Commands;
use crate::deploy_target;
use crate::keys::{KeyPlace, Vault};
use crate::known::Known;
use crate::model::ModelSettings;
use crate::notify::NotifyTable;
use crate::print::ColorFlag;
use crate::remotes::{self, RemoteTable};
use crate::server_table::ServerTable;
use crate::size::Size;
use crate::{terminals, toml_file};
use anyhow::{Context, bail};
use etcetera::BaseStrategy;
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use toolhost::ModelConfig;
use toolhost_contract::workspace::Remote;
use toolhost_contract::{Clock, Durability, SystemClock};
use toolhost_deploy::{DeployKey, DeployRules, Orphans};
use toolhost_host::{Asking, Unattended};
use toolhost_sandbox::{FenceChoice, Limits};

/// Beside the configuration: the keys of `toolhost key set`.
const KEYS_FOLDER: &str = "keys";

/// Toolchains that usually live below the home, which commands do not see otherwise. Read-only.
const HOME_TOOLCHAINS: &[&str] = &[
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".rustup",
    ".pyenv",
    ".nvm",
    ".volta",
    ".asdf",
    ".local/bin",
    ".local/lib",
    ".local/share/mise",
    ".local/share/uv",
    ".local/share/pnpm",
    ".bun/bin",
    ".deno/bin",
    ".sdkman",
    "go",
];
/// Variables that say where a toolchain is; handed to commands as they are.
const TOOLCHAIN_VARIABLES: &[&str] =
    &["RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOROOT"];
/// Requests of one client that may be served at once.
pub(crate) const CALLS_MAX: std::ops::RangeInclusive<usize> = 1..=1024;
/// Longest time that a person is waited for: thirty days.
const EXPIRE_SECONDS_MAX: u64 = 30 * 24 * 3600;
/// What seals the journals of deploys.
const DEPLOY_KEY_FILE: &str = "deploy.key";
/// What signs checkpoints of the audit.
const AUDIT_KEY_FILE: &str = "audit.key";
/// The machine's user, who needs no name.
pub(crate) const USER_DEFAULT: &str = "local";
/// `PATH` of commands where the operator has none.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Options of every command.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Settings {
    /// The workspace: the folder that tools may work in [default: the project that the working directory is in, else that directory]
    #[arg(long, global = true, value_name = "DIR", env = "TOOLHOST_ROOT")]
    root: Option<PathBuf>,
    /// Where the project's database is kept [default: below ~/.local/share/toolhost]
    #[arg(long, global = true, value_name = "DIR", env = "TOOLHOST_STATE")]
    state: Option<PathBuf>,
    /// A PostgreSQL database that hosts share, instead of a file in the state folder
    #[arg(long, global = true, value_name = "URL", env = "TOOLHOST_DATABASE", hide_env_values = true)]
    database: Option<String>,
    /// The project's name in a shared database; its folder's path otherwise
    #[arg(long, global = true, value_name = "NAME", env = "TOOLHOST_PROJECT")]
    project: Option<String>,
    /// In whose name: a user of the database; of a shared one, the user you are signed in as
    #[arg(long, global = true, value_name = "NAME", env = "TOOLHOST_USER")]
    user: Option<String>,
    /// The file with your login to a shared database [default: below ~/.local/share/toolhost]
    #[arg(long, global = true, value_name = "FILE", env = "TOOLHOST_LOGIN_FILE")]
    login_file: Option<PathBuf>,
    /// The configuration file [default: ~/.config/toolhost/config.toml]
    #[arg(long, global = true, value_name = "FILE", env = "TOOLHOST_CONFIG")]
    config: Option<PathBuf>,
    /// What happens to a call that needs a person where nobody can be asked [default: wait]
    #[arg(long, global = true, value_name = "WHAT", env = "TOOLHOST_UNATTENDED", hide_possible_values = false)]
    unattended: Option<UnattendedFlag>,
    /// Your project folder, which finished work is deployed to
    #[arg(long, global = true, value_name = "DIR", env = "TOOLHOST_DEPLOY_TO")]
    deploy_to: Option<PathBuf>,
    /// The fence around commands; `auto` takes the strongest that holds here
    #[arg(long, global = true, value_name = "TIER", env = "TOOLHOST_SANDBOX")]
    sandbox: Option<Sandbox>,
    /// Most memory that a command's processes may use together, such as `8G` [default: half of the machine's]
    #[arg(long, global = true, value_name = "SIZE", env = "TOOLHOST_COMMAND_MEMORY")]
    command_memory: Option<Size>,
    /// Delegated cgroup (v2) in which the kernel enforces that limit [default: the host's own, if it is delegated]
    #[arg(long, global = true, value_name = "DIR", env = "TOOLHOST_COMMAND_CGROUP")]
    command_cgroup: Option<PathBuf>,
    /// What a write that was answered survives: the end of any `process`, or a `power` failure, too [default: process]
    #[arg(long, global = true, value_name = "WHAT", env = "TOOLHOST_DURABILITY", hide_possible_values = false)]
    durability: Option<DurabilityFlag>,
    /// Print JSON; errors, too, which go to standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours [default: auto, which is where a terminal is and NO_COLOR is not]
    #[arg(long, global = true, value_name = "WHEN", hide_possible_values = false)]
    pub(crate) color: Option<ColorFlag>,
    /// Log to standard error what the host does; twice: in detail. TOOLHOST_LOG names the level itself
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print answers, questions and errors only
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Times as RFC 3339 in UTC, also at a terminal, where they are else those of its clock
    #[arg(long, global = true)]
    pub(crate) utc: bool,
    /// A place made for once, which nobody will miss.
    #[arg(skip)]
    passing: bool,
    /// The working directory is the workspace, whatever project it is in: an agent gets no more than the folder it was started in.
    #[arg(skip)]
    stays_here: bool,
}

#[derive(Clone, Copy, clap::ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum UnattendedFlag {
    /// It waits in the queue of `toolhost review`
    Wait,
    Deny,
}

/// Where finished work goes, and what of it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Deploy {
    /// Your project folder, which finished work is deployed to.
    to: Option<PathBuf>,
    /// Extensions (`.html`) and names (`Dockerfile`) that ship, instead of the usual ones.
    ship: Option<Vec<String>>,
    /// As `ship`, besides the usual ones.
    #[serde(default)]
    ship_also: Vec<String>,
    /// Globs of paths that are never deleted, besides the usual ones.
    #[serde(default)]
    protect: Vec<String>,
    /// Which files of the target are deleted: `ours`, what an earlier deploy brought and nobody has changed since; or `everything`
    /// that is not in the workspace.
    #[schemars(with = "Option<String>")]
    orphans: Option<Orphans>,
    /// Most files of a deploy.
    files_max: Option<usize>,
}

/// How people are asked.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Approvals {
    /// What happens to a call that needs a person where nobody can be asked.
    unattended: Option<UnattendedFlag>,
    /// How long there is for an answer and its use, from the question on. A late answer can be used for a minute more.
    expire_seconds: Option<u64>,
    /// How long a call waits for an answer from elsewhere before it comes back as pending.
    hold_seconds: Option<u64>,
    /// Questions of one session that may be open at once.
    session_open_max: Option<i64>,
    /// What they may keep in all: their calls, and what people are shown of them.
    session_bytes_max: Option<i64>,
    /// Whether the agent's client may answer for the person, where it can ask one.
    #[serde(default)]
    client: bool,
    /// Whether somebody other than the user in whose name a call is made must allow it.
    #[serde(default)]
    second_person: bool,
}

/// How a client is served.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mcp {
    /// Calls of one client that are served at once, 1 to 1024.
    calls_max: Option<usize>,
}

/// What the configuration says of clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientSettings {
    pub(crate) approvals: bool,
    pub(crate) calls_max: Option<usize>,
}

#[derive(Clone, Copy, clap::ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Sandbox {
    Auto,
    Full,
    Landlock,
    Off,
}

/// [`Durability`], as the operator writes it.
#[derive(Clone, Copy, clap::ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DurabilityFlag {
    Process,
    Power,
}

impl From<DurabilityFlag> for Durability {
    fn from(flag: DurabilityFlag) -> Self {
        match flag {
            DurabilityFlag::Process => Self::Process,
            DurabilityFlag::Power => Self::Power,
        }
    }
}

/// The configuration file, but for its profiles.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct File {
    /// The fence around commands; `auto` takes the strongest that holds here.
    sandbox: Option<Sandbox>,
    /// How people are asked.
    #[serde(default)]
    approvals: Approvals,
    /// How a client is served.
    #[serde(default)]
    mcp: Mcp,
    /// Where finished work goes, and what of it.
    #[serde(default)]
    deploy: Deploy,
    /// Limits of commands.
    #[serde(default)]
    commands: Commands,
    /// What a write that was answered survives: the end of any `process`, or a `power` failure, too. Approvals, deploys and applied
    /// change sets survive both.
    durability: Option<DurabilityFlag>,
    /// A PostgreSQL database that hosts share, as a URL, instead of a file in the state folder.
    database: Option<String>,
    /// The project's name in a shared database; its folder's path otherwise.
    project: Option<String>,
    /// In whose name: a user of the database.
    user: Option<String>,
    /// Further folders that commands may read.
    #[serde(default)]
    toolchains: Vec<PathBuf>,
    /// Further variables for commands.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The model of `toolhost run` where none is named.
    model: Option<String>,
    /// What is known of models, by their specification.
    #[serde(default)]
    models: BTreeMap<String, ModelConfig>,
    /// Where keys are kept that the environment does not have, by their names.
    #[serde(default)]
    keys: BTreeMap<String, KeyPlace>,
    /// Which other key stands for one in a project, by the project's key and the name of the key.
    #[serde(default)]
    project_keys: BTreeMap<String, BTreeMap<String, String>>,
    /// Who is told of asks, besides those who look.
    #[serde(default)]
    notify: NotifyTable,
    /// How `toolhost serve` serves.
    #[serde(default)]
    server: ServerTable,
    /// Remotes that git tools may use.
    #[serde(default)]
    remotes: Vec<RemoteTable>,
    /// Tables of profiles, as the host reads them.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    profiles: toml::Table,
}

/// The JSON Schema of the configuration file, profiles included.
pub(crate) fn schema() -> serde_json::Value {
    let mut schema: serde_json::Value = schemars::schema_for!(File).into();
    let profiles = toolhost_host::Profiles::schema();
    schema["title"] = "The configuration of Toolhost, config.toml".into();
    schema["properties"]["profiles"] = profiles["properties"]["profiles"].clone();
    for (name, part) in profiles["$defs"].as_object().into_iter().flatten() {
        schema["$defs"][name] = part.clone();
    }
    schema
}

/// Whether a configuration file could be read, as far as its text tells.
pub(crate) fn check_file(table: toml::Table) -> anyhow::Result<()> {
    let _: File = table
        .try_into()
        .map_err(|error: toml::de::Error| anyhow::anyhow!(toml_file::without_value(error.message())))?;
    Ok(())
}

/// What was said, resolved.
pub(crate) struct Resolved {
    /// Canonical.
    pub(crate) root: PathBuf,
    /// The project that the working directory is in, where it has none of its own.
    pub(crate) project_above: Option<PathBuf>,
    pub(crate) state: PathBuf,
    /// What all projects of this machine's user have in common.
    pub(crate) data: PathBuf,
    /// Where what git obeys is kept while commands run: the same for all hosts of a user.
    pub(crate) guard: PathBuf,
    /// `None` where a missing database is nothing to wonder about.
    pub(crate) known: Option<Known>,
    pub(crate) database: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) user: Option<String>,
    /// Holds the login to a shared database.
    pub(crate) login: Option<PathBuf>,
    pub(crate) config_file: PathBuf,
    pub(crate) fence: FenceChoice,
    pub(crate) limits: Limits,
    pub(crate) durability: Durability,
    pub(crate) command_cgroup: Option<PathBuf>,
    pub(crate) asking: Asking,
    pub(crate) client: ClientSettings,
    pub(crate) deploy: Option<(PathBuf, DeployRules, DeployKey)>,
    pub(crate) remotes: Vec<Remote>,
    /// Beside the configuration: what signs checkpoints of the audit.
    pub(crate) audit_key: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) path: String,
    pub(crate) toolchains: Vec<PathBuf>,
    pub(crate) env: Vec<(String, String)>,
    /// The operator's profile tables, as TOML.
    pub(crate) profiles: String,
}

impl Settings {
    /// For a workspace given as an argument instead of `--root`.
    pub(crate) fn with_root(&self, root: Option<PathBuf>) -> Self {
        Self {
            root: root.or_else(|| self.root.clone()),
            state: self.state.clone(),
            database: self.database.clone(),
            project: self.project.clone(),
            user: self.user.clone(),
            login_file: self.login_file.clone(),
            config: self.config.clone(),
            unattended: self.unattended,
            deploy_to: self.deploy_to.clone(),
            sandbox: self.sandbox,
            command_memory: self.command_memory,
            command_cgroup: self.command_cgroup.clone(),
            durability: self.durability,
            json: self.json,
            color: self.color,
            verbose: self.verbose,
            quiet: self.quiet,
            utc: self.utc,
            passing: self.passing,
            stays_here: self.stays_here,
        }
    }

    /// The configuration file, and what it says.
    fn read(&self) -> anyhow::Result<(PathBuf, File)> {
        let config = self.config_file(&folders()?);
        let file = read_config(&config, self.config.is_some())?;
        Ok((config, file))
    }

    /// The shared database, if one was named.
    pub(crate) fn shared_database(&self) -> anyhow::Result<Option<String>> {
        let (_, file) = self.read()?;
        Ok(self.database.clone().or(file.database))
    }

    /// In whose name things are done in a database of this machine.
    pub(crate) fn user_name(&self) -> anyhow::Result<String> {
        Ok(self.named_user()?.unwrap_or_else(|| USER_DEFAULT.to_owned()))
    }

    /// The user who was named.
    pub(crate) fn named_user(&self) -> anyhow::Result<Option<String>> {
        Ok(self.user.clone().or(self.read()?.1.user))
    }

    /// How `toolhost serve` serves.
    pub(crate) fn server(&self) -> anyhow::Result<ServerTable> {
        Ok(self.read()?.1.server)
    }

    /// Holds the login to a shared database.
    pub(crate) fn login_file(&self, url: &str) -> anyhow::Result<PathBuf> {
        terminals::file(self.login_file.as_deref(), url, &folders()?.data_dir().join("toolhost"))
    }

    /// Where a server of this machine keeps what belongs to none of its projects.
    pub(crate) fn server_state(&self) -> anyhow::Result<PathBuf> {
        let folders = folders()?;
        let state = self.state.as_ref().map(std::path::absolute).transpose()?;
        Ok(state.unwrap_or_else(|| folders.data_dir().join("toolhost")).join("server"))
    }

    /// Whether a project was named, and not only the working directory is in one.
    pub(crate) fn names_a_project(&self) -> bool {
        self.root.is_some() || self.state.is_some() || self.project.is_some()
    }

    /// For what lets an agent work.
    pub(crate) fn staying_here(&self) -> Self {
        Self { stays_here: true, ..self.with_root(None) }
    }

    /// What was typed, without what the configuration file says.
    pub(crate) fn built_in(&self) -> Self {
        Self { config: Some(NO_CONFIGURATION.into()), ..self.with_root(None) }
    }

    /// Another place altogether, behind the same fence: nothing else that was said holds there.
    pub(crate) fn elsewhere(&self, root: PathBuf, state: PathBuf, config: PathBuf) -> Self {
        Self {
            root: Some(root),
            state: Some(state),
            database: None,
            project: None,
            user: None,
            login_file: None,
            config: Some(config),
            unattended: None,
            deploy_to: None,
            sandbox: self.sandbox,
            command_memory: self.command_memory,
            command_cgroup: self.command_cgroup.clone(),
            durability: self.durability,
            json: self.json,
            color: self.color,
            verbose: self.verbose,
            quiet: self.quiet,
            utc: self.utc,
            passing: true,
            stays_here: true,
        }
    }

    /// The operator's profile tables alone: they need no workspace.
    pub(crate) fn profiles(&self) -> anyhow::Result<String> {
        let folders = folders()?;
        profiles_text(read_config(&self.config_file(&folders), self.config.is_some())?.profiles)
    }

    /// What the operator says of models, with the keys of the project that this key names.
    pub(crate) fn models_of(&self, project: &str) -> anyhow::Result<ModelSettings> {
        let mut models = self.models()?;
        models.vault.instead = self.read()?.1.project_keys.remove(project).unwrap_or_default();
        Ok(models)
    }

    /// What the operator says of models, whatever the project.
    pub(crate) fn models(&self) -> anyhow::Result<ModelSettings> {
        let (config, file) = self.read()?;
        let folder = keys_folder(&config);
        let mut others: Vec<String> = file.remotes.iter().filter_map(|remote| remote.token.clone()).collect();
        others.extend(file.notify.key_name().map(str::to_owned));
        others.extend(file.project_keys.into_values().flat_map(BTreeMap::into_values));
        Ok(ModelSettings {
            default: file.model,
            configs: file.models,
            others,
            vault: Vault { places: file.keys, folder, instead: BTreeMap::new() },
        })
    }

    /// The webhook that the configuration names, and where its key is.
    pub(crate) fn notify(&self) -> anyhow::Result<(NotifyTable, Vault)> {
        let (config, file) = self.read()?;
        let vault = Vault { places: file.keys, folder: keys_folder(&config), instead: BTreeMap::new() };
        Ok((file.notify, vault))
    }

    fn config_file(&self, folders: &impl BaseStrategy) -> PathBuf {
        self.config.clone().unwrap_or_else(|| folders.config_dir().join("toolhost/config.toml"))
    }

    /// Where the projects of this machine's user are, none of them named.
    pub(crate) fn projects(&self) -> anyhow::Result<PathBuf> {
        if self.state.is_some() || self.database.is_some() || self.project.is_some() {
            return Err(crate::Usage::error(
                "the projects of this machine are those without --state, --database and --project",
            ));
        }
        let folders = folders()?;
        Ok(projects_of(&folders.data_dir().join("toolhost")))
    }

    pub(crate) fn resolve(&self) -> anyhow::Result<Resolved> {
        let folders = folders()?;
        let projects = projects_of(&folders.data_dir().join("toolhost"));
        let mut project_above = None;
        let root = match &self.root {
            Some(root) => root.clone(),
            None => {
                let here = std::env::current_dir()
                    .context("the working directory does not exist: name the workspace with --root DIR")?;
                let is_free = self.state.is_none() && self.database.is_none();
                project_above = if is_free { project_above_of(&here, &projects) } else { None };
                project_above.clone().filter(|_| !self.stays_here).unwrap_or(here)
            }
        };
        let root = root.canonicalize().with_context(|| format!("the workspace {} cannot be opened", root.display()))?;
        if !root.is_dir() {
            bail!("the workspace {} is not a folder", root.display());
        }
        let resolved = self.resolve_at(root, project_above)?;
        keep_apart(&resolved.root, &resolved.state, &resolved.config_file)?;
        Ok(resolved)
    }

    /// What was said, for a folder that may not be there: nobody works in it.
    pub(crate) fn resolve_at(&self, root: PathBuf, project_above: Option<PathBuf>) -> anyhow::Result<Resolved> {
        is_set(&SystemClock::default())?;
        let folders = folders()?;
        let data = folders.data_dir().join("toolhost");
        let config_file = self.config_file(&folders);
        let file = read_config(&config_file, self.config.is_some())?;
        let state = match &self.state {
            Some(state) => std::path::absolute(state)?,
            None => projects_of(&data).join(folder_name(&root)),
        };
        // One for all hosts of a user; where that would be in the workspace, beside the state.
        let guard = if data.starts_with(&root) { state.join("guard") } else { data.join("guard") };
        // What stands in the workspace, an agent could change.
        let known =
            (!self.passing && !data.starts_with(&root)).then(|| Known::new(&data, &state, &folder_name(&state)));
        // A home that is the whole file system (`docker -u`) cannot be replaced by an empty one.
        let home = folders.home_dir().to_owned();
        let home = if home.parent().is_none() { PathBuf::from("/home/agent") } else { home };
        let mut toolchains: Vec<PathBuf> = HOME_TOOLCHAINS.iter().map(|name| home.join(name)).collect();
        let mut env = Vec::new();
        for name in TOOLCHAIN_VARIABLES {
            if let Ok(value) = std::env::var(name) {
                toolchains.push(PathBuf::from(&value));
                env.push(((*name).to_owned(), value));
            }
        }
        toolchains.extend(file.toolchains);
        toolchains
            .retain(|path| path.is_absolute() && path.exists() && !root.starts_with(path) && !path.starts_with(&root));
        let mut seen = std::collections::HashSet::new();
        toolchains.retain(|path| seen.insert(path.clone()));
        env.extend(file.env);
        let vault = Vault { places: file.keys, folder: keys_folder(&config_file), instead: BTreeMap::new() };
        let database = self.database.clone().or(file.database);
        let login =
            database.as_deref().map(|url| terminals::file(self.login_file.as_deref(), url, &data)).transpose()?;
        Ok(Resolved {
            login,
            path: commands_path(&root),
            fence: choice(self.sandbox.or(file.sandbox)),
            limits: file.commands.limits(self.command_memory)?,
            durability: self.durability.or(file.durability).map(Durability::from).unwrap_or_default(),
            command_cgroup: self.command_cgroup.clone().or(file.commands.cgroup),
            asking: asking(self.unattended, &file.approvals)?,
            deploy: deploy(self.deploy_to.clone(), file.deploy, &data, (&root, folders.home_dir()))?,
            known,
            client: client(&file.approvals, &file.mcp)?,
            remotes: remotes::granted(&file.remotes, &vault, folders.home_dir())?,
            profiles: profiles_text(file.profiles)?,
            database,
            project: self.project.clone().or(file.project),
            user: self.user.clone().or(file.user),
            guard,
            root,
            project_above,
            state,
            data,
            audit_key: config_file.with_file_name(AUDIT_KEY_FILE),
            config_file,
            home,
            toolchains,
            env,
        })
    }
}

/// A configuration file that says nothing.
pub(crate) const NO_CONFIGURATION: &str = "/dev/null";

/// Where a user's programs keep their files.
fn folders() -> anyhow::Result<impl BaseStrategy> {
    etcetera::choose_base_strategy().context("the home folder is not known: set HOME")
}

/// The state folders of projects, below what they have in common.
pub(crate) fn projects_of(data: &Path) -> PathBuf {
    data.join("projects")
}

fn keys_folder(config_file: &Path) -> PathBuf {
    config_file.parent().unwrap_or(Path::new(".")).join(KEYS_FOLDER)
}

/// A clock that stands before 1970 is not set: what is written by it could not be sorted, and nothing would end in time.
fn is_set(clock: &dyn Clock) -> anyhow::Result<()> {
    if clock.unix_ms() <= 0 {
        bail!("this machine's clock says a time before 1970: set it, then try again");
    }
    Ok(())
}

fn deploy(
    flag: Option<PathBuf>,
    file: Deploy,
    data: &Path,
    (root, home): (&Path, &Path),
) -> anyhow::Result<Option<(PathBuf, DeployRules, DeployKey)>> {
    let Some(to) = flag.or(file.to) else { return Ok(None) };
    let to = std::path::absolute(to)?;
    deploy_target::check(&to, home)?;
    let mut rules = DeployRules::default();
    rules.ship = file.ship.unwrap_or(rules.ship);
    rules.ship.extend(file.ship_also);
    rules.protect.extend(file.protect);
    rules.orphans = file.orphans.unwrap_or(rules.orphans);
    rules.files_max = file.files_max.unwrap_or(rules.files_max);
    Ok(Some((to, rules, deploy_key(data, root)?)))
}

/// One key for all projects of this user: several of them may be deployed to one folder.
fn deploy_key(data: &Path, root: &Path) -> anyhow::Result<DeployKey> {
    let file = data.join(DEPLOY_KEY_FILE);
    if data.starts_with(root) {
        bail!(
            "the key of deploys {} would be inside the workspace: choose a project folder with --root",
            file.display()
        );
    }
    let read = || std::fs::read_to_string(&file).ok().and_then(|text| hex::decode(text.trim()).ok()?.try_into().ok());
    if let Some(key) = read() {
        return Ok(DeployKey::new(key));
    }
    std::fs::create_dir_all(data).with_context(|| data.display().to_string())?;
    // Random enough: each id has 74 random bits. Whole before it has its name, and the first one stays.
    let mut hash = Sha256::new();
    for _ in 0..8 {
        hash.update(toolhost_contract::IdSource::call_id(&toolhost_contract::RandomIds).as_str());
    }
    let made = tempfile::NamedTempFile::new_in(data).context("the key of deploys")?;
    std::fs::write(made.path(), hex::encode(hash.finalize()))?;
    // Somebody else's, made at the same moment, is as good.
    let _ = made.persist_noclobber(&file);
    read().map(DeployKey::new).with_context(|| format!("{} is not a key of deploys: move it away", file.display()))
}

fn asking(flag: Option<UnattendedFlag>, file: &Approvals) -> anyhow::Result<Asking> {
    let unattended = match flag.or(file.unattended) {
        None | Some(UnattendedFlag::Wait) => Unattended::Wait,
        Some(UnattendedFlag::Deny) => Unattended::Deny,
    };
    let mut asking = Asking { unattended, second_person: file.second_person, ..Asking::default() };
    if let Some(seconds) = file.expire_seconds {
        if !(1..=EXPIRE_SECONDS_MAX).contains(&seconds) {
            bail!("the configuration's approvals.expire_seconds is {seconds}; it goes from 1 to {EXPIRE_SECONDS_MAX}");
        }
        asking.lives_ms = seconds * 1000;
    }
    if let Some(seconds) = file.hold_seconds {
        asking.hold = Duration::from_secs(seconds.min(EXPIRE_SECONDS_MAX));
    }
    for (name, said, limit) in [
        ("session_open_max", file.session_open_max, &mut asking.limits.open),
        ("session_bytes_max", file.session_bytes_max, &mut asking.limits.bytes),
    ] {
        if let Some(said) = said {
            if said < 1 {
                bail!("the configuration's approvals.{name} is {said}; 1 is the least");
            }
            *limit = said;
        }
    }
    Ok(asking)
}

fn client(approvals: &Approvals, mcp: &Mcp) -> anyhow::Result<ClientSettings> {
    if let Some(calls_max) = mcp.calls_max.filter(|calls_max| !CALLS_MAX.contains(calls_max)) {
        let (least, most) = (CALLS_MAX.start(), CALLS_MAX.end());
        bail!("the configuration's mcp.calls_max is {calls_max}; it goes from {least} to {most}");
    }
    Ok(ClientSettings { approvals: approvals.client, calls_max: mcp.calls_max })
}

fn choice(sandbox: Option<Sandbox>) -> FenceChoice {
    match sandbox {
        None | Some(Sandbox::Auto) => FenceChoice::Auto,
        Some(Sandbox::Full) => FenceChoice::Full,
        Some(Sandbox::Landlock) => FenceChoice::Landlock,
        Some(Sandbox::Off) => FenceChoice::Off,
    }
}

fn read_config(path: &Path, required: bool) -> anyhow::Result<File> {
    match std::fs::read_to_string(path) {
        Ok(text) => toml_file::parse(path, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => Ok(File::default()),
        Err(error) => Err(error).with_context(|| format!("the configuration {} cannot be read", path.display())),
    }
}

fn profiles_text(profiles: toml::Table) -> anyhow::Result<String> {
    let mut table = toml::Table::new();
    table.insert("profiles".to_owned(), toml::Value::Table(profiles));
    Ok(toml::to_string(&table)?)
}

/// The nearest folder above one that has no project of its own, in which a project is.
fn project_above_of(here: &Path, projects: &Path) -> Option<PathBuf> {
    let has_project = |folder: &&Path| projects.join(folder_name(folder)).is_dir();
    let found = here.canonicalize().ok()?.ancestors().find(has_project).map(Path::to_owned);
    found.filter(|found| *found != here)
}

/// A name people recognize, and a hash so that two folders of one name stay apart.
pub(crate) fn folder_name(root: &Path) -> String {
    let name = root.file_name().unwrap_or(std::ffi::OsStr::new("root"));
    let hash = hex::encode(Sha256::digest(root.as_os_str().as_encoded_bytes()));
    format!("{}{}", state_name_start(name), &hash[..12])
}

/// How the state folders of all workspaces with this name begin.
pub(crate) fn state_name_start(name: &std::ffi::OsStr) -> String {
    let name = name.to_string_lossy();
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' });
    format!("{}-", plain.take(40).collect::<String>())
}

/// The host's own files must be where no agent can write.
fn keep_apart(root: &Path, state: &Path, config_file: &Path) -> anyhow::Result<()> {
    if root.parent().is_none() {
        bail!("the workspace cannot be the whole file system: choose a project folder with --root");
    }
    for (what, path) in [("state folder", state), ("configuration", config_file)] {
        // A folder that is not there yet is where its parent is.
        let real =
            path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok()).unwrap_or_else(|| path.to_owned());
        // `root/..` begins with the workspace and leads out of it.
        let leads_up = path.components().any(|part| part == Component::ParentDir);
        if real.starts_with(root) || (!leads_up && path.starts_with(root)) {
            bail!(
                "the {what} {} would be inside the workspace {}, where an agent could change it: choose a project folder \
                 below it with --root, or another place with --state and --config",
                path.display(),
                root.display()
            );
        }
    }
    Ok(())
}

/// The operator's `PATH` without what is relative or inside the workspace, where an agent could plant programs.
fn commands_path(root: &Path) -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    let mut folders: Vec<&str> = own
        .split(':')
        .filter(|folder| Path::new(folder).is_absolute() && !Path::new(folder).starts_with(root))
        .collect();
    folders.extend(PATH_DEFAULT.split(':').filter(|folder| !own.split(':').any(|own| own == *folder)));
    folders.join(":")
}
