//! The inbox: what people are asked in all of a person's projects, the riskiest first, and one ask with all of its effect.

mod edited;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::json;
use toolhost_contract::{
    Answer, Approval, Call, CallerKind, Effect, ErrorKind, SESSION_MARK, ToolError, visible_json, visible_line,
};
use toolhost_host::{
    Decision, PERMIT_LIVES_MS_DEFAULT, PERMIT_LIVES_MS_MAX, Person, Shown, Standing, ask_id, ask_number,
};
use toolhost_store::{Ask, AskKind, AskState, AskSummary, Error as StoreError, SessionState};

use self::edited::{Edit, EditedEffect, Typed};
use super::super::{envelope, told};
use super::ended::{Ended, in_words};
use super::failure::sentence;
use super::markdown::Markdown;
use super::marks::{with_ends_of, written_out};
use super::parts::{Line, Parts, parts_of};
use super::past::Past;
use super::question::{answer_text, choices, heading, kind_word, question_lines};
use super::route::{Made, Route, Wanted};
use super::sessions::{self, Can as SessionCan};
use super::split::{SPLIT, Split};
use super::visitor::{Membership, PLACE, Visitor, heard_of_all};
use super::when::When;
use super::{Place, page, see};
use crate::http::by_person::Doer;

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[
    Route { path: "/", name: "inbox", takes_forms: false, make: the_inbox },
    Route { path: "/asks/{project}/{ask}", name: "ask", takes_forms: true, make: one_ask },
];

/// Which changes make a page fetch itself again.
pub(super) const ASKS: &str = told::ASKS;
const ASKS_AND_CALLS: &str = "asks calls";
/// What the names of asks in the forms that take several begin with.
pub(super) const FIELD: &str = "ask:";
/// The tool that runs a call which was allowed.
const WAIT: &str = "approval.wait";
/// Most asks of one project in the inbox.
const ASKS_MAX: i64 = 200;
/// The longest that a rule holds.
const HOURS_MAX: u64 = PERMIT_LIVES_MS_MAX / 3_600_000;
/// How long a rule is offered to hold.
const HOURS_OFFERED: u64 = PERMIT_LIVES_MS_DEFAULT / 3_600_000;
/// How much of a line is quoted in what a person writes about it, characters.
const QUOTE_CHARS_MAX: usize = 200;
/// The level of the heading above what a review reads as.
const READS_AS_LEVEL: usize = 2;
/// Asks that were answered, in the list of what became of them.
const ENDED_MAX: i64 = 20;

#[derive(Template)]
#[template(path = "asks.html")]
struct InboxPage<'a> {
    place: Place<'a>,
    /// Whether the person is a member of any project.
    is_member: bool,
    asks: Vec<Row>,
    /// Whether any of them can be decided together with others.
    can_select: bool,
    /// In how many projects more are open than are listed.
    more: i64,
    ended: Vec<Row>,
    /// Where the person can start a session.
    start: Option<String>,
    /// Whether a project of the server could not be opened.
    is_one_closed: bool,
}

/// An ask in a list.
struct Row {
    address: String,
    id: String,
    project: String,
    what: &'static str,
    /// Its name in the form that takes several, where it may be one of them.
    field: Option<String>,
    /// The same as a word in a sentence.
    kind: &'static str,
    tool: String,
    summary: String,
    who: String,
    risk: Risk,
    left: String,
    /// How long ago.
    asked: String,
    /// What was said and by whom; empty while it is open.
    ended: String,
    created_at_ms: i64,
}

/// The worst that a call can do, for people.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Risk(pub(super) Effect);

impl Risk {
    fn rank(self) -> u8 {
        match self.0 {
            Effect::Reaches => 4,
            Effect::Executes => 3,
            Effect::Writes => 2,
            Effect::Asks => 1,
            Effect::Reads => 0,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self.0 {
            Effect::Reaches => "leaves this machine",
            Effect::Executes => "runs a program",
            Effect::Writes => "changes files or records",
            Effect::Asks => "",
            Effect::Reads => "reads",
        }
    }

    pub(super) fn class(self) -> &'static str {
        // `asks` is a list on these pages.
        if self.0 == Effect::Asks { "people" } else { self.0.as_str() }
    }
}

#[derive(Template)]
#[template(path = "ask.html")]
struct AskPage<'a> {
    place: Place<'a>,
    id: String,
    address: String,
    project: &'a str,
    project_href: String,
    heading: &'static str,
    summary: String,
    /// A question that is longer than a line.
    question: Vec<String>,
    /// Answers that can be chosen.
    choices: Vec<String>,
    who: String,
    profile: String,
    why: String,
    tool: String,
    risk: Risk,
    left: String,
    /// The session that asks, and where it is.
    session: Option<(String, Option<String>)>,
    /// How that session has stopped, if it has, and whether it can be told here to go on.
    stopped: Option<(&'static str, bool)>,
    /// Whether it has finished: a message lets it go on.
    is_finished: bool,
    round: i64,
    masked: usize,
    left_out: u64,
    lines: Vec<Line>,
    unmasked: Vec<Line>,
    /// What a text that is all on this page means as Markdown. What is bound is its source, which stands above.
    markdown: Option<Markdown>,
    /// Whether it is a diff, and that diff side by side if it is to be shown so.
    is_diff: bool,
    split: Option<Split>,
    part: usize,
    parts: usize,
    digest: String,
    /// What a yes is bound to: the arguments exactly, and until when it can be used.
    bound: String,
    until: When,
    /// What it can be answered with, on this page by this person.
    can: Can,
    /// The arguments of a call, to be edited.
    edit: Edit,
    /// What an edit of a text begins with.
    whole: Cow<'a, str>,
    /// The same with its deceiving marks written out, where it has such.
    written_out: Option<String>,
    /// Whether an edit was tried, and is shown again.
    is_edited: bool,
    text: String,
    hours: String,
    rule: Option<String>,
    /// What the rule would have allowed, where that was asked.
    past: Option<Past>,
    error: Option<String>,
    /// The field that the error is about; empty for none.
    error_at: &'static str,
    /// Whether the person may only look.
    only_looks: bool,
    /// Whether what is masked stands at the end of the page.
    shows_masked: bool,
    /// Whether somebody else than the person has to allow it.
    needs_another: bool,
    ended: Option<Ended>,
    /// Where the audit has the call that used the answer.
    did: Option<String>,
    next: Option<String>,
}

/// Which answers a page offers.
#[derive(Default)]
struct Can {
    allow: bool,
    edit_call: bool,
    deny: bool,
    pass: bool,
    edit: bool,
    feedback: bool,
    yes_or_no: bool,
    answer: bool,
    cancel: bool,
}

fn the_inbox(visitor: Visitor<'_>, _: Wanted) -> Made<'_> {
    Box::pin(async move { inbox(&visitor).await })
}

fn one_ask(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let (membership, id) = (visitor.membership(wanted.part("project")).await?, wanted.part("ask"));
        let Some(form) = &wanted.form else {
            let part = wanted.asked("part").and_then(|part| part.parse().ok()).unwrap_or(1);
            let with_past = wanted.asked("past") == Some("week");
            let is_split = wanted.asked("view") == Some(SPLIT);
            let tried = Tried { part, with_past, is_split, ..Tried::default() };
            return one(&visitor, &membership, id, (tried, wanted.shows)).await;
        };
        decide(&visitor, &membership, id, form).await
    })
}

/// The inbox.
///
/// # Errors
/// If the database does not answer.
async fn inbox(visitor: &Visitor<'_>) -> Result<Response<Body>, ToolError> {
    let (memberships, is_one_closed) = visitor.memberships().await?;
    let (mut asks, mut ended, mut more) = (Vec::new(), Vec::new(), 0);
    for membership in &memberships {
        let project = &membership.project;
        let store = project.gate.queue().asks();
        let open = store.open_after(project.id, 0, ASKS_MAX).await?;
        more += open.more;
        asks.extend(open.asks.into_iter().map(|ask| row(visitor, membership, ask)));
        let newest = store.newest(project.id, ENDED_MAX).await?;
        let is_ended = |ask: &AskSummary| ask.state != AskState::Open;
        ended.extend(newest.asks.into_iter().filter(is_ended).map(|ask| row(visitor, membership, ask)));
    }
    asks.sort_by_key(|row| (Reverse(row.risk.rank()), row.created_at_ms));
    ended.sort_by_key(|row| Reverse(row.created_at_ms));
    ended.truncate(usize::try_from(ENDED_MAX).unwrap_or(usize::MAX));
    let heard = heard_of_all(&memberships);
    let place = Place { live: ASKS, heard: &heard, ..visitor.place() };
    let start =
        memberships.iter().find(|membership| sessions::can_work(membership)).map(|membership| match memberships[..] {
            [_] => membership.path("sessions/new"),
            // In which project is for the person to say.
            _ => "/projects".to_owned(),
        });
    let (is_member, can_select) = (!memberships.is_empty(), asks.iter().any(|row| row.field.is_some()));
    Ok(page(StatusCode::OK, &InboxPage { place, is_member, asks, can_select, more, ended, start, is_one_closed }))
}

fn row(visitor: &Visitor<'_>, membership: &Membership, ask: AskSummary) -> Row {
    let id = ask_id(ask.number);
    let is_one_of_several = ask.state == AskState::Open
        && ask.kind == AskKind::Approval
        && membership.approver
        && !asks_always(membership, &ask.tool);
    let ended = in_words(&ask);
    Row {
        address: membership.address(&id),
        project: visible_line(&membership.project.name),
        what: kind_word(ask.kind),
        kind: kind_noun(ask.kind),
        field: is_one_of_several.then(|| field(membership, &id)),
        risk: risk(membership, &ask.tool),
        tool: visible_line(&ask.tool),
        summary: visible_line(&ask.summary.replace(['\n', '\t'], " ")),
        who: visible_line(&ask.persona),
        left: visitor.time_left(ask.expires_at_ms),
        asked: visitor.time_since(ask.created_at_ms),
        created_at_ms: ask.created_at_ms,
        ended,
        id,
    }
}

/// The name of an ask in the forms that take several.
pub(super) fn field(membership: &Membership, id: &str) -> String {
    format!("{FIELD}{}/{id}", membership.project.key)
}

fn kind_noun(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Approval => "approval",
        AskKind::Review => "review",
        AskKind::Question => "question",
    }
}

fn risk(membership: &Membership, tool: &str) -> Risk {
    let tool = membership.project.gate.registry().get(tool);
    // A tool that is gone could have done anything.
    Risk(tool.map_or(Effect::Reaches, |tool| tool.info.facts.effect))
}

/// One ask, as it is looked at. `is_shown`: whether the browser is sent the page.
///
/// # Errors
/// If it is not there, or the database does not answer.
async fn one(
    visitor: &Visitor<'_>,
    membership: &Membership,
    id: &str,
    (tried, is_shown): (Tried, bool),
) -> Result<Response<Body>, ToolError> {
    let (ask, shown) = found(membership, id).await?;
    let (parts, part) = (parts_of(&shown).count(), tried.part);
    if is_shown && ask.state == AskState::Open && membership.approver && parts > 1 {
        // Who agrees to it must have been shown each of them.
        let queue = membership.project.gate.queue();
        queue.saw_part(&person(visitor, membership), (&ask, &shown), part.clamp(1, parts), PLACE).await?;
    }
    Ok(page(StatusCode::OK, &ask_page(visitor, membership, (&ask, &shown), tried).await?))
}

fn person(visitor: &Visitor<'_>, membership: &Membership) -> Person {
    let (user_id, project_id) = (membership.user_id, membership.project.id);
    Person { user_id, project_id, name: visitor.login.user.clone() }
}

/// What somebody tried to answer, to be shown to them again.
#[derive(Default)]
struct Tried {
    part: usize,
    /// Whether to look what the rule would have allowed.
    with_past: bool,
    /// Whether a diff is to be shown side by side.
    is_split: bool,
    text: String,
    /// For how long a rule should hold; empty for as long as is offered.
    hours: String,
    /// The edited text, if the person has changed it.
    edited: Option<String>,
    typed: Typed,
    /// What the call would do as it was edited.
    effect: Option<EditedEffect>,
    error: Option<String>,
    /// The field that the error is about; empty for none.
    error_at: &'static str,
}

impl Tried {
    /// What a form has, to be shown again on the last part.
    fn kept<'f>(shown: &Shown, text: String, field: &impl Fn(&str) -> &'f str) -> Self {
        let edited = with_ends_of(&shown.detail, field("edited"));
        let is_other = !edited.is_empty() && shown.kind != AskKind::Approval && edited != shown.detail;
        Self {
            part: usize::MAX,
            text,
            hours: field("hours").to_owned(),
            edited: is_other.then_some(edited),
            typed: Typed::of(shown, field),
            ..Self::default()
        }
    }
}

/// How a session has stopped whose agent has given its answer.
const FINISHED: &str = "has finished";

/// How the session has stopped that made an ask which waits or was answered, and whether the person may tell it to go on: its agent uses the
/// answer then.
async fn stopped(membership: &Membership, ask: &Ask) -> Result<Option<(&'static str, bool)>, ToolError> {
    let waits = matches!(ask.state, AskState::Open | AskState::Answered);
    let Some(id) = ask.session_id.as_deref().filter(|_| waits) else { return Ok(None) };
    // Most sessions are a client's, and no rows.
    let session = match membership.project.sessions.get(membership.project.id, id).await {
        Ok(session) => session,
        Err(StoreError::NoSession { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let how = match session.state {
        SessionState::Done => FINISHED,
        SessionState::Failed => "has failed",
        SessionState::Limited => "was stopped by a limit",
        SessionState::Paused => "is paused",
        SessionState::Active if !session.running => "was interrupted",
        SessionState::Active | SessionState::Cancelled => return Ok(None),
    };
    let goes_on = ask.state == AskState::Answered && SessionCan::of(membership, &session).resume;
    Ok(Some((how, goes_on)))
}

/// A session as an ask names it. Only sessions of agents have pages: others are what a client or a person calls itself.
fn session_of(membership: &Membership, id: &str) -> (String, Option<String>) {
    let is_agents = id.starts_with(SESSION_MARK);
    (visible_line(id), is_agents.then(|| membership.path(&format!("sessions/{}", super::encoded(id)))))
}

/// The field that a wrong answer is about; empty where it is about none.
fn field_of(word: &str, shown: &Shown, error: &ToolError, is_rule: bool) -> &'static str {
    if error.kind != ErrorKind::Validation {
        return "";
    }
    match (word, shown.kind) {
        ("edit", AskKind::Approval) => "arguments",
        ("edit", _) => "edited",
        ("deny" | "feedback" | "answer", _) => "text",
        ("allow", _) if is_rule => "hours",
        _ => "",
    }
}

pub(super) async fn found(membership: &Membership, id: &str) -> Result<(Ask, Shown), ToolError> {
    let unknown = || ToolError::new(ErrorKind::NotFound, "There is no such ask.");
    let number = ask_number(id).ok_or_else(unknown)?;
    let gate = &membership.project.gate;
    let (mut ask, shown) = gate.queue().get(membership.project.id, number).await?;
    if membership.approver {
        return Ok((ask, shown));
    }
    // Who decides nothing needs no secret.
    [&mut ask.answer, &mut ask.outcome].into_iter().flatten().for_each(|said| gate.redact(said));
    Ok((ask, gate.for_lookers(&shown)))
}

/// Which changes make the page of an ask fetch itself again.
fn live_of(ask: &Ask) -> &'static str {
    match ask.state {
        AskState::Open => ASKS,
        // What becomes of an answered one is told by its call.
        _ if ask.outcome.is_none() => ASKS_AND_CALLS,
        _ => "",
    }
}

async fn ask_page<'a>(
    visitor: &Visitor<'a>,
    membership: &'a Membership,
    (ask, shown): (&Ask, &'a Shown),
    tried: Tried,
) -> Result<AskPage<'a>, ToolError> {
    let parts = parts_of(shown);
    let part = tried.part.clamp(1, parts.count());
    let is_last = part == parts.count();
    let is_diff = parts.has_diff();
    let (lines, unmasked) = parts.lines(part, shown.kind == AskKind::Approval);
    let is_open = ask.state == AskState::Open && membership.approver;
    let may_allow = !shown.second_person || ask.user_id != membership.user_id;
    let next = match ask.state {
        AskState::Open => None,
        _ => next(membership, ask.number).await?,
    };
    // A page that shows what was wrong stays so.
    let live = if tried.error.is_some() { "" } else { live_of(ask) };
    let rule = shown.rule_text().filter(|_| is_open && is_last && may_allow);
    let past = match &rule {
        Some(_) if tried.with_past => Some(Past::of(membership, (ask, shown), visitor.clock).await?),
        _ => None,
    };
    let is_edited = tried.edited.is_some() || tried.typed.is_changed(shown);
    let of_arguments = tried.error.as_deref().filter(|_| tried.error_at == "arguments");
    let stopped = stopped(membership, ask).await?;
    let whole = tried.edited;
    Ok(AskPage {
        place: Place { project: Some(membership), live, ..visitor.place() },
        id: ask_id(ask.number),
        address: membership.address(&ask_id(ask.number)),
        project: &membership.project.name,
        project_href: membership.path("sessions"),
        heading: kind_word(shown.kind),
        summary: heading(shown),
        question: question_lines(shown),
        choices: choices(shown),
        who: visible_line(&shown.persona),
        profile: visible_line(&shown.profile),
        // Names stand in backticks at a terminal.
        why: visible_line(&shown.why).replace('`', ""),
        tool: visible_line(&shown.tool),
        risk: Risk(shown.effect),
        left: visitor.time_left(ask.expires_at_ms),
        session: ask.session_id.as_deref().map(|id| session_of(membership, id)),
        is_finished: stopped.is_some_and(|(how, _)| how == FINISHED),
        stopped,
        round: shown.round,
        masked: if shown.left_out > 0 { 0 } else { shown.masked },
        left_out: shown.left_out,
        lines,
        unmasked,
        markdown: reads_as(shown, &parts),
        is_diff,
        split: (is_diff && tried.is_split).then(|| parts.split(part)),
        part,
        parts: parts.count(),
        digest: shown.digest(),
        bound: visible_json(&serde_json::to_string_pretty(&shown.arguments).unwrap_or_default()),
        until: When::on(ask.expires_at_ms),
        can: if is_open { Can::of(shown, is_last && may_allow) } else { Can::default() },
        edit: Edit::of(shown, &tried.typed, of_arguments, tried.effect),
        written_out: match shown.kind {
            AskKind::Approval => None,
            _ => written_out(whole.as_deref().unwrap_or(&shown.detail)),
        },
        whole: whole.map_or(Cow::Borrowed(&*shown.detail), Cow::Owned),
        is_edited,
        text: tried.text,
        hours: if tried.hours.is_empty() { HOURS_OFFERED.to_string() } else { tried.hours },
        rule,
        past,
        needs_another: is_open && !may_allow,
        error: tried.error,
        error_at: tried.error_at,
        only_looks: !membership.approver && ask.state == AskState::Open,
        // Who decides nothing is shown no secret, before and after.
        shows_masked: membership.approver,
        ended: Ended::of(ask),
        did: ask.used_by.as_deref().map(|call| membership.path(&format!("audit/calls/{}", super::encoded(call)))),
        next,
    })
}

/// What the text of a review means as Markdown. An approval is bound to what it shows, and shows nothing else.
fn reads_as(shown: &Shown, parts: &Parts<'_>) -> Option<Markdown> {
    let is_whole = parts.count() == 1 && shown.left_out == 0;
    let detail = Some(&shown.detail).filter(|_| shown.kind != AskKind::Approval && is_whole)?;
    Markdown::of(detail, READS_AS_LEVEL)
}

impl Can {
    /// Only the last part has a yes.
    fn of(shown: &Shown, may_agree: bool) -> Self {
        let can = |word: &str| shown.answers().contains(&word) && (may_agree || !shown.agrees(word));
        let is_approval = shown.kind == AskKind::Approval;
        Self {
            allow: can("allow"),
            edit_call: is_approval && can("edit"),
            deny: can("deny"),
            pass: can("pass"),
            edit: !is_approval && can("edit"),
            feedback: can("feedback"),
            yes_or_no: may_agree && can("no"),
            answer: can("answer"),
            cancel: can("cancel"),
        }
    }
}

/// Another ask of the project that is open.
async fn next(membership: &Membership, number: i64) -> Result<Option<String>, ToolError> {
    let open = membership.project.gate.queue().asks().open_numbers(membership.project.id).await?;
    let next = open.iter().find(|other| **other > number).or_else(|| open.first());
    Ok(next.map(|number| membership.address(&ask_id(*number))))
}

/// Answers an ask with what a form says.
///
/// # Errors
/// If it is not there, or the database does not answer. What is wrong with the answer stands on the page.
async fn decide(
    visitor: &Visitor<'_>,
    membership: &Membership,
    id: &str,
    form: &BTreeMap<String, String>,
) -> Result<Response<Body>, ToolError> {
    let (ask, shown) = found(membership, id).await?;
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    // One button allows the call and its like: it is the rule's.
    let word = match field("decision") {
        "" if field("rule") == "on" => "allow",
        "" if !field("choice").is_empty() => "answer",
        word => word,
    };
    let text = answer_text(&shown, field("choice"), field("text"))?;
    if field("look") == "week" {
        let tried = Tried { with_past: true, ..Tried::kept(&shown, text, &field) };
        return Ok(page(StatusCode::OK, &ask_page(visitor, membership, (&ask, &shown), tried).await?));
    }
    if field("look") == "edit" {
        let kept = Tried::kept(&shown, text, &field);
        let looked = match kept.typed.arguments(&shown) {
            Ok(arguments) => EditedEffect::of(membership, (&ask, &shown), &arguments).await,
            Err(error) => Err(error),
        };
        let (status, tried) = match looked {
            Ok(effect) => (StatusCode::OK, Tried { effect: Some(effect), ..kept }),
            Err(error) if error.kind == ErrorKind::Internal => return Err(error),
            Err(error) => {
                let status = envelope::status(&error);
                (status, Tried { error: Some(sentence(&error)), error_at: "arguments", ..kept })
            }
        };
        return Ok(page(status, &ask_page(visitor, membership, (&ask, &shown), tried).await?));
    }
    if !field("line").is_empty() {
        return about_line(visitor, membership, (&ask, &shown), (&text, &field)).await;
    }
    match answer(visitor, membership, (&ask, &shown), (word, &text, field)).await {
        Ok(()) => Ok(see(&membership.address(id))),
        Err(error) if error.kind == ErrorKind::Internal => Err(error),
        Err(error) => {
            let (ask, shown) = found(membership, id).await?;
            let status = envelope::status(&error);
            let error_at = field_of(word, &shown, &error, field("rule") == "on");
            let error = Some(sentence(&error));
            let tried = Tried { error, error_at, ..Tried::kept(&shown, text, &field) };
            Ok(page(status, &ask_page(visitor, membership, (&ask, &shown), tried).await?))
        }
    }
}

/// The page again, with a line of the effect quoted below what was written so far. It decides nothing.
///
/// # Errors
/// If the database does not answer.
async fn about_line<'f>(
    visitor: &Visitor<'_>,
    membership: &Membership,
    (ask, shown): (&Ask, &Shown),
    (text, field): (&str, &impl Fn(&str) -> &'f str),
) -> Result<Response<Body>, ToolError> {
    let wanted = if field("line") == "at" { field("at") } else { field("line") };
    let number = wanted.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let line = number.and_then(|number| shown.detail.trim_end_matches('\n').split('\n').nth(number));
    let (text, error) = match line {
        // What is written must not stand under another line than the one that was clicked.
        _ if field("digest") != shown.digest() => (
            text.to_owned(),
            Some("This ask shows something else than the page you answered. Look at it again.".to_owned()),
        ),
        None => (text.to_owned(), Some(format!("There is no line {}.", visible_line(wanted)))),
        Some(line) => {
            let quoted: String = visible_line(line.trim()).chars().take(QUOTE_CHARS_MAX).collect();
            let before = text.trim_end();
            let gap = if before.is_empty() { "" } else { "\n\n" };
            (format!("{before}{gap}Line {wanted}: {quoted}\n"), None)
        }
    };
    let part = field("part").parse().unwrap_or(usize::MAX);
    let kept = Tried::kept(shown, text, field);
    let status = if error.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let tried = Tried { part, error, ..kept };
    Ok(page(status, &ask_page(visitor, membership, (ask, shown), tried).await?))
}

/// Writes down an answer to what a form has shown.
///
/// # Errors
/// If the ask shows something else now, or cannot be answered so.
pub(super) async fn answer<'f>(
    visitor: &Visitor<'_>,
    membership: &Membership,
    (ask, shown): (&Ask, &Shown),
    (word, text, field): (&str, &str, impl Fn(&str) -> &'f str),
) -> Result<(), ToolError> {
    if ask.state == AskState::Open && field("digest") != shown.digest() {
        return Err(ToolError::new(ErrorKind::Conflict, "This ask shows something else than the page you answered")
            .hint("Look at it again."));
    }
    // Texts of several answers stand in one form, each in a field of its own.
    let text = match word {
        "edit" if shown.kind == AskKind::Approval => Typed::of(shown, &field).arguments(shown)?,
        "edit" => with_ends_of(&shown.detail, field("edited")),
        _ => text.to_owned(),
    };
    if word == "allow" && shown.kind == AskKind::Approval && Typed::of(shown, &field).is_changed(shown) {
        let message = "You have changed the arguments, and this button allows the call as it was asked";
        return Err(ToolError::new(ErrorKind::Validation, message).hint("Press \"Allow as edited\", or put them back."));
    }
    if word == "deny" && text.trim().is_empty() {
        return Err(ToolError::new(ErrorKind::Validation, "Say why not: the agent reads it"));
    }
    let answer = shown.answer(word, Some(text))?;
    need_all_parts(visitor, membership, (ask, shown), (&answer, field("part"))).await?;
    membership.project.gate.edit_rules().check(shown, &answer).await?;
    if answer.agrees() && asks_always(membership, &ask.tool) {
        visitor.need_recent("Only a person may allow this, each time anew, and you signed in a while ago")?;
    }
    let rule = match (field("rule"), &shown.rule) {
        ("on", Some(conditions)) if word == "allow" => {
            Some(Standing { conditions: conditions.clone(), lives_ms: lives_ms(field("hours"))? })
        }
        _ => None,
    };
    let person = person(visitor, membership);
    let queue = membership.project.gate.queue();
    if answer.agrees() {
        // The page with the yes comes after all others.
        queue.saw(&person, ask, shown, PLACE).await?;
    }
    let agrees = answer.agrees();
    queue.decide(&person, ask.number, Decision { answer, rule }, PLACE).await?;
    if agrees {
        run_own(membership, ask);
    }
    Ok(())
}

/// Passes if the answer does not agree, or if the person was shown each part of what is asked and answers on the last one.
async fn need_all_parts(
    visitor: &Visitor<'_>,
    membership: &Membership,
    (ask, shown): (&Ask, &Shown),
    (answer, part): (&Answer, &str),
) -> Result<(), ToolError> {
    let parts = parts_of(shown).count();
    if parts <= 1 || !answer.agrees() {
        return Ok(());
    }
    let wrong = |message: String| Err(ToolError::new(ErrorKind::Validation, message));
    if part.parse() != Ok(parts) {
        return wrong(format!("All {parts} parts have to be looked at first: a yes is said on the last one"));
    }
    let queue = membership.project.gate.queue();
    match &queue.unseen_parts(&person(visitor, membership), (ask, shown), parts).await?[..] {
        [] => Ok(()),
        [first, ..] => wrong(format!("You have not looked at part {first} of {parts} yet: open it first")),
    }
}

/// Runs a call that a page has made, once it is allowed: nobody else waits for its answer.
fn run_own(membership: &Membership, ask: &Ask) {
    let Ok(made) = serde_json::from_value::<Call>(ask.call.clone()) else { return };
    if made.caller.kind != CallerKind::Person || made.caller.door != PLACE {
        return;
    }
    let (project, id) = (Arc::clone(&membership.project), ask_id(ask.number));
    tokio::spawn(async move {
        let (user_id, user) = (made.scope.user_id, &*made.caller.persona);
        let doer = Doer { project: &project, user_id, user, door: PLACE, origin: None };
        doer.call(WAIT, json!({ "approvalId": id })).await;
    });
}

/// Whether a person has to allow each call of a tool. One that is gone may have been such a tool.
pub(super) fn asks_always(membership: &Membership, tool: &str) -> bool {
    let tool = membership.project.gate.registry().get(tool);
    tool.is_none_or(|tool| tool.info.facts.approval == Approval::Always)
}

fn lives_ms(hours: &str) -> Result<u64, ToolError> {
    if hours.is_empty() {
        return Ok(PERMIT_LIVES_MS_DEFAULT);
    }
    let hours: u64 = hours
        .parse()
        .ok()
        .filter(|hours| (1..=HOURS_MAX).contains(hours))
        .ok_or_else(|| ToolError::new(ErrorKind::Validation, format!("A rule holds for 1 to {HOURS_MAX} hours")))?;
    let lives = Duration::from_secs(hours.saturating_mul(3600)).as_millis();
    Ok(u64::try_from(lives).unwrap_or(u64::MAX))
}

impl Membership {
    /// Where an ask of the project is.
    pub(super) fn address(&self, id: &str) -> String {
        format!("/asks/{}/{id}", self.key())
    }
}
