//! The audit of a project: who did and decided what, and whether the record of it is whole.

use std::collections::{HashMap, HashSet};

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use serde_json::{Map, Value};
use toolhost_contract::{Effect, SESSION_MARK, ToolError, nearest, or_list, visible_json, visible_line};
use toolhost_host::{ask_id, ask_number};
use toolhost_store::{ExportEnd, Filter, Reader, Row};

use super::super::told;
use super::deeds::deed;
use super::ended::did_words;
use super::route::{Made, Route, Wanted};
use super::text::{When, duration, in_one_line};
use super::visitor::{Membership, Visitor};
use super::{Place, guard, page, see};

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/audit", name: "audit", takes_forms: false, make: rows },
    Route { path: "/projects/{project}/audit/calls/{call}", name: "audit_call", takes_forms: false, make: one_call },
    Route {
        path: "/projects/{project}/audit/verification",
        name: "audit_verification",
        takes_forms: true,
        make: verify,
    },
    Route { path: "/projects/{project}/audit/export", name: "audit_export", takes_forms: false, make: export },
];

/// The section of these pages.
const SECTION: &str = "audit";
/// Rows on one page.
const ROWS: usize = 50;
/// Rows of one call that are shown at most.
const CALL_ROWS_MAX: i64 = 200;
/// Characters of arguments in a list.
const ARGUMENTS_CHARS_MAX: usize = 2_000;
/// Rows that are looked at for one page of those that fit: the audit is long, and no index helps to find most of what can be asked for.
const LOOKED_AT: i64 = 20_000;
/// Rows read at once for an export.
const EXPORT_ROWS: i64 = 1000;
const HOUR_MS: i64 = 3_600_000;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage<'a> {
    place: Place<'a>,
    address: String,
    rows: Vec<Line>,
    /// What is asked for, as it was typed.
    tool: String,
    session: String,
    hours: String,
    by: String,
    failed: bool,
    files: bool,
    all: bool,
    /// Where calls that only read are among the rows, or are not.
    other: String,
    /// Who can be chosen.
    people: Vec<String>,
    /// What is wrong with what was typed, beside its field.
    hours_error: Option<&'static str>,
    by_error: Option<&'static str>,
    /// What is said of a name that no tool has; empty where one has it.
    unknown: String,
    /// The address of the rows before these.
    earlier: Option<String>,
    /// The first and the last of the rows among which these were looked for, where that is a part of them.
    looked_at: Option<(i64, i64)>,
}

#[derive(Template)]
#[template(path = "audit_call.html")]
struct CallPage<'a> {
    place: Place<'a>,
    address: String,
    id: String,
    /// What was done, as a sentence.
    deed: String,
    tool: String,
    session: Option<(String, String)>,
    /// What people were asked about it: addresses and ids.
    asks: Vec<(String, String)>,
    rows: Vec<Line>,
    /// Where its changes of files can be put back; empty for what a person did with no file.
    undo: String,
    /// The rows as the audit holds them.
    bodies: Vec<String>,
}

#[derive(Template)]
#[template(path = "audit_verification.html")]
struct VerificationPage<'a> {
    place: Place<'a>,
    address: String,
    rows: u64,
    problems: Vec<String>,
}

/// The names of a project's members.
type Names = HashMap<i64, String>;

/// A row, for people.
struct Line {
    seq: i64,
    at: When,
    who: String,
    /// What was done, as a sentence.
    deed: String,
    tool: String,
    /// How it went, in words, and the class of that.
    said: String,
    class: &'static str,
    /// All that it was asked with, as JSON; its beginning where it is long.
    arguments: String,
    call: String,
    /// The session that it was made in, with an address.
    session: Option<(String, String)>,
}

impl Line {
    /// `begun`: the row that says with which arguments its call began.
    fn of(row: &Row, begun: Option<&Row>, visitor: &Visitor<'_>, membership: &Membership, names: &Names) -> Self {
        let body = row.content();
        let arguments = body.get("arguments").filter(|arguments| !arguments.is_null()).cloned();
        // What a person has allowed may be other arguments than the call came with.
        let arguments = body.pointer("/decision/arguments").cloned().or(arguments);
        let arguments = arguments.or_else(|| begun?.content().get("arguments").cloned()).unwrap_or_default();
        let text = |pointer: &str| visible_line(body.pointer(pointer).and_then(Value::as_str).unwrap_or_default());
        let (said, class) = said(row, &body);
        let took = body.get("durationMs").and_then(Value::as_u64).map(|ms| format!(", {}", duration(ms)));
        let user = body.pointer("/userId").and_then(Value::as_i64).unwrap_or_default();
        let name = names.get(&user).map_or_else(|| format!("user {user}"), |name| visible_line(name));
        // A person's own deed is under their name; an agent's is in somebody's name.
        let who = match (text("/caller/persona"), text("/caller/door")) {
            // Nobody made it: a host has found at its start that a call never ended.
            _ if user == 0 => "the host, at its next start".to_owned(),
            (who, door) if who.is_empty() || who == name => format!("{name} ({door})"),
            (who, door) => format!("{who} for {name} ({door})"),
        };
        Self {
            seq: row.seq,
            at: When::of(visitor, row.at_ms),
            who,
            deed: deed(membership.project.gate.registry(), &row.tool, &arguments),
            tool: visible_line(&row.tool),
            said: match took {
                Some(took) => said.trim_end_matches('.').to_owned() + &took,
                None => said,
            },
            class,
            arguments: shortened(&arguments),
            session: session_in(&body).or_else(|| session_in(&begun?.content())).map(|id| session_of(membership, &id)),
            call: membership.path(&format!("audit/calls/{}", super::encoded(&row.call_id))),
        }
    }
}

fn session_in(body: &Value) -> Option<String> {
    body.get("sessionId")?.as_str().map(str::to_owned)
}

/// A session with an address: the page of a session that runs here, or, of another client's, the rows that it left.
fn session_of(membership: &Membership, id: &str) -> (String, String) {
    let name = super::text::encoded(id);
    let address = match id.starts_with(SESSION_MARK) {
        true => membership.path(&format!("sessions/{name}")),
        false => format!("{}?session={name}", membership.path(SECTION)),
    };
    (visible_line(id), address)
}

/// The newest first. Of a call that has ended, its end alone, with what it was asked.
async fn lines(
    rows: &[Row],
    visitor: &Visitor<'_>,
    membership: &Membership,
    names: &Names,
) -> Result<Vec<Line>, ToolError> {
    let of = |event: &'static str| rows.iter().filter(move |row| row.event == event);
    let ended: HashSet<&str> = of("finished").chain(of("unknown")).map(|row| &*row.call_id).collect();
    // Most rows of a call do not repeat its arguments, and the one that has them, or says how it ended, may be on another page.
    let has_arguments = |row: &Row| row.content().get("arguments").is_some_and(|arguments| !arguments.is_null());
    let told: HashSet<&str> = rows.iter().filter(|row| has_arguments(row)).map(|row| &*row.call_id).collect();
    let is_open = |row: &Row| row.event == "started" && !ended.contains(&*row.call_id);
    let missing =
        rows.iter().filter(|row| !told.contains(&*row.call_id) || is_open(row)).map(|row| row.call_id.clone());
    let missing: Vec<String> = missing.collect::<HashSet<_>>().into_iter().collect();
    let project = &membership.project;
    let others = project.reader.audit_of_calls(project.id, &missing, CALL_ROWS_MAX).await?;
    let ends: HashMap<&str, &Row> = others
        .iter()
        .filter(|row| matches!(&*row.event, "finished" | "unknown"))
        .map(|row| (&*row.call_id, row))
        .collect();
    let begun: HashMap<&str, &Row> =
        others.iter().chain(rows).filter(|row| has_arguments(row)).map(|row| (&*row.call_id, row)).collect();
    let shown = rows.iter().rev().filter(|row| row.event != "started" || !ended.contains(&*row.call_id));
    let line = |row: &Row| {
        let end = ends.get(&*row.call_id).filter(|_| is_open(row));
        let said = Line::of(row, begun.get(&*row.call_id).copied(), visitor, membership, names);
        match end.map(|end| Line::of(end, Some(row), visitor, membership, names)) {
            // Its end is not among these rows, and says how it went all the same.
            Some(end) => Line { said: end.said, class: end.class, ..said },
            None => said,
        }
    };
    Ok(shown.map(line).collect())
}

/// How a call went, or what a person said.
fn said(row: &Row, body: &Value) -> (String, &'static str) {
    let text = |pointer: &str| visible_line(body.pointer(pointer).and_then(Value::as_str).unwrap_or_default());
    let flag = |pointer: &str| body.pointer(pointer).and_then(Value::as_bool) == Some(true);
    let message = in_one_line(body.pointer("/outcome/message").and_then(Value::as_str).unwrap_or_default());
    match row.event.as_str() {
        "finished" if flag("/outcome/pending") => ("put to a person".to_owned(), "warn"),
        "finished" if flag("/outcome/ok") => match body.pointer("/outcome/exitCode").and_then(Value::as_i64) {
            Some(code) if code != 0 => (format!("done, exit code {code}"), "warn"),
            _ => ("done".to_owned(), "good"),
        },
        "finished" if message.is_empty() => ("failed".to_owned(), "bad"),
        "finished" if matches!(&*text("/outcome/kind"), "permission" | "denied") => {
            (format!("not allowed: {message}"), "bad")
        }
        "finished" => (format!("failed: {message}"), "bad"),
        "unknown" => ("unknown: the host ended while it ran".to_owned(), "bad"),
        "decision" => {
            let ask = text("/decision/ask");
            let about = if ask.is_empty() { String::new() } else { format!(" ({ask})") };
            let comment = text("/decision/comment");
            let why = if comment.is_empty() { String::new() } else { format!(": {comment}") };
            (format!("{}{about}{why}", did_words(&text("/decision/say"))), "warn")
        }
        _ => ("started".to_owned(), ""),
    }
}

/// The ask that a row is about: one that held its call, or one that its call put to people.
pub(super) fn ask_in(body: &Value) -> Option<i64> {
    let ask = body.pointer("/decision/ask").or_else(|| body.pointer("/outcome/ask"))?;
    ask_number(ask.as_str()?)
}

/// Whether the call ended with a question to people.
fn waits(row: &Row) -> bool {
    row.content().pointer("/outcome/pending").and_then(Value::as_bool) == Some(true)
}

fn shortened(arguments: &Value) -> String {
    if arguments.is_null() || arguments.as_object().is_some_and(Map::is_empty) {
        return String::new();
    }
    let text = visible_json(&serde_json::to_string_pretty(arguments).unwrap_or_default());
    match text.char_indices().nth(ARGUMENTS_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

impl Membership {
    fn audit_place<'a>(&'a self, visitor: &Visitor<'a>) -> Place<'a> {
        Place { project: Some(self), section: SECTION, ..visitor.place() }
    }
}

/// What is wrong with what was typed.
#[derive(Default)]
struct Wrong {
    hours: Option<&'static str>,
    by: Option<&'static str>,
}

/// What is asked of the audit, as it was typed.
#[derive(Clone)]
struct Question {
    tool: String,
    session: String,
    hours: String,
    by: String,
    failed: bool,
    /// Only calls that changed files, and commands.
    files: bool,
    /// Whether calls that only read are among the rows. They are most rows, and pages make some of them.
    all: bool,
}

impl Question {
    fn of(wanted: &Wanted) -> Self {
        let asked = |name: &str| wanted.asked(name).map(str::trim).unwrap_or_default().to_owned();
        let is_on = |name: &str| wanted.asked(name) == Some("on");
        Self {
            tool: asked("tool"),
            session: asked("session"),
            hours: asked("hours"),
            by: asked("by"),
            failed: is_on("failed"),
            files: is_on("files"),
            // Who names a tool wants all of its calls, and who looks for failures all of them.
            all: is_on("all") || is_on("failed") || !asked("tool").is_empty(),
        }
    }

    fn is_all(&self) -> bool {
        let typed = [&self.tool, &self.session, &self.hours, &self.by];
        typed.iter().all(|text| text.is_empty()) && !self.failed && !self.files && self.all
    }

    /// As the end of an address.
    fn written(&self) -> String {
        let typed = [("tool", &self.tool), ("session", &self.session), ("hours", &self.hours), ("by", &self.by)];
        let typed = typed.iter().map(|(name, text)| format!("&{name}={}", super::encoded(text)));
        let flags = [("failed", self.failed), ("files", self.files), ("all", self.all)];
        let flags = flags.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| format!("&{name}=on"));
        typed.chain(flags).collect()
    }

    /// What of the rows it is, or what is wrong with it.
    fn filter(&self, membership: &Membership, names: &Names, now_ms: i64) -> Result<Filter, Wrong> {
        let mut wrong = Wrong::default();
        let since_ms = match self.hours.parse::<i64>() {
            Ok(hours) if hours > 0 => Some(now_ms.saturating_sub(hours.saturating_mul(HOUR_MS))),
            _ if self.hours.is_empty() => None,
            _ => {
                wrong.hours = Some("The hours are a number above 0.");
                None
            }
        };
        let user = names.iter().find(|(_, name)| **name == self.by).map(|(id, _)| *id);
        if user.is_none() && !self.by.is_empty() {
            wrong.by = Some("Nobody in this project has this name.");
        }
        if wrong.hours.is_some() || wrong.by.is_some() {
            return Err(wrong);
        }
        let registry = membership.project.gate.registry();
        let known = registry.get(&self.tool).map(|tool| tool.info.name.to_string());
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Ok(Filter {
            // Names by which models know a tool are found, too.
            tool: known.or_else(|| given(&self.tool)),
            session: given(&self.session),
            user,
            failed_only: self.failed,
            changes_only: !self.all,
            files_only: self.files,
            since_ms,
            limit: i64::try_from(ROWS + 1).unwrap_or(i64::MAX),
            last: true,
            ..Filter::default()
        })
    }
}

impl Membership {
    /// What is said of a name that no tool has, with the names that it may be meant for.
    pub(super) fn no_tool(&self, typed: &str) -> String {
        let registry = self.project.gate.registry();
        let near = nearest(typed, registry.tools().iter().map(|tool| &*tool.info.name));
        let meant = match near[..] {
            [] => String::new(),
            _ => format!(" Did you mean {}?", or_list(&near).replace('`', "")),
        };
        visible_line(&format!("There is no tool with the name {typed}.{meant}"))
    }
}

async fn names(membership: &Membership) -> Result<Names, ToolError> {
    let project = &membership.project;
    let members = project.people.members(project.id).await?;
    Ok(members.into_iter().map(|member| (member.id, member.name)).collect())
}

/// The id of the one session whose id begins with the typed text. Where none or several do, the typed text itself.
async fn meant(membership: &Membership, typed: Option<String>) -> Option<String> {
    let project = &membership.project;
    let typed = typed?;
    let found = project.sessions.meant(project.id, membership.user_id, &typed).await;
    Some(found.map_or(typed, |row| row.id))
}

/// Who made a call, when, and where the audit has it. `None` if the audit has no such call.
pub(super) async fn who_made(
    visitor: &Visitor<'_>,
    membership: &Membership,
    call: &str,
) -> Result<Option<(String, When, String)>, ToolError> {
    let filter = Filter { call: Some(call.to_owned()), limit: CALL_ROWS_MAX, ..Filter::default() };
    let found = membership.project.reader.audit(membership.project.id, &filter).await?;
    let names = names(membership).await?;
    let line = found.last().map(|row| Line::of(row, None, visitor, membership, &names));
    Ok(line.map(|line| (line.who, line.at, line.call)))
}

fn rows(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let (question, names) = (Question::of(&wanted), names(&membership).await?);
        let (reader, project) = (&membership.project.reader, membership.project.id);
        let (filter, wrong) = match question.filter(&membership, &names, visitor.clock.unix_ms()) {
            Ok(filter) => (Some(filter), Wrong::default()),
            Err(wrong) => (None, wrong),
        };
        let is_asked = filter.is_some();
        let filter = match filter {
            Some(filter) => Some(Filter { session: meant(&membership, filter.session).await, ..filter }),
            None => None,
        };
        let end = reader.audit_end(project).await?;
        let last = wanted.asked("before").and_then(|before| before.parse().ok()).map_or(end, |before: i64| before - 1);
        // The rows of a session are found at once, however old they are.
        let is_found = question.is_all() || !question.session.is_empty();
        let first = if is_found { 0 } else { last.saturating_sub(LOOKED_AT).max(0) };
        let mut found = match filter {
            Some(filter) => {
                let before_seq = Some(last.saturating_add(1));
                reader.audit(project, &Filter { after_seq: first, before_seq, ..filter }).await?
            }
            None => Vec::new(),
        };
        let before = if found.len() > ROWS {
            found.remove(0);
            found.first().map(|row| row.seq)
        } else {
            Some(first + 1).filter(|_| first > 0 && is_asked)
        };
        let looked_at = Some((first + 1, last)).filter(|_| first > 0);
        let address = membership.path(SECTION);
        let earlier = before.map(|before| format!("{address}?before={before}{}", question.written()));
        let rows = lines(&found, &visitor, &membership, &names).await?;
        let place = Place { live: told::CALLS, ..membership.audit_place(&visitor) };
        let mut people: Vec<String> = names.into_values().map(|name| visible_line(&name)).collect();
        people.sort_unstable();
        let other = format!(
            "{address}?{}",
            Question { all: !question.all, ..question.clone() }.written().trim_start_matches('&')
        );
        let asked_tool = question.tool.clone();
        let Question { failed, all, files, .. } = question;
        let [tool, session, hours, by] =
            [question.tool, question.session, question.hours, question.by].map(|typed| visible_line(&typed));
        let made = AuditPage {
            place,
            address,
            rows,
            tool,
            session,
            hours,
            by,
            failed,
            all,
            files,
            other,
            people,
            hours_error: wrong.hours,
            by_error: wrong.by,
            unknown: match asked_tool.is_empty() || membership.project.gate.registry().get(&asked_tool).is_some() {
                true => String::new(),
                false => membership.no_tool(&asked_tool),
            },
            earlier,
            looked_at,
        };
        Ok(page(StatusCode::OK, &made))
    })
}

fn one_call(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let id = wanted.part("call");
        let filter = Filter { call: Some(id.to_owned()), limit: CALL_ROWS_MAX, ..Filter::default() };
        let found = membership.project.reader.audit(membership.project.id, &filter).await?;
        let Some(first) = found.first() else {
            let error = ToolError::new(toolhost_contract::ErrorKind::NotFound, "There is no such call in the audit.");
            return Err(error);
        };
        // A decision about a call has no session; the call itself has.
        let session = found.iter().find_map(|row| session_in(&row.content()));
        let session = session.map(|session| session_of(&membership, &session));
        let mut asks: Vec<String> = found.iter().filter_map(|row| ask_in(&row.content())).map(ask_id).collect();
        asks.sort();
        asks.dedup();
        let asks = asks.into_iter().map(|ask| (membership.address(&ask), ask)).collect();
        let names = names(&membership).await?;
        let begun = found.iter().find(|row| row.event == "started");
        let rows: Vec<Line> = found.iter().map(|row| Line::of(row, begun, &visitor, &membership, &names)).collect();
        let pretty = |row: &Row| serde_json::to_string_pretty(&row.exported()).unwrap_or_default();
        let bodies = found.iter().map(|row| visible_json(&pretty(row))).collect();
        let (place, address) = (membership.audit_place(&visitor), membership.path(SECTION));
        let has_done = |row: &Row| row.event == "finished" && said(row, &row.content()).1 != "bad" && !waits(row);
        let tool = membership.project.gate.registry().get(&first.tool);
        let changes_files = tool.is_some_and(|tool| {
            let (facts, reads) = (&tool.info.facts, tool.info.facts.effect == Effect::Reads);
            !reads && (!facts.paths.is_empty() || facts.command.is_some())
        });
        let undo = (changes_files && found.iter().any(has_done))
            .then(|| membership.path(&format!("files/undo/{}", super::encoded(id))));
        let undo = undo.unwrap_or_default();
        let (id, tool) = (visible_line(id), visible_line(&first.tool));
        let deed = rows.first().map(|row| row.deed.clone()).unwrap_or_default();
        Ok(page(StatusCode::OK, &CallPage { place, address, id, deed, tool, session, asks, rows, undo, bodies }))
    })
}

/// Reads the whole chain, which takes a while: so it is a form's, and no page's that is only looked at.
fn verify(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        if wanted.form.is_none() {
            return Ok(see(&membership.path(SECTION)));
        }
        let verdict = membership.project.reader.verify_audit(membership.project.id).await?;
        let problems = verdict.problems.iter().map(|problem| format!("Row {} {}", problem.seq, problem.what)).collect();
        let (place, address) = (membership.audit_place(&visitor), membership.path(SECTION));
        Ok(page(StatusCode::OK, &VerificationPage { place, address, rows: verdict.rows, problems }))
    })
}

fn export(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let project = &membership.project;
        let state = Some((project.reader.clone(), project.id, 0, ExportEnd::default()));
        let body = Body::from_stream(futures::stream::try_unfold(state, |state| async move {
            let Some((reader, project, after, end)) = state else { return Ok(None) };
            exported(reader, project, after, end).await.map(Some)
        }));
        let mut response = Response::new(body);
        guard(response.headers_mut());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"audit.jsonl\""));
        Ok(response)
    })
}

/// Where an export goes on.
type Rest = Option<(Reader, i64, i64, ExportEnd)>;

/// The next lines of an export.
async fn exported(
    reader: Reader,
    project: i64,
    after_seq: i64,
    mut end: ExportEnd,
) -> Result<(Bytes, Rest), toolhost_store::Error> {
    let filter = Filter { after_seq, limit: EXPORT_ROWS, ..Filter::default() };
    let rows = reader.audit(project, &filter).await?;
    let Some(last) = rows.last() else { return Ok((Bytes::from(format!("{}\n", end.line())), None)) };
    let mut text = String::new();
    for row in &rows {
        let line = row.exported().to_string();
        end.add(&line);
        text.push_str(&line);
        text.push('\n');
    }
    let after = last.seq;
    Ok((Bytes::from(text), Some((reader, project, after, end))))
}
