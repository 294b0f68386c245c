//! This server as a client of the authorization server, where people sign in: OpenID Connect Core 1.0, the code flow, with PKCE (RFC 7636).
//!
//! What belongs to one login is kept in the browser alone, in a cookie: a server that is started anew, or another one of the same database,
//! can finish it, and nobody can fill a database with logins that never end.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolhost_contract::{ErrorKind, ToolError};

use super::jwt::{Claims, Jwt};
use super::{Oauth, Refused};

/// Where the authorization server sends people back to.
pub(crate) const CALLBACK: &str = "/login/openid/callback";
/// How long ago a person may have said there who they are; the provider asks again after that.
const SAID_AGO_MAX: Duration = Duration::from_secs(5 * 60);
/// Random bytes of each part of a login.
const PART_BYTES: usize = 32;

/// This server, as the authorization server knows it.
#[derive(Clone)]
pub struct LoginClient {
    pub id: String,
    /// `None`: a public client, which PKCE alone protects.
    pub secret: Option<String>,
}

/// One login that is under way.
pub(crate) struct Flow {
    /// Comes back with the browser: the answer belongs to this login.
    state: String,
    /// Comes back in the token: the token belongs to this login.
    nonce: String,
    /// Whoever has only seen the code cannot use it.
    verifier: String,
}

impl Flow {
    /// # Errors
    /// If the system has no random bytes.
    pub(crate) fn new() -> Result<Self, ToolError> {
        let part = || -> Result<String, ToolError> {
            let mut bytes = [0; PART_BYTES];
            getrandom::fill(&mut bytes).map_err(ToolError::internal)?;
            Ok(URL_SAFE_NO_PAD.encode(bytes))
        };
        Ok(Self { state: part()?, nonce: part()?, verifier: part()? })
    }

    /// One that a browser brings back.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(str::to_owned);
        let flow = Self { state: parts.next()?, nonce: parts.next()?, verifier: parts.next()? };
        let is_part = |part: &String| URL_SAFE_NO_PAD.decode(part).is_ok_and(|bytes| bytes.len() == PART_BYTES);
        (parts.next().is_none() && [&flow.state, &flow.nonce, &flow.verifier].into_iter().all(is_part)).then_some(flow)
    }

    pub(crate) fn text(&self) -> String {
        format!("{}.{}.{}", self.state, self.nonce, self.verifier)
    }

    /// Whether an answer is to this login.
    pub(crate) fn is_answered_by(&self, state: &str) -> bool {
        self.state == state
    }
}

impl Oauth {
    /// Whether people sign in at the authorization server.
    pub(crate) fn signs_people_in(&self) -> bool {
        self.config.login.is_some()
    }

    /// Where a browser is sent to sign in.
    ///
    /// # Errors
    /// If the authorization server cannot be asked where that is, or signs nobody in.
    pub(crate) async fn login_address(&self, flow: &Flow) -> Result<String, ToolError> {
        let client = self.login_client()?;
        let endpoints = self.keys.endpoints().await?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(flow.verifier.as_bytes()));
        let scope = if self.config.user_claim == "sub" { "openid" } else { "openid profile email" };
        let mut address = endpoints.authorization;
        // People are sent where nobody else can read what they type.
        let is_safe = address.starts_with("https://")
            || ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|own| {
                address.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/', '?']))
            });
        if !is_safe || address.contains('#') {
            let message = "the authorization server sends people to an address that is not https";
            return Err(ToolError::new(ErrorKind::Security, message));
        }
        address.push(if address.contains('?') { '&' } else { '?' });
        let said_ago = SAID_AGO_MAX.as_secs().to_string();
        let query = [
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", &self.callback()),
            ("scope", scope),
            ("state", &flow.state),
            ("nonce", &flow.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("max_age", &said_ago),
        ];
        let query = query.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
        address.push_str(&query.join("&"));
        Ok(address)
    }

    /// The user whom the authorization server has signed in, for the code that the browser has brought.
    ///
    /// # Errors
    /// Why it is nobody.
    pub(crate) async fn signed_in(&self, flow: &Flow, code: &str) -> Result<String, Refused> {
        let client = self.login_client().map_err(Refused::Failed)?;
        let endpoints = self.keys.endpoints().await.map_err(Refused::Failed)?;
        let callback = self.callback();
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", callback.as_str()),
            ("code_verifier", flow.verifier.as_str()),
        ];
        let login = client.secret.as_deref().map(|secret| (client.id.as_str(), secret));
        if login.is_none() {
            form.push(("client_id", &client.id));
        }
        let answer = self.config.documents.post(&endpoints.token, &form, login).await.map_err(Refused::Failed)?;
        let token = answer.get("id_token").and_then(Value::as_str);
        let token = token.ok_or(Refused::Invalid("the answer has no ID token"))?;
        let jwt = Jwt::parse(token, self.config.limits.token_bytes)?;
        let keys = self.keys.of(jwt.key_id()).await?;
        let claims = jwt.verified(&keys)?;
        self.check_login(&claims, &client.id, &flow.nonce)?;
        self.user_of(&claims)
    }

    /// OpenID Connect Core 1.0, section 3.1.3.7.
    fn check_login(&self, claims: &Claims, client: &str, nonce: &str) -> Result<(), Refused> {
        self.check_issuer_and_time(claims)?;
        let audiences = claims.audiences();
        let party = claims.text("azp");
        let is_for_us = audiences.contains(&client) && party.as_deref().is_none_or(|party| party == client);
        if !is_for_us || (audiences.len() > 1 && party.is_none()) {
            return Err(Refused::Invalid("it is for another client"));
        }
        if claims.text("nonce").as_deref() != Some(nonce) {
            return Err(Refused::Invalid("it belongs to another login"));
        }
        // Who asks with `max_age` is told.
        let said = claims.number("auth_time").ok_or(Refused::Invalid("it does not say when its user has signed in"))?;
        let ago = (self.clock.unix_ms() / 1000).saturating_sub(said);
        let leeway = self.config.limits.leeway.as_secs().cast_signed();
        let longest = SAID_AGO_MAX.as_secs().cast_signed() + leeway;
        if ago > longest || ago < -leeway {
            return Err(Refused::Invalid("its user has not signed in a moment ago"));
        }
        Ok(())
    }

    fn login_client(&self) -> Result<&LoginClient, ToolError> {
        let missing = || ToolError::new(ErrorKind::NotFound, "People do not sign in elsewhere here.");
        self.config.login.as_ref().ok_or_else(missing)
    }

    fn callback(&self) -> String {
        format!("{}{CALLBACK}", self.config.public_url)
    }
}
