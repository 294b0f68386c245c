//! Where logins to the server of this machine are kept: in the shared database, or in one of the server's own.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use toolhost_contract::Durability;
use toolhost_server::http::SignIn;
use toolhost_store::{LoginLife, Logins, Store, TerminalLogin};

use crate::settings::Settings;
use crate::{Usage, projects, terminals};

/// How long a link that signs somebody in can be opened.
pub(crate) const LINK_LIVES: Duration = Duration::from_secs(600);

/// How long a person has to open the link that an owner made for them.
pub(crate) const INVITATION_LIVES: Duration = Duration::from_secs(24 * 3600);
/// The address of a server where nobody says.
pub(crate) const SERVER_DEFAULT: &str = "http://127.0.0.1:7420";

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

/// The login of this terminal. On a database of this machine, its user needs none: `shared` is the login file of a shared one.
///
/// # Errors
/// If a shared database has no login of this terminal, or it is of another user than was named.
pub(crate) async fn signed_in(
    store: &Store,
    shared: Option<&Path>,
    settings: &Settings,
) -> anyhow::Result<TerminalLogin> {
    if let Some(file) = shared {
        return Ok(terminals::of(file).login(store, settings.named_user()?.as_deref()).await?);
    }
    let terminal = terminals::name();
    let own = TerminalLogin {
        hash: String::new(),
        user: settings.user_name()?,
        terminal,
        created_at_ms: 0,
        used_at_ms: 0,
        expires_at_ms: i64::MAX,
    };
    Ok(own)
}

/// The address of a server, as somebody typed it.
///
/// # Errors
/// If it is none.
pub(crate) fn checked_address(server: &str) -> anyhow::Result<&str> {
    let is_address = ["http://", "https://"].iter().any(|scheme| server.starts_with(scheme));
    if !is_address || server.contains(['?', '#', '@', ' ']) || server.chars().any(char::is_control) {
        return Err(Usage::error("--server is an address such as https://tools.example.org"));
    }
    Ok(server)
}

pub(crate) fn of(store: &Store) -> Logins {
    store.logins(LoginLife::default())
}

/// A link of a server that signs a user in, once.
///
/// # Errors
/// If it cannot be kept.
pub(crate) async fn new_link(logins: &Logins, server: &str, (user, lives): (&str, Duration)) -> anyhow::Result<String> {
    let (path, hash) = SignIn::new_link().context("this system gives no random bytes")?;
    logins.add_link(&hash, user, lives).await?;
    Ok(format!("{}{path}", server.trim_end_matches('/')))
}
