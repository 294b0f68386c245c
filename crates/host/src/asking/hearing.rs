//! Showing an ask where a person may be, waiting for an answer from there or elsewhere, and writing it down.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::futures::Notified;
use tokio::time::Instant;
use toolhost_contract::shell::Analyzed;
use toolhost_contract::{Call, ErrorKind, Progress, ProgressSink, ToolError};
use toolhost_store::{Ask, AskState, Entry};

use crate::gate_state::GateState;
use crate::hooks::Hooks;
use crate::queue::{Decision, Presented, Presenter, Unattended, UnwrittenAnswer, ask_id, may_allow, refusal, shown};
use crate::shown::Shown;

/// What came of asking people.
pub(super) enum AskResult<'h> {
    /// The row says so: somebody answered elsewhere, it is too late, or nobody has said anything yet.
    Row(Box<Ask>),
    Said(Box<LocalAnswer<'h>>),
}

/// What a person said where the call shows its ask.
pub(super) struct LocalAnswer<'h> {
    presenter: &'h dyn Presenter,
    pub(super) ask: Ask,
    shown: Shown,
    pub(super) decision: Decision,
}

/// How writing an answer down ended.
pub(super) enum Writing {
    Done,
    /// Somebody was faster, or it is too late: what the row says holds.
    TooLate(Box<Ask>),
}

/// How often a caller hears that its call waits for a person: some clients give a call up that is silent for a minute.
const TOLD_EVERY: Duration = Duration::from_secs(15);

/// What comes of waiting for a person, with a note to the caller every now and then until it comes.
pub(crate) async fn telling<T>(number: i64, progress: &dyn ProgressSink, waiting: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let mut ticks = tokio::time::interval_at(began + TOLD_EVERY, TOLD_EVERY);
    tokio::pin!(waiting);
    loop {
        tokio::select! {
            came = &mut waiting => return came,
            _ = ticks.tick() => {
                let done = began.elapsed().as_secs_f64();
                let message = format!("{} waits for a person", ask_id(number));
                progress.report(Progress { done, total: None, message, output: None });
            }
        }
    }
}

impl GateState {
    /// Shows an open ask, and returns the first of: an answer given here, which is not written yet; an answer from elsewhere;
    /// expiry; cancellation. `listening` must have been made before the ask was read, so that no answer is missed.
    pub(super) async fn hear<'h>(
        &self,
        ask: Ask,
        listening: Notified<'_>,
        call: &Call,
        hooks: &'h Hooks,
    ) -> Result<AskResult<'h>, ToolError> {
        let number = ask.number;
        telling(number, &*hooks.progress, self.heard(ask, listening, call, hooks)).await
    }

    async fn heard<'h>(
        &self,
        ask: Ask,
        listening: Notified<'_>,
        call: &Call,
        hooks: &'h Hooks,
    ) -> Result<AskResult<'h>, ToolError> {
        if ask.state != AskState::Open {
            return Ok(AskResult::Row(Box::new(ask)));
        }
        let (queue, project, number) = (&self.config.queue, project_of(&ask), ask.number);
        // The same call, perhaps in another host, may have asked it: then it waits for the answer, too.
        let is_ours = ask.call.get("id").and_then(Value::as_str) == Some(call.id.as_str());
        let mut listening = Some(listening);
        // Who may not allow it is not asked where the call is made; it waits for another person.
        let shown = shown(&ask)?;
        let presenter = hooks.presenter.as_ref().filter(|to| may_allow(to.person().user_id, &ask, &shown));
        if let Some(presenter) = presenter {
            tokio::select! {
                presented = presenter.present(&ask, &shown) => match presented {
                    Presented::Decided(decision) => {
                        let said = LocalAnswer { presenter: &**presenter, ask, shown, decision };
                        return Ok(AskResult::Said(Box::new(said)));
                    }
                    Presented::Gone => {}
                },
                () = hooks.let_go.cancelled() => {
                    presenter.ended(&ask);
                    return Ok(AskResult::Row(Box::new(ask)));
                }
                ask = queue.settled(project, number, listening.take(), None, &hooks.cancel) => {
                    let ask = self.withdraw_if_cancelled(ask, project, number, is_ours).await?;
                    presenter.ended(&ask);
                    return Ok(AskResult::Row(Box::new(ask)));
                }
            }
        }
        if self.config.asking.unattended == Unattended::Deny {
            if is_ours {
                queue.asks().withdraw(project, number).await.map_err(refusal)?;
            }
            let ask = queue.whole(project, number).await?.0;
            let state = if ask.state == AskState::Open { AskState::Withdrawn } else { ask.state };
            return Ok(AskResult::Row(Box::new(Ask { state, ..ask })));
        }
        let hold = match (hooks.hold, presenter) {
            (Some(hold), _) => hold,
            // They have seen it and want to answer later.
            (None, Some(_)) => Duration::ZERO,
            (None, None) => self.config.asking.hold,
        };
        let ask = tokio::select! {
            ask = queue.settled(project, number, listening, Some(hold), &hooks.cancel) => ask,
            () = hooks.let_go.cancelled() => Ok(ask),
        };
        self.withdraw_if_cancelled(ask, project, number, is_ours).await.map(|ask| AskResult::Row(Box::new(ask)))
    }

    /// As `hear`, and writes an answer given here.
    pub(crate) async fn put_to_people(
        &self,
        ask: Ask,
        listening: Notified<'_>,
        call: &Call,
        hooks: &Hooks,
    ) -> Result<Ask, ToolError> {
        match self.hear(ask, listening, call, hooks).await? {
            AskResult::Row(ask) => Ok(*ask),
            AskResult::Said(mut said) => {
                let answer = self.prepare(&said, None).await?;
                Ok(match self.write(answer, &mut said).await? {
                    Writing::Done => said.ask,
                    Writing::TooLate(ask) => *ask,
                })
            }
        }
    }

    /// The rows that an answer is written down in.
    ///
    /// # Errors
    /// The person may not answer so.
    pub(super) async fn prepare(
        &self,
        said: &LocalAnswer<'_>,
        command: Option<&Analyzed>,
    ) -> Result<UnwrittenAnswer, ToolError> {
        let (person, place) = (said.presenter.person(), said.presenter.place());
        self.config.queue.prepare(&person, (&said.ask, &said.shown), (&said.decision, command), place).await
    }

    /// Writes down what a person said where they were asked.
    pub(super) async fn write(
        &self,
        answer: UnwrittenAnswer,
        said: &mut LocalAnswer<'_>,
    ) -> Result<Writing, ToolError> {
        let (value, by) = (answer.answer.clone(), answer.by.clone());
        let written = self.config.queue.write(answer).await;
        self.written_or_answered_elsewhere(written, said, value, by).await
    }

    /// Writes the answer and the call's "started" row in one commit, or neither.
    pub(super) async fn write_and_use(
        &self,
        answer: UnwrittenAnswer,
        said: &mut LocalAnswer<'_>,
        started: Entry,
    ) -> Result<Writing, ToolError> {
        let (value, by) = (answer.answer.clone(), answer.by.clone());
        let written = self.config.queue.write_and_use(answer, started).await;
        self.written_or_answered_elsewhere(written, said, value, by).await
    }

    async fn written_or_answered_elsewhere(
        &self,
        written: Result<(), ToolError>,
        said: &mut LocalAnswer<'_>,
        answer: Value,
        by: String,
    ) -> Result<Writing, ToolError> {
        match written {
            Ok(()) => {
                // As the row is now, but for the time of its answer.
                said.ask.state = AskState::Answered;
                (said.ask.answer, said.ask.answered_by) = (Some(answer), Some(by));
                Ok(Writing::Done)
            }
            Err(error) if error.kind == ErrorKind::Conflict => {
                let (ask, _) = self.config.queue.whole(project_of(&said.ask), said.ask.number).await?;
                said.presenter.ended(&ask);
                Ok(Writing::TooLate(Box::new(ask)))
            }
            Err(error) => Err(error),
        }
    }

    /// Withdraws the ask of a caller that has gone.
    async fn withdraw_if_cancelled(
        &self,
        ask: Result<Ask, ToolError>,
        project: i64,
        number: i64,
        is_ours: bool,
    ) -> Result<Ask, ToolError> {
        if is_ours && ask.as_ref().is_err_and(|error| error.kind == ErrorKind::Cancelled) {
            self.config.queue.asks().withdraw(project, number).await.map_err(refusal)?;
        }
        ask
    }
}

fn project_of(ask: &Ask) -> i64 {
    ask.call.pointer("/scope/projectId").and_then(Value::as_i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl ProgressSink for Heard {
        fn report(&self, progress: Progress) {
            let line = format!("{} {}", progress.done, progress.message);
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(line);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_hears_every_quarter_of_a_minute_that_its_call_waits() {
        let heard = Heard::default();
        let came = telling(7, &heard, async {
            tokio::time::sleep(Duration::from_secs(50)).await;
            "yes"
        });
        assert_eq!(came.await, "yes");
        let heard = heard.0.into_inner().unwrap_or_default();
        assert_eq!(
            heard,
            ["15 ask-7 waits for a person", "30 ask-7 waits for a person", "45 ask-7 waits for a person"]
        );
    }
}
