//! From settings to an open host: what was said becomes the arguments of the facade's builder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use toolhost::{Builder, Connection, Error, Host, Kit, Need, Recording, is_unwritable};
use toolhost_agent::SessionObserver;
use toolhost_contract::Outcome;
use toolhost_host::{CallObserver, CallObservers, Person, Queue};
use toolhost_sandbox::{LocalConfig, LocalExecutor, helper};
use toolhost_store::{Role, Store};

use crate::known::Known;
use crate::settings::{Resolved, Settings, projects_of};
use crate::{Usage, print, projects, terminals};

/// How long a command that has read waits until its row is written.
const READ_ROW_WAIT: Duration = Duration::from_secs(5);
/// The inside of the fence as a program of its own, beside this one.
const FENCE_PROGRAM: &str = "toolhost-fence";
/// As the audit names where these calls come from.
const DOOR: &str = "cli";
/// The same of those for a server.
const DOOR_HTTP: &str = "http";

/// Agents could read a login in the workspace.
fn keep_login_apart(resolved: &Resolved) -> anyhow::Result<()> {
    let inside = resolved.login.as_ref().filter(|login| login.starts_with(&resolved.root));
    inside.map_or(Ok(()), |login| {
        bail!("your login {} would be inside the workspace: name another file with --login-file", login.display())
    })
}

/// Everything that was said, as the builder of a host takes it.
fn builder(resolved: &Resolved, need: Need) -> Builder {
    let had_one = resolved.known.as_ref().is_some_and(Known::had_database);
    let builder = Host::builder()
        .state(&resolved.state)
        .must_exist(had_one)
        .need(need)
        .door(DOOR)
        .profiles(&resolved.profiles)
        .profiles_of(format!("of {}", resolved.config_file.display()))
        // What the environment calls a secret is shown nowhere.
        .redact(environment())
        .asking(resolved.asking)
        .durability(resolved.durability);
    let builder = match &resolved.database {
        Some(url) => builder.database(url),
        None => builder,
    };
    let builder = match &resolved.project {
        Some(name) => builder.project(name),
        None => builder,
    };
    match &resolved.user {
        Some(name) => builder.user(name),
        None => builder,
    }
}

/// The same for a person or their agent: on a shared database they act as the user whose login this terminal has.
fn by_person(resolved: &Resolved, need: Need) -> anyhow::Result<Builder> {
    keep_login_apart(resolved)?;
    let builder = builder(resolved, need);
    Ok(match &resolved.login {
        Some(file) => builder.terminal(terminals::of(file)),
        None => builder,
    })
}

/// Who is told what a host does.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    pub(crate) calls: Vec<Arc<dyn CallObserver>>,
    pub(crate) sessions: Option<Arc<dyn SessionObserver>>,
}

impl Observers {
    fn watch(&self, builder: Builder) -> Builder {
        let builder = match self.calls.as_slice() {
            [] => builder,
            [one] => builder.observer(Arc::clone(one)),
            several => builder.observer(Arc::new(CallObservers(several.to_vec()))),
        };
        match &self.sessions {
            Some(sessions) => builder.session_observer(Arc::clone(sessions)),
            None => builder,
        }
    }
}

/// The variables that are text.
pub(crate) fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The same with the workspace, which only some commands need.
fn with_workspace(resolved: &Resolved, builder: Builder) -> anyhow::Result<Builder> {
    let program = std::env::current_exe().context("where this program is cannot be found")?;
    let beside = program.with_file_name(FENCE_PROGRAM);
    let helper = if helper::fits(&beside) { beside } else { program };
    let builder = match resolved.deploy.clone() {
        Some((target, rules, key)) => builder.deploy_to(target, rules, key),
        None => builder,
    };
    Ok(builder.local(LocalConfig {
        root: resolved.root.clone(),
        helper,
        fence: resolved.fence,
        path: resolved.path.clone(),
        home: resolved.home.clone(),
        temp: std::env::temp_dir(),
        sessions: lasting_folder(),
        guard: resolved.guard.clone(),
        env: resolved.env.clone(),
        toolchains: resolved.toolchains.clone(),
        command_cgroup: resolved.command_cgroup.clone(),
        remotes: resolved.remotes.clone(),
        limits: resolved.limits,
        durability: resolved.durability,
    }))
}

/// Where files stay that last longer than a command: on a disk, where the temporary folder may be memory.
fn lasting_folder() -> PathBuf {
    let usual = PathBuf::from("/var/tmp");
    if usual.is_dir() { usual } else { std::env::temp_dir() }
}

/// Opens the workspace and loads the profiles; its tools find no records.
pub(crate) async fn kit(settings: &Settings) -> anyhow::Result<(Kit, Resolved)> {
    let resolved = settings.resolve()?;
    let kit = with_workspace(&resolved, builder(&resolved, Need::Reading))?.kit().await?;
    Ok((kit, resolved))
}

/// The workspace of a kit.
pub(crate) fn local(kit: &Kit) -> anyhow::Result<&LocalExecutor> {
    kit.local.as_deref().context("there is no workspace")
}

/// Opens everything.
pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Host> {
    open_for(settings, Need::Writing).await
}

/// Opens everything for a command.
pub(crate) async fn open_for(settings: &Settings, need: Need) -> anyhow::Result<Host> {
    open_resolved(&settings.resolve()?, need).await
}

/// As [`open_for`], with settings that were resolved before.
pub(crate) async fn open_resolved(resolved: &Resolved, need: Need) -> anyhow::Result<Host> {
    opened(resolved, by_person(resolved, need)?).await
}

/// As [`open_resolved`], for somebody who is told what is done there.
pub(crate) async fn open_observed(resolved: &Resolved, need: Need, observers: &Observers) -> anyhow::Result<Host> {
    opened(resolved, observers.watch(by_person(resolved, need)?)).await
}

/// The same for a server.
pub(crate) async fn open_served(resolved: &Resolved, observers: &Observers) -> anyhow::Result<Host> {
    opened(resolved, observers.watch(builder(resolved, Need::Writing).door(DOOR_HTTP).for_visitors())).await
}

async fn opened(resolved: &Resolved, builder: Builder) -> anyhow::Result<Host> {
    tell_if_moved(resolved).await;
    let host = with_workspace(resolved, builder)?.open().await?;
    connected(resolved, host.connection());
    Ok(host)
}

/// Opens the project of a folder that is not on this machine, or was deleted: its records can be used, its files cannot. `state` is the folder
/// of its SQLite database; `None` for a shared database.
pub(crate) async fn open_elsewhere(
    resolved: &Resolved,
    state: Option<&Path>,
    root: &Path,
    observers: &Observers,
) -> anyhow::Result<Host> {
    let builder = observers.watch(builder(resolved, Need::Writing).door(DOOR_HTTP).for_visitors());
    let builder = match state {
        Some(state) => builder.state(state).must_exist(true),
        None => builder,
    };
    Ok(builder.workspace_elsewhere(root).open().await?)
}

/// Opens the database, finds the project in it, and the user in whose name things are done.
pub(crate) async fn connect(resolved: &Resolved, need: Need) -> anyhow::Result<Connection> {
    tell_if_moved(resolved).await;
    // The project of the folder is found by its path.
    let connection = by_person(resolved, need)?.workspace(&resolved.root).connect().await?;
    connected(resolved, &connection);
    Ok(connection)
}

/// Tells the user of a folder without records when it looks like one that was moved: records are found by the folder's path.
async fn tell_if_moved(resolved: &Resolved) {
    let is_new = resolved.known.is_some() && resolved.database.is_none() && !Store::is_in(&resolved.state);
    let Some(name) = resolved.root.file_name().filter(|_| is_new) else { return };
    // The user learns of a damaged database from `project list`; here it must not stop the command.
    let all = projects::named(&projects_of(&resolved.data), name).await.unwrap_or_default();
    let gone = all.iter().filter(|found| found.root.file_name() == Some(name) && !found.is_there());
    for found in gone {
        let from = print::visible_line(&found.root.to_string_lossy()).to_string();
        print::note(format_args!(
            "{} the project of {from} has records, and that folder is gone: if it is this one, moved, say \
             `toolhost project move {from} --replace`",
            print::paint(print::WARN, "note:")
        ));
    }
}

/// What is noted when a database was opened.
fn connected(resolved: &Resolved, connection: &Connection) {
    if let Some(above) = &resolved.project_above {
        let above_shown = print::visible_line(&above.to_string_lossy());
        print::aside(print::paint(
            print::DIM,
            if *above == resolved.root {
                format!("in the project {above_shown}")
            } else {
                format!("this folder is a workspace of its own; `--root {above_shown}` is the project around it")
            },
        ));
    }
    if let Some(why) = connection.unrecorded() {
        unrecorded(why);
    } else if let Some(known) = resolved.known.as_ref().filter(|_| resolved.database.is_none()) {
        known.has_database();
    }
}

/// The queue of what people are asked, for whoever answers without a host.
pub(crate) struct Answers {
    pub(crate) queue: Queue,
    pub(crate) connection: Connection,
    pub(crate) person: Person,
}

pub(crate) async fn open_answers(settings: &Settings) -> anyhow::Result<Answers> {
    let connection = connect(&settings.resolve()?, Need::Reading).await?;
    connection.need_role(Role::Viewer).await?;
    let (queue, person) = (connection.queue(), connection.person());
    Ok(Answers { queue, connection, person })
}

/// Whether a host could not be opened because its state cannot be written.
pub(crate) fn is_only_readable(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<Error>(), Some(Error::Store(error)) if is_unwritable(error))
}

/// Says that something is done without its rows in the audit.
pub(crate) fn unrecorded(why: &toolhost_store::Error) {
    print::note(format_args!("{} not recorded in the audit: {why}", print::paint(print::WARN, "note:")));
}

/// As [`Recording::IfWritable`], with a note in the terminal.
pub(crate) const IF_WRITABLE: Recording<'static> = Recording::IfWritable(&unrecorded);

/// Ends with what only read. Its row in the audit is written if that is possible soon.
pub(crate) async fn close_reading(connection: &Connection) -> anyhow::Result<()> {
    match tokio::time::timeout(READ_ROW_WAIT, connection.close()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(Error::Store(error))) if is_unwritable(&error) => {
            unrecorded(&error);
            Ok(())
        }
        Ok(Err(error)) => Err(error.into()),
        Err(_) => {
            print::note(format_args!(
                "{} not recorded in the audit: another process holds the database",
                print::paint(print::WARN, "note:")
            ));
            Ok(())
        }
    }
}

/// The outcome of a call, also of one that failed or waits for a person: it is shown as it is.
pub(crate) fn outcome(called: toolhost::Result<Outcome>) -> anyhow::Result<Outcome> {
    match called {
        Err(Error::Call(outcome) | Error::Pending(outcome)) => Ok(*outcome),
        called => Ok(called?),
    }
}

/// Makes all calls about this ticket, which has to be there.
pub(crate) async fn about_ticket(host: &mut Host, ticket: Option<String>) -> anyhow::Result<()> {
    host.about_ticket(ticket).await.map_err(|error| match error {
        Error::Record(error) => {
            Usage::error(format!("--ticket: {error}; `toolhost call ticket.list` shows which there are"))
        }
        error => error.into(),
    })
}
