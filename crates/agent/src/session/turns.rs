//! The loop: ask the model, run its calls through the gate, tell it what they came to, until it answers.

use std::sync::Arc;

use toolhost_contract::JournalError;

use super::answer::check;
use super::event::{Event, Watch};
use super::noticed::INVALID;
use super::run::{Control, Halt, Run, SessionState, Stop, remembered};
use super::{Answer, Checked, LoopError, LoopLimits, LoopResult, Status};
use crate::host::ToolHost;
use crate::model::{Message, Model};

/// Runs a session until it has an answer, a limit or a person stops it, or it cannot go on (CrewAgent seed BAI-2.5).
///
/// What earlier runs have come to is taken from the journal and not done again. A session on a workflow package has the
/// tools for packages and no others ([`ToolHost::on_package`]), unless its opening says otherwise.
///
/// # Errors
/// If the journal cannot be written: nothing more is done then.
pub async fn run_tool_loop(
    session: &SessionState<'_>,
    model: &dyn Model,
    host: &ToolHost,
    limits: &LoopLimits,
    control: &Control,
    watch: &Arc<dyn Watch>,
) -> Result<LoopResult, JournalError> {
    let bounded;
    let host = match session.opening.is_bounded() {
        true => {
            bounded = host.on_package();
            &bounded
        }
        false => host,
    };
    let name = model.facts().name.clone();
    watch.event(&Event::Opened { session: session.journal.session_id().to_owned(), model: name });
    let stop = Stop::new(control);
    let mut run = Run::new(session, model, host, limits, watch, &stop);
    let ended = {
        let listening = stop.listen(session.journal, limits.time_max);
        tokio::select! {
            ended = run.go() => ended,
            never = listening => match never {},
        }
    };
    let (status, answer, error) = match ended {
        Ok(answer) => (Status::Completed, Some(answer), None),
        Err(Halt::Paused) => (Status::Paused, None, None),
        Err(Halt::Cancelled) => (Status::Cancelled, None, None),
        Err(Halt::Limited(code, message)) => (Status::Limited, None, Some(LoopError { code, message })),
        Err(Halt::Failed(code, message)) => (Status::Failed, None, Some(LoopError { code, message })),
        Err(Halt::Journal(error)) => return Err(error),
    };
    session.journal.settle().await?;
    let result = LoopResult {
        session: session.journal.session_id().to_owned(),
        status,
        answer,
        elapsed_ms: run.elapsed_ms(),
        calls: run.calls,
        iterations: run.turn,
        repairs: run.repairs,
        unvalidated: run.sets.that_stand("staged"),
        invalid: run.sets.that_stand(INVALID),
        usage: run.usage,
        cost: run.cost,
        error,
    };
    watch.event(&Event::Ended { result: Box::new(result.clone()) });
    Ok(result)
}

impl Run<'_> {
    async fn go(&mut self) -> Result<Answer, Halt> {
        self.watch.event(&Event::Message { text: self.session.opening.goal.clone() });
        loop {
            let answer = self.until_answer().await?;
            if !self.hear_now().await? {
                return Ok(answer);
            }
        }
    }

    async fn until_answer(&mut self) -> Result<Answer, Halt> {
        loop {
            self.hear()?;
            let turn = self.turn;
            let (said, replayed) = self.take_turn(turn).await?;
            (self.turn, self.heard) = (self.turn + 1, 0);
            self.messages.push(remembered(&said.reply));
            if !said.reply.calls.is_empty() {
                self.run_calls(turn, &said, replayed).await?;
                continue;
            }
            match check(self, turn, &said, replayed).await? {
                Checked::Good(answer) => {
                    if let Answer::Change { change_set_id, .. } = &answer {
                        self.sets.stands(change_set_id, "validated");
                    }
                    return Ok(answer);
                }
                Checked::Bad { code, findings, discard } => {
                    if let Some(id) = discard {
                        self.sets.stands(&id, "rejected");
                    }
                    self.messages.push(Message::User { content: findings.clone() });
                    // What an earlier run sent back counts against its limit, not this one's.
                    self.repairs_since += u32::from(!replayed);
                    if self.repairs_since > self.limits.max_repairs && !self.hear_now().await? {
                        let message = format!(
                            "the model's answer is still wrong after {} repairs; it was told: {findings}",
                            self.limits.max_repairs
                        );
                        return Err(Halt::Failed(code, message));
                    }
                    self.repairs += 1;
                    self.watch.event(&Event::Repair { turn, findings });
                }
            }
        }
    }
}
