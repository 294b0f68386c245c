//! A session in this process: taken, run, let go of.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolhost_agent::session::{
    Answer, AnswerForm, Control, Event, LoopLimits, LoopResult, Opening, SessionState as Loop, Status, Watch,
    run_tool_loop, step,
};
use toolhost_agent::{Catalog, Model, ToolHost, start};
use toolhost_contract::SystemClock;
use toolhost_store::packages::{Preview, Shelf};
use toolhost_store::{Held, NewSession, SessionState};

use super::live::{self, Lines, Live};
use crate::changes::{self, Extent};
use crate::terminal::{self, Terminal};
use crate::{print, signals, wire};

/// The tools of a session, wired.
pub(in crate::commands) struct Running {
    pub(in crate::commands) tools: ToolHost,
    /// Where what it stages is.
    shelf: Shelf,
}

/// How a run ended, and what to type next.
pub(in crate::commands) struct Conducted {
    pub(in crate::commands) result: LoopResult,
    pub(in crate::commands) next: Option<String>,
}

impl Running {
    pub(in crate::commands) fn new(host: &wire::Host, id: &str, profile: &str, persona: &str) -> anyhow::Result<Self> {
        let catalog = Catalog::new(&host.gate, profile)?;
        let scope = host.scope(Some(id.to_owned()));
        let tools = ToolHost::new(Arc::clone(&host.gate), catalog, scope, persona.to_owned(), Arc::clone(&host.ids));
        let tools = if terminal::is_there() {
            tools.presenter(Arc::new(Terminal::new(
                host.person(),
                host.gate.queue().clone(),
                Some(Arc::clone(&host.registry)),
            )))
        } else {
            tools
        };
        let shelf = host.store.records().packages().shelf(wire::who(&host.project, &host.user))?;
        Ok(Self { tools, shelf })
    }

    /// What the session is told before a person's next request.
    pub(in crate::commands) async fn since(&self, model: &dyn Model, opening: &Opening) -> Option<String> {
        start::since(&self.tools, model, opening).await
    }

    /// Runs until the session, whose answer is of this form, ends or is stopped; then it is free for the next process.
    pub(in crate::commands) async fn run(
        &self,
        held: Held,
        answer: &AnswerForm,
        model: &dyn Model,
        limits: &LoopLimits,
        json: bool,
    ) -> anyhow::Result<Conducted> {
        let watch: Arc<dyn Watch> = match json {
            true => Arc::new(Lines),
            false => Arc::new(Live::of(answer)),
        };
        let conducted = self.run_watched(held, model, limits, &watch).await?;
        let preview = self.staged(&conducted.result).await;
        if json {
            if let Some(preview) = &preview {
                let mut event = changes::as_json(preview);
                event["event"] = serde_json::json!("change_set");
                print::json_line(&event)?;
            }
            print::json_line(&Event::Ended { result: Box::new(conducted.result.clone()) })?;
        } else {
            if let Some(preview) = &preview {
                changes::show(preview, Extent::Beginnings);
            }
            live::conclude(&conducted.result);
        }
        Ok(conducted)
    }

    /// The change set that a session has staged.
    async fn staged(&self, result: &LoopResult) -> Option<Preview> {
        let Some(Answer::Change { change_set_id, .. }) = &result.answer else { return None };
        let number = change_set_id.strip_prefix("cs-").and_then(|number| number.parse().ok()).unwrap_or_default();
        let preview = self.shelf.preview(number).await;
        // The session has come to its end all the same; `change show` says what is the matter.
        preview.inspect_err(|error| print::note(format_args!("{change_set_id} cannot be shown: {error}"))).ok()
    }

    pub(in crate::commands) async fn run_watched(
        &self,
        held: Held,
        model: &dyn Model,
        limits: &LoopLimits,
        watch: &Arc<dyn Watch>,
    ) -> anyhow::Result<Conducted> {
        let clock = SystemClock::default();
        let control = stopped_by_signals();
        let result = {
            let state = Loop::open(&held, &clock)?;
            run_tool_loop(&state, model, &self.tools, limits, &control, watch).await?
        };
        let code = result.error.as_ref().map(|error| error.code.as_str());
        held.release(state_of(result.status), code).await?;
        let next = next(&result);
        Ok(Conducted { result, next })
    }
}

/// Writes a session's first step.
pub(in crate::commands) async fn create(
    host: &wire::Host,
    id: &str,
    profile: &str,
    model: &str,
    opening: &Opening,
) -> anyhow::Result<()> {
    let new = NewSession {
        project_id: host.project.id,
        user_id: host.user.id,
        id: id.to_owned(),
        profile: profile.to_owned(),
        model: model.to_owned(),
        title: opening.goal.clone(),
        steps: vec![(step::OPEN.to_owned(), serde_json::to_value(opening)?)],
    };
    Ok(host.store.sessions().create(&new).await?)
}

fn state_of(status: Status) -> SessionState {
    match status {
        Status::Completed => SessionState::Done,
        Status::Paused => SessionState::Paused,
        Status::Limited => SessionState::Limited,
        Status::Failed => SessionState::Failed,
        Status::Cancelled => SessionState::Cancelled,
    }
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

/// Ctrl-C once pauses, twice cancels; whatever else ends a process pauses.
fn stopped_by_signals() -> Control {
    let control = Control { pause: CancellationToken::new(), cancel: CancellationToken::new() };
    let stop = control.clone();
    tokio::spawn(async move {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut endings), Ok(mut interrupt)) = (signals::Endings::new(), signal(SignalKind::interrupt())) else {
            return;
        };
        let mut interrupted = false;
        loop {
            tokio::select! {
                () = endings.next() => stop.pause.cancel(),
                _ = interrupt.recv() => {
                    if interrupted {
                        stop.cancel.cancel();
                        return;
                    }
                    interrupted = true;
                    stop.pause.cancel();
                    print::note(print::paint(print::WARN, "\npausing; Ctrl-C again cancels"));
                }
            }
        }
    });
    control
}
