//! Which page is where, and what is checked before it is made.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use axum::routing::{get, post};
use tokio_util::sync::CancellationToken;
use toolhost_contract::{Clock, ErrorKind, REDACTED, ToolError};
use toolhost_host::ANSWER_BYTES_MAX;
use toolhost_store::Login;

use super::done::Done;
use super::live::{LIVE, Streams, listen};
use super::route::{Route, Wanted};
use super::sign_in::{Door, ELSEWHERE, LOGIN, LOGOUT, Opened, SignIn};
use super::visitor::Visitor;
use super::{
    STATIC, access, asks, audit, batch, board, builder, clients, deploys, file, files, models, multipart, plan,
    plan_new, policy, problem, projects, record, search, sessions, terminals,
};
use crate::http::connections::Address;
use crate::http::ends::Ends;
use crate::http::listen::{Params, RETRY_LOGIN_SECONDS, named, query_of, whole};
use crate::http::oauth::{CALLBACK, Oauth};
use crate::http::visitors::Visitors;
use crate::http::{HttpLimits, Metrics, OpenProject, Projects, Serving, envelope};

/// Masks secrets in a whole page. Only for viewers: no form of theirs would send a masked text back.
async fn masked(answer: Response<Body>, project: &OpenProject) -> Result<Response<Body>, ToolError> {
    let kind = answer.headers().get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html")) {
        return Ok(answer);
    }
    let (mut parts, body) = answer.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.map_err(ToolError::internal)?;
    let mut text = String::from_utf8(bytes.into()).map_err(ToolError::internal)?;
    project.gate.redact_text(&mut text);
    let text = without_rests(&text);
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::from(text)))
}

/// A page without what follows a mask and belongs to the secret: a secret goes on behind a character that HTML writes as a reference,
/// such as `&#60;`, in which a mask ends. It ends at a blank, a tag or a quote.
fn without_rests(page: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(page.len()), page);
    while let Some(at) = rest.find(REDACTED) {
        let (before, behind) = rest.split_at(at + REDACTED.len());
        shown.push_str(before);
        let goes_on = [";", "&#60;", "&#62;", "&#38;"].iter().any(|mark| behind.starts_with(mark));
        let is_end = |place: usize| {
            let from = &behind[place..];
            from.starts_with(['<', '"'])
                || from.starts_with(char::is_whitespace)
                || QUOTES.iter().any(|q| from.starts_with(q))
        };
        let end = behind.char_indices().map(|(place, _)| place).find(|place| is_end(*place)).unwrap_or(behind.len());
        rest = if goes_on { &behind[end..] } else { behind };
    }
    shown.push_str(rest);
    shown
}

/// Quotes as pages write them.
const QUOTES: [&str; 2] = ["&#34;", "&#39;"];

/// What all pages have in common.
pub(crate) struct Pages {
    door: Door,
    projects: Arc<dyn Projects>,
    clock: Arc<dyn Clock>,
    limits: HttpLimits,
    visitors: Arc<Visitors>,
    metrics: Arc<Metrics>,
    streams: Arc<Streams>,
    ends: Arc<Ends>,
    /// Ends streams.
    life: CancellationToken,
}

/// Longest form, bytes: the longest answer, as browsers encode it.
const FORM_BYTES_MAX: usize = 4 * ANSWER_BYTES_MAX;

/// The pages for people who have signed in.
const ROUTES: &[&[Route]] = &[
    asks::ROUTES,
    batch::ROUTES,
    projects::ROUTES,
    search::ROUTES,
    files::ROUTES,
    deploys::ROUTES,
    audit::ROUTES,
    policy::ROUTES,
    access::ROUTES,
    clients::ROUTES,
    models::ROUTES,
    sessions::ROUTES,
    board::ROUTES,
    record::ROUTES,
    plan::ROUTES,
    plan_new::ROUTES,
    builder::PACKAGE_ROUTES,
    builder::OBJECT_ROUTES,
    builder::CHANGES_ROUTES,
    builder::CHANGE_ROUTES,
    builder::ASSISTANT_ROUTES,
    builder::EDIT_ROUTES,
    builder::AGENT_ROUTES,
    builder::NEW_ROUTES,
    terminals::ROUTES,
];

impl Pages {
    pub(crate) fn new(
        sign_in: SignIn,
        oauth: Option<Arc<Oauth>>,
        serving: &Serving,
        visitors: Arc<Visitors>,
        (ends, life): (Arc<Ends>, CancellationToken),
    ) -> Self {
        Self {
            door: Door::new(sign_in, oauth.filter(|oauth| oauth.signs_people_in())),
            projects: Arc::clone(&serving.projects),
            clock: Arc::clone(&serving.clock),
            limits: serving.limits,
            visitors,
            metrics: Arc::clone(&serving.metrics),
            streams: Streams::new(serving.limits.streams_of_person, serving.limits.streams),
            ends,
            life,
        }
    }

    /// A page for whoever has signed in.
    async fn page(&self, route: &Route, params: Params, request: Request) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let answer = match named(params) {
            Ok(path) => self.made(&parts, path, body, route).await,
            Err(_) => self.lost(&parts, StatusCode::NOT_FOUND).await,
        };
        self.metrics.request(route.name, answer.status().as_u16());
        answer
    }

    async fn made(&self, parts: &Parts, path: HashMap<String, String>, body: Body, route: &Route) -> Response<Body> {
        let login = match self.door.login(&parts.headers).await {
            Ok(Some(login)) => login,
            Ok(None) if only_looks(parts) => return self.door.ask_before(&parts.uri, &parts.headers),
            Ok(None) => {
                let error = ToolError::new(ErrorKind::Permission, "You are not signed in any more.")
                    .hint("Sign in, go back, and send it again.");
                return problem(StatusCode::UNAUTHORIZED, &error, None);
            }
            Err(error) => return failed(&error, None),
        };
        // Nothing is read of whoever is nobody.
        let wanted = match self.wanted(parts, path, (body, route.path == builder::IMPORT), &login).await {
            Ok(wanted) => wanted,
            Err(answer) => return answer,
        };
        let terminals = self.door.terminals();
        let told = self.door.told_done(&parts.headers);
        let done = told.map(Done::sentence).unwrap_or_default();
        let looks_at = OnceLock::new();
        let (projects, clock) = (&*self.projects, &*self.clock);
        let visitor = Visitor { login: &login, projects, clock, terminals, done, looks_at: &looks_at };
        let mut answer = (route.make)(visitor, wanted).await.unwrap_or_else(|error| failed(&error, Some(&login)));
        if let Some(project) = looks_at.get() {
            answer = masked(answer, project).await.unwrap_or_else(|error| failed(&error, Some(&login)));
        }
        match answer.extensions_mut().remove::<Done>() {
            Some(done) => self.door.with_done(answer, &parts.headers, Some(done)),
            // A page that only leads on says nothing yet.
            None if told.is_some() && !answer.status().is_redirection() => {
                self.door.with_done(answer, &parts.headers, None)
            }
            None => answer,
        }
    }

    /// What a request says, if this server's own page sends it.
    async fn wanted(
        &self,
        parts: &Parts,
        path: HashMap<String, String>,
        (body, may_have_files): (Body, bool),
        login: &Login,
    ) -> Result<Wanted, Response<Body>> {
        let query = query_of(parts.uri.query().unwrap_or_default()).map_err(|error| failed(&error, Some(login)))?;
        let (server, shows) = (self.door.server(&parts.headers), parts.method != Method::HEAD);
        if only_looks(parts) {
            return Ok(Wanted { path, query, form: None, shows, server, files: BTreeMap::new() });
        }
        if !self.door.sent_by_own_page(&parts.headers) {
            let error = ToolError::new(ErrorKind::Security, "This form was not sent by a page of this server.")
                .hint("Open the page here and send it again.");
            return Err(failed(&error, Some(login)));
        }
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if let Some(boundary) = kind.and_then(multipart::boundary).filter(|_| may_have_files) {
            let most = builder::UPLOAD_BYTES_MAX.min(self.limits.body_bytes);
            let limits = HttpLimits { body_bytes: most, ..self.limits };
            let body = whole(&limits, body).await.map_err(|error| no_form(&error, &login.user))?;
            let sent = multipart::parse(&body, boundary).map_err(|error| failed(&error, Some(login)))?;
            return Ok(Wanted { path, query, form: Some(sent.fields), shows, server, files: sent.files });
        }
        let limits = HttpLimits { body_bytes: FORM_BYTES_MAX.min(self.limits.body_bytes), ..self.limits };
        let body = whole(&limits, body).await.map_err(|error| no_form(&error, &login.user))?;
        let text = std::str::from_utf8(&body)
            .map_err(|_| failed(&ToolError::new(ErrorKind::Validation, "The form is no text."), Some(login)))?;
        let form = query_of(text).map_err(|error| failed(&error, Some(login)))?;
        Ok(Wanted { path, query, form: Some(form), shows, server, files: BTreeMap::new() })
    }

    /// The page for an address that no page has, or that takes no such request, with the menu for whoever has signed in.
    pub(crate) async fn lost(&self, parts: &Parts, status: StatusCode) -> Response<Body> {
        let login = self.door.login(&parts.headers).await.ok().flatten();
        let error = match status {
            StatusCode::METHOD_NOT_ALLOWED => {
                ToolError::new(ErrorKind::Validation, "This address cannot be asked in this way.")
                    .hint("Go back, open the page anew, and try again.")
            }
            _ => ToolError::new(ErrorKind::NotFound, "There is nothing at this address.")
                .hint("It may have been mistyped, or the link may be old."),
        };
        problem(status, &error, login.as_ref().map(|login| &*login.user))
    }

    /// A link that signs somebody in, looked at or used up.
    async fn link(&self, secret: String, request: Request) -> Response<Body> {
        let (parts, _) = request.into_parts();
        let is_used = !only_looks(&parts);
        if is_used && !self.door.sent_by_own_page(&parts.headers) {
            let error = ToolError::new(ErrorKind::Security, "This form was not sent by a page of this server.");
            return failed(&error, None);
        }
        let opened = match is_used {
            true => self.door.use_link(&secret, &parts.headers).await,
            false => self.door.show_link(&secret, &parts.headers).await,
        };
        let answer = match opened {
            Ok(Opened::Answer(answer)) => answer,
            Ok(Opened::Unknown) => self.failed_login(&parts, self.door.old_link(&parts.headers)),
            Err(error) => failed(&error, None),
        };
        self.metrics.request("login", answer.status().as_u16());
        answer
    }

    /// The answer to a login that failed; who fails often has to wait.
    fn failed_login(&self, parts: &Parts, answer: Response<Body>) -> Response<Body> {
        self.metrics.failed_login();
        let address = parts.extensions.get::<Address>().map(|address| address.0);
        if address.is_none_or(|address| self.visitors.failed(address)) {
            return answer;
        }
        let error = ToolError::new(ErrorKind::Limit, "Too many logins from this address have failed.")
            .hint("Wait a minute, then try again.");
        let mut response = failed(&error, None);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_LOGIN_SECONDS));
        response
    }

    /// What an open page listens to.
    async fn live(&self, request: Request) -> Response<Body> {
        let answer = match self.door.open_page(request.headers()).await {
            Ok(Some(login)) => {
                let terminals = self.door.terminals();
                let (projects, clock) = (&*self.projects, &*self.clock);
                let visitor =
                    Visitor { login: &login, projects, clock, terminals, done: "", looks_at: &OnceLock::new() };
                let parts = (self.door.logins(), &self.streams, &*self.ends);
                let life = self.life.clone();
                let query = query_of(request.uri().query().unwrap_or_default()).unwrap_or_default();
                let made = query.get("heard").map(String::as_str).unwrap_or_default();
                listen(&visitor, (request.headers(), made), parts, life)
                    .await
                    .unwrap_or_else(|error| failed(&error, None))
            }
            Ok(None) => {
                let error = ToolError::new(ErrorKind::Permission, "You are not signed in.");
                problem(StatusCode::UNAUTHORIZED, &error, None)
            }
            Err(error) => failed(&error, None),
        };
        self.metrics.request("live", answer.status().as_u16());
        answer
    }

    async fn sign_in(&self, request: Request) -> Response<Body> {
        match self.door.login(request.headers()).await {
            Ok(login) => self.door.ask(StatusCode::OK, request.headers(), login.as_ref()),
            Err(error) => failed(&error, None),
        }
    }

    /// Sends a browser to the identity provider.
    async fn go_elsewhere(&self, request: Request) -> Response<Body> {
        // A page of another site could refresh somebody's login so, which shows that they are there.
        if request.headers().get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
            return self.sign_in(request).await;
        }
        self.door.go_elsewhere(request.headers()).await.unwrap_or_else(|error| elsewhere_failed(&error))
    }

    /// A browser that comes back from there.
    async fn come_back(&self, request: Request) -> Response<Body> {
        let (parts, _) = request.into_parts();
        let query = match query_of(parts.uri.query().unwrap_or_default()) {
            Ok(query) => query,
            Err(error) => return failed(&error, None),
        };
        let answer = match self.door.come_back(&parts.headers, &query).await {
            Ok(answer) => answer,
            Err(error) if error.kind == ErrorKind::Permission => {
                let answer = self.door.without_flow(failed(&error, None), &parts.headers);
                self.failed_login(&parts, answer)
            }
            Err(error) => elsewhere_failed(&error),
        };
        self.metrics.request("login", answer.status().as_u16());
        answer
    }

    async fn sign_out(&self, request: Request) -> Response<Body> {
        if !self.door.sent_by_own_page(request.headers()) {
            let error = ToolError::new(ErrorKind::Security, "This form was not sent by a page of this server.");
            return failed(&error, None);
        }
        let left = self.door.leave(request.headers()).await;
        self.streams.somebody_signed_out();
        left.unwrap_or_else(|error| failed(&error, None))
    }
}

/// A form that could not be read whole.
fn no_form((status, error): &(StatusCode, ToolError), user: &str) -> Response<Body> {
    problem(*status, error, Some(user))
}

fn failed(error: &ToolError, login: Option<&Login>) -> Response<Body> {
    problem(envelope::status(error), error, login.map(|login| &*login.user))
}

/// Whether a request changes nothing.
fn only_looks(parts: &Parts) -> bool {
    matches!(parts.method, Method::GET | Method::HEAD)
}

/// The provider's failure is neither the person's nor this server's.
fn elsewhere_failed(error: &ToolError) -> Response<Body> {
    match error.kind {
        ErrorKind::Io | ErrorKind::Limit | ErrorKind::Timeout => problem(StatusCode::SERVICE_UNAVAILABLE, error, None),
        _ => failed(error, None),
    }
}

/// All pages.
pub(crate) fn router(pages: &Arc<Pages>) -> Router {
    let [login, link, elsewhere, back, logout, live] = std::array::from_fn(|_| Arc::clone(pages));
    let on_link = move |Path(secret): Path<String>, request: Request| {
        let pages = Arc::clone(&link);
        async move { pages.link(secret, request).await }
    };
    let signed_out = Router::new()
        .route(LOGIN, get(move |request: Request| async move { login.sign_in(request).await }))
        .route(&format!("{LOGIN}/{{secret}}"), get(on_link.clone()).post(on_link))
        .route(ELSEWHERE, get(move |request: Request| async move { elsewhere.go_elsewhere(request).await }))
        .route(CALLBACK, get(move |request: Request| async move { back.come_back(request).await }))
        .route(LIVE, get(move |request: Request| async move { live.live(request).await }))
        .route(LOGOUT, post(move |request: Request| async move { logout.sign_out(request).await }))
        .route(
            &format!("{STATIC}/{{name}}"),
            get(|Path(name): Path<String>| async move { file(&name).unwrap_or_else(no_file) }),
        );
    ROUTES.iter().copied().flatten().fold(signed_out, |router, route| {
        let pages = Arc::clone(pages);
        let make = move |params: Params, request: Request| {
            let pages = Arc::clone(&pages);
            async move { pages.page(route, params, request).await }
        };
        let methods = get(make.clone());
        router.route(route.path, if route.takes_forms { methods.post(make) } else { methods })
    })
}

fn no_file() -> Response<Body> {
    problem(StatusCode::NOT_FOUND, &ToolError::new(ErrorKind::NotFound, "There is no such file."), None)
}

#[cfg(test)]
mod tests {
    use super::without_rests;

    #[test]
    fn a_mask_takes_what_a_secret_goes_on_with() {
        for (page, shown) in [
            ("<p>password=[redacted];Kilo77 and</p>", "<p>password=[redacted] and</p>"),
            ("<p>secret: [redacted]&#62;Nova77</p>", "<p>secret: [redacted]</p>"),
            (
                "<p>&#34;password&#34;: &#34;[redacted];Mike77&#34;, x</p>",
                "<p>&#34;password&#34;: &#34;[redacted]&#34;, x</p>",
            ),
            (
                "<p>[redacted]&#34; stays, [redacted]&#39;s too</p>",
                "<p>[redacted]&#34; stays, [redacted]&#39;s too</p>",
            ),
            ("[redacted], [redacted]", "[redacted], [redacted]"),
            ("ends [redacted];X", "ends [redacted]"),
        ] {
            assert_eq!(without_rests(page), shown);
        }
    }
}
