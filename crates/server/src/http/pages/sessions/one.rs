//! One session: its conversation in pages, what it waits for, and what a person can do with it.

use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::Value;
use toolhost_contract::{ErrorKind, ToolError, is_blank};
use toolhost_host::ask_id;
use toolhost_store::{Role, SessionRow, SessionState, StepRow};

use super::conversation::{Item, Unheard, answer_text, items, tell_asks, unheard};
use super::start::work;
use super::steps::{calls_of, kind_of, number, text};
use super::{PART, State, address};
use crate::http::envelope;
use crate::http::pages::done::Done;
use crate::http::pages::failure::sentence;
use crate::http::pages::route::Wanted;
use crate::http::pages::split::SPLIT;
use crate::http::pages::text::{TextPage, When, count, dollars, duration, encoded, headline, name};
use crate::http::pages::visitor::{Membership, Visitor};
use crate::http::pages::{Place, page, see, see_done};
use crate::http::told;
use crate::http::work::Stop;

/// Steps of one page of a conversation.
const STEPS_MAX: i64 = 50;
/// Asks that a page names of those a session waits for.
const ASKS_MAX: i64 = 20;

#[derive(Template)]
#[template(path = "session.html")]
struct SessionPage<'a> {
    place: Place<'a>,
    address: String,
    title: String,
    state: State,
    id: String,
    facts: Vec<Fact>,
    items: Vec<Item>,
    unheard: Vec<Unheard>,
    /// Where changes are shown the other way, and what that is called.
    view: Option<(String, &'static str)>,
    earlier: Option<String>,
    /// Whether this is the newest page.
    is_newest: bool,
    /// Answers that no call of it has used.
    unused: usize,
    /// What it has asked and nobody has answered.
    waits: Vec<Wait>,
    can: Can,
    /// Turns that a fork can take along.
    turns: u64,
    typed: String,
    error: Option<String>,
    said_error: Option<String>,
    /// How many turns were to be forked, and what was wrong with that.
    turns_typed: String,
    turns_error: Option<String>,
    role: &'static str,
}

/// A line of what is known of a session.
struct Fact {
    label: &'static str,
    value: String,
    /// Where it leads; empty for nowhere.
    address: String,
    /// The moment that the value tells, for machines; empty for what is none.
    iso: String,
}

/// An ask of the session that is open.
struct Wait {
    address: String,
    id: String,
    summary: String,
    left: String,
}

/// What the person can do with the session as it stands.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct Can {
    /// What people are asked.
    pub(in super::super) answer: bool,
    pub(in super::super) say: bool,
    /// What is said waits until the turn at work is over.
    pub(in super::super) say_later: bool,
    pub(in super::super) resume: bool,
    pub(in super::super) pause: bool,
    pub(in super::super) cancel: bool,
    pub(in super::super) fork: bool,
}

impl Can {
    /// A session belongs to its user; an owner of the project can stop all.
    pub(in super::super) fn of(membership: &Membership, row: &SessionRow) -> Self {
        if !super::can_work(membership) {
            return Self { answer: membership.approver, ..Self::default() };
        }
        let is_own = row.user_id == membership.user_id;
        let stops = is_own || membership.role == Role::Owner;
        let (ended, done) = (row.state == SessionState::Cancelled, row.state == SessionState::Done);
        Self {
            answer: membership.approver,
            say: is_own && !ended,
            say_later: row.running,
            resume: is_own && !ended && !done && !row.running,
            pause: stops && row.running && !ended && !row.pauses(),
            cancel: stops && !ended && (row.running || !done),
            fork: true,
        }
    }
}

/// How the session is looked at.
#[derive(Clone, Copy, Default)]
struct Look {
    /// The step that the page ends before; `None` for the newest page.
    before: Option<i64>,
    /// Whether changes of files are shown side by side.
    is_split: bool,
}

/// What somebody tried to say, to be shown to them again.
#[derive(Default)]
struct Tried {
    typed: String,
    turns: String,
    error: Option<String>,
    said_error: Option<String>,
    turns_error: Option<String>,
}

pub(super) async fn answer(visitor: &Visitor<'_>, wanted: &Wanted) -> Result<Response<Body>, ToolError> {
    let membership = visitor.membership(wanted.part("project")).await?;
    let id = wanted.part("session");
    let Some(form) = &wanted.form else {
        let before = wanted.asked("before").and_then(|before| before.parse().ok());
        let look = Look { before, is_split: wanted.asked("view") == Some(SPLIT) };
        return shown(visitor, &membership, id, look, StatusCode::OK, Tried::default()).await;
    };
    match act(visitor, &membership, id, form).await {
        Ok(address) if form.get("do").is_some_and(|word| word == "fork") => Ok(see_done(&address, Done::Forked)),
        Ok(address) => Ok(see(&address)),
        Err(error) if matches!(error.kind, ErrorKind::Internal | ErrorKind::NotFound) => Err(error),
        Err(error) => {
            let message = Some(sentence(&error));
            let is_said = form.get("do").is_some_and(|word| word == "say");
            let is_of_turns = form.get("do").is_some_and(|word| word == "fork") && error.kind == ErrorKind::Validation;
            let turns = form.get("turns").cloned().unwrap_or_default();
            let (error_said, error_turns, error_all) = match (is_said, is_of_turns) {
                (true, _) => (message, None, None),
                (_, true) => (None, message, None),
                _ => (None, None, message),
            };
            let typed = form.get("text").map(|text| text.replace("\r\n", "\n")).unwrap_or_default();
            let tried = Tried { typed, turns, error: error_all, said_error: error_said, turns_error: error_turns };
            shown(visitor, &membership, id, Look::default(), envelope::status(&error), tried).await
        }
    }
}

/// Does what a form says, and answers where to look then.
async fn act(
    visitor: &Visitor<'_>,
    membership: &Membership,
    id: &str,
    form: &BTreeMap<String, String>,
) -> Result<String, ToolError> {
    let by = visitor.by();
    // The port would say so, too; without the session there is nothing to say it about.
    let session = membership.project.sessions.get(membership.project.id, id).await?;
    let wrong = |message: &str| ToolError::new(ErrorKind::Validation, message);
    if membership.role == Role::Viewer {
        return Err(ToolError::new(ErrorKind::Permission, "You are a viewer of this project: you may look"));
    }
    let work = work(membership)?;
    let field = |name: &str| form.get(name).map(|value| value.trim()).unwrap_or_default();
    match field("do") {
        "say" => {
            let message = field("text").replace("\r\n", "\n");
            if is_blank(&message) {
                return Err(wrong("Write what the agent is told"));
            }
            work.go_on(by, &session.id, Some(message)).await?;
            // There it goes on: with the next message.
            return Ok(address(membership, &session.id) + "#text");
        }
        "resume" => drop(work.go_on(by, &session.id, None).await?),
        "pause" => drop(work.stop(by, &session.id, Stop::Pause).await?),
        "cancel" => drop(work.stop(by, &session.id, Stop::Cancel).await?),
        "fork" => {
            let turns = match field("turns") {
                "" => None,
                number => Some(number.parse().map_err(|_| wrong("The turns to take along are a number"))?),
            };
            let forked = work.fork(by, &session.id, turns).await?;
            return Ok(address(membership, &forked.session.id));
        }
        _ => return Err(wrong("This page has no such button")),
    }
    Ok(address(membership, &session.id))
}

async fn shown(
    visitor: &Visitor<'_>,
    membership: &Membership,
    id: &str,
    look: Look,
    status: StatusCode,
    tried: Tried,
) -> Result<Response<Body>, ToolError> {
    let project = &membership.project;
    let row = project.sessions.get(project.id, id).await?;
    // What was written while the page was made is on the next one.
    let before = look.before.unwrap_or(row.steps).clamp(0, row.steps);
    let first = (before - STEPS_MAX).max(0);
    let rows = project.steps(id, first - 1, before - first).await?;
    let opening = match rows.first() {
        Some(row) if row.step == "open" => Some(row.body.clone()),
        _ => project.steps(id, -1, 1).await?.into_iter().next().map(|row| row.body),
    };
    let asks = project.gate.queue().asks().open_of_session(project.id, id, ASKS_MAX).await?;
    let state = super::state_of(membership, &row, &asks).await?;
    // An agent at work uses them by itself.
    let unused = match row.running {
        true => 0,
        false => project.gate.queue().asks().answered_of_session(project.id, id, ASKS_MAX).await?.len(),
    };
    let waits: Vec<Wait> = asks
        .into_iter()
        .map(|ask| Wait {
            address: membership.address(&ask_id(ask.number)),
            id: ask_id(ask.number),
            summary: name(&ask.summary),
            left: visitor.time_left(ask.expires_at_ms),
        })
        .collect();
    let address = address(membership, id);
    let mut items = items(visitor, project.gate.registry(), &rows);
    tell_asks(membership, &rows, &mut items).await?;
    let calls_said = match (before == row.steps, row.running) {
        (true, true) => "Under way:",
        (true, false) => "Not ended:",
        (false, _) => "Not ended on this page:",
    };
    items.iter_mut().for_each(|item| item.calls_said = calls_said);
    let is_diff = items.iter().any(Item::is_diff);
    if look.is_split {
        items.iter_mut().for_each(Item::split);
    }
    let part = if look.before.is_some() { format!("before={before}&") } else { String::new() };
    Ok(page(
        status,
        &SessionPage {
            place: Place { live: told::SESSIONS_AND_ASKS, ..membership.place(visitor, PART) },
            title: headline(membership, &row.title),
            state,
            unused,
            id: name(&row.id),
            facts: facts(visitor, membership, &row, &opening.unwrap_or_default()),
            items,
            unheard: if before == row.steps { unheard(visitor, membership, id).await? } else { Vec::new() },
            view: is_diff.then(|| match look.is_split {
                true => (format!("{address}?{part}view=unified"), "Changes one below the other"),
                false => (format!("{address}?{part}view={SPLIT}"), "Changes side by side"),
            }),
            earlier: (first > 0).then(|| {
                let view = if look.is_split { format!("&view={SPLIT}") } else { String::new() };
                format!("{address}?before={first}{view}")
            }),
            is_newest: before == row.steps,
            waits,
            can: Can::of(membership, &row),
            turns: number(&row.tally, "turns"),
            typed: tried.typed,
            error: tried.error,
            said_error: tried.said_error,
            turns_typed: tried.turns,
            turns_error: tried.turns_error,
            role: membership.role.as_str(),
            address,
        },
    ))
}

fn facts(visitor: &Visitor<'_>, membership: &Membership, row: &SessionRow, opening: &Value) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |label, value: String, address: String| {
        if !value.is_empty() {
            facts.push(Fact { label, value, address, iso: String::new() });
        }
    };
    add("Profile", name(&row.profile), String::new());
    add("Model", name(&row.model), String::new());
    add("Persona", name(text(opening, "persona")), String::new());
    let ticket = text(opening, "ticket");
    add("Ticket", name(ticket), membership.path(&format!("records/{}", encoded(ticket))));
    let entry = &opening["entry"];
    if !entry.is_null() {
        let target = entry.get("target").map(|target| target.as_str().map_or(target.to_string(), str::to_owned));
        let target = target.unwrap_or_else(|| text(entry, "targetType").to_owned());
        let mode = if text(entry, "mode") == "create" { "to be created" } else { "to be changed" };
        add("Target", name(&format!("{target}, {mode}")), String::new());
    }
    if let Some(parent) = &row.parent {
        add("Forked off", name(parent), address(membership, parent));
    }
    add("Turns", number(&row.tally, "turns").to_string(), String::new());
    let (sent, came) = (number(&row.tally, "inputTokens"), number(&row.tally, "outputTokens"));
    add("Tokens", format!("{} read, {} written", count(sent), count(came)), String::new());
    let cost = row.tally.get("cost").and_then(Value::as_f64);
    add("Cost", cost.map_or_else(|| "not known: the model has no price here".to_owned(), dollars), String::new());
    let took = duration(number(&row.tally, "elapsedMs"));
    add("Time", format!("{took} to its last reply, waits for people included"), String::new());
    for (label, at_ms) in [("Started", row.created_at_ms), ("Last change", row.updated_at_ms)] {
        let When { iso, text: value } = When::of(visitor, at_ms);
        facts.push(Fact { label, value, address: String::new(), iso });
    }
    facts
}

/// The whole of one step, in parts.
pub(super) async fn step(visitor: &Visitor<'_>, wanted: &Wanted) -> Result<Response<Body>, ToolError> {
    let membership = visitor.membership(wanted.part("project")).await?;
    let (project, id, step) = (&membership.project, wanted.part("session"), wanted.part("step"));
    let missing = || ToolError::new(ErrorKind::NotFound, "The session has no such step.");
    let found = project.step(id, step).await?.ok_or_else(missing)?;
    let (title, text) = whole(&found).ok_or_else(missing)?;
    let back = (address(&membership, id), "The session");
    let shown = TextPage::of(
        membership.place(visitor, PART),
        (title, &format!("Step {step}")),
        back,
        String::new(),
        (&text, wanted.asked("part")),
    );
    // What a tool has answered may be anything, and is shown as it is.
    let is_said = matches!(kind_of(step).0, "open" | "say" | "turn");
    let view = wanted.asked("view");
    let shown = if is_said { shown.or_markdown(&text, view) } else { shown.or_split(&text, view) };
    Ok(page(StatusCode::OK, &shown))
}

/// What a step says, whole. `None` for steps that only the agent reads.
fn whole(row: &StepRow) -> Option<(&'static str, String)> {
    Some(match kind_of(&row.step).0 {
        "open" => ("The goal", text(&row.body, "goal").to_owned()),
        "say" => ("A message", text(&row.body, "text").to_owned()),
        "turn" => {
            let calls = calls_of(&row.body).map(|(step, tool, arguments)| {
                let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
                format!("\n\n{step} {tool}\n{}", toolhost_contract::visible_json(&arguments))
            });
            ("What the agent said", text(&row.body["reply"], "text").to_owned() + &calls.collect::<String>())
        }
        "call" => ("The answer of a call", answer_text(text(&row.body, "content"))),
        "check" => ("Why an answer was sent back", text(row.body.get("bad")?, "findings").to_owned()),
        _ => return None,
    })
}
