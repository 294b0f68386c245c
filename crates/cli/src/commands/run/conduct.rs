//! A session in this terminal: run, shown, and stopped by signals.

use std::sync::Arc;

use toolhost::{Host, Session};
use toolhost_agent::session::{Answer, Control, Event, LoopResult, Status, Watch};
use toolhost_builder::packages::Preview;

use super::live::{self, Lines, Live};
use crate::changes::{self, Extent};
use crate::terminal::{self, Terminal};
use crate::{print, signals};

/// How a run ended, and what to type next.
pub(in crate::commands) struct Conducted {
    pub(in crate::commands) result: LoopResult,
    pub(in crate::commands) next: Option<String>,
}

/// Runs a session, with a message or as it was, until it ends or is stopped; then it is free for the next process.
pub(in crate::commands) async fn run(
    host: &Host,
    session: Session,
    message: Option<String>,
    json: bool,
) -> anyhow::Result<Conducted> {
    let session = if terminal::is_there() { session.with_presenter(Arc::new(Terminal::of(host))) } else { session };
    let watch: Arc<dyn Watch> = match json {
        true => Arc::new(Lines),
        false => Arc::new(Live::of(&session.opening().answer)),
    };
    let result = session.with_control(stopped_by_signals()).run_watched(message, &watch).await?;
    let preview = staged(host, &result).await;
    if json {
        if let Some(preview) = &preview {
            let mut event = changes::as_json(preview);
            event["event"] = serde_json::json!("change_set");
            print::json_line(&event)?;
        }
        print::json_line(&Event::Ended { result: Box::new(result.clone()) })?;
    } else {
        if let Some(preview) = &preview {
            changes::show(preview, Extent::Beginnings);
        }
        live::conclude(&result);
    }
    let next = next(&result);
    Ok(Conducted { result, next })
}

/// The change set that a session has staged.
async fn staged(host: &Host, result: &LoopResult) -> Option<Preview> {
    let Some(Answer::Change { change_set_id, .. }) = &result.answer else { return None };
    let preview = host.changes().preview(change_set_id).await;
    // The session has come to its end all the same; `change show` says what is the matter.
    preview.inspect_err(|error| print::note(format_args!("{change_set_id} cannot be shown: {error}"))).ok()
}

fn next(result: &LoopResult) -> Option<String> {
    let id = &result.session;
    match result.status {
        Status::Completed => None,
        Status::Failed if result.repairs > 0 => {
            Some(format!("say what it should do otherwise: toolhost session resume {id} \"…\""))
        }
        Status::Paused | Status::Failed | Status::Limited => Some(format!("go on with: toolhost session resume {id}")),
        Status::Cancelled => Some(format!("begin anew from here with: toolhost session fork {id}")),
    }
}

/// Each signal that asks a process to end ends the call under way and pauses the session. A second Ctrl-C cancels it.
pub(in crate::commands) fn stopped_by_signals() -> Control {
    let control = Control::default();
    let stop = control.clone();
    tokio::spawn(async move {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut endings), Ok(mut interrupt)) = (signals::Endings::new(), signal(SignalKind::interrupt())) else {
            return;
        };
        let mut interrupted = false;
        loop {
            tokio::select! {
                () = endings.next() => stop.interrupt.cancel(),
                _ = interrupt.recv() => {
                    if interrupted {
                        stop.cancel.cancel();
                        return;
                    }
                    interrupted = true;
                    stop.interrupt.cancel();
                    print::note(print::paint(print::WARN, "\nending the call under way and pausing; Ctrl-C again cancels the session"));
                }
            }
        }
    });
    control
}
