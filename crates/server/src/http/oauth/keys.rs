//! The keys of the authorization server: fetched when they are needed, kept while they are fresh, and a while longer where the server does
//! not answer.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;
use toolhost_contract::{Clock, ErrorKind, ToolError};

use super::jwt::{Key, Refused};
use super::{Documents, OauthConfig, OauthLimits};

/// Keys that are kept; an authorization server has a few.
const KEYS_MAX: usize = 100;

pub(crate) struct Keys {
    issuer: String,
    documents: Arc<dyn Documents>,
    limits: OauthLimits,
    clock: Arc<dyn Clock>,
    /// Held while they are fetched, so that many requests fetch them once.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    keys: Arc<Vec<Key>>,
    endpoints: Option<Endpoints>,
    /// When they were fetched.
    fetched: Option<Duration>,
    /// When it was last tried.
    tried: Option<Duration>,
}

/// Where people sign in, and where a code becomes a token.
#[derive(Clone)]
pub(crate) struct Endpoints {
    pub(crate) authorization: String,
    pub(crate) token: String,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

impl Keys {
    pub(crate) fn new(config: &OauthConfig, clock: Arc<dyn Clock>) -> Self {
        Self {
            issuer: config.issuer.clone(),
            documents: Arc::clone(&config.documents),
            limits: config.limits,
            clock,
            known: Mutex::default(),
        }
    }

    /// The keys that a token with this key's name may be signed with.
    ///
    /// # Errors
    /// If there are none that may be believed, and they cannot be fetched.
    pub(crate) async fn of(&self, key_id: Option<&str>) -> Result<Arc<Vec<Key>>, Refused> {
        let mut known = self.known.lock().await;
        let now = self.clock.monotonic();
        let age = known.fetched.map(|fetched| now.saturating_sub(fetched));
        let is_fresh = age.is_some_and(|age| age < self.limits.keys_fresh);
        let has = key_id.is_none_or(|id| known.keys.iter().any(|key| key.kid.as_deref() == Some(id)));
        let may_try = known.tried.is_none_or(|tried| now.saturating_sub(tried) >= self.limits.refetch);
        if (is_fresh && has) || !may_try {
            return self.usable(&known, age);
        }
        known.tried = Some(now);
        match self.fetch().await {
            Ok((keys, endpoints)) => {
                known.keys = Arc::new(keys);
                known.endpoints = endpoints;
                known.fetched = Some(now);
                Ok(Arc::clone(&known.keys))
            }
            Err(error) => {
                tracing::warn!(error = %error.message, issuer = self.issuer, "the keys of the authorization server could not be fetched");
                self.usable(&known, age)
            }
        }
    }

    fn usable(&self, known: &Known, age: Option<Duration>) -> Result<Arc<Vec<Key>>, Refused> {
        if age.is_some_and(|age| age < self.limits.keys_stale) {
            return Ok(Arc::clone(&known.keys));
        }
        let message = "the authorization server does not answer, so no token of it can be checked now";
        Err(Refused::Failed(ToolError::new(ErrorKind::Limit, message).hint("try again in a minute")))
    }

    /// Where people sign in.
    ///
    /// # Errors
    /// If the authorization server does not say, or does not answer.
    pub(crate) async fn endpoints(&self) -> Result<Endpoints, ToolError> {
        self.of(None).await.map_err(|refused| match refused {
            Refused::Failed(error) => error,
            Refused::Invalid(why) => ToolError::new(ErrorKind::Security, why),
        })?;
        let found = self.known.lock().await.endpoints.clone();
        found.ok_or_else(|| ToolError::new(ErrorKind::Io, "the authorization server does not say where people sign in"))
    }

    async fn fetch(&self) -> Result<(Vec<Key>, Option<Endpoints>), ToolError> {
        let metadata = self.published().await?;
        if metadata.issuer != self.issuer {
            let message = format!("{} says that it is {}", self.issuer, metadata.issuer);
            return Err(ToolError::new(ErrorKind::Security, message));
        }
        let set = self.documents.get(&metadata.jwks_uri).await?;
        let set: KeySet = serde_json::from_value(set).map_err(ToolError::internal)?;
        // One of a kind that is not known must not hide the others.
        let keys = set.keys.into_iter().take(KEYS_MAX).filter_map(|key| serde_json::from_value(key).ok()).collect();
        let endpoints = metadata.authorization_endpoint.zip(metadata.token_endpoint);
        Ok((keys, endpoints.map(|(authorization, token)| Endpoints { authorization, token })))
    }

    /// What the authorization server says of itself (OpenID Connect Discovery 1.0, RFC 8414).
    async fn published(&self) -> Result<Metadata, ToolError> {
        let issuer = self.issuer.trim_end_matches('/');
        let mut last = None;
        for url in [
            format!("{issuer}/.well-known/openid-configuration"),
            with_path_behind(issuer, "/.well-known/oauth-authorization-server"),
        ] {
            match self.documents.get(&url).await {
                Ok(found) => return serde_json::from_value(found).map_err(ToolError::internal),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| ToolError::internal("no address")))
    }
}

/// An address with a well-known part between its origin and its path (RFC 8414, section 3.1).
fn with_path_behind(issuer: &str, well_known: &str) -> String {
    let after_scheme = issuer.find("://").map_or(0, |at| at + 3);
    let path = issuer[after_scheme..].find('/').map_or(issuer.len(), |at| after_scheme + at);
    format!("{}{well_known}{}", &issuer[..path], &issuer[path..])
}
