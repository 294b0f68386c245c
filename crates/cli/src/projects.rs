//! The projects of this machine's user: each has a state folder, whose database says which folder is its workspace.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use toolhost_contract::{Clock, SystemClock};
use toolhost_store::Store;

use crate::settings::state_name_start;

/// A project, or a state folder whose database cannot be read.
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) root: PathBuf,
    pub(crate) state: PathBuf,
    /// When something was called last.
    pub(crate) last_ms: Option<i64>,
    /// Why its database cannot be read.
    pub(crate) problem: Option<String>,
}

impl Found {
    /// Whether its folder is where it was.
    pub(crate) fn is_there(&self) -> bool {
        self.root.is_dir()
    }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

/// All projects, the one last worked in first.
pub(crate) async fn all(projects: &Path) -> anyhow::Result<Vec<Found>> {
    found(projects, |_| true).await
}

/// Those whose folder has this name.
pub(crate) async fn named(projects: &Path, name: &OsStr) -> anyhow::Result<Vec<Found>> {
    // Opening each database of a user with thousands would take long. The names of state folders begin with that of the workspace.
    let begin = state_name_start(name);
    found(projects, |state| state.starts_with(&begin)).await
}

/// The state folders that have a database.
pub(crate) fn states(projects: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(projects) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", projects.display())),
    };
    // One whose name begins with a dot is being made.
    let named = entries.flatten().filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    Ok(named.map(|entry| entry.path()).filter(|state| Store::is_in(state)).collect())
}

async fn found(projects: &Path, fits: impl Fn(&str) -> bool) -> anyhow::Result<Vec<Found>> {
    let mut all = Vec::new();
    let named = |state: &PathBuf| state.file_name().and_then(OsStr::to_str).is_some_and(&fits);
    for state in states(projects)?.into_iter().filter(named) {
        match of(&state).await {
            Ok(found) => all.extend(found),
            Err(error) => {
                let name = state.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let problem = Some(error.to_string());
                all.push(Found { name, root: PathBuf::new(), state, last_ms: None, problem });
            }
        }
    }
    all.sort_by_key(|found| (Reverse(found.last_ms), found.root.clone()));
    Ok(all)
}

/// The projects of one database.
pub(crate) async fn of(state: &Path) -> toolhost_store::Result<Vec<Found>> {
    let store = Store::open_reading(state, clock(), toolhost::SUBJECTS).await?;
    let projects = store.reader().projects().await;
    store.close().await?;
    let found = projects?.into_iter().map(|project| Found {
        name: project.name,
        root: PathBuf::from(project.root),
        state: state.to_owned(),
        last_ms: project.last_ms,
        problem: None,
    });
    Ok(found.collect())
}
