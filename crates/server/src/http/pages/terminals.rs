//! Terminals that wait to be signed in: a person says in the browser whether one is theirs.

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use toolhost_contract::{ToolError, visible_line};

use super::route::{Made, Route, Wanted};
use super::visitor::Visitor;
use super::{Place, page, see};

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[
    Route { path: "/login/terminal", name: "terminal", takes_forms: false, make: enter },
    Route { path: "/login/terminal/{code}", name: "terminal", takes_forms: true, make: one },
];

/// What a code may have; a longer one is none.
const CODE_CHARS_MAX: usize = 32;

/// Where a code is typed, and where a terminal that was answered is told of.
#[derive(Template)]
#[template(path = "terminal_code.html")]
struct CodePage<'a> {
    place: Place<'a>,
    code: String,
    error: Option<&'static str>,
    /// What has become of a terminal.
    done: Option<&'static str>,
}

#[derive(Template)]
#[template(path = "terminal.html")]
struct TerminalPage<'a> {
    place: Place<'a>,
    user: &'a str,
    code: String,
    /// What the terminal calls itself.
    terminal: String,
    left: String,
    error: Option<&'static str>,
}

fn enter(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let done = match wanted.asked("done") {
            Some("yes") => Some("The terminal is signed in. You can close this page."),
            Some("no") => Some("The terminal is not signed in."),
            _ => None,
        };
        match wanted.asked("code").map(typed) {
            Some(code) if visitor.terminals.asked(&code).await?.is_some() => {
                Ok(see(&format!("/login/terminal/{code}")))
            }
            Some(code) => Ok(unknown(&visitor, code)),
            None => {
                Ok(page(StatusCode::OK, &CodePage { place: visitor.place(), code: String::new(), error: None, done }))
            }
        }
    })
}

fn one(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let code = typed(wanted.part("code"));
        match &wanted.form {
            None => show(&visitor, code, None).await,
            Some(form) => answer(&visitor, code, form.get("answer").map(String::as_str)).await,
        }
    })
}

async fn show(visitor: &Visitor<'_>, code: String, error: Option<&'static str>) -> Result<Response<Body>, ToolError> {
    let Some(asked) = visitor.terminals.asked(&code).await? else { return Ok(unknown(visitor, code)) };
    let status = if error.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let found = TerminalPage {
        place: visitor.place(),
        user: &visitor.login.user,
        code,
        terminal: visible_line(&asked.terminal),
        left: visitor.time_left(asked.expires_at_ms),
        error,
    };
    Ok(page(status, &found))
}

async fn answer(visitor: &Visitor<'_>, code: String, said: Option<&str>) -> Result<Response<Body>, ToolError> {
    let done = match said {
        Some("confirm") => match visitor.terminals.confirm(&code, &visitor.login.user).await? {
            Some(login) => {
                tracing::info!(user = login.user, terminal = login.terminal, "a terminal was signed in");
                "yes"
            }
            None => return Ok(unknown(visitor, code)),
        },
        Some("refuse") if visitor.terminals.refuse(&code).await? => "no",
        Some("refuse") => return Ok(unknown(visitor, code)),
        _ => return show(visitor, code, Some("Choose one of the two buttons.")).await,
    };
    Ok(see(&format!("/login/terminal?done={done}")))
}

fn unknown(visitor: &Visitor<'_>, code: String) -> Response<Body> {
    let error = Some("No terminal waits with this code. It was answered already, is too old, or was typed wrong.");
    let status = StatusCode::NOT_FOUND;
    page(status, &CodePage { place: visitor.place(), code: visible_line(&code), error, done: None })
}

/// A code as it is kept: people type small letters, and leave the line in the middle out.
fn typed(text: &str) -> String {
    let letters: String = text.chars().filter(char::is_ascii_alphanumeric).take(CODE_CHARS_MAX).collect();
    let letters = letters.to_ascii_uppercase();
    match letters.len() {
        8 => format!("{}-{}", &letters[..4], &letters[4..]),
        _ => letters,
    }
}
