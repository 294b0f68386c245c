//! The projects that `toolhost serve` serves: those of this machine's user, one of them, or those of a shared database. Each is opened when
//! it is first needed, and closed when nobody has used it for a while.

pub(crate) mod deploys;
mod looked_at;
mod webhooks;
mod work;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use toolhost::Host;
use toolhost_contract::{BoxFuture, ToolError};
use toolhost_host::{Names, Profile};
use toolhost_server::http::{Describe, OpenProject, Projects, Work};
use toolhost_server::mcp::{Listed, Offers};
use toolhost_store::{Project, Store};

use self::work::ProjectWork;
use crate::instructions::{self, Told};
use crate::settings::{Resolved, Settings, folder_name};
use crate::webhook::ProjectWebhooks;
use crate::wire::Observers;
use crate::{projects, wire};

/// How long a project that nobody uses stays open.
const IDLE: Duration = Duration::from_secs(600);
/// How often it is looked for such projects.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How a project that has a name of its own is kept.
const NAMED: &str = "project:";

/// What names a project in addresses: the name of its state folder, or its own in a shared database.
pub(crate) fn key_of(resolved: &Resolved) -> String {
    match (&resolved.database, &resolved.project) {
        (Some(_), Some(name)) => name.clone(),
        (Some(_), None) => folder_name(&resolved.root),
        (None, _) => state_key(&resolved.state),
    }
}

pub(crate) fn state_key(state: &Path) -> String {
    state.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What is served.
enum Place {
    /// The one project that was named.
    One { resolved: Box<Resolved> },
    /// The state folders of this machine's user.
    Machine { states: PathBuf },
    /// A shared database, looked at through a connection of its own; the project that was named has its workspace here.
    Shared { store: Store, named: Option<Box<Resolved>> },
}

pub(crate) struct Hosting {
    settings: Settings,
    place: Place,
    /// Who is told what all of them do.
    observers: Observers,
    /// Where webhooks of projects may go.
    webhooks: ProjectWebhooks,
    open: Mutex<HashMap<String, Opened>>,
}

struct Opened {
    host: Host,
    work: Arc<ProjectWork>,
    project: Arc<OpenProject>,
    used: Instant,
}

impl Hosting {
    /// # Errors
    /// If the settings do not hold, or the shared database cannot be opened.
    pub(crate) async fn new(settings: Settings, observers: Observers) -> anyhow::Result<Arc<Self>> {
        let named = match settings.names_a_project() {
            true => Some(Box::new(settings.resolve()?)),
            false => None,
        };
        let place = match (settings.shared_database()?, named) {
            (Some(url), named) => {
                Place::Shared { store: Store::connect(&url, projects::clock(), toolhost::SUBJECTS).await?, named }
            }
            (None, Some(resolved)) => Place::One { resolved },
            (None, None) => Place::Machine { states: settings.projects()? },
        };
        let webhooks = ProjectWebhooks::of(&settings)?;
        let hosting = Arc::new(Self { settings, place, observers, webhooks, open: Mutex::default() });
        // The one that was named is made if it is new, and what is wrong with it is said at once.
        if let Some(named) = hosting.named() {
            hosting.opened(&key_of(named)).await?;
        }
        Ok(hosting)
    }

    fn named(&self) -> Option<&Resolved> {
        match &self.place {
            Place::One { resolved } => Some(resolved),
            Place::Shared { named, .. } => named.as_deref(),
            Place::Machine { .. } => None,
        }
    }

    async fn all(&self) -> anyhow::Result<Vec<String>> {
        match &self.place {
            Place::One { resolved } => Ok(vec![key_of(resolved)]),
            Place::Machine { states } => Ok(projects::states(states)?.iter().map(|state| state_key(state)).collect()),
            Place::Shared { store, .. } => {
                let known = store.reader().projects().await?;
                Ok(known.iter().map(|project| shared_key(&project.root)).collect())
            }
        }
    }

    async fn opened(&self, key: &str) -> anyhow::Result<Option<Arc<OpenProject>>> {
        let mut open = self.open.lock().await;
        if let Some(opened) = open.get_mut(key) {
            opened.used = Instant::now();
            return Ok(Some(Arc::clone(&opened.project)));
        }
        let Some(host) = self.host(key).await? else { return Ok(None) };
        let models = self.settings.models_of(key)?;
        let work = Arc::new(ProjectWork::new(key.to_owned(), host.clone(), models, self.webhooks.clone()));
        let project = Arc::new(open_project(key, &host, &work));
        open.insert(key.to_owned(), Opened { host, work, project: Arc::clone(&project), used: Instant::now() });
        Ok(Some(project))
    }

    async fn host(&self, key: &str) -> anyhow::Result<Option<Host>> {
        if let Some(named) = self.named().filter(|named| key == key_of(named)) {
            return Ok(Some(self.there(named).await?));
        }
        match &self.place {
            Place::One { .. } => Ok(None),
            Place::Machine { states } => {
                let state = states.join(key);
                // A key that is a path would lead to another folder.
                if key != state_key(&state) || !Store::is_in(&state) {
                    return Ok(None);
                }
                let Some(found) = projects::of(&state).await?.into_iter().next() else { return Ok(None) };
                if found.is_there() {
                    let resolved = self.settings.with_root(Some(found.root)).resolve()?;
                    return Ok(Some(self.there(&resolved).await?));
                }
                Ok(Some(self.elsewhere(&found.root, Some(&state)).await?))
            }
            Place::Shared { store, .. } => {
                let known = store.reader().projects().await?;
                match known.into_iter().find(|project| shared_key(&project.root) == key) {
                    Some(project) => Ok(Some(self.elsewhere(Path::new(&project.root), None).await?)),
                    None => Ok(None),
                }
            }
        }
    }

    /// A project with its workspace.
    async fn there(&self, resolved: &Resolved) -> anyhow::Result<Host> {
        wire::open_served(resolved, &self.observers).await
    }

    /// A project without its workspace.
    async fn elsewhere(&self, root: &Path, state: Option<&Path>) -> anyhow::Result<Host> {
        let resolved = self.settings.resolve_at(root.to_owned(), None)?;
        wire::open_elsewhere(&resolved, state, root, &self.observers).await
    }

    /// Closes projects that nobody has used for a while, for ever.
    pub(crate) async fn close_idle(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let idle: Vec<Opened> = {
                let mut open = self.open.lock().await;
                let is_idle = |opened: &Opened| {
                    opened.work.is_idle() && Arc::strong_count(&opened.project) == 1 && opened.used.elapsed() >= IDLE
                };
                open.extract_if(|_, opened| is_idle(opened)).map(|(_, opened)| opened).collect()
            };
            for opened in idle {
                close(opened).await;
            }
        }
    }

    /// Closes all.
    pub(crate) async fn close(&self) {
        let all: Vec<Opened> = self.open.lock().await.drain().map(|(_, opened)| opened).collect();
        for opened in all {
            close(opened).await;
        }
        if let Place::Shared { store, .. } = &self.place
            && let Err(error) = store.close().await
        {
            tracing::error!(%error, "the database did not close as it should");
        }
    }
}

async fn close(opened: Opened) {
    opened.work.close().await;
    if let Err(error) = opened.host.close().await {
        tracing::error!(%error, project = opened.project.key, "a project did not close as it should");
    }
}

pub(crate) fn shared_key(root: &str) -> String {
    root.strip_prefix(NAMED).map_or_else(|| folder_name(Path::new(root)), str::to_owned)
}

fn open_project(key: &str, host: &Host, work: &Arc<ProjectWork>) -> OpenProject {
    let (store, Project { id, name }) = (host.store(), host.connection().project().clone());
    OpenProject {
        key: key.to_owned(),
        name,
        id,
        gate: Arc::clone(host.gate()),
        ids: Arc::clone(host.ids()),
        people: store.people(),
        tokens: store.tokens(),
        reader: store.reader(),
        sessions: store.sessions().clone(),
        keyed_calls: store.keyed_calls(),
        describe: Arc::new(Described(host.clone())),
        work: Some(Arc::<ProjectWork>::clone(work) as Arc<dyn Work>),
        core: &instructions::CORE,
        offers: Offers::BUILT_IN,
    }
}

struct Described(Host);

impl Describe for Described {
    fn instructions<'a>(&'a self, profile: &'a Profile, persona: &'a str) -> BoxFuture<'a, String> {
        Box::pin(async move {
            let role = self.0.persona_role(persona, Some(&profile.name), &profile.name).await.ok();
            let personality = role.as_ref().and_then(|role| role.personality.as_deref());
            let told = Told { persona, personality, names: Names::Wire, listed: Listed::All };
            instructions::of(&self.0, profile, &told).await
        })
    }
}

impl Projects for Hosting {
    fn keys(&self) -> BoxFuture<'_, Result<Vec<String>, ToolError>> {
        Box::pin(async { self.all().await.map_err(ToolError::internal) })
    }

    fn opened(&self) -> BoxFuture<'_, Vec<Arc<OpenProject>>> {
        Box::pin(async { self.open.lock().await.values().map(|opened| Arc::clone(&opened.project)).collect() })
    }

    fn open<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<OpenProject>>, ToolError>> {
        Box::pin(async move { self.opened(key).await.map_err(ToolError::internal) })
    }
}
