//! Remotes that the operator grants to git tools, as the configuration has them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use schemars::JsonSchema;
use serde::Deserialize;
use toolhost_contract::workspace::{Remote, RemoteAccess, RemoteUrl, TokenSource};

use crate::keys::Vault;

/// The user of a token where none is named: the large servers take any.
const USER_DEFAULT: &str = "git";
/// Below the home: the hosts whose keys a person has accepted.
const KNOWN_HOSTS: &str = ".ssh/known_hosts";

/// One table of `[[remotes]]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoteTable {
    /// As the tools name it.
    name: String,
    /// `https://…`, `ssh://…` or `user@host:path`.
    url: String,
    /// The workspace that it is for.
    workspace: Option<PathBuf>,
    /// The name of the token, as `toolhost key set` keeps it.
    pub(crate) token: Option<String>,
    /// The user whose password the token is.
    user: Option<String>,
    /// The private key for ssh.
    key: Option<PathBuf>,
    /// The hosts whose keys are known.
    known_hosts: Option<PathBuf>,
}

/// The grants of a configuration.
pub(crate) fn granted(tables: &[RemoteTable], vault: &Vault, home: &Path) -> anyhow::Result<Vec<Remote>> {
    let grant =
        |table| grant(table, vault, home).with_context(|| format!("the configuration's remote `{}`", table.name));
    tables.iter().map(grant).collect()
}

fn grant(table: &RemoteTable, vault: &Vault, home: &Path) -> anyhow::Result<Remote> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if table.name.is_empty() || table.name.starts_with(['-', '.']) || !table.name.chars().all(plain) {
        bail!("its name is not made of letters, digits, `-`, `_` and `.`");
    }
    let url = RemoteUrl::parse(&table.url).map_err(anyhow::Error::msg)?;
    let access = match (&table.token, &table.key) {
        (Some(_), Some(_)) => bail!("it has a token and a key: an address uses one of them"),
        (Some(_), None) if url.is_ssh() => bail!("an address of ssh takes a `key`, not a token"),
        (Some(_), None) if !url.is_private() => {
            bail!("a token would be readable on its way: use https")
        }
        (Some(name), None) => {
            let (vault, name) = (vault.clone(), name.clone());
            let user = table.user.clone().unwrap_or_else(|| USER_DEFAULT.to_owned());
            if user.is_empty() || user.chars().any(char::is_control) {
                bail!("its user is empty or has control characters");
            }
            RemoteAccess::Token { user, token: TokenSource::new(move || token(&vault, &name)) }
        }
        (None, Some(_)) if !url.is_ssh() => bail!("a key is for ssh; an address of https takes a `token`"),
        (None, Some(file)) => {
            let known_hosts = table.known_hosts.clone().unwrap_or_else(|| home.join(KNOWN_HOSTS));
            for file in [file, &known_hosts] {
                if !file.is_absolute() {
                    bail!("{} is not an absolute path", file.display());
                }
            }
            RemoteAccess::Key { file: file.clone(), known_hosts }
        }
        (None, None) if url.is_ssh() => bail!("an address of ssh needs a `key`: the path of a private key"),
        (None, None) => RemoteAccess::Open,
    };
    // A folder that does not exist yet is compared by the path as written.
    let workspace = table.workspace.as_ref().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
    Ok(Remote { name: table.name.clone(), url, access, workspace })
}

fn token(vault: &Vault, name: &str) -> Result<String, String> {
    match vault.find(name) {
        Ok(Some((token, _))) => Ok(token.reveal().to_owned()),
        Ok(None) => Err(format!(
            "the token {name} is not stored on this machine: the operator stores it with `toolhost key set {name}`"
        )),
        Err(error) => {
            tracing::error!("the token {name}: {error:#}");
            Err(format!("the token {name} cannot be read: the operator finds the reason in the log"))
        }
    }
}
