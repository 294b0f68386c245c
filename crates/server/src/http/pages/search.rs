//! The search over pages, projects, asks, sessions and what was said in them, records, change sets and objects of the package: what
//! the palette shows, too.

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use toolhost_builder::Package;
use toolhost_builder::refs::Object;
use toolhost_contract::{ToolError, visible_line};
use toolhost_host::ask_id;
use toolhost_store::{AskEnd, StepRow};

use super::builder::{change_path, status_words};
use super::calls::{items, text};
use super::ended::in_words;
use super::plan::MENU;
use super::record::address;
use super::route::{Made, Route, Wanted};
use super::sessions::kind_of;
use super::text::{headline, name};
use super::visitor::{Membership, Visitor};
use super::{Place, SECTIONS, encoded, page};

/// The pages of this part.
pub(super) const ROUTES: &[Route] =
    &[Route { path: "/search", name: "search", takes_forms: false, make: what_is_found }];

/// Pages of a project below its sections, beside those of the plan.
const PAGES: &[(&str, &str)] = &[
    ("sessions/new", "Start a session"),
    ("builder/assistant", "Ask the assistant"),
    ("builder/findings", "Findings"),
    ("builder/changes", "Change sets"),
    ("builder/history", "History of the package"),
    ("builder/import", "Import and export"),
    ("builder/profile", "Domain profile"),
    ("files/changes", "Changed since the last commit"),
    ("policy/models", "Models"),
    ("access/clients", "Clients"),
];
/// What is shown at once.
const FOUND_MAX: usize = 30;
/// Asks of one project that are looked at.
const ASKS_MAX: i64 = 200;
/// Characters from which on more than pages, projects and asks is looked at.
const WORD_CHARS_MIN: usize = 3;
/// Sessions, change sets and records of each kind that are looked at, the newest or the first of them.
const SESSIONS_MAX: i64 = 100;
const SETS_MAX: usize = 100;
const RECORDS_MAX: usize = 100;
/// The tools that list records, the field of their answer, and the field of a record's title.
const RECORDS: &[(&str, &str, &str)] = &[
    ("ticket.list", "items", "title"),
    ("task.list", "items", "title"),
    ("requirement.list", "requirements", "title"),
    ("feature.list", "items", "name"),
];
/// Sessions whose conversations are looked through, the last worked in, and the steps of them.
const SAID_SESSIONS_MAX: i64 = 10;
const SAID_STEPS_MAX: i64 = 20;
/// Characters that are shown of what was said, before and behind the first word.
const SAID_AROUND_CHARS: usize = 60;
/// The longest search, characters; what follows is left out.
const QUERY_CHARS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage<'a> {
    place: Place<'a>,
    query: String,
    found: Vec<Row>,
    /// How many were found beside these.
    more: usize,
}

/// Something that was found.
struct Row {
    address: String,
    title: String,
    about: String,
}

fn what_is_found(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let query: String = wanted.asked("q").unwrap_or_default().chars().take(QUERY_CHARS_MAX).collect();
        search(&visitor, &query).await
    })
}

/// Sessions, change sets, objects of the package and records of a project, for a search of some length: without words, everything would be
/// found. Records are read by the tools that agents read with, which say what the person may see.
async fn of_project(visitor: &Visitor<'_>, membership: &Membership, query: &str) -> Result<Vec<Row>, ToolError> {
    let mut rows = Vec::new();
    if query.chars().count() < WORD_CHARS_MIN {
        return Ok(rows);
    }
    let project = &membership.project;
    for session in project.sessions.list(project.id, SESSIONS_MAX).await? {
        rows.push(Row {
            address: membership.path(&format!("sessions/{}", encoded(&session.id))),
            title: headline(membership, &session.title),
            about: format!("session {} · {}", name(&session.id), session.state.as_str()),
        });
    }
    if let Some(work) = &project.work {
        let by = visitor.by();
        for set in work.changes(by, None, false).await.unwrap_or_default().into_iter().take(SETS_MAX) {
            rows.push(Row {
                address: change_path(membership, &set.change_set_id),
                title: format!("Change set {}", visible_line(&set.change_set_id)),
                about: membership.masked_line(&format!("{} · {}", status_words(&set.status), set.objects.join(", "))),
            });
        }
        if let Some(whole) = work.package(by).await.unwrap_or_default() {
            rows.extend(objects(membership, &whole.package));
        }
    }
    for (tool, field, title) in RECORDS {
        // Who may not read them finds none.
        let Ok(data) = visitor.read(membership, tool, json!({ "limit": RECORDS_MAX })).await else { continue };
        for record in items(&data, field) {
            let id = text(record, "id");
            rows.push(Row {
                address: address(membership, id),
                title: membership.masked_line(text(record, title)),
                about: name(&format!("{id} {}", text(record, "state"))),
            });
        }
    }
    Ok(rows)
}

/// What was said in the sessions last worked in: goals, messages and what agents said.
async fn said(membership: &Membership, words: &[String]) -> Result<Vec<Row>, ToolError> {
    let Some(longest) =
        words.iter().max_by_key(|word| word.len()).filter(|word| word.chars().count() >= WORD_CHARS_MIN)
    else {
        return Ok(Vec::new());
    };
    let project = &membership.project;
    let steps = project.sessions.said(project.id, longest, SAID_SESSIONS_MAX, SAID_STEPS_MAX).await?;
    let row = |(session, step): (String, StepRow)| {
        let (who, pointer) = match kind_of(&step.step).0 {
            "open" => ("the goal", "/goal"),
            "say" => ("a message", "/text"),
            _ => ("the agent", "/reply/text"),
        };
        let text = membership.masked_line(&step.body.pointer(pointer)?.as_str()?.replace(['\n', '\t'], " "));
        let lower = text.to_lowercase();
        if !words.iter().all(|word| lower.contains(word.as_str())) {
            return None;
        }
        let at = lower.find(longest.as_str()).map_or(0, |at| lower[..at].chars().count());
        let (from, most) = (at.saturating_sub(SAID_AROUND_CHARS), longest.chars().count() + 2 * SAID_AROUND_CHARS);
        let before = if from > 0 { "…" } else { "" };
        let after = if text.chars().count() > from + most { "…" } else { "" };
        let part: String = text.chars().skip(from).take(most).collect();
        Some(Row {
            address: membership.path(&format!("sessions/{}/steps/{}", encoded(&session), encoded(&step.step))),
            title: format!("{before}{part}{after}"),
            about: format!("{who} in session {} · {}", name(&session), visible_line(&project.name)),
        })
    };
    Ok(steps.into_iter().filter_map(row).collect())
}

/// The objects of a package that have pages.
fn objects(membership: &Membership, package: &Package) -> Vec<Row> {
    let row = |object: &Object, title: &str| Row {
        address: membership.object_path(object),
        title: membership.masked_line(title),
        about: membership.masked_line(&object.to_string()),
    };
    let mut rows = Vec::new();
    for workflow in package.workflows() {
        rows.push(row(&Object::Workflow(workflow.id.clone()), workflow.title()));
        for node in &workflow.nodes {
            let said = |field: &str| node.value.get(field).and_then(Value::as_str).unwrap_or_default();
            let title = if said("title").is_empty() { said("id") } else { said("title") };
            rows.push(row(&Object::Step { workflow: workflow.id.clone(), node: said("id").to_owned() }, title));
        }
    }
    for agent in package.agents() {
        let said = |field: &str| agent.value.pointer(field).and_then(Value::as_str).filter(|said| !said.is_empty());
        let named = [said("/metadata/name"), said("/metadata/title")].into_iter().flatten().collect::<Vec<_>>();
        let title = if named.is_empty() { agent.id.clone() } else { named.join(", ") };
        rows.push(row(&Object::Agent(agent.id.clone()), &title));
    }
    rows.extend(package.asset_paths().map(|path| row(&Object::Asset(path.to_owned()), path)));
    rows
}

async fn search(visitor: &Visitor<'_>, query: &str) -> Result<Response<Body>, ToolError> {
    let row = |address: &str, title: &str, about: &str| Row {
        address: address.to_owned(),
        title: title.to_owned(),
        about: about.to_owned(),
    };
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut conversations = Vec::new();
    let mut rows = vec![row("/", "Inbox", "what agents ask"), row("/projects", "Projects", "all that you are in")];
    for membership in visitor.memberships().await?.0 {
        let name = visible_line(&membership.project.name);
        let sections = SECTIONS.iter();
        rows.extend(sections.map(|section| row(&membership.path(section.path), section.title, &name)));
        // Without words, they would stand before what waits.
        let below = PAGES.iter().chain(MENU).filter(|_| !words.is_empty());
        rows.extend(below.map(|(path, title)| row(&membership.path(path), title, &name)));
        let asks = membership.project.gate.queue().asks();
        for ask in asks.open_after(membership.project.id, 0, ASKS_MAX).await?.asks {
            let id = ask_id(ask.number);
            rows.push(Row {
                address: membership.address(&id),
                title: membership.masked_line(&ask.summary.replace(['\n', '\t'], " ")),
                about: format!("{id} · {} · {} · {name}", visible_line(&ask.persona), visible_line(&ask.tool)),
            });
        }
        // Those that have ended come after those that wait.
        let ended = asks.newest(membership.project.id, ASKS_MAX).await?.asks.into_iter();
        rows.extend(ended.filter(|ask| ask.end() != AskEnd::Open).map(|ask| {
            let id = ask_id(ask.number);
            Row {
                address: membership.address(&id),
                title: membership.masked_line(&ask.summary.replace(['\n', '\t'], " ")),
                about: format!("{id} · {} · {name}", in_words(&ask)),
            }
        }));
        conversations.extend(said(&membership, &words).await?);
        rows.extend(of_project(visitor, &membership, query.trim()).await?.into_iter().map(|mut row| {
            row.about = format!("{} · {name}", row.about);
            row
        }));
    }
    let query = query.trim();
    rows.retain(|row| {
        let text = format!("{} {}", row.title, row.about).to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    });
    rows.extend(conversations);
    let more = rows.len().saturating_sub(FOUND_MAX);
    rows.truncate(FOUND_MAX);
    Ok(page(StatusCode::OK, &SearchPage { place: visitor.place(), query: visible_line(query), found: rows, more }))
}
