//! The audit of a project: who did and decided what, and whether the record of it is whole.

use std::collections::{HashMap, HashSet};

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use serde_json::Value;
use toolhost_contract::{ToolError, visible_json, visible_line};
use toolhost_store::{ExportEnd, Filter, Reader, Row};

use super::super::told;
use super::route::{Made, Route, Wanted};
use super::text::When;
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
const ARGUMENTS_CHARS_MAX: usize = 160;
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
    failed: bool,
    /// What is wrong with it.
    error: Option<String>,
    /// The address of the rows before these.
    earlier: Option<String>,
}

#[derive(Template)]
#[template(path = "audit_call.html")]
struct CallPage<'a> {
    place: Place<'a>,
    address: String,
    id: String,
    tool: String,
    session: Option<(String, String)>,
    rows: Vec<Line>,
    /// Where its changes of files can be put back.
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

/// A row, for people.
struct Line {
    seq: i64,
    at: When,
    who: String,
    tool: String,
    /// How it went, in words, and the class of that.
    said: String,
    class: &'static str,
    arguments: String,
    call: String,
}

impl Line {
    fn of(row: &Row, visitor: &Visitor<'_>, membership: &Membership) -> Self {
        let body = row.content();
        let text = |pointer: &str| visible_line(body.pointer(pointer).and_then(Value::as_str).unwrap_or_default());
        let (said, class) = said(row, &body);
        let took = body.get("durationMs").and_then(Value::as_u64).map(|ms| format!(", {ms} ms"));
        let who = match (text("/caller/persona"), text("/caller/door")) {
            (who, door) if who.is_empty() => door,
            (who, door) => format!("{who} ({door})"),
        };
        Self {
            seq: row.seq,
            at: When::of(visitor, row.at_ms),
            who,
            tool: visible_line(&row.tool),
            said: said + &took.unwrap_or_default(),
            class,
            arguments: shortened(body.get("arguments")),
            call: membership.path(&format!("audit/calls/{}", super::encoded(&row.call_id))),
        }
    }
}

/// The newest first. Of a call that has ended, its end alone, with what it was asked.
fn lines(rows: &[Row], visitor: &Visitor<'_>, membership: &Membership) -> Vec<Line> {
    let of = |event: &'static str| rows.iter().filter(move |row| row.event == event);
    let ended: HashSet<&str> = of("finished").map(|row| &*row.call_id).collect();
    let begun: HashMap<&str, &Row> = of("started").map(|row| (&*row.call_id, row)).collect();
    let shown = rows.iter().rev().filter(|row| row.event != "started" || !ended.contains(&*row.call_id));
    let line = |row: &Row| {
        let mut line = Line::of(row, visitor, membership);
        if let Some(begun) = begun.get(&*row.call_id).filter(|_| line.arguments.is_empty() && row.event == "finished") {
            line.arguments = shortened(begun.content().get("arguments"));
        }
        line
    };
    shown.map(line).collect()
}

/// How a call went, or what a person said.
fn said(row: &Row, body: &Value) -> (String, &'static str) {
    let text = |pointer: &str| visible_line(body.pointer(pointer).and_then(Value::as_str).unwrap_or_default());
    let flag = |pointer: &str| body.pointer(pointer).and_then(Value::as_bool) == Some(true);
    match row.event.as_str() {
        "finished" if flag("/outcome/pending") => ("waits for a person".to_owned(), "warn"),
        "finished" if flag("/outcome/ok") => match body.pointer("/outcome/exitCode").and_then(Value::as_i64) {
            Some(code) if code != 0 => (format!("done, exit code {code}"), "warn"),
            _ => ("done".to_owned(), "good"),
        },
        "finished" => (format!("failed: {}", text("/outcome/message")), "bad"),
        "unknown" => ("unknown: the host ended while it ran".to_owned(), "bad"),
        "decision" => {
            let ask = text("/decision/ask");
            let about = if ask.is_empty() { String::new() } else { format!(" ({ask})") };
            (format!("said: {}{about}", text("/decision/say").replace('_', " ")), "warn")
        }
        _ => ("started".to_owned(), ""),
    }
}

fn shortened(arguments: Option<&Value>) -> String {
    let Some(arguments) = arguments.filter(|arguments| !arguments.is_null()) else { return String::new() };
    let text = visible_line(&arguments.to_string());
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

fn rows(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let asked = |name: &str| wanted.asked(name).map(str::trim).unwrap_or_default().to_owned();
        let (tool, session, hours) = (asked("tool"), asked("session"), asked("hours"));
        let failed = wanted.asked("failed") == Some("on");
        let (since_ms, error) = match hours.parse::<i64>() {
            Ok(hours) if hours > 0 => {
                (Some(visitor.clock.unix_ms().saturating_sub(hours.saturating_mul(HOUR_MS))), None)
            }
            _ if hours.is_empty() => (None, None),
            _ => (None, Some("The hours are a number above 0.".to_owned())),
        };
        let known = membership.project.gate.registry().get(&tool).map(|tool| tool.info.name.to_string());
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let filter = Filter {
            before_seq: wanted.asked("before").and_then(|before| before.parse().ok()),
            // Names by which models know a tool are found, too.
            tool: known.or_else(|| given(&tool)),
            session: given(&session),
            failed_only: failed,
            since_ms,
            limit: i64::try_from(ROWS + 1).unwrap_or(i64::MAX),
            last: true,
            ..Filter::default()
        };
        let mut found = membership.project.reader.audit(membership.project.id, &filter).await?;
        let is_more = found.len() > ROWS;
        if is_more {
            found.remove(0);
        }
        let address = membership.path(SECTION);
        let earlier = found.first().filter(|_| is_more).map(|first| {
            let (tool, session, hours) = (super::encoded(&tool), super::encoded(&session), super::encoded(&hours));
            let failed = if failed { "&failed=on" } else { "" };
            format!("{address}?before={}&tool={tool}&session={session}&hours={hours}{failed}", first.seq)
        });
        let rows = lines(&found, &visitor, &membership);
        let place = Place { live: told::CALLS, ..membership.audit_place(&visitor) };
        let [tool, session, hours] = [tool, session, hours].map(|typed| visible_line(&typed));
        Ok(page(StatusCode::OK, &AuditPage { place, address, rows, tool, session, hours, failed, error, earlier }))
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
        let session = first.content().get("sessionId").and_then(Value::as_str).map(|session| {
            (visible_line(session), format!("{}?session={}", membership.path(SECTION), super::encoded(session)))
        });
        let rows = found.iter().map(|row| Line::of(row, &visitor, &membership)).collect();
        let pretty = |row: &Row| serde_json::to_string_pretty(&row.exported()).unwrap_or_default();
        let bodies = found.iter().map(|row| visible_json(&pretty(row))).collect();
        let (place, address) = (membership.audit_place(&visitor), membership.path(SECTION));
        let undo = membership.path(&format!("files/undo/{}", super::encoded(id)));
        let (id, tool) = (visible_line(id), visible_line(&first.tool));
        Ok(page(StatusCode::OK, &CallPage { place, address, id, tool, session, rows, undo, bodies }))
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
