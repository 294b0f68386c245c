//! Listening: connections, what a request must have before anybody reads it, and the end.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{Path, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::routing::{MethodFilter, MethodRouter, any, get, on};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{ErrorKind, ToolError};

use super::api::routes;
use super::api_work::ZIP;
use super::auth::{Authenticator, Principal, Unknown};
use super::connections::{Address, Listener, answer_connections};
use super::ends::Ends;
use super::mcp::Doors;
use super::metrics::Metrics;
use super::oauth::{METADATA, Oauth};
use super::pages::Pages;
use super::proxies::TrustedProxies;
use super::routes::{Asked, Input, Method, PREFIX, PROJECT, Route, admit_project, no_project};
use super::token::Right;
use super::visitors::Visitors;
use super::{HttpLimits, Serving, envelope};

/// How often it is looked for sessions that are idle and tokens that are not valid any more.
const SWEEP_EVERY: Duration = Duration::from_secs(2);
/// After how many seconds an address whose logins fail may try again.
pub(super) const RETRY_LOGIN_SECONDS: &str = "60";

/// A server, listening.
struct Server {
    ends: Arc<Ends>,
    document: Arc<str>,
    /// Ends streams and sessions.
    life: CancellationToken,
    authenticator: Authenticator,
    oauth: Option<Arc<Oauth>>,
    visitors: Arc<Visitors>,
    proxies: TrustedProxies,
    pages: Option<Arc<Pages>>,
    doors: Doors,
    limits: HttpLimits,
    metrics: Arc<Metrics>,
    projects: Arc<dyn super::Projects>,
}

/// Serves until it is stopped. Then no connection is taken, and requests that are under way have [`HttpLimits::drain`] to end.
pub async fn serve(serving: Serving, listener: impl Listener, stop: CancellationToken) {
    let (limits, life) = (serving.limits, CancellationToken::new());
    let oauth = serving.oauth.clone().map(|config| Arc::new(Oauth::new(config, Arc::clone(&serving.clock))));
    let visitors = Arc::new(Visitors::new(serving.hosts.clone(), limits.failed_logins));
    let ends: Arc<Ends> = Arc::default();
    let pages = serving.sign_in.clone().map(|sign_in| {
        let live = (Arc::clone(&ends), life.clone());
        Arc::new(Pages::new(sign_in, oauth.clone(), &serving, Arc::clone(&visitors), live))
    });
    let server = Arc::new(Server {
        ends,
        document: super::openapi(&serving.version).to_string().into(),
        authenticator: Authenticator::new(&serving, oauth.clone()),
        oauth,
        visitors,
        proxies: serving.proxies.clone(),
        pages,
        doors: Doors::new(&serving, life.child_token()),
        projects: serving.projects,
        metrics: serving.metrics,
        life: life.clone(),
        limits,
    });
    let router = router(&server);
    let sweeping = tokio::spawn(sweep(Arc::clone(&server)));
    let graceful = answer_connections(&router, listener, (limits, &serving.proxies), &stop).await;
    // Streams that go on for ever would keep the server: their listeners come again elsewhere.
    life.cancel();
    if tokio::time::timeout(limits.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests are still under way at the end of the server");
    }
    sweeping.abort();
}

impl Server {
    /// The answer of an operation, counted.
    async fn counted(&self, operation: &'static str, answer: impl Future<Output = Response<Body>>) -> Response<Body> {
        let answer = answer.await;
        self.metrics.request(operation, answer.status().as_u16());
        answer
    }
}

async fn sweep(server: Arc<Server>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        server.authenticator.forget();
        server.doors.sweep().await;
    }
}

fn router(server: &Arc<Server>) -> Router {
    let mut router = Router::new();
    let mut paths: BTreeMap<&str, (MethodRouter, Vec<&str>)> = BTreeMap::new();
    for route in routes() {
        let server = Arc::clone(server);
        let handler = move |params: Params, request: Request| {
            let server = Arc::clone(&server);
            async move { server.counted(route.name, api(&server, route, params, request)).await }
        };
        let (filter, name) = match route.method {
            Method::Get => (MethodFilter::GET, "GET"),
            Method::Post => (MethodFilter::POST, "POST"),
            Method::Put => (MethodFilter::PUT, "PUT"),
            Method::Delete => (MethodFilter::DELETE, "DELETE"),
        };
        let (of_path, mut methods) = paths.remove(route.path).unwrap_or_default();
        methods.push(name);
        paths.insert(route.path, (of_path.merge(on(filter, handler)), methods));
    }
    for (path, (of_path, methods)) in paths {
        let allowed = methods.join(", ");
        router =
            router.route(&format!("{PREFIX}{path}"), of_path.fallback(move || std::future::ready(no_method(&allowed))));
    }
    for path in ["/mcp", "/mcp/{project}", "/mcp/{project}/{profile}"] {
        let server = Arc::clone(server);
        let handler = move |params: Params, request: Request| {
            let server = Arc::clone(&server);
            async move { server.counted("mcp", mcp(&server, params, request)).await }
        };
        router = router.route(path, any(handler));
    }
    // Wherever clients look, in one of the forms that they know; for all that is not there the answer is 404, also below `/mcp`.
    let (of_origin, of_path, of_mcp) = (Arc::clone(server), Arc::clone(server), Arc::clone(server));
    router = router
        .route(METADATA, get(move || async move { metadata(&of_origin, "").await }))
        .route(
            &format!("{METADATA}/{{*path}}"),
            get(move |Path(path): Path<String>| async move { metadata(&of_path, &format!("/{path}")).await }),
        )
        .route(&format!("/mcp{METADATA}"), get(move || async move { metadata(&of_mcp, "/mcp").await }))
        .route("/mcp/.well-known/{*path}", any(|| async { nothing_here() }));
    if let Some(pages) = &server.pages {
        router = router.merge(super::pages::router(pages));
    }
    let [visited, ready, of_nothing, of_no_method] = std::array::from_fn(|_| Arc::clone(server));
    router
        .route("/healthz", get(|| async { envelope::json_response(StatusCode::OK, r#"{"ok":true}"#.to_owned()) }))
        .route("/readyz", get(move || is_ready(Arc::clone(&ready))))
        .fallback(move |request: Request| async move { lost(&of_nothing, request, StatusCode::NOT_FOUND).await })
        .method_not_allowed_fallback(move |request: Request| async move {
            lost(&of_no_method, request, StatusCode::METHOD_NOT_ALLOWED).await
        })
        .layer(axum::middleware::from_fn(move |mut request: Request, next: axum::middleware::Next| {
            let server = Arc::clone(&visited);
            async move {
                if let Some(Address(peer)) = request.extensions().get().copied() {
                    let client = server.proxies.client(peer, request.headers());
                    request.extensions_mut().insert(Address(client));
                }
                let mut response = match server.visitors.check(request.method(), request.uri(), request.headers()) {
                    Ok(()) => next.run(request).await,
                    Err(error) if server.pages.is_some() && wants_page(request.headers()) => {
                        super::pages::problem(envelope::status(&error), &error, None)
                    }
                    Err(error) => envelope::problem(&error),
                };
                guard(response.headers_mut());
                response
            }
        }))
}

/// What a browser may do with an answer that is no page: nothing. Pages have headers of their own.
fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Whether requests can be served: the server does not end, and its projects can be found.
async fn is_ready(server: Arc<Server>) -> Response<Body> {
    let error = match server.projects.keys().await {
        _ if server.life.is_cancelled() => ToolError::new(ErrorKind::Limit, "the server is ending"),
        Err(error) => error,
        Ok(_) => return envelope::json_response(StatusCode::OK, r#"{"ok":true}"#.to_owned()),
    };
    envelope::problem_with(StatusCode::SERVICE_UNAVAILABLE, &error)
}

fn no_method(allowed: &str) -> Response<Body> {
    let error = ToolError::new(ErrorKind::Validation, format!("this address takes {allowed}"))
        .hint("GET /api/v1/openapi.json says what there is");
    let mut response = envelope::problem_with(StatusCode::METHOD_NOT_ALLOWED, &error);
    if let Ok(allowed) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

/// Who sent a request to this project, and a permit for it.
async fn admitted(
    server: &Server,
    request: &Parts,
    project: Option<&str>,
) -> Result<(Arc<Principal>, OwnedSemaphorePermit), Response<Body>> {
    if request.uri.query().is_some_and(|query| query.contains("thp_") || query.contains("access_token")) {
        let message = "a token does not belong into an address, where logs keep it: send it as `Authorization: Bearer`";
        return Err(envelope::problem(&ToolError::new(ErrorKind::Validation, message)));
    }
    let principal = match server.authenticator.principal(&request.headers, project).await {
        Ok(principal) => principal,
        Err(Unknown::Failed(error)) => return Err(envelope::problem(&error)),
        // It is not the caller's fault, who would throw the token away.
        Err(Unknown::Unchecked(error)) => {
            return Err(envelope::problem_with(StatusCode::SERVICE_UNAVAILABLE, &error));
        }
        Err(Unknown::NoProject) => {
            let error = no_project().hint("name it in the address: /mcp/PROJECT");
            return Err(envelope::problem(&error));
        }
        Err(Unknown::Missing) => return Err(refused(server, request, true)),
        Err(Unknown::Invalid) => return Err(refused(server, request, false)),
    };
    match Arc::clone(&principal.requests).try_acquire_owned() {
        Ok(permit) => Ok((principal, permit)),
        Err(_) => {
            let message = "too many requests of this token are under way";
            Err(envelope::problem(&ToolError::new(ErrorKind::Limit, message)))
        }
    }
}

/// The answer to whoever is nobody.
fn refused(server: &Server, request: &Parts, is_missing: bool) -> Response<Body> {
    let address = request.extensions.get::<Address>().map(|address| address.0);
    if !is_missing {
        server.metrics.failed_login();
    }
    if let Some(address) = address.filter(|_| !is_missing)
        && !server.visitors.failed(address)
    {
        let message = "too many logins from this address have failed";
        let mut response = envelope::problem(&ToolError::new(ErrorKind::Limit, message));
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_LOGIN_SECONDS));
        return response;
    }
    let message = if is_missing { "the request has no token" } else { "the token is not valid" };
    let error = ToolError::new(ErrorKind::Permission, message)
        .hint("`toolhost token create` makes one; send it as `Authorization: Bearer TOKEN`");
    let response = envelope::problem_with(StatusCode::UNAUTHORIZED, &error);
    challenged(server, response, request.uri.path(), (!is_missing).then_some("invalid_token"), &[Right::Call])
}

/// The answer to whoever has too few rights; a client of the authorization server is told which scope to ask for.
fn too_few_rights(
    server: &Server,
    request: &Parts,
    principal: &Principal,
    right: Right,
    error: &ToolError,
) -> Response<Body> {
    let response = envelope::problem(error);
    if !principal.is_of_oauth() {
        return response;
    }
    // All that the next token needs: it takes the place of this one.
    let needed: Vec<Right> = Right::ALL.into_iter().filter(|has| *has == right || principal.has(*has)).collect();
    challenged(server, response, request.uri.path(), Some("insufficient_scope"), &needed)
}

fn challenged(
    server: &Server,
    mut response: Response<Body>,
    path: &str,
    error: Option<&str>,
    rights: &[Right],
) -> Response<Body> {
    let challenge = match (&server.oauth, error) {
        (Some(oauth), error) => oauth.challenge(path, error, rights),
        (None, Some(error)) => format!("Bearer error=\"{error}\""),
        (None, None) => "Bearer".to_owned(),
    };
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// The metadata of a resource (RFC 9728), to anybody: it says where tokens come from.
async fn metadata(server: &Server, path: &str) -> Response<Body> {
    match server.oauth.as_ref().and_then(|oauth| oauth.described(path)) {
        Some(metadata) => envelope::json_response(StatusCode::OK, metadata.to_string()),
        None => nothing_here(),
    }
}

/// The answer to a request that nothing here takes: a page for a browser, if there are pages, and the envelope for a program.
async fn lost(server: &Server, request: Request, status: StatusCode) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let response = match &server.pages {
        Some(pages) if wants_page(&parts.headers) => pages.lost(&parts, status).await,
        _ if status == StatusCode::METHOD_NOT_ALLOWED => {
            let error = ToolError::new(ErrorKind::Validation, "this address does not take such a request");
            envelope::problem_with(status, &error)
        }
        _ => nothing_here(),
    };
    server.metrics.request("lost", response.status().as_u16());
    response
}

/// Whether a browser asks, for a person to look at what comes. No program asks for HTML, unless it wants a page, too.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|kinds| kinds.to_str().ok());
    accepted.flat_map(|kinds| kinds.split(',')).any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/html")
    })
}

fn nothing_here() -> Response<Body> {
    envelope::problem(&ToolError::new(ErrorKind::NotFound, "there is nothing at this address"))
}

/// The whole body of a request, within the limits of size and time; or the status and what is wrong.
pub(super) async fn whole(limits: &HttpLimits, body: Body) -> Result<Bytes, (StatusCode, ToolError)> {
    let reading = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body_timeout, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("the body is longer than {} bytes", limits.body_bytes);
            Err((StatusCode::PAYLOAD_TOO_LARGE, ToolError::too_large(message, limits.body_bytes)))
        }
        Ok(Err(_)) => {
            let error = ToolError::new(ErrorKind::Validation, "the body ended before it was whole");
            Err((StatusCode::BAD_REQUEST, error))
        }
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, ToolError::new(ErrorKind::Timeout, "the body took too long"))),
    }
}

async fn mcp(server: &Server, params: Params, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let params = match named(params) {
        Ok(params) => params,
        Err(error) => return envelope::problem(&error),
    };
    let (principal, permit) = match admitted(server, &parts, params.get("project").map(String::as_str)).await {
        Ok(admitted) => admitted,
        Err(response) => return response,
    };
    if let Err(error) = principal.need(Right::Call) {
        return too_few_rights(server, &parts, &principal, Right::Call, &error);
    }
    let is_its_own = |project: &String| *project == principal.project.key || *project == principal.project.name;
    let profile = principal.profile(params.get("profile").map(String::as_str));
    let Some(profile) = profile.filter(|_| params.get("project").is_none_or(is_its_own)) else {
        return envelope::problem(&no_project());
    };
    let body = match whole(&server.limits, body).await {
        Ok(body) => body,
        Err((status, error)) => return envelope::problem_with(status, &error),
    };
    let request = axum::http::Request::from_parts(parts, body);
    let response = server.doors.answer(&principal, profile, request).await;
    held(response.unwrap_or_else(|error| envelope::problem(&error)), permit)
}

/// The answer, which keeps the request's permit until it is written.
fn held(response: Response<Body>, permit: OwnedSemaphorePermit) -> Response<Body> {
    response.map(|body| Body::new(Held { body, _permit: permit }))
}

struct Held {
    body: Body,
    _permit: OwnedSemaphorePermit,
}

impl hyper::body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

/// The parts of a path; what is no UTF-8 names nothing.
pub(super) type Params = Result<RawPathParams, RawPathParamsRejection>;

pub(super) fn named(params: Params) -> Result<HashMap<String, String>, ToolError> {
    let params = params.map_err(|_| ToolError::new(ErrorKind::NotFound, "there is nothing at this address"))?;
    Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

async fn api(server: &Server, route: &'static Route, params: Params, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let path = match named(params) {
        Ok(path) => path,
        Err(error) => return envelope::problem(&error),
    };
    let (principal, permit) = match admitted(server, &parts, path.get(PROJECT).map(String::as_str)).await {
        Ok(admitted) => admitted,
        Err(response) => return response,
    };
    if let Err(error) = admit_project(&path, &principal) {
        return envelope::problem(&error);
    }
    if let Some(right) = route.right
        && let Err(error) = principal.need(right)
    {
        return too_few_rights(server, &parts, &principal, right, &error);
    }
    let query = match query_of(parts.uri.query().unwrap_or_default()) {
        Ok(query) => query,
        Err(error) => return envelope::problem(&error),
    };
    let asked = Asked {
        limits: server.limits,
        document: Arc::clone(&server.document),
        ends: Arc::clone(&server.ends),
        life: server.life.clone(),
        principal,
        path,
        query,
        headers: parts.headers,
        body: Value::Null,
        bytes: Bytes::new(),
    };
    let reply = match route.admit(&asked) {
        Ok(()) => handle(server, route, asked, body).await,
        Err(error) => return envelope::problem(&error),
    };
    match reply {
        Ok(response) => held(response, permit),
        Err(response) => response,
    }
}

async fn handle(
    server: &Server,
    route: &'static Route,
    mut asked: Asked,
    body: Body,
) -> Result<Response<Body>, Response<Body>> {
    match route.takes.body {
        Some(Input::Json(_)) if !is_json(&asked.headers) => {
            return Err(no_such_type("the body has to be JSON: `Content-Type: application/json`"));
        }
        Some(Input::Json(_)) => {
            let bytes = whole(&server.limits, body).await.map_err(no_body)?;
            asked.body = serde_json::from_slice(&bytes).map_err(|error| {
                let message = format!("the body is no JSON: {error}");
                envelope::problem(&ToolError::new(ErrorKind::Validation, message))
            })?;
        }
        Some(Input::Zip) if asked.headers.get(header::CONTENT_TYPE).is_none_or(|kind| kind != ZIP) => {
            return Err(no_such_type("the body has to be a package: `Content-Type: application/zip`"));
        }
        Some(Input::Zip) => asked.bytes = whole(&server.limits, body).await.map_err(no_body)?,
        None => {}
    }
    tracing::debug!(operation = route.name, "a request");
    (route.run)(asked).await.map(super::envelope::Reply::into_response).map_err(|error| envelope::problem(&error))
}

fn no_body((status, error): (StatusCode, ToolError)) -> Response<Body> {
    envelope::problem_with(status, &error)
}

fn no_such_type(message: &str) -> Response<Body> {
    let error = ToolError::new(ErrorKind::Validation, message);
    envelope::problem_with(StatusCode::UNSUPPORTED_MEDIA_TYPE, &error)
}

/// Whether a body says that it is JSON as it stands.
fn is_json(headers: &HeaderMap) -> bool {
    let said = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let kind = said(header::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let (kind, rest) = kind.split_once(';').unwrap_or((&kind, ""));
    let charset = rest.trim().strip_prefix("charset=").unwrap_or("utf-8").trim_matches('"');
    kind.trim() == envelope::JSON
        && charset == "utf-8"
        && said(header::CONTENT_ENCODING).is_none_or(|how| how == "identity")
}

/// What stands after the question mark, each name once.
pub(super) fn query_of(text: &str) -> Result<BTreeMap<String, String>, ToolError> {
    let mut query = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |part: &str| {
            let text = part.replace('+', " ");
            percent_encoding::percent_decode_str(&text)
                .decode_utf8()
                .map(|text| text.into_owned())
                .map_err(|_| ToolError::new(ErrorKind::Validation, "what stands after the question mark is no UTF-8"))
        };
        let name = decoded(name)?;
        if query.insert(name.clone(), decoded(value)?).is_some() {
            let message = format!("`{}` stands there twice", toolhost_contract::visible_line(&name));
            return Err(ToolError::new(ErrorKind::Validation, message));
        }
    }
    Ok(query)
}
