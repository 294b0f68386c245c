//! Putting the crates together: from settings to a host whose gate can be called.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use toolhost_contract::{Call, CallId, Caller, CallerKind, Clock, Facts, IdSource, RandomIds, Scope, SystemClock};
use toolhost_host::{Asking, Gate, GateConfig, Members, Person, Profiles, Queue, Redactor, Registry, Tightening};
use toolhost_sandbox::{
    Deployment, Error as SandboxError, Executor, LocalConfig, LocalExecutor, POLICY_FILE, ReadSpan, WsPath, helper,
};
use toolhost_store::records::Who;
use toolhost_store::{Entry, Error, Event, Outage, Project, Records, Role, Store};

use crate::known::Known;
use crate::place::{self, Place};
use crate::settings::{ClientSettings, Resolved, Settings};
use crate::{Denied, Usage, print};

/// Longest name of a project.
const PROJECT_CHARS_MAX: usize = 200;
/// Longest policy file of a project, bytes.
const TIGHTENING_BYTES_MAX: u64 = 256 * 1024;

/// How long a command that has read waits until its row is written.
const READ_ROW_WAIT: Duration = Duration::from_secs(5);
/// The inside of the fence as a program of its own, beside this one.
const FENCE_PROGRAM: &str = "toolhost-fence";

/// What a command does with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Writing,
    /// It only reads, or what it is for may be reading: a database that cannot be written will do.
    Reading,
}

/// A host, open.
pub(crate) struct Host {
    pub(crate) gate: Arc<Gate>,
    pub(crate) registry: Arc<Registry>,
    executor: Arc<LocalExecutor>,
    pub(crate) store: Store,
    pub(crate) project: Project,
    pub(crate) user: User,
    /// The ticket that all calls are about.
    pub(crate) ticket: Option<String>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) asking: Asking,
    pub(crate) client: ClientSettings,
}

/// In whose name everything is done.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) id: i64,
    pub(crate) name: String,
}

/// What needs no database: tools, profiles, the fence.
pub(crate) struct Kit {
    pub(crate) registry: Arc<Registry>,
    pub(crate) profiles: Arc<Profiles>,
    pub(crate) executor: Arc<LocalExecutor>,
    pub(crate) resolved: Resolved,
}

/// The tools there are.
pub(crate) fn registry(records: &Records) -> anyhow::Result<Registry> {
    Ok(Registry::new(toolhost_tools::all(records))?)
}

/// What the tools say of themselves, which is the same whatever records they find.
fn facts() -> Vec<Facts> {
    toolhost_tools::all(&Records::nowhere()).iter().map(|tool| tool.facts()).collect()
}

/// Opens the workspace and loads the profiles; its tools find no records.
pub(crate) async fn kit(settings: &Settings) -> anyhow::Result<Kit> {
    kit_with(settings.resolve()?, registry(&Records::nowhere())?).await
}

async fn kit_with(resolved: Resolved, registry: Registry) -> anyhow::Result<Kit> {
    let registry = Arc::new(registry);
    let executor = Arc::new(executor(&resolved)?);
    let tightening = tightening(&*executor, &registry).await?;
    let profiles = Profiles::load(&registry, &[&resolved.profiles], tightening.as_ref())
        .with_context(|| format!("the profiles (built in, and of {})", resolved.config_file.display()))?;
    Ok(Kit { registry, profiles: Arc::new(profiles), executor, resolved })
}

/// Opens everything.
pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Host> {
    open_for(settings, Need::Writing).await
}

/// Opens everything for a command.
pub(crate) async fn open_for(settings: &Settings, need: Need) -> anyhow::Result<Host> {
    let resolved = settings.resolve()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    // Beside the disk, not after it: an agent waits for this.
    let facts = tokio::task::spawn_blocking(facts);
    let (store, project, user) = open_store(&resolved, Arc::clone(&clock), need).await?;
    let registry = Registry::with_facts(toolhost_tools::all(&store.records()), facts.await?)?;
    let Kit { registry, profiles, executor, resolved } = kit_with(resolved, registry).await?;
    let probing = Arc::clone(&executor);
    // Probing the fence takes a few milliseconds, which pass while the client says hello.
    tokio::spawn(async move { probing.report().await });
    let redactor = Arc::new(redactor());
    let gate = Gate::new(GateConfig {
        registry: Arc::clone(&registry),
        profiles,
        executor: Arc::<LocalExecutor>::clone(&executor),
        audit: store.audit(),
        file_log: store.file_log(),
        queue: Queue::new(store.asks(), store.audit(), store.people(), Arc::clone(&redactor)),
        asking: resolved.asking,
        members: Arc::new(Members::new(store.people(), Arc::clone(&clock))),
        redactor,
        analyzer: Arc::new(toolhost_sandbox::analyze),
        clock,
        ids: Arc::new(RandomIds),
        limits: toolhost_host::Limits::default(),
    });
    // A database of this machine, and a project that is this very folder: the calls ran here, and their processes have ended.
    let ran_here = resolved.database.is_none() && resolved.project.is_none();
    if need == Need::Writing
        && ran_here
        && let Err(error) = gate.decide_unknown(&store.reader(), project.id).await
    {
        tracing::warn!(%error, "calls that a crash left unknown stay so");
    }
    Ok(Host {
        gate,
        registry,
        executor,
        store,
        project,
        user,
        ticket: None,
        ids: Arc::new(RandomIds),
        asking: resolved.asking,
        client: resolved.client,
    })
}

/// What the environment calls a secret is shown nowhere.
fn redactor() -> Redactor {
    Redactor::new(std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))))
}

/// The queue of what people are asked, for whoever answers without a host.
pub(crate) struct Answers {
    pub(crate) queue: Queue,
    pub(crate) store: Store,
    pub(crate) person: Person,
}

pub(crate) async fn open_answers(settings: &Settings) -> anyhow::Result<Answers> {
    let (store, project, user) =
        open_store(&settings.resolve()?, Arc::new(SystemClock::default()), Need::Reading).await?;
    need_role(&store, &project, &user, Role::Viewer).await?;
    let queue = Queue::new(store.asks(), store.audit(), store.people(), Arc::new(redactor()));
    let person = Person { user_id: user.id, project_id: project.id, name: user.name };
    Ok(Answers { queue, store, person })
}

/// Opens the database, finds the project in it, and the user in whose name things are done.
pub(crate) async fn open_store(
    resolved: &Resolved,
    clock: Arc<dyn Clock>,
    need: Need,
) -> anyhow::Result<(Store, Project, User)> {
    let store = match &resolved.database {
        Some(url) => match Store::connect(url, Arc::clone(&clock)).await {
            Err(error) if need == Need::Reading && is_unwritable(&error) => {
                let store = Store::connect_reading(url, clock).await?;
                unrecorded(&error);
                store
            }
            connected => connected?,
        },
        None => open_folder(resolved, clock, need).await?,
    };
    // Folders of different machines may have one path; a name says which are one project.
    let (key, name) = match &resolved.project {
        Some(name) if name.chars().count() > PROJECT_CHARS_MAX || name.chars().any(char::is_control) => {
            let problem =
                format!("a project's name has at most {PROJECT_CHARS_MAX} characters, none of them a control");
            return Err(Usage::error(problem));
        }
        Some(name) => (PathBuf::from(format!("project:{name}")), name.clone()),
        None => {
            let name = resolved.root.file_name().map(|name| name.to_string_lossy().into_owned());
            (resolved.root.clone(), name.unwrap_or_else(|| "project".to_owned()))
        }
    };
    let project = store.project(&key, &name, &resolved.user).await?;
    let Some(id) = store.people().user(&resolved.user).await? else {
        return Err(Usage::error(format!(
            "there is no user `{}` in {}: an owner of the project adds one with `toolhost member add`",
            resolved.user,
            store.place()
        )));
    };
    Ok((store, project, User { id, name: resolved.user.clone() }))
}

/// Opens the database of the state folder, or makes it where none has ever been.
async fn open_folder(resolved: &Resolved, clock: Arc<dyn Clock>, need: Need) -> anyhow::Result<Store> {
    let had_one = resolved.known.as_ref().is_some_and(Known::had_database);
    let opened = if had_one {
        Store::open_known(&resolved.state, Arc::clone(&clock)).await
    } else {
        Store::open(&resolved.state, Arc::clone(&clock)).await
    };
    match opened {
        Ok(store) => {
            if let Some(known) = &resolved.known {
                known.has_database();
            }
            Ok(store)
        }
        Err(error) if need == Need::Reading && is_unwritable(&error) => {
            match Store::open_reading(&resolved.state, clock).await {
                Ok(store) => {
                    unrecorded(&error);
                    Ok(store)
                }
                // Nothing can be read there either, and why is the first thing that went wrong.
                Err(Error::Missing { .. }) => Err(error.into()),
                // What keeps it from being read, too, is the better thing to say.
                Err(error) => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether what failed is the writing, and reading may still work.
pub(crate) fn is_unwritable(error: &toolhost_store::Error) -> bool {
    matches!(error.outage(), Some(Outage::DiskFull | Outage::ReadOnly | Outage::Disk))
}

/// Says that something is done without its rows in the audit.
pub(crate) fn unrecorded(why: &toolhost_store::Error) {
    print::note(format_args!("{} not recorded in the audit: {why}", print::paint(print::WARN, "note:")));
}

/// Ends with what only read. Its row in the audit is written if that is possible soon.
pub(crate) async fn close_reading(store: Store) -> anyhow::Result<()> {
    match tokio::time::timeout(READ_ROW_WAIT, store.close()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if is_unwritable(&error) => {
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

fn executor(resolved: &Resolved) -> anyhow::Result<LocalExecutor> {
    let program = std::env::current_exe().context("where this program is cannot be found")?;
    let beside = program.with_file_name(FENCE_PROGRAM);
    let helper = if helper::fits(&beside) { beside } else { program };
    let config = LocalConfig {
        root: resolved.root.clone(),
        helper,
        fence: resolved.fence,
        path: resolved.path.clone(),
        home: resolved.home.clone(),
        temp: std::env::temp_dir(),
        guard: resolved.guard.clone(),
        env: resolved.env.clone(),
        toolchains: resolved.toolchains.clone(),
        command_cgroup: resolved.command_cgroup.clone(),
        deploy: resolved.deploy.clone(),
        remotes: resolved.remotes.clone(),
        limits: resolved.limits,
    };
    LocalExecutor::open(config).with_context(|| format!("the workspace {}", resolved.root.display()))
}

/// The project's own policy, as it is now: what an agent writes there later changes nothing.
async fn tightening(executor: &dyn Executor, registry: &Registry) -> anyhow::Result<Option<Tightening>> {
    let path = WsPath::parse(POLICY_FILE)?;
    match executor.read(&path, ReadSpan { start: 0, bytes_max: TIGHTENING_BYTES_MAX }).await {
        Ok(content) if content.size > TIGHTENING_BYTES_MAX => {
            anyhow::bail!("{POLICY_FILE} is larger than {TIGHTENING_BYTES_MAX} bytes")
        }
        Ok(content) => Ok(Some(Tightening::parse(&String::from_utf8_lossy(&content.bytes), registry)?)),
        Err(SandboxError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{POLICY_FILE} of the project cannot be read")),
    }
}

/// Does what a person asked for without a tool, between its two rows of the audit. If the first cannot be written,
/// nothing is done.
pub(crate) async fn deed<T>(
    store: &Store,
    who: &Who,
    what: &str,
    arguments: serde_json::Value,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    deed_recorded(store, who, what, arguments, work, Recording::Required).await
}

/// Whether something may be done that the audit cannot record, because its database cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recording {
    /// It is not done.
    Required,
    /// It is done, with a warning: it only reads, and the owner of a project must be able to save the project's data
    /// before the disk is lost.
    IfWritable,
}

/// As [`deed`], with `recording`.
pub(crate) async fn deed_recorded<T>(
    store: &Store,
    who: &Who,
    what: &str,
    arguments: serde_json::Value,
    work: impl Future<Output = anyhow::Result<T>>,
    recording: Recording,
) -> anyhow::Result<T> {
    let row = |event, outcome| Entry {
        event,
        call_id: CallId::new(who.call_id.clone()),
        session_id: None,
        user_id: who.user_id,
        project_id: who.project_id,
        caller: serde_json::json!({ "door": "cli", "kind": "person", "persona": who.name }),
        tool: what.to_owned(),
        effect: Some("writes".to_owned()),
        arguments: arguments.clone(),
        digest: None,
        decision: None,
        outcome,
        duration_ms: None,
        fence: String::new(),
        trace: toolhost_contract::Trace::None,
    };
    let started = store.audit().append(row(Event::Started, None)).await;
    match started {
        Err(error) if recording == Recording::IfWritable && is_unwritable(&error) => {
            unrecorded(&error);
            return work.await;
        }
        started => started?,
    }
    let done = work.await;
    let outcome = match &done {
        Ok(_) => serde_json::json!({ "ok": true }),
        // What it said may name files and quote them; that is for the person, who has read it.
        Err(_) => serde_json::json!({ "ok": false }),
    };
    store.audit().append(row(Event::Finished, Some(outcome))).await?;
    done
}

/// In whose name records are read and written without a tool.
pub(crate) fn who(project: &Project, user: &User) -> Who {
    let call_id = RandomIds.call_id().to_string();
    Who { project_id: project.id, user_id: user.id, name: user.name.clone(), call_id }
}

/// The same person and the same number as a call's.
pub(crate) fn who_calls(host: &Host, call: &Call) -> Who {
    Who { call_id: call.id.to_string(), ..who(&host.project, &host.user) }
}

/// A user who may do what an owner, or a member, may.
pub(crate) async fn need_role(store: &Store, project: &Project, user: &User, at_least: Role) -> anyhow::Result<()> {
    let role = store.people().role(project.id, user.id).await?;
    // Owners come first.
    if role.is_some_and(|role| role <= at_least) {
        return Ok(());
    }
    Err(anyhow::Error::new(Denied(format!(
        "{} may not do this in the project {}: it takes the role {}",
        user.name,
        project.name,
        at_least.as_str()
    ))))
}

impl Host {
    /// The user, as somebody who answers.
    pub(crate) fn person(&self) -> Person {
        Person { user_id: self.user.id, project_id: self.project.id, name: self.user.name.clone() }
    }

    /// Makes all calls about this ticket, which has to be there.
    pub(crate) async fn about_ticket(&mut self, ticket: Option<String>) -> anyhow::Result<()> {
        if let Some(id) = &ticket {
            let desk = self.store.records().desk(who(&self.project, &self.user))?;
            desk.get::<toolhost_store::records::Ticket>(id).await.map_err(|error| {
                Usage::error(format!("--ticket: {error}; `toolhost call ticket.list` shows which there are"))
            })?;
        }
        self.ticket = ticket;
        Ok(())
    }

    /// Where the workspace is deployed to.
    pub(crate) fn deployment(&self) -> Option<Deployment> {
        self.executor.deployment().cloned()
    }

    /// Where an agent works.
    pub(crate) async fn place(&self) -> Place {
        place::look(&self.executor).await
    }

    /// The workspace's files, for what a person does without a tool.
    pub(crate) fn executor(&self) -> Arc<dyn Executor> {
        Arc::<LocalExecutor>::clone(&self.executor)
    }

    pub(crate) fn scope(&self, session: Option<String>) -> Scope {
        Scope {
            user_id: self.user.id,
            project_id: self.project.id,
            session_id: session,
            workflow_id: None,
            ticket_id: self.ticket.clone(),
        }
    }

    /// A call from the command line, by the person at the keyboard.
    pub(crate) fn call(&self, tool: &str, arguments: serde_json::Value, profile: &str) -> Call {
        Call {
            id: self.ids.call_id(),
            tool: tool.to_owned(),
            arguments,
            scope: self.scope(None),
            caller: Caller {
                kind: CallerKind::Person,
                door: "cli".into(),
                profile: profile.to_owned(),
                persona: self.user.name.clone(),
            },
        }
    }
}
