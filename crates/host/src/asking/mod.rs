//! Step 7 of the gate for a call that policy asks about: its ask is put into the queue, shown where a person may be, and waited for;
//! its answer is used once.
//!
//! [`state`] says what follows from what; [`AskedCall`] does it, one action after the other, in the loop of `AskedCall::drive`.
//!
//! A call whose caller cannot wait ends as "pending", with its ask in the queue. `approval.wait` runs it later as it was
//! stored, through the whole gate again: the gate then finds the answer by the call's digest. A client that simply
//! repeats its call finds the same answer, and the two cannot both use it.

pub(crate) mod edits;
mod hearing;
mod proposal;
mod state;

use serde_json::{Value, json};
use toolhost_contract::{self as contract, Answer, ErrorKind, Help, Preview, Success, ToolError};
use toolhost_store::{Ask, AskChange, AskEnd, AskState};

pub(crate) use self::hearing::telling;
use self::hearing::{AskResult, LocalAnswer, Writing};
use self::proposal::effect_digest;
pub(crate) use self::proposal::{Case, blank};
use self::state::{Action, AnswerKind, AskEvent, AskStatus, PreviewCheck, Refusal, State, step};
use crate::arguments::Arguments;
use crate::digest::digest;
use crate::gate_state::{GateState, RunSlot};
use crate::observe::PersonAnswer;
use crate::queue::{UnwrittenAnswer, answer_of, ask_id, refusal};
use crate::record::{Record, keepable};

pub(crate) const HINT_GO_ON: &str = "go on without it, or tell the person what you need";

/// Whether a call may run now that a person was asked.
pub(crate) enum AskOutcome {
    Runs {
        arguments: Arguments,
        /// What its effect rested on when it was allowed.
        approved: Option<Value>,
        slot: RunSlot,
    },
    /// Nobody has answered yet.
    Pending(Success),
}

/// A call on its way to a person and back.
pub(crate) struct AskedCall<'c> {
    gate: &'c GateState,
    case: Case<'c>,
    /// The fence of commands here as one word, for the row of the call's start.
    fence: &'c str,
    record: &'c mut Record,
    arguments: Arguments,
    /// As its row was last seen.
    ask: Ask,
    /// An answer given on this call's own presenter, until it is stored.
    said: Option<Box<LocalAnswer<'c>>>,
    /// The database rows for it, once made.
    unwritten: Option<UnwrittenAnswer>,
    /// The preview that was found to differ from the one that was allowed.
    differing_preview: Option<Result<Preview, ToolError>>,
    approved: Option<Value>,
    slot: Option<RunSlot>,
    /// Why the edited arguments may not be used.
    edit: Option<ToolError>,
}

impl<'c> AskedCall<'c> {
    /// Asks people, and comes back when the call may run, or with how its caller can wait.
    ///
    /// # Errors
    /// A person said no, nobody answered in time, or what was allowed is not what would happen now.
    pub(crate) async fn ask(
        gate: &'c GateState,
        case: Case<'c>,
        arguments: Arguments,
        fence: &'c str,
        record: &'c mut Record,
    ) -> Result<AskOutcome, ToolError> {
        let preview = gate.preview(case, &arguments).await?;
        let effect = effect_digest(&preview, tier_of(case, fence));
        let new = gate.new_approval(case, &arguments, (&preview, effect), record)?;
        let queue = &gate.config.queue;
        let listening = queue.listen();
        let ask = queue.asks().open(&new).await.map_err(refusal)?;
        record.decision = Some(json!({ "policy": case.verdict, "ask": ask_id(ask.number) }));
        let heard = gate.hear(ask.clone(), listening, case.call, case.hooks).await?;
        let call = Self {
            gate,
            case,
            fence,
            record,
            arguments,
            ask,
            said: None,
            unwritten: None,
            differing_preview: None,
            approved: None,
            slot: None,
            edit: None,
        };
        call.drive(heard).await
    }

    async fn drive(mut self, heard: AskResult<'c>) -> Result<AskOutcome, ToolError> {
        let mut state = State::Asked;
        let mut event = match heard {
            AskResult::Row(ask) => self.read(*ask),
            AskResult::Said(said) => {
                let answer = kind_of(&said.decision.answer);
                self.said = Some(said);
                AskEvent::AnsweredHere(answer)
            }
        };
        loop {
            let (next, todo) = step(state, event);
            state = next;
            event = match todo {
                Action::Look => self.look().await?,
                Action::Check => self.check().await?,
                Action::Write => self.write().await?,
                Action::FindSlot => self.find_slot(),
                Action::AwaitSlot => self.await_slot().await?,
                Action::Start { written: true } => self.start().await?,
                Action::Start { written: false } => self.write_and_start().await?,
                Action::Run => return self.runs(),
                Action::TellPending => return Ok(AskOutcome::Pending(self.pending())),
                Action::Refuse { why, uses_answer } => {
                    if uses_answer {
                        self.use_answer().await?;
                    }
                    return Err(self.refusal(why));
                }
            };
        }
    }

    /// What the row of the ask says.
    fn read(&mut self, ask: Ask) -> AskEvent {
        self.ask = ask;
        // An earlier preview predates this answer.
        self.differing_preview = None;
        AskEvent::Read(match self.ask.state {
            AskState::Open => AskStatus::Open,
            AskState::Expired => AskStatus::Expired,
            AskState::Withdrawn => AskStatus::Withdrawn,
            // Who asked the same is uses_answer the same no.
            AskState::Used if !answer_of(&self.ask).agrees() => AskStatus::Answered(self.note_answer()),
            AskState::Used => AskStatus::Used,
            AskState::Answered => AskStatus::Answered(self.note_answer()),
        })
    }

    /// Notes who has said what, for the row of the call.
    fn note_answer(&mut self) -> AnswerKind {
        let word = self.ask.answer.as_ref().and_then(|answer| answer.get("say"));
        self.record.decision = Some(json!({
            "policy": self.case.verdict, "ask": ask_id(self.ask.number), "by": self.ask.answered_by, "answer": word,
        }));
        kind_of(&answer_of(&self.ask))
    }

    fn tier(&self) -> &str {
        tier_of(self.case, self.fence)
    }

    /// A person may have looked long ago: what they allowed must still be what would happen. A preview that already differed before the
    /// answer was written is not made again.
    async fn look(&mut self) -> Result<AskEvent, ToolError> {
        let now = match (self.differing_preview.take(), &self.said) {
            (Some(found), _) => found,
            (None, None) => self.gate.preview(self.case, &self.arguments).await,
            (None, Some(said)) => {
                let (unwritten, now) = tokio::join!(
                    self.gate.prepare(said, self.arguments.command()),
                    self.gate.preview(self.case, &self.arguments),
                );
                self.unwritten = Some(unwritten?);
                now
            }
        };
        Ok(AskEvent::Looked(match now {
            Ok(now) if effect_digest(&now, self.tier()) == self.ask.effect_digest => {
                if let Some(unwritten) = &self.unwritten {
                    self.record.decision = Some(json!({
                        "policy": self.case.verdict, "ask": ask_id(self.ask.number), "by": unwritten.by,
                        "answer": unwritten.answer.get("say"),
                    }));
                }
                self.approved = Some(now.rests_on);
                PreviewCheck::Same
            }
            other => {
                let effect = if other.is_ok() { PreviewCheck::Changed } else { PreviewCheck::Unknown };
                self.differing_preview = Some(other);
                effect
            }
        }))
    }

    /// What a person typed passes the same checks as what a model sent.
    async fn check(&mut self) -> Result<AskEvent, ToolError> {
        let Answer::AllowEdited { arguments } = answer_of(&self.ask) else { return Ok(AskEvent::EditRefused) };
        let config = &self.gate.config;
        // What is refused is written down, too.
        self.record.arguments = keepable(&arguments, &config.redactor, config.limits.audit_string_bytes);
        match self.admitted(arguments).await {
            Ok(arguments) => {
                self.record.arguments = keepable(&arguments.json, &config.redactor, config.limits.audit_string_bytes);
                self.record.digest = Some(digest(&self.case.tool.info, &arguments.json, self.case.call)?);
                self.record.edited =
                    Some(edits::changed(&self.arguments.json, &arguments.json, &self.record.arguments));
                self.arguments = arguments;
                self.approved = None;
                Ok(AskEvent::EditAccepted)
            }
            Err(error) => {
                self.edit = Some(error);
                Ok(AskEvent::EditRefused)
            }
        }
    }

    async fn admitted(&self, arguments: Value) -> Result<Arguments, ToolError> {
        let Case { tool, profile, hooks, .. } = self.case;
        let names = self.gate.config.executor.names_of_root();
        let (arguments, _) = tool.fitted(tool.given(&arguments, None), names)?;
        let arguments = self.gate.analyze(tool, profile, arguments, hooks).await?;
        let verdict = profile.decide(tool, &arguments.looked(tool));
        verdict.check_denied(&tool.info.name).map(|()| arguments)
    }

    /// Writes down what a person has said here.
    async fn write(&mut self) -> Result<AskEvent, ToolError> {
        let Some(mut said) = self.said.take() else { return Err(missing_part()) };
        let unwritten = match self.unwritten.take() {
            Some(unwritten) => unwritten,
            None => self.gate.prepare(&said, self.arguments.command()).await?,
        };
        Ok(match self.gate.write(unwritten, &mut said).await? {
            Writing::Done => {
                self.ask = said.ask;
                AskEvent::Written(self.note_answer())
            }
            Writing::TooLate(ask) => self.read(*ask),
        })
    }

    fn find_slot(&mut self) -> AskEvent {
        if self.slot.is_none() {
            self.slot = self.gate.free_run_slot(self.case.tool, self.case.hooks);
        }
        if self.slot.is_some() { AskEvent::SlotTaken } else { AskEvent::NoSlot }
    }

    async fn await_slot(&mut self) -> Result<AskEvent, ToolError> {
        self.slot = Some(self.gate.run_slot(self.case.tool, self.case.hooks).await?);
        Ok(AskEvent::SlotTaken)
    }

    /// Step 8: the call's start and its use of the answer are one commit.
    async fn start(&mut self) -> Result<AskEvent, ToolError> {
        let row = self.record.started(self.case.call, self.fence);
        let change = AskChange::Use { number: self.ask.number };
        self.gate.config.audit.append_with(row, change).await.map_err(refusal)?;
        Ok(self.started())
    }

    /// Writes the answer, its use and the call's start in one commit. If somebody else answered first, their answer holds.
    async fn write_and_start(&mut self) -> Result<AskEvent, ToolError> {
        let (Some(mut said), Some(unwritten)) = (self.said.take(), self.unwritten.take()) else {
            return Err(missing_part());
        };
        let row = self.record.started(self.case.call, self.fence);
        Ok(match self.gate.write_and_use(unwritten, &mut said, row).await? {
            Writing::Done => self.started(),
            Writing::TooLate(ask) => self.read(*ask),
        })
    }

    fn started(&mut self) -> AskEvent {
        self.record.answer = Some(self.ask.number);
        self.record.person = Some(self.person());
        self.record.started = true;
        AskEvent::Started
    }

    /// What a person has answered; an answer that was given on this call's own presenter is not in the row that was read.
    fn person(&self) -> PersonAnswer {
        let now_ms = self.gate.config.clock.unix_ms();
        let agreed = self.ask.answer.is_none() || answer_of(&self.ask).agrees();
        PersonAnswer::new(agreed, self.ask.created_at_ms, self.ask.answered_at_ms.unwrap_or(now_ms))
    }

    fn runs(self) -> Result<AskOutcome, ToolError> {
        let slot = self.slot.ok_or_else(missing_part)?;
        Ok(AskOutcome::Runs { arguments: self.arguments, approved: self.approved, slot })
    }

    /// Consumes an answer that lets nothing run, so that a repeated call asks again.
    async fn use_answer(&mut self) -> Result<(), ToolError> {
        let (call, number) = (self.case.call, self.ask.number);
        let taken = self.gate.config.queue.asks().take(call.scope.project_id, number, call.id.as_str()).await;
        // If another call has used it, keep that call's outcome.
        if taken.map_err(refusal)? {
            self.record.answer = Some(number);
            self.record.person = Some(self.person());
        }
        Ok(())
    }

    fn pending(&self) -> Success {
        let config = &self.gate.config;
        let pending = config.queue.pending(&self.ask);
        let wait = config.registry.helper(Help::AwaitsApproval);
        let how = wait.map(|wait| format!(" `{wait}` with this approvalId runs it as soon as it is allowed."));
        let text = format!(
            "`{}` waits for a person's approval as {}. It has not run.{}",
            self.case.tool.info.name,
            pending.approval_id,
            how.unwrap_or_default()
        );
        let data = json!({
            "status": "pending_approval", "approvalId": pending.approval_id, "expiresAt": pending.expires_at_ms,
        });
        Success { data, text, attachments: Vec::new(), revision: None, workflow: None }
    }

    fn refusal(self, why: Refusal) -> ToolError {
        let name = &self.case.tool.info.name;
        let denied = |message: String| ToolError::new(ErrorKind::Denied, message).hint(HINT_GO_ON);
        match why {
            Refusal::Denied => denied_by_person(name, &answer_of(&self.ask)),
            Refusal::Expired if self.ask.end() == AskEnd::Unused => {
                let by = contract::visible_line(self.ask.answered_by.as_deref().unwrap_or_default());
                denied(format!(
                    "{by} answered the ask of this call of `{name}`, and the answer expired before a call used it"
                ))
            }
            Refusal::Expired => denied(format!("nobody allowed this call of `{name}` in time")),
            Refusal::Withdrawn => denied(format!("`{name}` needs a person's approval, and nobody is here to give it")),
            Refusal::Used => {
                let message = format!("{} has been used by another call", ask_id(self.ask.number));
                ToolError::new(ErrorKind::Conflict, message)
            }
            Refusal::Changed => {
                let message = format!("what this call of `{name}` would do has changed since it was allowed");
                ToolError::new(ErrorKind::Conflict, message).hint("look at it anew and ask again")
            }
            Refusal::Unknown => self.differing_preview.and_then(Result::err).unwrap_or_else(missing_part),
            Refusal::Edit => self.edit.unwrap_or_else(missing_part),
            Refusal::Impossible => missing_part(),
        }
    }
}

/// The fence that a call's program would run in: what one person allowed in a strong fence is another thing in a weak one.
fn tier_of<'f>(case: Case<'_>, fence: &'f str) -> &'f str {
    let facts = &case.tool.info.facts;
    if facts.runs_program || facts.effect == contract::Effect::Executes { fence } else { "" }
}

/// Cannot happen unless [`step`] and [`AskedCall`] disagree.
fn missing_part() -> ToolError {
    ToolError::internal("a part of an asked call is missing")
}

fn kind_of(answer: &Answer) -> AnswerKind {
    match answer {
        Answer::Allow => AnswerKind::Yes,
        Answer::AllowEdited { .. } => AnswerKind::Edited,
        _ => AnswerKind::No,
    }
}

pub(crate) fn denied_by_person(tool: &str, answer: &Answer) -> ToolError {
    let because = match answer {
        Answer::Deny { comment: Some(comment) } => format!(": {comment}"),
        _ => String::new(),
    };
    let message = format!("`{tool}` needs a person's approval and was not given it{because}");
    ToolError::new(ErrorKind::Denied, message).hint(HINT_GO_ON)
}
