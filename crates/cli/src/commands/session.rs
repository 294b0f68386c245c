//! `toolhost session`: what agents have done, step by step, and going on with it.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toolhost::{Connection, Need};
use toolhost_agent::session::{AnswerForm, CallStep, EndStep, Opening, TurnStep, Watch, replay};
use toolhost_contract::Signal;
use toolhost_host::Registry;
use toolhost_store::{Role, SessionRow, SessionState, Sessions, StepRow};

use super::run::LimitFlags;
use super::run::again;
use super::run::live::{End, Lines, Live, told_call};
use crate::print::{self, BAD, BOLD, DIM, GOOD, WARN, cell, paint};
use crate::selection::{Column, Selection};
use crate::settings::Settings;
use crate::wire;

/// Steps read at once.
const PAGE: i64 = 200;
/// Most sessions of a list.
const LIST_MAX: i64 = 1000;
/// Columns that are not called as their fields.
const COLUMNS: &[Column] = &[("session", &["id"]), ("changed", &["updatedAtMs"]), ("goal", &["title"])];
/// How often a session of another process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The sessions of agents: list, look at, go on with, stop and replay them
///
/// A session's ID may be its beginning, such as as_0f3b or 0f3b, where no other begins so; `last` is the one that you worked
/// in last.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// The newest sessions and where they stand
    List {
        /// How many
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=LIST_MAX))]
        limit: i64,
        #[command(flatten)]
        selection: Selection,
    },
    /// One session: what was asked, how far it came, its calls
    Show { id: String },
    /// Go on with a session that was interrupted, paused or stopped at a limit, or answer its answer
    ///
    /// What it has done is not done again: a call that ran is not repeated, and one whose end nobody saw is told to the
    /// model as unknown.
    Resume {
        id: String,
        /// Something to tell the model before it goes on; `-` reads it from standard input
        message: Option<String>,
        /// Another model than before, for this time
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        #[command(flatten)]
        limits: LimitFlags,
    },
    /// Stop a session after the call under way, or at once where that waits for a person; wherever it runs
    Pause { id: String },
    /// End a session for good, wherever it runs
    Cancel { id: String },
    /// A new session that has come as far as this one had after a turn
    Fork {
        id: String,
        /// The last turn to keep, from 1 [default: all]
        #[arg(long, value_name = "TURN")]
        at: Option<u32>,
    },
    /// Show a session as it went, from its journal
    Replay { id: String },
    /// Follow a session that another process runs
    Watch { id: String },
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Resume { id, message, model, limits } => {
            let nothing = "a message that says nothing: leave it out to go on as it was";
            let message = message.as_deref().map(|message| super::run::said(message, nothing)).transpose()?;
            again::resume(settings, &id, message, model, &limits).await
        }
        Action::List { limit, selection } => list(settings, limit, &selection).await,
        Action::Show { id } => show(settings, &id).await,
        Action::Pause { id } => want(settings, &id, Signal::Pause).await,
        Action::Cancel { id } => want(settings, &id, Signal::Cancel).await,
        Action::Fork { id, at } => fork(settings, &id, at).await,
        Action::Replay { id } => follow(settings, &id, false).await,
        Action::Watch { id } => follow(settings, &id, true).await,
    }
}

/// The sessions of this project, for somebody who may do what a role may.
struct Place {
    connection: Connection,
    project: i64,
    sessions: Sessions,
}

impl Place {
    /// The session that somebody means.
    async fn meant(&self, typed: &str) -> anyhow::Result<SessionRow> {
        Ok(self.sessions.meant(self.project, self.connection.user().id, typed).await?)
    }
}

async fn place(settings: &Settings, role: Role) -> anyhow::Result<Place> {
    let connection = wire::connect(&settings.resolve()?, Need::Reading).await?;
    connection.need_role(role).await?;
    let (project, sessions) = (connection.project().id, connection.store().sessions());
    Ok(Place { connection, project, sessions })
}

async fn list(settings: &Settings, limit: i64, selection: &Selection) -> anyhow::Result<ExitCode> {
    let place = place(settings, Role::Viewer).await?;
    let read = if selection.is_any() { LIST_MAX } else { limit };
    let mut found = selection.of_items(place.sessions.list(place.project, read).await?, COLUMNS)?;
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    if settings.json {
        print::json(&found)?;
    } else if found.is_empty() && selection.is_any() {
        print::aside("no session fits");
    } else if found.is_empty() {
        print::aside("no agent has worked here yet: toolhost run \"GOAL\" begins a session");
    } else {
        let rows: Vec<Vec<String>> = found.iter().map(row).collect();
        print::table_without(&["turns", "tokens", "model"], &HEAD, &rows);
    }
    place.connection.close().await?;
    Ok(ExitCode::SUCCESS)
}

/// The names of what `row` has.
const HEAD: [&str; 8] = ["session", "state", "turns", "tokens", "cost", "changed", "model", "goal"];

fn row(found: &SessionRow) -> Vec<String> {
    let number = |field: &str| found.tally.get(field).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let cost = found.tally.get("cost").and_then(serde_json::Value::as_f64);
    vec![
        found.id.clone(),
        standing(found),
        number("turns").to_string(),
        number("inputTokens").saturating_add(number("outputTokens")).to_string(),
        cost.map_or_else(|| "-".to_owned(), |cost| format!("${cost:.4}")),
        print::local_time(found.updated_at_ms),
        cell(&found.model),
        // A goal of several lines is one line here.
        cell(&found.title.lines().collect::<Vec<_>>().join(" ")),
    ]
}

/// A session whose host has died is still called active in its row.
fn standing(found: &SessionRow) -> String {
    match (found.state, found.running) {
        (SessionState::Active, true) => paint(GOOD, "running"),
        (SessionState::Active, false) => paint(WARN, "interrupted"),
        (SessionState::Failed | SessionState::Cancelled, _) => paint(BAD, found.state.as_str()),
        (state, _) => state.as_str().to_owned(),
    }
}

async fn show(settings: &Settings, id: &str) -> anyhow::Result<ExitCode> {
    let place = place(settings, Role::Viewer).await?;
    let found = place.meant(id).await?;
    let id = &found.id;
    let steps = place.connection.steps(id).await?;
    if settings.json {
        print::json(&serde_json::json!({ "session": found, "steps": steps }))?;
    } else {
        for (name, value) in HEAD.into_iter().zip(row(&found)) {
            print::line(format_args!("{} {value}", paint(BOLD, format_args!("{name:<8}"))));
        }
        if let Some(code) = &found.code {
            let why = steps.last().filter(|row| row.step.starts_with("end_"));
            let why = why.map(|row| EndStep::deserialize(&row.body)).transpose()?;
            let why = why.map_or(String::new(), |why| format!(": {}", print::visible_line(&why.message)));
            print::line(format_args!("ended with {}{why}", paint(WARN, code)));
        }
        if let Some(parent) = &found.parent {
            print::line(format_args!("begun from {parent}"));
        }
        let head = ["handle", "what it did", "ended", "took", "what came of it", "call"];
        print::table_without(&["took", "call"], &head, &call_rows(&steps)?);
    }
    place.connection.close().await?;
    Ok(ExitCode::SUCCESS)
}

/// A row for each call that has ended.
fn call_rows(steps: &[StepRow]) -> anyhow::Result<Vec<Vec<String>>> {
    let registry = registry();
    let mut asked = HashMap::new();
    let mut rows = Vec::new();
    for row in steps {
        if row.step.starts_with("turn_") {
            let turn = TurnStep::deserialize(&row.body)?;
            asked.extend(turn.reply.calls.into_iter().map(|call| (call.id, call.arguments.value())));
        } else if row.step.starts_with("call_") {
            let call = CallStep::deserialize(&row.body)?;
            let arguments = asked.remove(&row.step).unwrap_or_default();
            let (title, told) = told_call(registry.as_deref(), &call.tool, &arguments);
            let mut brief = call.brief;
            let (exit_code, code) = (call.exit_code, call.code.as_deref());
            let ended = End { ok: call.ok, waits: call.waits, exit_code, code, kind: call.kind }.told(&mut brief);
            let (told, took) = (cell(&format!("{title}{told}")), format!("{} ms", call.ms));
            rows.push(vec![row.step.clone(), told, ended, took, cell(&brief), call.call_id.to_string()]);
        }
    }
    Ok(rows)
}

/// What the built-in tools are called.
fn registry() -> Option<Arc<Registry>> {
    toolhost::registry(&toolhost_store::Database::default()).ok().map(Arc::new)
}

async fn want(settings: &Settings, id: &str, signal: Signal) -> anyhow::Result<ExitCode> {
    let place = place(settings, Role::Editor).await?;
    let id = &place.meant(id).await?.id;
    let found = place.connection.signal(id, signal).await?;
    if settings.json {
        print::json(&found)?;
    } else if found.running {
        print::aside(format_args!("{id} is told; it stops within a moment"));
    } else {
        print::aside(format_args!("{id} is {}", found.state.as_str()));
    }
    place.connection.close().await?;
    Ok(ExitCode::SUCCESS)
}

async fn fork(settings: &Settings, id: &str, at: Option<u32>) -> anyhow::Result<ExitCode> {
    let place = place(settings, Role::Editor).await?;
    let id = &place.meant(id).await?.id;
    let fork = place.connection.fork(id, at).await?;
    let new = &fork.session.id;
    if settings.json {
        print::json(&fork.session)?;
    } else {
        print::line(new);
        if let Some(turn) = fork.unended {
            print::aside(paint(DIM, format_args!("turn {turn} of {id} had not ended: the fork begins before it")));
        }
        print::aside(paint(DIM, format_args!("go on with: toolhost session resume {new}")));
    }
    place.connection.close().await?;
    Ok(ExitCode::SUCCESS)
}

/// A session as it went, and as it goes on.
async fn follow(settings: &Settings, id: &str, live: bool) -> anyhow::Result<ExitCode> {
    let place = place(settings, Role::Viewer).await?;
    let id = &place.meant(id).await?.id;
    let watch: Box<dyn Watch> = match settings.json {
        true => Box::new(Lines),
        false => {
            let opening = place.sessions.steps(place.project, id, -1, 1).await?;
            let opening = opening.into_iter().next().map(|row| Opening::deserialize(row.body)).transpose()?;
            let registry = registry();
            let answer = opening.map_or(AnswerForm::Text, |opening| opening.answer);
            Box::new(Live::of(&answer, registry))
        }
    };
    let stopped = crate::signals::ended_by_signal();
    let (mut after, mut replayed) = (-1, true);
    loop {
        let found = place.sessions.get(place.project, id).await?;
        loop {
            let page = place.sessions.steps(place.project, id, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for row in &page {
                for event in replay(&row.step, &row.body, replayed)? {
                    watch.event(&event);
                }
            }
        }
        replayed = false;
        if !live || !found.running {
            if settings.json {
                print::json_line(&serde_json::json!({ "event": "standing", "session": found }))?;
            } else {
                print::aside(format_args!("{} {}", paint(DIM, "the session is"), standing(&found)));
            }
            break;
        }
        tokio::select! {
            () = stopped.cancelled() => break,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    place.connection.close().await?;
    Ok(ExitCode::SUCCESS)
}
