//! The sessions of agents of a project: a list, and a form that starts one. [`one`] is a single session.

mod asked;
mod conversation;
mod one;
mod replay;
mod start;
mod steps;
mod trace;

pub(super) use conversation::{Unheard, answer_text, ended_call, unheard};

use self::asked::waits_for_one;
use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::Value;
use toolhost_contract::{ErrorCode, ErrorKind, SESSION_MARK, ToolError};
use toolhost_store::{AskSummary, Role, SessionFilter, SessionRow, SessionState};

use super::super::told;
use super::route::{Made, Route, Wanted};
use super::text::{When, count, dollars, headline, name};
use super::visitor::{Membership, Visitor};
use super::{Place, page};

pub(super) use one::Can;
pub(super) use start::{model_field, models_of};
pub(super) use steps::kind_of;

/// The path of this part, below a project.
const PART: &str = "sessions";
/// Open asks that are looked at for the sessions that wait.
const ASKS_LOOKED_AT: i64 = 1000;
/// Sessions of one page of the list.
const ROWS_MAX: usize = 50;
/// Rows of the audit that are read for them: a call has two, and each decision about it one more.
const AUDIT_ROWS_MAX: i64 = 1000;

/// The pages of this part.
pub(in super::super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/sessions", name: "sessions", takes_forms: false, make: all_sessions },
    Route { path: "/projects/{project}/sessions/new", name: "session_start", takes_forms: true, make: new_session },
    Route { path: "/projects/{project}/sessions/{session}", name: "session", takes_forms: true, make: one_session },
    Route {
        path: "/projects/{project}/sessions/{session}/trace",
        name: "session_trace",
        takes_forms: false,
        make: trace_of,
    },
    Route {
        path: "/projects/{project}/sessions/{session}/replay",
        name: "session_replay",
        takes_forms: false,
        make: replay_of,
    },
    Route {
        path: "/projects/{project}/sessions/{session}/steps/{step}",
        name: "session_step",
        takes_forms: false,
        make: one_step,
    },
];

#[derive(Template)]
#[template(path = "sessions.html")]
struct ListPage<'a> {
    place: Place<'a>,
    membership: &'a Membership,
    rows: Vec<Row>,
    /// Each state that can be asked for, what it is called, and whether it is asked for.
    states: Vec<(&'static str, &'static str, bool)>,
    /// Whether those of one state alone are shown.
    is_filtered: bool,
    can_start: bool,
    next: Option<String>,
}

/// A session in the list.
struct Row {
    address: String,
    title: String,
    state: State,
    profile: String,
    model: String,
    cost: String,
    when: When,
}

/// What sessions that wait for people are listed by.
const WAITING: &str = "waiting";
const WORKING: &str = "working";

/// The states that sessions are listed by: as addresses name them, in words, and what they mean. Who waits is known by the asks and the calls under way.
const STATES: [(&str, &str, SessionState, Option<bool>); 8] = [
    (WAITING, "waiting for an answer", SessionState::Active, Some(true)),
    (WORKING, "working", SessionState::Active, Some(true)),
    ("interrupted", "interrupted", SessionState::Active, Some(false)),
    ("paused", "paused", SessionState::Paused, None),
    ("limited", "stopped by a limit", SessionState::Limited, None),
    ("failed", "failed", SessionState::Failed, None),
    ("done", "done", SessionState::Done, None),
    ("cancelled", "cancelled", SessionState::Cancelled, None),
];

/// Where a session stands, in words.
pub(super) struct State {
    /// How it is coloured, beside its words.
    pub(super) class: &'static str,
    pub(super) word: &'static str,
    /// The code of what stopped it; empty for none.
    pub(super) code: String,
    /// What that means, and what can be done.
    pub(super) sentence: &'static str,
    /// Why it stopped, as its journal tells; empty where it did not stop by itself.
    pub(super) why: String,
    /// What a message is called that it has not heard.
    pub(super) unheard: &'static str,
}

impl State {
    /// `waits`: whether a call under way waits for people to answer.
    fn of(row: &SessionRow, waits: bool, why: String) -> Self {
        let (class, word, sentence) = match (row.state, row.running) {
            (SessionState::Cancelled, _) => ("", "cancelled", "A person has ended it for good."),
            (_, true) if row.ends() => ("", "being cancelled", "It ends for good as soon as the agent lets go of it."),
            (_, true) if waits => ("people", "waiting for an answer", "The agent waits for a person to answer."),
            (_, true) if row.pauses() => ("good", WORKING, "The agent pauses after the call under way."),
            (_, true) => ("good", WORKING, "The agent is at work."),
            (SessionState::Active, false) => {
                ("bad", "interrupted", "Nobody runs it: its host has ended. It can go on.")
            }
            (SessionState::Paused, false) => ("", "paused", "It waits for a person to resume it."),
            (SessionState::Limited, false) => {
                ("", "stopped by a limit", "It has used up what it was given. Resumed, it has as much again.")
            }
            (SessionState::Failed, false) if row.code.as_deref() == Some(ErrorCode::ContextBudget.as_str()) => (
                "bad",
                "failed",
                "Its model cannot read more. Fork it before the turn that was too long, or start a new one.",
            ),
            (SessionState::Failed, false) => ("bad", "failed", "It could not go on. It can be resumed."),
            (SessionState::Done, false) => {
                ("good", "done", "The agent has given its answer. Send a message, and it goes on.")
            }
        };
        // A code tells people nothing where its reason stands below.
        let code = row.code.as_deref().filter(|_| why.is_empty()).map(name).unwrap_or_default();
        let unheard = match row.state {
            SessionState::Cancelled => "Message, never heard: the session ended before",
            _ if row.running => "Message, not heard yet",
            _ => "Message, heard when the session goes on",
        };
        Self { class, word, code, sentence, why, unheard }
    }
}

/// Where a session stands that has asked this and nobody has answered.
///
/// # Errors
/// If the database does not answer.
pub(super) async fn state_of(
    membership: &Membership,
    row: &SessionRow,
    open: &[AskSummary],
) -> Result<State, ToolError> {
    Ok(State::of(row, waits_for_one(membership, row, open).await?, why_stopped(membership, row).await?))
}

/// Why a session stopped by itself, in the words of whatever stopped it; empty of one that did not.
async fn why_stopped(membership: &Membership, row: &SessionRow) -> Result<String, ToolError> {
    if row.running || !matches!(row.state, SessionState::Failed | SessionState::Limited) {
        return Ok(String::new());
    }
    let project = &membership.project;
    let last = project.steps(&row.id, row.steps - 2, 1).await?;
    let end = last.first().filter(|step| steps::kind_of(&step.step).0 == "end");
    Ok(end.map(|end| sentence(steps::text(&end.body, "message"))).unwrap_or_default())
}

/// A message of an error as a sentence of its own.
fn sentence(message: &str) -> String {
    let message = name(message);
    let mut chars = message.chars();
    let begun = chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>()).unwrap_or_default();
    let has_end = begun.is_empty() || begun.ends_with(['.', '!', '?', '…']);
    if has_end { begun } else { begun + "." }
}

/// What the sessions of the project have asked and nobody has answered, by the session.
async fn asking(membership: &Membership) -> Result<BTreeMap<String, Vec<AskSummary>>, ToolError> {
    let project = &membership.project;
    let open = project.gate.queue().asks().open_after(project.id, 0, ASKS_LOOKED_AT).await?;
    let mut asking: BTreeMap<String, Vec<AskSummary>> = BTreeMap::new();
    for ask in open.asks {
        if let Some(session) = ask.session_id.clone() {
            asking.entry(session).or_default().push(ask);
        }
    }
    Ok(asking)
}

/// A page of those of these sessions that wait.
async fn waiting_rows(
    membership: &Membership,
    asking: &BTreeMap<String, Vec<AskSummary>>,
    filter: &SessionFilter,
) -> Result<Vec<SessionRow>, ToolError> {
    let project = &membership.project;
    let mut rows = Vec::new();
    for id in asking.keys().filter(|id| id.starts_with(SESSION_MARK)) {
        match project.sessions.get(project.id, id).await {
            Ok(row) => rows.push(row),
            Err(toolhost_store::Error::NoSession { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let place = |row: &SessionRow| (row.updated_at_ms, row.id.clone());
    rows.retain(|row| filter.after.as_ref().is_none_or(|after| place(row) < *after));
    rows.sort_by_key(|row| std::cmp::Reverse(place(row)));
    let mut waiting = Vec::new();
    for row in rows {
        if i64::try_from(waiting.len()).is_ok_and(|count| count >= filter.limit) {
            break;
        }
        let asks = asking.get(&row.id).map_or(&[][..], Vec::as_slice);
        if waits_for_one(membership, &row, asks).await? {
            waiting.push(row);
        }
    }
    Ok(waiting)
}

/// Tokens and money of a session; empty where nothing is known.
fn cost(tally: &Value) -> String {
    let number = |name: &str| tally.get(name).and_then(Value::as_u64).unwrap_or_default();
    let tokens = number("inputTokens").saturating_add(number("outputTokens"));
    let cost = tally.get("cost").and_then(Value::as_f64).map(dollars);
    let tokens = (tokens > 0).then(|| format!("{} tokens", count(tokens)));
    tokens.into_iter().chain(cost).collect::<Vec<_>>().join(" · ")
}

/// The address of a session.
fn address(membership: &Membership, id: &str) -> String {
    membership.path(&format!("{PART}/{}", super::text::encoded(id)))
}

/// Whether the person may start sessions here.
pub(super) fn can_work(membership: &Membership) -> bool {
    membership.role != Role::Viewer && membership.project.work.is_some()
}

fn all_sessions(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move { list(&visitor, &wanted).await })
}

fn new_session(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move { start::answer(&visitor, &wanted).await })
}

fn one_session(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move { one::answer(&visitor, &wanted).await })
}

fn one_step(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move { one::step(&visitor, &wanted).await })
}

fn trace_of(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move { trace::show(&visitor, &wanted).await })
}

fn replay_of(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move { replay::show(&visitor, &wanted).await })
}

async fn list(visitor: &Visitor<'_>, wanted: &Wanted) -> Result<Response<Body>, ToolError> {
    let membership = visitor.membership(wanted.part("project")).await?;
    let project = &membership.project;
    let asked = wanted.asked("state").filter(|state| !state.is_empty());
    let missing = || ToolError::new(ErrorKind::Validation, "Sessions are in no such state.");
    let wanted_state =
        asked.map(|asked| STATES.iter().find(|(word, ..)| *word == asked).ok_or_else(missing)).transpose()?;
    let (state, running) = wanted_state.map_or((None, None), |(_, _, state, running)| (Some(*state), *running));
    let after = wanted.asked("after").and_then(|after| {
        let (at_ms, id) = after.split_once('.')?;
        Some((at_ms.parse().ok()?, id.to_owned()))
    });
    let limit = i64::try_from(ROWS_MAX + 1).unwrap_or(i64::MAX);
    let asking = asking(&membership).await?;
    let filter = SessionFilter { state, running, after, limit };
    let mut found = match asked {
        Some(WAITING) => waiting_rows(&membership, &asking, &filter).await?,
        _ => project.sessions.page(project.id, &filter).await?,
    };
    let more = found.len() > ROWS_MAX;
    found.truncate(ROWS_MAX);
    let next = found.last().filter(|_| more).map(|last| {
        let of_state = wanted_state.map(|(word, ..)| format!("&state={word}")).unwrap_or_default();
        format!("?after={}.{}{of_state}", last.updated_at_ms, super::text::encoded(&last.id))
    });
    let mut rows = Vec::with_capacity(found.len());
    for row in &found {
        let open = asking.get(&row.id).map_or(&[][..], Vec::as_slice);
        let state = state_of(&membership, row, open).await?;
        if asked == Some(WORKING) && state.word != WORKING {
            continue;
        }
        rows.push(Row {
            address: address(&membership, &row.id),
            title: headline(&membership, &row.title),
            state,
            profile: name(&row.profile),
            model: name(&row.model),
            cost: cost(&row.tally),
            when: When::of(visitor, row.updated_at_ms),
        });
    }
    Ok(page(
        StatusCode::OK,
        &ListPage {
            place: Place { live: told::SESSIONS_AND_ASKS, ..membership.place(visitor, PART) },
            rows,
            states: STATES.map(|(word, label, ..)| (word, label, asked == Some(word))).to_vec(),
            is_filtered: state.is_some(),
            can_start: can_work(&membership),
            next,
            membership: &membership,
        },
    ))
}
