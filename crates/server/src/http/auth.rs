//! Who calls: a bearer token (RFC 6750) becomes a principal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use tokio::sync::Semaphore;
use toolhost_contract::{Clock, ErrorKind, ToolError};
use toolhost_store::Token;

use super::projects::{OpenProject, Projects};
use super::token::{Right, Secret, place_of};

/// How long a token that was looked up is believed. One that was revoked may still be used for so long.
const BELIEVED: Duration = Duration::from_secs(1);
/// Tokens remembered at once.
const REMEMBERED_MAX: usize = 10_000;

/// Whoever sent a request: a token, and its project.
pub(crate) struct Principal {
    pub(crate) token: Token,
    pub(crate) project: Arc<OpenProject>,
    /// A permit for each of its requests that is served.
    pub(crate) requests: Arc<Semaphore>,
}

impl Principal {
    /// Whether its token is for this.
    ///
    /// # Errors
    /// Which right it would need.
    pub(crate) fn need(&self, right: Right) -> Result<(), ToolError> {
        if self.token.scopes.iter().any(|scope| scope == right.as_str()) {
            return Ok(());
        }
        let message = format!("the token `{}` has no right to {}", self.token.id, right.as_str());
        Err(ToolError::new(ErrorKind::Permission, message)
            .hint(format!("`toolhost token create --right {}` makes one that has", right.as_str())))
    }

    /// The profile of this name that its token has, or its first.
    pub(crate) fn profile(&self, name: Option<&str>) -> Option<&str> {
        let mut profiles = self.token.profiles.iter().map(String::as_str);
        match name {
            None => profiles.next(),
            Some(name) => profiles.find(|profile| *profile == name),
        }
    }

    /// Whether its token still opens its project. A database that does not answer takes nobody's sessions away.
    pub(crate) async fn is_valid(&self) -> bool {
        self.project.tokens.is_valid(&self.token).await.unwrap_or(true)
    }

    /// The session of its calls. A token is one agent, so it is the same after a lost connection, a restart of the server and on
    /// another server of the database: what a person is asked for it stays its own.
    pub(crate) fn session(&self) -> String {
        format!("token:{}", self.token.id)
    }
}

/// Why a request is nobody's.
pub(crate) enum Unknown {
    /// It brings no token.
    Missing,
    /// Its token opens nothing.
    Invalid,
    Failed(ToolError),
}

pub(crate) struct Authenticator {
    projects: Arc<dyn Projects>,
    clock: Arc<dyn Clock>,
    requests_of_token: usize,
    /// By the hash of the secret.
    known: Mutex<HashMap<String, Known>>,
}

struct Known {
    principal: Arc<Principal>,
    until: Duration,
}

impl Authenticator {
    pub(crate) fn new(projects: Arc<dyn Projects>, clock: Arc<dyn Clock>, requests_of_token: usize) -> Self {
        Self { projects, clock, requests_of_token, known: Mutex::default() }
    }

    /// # Errors
    /// If the request has no token that is valid now.
    pub(crate) async fn principal(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Unknown> {
        let Some(said) = headers.get(header::AUTHORIZATION) else { return Err(Unknown::Missing) };
        let (scheme, text) = said.to_str().ok().and_then(|said| said.split_once(' ')).ok_or(Unknown::Invalid)?;
        let secret = Secret::parse(text.trim()).filter(|_| scheme.eq_ignore_ascii_case("bearer"));
        let secret = secret.ok_or(Unknown::Invalid)?;
        let hash = secret.hash();
        let now = self.clock.monotonic();
        let before = self.known().get(&hash).map(|known| (Arc::clone(&known.principal), known.until));
        if let Some((principal, until)) = &before
            && *until > now
        {
            return Ok(Arc::clone(principal));
        }
        let Some((token, project)) = self.look_up(&secret, &hash).await.map_err(Unknown::Failed)? else {
            self.known().remove(&hash);
            return Err(Unknown::Invalid);
        };
        // Whoever was known is the same caller, with its requests under way.
        let requests = before.map_or_else(
            || Arc::new(Semaphore::new(self.requests_of_token)),
            |(before, _)| Arc::clone(&before.requests),
        );
        let principal = Arc::new(Principal { token, project, requests });
        let mut known = self.known();
        if known.len() >= REMEMBERED_MAX {
            known.retain(|_, known| known.until > now);
        }
        known.insert(hash, Known { principal: Arc::clone(&principal), until: now + BELIEVED });
        Ok(principal)
    }

    async fn look_up(&self, secret: &Secret, hash: &str) -> Result<Option<(Token, Arc<OpenProject>)>, ToolError> {
        let keys = self.projects.keys().await?;
        for key in keys.iter().filter(|key| place_of(key) == secret.place()) {
            let Some(project) = self.projects.open(key).await? else { continue };
            let valid = project.tokens.valid(hash).await?;
            let Some(token) = valid.filter(|token| token.project_id == project.id) else { continue };
            if let Err(error) = project.tokens.used(&token).await {
                tracing::warn!(%error, "the last use of a token could not be noted");
            }
            return Ok(Some((token, project)));
        }
        Ok(None)
    }

    /// Lets go of whoever was not seen for a moment, and of their projects.
    pub(crate) fn forget(&self) {
        let now = self.clock.monotonic();
        self.known().retain(|_, known| known.until > now);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
