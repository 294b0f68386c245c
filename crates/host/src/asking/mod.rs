//! Step 7 of the gate for a call that policy asks about: its ask is put into the queue, shown where a person may be, and waited for;
//! its answer is used once.
//!
//! [`state`] knows what follows from what; [`AskedCall`] does it, one thing after the other, in the loop of
//! [`AskedCall::pass`].
//!
//! A call whose caller cannot wait ends as "pending", with its ask in the queue. `approval.wait` runs it later as it was
//! stored, through the whole gate again: the gate then finds the answer by the call's digest. A client that simply
//! repeats its call finds the same answer, and the two cannot both use it.

mod hearing;
mod proposal;
mod state;

use serde_json::{Value, json};
use toolhost_contract::{self as contract, Answer, ErrorKind, Help, Preview, Success, ToolError};
use toolhost_store::{Ask, AskChange, AskState};

use self::hearing::{Heard, SaidHere, Writing};
use self::proposal::effect_digest;
pub(crate) use self::proposal::{Case, blank};
use self::state::{Effect, Event, Refusal, Row, Said, State, Todo, step};
use crate::arguments::Arguments;
use crate::digest::digest;
use crate::parts::{Parts, Place};
use crate::policy::{Decide, Verdict};
use crate::queue::{UnwrittenAnswer, answer_of, ask_id, refusal};
use crate::record::{Record, keepable};
use crate::registry::Registered;

pub(crate) const HINT_GO_ON: &str = "go on without it, or tell the person what you need";

/// How a call goes on once a person was asked.
pub(crate) enum Passed {
    Runs {
        arguments: Arguments,
        /// What its effect rested on when it was allowed.
        approved: Option<Value>,
        place: Place,
    },
    /// Nobody has answered yet.
    Pending(Success),
}

/// A call on its way to a person and back.
pub(crate) struct AskedCall<'c> {
    parts: &'c Parts,
    case: Case<'c>,
    /// The fence of commands here as one word, for the row of the call's start.
    fence: &'c str,
    record: &'c mut Record,
    arguments: Arguments,
    /// As its row was last seen.
    ask: Ask,
    /// What a person said where the call shows its ask, until it is written.
    said: Option<Box<SaidHere<'c>>>,
    /// The rows of that answer, once made.
    unwritten: Option<UnwrittenAnswer>,
    /// What the call would do, if that was found to be something else than what was allowed.
    effect: Option<Result<Preview, ToolError>>,
    approved: Option<Value>,
    place: Option<Place>,
    /// Why the edited arguments may not be used.
    edit: Option<ToolError>,
}

impl<'c> AskedCall<'c> {
    /// Asks people, and comes back when the call may run, or with how its caller can wait.
    ///
    /// # Errors
    /// A person said no, nobody answered in time, or what was allowed is not what would happen now.
    pub(crate) async fn pass(
        parts: &'c Parts,
        case: Case<'c>,
        arguments: Arguments,
        fence: &'c str,
        record: &'c mut Record,
    ) -> Result<Passed, ToolError> {
        let preview = parts.preview(case, &arguments).await?;
        let effect = effect_digest(&preview, tier_of(case, fence));
        let new = parts.new_approval(case, &arguments, (&preview, effect), record)?;
        let queue = &parts.config.queue;
        let listening = queue.listen();
        let ask = queue.asks().open(&new).await.map_err(refusal)?;
        record.decision = Some(json!({ "policy": case.verdict, "ask": ask_id(ask.number) }));
        let heard = parts.hear(ask.clone(), listening, case.call, case.hooks).await?;
        let (said, unwritten, effect, approved, place, edit) = (None, None, None, None, None, None);
        let call = Self { parts, case, fence, record, arguments, ask, said, unwritten, effect, approved, place, edit };
        call.go_on(heard).await
    }

    async fn go_on(mut self, heard: Heard<'c>) -> Result<Passed, ToolError> {
        let mut state = State::Asked;
        let mut event = match heard {
            Heard::Row(ask) => self.read(*ask),
            Heard::Said(said) => {
                let answer = say(&said.decision.answer);
                self.said = Some(said);
                Event::Heard(answer)
            }
        };
        loop {
            let (next, todo) = step(state, event);
            state = next;
            event = match todo {
                Todo::Look => self.look().await?,
                Todo::Check => self.check().await?,
                Todo::Write => self.write().await?,
                Todo::FindPlace => self.find_place(),
                Todo::AwaitPlace => self.await_place().await?,
                Todo::Start { written: true } => self.start().await?,
                Todo::Start { written: false } => self.write_and_start().await?,
                Todo::Run => return self.runs(),
                Todo::TellPending => return Ok(Passed::Pending(self.pending())),
                Todo::Refuse { why, told } => {
                    if told {
                        self.tell().await?;
                    }
                    return Err(self.refusal(why));
                }
            };
        }
    }

    /// What the row of the ask says.
    fn read(&mut self, ask: Ask) -> Event {
        self.ask = ask;
        // What was found before the answer that counts says nothing of the time after it.
        self.effect = None;
        Event::Read(match self.ask.state {
            AskState::Open => Row::Open,
            AskState::Expired => Row::Expired,
            AskState::Withdrawn => Row::Withdrawn,
            // Who asked the same is told the same no.
            AskState::Used if !answer_of(&self.ask).agrees() => Row::Answered(self.note_answer()),
            AskState::Used => Row::Used,
            AskState::Answered => Row::Answered(self.note_answer()),
        })
    }

    /// Notes who has said what, for the row of the call.
    fn note_answer(&mut self) -> Said {
        let word = self.ask.answer.as_ref().and_then(|answer| answer.get("say"));
        self.record.decision = Some(json!({
            "policy": self.case.verdict, "ask": ask_id(self.ask.number), "by": self.ask.answered_by, "answer": word,
        }));
        say(&answer_of(&self.ask))
    }

    fn tier(&self) -> &str {
        tier_of(self.case, self.fence)
    }

    /// A person may have looked long ago: what they allowed must still be what would happen.
    async fn look(&mut self) -> Result<Event, ToolError> {
        let now = match (self.effect.take(), &self.said) {
            (Some(found), _) => found,
            (None, None) => self.parts.preview(self.case, &self.arguments).await,
            (None, Some(said)) => {
                let (unwritten, now) = tokio::join!(
                    self.parts.prepare(said, self.arguments.command()),
                    self.parts.preview(self.case, &self.arguments),
                );
                self.unwritten = Some(unwritten?);
                now
            }
        };
        Ok(Event::Looked(match now {
            Ok(now) if effect_digest(&now, self.tier()) == self.ask.effect_digest => {
                if let Some(unwritten) = &self.unwritten {
                    self.record.decision = Some(json!({
                        "policy": self.case.verdict, "ask": ask_id(self.ask.number), "by": unwritten.by,
                        "answer": unwritten.answer.get("say"),
                    }));
                }
                self.approved = Some(now.rests_on);
                Effect::Same
            }
            other => {
                let effect = if other.is_ok() { Effect::Changed } else { Effect::Unknown };
                self.effect = Some(other);
                effect
            }
        }))
    }

    /// What a person typed passes the same checks as what a model sent.
    async fn check(&mut self) -> Result<Event, ToolError> {
        let Answer::AllowEdited { arguments } = answer_of(&self.ask) else { return Ok(Event::Checked(false)) };
        match self.admitted(arguments).await {
            Ok(arguments) => {
                let config = &self.parts.config;
                self.record.arguments = keepable(&arguments.json, &config.redactor, config.limits.audit_string_bytes);
                self.record.digest = Some(digest(&self.case.tool.info, &arguments.json, self.case.call)?);
                self.arguments = arguments;
                self.approved = None;
                Ok(Event::Checked(true))
            }
            Err(error) => {
                self.edit = Some(error);
                Ok(Event::Checked(false))
            }
        }
    }

    async fn admitted(&self, arguments: Value) -> Result<Arguments, ToolError> {
        let Case { tool, profile, hooks, .. } = self.case;
        let arguments = tool.given(&arguments, None);
        tool.check(&arguments)?;
        let arguments = self.parts.analyze(tool, profile, arguments, hooks).await?;
        let verdict = profile.decide(tool, &arguments.looked(tool));
        if verdict.decide == Decide::Deny { Err(denied_by_policy(tool, &verdict)) } else { Ok(arguments) }
    }

    /// Writes down what a person has said here.
    async fn write(&mut self) -> Result<Event, ToolError> {
        let Some(mut said) = self.said.take() else { return Err(lost()) };
        let unwritten = match self.unwritten.take() {
            Some(unwritten) => unwritten,
            None => self.parts.prepare(&said, self.arguments.command()).await?,
        };
        Ok(match self.parts.write(unwritten, &mut said).await? {
            Writing::Done => {
                self.ask = said.ask;
                Event::Written(self.note_answer())
            }
            Writing::TooLate(ask) => self.read(*ask),
        })
    }

    fn find_place(&mut self) -> Event {
        if self.place.is_none() {
            self.place = self.parts.free_place(self.case.tool, self.case.hooks);
        }
        Event::Place(self.place.is_some())
    }

    async fn await_place(&mut self) -> Result<Event, ToolError> {
        self.place = Some(self.parts.place(self.case.tool, self.case.hooks).await?);
        Ok(Event::Place(true))
    }

    /// Step 8: the call's start and its use of the answer are one commit.
    async fn start(&mut self) -> Result<Event, ToolError> {
        let row = self.record.started(self.case.call, self.fence);
        let change = AskChange::Use { number: self.ask.number };
        self.parts.config.audit.append_with(row, change).await.map_err(refusal)?;
        Ok(self.started())
    }

    /// The same, with the answer itself, which was just given. Somebody else may have been faster: then what the row says holds.
    async fn write_and_start(&mut self) -> Result<Event, ToolError> {
        let (Some(mut said), Some(unwritten)) = (self.said.take(), self.unwritten.take()) else { return Err(lost()) };
        let row = self.record.started(self.case.call, self.fence);
        Ok(match self.parts.write_and_use(unwritten, &mut said, row).await? {
            Writing::Done => self.started(),
            Writing::TooLate(ask) => self.read(*ask),
        })
    }

    fn started(&mut self) -> Event {
        self.record.answer = Some(self.ask.number);
        self.record.started = true;
        Event::Started
    }

    fn runs(self) -> Result<Passed, ToolError> {
        let place = self.place.ok_or_else(lost)?;
        Ok(Passed::Runs { arguments: self.arguments, approved: self.approved, place })
    }

    /// An answer that lets nothing run is told once: who asks the same again asks a person again.
    async fn tell(&mut self) -> Result<(), ToolError> {
        let (call, number) = (self.case.call, self.ask.number);
        let taken = self.parts.config.queue.asks().take(call.scope.project_id, number, call.id.as_str()).await;
        // Where another call has used it, what became of that one stays with it.
        if taken.map_err(refusal)? {
            self.record.answer = Some(number);
        }
        Ok(())
    }

    fn pending(&self) -> Success {
        let config = &self.parts.config;
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
        Success { data, text, revision: None, workflow: None }
    }

    fn refusal(self, why: Refusal) -> ToolError {
        let name = &self.case.tool.info.name;
        let denied = |message: String| ToolError::new(ErrorKind::Denied, message).hint(HINT_GO_ON);
        match why {
            Refusal::Denied => denied_by_person(name, &answer_of(&self.ask)),
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
            Refusal::Unknown => self.effect.and_then(Result::err).unwrap_or_else(lost),
            Refusal::Edit => self.edit.unwrap_or_else(lost),
            Refusal::Confused => lost(),
        }
    }
}

/// The fence that a call's program would run in: what one person allowed in a strong fence is another thing in a weak one.
fn tier_of<'f>(case: Case<'_>, fence: &'f str) -> &'f str {
    let facts = &case.tool.info.facts;
    if facts.runs_program || facts.effect == contract::Effect::Executes { fence } else { "" }
}

/// What is missing here the states have promised.
fn lost() -> ToolError {
    ToolError::internal("a part of an asked call is missing")
}

fn say(answer: &Answer) -> Said {
    match answer {
        Answer::Allow => Said::Yes,
        Answer::AllowEdited { .. } => Said::Edited,
        _ => Said::No,
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

pub(crate) fn denied_by_policy(tool: &Registered, verdict: &Verdict) -> ToolError {
    let message = format!("policy denies this call of `{}`: {}", tool.info.name, verdict.why);
    ToolError::new(ErrorKind::Denied, message).hint("do the task another way, or tell the person what you need")
}
