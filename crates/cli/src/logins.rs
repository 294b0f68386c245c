//! Where logins to the server of this machine are kept: in the shared database, or in one of the server's own.

use std::time::Duration;

use anyhow::Context;
use toolhost_contract::Durability;
use toolhost_server::http::SignIn;
use toolhost_store::{LoginLife, Logins, Store};

use crate::projects;
use crate::settings::Settings;

/// How long a link that signs somebody in can be opened.
pub(crate) const LINK_LIVES: Duration = Duration::from_secs(600);

/// # Errors
/// If the database cannot be opened.
pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Store> {
    if let Some(url) = settings.shared_database()? {
        return Ok(Store::connect(&url, projects::clock(), toolhost::SUBJECTS).await?);
    }
    let folder = settings.server_state()?;
    let opened = Store::open(&folder, projects::clock(), toolhost::SUBJECTS, Durability::default()).await;
    opened.with_context(|| format!("the logins in {} cannot be opened", folder.display()))
}

pub(crate) fn of(store: &Store) -> Logins {
    store.logins(LoginLife::default())
}

/// A link of a server that signs a user in, once.
///
/// # Errors
/// If it cannot be kept.
pub(crate) async fn new_link(logins: &Logins, server: &str, user: &str) -> anyhow::Result<String> {
    let (path, hash) = SignIn::new_link().context("this system gives no random bytes")?;
    logins.add_link(&hash, user, LINK_LIVES).await?;
    Ok(format!("{}{path}", server.trim_end_matches('/')))
}
