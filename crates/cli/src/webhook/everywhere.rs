//! All projects that a server serves, whether it has opened them or not: agents of other hosts ask people, too.
//!
//! Each database is read through a connection of its own, which changes nothing.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhost_store::{KnownProject, Reader, Store};

use super::events::{Teller, Watched};
use super::{ProjectWebhooks, sender};
use crate::hosting::{shared_key, state_key};
use crate::projects;
use crate::settings::Settings;

/// How often it is looked for new projects.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Databases of one machine that are read; further ones are not told of.
const DATABASES_MAX: usize = 256;

/// Where the projects are.
pub(super) enum Place {
    /// One database of one machine's project.
    State(PathBuf),
    /// The state folders of this machine's user.
    Machine(PathBuf),
    /// A shared database.
    Shared(String),
}

impl Place {
    pub(super) fn of(settings: &Settings) -> anyhow::Result<Self> {
        Ok(match settings.shared_database()? {
            Some(url) => Self::Shared(url),
            None if settings.names_a_project() => Self::State(settings.resolve()?.state),
            None => Self::Machine(settings.projects()?),
        })
    }

    /// The databases that are there now, as their projects are named by.
    fn databases(&self) -> anyhow::Result<Vec<PathBuf>> {
        Ok(match self {
            Self::State(state) => vec![state.clone()],
            Self::Machine(folder) => projects::states(folder)?,
            Self::Shared(_) => vec![PathBuf::new()],
        })
    }

    async fn open(&self, state: &std::path::Path) -> toolhost_store::Result<Store> {
        match self {
            Self::Shared(url) => Store::connect_reading(url, projects::clock(), toolhost::SUBJECTS).await,
            Self::State(_) | Self::Machine(_) => {
                Store::open_reading(state, projects::clock(), toolhost::SUBJECTS).await
            }
        }
    }
}

/// A database that is read.
struct Open {
    store: Store,
    reader: Reader,
    /// The projects in it that the operator's webhook is told of.
    told: HashSet<i64>,
    /// The webhooks of projects that are told, each with what ends that at once.
    webhooks: HashMap<(i64, String), CancellationToken>,
    stop: CancellationToken,
}

/// Who is told.
pub(super) struct Told {
    /// The operator, of all projects.
    pub(super) operator: Option<Teller>,
    /// The owners of projects, where the operator lets them.
    pub(super) owners: ProjectWebhooks,
}

/// Tells of the asks of all projects, those that come later too, until `stop`.
pub(super) async fn tell(place: Place, told: Told, stop: CancellationToken) {
    let mut open: HashMap<PathBuf, Open> = HashMap::new();
    let mut telling = JoinSet::new();
    let mut failed: HashSet<PathBuf> = HashSet::new();
    loop {
        match place.databases() {
            Ok(states) => {
                let gone = open.extract_if(|state, _| !states.contains(state));
                let gone: Vec<Open> = gone.map(|(_, open)| open).collect();
                for open in gone {
                    open.stop.cancel();
                }
                for state in states.into_iter().take(DATABASES_MAX) {
                    match look((&place, &told), &state, &mut open, &mut telling, &stop).await {
                        Ok(()) => {
                            failed.remove(&state);
                        }
                        // Said once of each.
                        Err(error) if failed.insert(state.clone()) => {
                            tracing::warn!(place = state.display().to_string(), %error, "not told of to the webhook");
                        }
                        Err(_) => {}
                    }
                }
            }
            Err(error) => tracing::warn!("the projects cannot be found for the webhook: {error:#}"),
        }
        // Those that have ended are no longer counted.
        while telling.try_join_next().is_some() {}
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = stop.cancelled() => break,
        }
    }
    while telling.join_next().await.is_some() {}
    for open in open.into_values() {
        if let Err(error) = open.store.close().await {
            tracing::debug!(%error, "a database did not close as it should");
        }
    }
}

/// Begins to tell what is not told yet of the projects of a database. Each telling ends when it is stopped, or its webhook is removed.
async fn look(
    (place, told): (&Place, &Told),
    state: &PathBuf,
    open: &mut HashMap<PathBuf, Open>,
    telling: &mut JoinSet<()>,
    stop: &CancellationToken,
) -> toolhost_store::Result<()> {
    if !open.contains_key(state) {
        let store = place.open(state).await?;
        let reader = store.reader();
        let (told, webhooks) = (HashSet::new(), HashMap::new());
        open.insert(state.clone(), Open { store, reader, told, webhooks, stop: stop.child_token() });
    }
    let Some(found) = open.get_mut(state) else { return Ok(()) };
    let asks = found.store.asks();
    let watched = |project: KnownProject| {
        let key = match place {
            Place::Shared(_) => shared_key(&project.root),
            Place::State(_) | Place::Machine(_) => state_key(state),
        };
        Watched { name: project.name, key, id: project.id, asks: asks.clone() }
    };
    let projects = found.reader.projects().await?;
    // The operator's webhook needs no table of this version: it comes first, for all projects.
    if let Some(teller) = &told.operator {
        for project in projects.iter().filter(|project| found.told.insert(project.id)) {
            telling.spawn(teller.clone().tell(watched(project.clone()), found.stop.clone()));
        }
    }
    if told.owners.is_empty() {
        return Ok(());
    }
    for project in projects {
        let webhooks = found.store.webhooks().list(project.id).await?;
        found.webhooks.retain(|(of, id), removed| {
            let stays = *of != project.id || webhooks.iter().any(|webhook| webhook.id == *id);
            if !stays {
                removed.cancel();
            }
            stays
        });
        for webhook in webhooks {
            let Entry::Vacant(entry) = found.webhooks.entry((project.id, webhook.id.clone())) else { continue };
            let removed = entry.insert(CancellationToken::new()).clone();
            let watched = watched(project.clone());
            let endpoint = match told.owners.endpoint(&webhook) {
                Ok(endpoint) => endpoint,
                Err(error) => {
                    let (project, webhook) = (watched.key, webhook.id);
                    tracing::warn!(project, webhook, error = error.message, "a webhook is not told");
                    continue;
                }
            };
            let (teller, sending) = sender(endpoint);
            let told = teller.tell(watched, found.stop.clone());
            telling.spawn(async move {
                tokio::select! {
                    () = removed.cancelled() => {}
                    ((), ()) = async { tokio::join!(told, sending) } => {}
                }
            });
        }
    }
    Ok(())
}
