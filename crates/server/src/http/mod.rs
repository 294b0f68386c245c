//! The HTTP door: MCP at `/mcp`, the JSON API at `/api/v1`, for every project of a host, for callers that prove who they are.
//!
//! The door authenticates and translates, and decides nothing else: a request becomes a [`Call`](toolhost_contract::Call) in the name
//! of its token's user, with its token's profile, and the gate says what becomes of it. What is somebody else's and what does not
//! exist are one answer.

mod answers;
mod api;
mod api_reads;
mod api_sessions;
mod api_webhooks;
mod api_work;
mod audit_row;
mod auth;
mod by_person;
mod connections;
mod ends;
mod envelope;
mod events;
mod listen;
mod mcp;
mod metrics;
mod oauth;
mod openapi;
mod pages;
mod projects;
mod proxies;
mod routes;
mod scrape;
mod sessions;
mod token;
mod told;
mod visitors;
mod work;

pub use connections::Listener;
pub use listen::serve;
pub use metrics::Metrics;
pub use oauth::{Documents, LoginClient, OauthConfig, OauthLimits};
pub use pages::SignIn;
pub use projects::{Describe, OpenProject, Projects};
pub use proxies::{ForwardedBy, Network, TrustedProxies};
pub use scrape::serve_metrics;
pub use token::{Right, Secret, place_of};
pub use work::{
    Archive, By, ChangePreview, DeployLine, DeployUndo, DeployWork, Done, Forked, Imported, MemberChanged, ModelLine,
    NewRole, NewRun, PackageFindings, Replaces, SessionInfo, Stop, Target, TokenMade, TokenWish, WebhookWork,
    WholePackage, Work,
};

use std::sync::Arc;
use std::time::Duration;

use toolhost_contract::Clock;

use crate::mcp::Tidy;

/// The API as an OpenAPI 3.1 document.
#[must_use]
pub fn openapi(version: &str) -> serde_json::Value {
    openapi::document(version, api::routes())
}

/// What an HTTP door needs, handed in.
#[derive(Clone)]
pub struct Serving {
    pub projects: Arc<dyn Projects>,
    pub clock: Arc<dyn Clock>,
    /// Names that this server is reached by, besides those of loopback. A request for any other is refused: a page of another name
    /// could have had its name lead here (DNS rebinding).
    pub hosts: Vec<String>,
    /// Who is believed about where a request comes from.
    pub proxies: TrustedProxies,
    /// Whose tokens are taken besides those that this server has issued.
    pub oauth: Option<OauthConfig>,
    /// How people sign in, whom pages are for; `None`: there are no pages.
    pub sign_in: Option<SignIn>,
    pub limits: HttpLimits,
    /// What is done when MCP sessions have been laid to rest.
    pub when_idle: Arc<dyn Tidy>,
    /// Counts calls, too, where it is the observer of the gates.
    pub metrics: Arc<Metrics>,
    pub version: String,
}

/// How much of the server its callers may have.
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// Connections that are open at once; further ones wait to be taken.
    pub connections: usize,
    /// The same of one address; further ones are closed. A trusted proxy may have all.
    pub connections_of_address: usize,
    /// Longest head of a request, bytes; at least 8,192, which is the least that the HTTP library reads.
    pub head_bytes: usize,
    /// How long a client may take for the head of a request.
    pub head_timeout: Duration,
    /// How long a client may take for the body of a request.
    pub body_timeout: Duration,
    /// Longest body, bytes.
    pub body_bytes: usize,
    /// Requests of one token that are served at once.
    pub requests_of_token: usize,
    /// MCP sessions of one token.
    pub sessions_of_token: usize,
    /// MCP sessions of all.
    pub sessions: usize,
    /// How long an MCP session may be idle, with no request under way and nobody listening.
    pub session_idle: Duration,
    /// How long one may be so before it is kept small: its next request begins it anew, unseen by its client. Replies can be fetched once more
    /// for a minute.
    pub session_rest: Duration,
    /// Pages of one person that hear at once what changes.
    pub streams_of_person: usize,
    /// The same of all people.
    pub streams: usize,
    /// Failed logins of one address in a minute.
    pub failed_logins: u32,
    /// How long a request waits for the first call with the same `Idempotency-Key` to end.
    pub keyed_wait: Duration,
    /// How long requests under way may take when the server ends.
    pub drain: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_of_address: 2048,
            head_bytes: 64 * 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            body_bytes: 16 * 1024 * 1024,
            requests_of_token: 256,
            sessions_of_token: 64,
            sessions: 4096,
            session_idle: Duration::from_secs(30 * 60),
            session_rest: Duration::from_secs(60),
            streams_of_person: 32,
            streams: 2048,
            failed_logins: 30,
            keyed_wait: Duration::from_secs(20),
            drain: Duration::from_secs(30),
        }
    }
}
