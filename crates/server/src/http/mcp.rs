//! MCP over streamable HTTP: one service for each caller and profile, so that nothing of one can be reached by another.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{ErrorKind, Scope, Session, ToolError};
use toolhost_host::Names;

use super::auth::Principal;
use super::envelope;
use super::metrics::Metrics;
use super::sessions::Sessions;
use super::token::Right;
use super::{HttpLimits, Serving};
use crate::mcp::{AskPages, CALLS_MAX_DEFAULT, Door, Given, Listed, McpService, NotTidied, Tidy};

/// How long a service without sessions is kept for its caller's next request.
const SERVICE_IDLE: Duration = Duration::from_secs(600);

/// Longest refusal that is read, bytes.
const REFUSAL_BYTES_MAX: usize = 4096;
/// JSON-RPC 2.0, section 5.1.
const INVALID_REQUEST: i32 = -32600;

/// The MCP services of a server.
pub(crate) struct Doors {
    open: Mutex<HashMap<Key, Arc<OpenDoor>>>,
    sessions: Arc<Semaphore>,
    limits: HttpLimits,
    version: String,
    metrics: Arc<Metrics>,
    when_idle: Arc<dyn Tidy>,
    /// Whether sessions were laid to rest since that was done.
    is_tidy_due: AtomicBool,
    /// Where there are pages for people, whether they are reached over TLS.
    pages_are_tls: Option<bool>,
    /// Ends them all.
    life: CancellationToken,
}

/// Project, caller with its rights, and profile.
type Key = (String, String, String);

struct OpenDoor {
    service: StreamableHttpService<McpService, Sessions>,
    sessions: Arc<Sessions>,
    /// As its caller has last proven to be.
    principal: Mutex<Arc<Principal>>,
    life: CancellationToken,
    used: Mutex<Instant>,
}

impl Doors {
    pub(crate) fn new(serving: &Serving, life: CancellationToken) -> Self {
        let limits = serving.limits;
        let sessions = Arc::new(Semaphore::new(limits.sessions));
        let pages_are_tls = serving.sign_in.as_ref().map(|sign_in| sign_in.is_tls);
        let (version, metrics) = (serving.version.clone(), Arc::clone(&serving.metrics));
        let when_idle = Arc::clone(&serving.when_idle);
        Self {
            open: Mutex::default(),
            sessions,
            limits,
            version,
            metrics,
            when_idle,
            is_tidy_due: AtomicBool::new(false),
            pages_are_tls,
            life,
        }
    }

    /// Answers a request whose body is whole.
    pub(crate) async fn answer(
        &self,
        principal: &Arc<Principal>,
        profile: &str,
        request: Request<Bytes>,
    ) -> Result<Response<Body>, ToolError> {
        let door = self.door(principal, profile).await?;
        *lock(&door.used) = Instant::now();
        // rmcp says of any session that it was ended.
        if request.method() == Method::DELETE && !door.sessions.has(request.headers()) {
            return Ok(envelope::problem(&ToolError::new(ErrorKind::NotFound, "there is no such session")));
        }
        let ends = request.method() == Method::DELETE;
        let mut response = door.service.handle(request.map(Full::new)).await;
        if ends && response.status() == StatusCode::ACCEPTED {
            // It has ended, which clients take nothing else for.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        if response.status() == StatusCode::INTERNAL_SERVER_ERROR && door.sessions.has_refused() {
            let message = "there are too many MCP sessions: end one with DELETE, or use one that is there";
            return Ok(envelope::problem(&ToolError::new(ErrorKind::Limit, message)));
        }
        let response = response.map(|body| Body::new(body.map_err(|never: Infallible| match never {})));
        if response.status().is_success() || is_json(&response) { Ok(response) } else { Ok(in_json(response).await) }
    }

    async fn door(&self, principal: &Arc<Principal>, profile: &str) -> Result<Arc<OpenDoor>, ToolError> {
        // The next token of a caller may grant other rights than the one that has opened a door.
        let caller = format!("{} {}", principal.grant.id, principal.grant.rights.join(" "));
        let key = (principal.project.key.clone(), caller, profile.to_owned());
        if let Some(door) = lock(&self.open).get(&key) {
            // It may hold longer than the one before.
            *lock(&door.principal) = Arc::clone(principal);
            return Ok(Arc::clone(door));
        }
        let made = Arc::new(self.make(principal, profile).await?);
        // Whoever was first has its sessions.
        Ok(Arc::clone(lock(&self.open).entry(key).or_insert(made)))
    }

    async fn make(&self, principal: &Arc<Principal>, profile: &str) -> Result<OpenDoor, ToolError> {
        let (project, grant) = (&principal.project, &principal.grant);
        let of_gate = project.gate.profile(profile).map_err(ToolError::internal)?;
        let instructions = project.describe.instructions(of_gate, &grant.name).await;
        let door = Arc::new(Door {
            gate: Arc::clone(&project.gate),
            ids: Arc::clone(&project.ids),
            scope: Scope {
                user_id: grant.user_id,
                project_id: project.id,
                session_id: Some(principal.session()),
                workflow_id: None,
                ticket_id: None,
            },
            profile: profile.to_owned(),
            persona: grant.name.clone(),
            user: grant.user.clone(),
            // Whoever has the token speaks for its client.
            ask_in_client: principal.has(Right::Approve),
            calls_max: CALLS_MAX_DEFAULT,
            // One of many callers.
            when_idle: Arc::new(NotTidied),
            listed: Listed::All,
            core: project.core,
            offers: project.offers,
            names: Names::Wire,
            output_schemas: false,
            results: None,
            instructions,
            version: self.version.clone(),
        });
        let life = self.life.child_token();
        let (given, ends) = (Arc::new(Given::default()), Session::new(life.clone()));
        let pages = self.pages_are_tls.map(|is_tls| AskPages { is_tls, project: project.key.clone() });
        let factory = move || {
            let service = McpService::new(Arc::clone(&door), Arc::clone(&given), ends.clone());
            service.map(|service| service.with_pages(pages.clone())).map_err(std::io::Error::other)
        };
        let of_caller = Session::new(life.child_token());
        let (of_all, metrics) = (Arc::clone(&self.sessions), Arc::clone(&self.metrics));
        let sessions = Arc::new(Sessions::new(self.limits.sessions_of_token, of_all, of_caller, metrics));
        // Names and origins were checked before anybody was asked who they are.
        let mut config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_json_response(true)
            .with_cancellation_token(life.child_token())
            .with_max_request_body_bytes(self.limits.body_bytes);
        config.session_store = Some(Arc::<Sessions>::clone(&sessions));
        let service = StreamableHttpService::new(factory, Arc::clone(&sessions), config);
        let used = Mutex::new(Instant::now());
        Ok(OpenDoor { service, sessions, principal: Mutex::new(Arc::clone(principal)), life, used })
    }

    /// Ends idle sessions or lets them rest, and ends everything of tokens that are not valid any more.
    pub(crate) async fn sweep(&self) {
        let all: Vec<(Key, Arc<OpenDoor>)> =
            lock(&self.open).iter().map(|(key, door)| (key.clone(), Arc::clone(door))).collect();
        let mut is_one_at_rest = false;
        for (key, door) in all {
            door.sessions.end_idle(self.limits.session_idle).await;
            is_one_at_rest |= door.sessions.rest_idle(self.limits.session_rest).await;
            let is_left = door.sessions.is_empty() && lock(&door.used).elapsed() >= SERVICE_IDLE;
            let principal = Arc::clone(&lock(&door.principal));
            if is_left || !principal.is_valid().await {
                lock(&self.open).remove(&key);
                door.sessions.end_all().await;
                door.life.cancel();
            }
        }
        // What rmcp had of them goes a moment later.
        if self.is_tidy_due.swap(is_one_at_rest, Ordering::AcqRel) {
            self.when_idle.tidy().await;
        }
    }
}

fn is_json(response: &Response<Body>) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == envelope::JSON)
}

/// What rmcp refuses in plain text, as an error of JSON-RPC.
async fn in_json(response: Response<Body>) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let text = match Limited::new(body, REFUSAL_BYTES_MAX).collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Err(_) => String::new(),
    };
    // A body whose type is right and whose content is no message.
    let is_no_message = parts.status == StatusCode::UNSUPPORTED_MEDIA_TYPE && !text.contains("Content-Type");
    let status = if is_no_message { StatusCode::BAD_REQUEST } else { parts.status };
    let error = json!({ "code": INVALID_REQUEST, "message": text });
    let said = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    let mut answer = envelope::json_response(status, said.to_string());
    if let Some(allow) = parts.headers.get(header::ALLOW) {
        answer.headers_mut().insert(header::ALLOW, allow.clone());
    }
    answer
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
