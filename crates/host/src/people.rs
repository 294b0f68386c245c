//! What a tool asks people while it runs, and the wait for an answer that lets an earlier call run.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use toolhost_contract::{
    AGENT_DOOR, Answer, Asked, BoxFuture, Call, ErrorKind, Outcome, People, Question, ToolError, Waited, Wanted,
};
use toolhost_store::{Ask, AskEnd, AskKind, AskState};

use crate::asking::{HINT_GO_ON, blank, denied_by_person, telling};
use crate::gate_state::{GateState, cancelled};
use crate::hooks::Hooks;
use crate::observe::PersonAnswer;
use crate::queue::{LOOK_EVERY, answer_of, ask_id, ask_number, refusal};
use crate::registry::Registered;
use crate::shown::Shown;

/// Longest subject that is kept as it is.
const SUBJECT_BYTES_MAX: usize = 1024;

/// Runs a stored call through the whole gate.
pub(crate) trait RunStoredCall: Send + Sync {
    fn run_stored(&self, call: Call, hooks: Hooks) -> BoxFuture<'_, Outcome>;
}

/// The people behind the host, as one call sees them.
pub(crate) struct CallPeople<'a> {
    pub(crate) state: &'a GateState,
    /// Runs a call that was allowed.
    pub(crate) gate: &'a dyn RunStoredCall,
    pub(crate) call: &'a Call,
    pub(crate) hooks: &'a Hooks,
    pub(crate) tool: &'a Registered,
    /// Of the call: a review that is asked again by the same call is the same review.
    pub(crate) digest: String,
    /// The ask whose answer the call has used.
    pub(crate) used: OnceLock<(i64, PersonAnswer)>,
    /// How long the call has waited for a person.
    pub(crate) waited: Mutex<Duration>,
}

impl People for CallPeople<'_> {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Asked, ToolError>> {
        Box::pin(self.put(question))
    }

    fn wait<'a>(&'a self, approval_id: &'a str, timeout_ms: u64) -> BoxFuture<'a, Result<Waited, ToolError>> {
        Box::pin(self.await_answer(approval_id, timeout_ms))
    }
}

impl<'a> CallPeople<'a> {
    pub(crate) fn of(
        (state, gate): (&'a GateState, &'a dyn RunStoredCall),
        call: &'a Call,
        hooks: &'a Hooks,
        tool: &'a Registered,
        digest: String,
    ) -> Self {
        Self { state, gate, call, hooks, tool, digest, used: OnceLock::new(), waited: Mutex::default() }
    }

    pub(crate) fn waited(&self) -> Duration {
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what is waited for as waiting for a person.
    async fn waiting<T>(&self, waited_for: impl Future<Output = T>) -> T {
        let clock = &self.state.config.clock;
        let since = clock.monotonic();
        let came = waited_for.await;
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner) += clock.monotonic().saturating_sub(since);
        came
    }

    async fn put(&self, question: &Question) -> Result<Asked, ToolError> {
        let (queue, scope) = (&self.state.config.queue, &self.call.scope);
        let subject = subject_key(&question.subject);
        let earlier = queue.asks().rounds(scope.project_id, &subject).await.map_err(ToolError::from)?;
        let round = round(&earlier);
        let kind = match question.wanted {
            Wanted::PassOrEdit | Wanted::PassEditOrFeedback => AskKind::Review,
            Wanted::YesOrNo | Wanted::Text => AskKind::Question,
        };
        // Members who do not answer are shown no secret; those who answer are shown all of it apart.
        let redactor = &self.state.config.redactor;
        let masked = redactor.spans(&question.title).len();
        let mut title = question.title.clone();
        redactor.redact(&mut title);
        let shown = Shown {
            kind,
            summary: title.clone(),
            title,
            masked,
            unmasked: if masked > 0 { question.title.clone() } else { String::new() },
            detail: question.text.clone(),
            wanted: Some(question.wanted),
            choices: question.choices.clone(),
            round,
            ..blank(self.call, self.tool)
        };
        let text = hex::encode(Sha256::digest(question.text.as_bytes()));
        let new = self.state.new_ask(self.call, self.digest.clone(), text, Some(subject), round, &shown)?;
        let listening = queue.listen();
        let ask = queue.asks().open(&new).await.map_err(refusal)?;
        let ask = self.waiting(self.state.put_to_people(ask, listening, self.call, self.hooks)).await?;
        match ask.state {
            AskState::Open => Ok(Asked::Pending(queue.pending(&ask))),
            AskState::Answered => {
                let taken = queue.asks().take(scope.project_id, ask.number, self.call.id.as_str()).await;
                if !taken.map_err(refusal)? {
                    let message = format!("{} has been used by another call", ask_id(ask.number));
                    return Err(ToolError::new(ErrorKind::Conflict, message));
                }
                // If the tool asks twice, its outcome is stored with the first ask.
                let answered_at_ms = ask.answered_at_ms.unwrap_or(ask.created_at_ms);
                let person = PersonAnswer::new(answer_of(&ask).agrees(), ask.created_at_ms, answered_at_ms);
                let _ = self.used.set((ask.number, person));
                let by = ask.answered_by.clone().unwrap_or_default();
                Ok(Asked::Answered { answer: answer_of(&ask), by, round: ask.round })
            }
            AskState::Expired if ask.end() == AskEnd::Unused => Err(ToolError::new(
                ErrorKind::Denied,
                "a person answered, and the answer expired before this call used it",
            )
            .hint(HINT_GO_ON)),
            AskState::Expired => Err(ToolError::new(ErrorKind::Denied, "nobody answered in time").hint(HINT_GO_ON)),
            AskState::Withdrawn | AskState::Used => {
                Err(ToolError::new(ErrorKind::Denied, "nobody is here to answer").hint(HINT_GO_ON))
            }
        }
    }

    async fn await_answer(&self, approval_id: &str, timeout_ms: u64) -> Result<Waited, ToolError> {
        let (queue, project) = (&self.state.config.queue, self.call.scope.project_id);
        let unknown = || ToolError::new(ErrorKind::NotFound, format!("there is no `{approval_id}` of yours"));
        let number = ask_number(approval_id).ok_or_else(unknown)?;
        let found = queue.asks().get(project, number).await.map_err(ToolError::from)?.ok_or_else(unknown)?;
        let stored: Call = serde_json::from_value(found.call.clone()).map_err(ToolError::internal)?;
        // The same error as for an unknown id, so that a caller cannot probe for other callers' asks.
        let mine = stored.scope.user_id == self.call.scope.user_id
            && stored.scope.project_id == project
            && stored.caller.profile == self.call.caller.profile
            && stored.caller.kind == self.call.caller.kind
            && (stored.caller.door != AGENT_DOOR || stored.scope.session_id == self.call.scope.session_id);
        if !mine {
            return Err(unknown());
        }
        let patience = Duration::from_millis(timeout_ms);
        let until = Instant::now() + patience;
        let settled = queue.settled(project, number, None, Some(patience), &self.hooks.cancel);
        let ask = self.waiting(async {
            tokio::select! {
                ask = telling(number, &*self.hooks.progress, settled) => ask,
                () = self.hooks.let_go.cancelled() => Ok(found),
            }
        });
        let ask = ask.await?;
        match ask.state {
            AskState::Open => Ok(Waited::Pending(queue.pending(&ask))),
            AskState::Expired => Ok(Waited::Expired),
            AskState::Withdrawn => Ok(Waited::Withdrawn),
            AskState::Used => self.used(&ask, until).await,
            AskState::Answered => {
                self.check_its_own(&ask, &stored).await?;
                let id = self.state.config.ids.call_id();
                // Nobody is shown anything anew: the answer is there.
                let reader = self.call.scope.session_id.clone();
                let origin = self.hooks.origin.as_ref().map(|origin| origin.of_inner_call());
                let hooks = Hooks { presenter: None, reader, origin, ..self.hooks.clone() };
                let outcome = self.gate.run_stored(Call { id, ..stored }, hooks).await;
                let mut finished = serde_json::to_value(&outcome).map_err(ToolError::internal)?;
                if let Value::Object(fields) = &mut finished {
                    fields.insert("text".to_owned(), outcome.text.into());
                }
                Ok(Waited::Finished { outcome: finished })
            }
        }
    }

    /// Refuses a call that another session made whose host is still alive.
    async fn check_its_own(&self, ask: &Ask, stored: &Call) -> Result<(), ToolError> {
        let same = stored.scope.session_id == self.call.scope.session_id
            && stored.caller.persona == self.call.caller.persona
            && stored.scope.ticket_id == self.call.scope.ticket_id;
        let alive = match &ask.host {
            _ if same => false,
            Some(host) => self.state.config.audit.is_alive(host).await.map_err(ToolError::from)?,
            None => false,
        };
        if !alive {
            return Ok(());
        }
        let message = format!("{} has its answer, and is for the session that asked to run", ask_id(ask.number));
        Err(ToolError::new(ErrorKind::Conflict, message).hint("make the call from this session"))
    }

    /// What became of the call that used the answer; while it runs, it is waited for.
    async fn used(&self, ask: &Ask, until: Instant) -> Result<Waited, ToolError> {
        let (asks, project) = (self.state.config.queue.asks(), self.call.scope.project_id);
        let by = ask.used_by.as_deref().unwrap_or_default();
        let mut looked_again = false;
        loop {
            let running = asks.is_running(project, by).await.map_err(ToolError::from)?;
            // Read after `is_running`: the outcome is stored before the call is marked as ended.
            let now = asks.get(project, ask.number).await.map_err(ToolError::from)?;
            if let Some(outcome) = now.and_then(|ask| ask.outcome) {
                return Ok(Waited::Finished { outcome });
            }
            if !running {
                // A call that may not run uses its answer and ends without ever having run.
                if ask.kind == AskKind::Approval && !answer_of(ask).agrees() {
                    return Err(denied_by_person(&ask.tool, &answer_of(ask)));
                }
                if looked_again {
                    return Ok(Waited::Unknown);
                }
                looked_again = true;
            }
            if running && Instant::now() >= until {
                return Ok(Waited::Running);
            }
            // Its host may have died since; without this the loop would not notice.
            self.state.config.audit.close_orphans().await.map_err(ToolError::from)?;
            tokio::select! {
                () = tokio::time::sleep_until(next_look(until, running)) => {}
                () = self.hooks.cancel.cancelled() => return Err(cancelled()),
            }
        }
    }
}

/// The key that a subject is looked up by. Long subjects and those with NUL are hashed: indexes cannot hold them.
fn subject_key(subject: &str) -> String {
    if subject.len() <= SUBJECT_BYTES_MAX && !subject.contains('\0') {
        return subject.to_owned();
    }
    format!("sha256:{}", hex::encode(Sha256::digest(subject.as_bytes())))
}

/// Which round it is since the last one that settled the matter. The same question asked again is the same round.
fn round(earlier: &[Ask]) -> i64 {
    let settled = earlier.iter().rposition(|ask| {
        ask.answer.is_some() && matches!(answer_of(ask), Answer::Pass | Answer::Edit { .. } | Answer::Cancel)
    });
    let since = &earlier[settled.map_or(0, |n| n + 1)..];
    let answered = since.iter().filter(|ask| ask.answer.is_some()).count();
    i64::try_from(answered).unwrap_or(i64::MAX).saturating_add(1)
}

/// When it is looked again: not after the caller's time, unless that look decides what is said.
fn next_look(until: Instant, running: bool) -> Instant {
    let next = Instant::now() + LOOK_EVERY;
    if running { until.min(next) } else { next }
}
