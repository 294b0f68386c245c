//! A session in this terminal: run, shown, and stopped by signals.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;
use toolhost::{Host, Session};
use toolhost_agent::session::{Answer, Control, Event, LoopResult, Status, Watch};
use toolhost_builder::packages::Preview;
use toolhost_contract::BoxFuture;
use toolhost_host::{Person, Presented, Presenter, Shown};
use toolhost_store::Ask;

use super::live::{self, Lines, Live};
use crate::changes::{self, Extent};
use crate::terminal::{self, Terminal};
use crate::{print, signals};

/// How a run ended, and what to type next.
pub(in crate::commands) struct Conducted {
    pub(in crate::commands) result: LoopResult,
    pub(in crate::commands) next: Option<String>,
}

/// The person at this terminal, where there is one.
pub(in crate::commands) fn person(host: &Host) -> Option<Arc<Terminal>> {
    terminal::is_there().then(|| Arc::new(Terminal::of(host)))
}

/// Runs a session, with a message or as it was, until it ends or is stopped; then it is free for the next process.
pub(in crate::commands) async fn run(
    host: &Host,
    session: Session,
    message: Option<String>,
    json: bool,
    person: Option<Arc<Terminal>>,
) -> anyhow::Result<Conducted> {
    run_after(host, session, message, json, (person, false)).await
}

/// As [`run`], at this terminal. `is_known`: what the session did before its message was shown there.
pub(in crate::commands) async fn run_after(
    host: &Host,
    mut session: Session,
    message: Option<String>,
    json: bool,
    (person, is_known): (Option<Arc<Terminal>>, bool),
) -> anyhow::Result<Conducted> {
    let live = (!json).then(|| {
        let live = Live::of(&session.opening().answer, Some(Arc::clone(host.registry()))).with_status();
        Arc::new(match message.clone().filter(|_| is_known) {
            Some(said) => live.since_message(said),
            None => live,
        })
    });
    if let Some(terminal) = person {
        session = session.with_presenter(Arc::new(Beside { terminal, live: live.clone() }));
    }
    let watch: Arc<dyn Watch> = match live {
        None => Arc::new(Lines),
        Some(live) => live,
    };
    let (control, _listening) = listening();
    let result = session.with_control(control).run_watched(message, &watch).await?;
    drop(watch);
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

/// The terminal, which shows what the session does for as long as nobody is asked.
struct Beside {
    terminal: Arc<Terminal>,
    live: Option<Arc<Live>>,
}

/// The session is shown again, also where the question ends without an answer.
struct Hidden<'a>(&'a Option<Arc<Live>>);

impl<'a> Hidden<'a> {
    fn new(live: &'a Option<Arc<Live>>) -> Self {
        live.iter().for_each(|live| live.hide(true));
        Self(live)
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|live| live.hide(false));
    }
}

impl Presenter for Beside {
    fn place(&self) -> &'static str {
        self.terminal.place()
    }

    fn person(&self) -> Person {
        self.terminal.person()
    }

    fn present<'a>(&'a self, ask: &'a Ask, shown: &'a Shown) -> BoxFuture<'a, Presented> {
        Box::pin(async move {
            let _hidden = Hidden::new(&self.live);
            self.terminal.present(ask, shown).await
        })
    }

    fn ended(&self, ask: &Ask) {
        let _hidden = Hidden::new(&self.live);
        self.terminal.ended(ask);
    }
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
    let (control, listening) = listening();
    listening.detach();
    control
}

/// The same for as long as the second of these lives.
fn listening() -> (Control, AbortOnDropHandle<()>) {
    let control = Control::default();
    let stop = control.clone();
    let listening = tokio::spawn(async move {
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
    (control, AbortOnDropHandle::new(listening))
}
