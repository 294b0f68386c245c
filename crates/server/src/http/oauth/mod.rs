//! This server as an OAuth 2.1 resource server: it takes access tokens of one authorization server, checks them itself, and passes none
//! on. It issues none.
//!
//! What clients find out first is RFC 9728; tokens are JWTs (RFC 9068 where the authorization server follows it), their keys a JWK set
//! (RFC 7517).

mod jwt;
mod keys;
mod openid;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolhost_contract::{BoxFuture, Clock, ToolError};

use self::jwt::{Claims, Jwt};
use self::keys::Keys;
use super::token::Right;

pub(crate) use self::jwt::Refused;
pub use self::openid::LoginClient;
pub(crate) use self::openid::{CALLBACK, Flow};

/// Where clients look for the metadata of a protected resource (RFC 9728, section 3.1).
pub(crate) const METADATA: &str = "/.well-known/oauth-protected-resource";
/// How the scopes of this server begin.
const SCOPE: &str = "toolhost:";
/// How scopes that grant a profile begin.
const PROFILE_SCOPE: &str = "toolhost:profile:";
/// Bytes of the hash that names a caller.
const CALLER_BYTES: usize = 12;

/// Fetches JSON documents of the authorization server.
pub trait Documents: Send + Sync {
    /// # Errors
    /// If the document cannot be fetched, or is no JSON.
    fn get<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Value, ToolError>>;

    /// The document that answers a form, sent by a client that proves itself with a name and a secret, if it has one (RFC 6749,
    /// section 2.3.1).
    ///
    /// # Errors
    /// If the form is refused, or the answer is no JSON.
    fn post<'a>(
        &'a self,
        url: &'a str,
        form: &'a [(&'a str, &'a str)],
        client: Option<(&'a str, &'a str)>,
    ) -> BoxFuture<'a, Result<Value, ToolError>>;
}

/// Which authorization server is believed, and what its tokens are for.
#[derive(Clone)]
pub struct OauthConfig {
    /// Exactly as its tokens say it in `iss`.
    pub issuer: String,
    /// This server's own address as clients know it, without a slash at its end: `https://tools.example.org`.
    pub public_url: String,
    /// Audiences of tokens besides this server's own addresses.
    pub audiences: Vec<String>,
    /// The claim that holds the name of the user here.
    pub user_claim: String,
    /// Users that no token speaks for, such as the one whom a program of this machine acts for where nobody is named.
    pub refused_users: Vec<String>,
    /// Scopes that each valid token has besides its own, for authorization servers that know none of ours.
    pub scopes: Vec<String>,
    /// Lets people sign in there; `None`: only tokens are taken.
    pub login: Option<LoginClient>,
    pub documents: Arc<dyn Documents>,
    pub limits: OauthLimits,
}

/// Limits of what the authorization server and its tokens cost.
#[derive(Debug, Clone, Copy)]
pub struct OauthLimits {
    /// Longest token, bytes.
    pub token_bytes: usize,
    /// How far the clocks of the two servers may be apart.
    pub leeway: Duration,
    /// How long keys are believed before they are fetched anew.
    pub keys_fresh: Duration,
    /// How long keys are believed while they cannot be fetched anew.
    pub keys_stale: Duration,
    /// How seldom keys are fetched because a token names one that is not known.
    pub refetch: Duration,
}

impl Default for OauthLimits {
    fn default() -> Self {
        Self {
            token_bytes: 16 * 1024,
            leeway: Duration::from_secs(60),
            keys_fresh: Duration::from_secs(600),
            keys_stale: Duration::from_secs(3600),
            refetch: Duration::from_secs(60),
        }
    }
}

/// Who a token speaks for.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// Names the caller: this user with this client.
    pub(crate) caller: String,
    /// How the client is called.
    pub(crate) client: String,
    pub(crate) user: String,
    pub(crate) profiles: Vec<String>,
    pub(crate) rights: Vec<String>,
    pub(crate) expires_at_ms: i64,
    /// The projects that it is for by its audience; none: whichever the request names.
    pub(crate) projects: Vec<String>,
}

pub(crate) struct Oauth {
    config: OauthConfig,
    keys: Keys,
    clock: Arc<dyn Clock>,
}

impl Oauth {
    pub(crate) fn new(config: OauthConfig, clock: Arc<dyn Clock>) -> Self {
        let keys = Keys::new(&config, Arc::clone(&clock));
        Self { config, keys, clock }
    }

    /// Checks a token: its form, its signature by a key of the issuer, and its claims, in this order.
    ///
    /// # Errors
    /// Why it opens nothing.
    pub(crate) async fn identity(&self, text: &str) -> Result<Identity, Refused> {
        let jwt = Jwt::parse(text, self.config.limits.token_bytes)?;
        let keys = self.keys.of(jwt.key_id()).await?;
        let claims = jwt.verified(&keys)?;
        self.check(&claims)?;
        self.identity_of(claims)
    }

    fn check(&self, claims: &Claims) -> Result<(), Refused> {
        if !claims.audiences().iter().any(|audience| self.is_audience(audience)) {
            return Err(Refused::Invalid("it is for another audience"));
        }
        self.check_issuer_and_time(claims)
    }

    fn check_issuer_and_time(&self, claims: &Claims) -> Result<(), Refused> {
        if claims.iss != self.config.issuer {
            return Err(Refused::Invalid("it is of another issuer"));
        }
        let (now, leeway) = (self.clock.unix_ms() / 1000, self.config.limits.leeway.as_secs().cast_signed());
        if claims.exp.saturating_add(leeway) <= now {
            return Err(Refused::Invalid("it has expired"));
        }
        if [claims.nbf, claims.iat].into_iter().flatten().any(|from| from.saturating_sub(leeway) > now) {
            return Err(Refused::Invalid("it is not valid yet"));
        }
        Ok(())
    }

    /// Clients name this server as its origin, with a slash or without, or as the very address that they use.
    fn is_audience(&self, audience: &str) -> bool {
        if self.config.audiences.iter().any(|known| known == audience) {
            return true;
        }
        let Some(path) = audience.strip_prefix(&self.config.public_url) else { return false };
        let path = path.strip_suffix('/').unwrap_or(path);
        path.is_empty() || is_resource(path)
    }

    /// The projects that a token is for, where each of its audiences here is the address of one.
    fn projects_of(&self, claims: &Claims) -> Vec<String> {
        let own = claims.audiences().into_iter().filter(|audience| self.is_audience(audience));
        let project = |audience: &str| {
            let path = audience.strip_prefix(&self.config.public_url)?.strip_prefix("/mcp/")?;
            path.split('/').next().filter(|project| !project.is_empty()).map(str::to_owned)
        };
        own.map(project).collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    /// The name of the user here whom the claims speak for.
    fn user_of(&self, claims: &Claims) -> Result<String, Refused> {
        let user = claims.text(&self.config.user_claim).ok_or(Refused::Invalid("it names no user"))?;
        if self.config.user_claim == "email" && claims.is_email_verified() != Some(true) {
            return Err(Refused::Invalid("the address of its user was not verified"));
        }
        if self.config.refused_users.contains(&user) {
            return Err(Refused::Invalid("no token speaks for its user"));
        }
        Ok(user)
    }

    fn identity_of(&self, claims: Claims) -> Result<Identity, Refused> {
        let user = self.user_of(&claims)?;
        let client = claims.client().unwrap_or_else(|| "oauth".to_owned());
        let scopes: Vec<String> = claims.scopes().into_iter().chain(self.config.scopes.iter().cloned()).collect();
        let of = |prefix: &str| -> Vec<String> {
            let mut found: Vec<String> =
                scopes.iter().filter_map(|scope| scope.strip_prefix(prefix)).map(str::to_owned).collect();
            found.dedup();
            found
        };
        let rights = of(SCOPE).into_iter().filter(|right| Right::parse(right).is_some()).collect();
        let caller = Sha256::digest(format!("{}\n{}\n{client}", claims.iss, claims.sub).as_bytes());
        Ok(Identity {
            caller: hex::encode(&caller[..CALLER_BYTES]),
            client,
            user,
            profiles: of(PROFILE_SCOPE),
            rights,
            expires_at_ms: claims.exp.saturating_mul(1000),
            projects: self.projects_of(&claims),
        })
    }

    /// The metadata of a resource of this server (RFC 9728, section 2); `None` if it has no such resource.
    pub(crate) fn described(&self, path: &str) -> Option<Value> {
        if !path.is_empty() && !is_resource(path) {
            return None;
        }
        let scopes: Vec<String> = Right::ALL.iter().map(|right| scope_of(*right)).collect();
        Some(json!({
            "resource": format!("{}{path}", self.config.public_url),
            "authorization_servers": [self.config.issuer],
            "scopes_supported": scopes,
            "bearer_methods_supported": ["header"],
            "resource_name": "Toolhost",
        }))
    }

    /// What whoever has no token, or one that is not enough, is told to get (RFC 6750, section 3; RFC 9728, section 5.1).
    pub(crate) fn challenge(&self, path: &str, error: Option<&str>, rights: &[Right]) -> String {
        let path = if is_resource(path) { path } else { "" };
        let error = error.map(|error| format!("error=\"{error}\", ")).unwrap_or_default();
        let scopes: Vec<String> = rights.iter().map(|right| scope_of(*right)).collect();
        format!(
            "Bearer {error}resource_metadata=\"{}{METADATA}{path}\", scope=\"{}\"",
            self.config.public_url,
            scopes.join(" ")
        )
    }
}

/// The scope that grants a right.
pub(crate) fn scope_of(right: Right) -> String {
    format!("{SCOPE}{}", right.as_str())
}

/// Whether MCP is served at a path: `/mcp`, `/mcp/PROJECT` or `/mcp/PROJECT/PROFILE`, in characters that need no quotes.
fn is_resource(path: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~%".contains(&byte))
    };
    let mut parts = path.split('/');
    parts.next() == Some("") && parts.next() == Some("mcp") && parts.clone().count() <= 2 && parts.all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_mcp_are_resources() {
        for path in ["/mcp", "/mcp/shop", "/mcp/shop-1a2b/developer", "/mcp/a%20b"] {
            assert!(is_resource(path), "{path}");
        }
        for path in
            ["", "/", "mcp", "/api/v1", "/mcp/", "/mcp/a/b/c", "/mcp/..", "/mcp/../x", "/mcp/a\"b", "/mcp/a b", "/mcpx"]
        {
            assert!(!is_resource(path), "{path}");
        }
    }
}
