//! Who a person at a terminal is on a shared database: the user whose login it has, and nobody else.

use toolhost_store::{Store, TerminalLogin};

use crate::error::{Error, Result};
use crate::limits::USER_DEFAULT;

/// A command line, as it proves on a shared database whose it is.
#[derive(Debug, Clone)]
pub struct Terminal {
    /// SHA-256 of the secret that its file has, hex; `None` if there is no such file and none could be made.
    pub hash: Option<String>,
    /// What it calls itself: `ada@laptop`.
    pub name: String,
}

impl Terminal {
    /// The login that holds now. `named`: the user whom the person says they are. Where nobody has ever proven who they are, the first
    /// command line gets a login.
    ///
    /// # Errors
    /// [`Error::NotSignedIn`], or [`Error::SignedInAsOther`] if the login is another user's.
    pub async fn login(&self, store: &Store, named: Option<&str>) -> Result<TerminalLogin> {
        let terminals = store.terminals();
        let not_signed_in = || Error::NotSignedIn { place: store.place().to_owned() };
        let hash = self.hash.as_deref().ok_or_else(not_signed_in)?;
        let login = match terminals.valid(hash).await? {
            Some(login) => login,
            None => {
                let first = terminals.first(hash, named.unwrap_or(USER_DEFAULT), &self.name).await?;
                // Another command of this terminal may have been the first, at this very moment.
                let login = if first.is_some() { first } else { terminals.valid(hash).await? };
                login.ok_or_else(not_signed_in)?
            }
        };
        if let Some(named) = named.filter(|named| *named != login.user) {
            return Err(Error::SignedInAsOther {
                named: named.to_owned(),
                user: login.user,
                place: store.place().to_owned(),
            });
        }
        if let Err(error) = terminals.used(&login).await {
            tracing::debug!(%error, "the last use of a login could not be noted");
        }
        Ok(login)
    }
}
