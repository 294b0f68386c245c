//! Going on with a session that was there before: `toolhost session resume` and `toolhost run --continue`.

use std::process::ExitCode;

use serde_json::json;
use toolhost::{Need, iterations_default};
use toolhost_store::{Error, SessionState};

use super::{LimitFlags, conduct, ended, talk};
use crate::hosting::key_of;
use crate::print::{self, DIM, paint, visible_line};
use crate::settings::Settings;
use crate::traces::Tracing;
use crate::{Usage, model, personas, wire};

/// Goes on with the session that somebody means, in this terminal.
///
/// # Errors
/// If no session or more than one is meant; if the session has given its answer, and neither a message nor a person at the terminal says what
/// comes next; or if the session cannot be resumed.
pub(in crate::commands) async fn resume(
    settings: &Settings,
    id: &str,
    mut message: Option<String>,
    other_model: Option<String>,
    flags: &LimitFlags,
) -> anyhow::Result<ExitCode> {
    let mut talks = false;
    let tracing = Tracing::start();
    let resolved = settings.resolve()?;
    let host = wire::open_observed(&resolved, Need::Writing, &tracing.observers(None)).await?;
    let (project, user) = (host.connection().project().id, host.connection().user().id);
    let id = &host.store().sessions().meant(project, user, id).await?.id;
    let (mut found, mut is_left) = (host.resumable(id).await?, false);
    if let Some(text) = message.take_if(|_| found.running) {
        if host.leave_message(id, &text).await?.running {
            if settings.json {
                print::json_line(&json!({ "session": id, "event": "left", "text": text }))?;
            } else {
                print::aside(format_args!("{id} is at work, and hears this before its next turn"));
            }
            host.close().await?;
            return Ok(ExitCode::SUCCESS);
        }
        // It has ended meanwhile, and hears this in the run that begins here.
        found = host.resumable(id).await?;
        is_left = true;
    }
    let person = conduct::person(&host);
    let is_done = found.state == SessionState::Done;
    if is_done && message.is_none() && !is_left {
        let Some(terminal) = person.as_ref().filter(|_| !settings.json) else {
            return Err(Usage::error(format!(
                "{id} has given its answer; say what comes next: session resume {id} \"…\""
            )));
        };
        print::aside(paint(DIM, format_args!("session {id} has given its answer to: {}", visible_line(&found.title))));
        message = talk::next_message(terminal).await;
        if message.is_none() {
            host.close().await?;
            return Ok(ExitCode::SUCCESS);
        }
        talks = true;
    }
    let model = model::open(&settings.models_of(&key_of(&resolved))?, Some(&other_model.unwrap_or(found.model)))?;
    let session = host.resume(id, &model).await.map_err(personas::told)?;
    let limits = flags.limits(iterations_default(&session.opening().answer));
    let session = session.with_limits(limits);
    let is_said = message.is_some() || is_left;
    let conducted = match &person {
        Some(terminal) if talks => talk::talk(&host, &session, message, terminal).await,
        _ => conduct::run(&host, session, message, settings.json, person).await,
    };
    let closed = host.close().await;
    tracing.close().await;
    closed?;
    match conducted {
        // Another process was faster. It hears the message, which waits in the database.
        Err(error)
            if is_said && matches!(error.downcast_ref(), Some(toolhost::Error::Store(Error::SessionRuns { .. }))) =>
        {
            print::aside(format_args!("{id} is at work elsewhere, and hears this before its next turn"));
            Ok(ExitCode::SUCCESS)
        }
        conducted => Ok(ended(&conducted?)),
    }
}
