//! Who calls: a bearer token (RFC 6750) becomes a principal.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use toolhost_contract::{Clock, ErrorKind, ToolError};
use toolhost_store::{Role, Token};

use super::Serving;
use super::oauth::{Identity, Oauth, Refused, scope_of};
use super::projects::{OpenProject, Projects};
use super::token::{Right, Secret, place_of};

/// How long a token that was looked up is believed. One that was revoked may still be used for so long.
const BELIEVED: Duration = Duration::from_secs(1);
/// Tokens remembered at once.
const REMEMBERED_MAX: usize = 10_000;

/// Whoever sent a request, and the project it is for.
pub(crate) struct Principal {
    pub(crate) grant: Grant,
    pub(crate) project: Arc<OpenProject>,
    clock: Arc<dyn Clock>,
    /// A permit for each of its requests that is served.
    pub(crate) requests: Arc<Semaphore>,
}

/// What a caller has proven to be, and may.
pub(crate) struct Grant {
    /// Names the caller.
    pub(crate) id: String,
    /// The author of its calls.
    pub(crate) name: String,
    /// The user in whose name they are made.
    pub(crate) user: String,
    pub(crate) user_id: i64,
    /// The first one is that of a client that names none.
    pub(crate) profiles: Vec<String>,
    pub(crate) rights: Vec<String>,
    proof: Proof,
}

enum Proof {
    /// A token that this server has issued.
    Token(Box<Token>),
    /// One of the authorization server, which holds until then.
    Oauth { expires_at_ms: i64 },
}

impl Principal {
    /// Whether it may do this.
    ///
    /// # Errors
    /// Which right it would need.
    pub(crate) fn need(&self, right: Right) -> Result<(), ToolError> {
        if self.has(right) {
            return Ok(());
        }
        let message = format!("the token `{}` has no right to {}", self.grant.id, right.as_str());
        let error = ToolError::new(ErrorKind::Permission, message);
        Err(match self.grant.proof {
            Proof::Token(_) => {
                error.hint(format!("`toolhost token create --right {}` makes one that has", right.as_str()))
            }
            Proof::Oauth { .. } => error.hint(format!("ask for the scope `{}`", scope_of(right))),
        })
    }

    pub(crate) fn has(&self, right: Right) -> bool {
        self.grant.rights.iter().any(|has| has == right.as_str())
    }

    /// Whether its token is one of the authorization server, which can give it one with more scopes.
    pub(crate) fn is_of_oauth(&self) -> bool {
        matches!(self.grant.proof, Proof::Oauth { .. })
    }

    /// The profile of this name that it has, or its first.
    pub(crate) fn profile(&self, name: Option<&str>) -> Option<&str> {
        let mut profiles = self.grant.profiles.iter().map(String::as_str);
        match name {
            None => profiles.next(),
            Some(name) => profiles.find(|profile| *profile == name),
        }
    }

    /// The same, or which there are.
    ///
    /// # Errors
    /// If it has no such profile.
    pub(crate) fn granted_profile(&self, name: Option<&str>) -> Result<&str, ToolError> {
        self.profile(name).ok_or_else(|| {
            let error = ToolError::new(ErrorKind::Permission, "the token has no such profile");
            match &self.grant.profiles[..] {
                [] => error.hint("it has none"),
                has => error.hint(format!("it has `{}`", has.join("`, `"))),
            }
        })
    }

    /// Whether it still may come in. A database that does not answer takes nobody's sessions away.
    pub(crate) async fn is_valid(&self) -> bool {
        match &self.grant.proof {
            Proof::Token(token) => self.project.tokens.is_valid(token).await.unwrap_or(true),
            Proof::Oauth { expires_at_ms } => {
                let role = self.project.people.role(self.project.id, self.grant.user_id).await;
                self.clock.unix_ms() < *expires_at_ms && role.map_or(true, |role| role.is_some())
            }
        }
    }

    /// Whether its user owns the project.
    ///
    /// # Errors
    /// If they do not.
    pub(crate) async fn need_owner(&self) -> Result<(), ToolError> {
        match self.project.people.role(self.project.id, self.grant.user_id).await? {
            Some(Role::Owner) => Ok(()),
            _ => Err(ToolError::new(ErrorKind::Permission, "only an owner of this project may do that")),
        }
    }

    /// The same, by the tokens and members that may come in.
    pub(crate) fn is_among(&self, tokens: &BTreeSet<String>, members: &BTreeSet<i64>) -> bool {
        match &self.grant.proof {
            Proof::Token(token) => tokens.contains(&token.id),
            Proof::Oauth { expires_at_ms } => {
                self.clock.unix_ms() < *expires_at_ms && members.contains(&self.grant.user_id)
            }
        }
    }

    /// The session of its calls. A token is one agent, and so is a user's client, so it is the same after a lost connection, a restart of
    /// the server and on another server of the database: what a person is asked for it stays its own.
    pub(crate) fn session(&self) -> String {
        match self.grant.proof {
            Proof::Token(_) => format!("token:{}", self.grant.id),
            Proof::Oauth { .. } => self.grant.id.clone(),
        }
    }
}

/// Why a request is nobody's.
pub(crate) enum Unknown {
    /// It brings no token.
    Missing,
    /// Its token opens nothing.
    Invalid,
    /// Its token is valid, and there is no such project for it.
    NoProject,
    /// Whether its token is valid cannot be told now.
    Unchecked(ToolError),
    Failed(ToolError),
}

pub(crate) struct Authenticator {
    projects: Arc<dyn Projects>,
    clock: Arc<dyn Clock>,
    oauth: Option<Arc<Oauth>>,
    requests_of_token: usize,
    known: Mutex<HashMap<KnownBy, Known>>,
}

/// The hash of a secret, and the project that was named.
type KnownBy = (String, Option<String>);

struct Known {
    principal: Arc<Principal>,
    until: Duration,
}

impl Authenticator {
    pub(crate) fn new(serving: &Serving, oauth: Option<Arc<Oauth>>) -> Self {
        Self {
            projects: Arc::clone(&serving.projects),
            clock: Arc::clone(&serving.clock),
            oauth,
            requests_of_token: serving.limits.requests_of_token,
            known: Mutex::default(),
        }
    }

    /// Who sends a request to this project, or to the one of its token.
    ///
    /// # Errors
    /// If the request has no token that is valid now.
    pub(crate) async fn principal(
        &self,
        headers: &HeaderMap,
        project: Option<&str>,
    ) -> Result<Arc<Principal>, Unknown> {
        let Some(said) = headers.get(header::AUTHORIZATION) else { return Err(Unknown::Missing) };
        let (scheme, text) = said.to_str().ok().and_then(|said| said.split_once(' ')).ok_or(Unknown::Invalid)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Unknown::Invalid);
        }
        let (text, secret) = (text.trim(), Secret::parse(text.trim()));
        let known_by = match (&secret, &self.oauth) {
            // A token of ours says itself which project it is for.
            (Some(secret), _) => (secret.hash(), None),
            (None, Some(_)) => (hex::encode(Sha256::digest(text.as_bytes())), project.map(str::to_owned)),
            (None, None) => return Err(Unknown::Invalid),
        };
        let now = self.clock.monotonic();
        let before = self.known().get(&known_by).map(|known| (Arc::clone(&known.principal), known.until));
        if let Some((principal, until)) = &before
            && *until > now
        {
            return Ok(Arc::clone(principal));
        }
        let found = match (&secret, &self.oauth) {
            (Some(secret), _) => self.of_token(secret, &known_by.0).await,
            (None, Some(oauth)) => self.of_oauth(oauth, text, project).await,
            (None, None) => Err(Unknown::Invalid),
        };
        let (grant, project) = match found {
            Ok(found) => found,
            Err(unknown) => {
                self.known().remove(&known_by);
                return Err(unknown);
            }
        };
        // Whoever was known is the same caller, with its requests under way.
        let requests = before.map_or_else(
            || Arc::new(Semaphore::new(self.requests_of_token)),
            |(before, _)| Arc::clone(&before.requests),
        );
        let principal = Arc::new(Principal { grant, project, clock: Arc::clone(&self.clock), requests });
        let mut known = self.known();
        if known.len() >= REMEMBERED_MAX {
            known.retain(|_, known| known.until > now);
        }
        known.insert(known_by, Known { principal: Arc::clone(&principal), until: now + BELIEVED });
        Ok(principal)
    }

    async fn of_token(&self, secret: &Secret, hash: &str) -> Result<(Grant, Arc<OpenProject>), Unknown> {
        let keys = self.projects.keys().await?;
        for key in keys.iter().filter(|key| place_of(key) == secret.place()) {
            // The prefix of a token may be made up: what cannot be opened is not to be told from what is not there.
            let project = match self.projects.open(key).await {
                Ok(Some(project)) => project,
                Ok(None) => continue,
                Err(error) => {
                    tracing::warn!(
                        key,
                        error = &error as &dyn std::error::Error,
                        "a project could not be opened, so its tokens cannot be checked"
                    );
                    continue;
                }
            };
            let valid = project.tokens.valid(hash).await.map_err(ToolError::from)?;
            let Some(token) = valid.filter(|token| token.project_id == project.id) else { continue };
            if let Err(error) = project.tokens.used(&token).await {
                tracing::warn!(%error, "the last use of a token could not be noted");
            }
            return Ok((Grant::of_token(token), project));
        }
        Err(Unknown::Invalid)
    }

    /// Of a token that says who its user is, and not for which project.
    async fn of_oauth(
        &self,
        oauth: &Oauth,
        text: &str,
        project: Option<&str>,
    ) -> Result<(Grant, Arc<OpenProject>), Unknown> {
        let identity = oauth.identity(text).await.map_err(|refused| match refused {
            Refused::Invalid(why) => {
                tracing::info!(why, "a token of the authorization server is refused");
                Unknown::Invalid
            }
            Refused::Failed(error) => Unknown::Unchecked(error),
        })?;
        let keys = self.projects.keys().await?;
        let named = |key: &&String| project.is_none_or(|project| *key == project);
        // Without a name, the one project that there is.
        let key = keys.iter().find(named).filter(|_| project.is_some() || keys.len() == 1).ok_or(Unknown::NoProject)?;
        if !identity.projects.is_empty() && !identity.projects.contains(key) {
            return Err(Unknown::NoProject);
        }
        // What cannot be opened cannot say whose it is: to others it would tell that it exists.
        let opened = self.projects.open(key).await.unwrap_or_else(|error| {
            tracing::warn!(key, error = &error as &dyn std::error::Error, "a project could not be opened");
            None
        });
        let project = opened.ok_or(Unknown::NoProject)?;
        let user_id = project.people.user(&identity.user).await.map_err(ToolError::from)?.ok_or(Unknown::NoProject)?;
        let role = project.people.role(project.id, user_id).await.map_err(ToolError::from)?;
        role.ok_or(Unknown::NoProject)?;
        Ok((Grant::of_identity(identity, user_id, &project), project))
    }

    /// Lets go of whoever was not seen for a moment, and of their projects.
    pub(crate) fn forget(&self) {
        let now = self.clock.monotonic();
        self.known().retain(|_, known| known.until > now);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<KnownBy, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<ToolError> for Unknown {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

impl Grant {
    fn of_token(token: Token) -> Self {
        Self {
            id: token.id.clone(),
            name: token.name.clone(),
            user: token.user.clone(),
            user_id: token.user_id,
            profiles: token.profiles.clone(),
            rights: token.scopes.clone(),
            proof: Proof::Token(Box::new(token)),
        }
    }

    /// Profiles that the project does not have grant nothing.
    fn of_identity(identity: Identity, user_id: i64, project: &OpenProject) -> Self {
        let mut profiles = identity.profiles;
        profiles.retain(|profile| project.gate.profile(profile).is_ok());
        Self {
            id: format!("oauth:{}", identity.caller),
            name: identity.client,
            user: identity.user,
            user_id,
            profiles,
            rights: identity.rights,
            proof: Proof::Oauth { expires_at_ms: identity.expires_at_ms },
        }
    }
}
