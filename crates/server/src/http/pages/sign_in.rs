//! Signing in: a link that works once or an identity provider, and the cookie that says from then on whose browser this is.
//!
//! The cookie holds 256 random bits, and the database their SHA-256. Another site's page can send no form in its name: a form is taken only
//! from a page of this server ([`Door::sent_by_own_page`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use sha2::{Digest, Sha256};
use toolhost_contract::{ErrorKind, ToolError, visible_line};
use toolhost_store::{Error, Login, Logins, Proof, Terminals};

use super::done::Done;
use super::{Place, page, see};
use crate::http::oauth::{Flow, Oauth, Refused};

/// Where people sign in.
pub(crate) const LOGIN: &str = "/login";
/// Where people go to sign in at an identity provider.
pub(crate) const ELSEWHERE: &str = "/login/openid";
/// Where a browser is signed out.
pub(crate) const LOGOUT: &str = "/logout";
/// What a page says of itself when it fetches itself again: nobody has used the login then.
const BY_ITSELF: &str = "toolhost-live";
/// Where people confirm that a terminal is theirs.
pub(super) const TERMINAL: &str = "/login/terminal";
/// Letters of a code that people compare.
const CODE_LETTERS: usize = 8;
/// The letters of RFC 8628, section 6.1.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// Fetch Metadata (W3C).
const SENT_BY: &str = "sec-fetch-site";
/// Random bytes of what a cookie holds, and of a link.
const SECRET_BYTES: usize = 32;
/// How long a browser keeps the cookie, seconds. The server decides how long it holds.
const COOKIE_SECONDS: u32 = 7 * 24 * 3600;
/// Cookies of one name that are looked at when somebody signs out.
const SECRETS_ENDED_MAX: usize = 8;
/// How long a browser remembers which page it was to come back to, seconds.
const RETURN_SECONDS: u32 = 3600;
/// How long a browser keeps what was done, if no page follows that says it, seconds.
const DONE_SECONDS: u32 = 60;
/// The longest address to come back to, bytes.
const RETURN_BYTES_MAX: usize = 1024;
/// How long a login elsewhere may take, seconds.
const FLOW_SECONDS: u32 = 600;

/// How people sign in.
#[derive(Clone)]
pub struct SignIn {
    pub logins: Logins,
    /// Whether browsers reach this server over TLS, its own or a proxy's: then the cookie goes over nothing else.
    pub is_tls: bool,
}

impl SignIn {
    /// The path of a new link that signs a user in, and the hash that is kept of it.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn new_link() -> Result<(String, String), getrandom::Error> {
        let (secret, hash) = Self::new_secret()?;
        Ok((format!("{LOGIN}/{secret}"), hash))
    }

    /// A new secret, and the hash that is kept of it.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn new_secret() -> Result<(String, String), getrandom::Error> {
        let secret = random()?;
        let hash = hash_of(&secret);
        Ok((secret, hash))
    }

    /// The hash of a secret; `None` if the text is none.
    #[must_use]
    pub fn hash(secret: &str) -> Option<String> {
        is_secret(secret).then(|| hash_of(secret))
    }

    /// The path of the page where a person confirms a terminal, and the code that it shows (RFC 8628, section 6.1: letters that make no
    /// words and are not confused).
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn new_code() -> Result<(String, String), getrandom::Error> {
        let mut bytes = [0; CODE_LETTERS];
        getrandom::fill(&mut bytes)?;
        // 256 is not a multiple of 20: the first letters come a little more often, which costs less than a bit.
        let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
        let letters: String = bytes.iter().map(letter).collect();
        let code = format!("{}-{}", &letters[..CODE_LETTERS / 2], &letters[CODE_LETTERS / 2..]);
        Ok((format!("{TERMINAL}/{code}"), code))
    }
}

/// What becomes of a link that is opened.
pub(crate) enum Opened {
    /// The answer to the browser.
    Answer(Response<Body>),
    /// It signs nobody in.
    Unknown,
}

pub(crate) struct Door {
    sign_in: SignIn,
    /// Where people sign in elsewhere.
    openid: Option<Arc<Oauth>>,
}

/// The cookies of a browser.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cookie {
    /// Says whose browser it is.
    Login,
    /// Belongs to a login elsewhere that is under way.
    Flow,
    /// The page that somebody wanted to see before they had signed in.
    Return,
    /// What was just done by a form, for the next page to say.
    Done,
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    place: Place<'a>,
    /// Whether people sign in elsewhere, too.
    openid: bool,
    /// This server, as the browser knows it.
    server: String,
    /// Whether somebody has opened a link that works no more.
    is_old: bool,
    /// Whether a page is known that they come back to.
    returns: bool,
}

#[derive(Template)]
#[template(path = "link.html")]
struct LinkPage<'a> {
    /// Whom the link signs in.
    guest: &'a str,
    /// Who is signed in now.
    place: Place<'a>,
}

impl Door {
    pub(crate) fn new(sign_in: SignIn, openid: Option<Arc<Oauth>>) -> Self {
        Self { sign_in, openid }
    }

    pub(crate) fn terminals(&self) -> Terminals {
        self.sign_in.logins.terminals()
    }

    /// Who has signed in with the browser that sends this.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) async fn login(&self, headers: &HeaderMap) -> Result<Option<Login>, ToolError> {
        let Some(login) = self.open_page(headers).await? else { return Ok(None) };
        if !headers.contains_key(BY_ITSELF)
            && let Err(error) = self.sign_in.logins.used(&login).await
        {
            tracing::warn!(%error, "the last use of a login could not be noted");
        }
        Ok(Some(login))
    }

    /// The same for a page that is open, which is no use of the login.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) async fn open_page(&self, headers: &HeaderMap) -> Result<Option<Login>, ToolError> {
        let Some(secret) = self.secret(headers) else { return Ok(None) };
        Ok(self.sign_in.logins.valid(&hash_of(secret)).await?)
    }

    pub(crate) fn logins(&self) -> &Logins {
        &self.sign_in.logins
    }

    fn secret<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        self.cookie(headers, Cookie::Login).filter(|secret| is_secret(secret))
    }

    /// What a cookie holds. Where there are two, another server of this host may have set one: it is not known which is ours.
    fn cookie<'a>(&self, headers: &'a HeaderMap, cookie: Cookie) -> Option<&'a str> {
        let mut ours = self.cookies(headers, cookie);
        let found = ours.next()?;
        ours.next().is_none().then_some(found)
    }

    /// All cookies of this name.
    fn cookies<'a>(&self, headers: &'a HeaderMap, cookie: Cookie) -> impl Iterator<Item = &'a str> {
        let name = self.cookie_name(headers, cookie);
        let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(move |(of, _)| *of == name).map(|(_, value)| value)
    }

    /// Over TLS no other host and no path can set a cookie of this name. Without TLS the cookies of `localhost` are those of all its ports:
    /// each port has a name of its own.
    fn cookie_name(&self, headers: &HeaderMap, cookie: Cookie) -> String {
        let of = match cookie {
            Cookie::Login => "",
            Cookie::Flow => "-signing-in",
            Cookie::Return => "-return",
            Cookie::Done => "-done",
        };
        if self.sign_in.is_tls {
            return format!("__Host-toolhost{of}");
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let port = host.rsplit_once(':').map_or("80", |(_, port)| port);
        format!("toolhost{of}-{port}")
    }

    /// Whether a form was sent by a page of this server. Browsers say where a form comes from; what says nothing is none.
    pub(crate) fn sent_by_own_page(&self, headers: &HeaderMap) -> bool {
        if let Some(site) = headers.get(SENT_BY) {
            return site == "same-origin";
        }
        // The names are compared before any request is served.
        let scheme = if self.sign_in.is_tls { "https://" } else { "http://" };
        headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok()).is_some_and(|said| said.starts_with(scheme))
    }

    /// The page where people sign in.
    pub(crate) fn ask(&self, status: StatusCode, headers: &HeaderMap, login: Option<&Login>) -> Response<Body> {
        let place = Place::of(login.map(|login| &*login.user));
        let (openid, server) = (self.openid.is_some(), self.server(headers));
        page(status, &LoginPage { place, openid, server, is_old: false, returns: false })
    }

    /// The page for a link that signs nobody in: it says how to sign in. What somebody wanted to see before is still where they come to.
    pub(crate) fn old_link(&self, headers: &HeaderMap) -> Response<Body> {
        let shown = LoginPage {
            place: Place::of(None),
            openid: self.openid.is_some(),
            server: self.server(headers),
            is_old: true,
            returns: self.cookie(headers, Cookie::Return).is_some_and(is_own_page),
        };
        page(StatusCode::NOT_FOUND, &shown)
    }

    /// What the browser says was just done.
    pub(super) fn told_done(&self, headers: &HeaderMap) -> Option<Done> {
        // A page that fetches itself again has said it.
        if headers.contains_key(BY_ITSELF) {
            return None;
        }
        self.cookie(headers, Cookie::Done).and_then(Done::parse)
    }

    /// The answer with what the next page is to say; `None`: it was said.
    pub(super) fn with_done(
        &self,
        response: Response<Body>,
        headers: &HeaderMap,
        done: Option<Done>,
    ) -> Response<Body> {
        match done {
            Some(done) => self.with_cookie(response, headers, (Cookie::Done, done.word()), DONE_SECONDS),
            None => self.with_cookie(response, headers, (Cookie::Done, ""), 0),
        }
    }

    /// The address of the server as the browser uses it.
    pub(crate) fn server(&self, headers: &HeaderMap) -> String {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        format!("{}://{host}", if self.sign_in.is_tls { "https" } else { "http" })
    }

    /// The page where people sign in, instead of one that only they may see: they come back to it.
    pub(crate) fn ask_before(&self, wanted: &Uri, headers: &HeaderMap) -> Response<Body> {
        let response = self.ask(StatusCode::UNAUTHORIZED, headers, None);
        let address = wanted.path_and_query().map(PathAndQuery::as_str).filter(|address| is_own_page(address));
        match address {
            Some(address) => self.with_cookie(response, headers, (Cookie::Return, address), RETURN_SECONDS),
            None => response,
        }
    }

    /// The answer to a browser that has just been signed in: it goes to the page that it came for.
    fn welcome(&self, headers: &HeaderMap, secret: &str) -> Response<Body> {
        let wanted = self.cookie(headers, Cookie::Return).filter(|address| is_own_page(address));
        let response = self.with_cookie(see(wanted.unwrap_or("/")), headers, (Cookie::Login, secret), COOKIE_SECONDS);
        match wanted {
            Some(_) => self.with_cookie(response, headers, (Cookie::Return, ""), 0),
            None => response,
        }
    }

    /// The page of a link: it says whom it signs in, and uses nothing up. Mail programs and chats open links to look at them.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) async fn show_link(&self, secret: &str, headers: &HeaderMap) -> Result<Opened, ToolError> {
        let guest = match is_secret(secret) {
            true => self.sign_in.logins.link(&hash_of(secret)).await?,
            false => None,
        };
        let Some(guest) = guest else { return Ok(Opened::Unknown) };
        let login = self.login(headers).await?;
        let place = Place::of(login.as_ref().map(|login| &*login.user));
        Ok(Opened::Answer(page(StatusCode::OK, &LinkPage { guest: &guest, place })))
    }

    /// Uses a link up. The browser gets a new secret, whatever it had before.
    ///
    /// # Errors
    /// If the database does not answer, or the system has no random bytes.
    pub(crate) async fn use_link(&self, secret: &str, headers: &HeaderMap) -> Result<Opened, ToolError> {
        if !is_secret(secret) {
            return Ok(Opened::Unknown);
        }
        let new = random().map_err(ToolError::internal)?;
        let Some(login) = self.sign_in.logins.use_link(&hash_of(secret), &hash_of(&new)).await? else {
            return Ok(Opened::Unknown);
        };
        tracing::info!(user = login.user, "somebody has signed in with a link");
        if let Some(before) = self.secret(headers) {
            self.sign_in.logins.end(&hash_of(before)).await?;
        }
        Ok(Opened::Answer(self.welcome(headers, &new)))
    }

    /// Sends a browser to the identity provider, with what belongs to this login in a cookie.
    ///
    /// # Errors
    /// If people do not sign in elsewhere, or the provider does not answer.
    pub(crate) async fn go_elsewhere(&self, headers: &HeaderMap) -> Result<Response<Body>, ToolError> {
        let flow = Flow::new()?;
        let address = self.openid()?.login_address(&flow).await?;
        Ok(self.with_cookie(see(&address), headers, (Cookie::Flow, &flow.text()), FLOW_SECONDS))
    }

    /// Signs in a browser that comes back from the identity provider.
    ///
    /// # Errors
    /// If it does not come from a login that it began here a moment ago, or the provider has signed nobody in.
    pub(crate) async fn come_back(
        &self,
        headers: &HeaderMap,
        query: &BTreeMap<String, String>,
    ) -> Result<Response<Body>, ToolError> {
        let openid = self.openid()?;
        let refused = |message: String| ToolError::new(ErrorKind::Permission, message).hint("Sign in again.");
        let said = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
        let flow = self.cookie(headers, Cookie::Flow).and_then(Flow::parse);
        let flow = flow.filter(|flow| flow.is_answered_by(said("state")));
        let flow =
            flow.ok_or_else(|| refused("This browser has not begun to sign in, or took too long.".to_owned()))?;
        if let Some(error) = query.get("error") {
            let error = visible_line(error);
            return Err(refused(format!("The identity provider has signed nobody in: {error}.")));
        }
        let code = said("code");
        if code.is_empty() {
            return Err(refused("The identity provider has sent no code.".to_owned()));
        }
        let user = openid.signed_in(&flow, code).await.map_err(|why| match why {
            Refused::Invalid(why) => {
                tracing::info!(why, "an answer of the identity provider is refused");
                refused(format!("The answer of the identity provider is refused: {why}."))
            }
            Refused::Failed(error) => error,
        })?;
        let new = random().map_err(ToolError::internal)?;
        self.sign_in.logins.create(&hash_of(&new), &user, Proof::Openid).await.map_err(|error| match error {
            Error::Name(name) => refused(format!("Nobody here can be called {}.", visible_line(&name))),
            error => error.into(),
        })?;
        tracing::info!(user, "somebody has signed in at the identity provider");
        if let Some(before) = self.secret(headers) {
            self.sign_in.logins.end(&hash_of(before)).await?;
        }
        Ok(self.without_flow(self.welcome(headers, &new), headers))
    }

    fn openid(&self) -> Result<&Oauth, ToolError> {
        let missing = || ToolError::new(ErrorKind::NotFound, "People do not sign in elsewhere here.");
        self.openid.as_deref().ok_or_else(missing)
    }

    /// Signs the browser out.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) async fn leave(&self, headers: &HeaderMap) -> Result<Response<Body>, ToolError> {
        // Where another server has set one beside ours, ours ends, too.
        let secrets: Vec<&str> = self.cookies(headers, Cookie::Login).filter(|secret| is_secret(secret)).collect();
        for secret in secrets.into_iter().take(SECRETS_ENDED_MAX) {
            self.sign_in.logins.end(&hash_of(secret)).await?;
        }
        Ok(self.with_cookie(see(LOGIN), headers, (Cookie::Login, ""), 0))
    }

    /// The answer to a login elsewhere that has failed: what belonged to it is used up.
    pub(crate) fn without_flow(&self, response: Response<Body>, headers: &HeaderMap) -> Response<Body> {
        self.with_cookie(response, headers, (Cookie::Flow, ""), 0)
    }

    fn with_cookie(
        &self,
        mut response: Response<Body>,
        headers: &HeaderMap,
        (cookie, value): (Cookie, &str),
        seconds: u32,
    ) -> Response<Body> {
        let secure = if self.sign_in.is_tls { "; Secure" } else { "" };
        let name = self.cookie_name(headers, cookie);
        let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }
}

fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex::encode(bytes))
}

/// Whether this is the path of a page here, which no browser takes for another server, and which a cookie can hold.
fn is_own_page(address: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\');
    address.len() <= RETURN_BYTES_MAX
        && address.starts_with('/')
        && !address.starts_with("//")
        && address.bytes().all(is_plain)
}

fn is_secret(text: &str) -> bool {
    text.len() == 2 * SECRET_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn hash_of(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::is_own_page;

    #[test]
    fn only_a_path_of_this_server_is_come_back_to() {
        for own in ["/", "/asks/p0/ask-1", "/asks/p0/ask-1?part=2", "/search?q=a%20b"] {
            assert!(is_own_page(own), "{own}");
        }
        for other in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "evil",
            "/a;b",
            "/a b",
            "/a\r\nx: y",
            "/\u{e4}",
        ] {
            assert!(!is_own_page(other), "{other:?}");
        }
        assert!(!is_own_page(&format!("/{}", "a".repeat(super::RETURN_BYTES_MAX))));
    }
}
