//! The assistant beside the builder: a session on one object of the package, and the talk with it.

use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::Value;
use toolhost_builder::refs::Object;
use toolhost_contract::{ErrorKind, Redactor, ToolError, is_blank, visible_line};
use toolhost_host::{Registry, ask_id};
use toolhost_store::{AskSummary, Role, SessionRow, StepRow};

use super::super::forms::{Field, Shape, choice, complain, filled};
use super::super::marks::without_marks;
use super::super::route::{Made, Route, Wanted};
use super::super::sessions::{Can, State, Unheard, answer_text, ended_call, model_field, models_of, state_of, unheard};
use super::super::text::{Shown, When, count, dollars, duration, headline};
use super::super::visitor::{Membership, Visitor};
use super::super::{Place, page, see};
use super::changes::{change_path, status_words};
use super::{encoded, is_there, place, said, work};
use crate::http::{NewRun, Target, envelope};

/// The pages of this file.
pub(in super::super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/builder/assistant", name: "builder-ask", takes_forms: true, make: ask },
    Route {
        path: "/projects/{project}/builder/sessions/{session}",
        name: "builder-chat",
        takes_forms: true,
        make: chat,
    },
];

/// The profile of the assistant's sessions.
const PROFILE: &str = "builder";
/// The last sessions that are looked at for those on an object, and those that are shown.
const SESSIONS_LOOKED_AT: i64 = 50;
const SESSIONS_SHOWN: usize = 10;
/// Asks that a page names of those a session waits for.
const ASKS_MAX: i64 = 20;
/// Steps of a session on one page.
const STEPS_MAX: i64 = 200;
/// Characters of one text of a talk, and of a part of the prompt.
const SAID_CHARS_MAX: usize = 20_000;
/// The level of the heading that a talk stands below.
const SAID_LEVEL: usize = 1;

#[derive(Template)]
#[template(path = "builder/assistant.html")]
struct AskPage<'a> {
    place: Place<'a>,
    action: String,
    /// The object; none where something new is made.
    object: Option<(String, String)>,
    name: String,
    mode: String,
    mode_error: Option<&'static str>,
    /// What is to be done, and with which model.
    about: Vec<Field>,
    /// Where something new is created.
    made: Vec<Field>,
    /// What is wrong, and belongs to no field.
    error: Option<String>,
    sessions: Vec<SessionLine>,
}

struct SessionLine {
    href: String,
    title: String,
    state: State,
    when: When,
    changes: Vec<SetLine>,
}

struct SetLine {
    href: String,
    name: String,
    status: &'static str,
}

fn need_editor(membership: &Membership) -> Result<(), ToolError> {
    match membership.role {
        Role::Viewer => Err(ToolError::new(ErrorKind::Permission, "You are a viewer of this project: you may look.")),
        Role::Editor | Role::Owner => Ok(()),
    }
}

fn ask(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        need_editor(&membership)?;
        let Some(form) = &wanted.form else {
            let name = wanted.asked("name").unwrap_or_default();
            let mode = if name.is_empty() { "create" } else { "optimize" };
            let fields = [("name", name), ("mode", mode)];
            let fields: BTreeMap<String, String> =
                fields.map(|(field, value)| (field.to_owned(), value.to_owned())).into_iter().collect();
            return ask_page(&visitor, &membership, &fields, Wrong::default()).await;
        };
        let run = match run(form) {
            Ok(run) => run,
            Err(wrong) => return ask_page(&visitor, &membership, form, wrong).await,
        };
        match work(&membership)?.start(visitor.by(), run).await {
            Ok(session) => Ok(see(&membership.path(&format!("builder/sessions/{}", encoded(&session.id))))),
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => ask_page(&visitor, &membership, form, Wrong::of(error, form)).await,
        }
    })
}

/// What is wrong with a form: by field, else as a whole.
#[derive(Default)]
struct Wrong {
    fields: Vec<(&'static str, String)>,
    error: Option<ToolError>,
}

impl Wrong {
    /// What the port has refused. It names that by the words of its fields.
    fn of(error: ToolError, form: &BTreeMap<String, String>) -> Self {
        let is_typed = |name: &&str| form.get(*name).is_some_and(|typed| !typed.trim().is_empty());
        let is_meant = |name: &&str| error.message.contains(*name) && (*name == "model" || is_typed(name));
        let about = ["model", "workflow"].into_iter().find(is_meant);
        match about {
            Some(name) => Self { fields: vec![(name, said(&error))], error: None },
            None => Self { fields: Vec::new(), error: Some(error) },
        }
    }
}

/// The session that a form wants, or all that is wrong with it.
fn run(form: &BTreeMap<String, String>) -> Result<NewRun, Wrong> {
    let field = |name: &str| form.get(name).map_or("", |text| text.trim());
    let mut wrong = Vec::new();
    let goal = field("goal").replace("\r\n", "\n");
    if goal.is_empty() {
        wrong.push(("goal", "Say what the assistant is to do.".to_owned()));
    }
    let target = match field("mode") {
        "create" => {
            let (kind, id, workflow) = (field("kind"), field("id"), field("workflow"));
            if id.is_empty() {
                wrong.push(("id", "A new object needs an id, or a path that begins with assets/.".to_owned()));
            }
            if kind == "step" && workflow.is_empty() {
                wrong.push(("workflow", "A step belongs to a workflow: say which.".to_owned()));
            }
            let workflow = Some(workflow.to_owned()).filter(|id| !id.is_empty());
            Some(Target { kind: kind.to_owned(), id: id.to_owned(), workflow, is_new: true })
        }
        "optimize" | "modify" => target_of(field("name")),
        _ => None,
    };
    match target {
        Some(target) if wrong.is_empty() => Ok(NewRun {
            goal,
            profile: PROFILE.to_owned(),
            persona: None,
            model: Some(field("model").to_owned()).filter(|model| !model.is_empty()),
            ticket: None,
            files: Vec::new(),
            target: Some(target),
            origin: None,
        }),
        Some(_) => Err(Wrong { fields: wrong, error: None }),
        None => {
            wrong.push(("mode", "Choose what is to be done.".to_owned()));
            Err(Wrong { fields: wrong, error: None })
        }
    }
}

fn target_of(name: &str) -> Option<Target> {
    let (kind, id, workflow) = match Object::parse(name)? {
        Object::Workflow(id) => ("workflow", id, None),
        Object::Step { workflow, node } => ("step", node, Some(workflow)),
        Object::Agent(id) => ("agent", id, None),
        Object::Asset(path) => ("asset", path, None),
        Object::Package | Object::Variable { .. } => return None,
    };
    Some(Target { kind: kind.to_owned(), id, workflow, is_new: false })
}

async fn ask_page(
    visitor: &Visitor<'_>,
    membership: &Membership,
    form: &BTreeMap<String, String>,
    wrong: Wrong,
) -> Result<Response<Body>, ToolError> {
    let field = |name: &str| form.get(name).cloned().unwrap_or_default();
    let object = Object::parse(&field("name")).filter(|object| target_of(&object.to_string()).is_some());
    let inside = object.as_ref().and_then(Object::workflow).unwrap_or_default();
    let sessions = sessions_on(visitor, membership, object.as_ref()).await?;
    let models = models_of(visitor, membership).await;
    let mut about =
        filled(vec![Field::new("goal", "What the assistant is to do", Shape::Text(5)), model_field(&models)], form);
    let mut made = filled(
        vec![
            Field::new("kind", "Its kind", choice(None, &["workflow", "step", "agent", "asset"])),
            Field::new("id", "Its id, or the path of an asset", Shape::Line)
                .hint("Such as check-claims, or assets/style.md."),
            Field::new("workflow", "The workflow that it belongs to, for a step", Shape::Line).value(inside),
        ],
        form,
    );
    let mut mode_error = None;
    for (name, why) in &wrong.fields {
        if !complain(&mut about, name, why) && !complain(&mut made, name, why) {
            mode_error = Some("Choose what is to be done.");
        }
    }
    let status = match &wrong.error {
        Some(error) => envelope::status(error),
        None if wrong.fields.is_empty() => StatusCode::OK,
        None => StatusCode::BAD_REQUEST,
    };
    Ok(page(
        status,
        &AskPage {
            place: place(visitor, membership),
            action: membership.path("builder/assistant"),
            object: object.as_ref().map(|object| (membership.object_path(object), visible_line(&object.to_string()))),
            name: field("name"),
            mode: field("mode"),
            mode_error,
            about,
            made,
            error: wrong.error.as_ref().map(said),
            sessions,
        },
    ))
}

/// The last sessions on an object, or on any.
async fn sessions_on(
    visitor: &Visitor<'_>,
    membership: &Membership,
    object: Option<&Object>,
) -> Result<Vec<SessionLine>, ToolError> {
    let project = &membership.project;
    let wanted = object.map(Object::to_string);
    let mut lines = Vec::new();
    for row in project.sessions.list(project.id, SESSIONS_LOOKED_AT).await? {
        if lines.len() == SESSIONS_SHOWN {
            break;
        }
        let opening = project.steps(&row.id, -1, 1).await?.into_iter().next();
        let Some(entry) = opening.as_ref().and_then(|step| step.body.get("entry")) else { continue };
        if wanted.is_some() && entry.get("target").and_then(Value::as_str) != wanted.as_deref() {
            continue;
        }
        lines.push(SessionLine {
            href: membership.path(&format!("builder/sessions/{}", encoded(&row.id))),
            title: headline(membership, &row.title),
            state: state_of(membership, &row, &asks_of(membership, &row.id).await?).await?,
            when: When::of(visitor, row.updated_at_ms),
            changes: sets_of(visitor, membership, &row.id).await?,
        });
    }
    Ok(lines)
}

async fn sets_of(visitor: &Visitor<'_>, membership: &Membership, session: &str) -> Result<Vec<SetLine>, ToolError> {
    let sets = work(membership)?.changes(visitor.by(), Some(session), false).await?;
    let line = |set: &toolhost_builder::packages::ChangeSetLine| SetLine {
        href: change_path(membership, &set.change_set_id),
        name: visible_line(&set.change_set_id),
        status: status_words(&set.status),
    };
    Ok(sets.iter().map(line).collect())
}

/// What a session has asked people and nobody has answered.
async fn asks_of(membership: &Membership, session: &str) -> Result<Vec<AskSummary>, ToolError> {
    let project = &membership.project;
    Ok(project.gate.queue().asks().open_of_session(project.id, session, ASKS_MAX).await?)
}

#[derive(Template)]
#[template(path = "builder/chat.html")]
struct ChatPage<'a> {
    place: Place<'a>,
    title: String,
    address: String,
    /// The page of the session with all of its steps.
    session: String,
    state: State,
    /// What it has asked and nobody has answered: the address and the id of each ask.
    asks: Vec<(String, String)>,
    model: String,
    /// What it is about, and where that is; a session may be about what nobody has applied yet.
    target: Option<(Option<String>, String)>,
    mode: &'static str,
    messages: Vec<Message>,
    unheard: Vec<Unheard>,
    next: Option<String>,
    changes: Vec<SetLine>,
    tally: Vec<(&'static str, String)>,
    prompt: Vec<PromptPart>,
    trimmed: Vec<String>,
    text: String,
    error: Option<String>,
    can: Can,
}

/// One thing that was said or done.
struct Message {
    class: &'static str,
    who: &'static str,
    when: When,
    text: Shown,
    /// What the model was told before it.
    also: String,
    /// The name of its step.
    step: String,
}

/// A part of what the model was told at the beginning.
struct PromptPart {
    name: String,
    text: String,
}

fn chat(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let id = wanted.part("session").to_owned();
        let after = wanted.asked("after").and_then(|after| after.parse().ok()).unwrap_or(-1);
        let Some(form) = &wanted.form else {
            return chat_page(&visitor, &membership, (&id, after), ("", None)).await;
        };
        need_editor(&membership)?;
        // Browsers send each line's end as two characters.
        let text = form.get("text").map(|text| text.replace("\r\n", "\n")).unwrap_or_default();
        let told = match form.get("do").map(String::as_str) {
            Some("resume") => work(&membership)?.go_on(visitor.by(), &id, None).await.map(drop),
            _ => tell(&visitor, &membership, &id, &text).await,
        };
        match told {
            // There it goes on: with the next message.
            Ok(()) => Ok(see(&membership.path(&format!("builder/sessions/{}#text", encoded(&id))))),
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => chat_page(&visitor, &membership, (&id, after), (&text, Some(&error))).await,
        }
    })
}

async fn tell(visitor: &Visitor<'_>, membership: &Membership, id: &str, text: &str) -> Result<(), ToolError> {
    if is_blank(text) {
        return Err(ToolError::new(ErrorKind::Validation, "Say something to the assistant"));
    }
    work(membership)?.go_on(visitor.by(), id, Some(text.to_owned())).await.map(drop)
}

/// What a talk hears of: steps and states of sessions, what they ask, and change sets.
const LIVE: &str = "sessions asks builder";

async fn chat_page(
    visitor: &Visitor<'_>,
    membership: &Membership,
    (id, after): (&str, i64),
    (text, error): (&str, Option<&ToolError>),
) -> Result<Response<Body>, ToolError> {
    let project = &membership.project;
    let row = project.sessions.get(project.id, id).await?;
    let opening = project.steps(id, -1, 1).await?.into_iter().next().map(|step| step.body);
    let steps = project.steps(id, after, STEPS_MAX).await?;
    let is_full = i64::try_from(steps.len()).is_ok_and(|count| count == STEPS_MAX);
    let address = membership.path(&format!("builder/sessions/{}", encoded(id)));
    let next = steps.last().filter(|_| is_full).map(|step| format!("{address}?after={}", step.seq));
    let (asks, registry) = (asks_of(membership, id).await?, project.gate.registry());
    let entry = opening.as_ref().and_then(|body| body.get("entry"));
    let word = |name: &str| entry.and_then(|entry| entry.get(name)).and_then(Value::as_str).unwrap_or_default();
    let target = Object::parse(word("target"));
    let none = Value::Null;
    let body = opening.as_ref().unwrap_or(&none);
    let status = error.map_or(StatusCode::OK, envelope::status);
    let package = work(membership)?.package(visitor.by()).await?;
    let is_made =
        target.as_ref().zip(package.as_deref()).is_some_and(|(object, whole)| is_there(&whole.package, object));
    Ok(page(
        status,
        &ChatPage {
            // What somebody typed, and was refused, stays where it is.
            place: Place { live: if error.is_none() { LIVE } else { "" }, ..place(visitor, membership) },
            title: headline(membership, &row.title),
            address,
            session: membership.path(&format!("sessions/{}", encoded(id))),
            state: state_of(membership, &row, &asks).await?,
            asks: asks.into_iter().map(|ask| ask_id(ask.number)).map(|id| (membership.address(&id), id)).collect(),
            model: visible_line(&row.model),
            target: target.map(|object| {
                let is_there = package.as_deref().is_some_and(|whole| is_there(&whole.package, &object));
                (is_there.then(|| membership.object_path(&object)), visible_line(&object.to_string()))
            }),
            mode: match word("mode") {
                "" => "",
                "create" if is_made => "created",
                "create" => "to be created",
                _ => "to be changed",
            },
            messages: steps.iter().filter_map(|step| message(visitor, registry, step)).collect(),
            unheard: if next.is_none() { unheard(visitor, membership, id).await? } else { Vec::new() },
            next,
            changes: sets_of(visitor, membership, id).await?,
            tally: used(&row, replies_left(membership, &row, body).await?),
            prompt: prompt(body),
            trimmed: trimmed(body),
            text: text.to_owned(),
            error: error.map(said),
            can: Can::of(membership, &row),
        },
    ))
}

/// Replies of the model that one run of a session may have whose answer is a change set. Frozen by the seed.
const REPLIES_OF_RUN: u64 = 8;
/// Steps in which the beginning of the run is looked for.
const STEPS_OF_RUN_MAX: i64 = 200;

/// How many replies of the run are left; `None` for a session that answers in words.
async fn replies_left(membership: &Membership, row: &SessionRow, opening: &Value) -> Result<Option<u64>, ToolError> {
    if opening.get("entry").is_none_or(Value::is_null) {
        return Ok(None);
    }
    let (project, after) = (&membership.project, row.steps - STEPS_OF_RUN_MAX - 1);
    let steps = project.steps(&row.id, after.max(-1), STEPS_OF_RUN_MAX).await?;
    let kind = |step: &StepRow| step.step.split('_').next().unwrap_or_default().to_owned();
    // A run begins with what a person says.
    let turns = steps.iter().rev().take_while(|step| !matches!(&*kind(step), "say" | "open"));
    let used = turns.filter(|step| kind(step) == "turn").count();
    Ok(Some(REPLIES_OF_RUN.saturating_sub(u64::try_from(used).unwrap_or(u64::MAX))))
}

/// What a session has used, in words.
fn used(row: &SessionRow, replies_left: Option<u64>) -> Vec<(&'static str, String)> {
    let number = |name: &str| row.tally.get(name).and_then(Value::as_u64).unwrap_or_default();
    let cost = row.tally.get("cost").and_then(Value::as_f64);
    let mut used = vec![
        ("Replies of the model", count(number("turns"))),
        ("Tokens read", count(number("inputTokens"))),
        ("Tokens written", count(number("outputTokens"))),
        ("Cost", cost.map_or_else(|| "not known: the model has no price here".to_owned(), dollars)),
        ("Time to its last reply", duration(number("elapsedMs"))),
    ];
    if let Some(left) = replies_left {
        used.insert(1, ("Replies left before it stops", format!("{left} of {REPLIES_OF_RUN}")));
    }
    used
}

/// A step as a part of a talk; none of one that is nobody's word.
fn message(visitor: &Visitor<'_>, registry: &Registry, step: &StepRow) -> Option<Message> {
    let field = |at: &str| step.body.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let is = |kind: &str| step.step.split('_').next() == Some(kind);
    let (class, who, text) = if is("open") {
        ("person", "Person", field("/goal").to_owned())
    } else if is("say") {
        ("person", "Person", field("/text").to_owned())
    } else if is("turn") {
        let calls = step.body.pointer("/reply/calls").and_then(Value::as_array).map_or(0, Vec::len);
        match (summary(field("/reply/text")), calls) {
            (text, 0) => ("assistant", "Assistant", text),
            (text, _) if text.is_empty() => return None,
            (text, _) => ("assistant", "Assistant, at work", text),
        }
    } else if is("call") {
        ("call", "Call", ended_call(registry, &step.body))
    } else if is("end") {
        ("call", "Stopped", field("/message").to_owned())
    } else if is("check") {
        let findings = Some(field("/bad/findings")).filter(|findings| !findings.is_empty())?;
        ("call", "The answer was sent back", without_wrapping(findings))
    } else {
        return None;
    };
    let text = cut(&text);
    let text = match class {
        "call" => Shown::of(&text, usize::MAX, usize::MAX),
        _ => Shown::markdown(&text, SAID_LEVEL, usize::MAX, usize::MAX),
    };
    let also = if is("say") { cut(field("/since")) } else { String::new() };
    Some(Message { class, who, when: When::of(visitor, step.at_ms), text, also, step: encoded(&step.step) })
}

/// What was sent back, without the lines around each answer of a tool, which are for the model.
fn without_wrapping(findings: &str) -> String {
    let is_wrapping = |line: &&str| line.starts_with("<untrusted ") || line.starts_with("</untrusted ");
    let lines = findings.lines().filter(|line| !is_wrapping(line));
    lines.map(answer_text).collect::<Vec<_>>().join("\n")
}

/// The summary of a reply. The rest of one that is JSON is a change set, which has a page of its own.
fn summary(text: &str) -> String {
    let Some((begin, end)) = text.find('{').zip(text.rfind('}')).filter(|(begin, end)| begin < end) else {
        return text.to_owned();
    };
    let Ok(Value::Object(fields)) = serde_json::from_str(&text[begin..=end]) else { return text.to_owned() };
    match fields.get("assistantSummary").and_then(Value::as_str) {
        Some(summary) => summary.to_owned(),
        None => "(The reply is JSON without a summary.)".to_owned(),
    }
}

/// A text as a page shows it, without what looks like a secret.
fn bounded(text: &str) -> String {
    without_marks(&cut(text))
}

/// The beginning of a text, without what looks like a secret.
fn cut(text: &str) -> String {
    let mut text = text.to_owned();
    Redactor::default().redact(&mut text);
    let mut chars = text.chars();
    let cut: String = chars.by_ref().take(SAID_CHARS_MAX).collect();
    let more = if chars.next().is_some() { "\n[… the rest is left out here]" } else { "" };
    cut + more
}

/// What the model was told at the beginning: its instructions, and the first messages.
fn prompt(opening: &Value) -> Vec<PromptPart> {
    let list = |name: &str| opening.get(name).and_then(Value::as_array).into_iter().flatten();
    let instructions = list("system").enumerate().map(|(number, block)| PromptPart {
        name: format!("Instructions, part {}", number + 1),
        text: bounded(block.get("text").and_then(Value::as_str).unwrap_or_default()),
    });
    let messages = list("messages").map(|message| {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        let text = message.get("text").or_else(|| message.get("content"));
        let text = match text {
            Some(Value::String(text)) => text.clone(),
            _ => serde_json::to_string_pretty(message).unwrap_or_default(),
        };
        PromptPart { name: visible_line(&format!("Message of the {role}")), text: bounded(&text) }
    });
    instructions.chain(messages).collect()
}

/// What was left out of the context.
fn trimmed(opening: &Value) -> Vec<String> {
    let actions = opening.pointer("/trim/actions").and_then(Value::as_array).into_iter().flatten();
    let line = |action: &Value| {
        let word = |name: &str| action.get(name).and_then(Value::as_str).unwrap_or_default();
        let count = |name: &str| action.get(name).and_then(Value::as_u64).unwrap_or_default();
        let (before, after) = (count("beforeChars"), count("afterChars"));
        visible_line(&format!("{}: {}, from {before} to {after} characters", word("section"), word("action")))
    };
    actions.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn a_reply_is_its_summary() {
        for (text, expected) in [
            ("It is done.", "It is done."),
            (r#"{"responseType":"chat","assistantSummary":"Hello {you}"}"#, "Hello {you}"),
            ("```json\n{\"assistantSummary\":\"Made it.\",\"changeSet\":{}}\n```", "Made it."),
            ("{\"changeSet\":{}}", "(The reply is JSON without a summary.)"),
            ("a } b {", "a } b {"),
            ("use {braces} here", "use {braces} here"),
        ] {
            assert_eq!(summary(text), expected);
        }
    }
}
