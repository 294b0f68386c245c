//! One run of the loop: what it knows of the session, what the model says next, and what stops it from outside.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{Clock, ErrorCode, Journal, JournalError, Signal};

use super::event::{Event, Watch};
use super::lines::Lines;
use super::noticed::{AskedBefore, Sets};
use super::{
    AnswerForm, CHECK_CALLS, CallSummary, LoopLimits, Opening, REPAIR_REPLIES, SayStep, TurnStep, step, tally,
};
use crate::budget::{Aging, Calibration, Counter, Tally, Weight, age, strip};
use crate::host::{Ends, ToolHost};
use crate::model::{Arguments, Delta, Follow, Message, Model, ModelError, Reply, Request, Usage, cost, is_too_deep};

/// How many replies before the limit a model is told of it.
const LAST_REPLIES: u32 = 2;
/// Bytes of a model's message that later turns carry whole.
const SAID_BYTES_MAX: usize = 64 * 1024;
/// Characters of a tool's name, as a model writes it.
const TOOL_NAME_CHARS_MAX: usize = 100;

/// A session as its journal tells it.
pub struct SessionState<'a> {
    pub(super) journal: &'a dyn Journal,
    pub(super) opening: Opening,
    pub(super) clock: &'a dyn Clock,
}

/// How whoever runs a session stops it.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// To stop after the call under way, or before it where it waits for a person, and go on later.
    pub pause: CancellationToken,
    /// To end the call under way, stop, and go on later.
    pub interrupt: CancellationToken,
    /// To stop at once, for good.
    pub cancel: CancellationToken,
}

/// Why the loop ends without an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Halt {
    Paused,
    Cancelled,
    Limited(ErrorCode, String),
    Failed(ErrorCode, String),
    Journal(JournalError),
}

impl From<JournalError> for Halt {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl<'a> SessionState<'a> {
    /// The session that a journal is of.
    ///
    /// # Errors
    /// If the journal does not begin with an [`Opening`].
    pub fn open(journal: &'a dyn Journal, clock: &'a dyn Clock) -> Result<Self, JournalError> {
        let opening = recall(journal, step::OPEN)?;
        let opening = opening.ok_or_else(|| JournalError::Failed("the session has no beginning".to_owned()))?;
        Ok(Self { journal, opening, clock })
    }

    #[must_use]
    pub fn opening(&self) -> &Opening {
        &self.opening
    }
}

/// What stops a run from outside.
pub(super) struct Stop {
    control: Control,
    /// The model is not waited for any more, and no further call begins.
    pub(super) soft: CancellationToken,
    /// A pause lets go of people: one may take days to answer.
    pub(super) calls: Ends,
    why: Mutex<Option<Halt>>,
    /// How long the session had run before; the limit of its time counts that.
    before_ms: Mutex<u64>,
}

impl Stop {
    pub(super) fn new(control: &Control) -> Self {
        Self {
            control: control.clone(),
            soft: CancellationToken::new(),
            calls: Ends::default(),
            why: Mutex::default(),
            before_ms: Mutex::default(),
        }
    }

    pub(super) async fn listen(&self, journal: &dyn Journal, time_max: Option<Duration>) -> std::convert::Infallible {
        let late = async {
            let Some(max) = time_max else { return std::future::pending().await };
            // The recalled part of the session has no time of its own: it is over before this fires.
            tokio::task::yield_now().await;
            let before = Duration::from_millis(*self.before_ms.lock().unwrap_or_else(PoisonError::into_inner));
            tokio::time::sleep(max.saturating_sub(before)).await;
        };
        tokio::pin!(late);
        let mut paused = false;
        loop {
            let interrupted = self.calls.cancel.is_cancelled();
            let (halt, ends_calls) = tokio::select! {
                () = self.control.cancel.cancelled() => (Halt::Cancelled, true),
                () = self.control.interrupt.cancelled(), if !interrupted => (Halt::Paused, true),
                () = self.control.pause.cancelled(), if !paused => (Halt::Paused, false),
                signal = journal.signal(paused.then_some(Signal::Pause)) => match signal {
                    Signal::Pause => (Halt::Paused, false),
                    Signal::Cancel => (Halt::Cancelled, true),
                },
                () = &mut late => {
                    let limit = time_max.unwrap_or_default().as_secs_f32();
                    (Halt::Limited(ErrorCode::TimeLimit, format!("the session has run for {limit} s")), true)
                }
            };
            paused = true;
            let is_for_good = halt != Halt::Paused;
            self.note(halt);
            self.soft.cancel();
            if ends_calls {
                self.calls.cancel.cancel();
            }
            if is_for_good {
                return std::future::pending().await;
            }
            self.calls.let_go.cancel();
        }
    }

    /// A pause may still become a cancel; nothing else changes its mind.
    fn note(&self, halt: Halt) {
        let mut why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        if why.as_ref().is_none_or(|why| *why == Halt::Paused) {
            *why = Some(halt);
        }
    }

    /// Whether to go on.
    pub(super) fn check(&self) -> Result<(), Halt> {
        if !self.soft.is_cancelled() {
            return Ok(());
        }
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        Err(why.clone().unwrap_or(Halt::Cancelled))
    }
}

/// One run of the loop.
pub(super) struct Run<'a> {
    pub(super) session: &'a SessionState<'a>,
    model: &'a dyn Model,
    pub(super) host: &'a ToolHost,
    pub(super) limits: &'a LoopLimits,
    pub(super) watch: &'a Arc<dyn Watch>,
    pub(super) stop: &'a Stop,
    pub(super) messages: Vec<Message>,
    /// Arguments of calls that stand shortened in the messages.
    pub(super) put_away: Vec<Value>,
    /// Lines of what calls answered.
    pub(super) answered: Lines,
    /// Calls since something was last changed, and what became of staged sets.
    pub(super) asked_before: AskedBefore,
    pub(super) sets: Sets,
    pub(super) calls: Vec<CallSummary>,
    /// Turns of the session so far, and messages of people before the next one.
    pub(super) turn: u32,
    pub(super) heard: u32,
    /// Turns that this run has asked for since a person last said something, and answers sent back since.
    asked: u32,
    pub(super) repairs_since: u32,
    pub(super) repairs: u32,
    pub(super) usage: Usage,
    pub(super) cost: Option<f64>,
    /// Of the whole conversation; while that is within the window for certain, no tokens are counted.
    weight: Weight,
    /// The tokens of the conversation, as they are estimated, and how far estimates were from what was reported.
    tally: Option<Tally>,
    counter: Counter,
    calibration: Calibration,
    /// None while nothing was counted.
    estimate: Option<u64>,
    /// How long earlier runs took, and when this one began.
    pub(super) before_ms: u64,
    began: Duration,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        session: &'a SessionState<'a>,
        model: &'a dyn Model,
        host: &'a ToolHost,
        limits: &'a LoopLimits,
        watch: &'a Arc<dyn Watch>,
        stop: &'a Stop,
    ) -> Self {
        Self {
            weight: Weight::of_base(&session.opening.system, host.catalog().specs()),
            tally: None,
            counter: Counter::for_model(&model.facts().name),
            calibration: Calibration::default(),
            estimate: None,
            session,
            model,
            host,
            limits,
            watch,
            stop,
            messages: session.opening.messages.clone(),
            put_away: Vec::new(),
            answered: Lines::default(),
            asked_before: AskedBefore::default(),
            sets: Sets::default(),
            calls: Vec::new(),
            turn: 0,
            heard: 0,
            asked: 0,
            repairs_since: 0,
            repairs: 0,
            usage: Usage::default(),
            cost: model.facts().price.map(|_| 0.0),
            before_ms: 0,
            began: session.clock.monotonic(),
        }
    }

    /// The lines of all texts that calls have carried.
    pub(super) fn written(&self) -> Lines {
        let mut lines = Lines::default();
        self.arguments().for_each(|arguments| lines.add(arguments));
        lines
    }

    /// These, those that calls have answered with, and those of the context that the session began with.
    pub(super) fn seen(&self) -> Lines {
        let mut lines = self.answered.clone();
        self.arguments().for_each(|arguments| lines.add(arguments));
        let context = self.session.opening.system.iter().flat_map(|block| block.text.lines());
        // A field of the context in each line: see `render_envelope`.
        for line in context.filter(|line| line.starts_with('"')) {
            if let Ok(field) = serde_json::from_str::<Value>(&format!("{{{}}}", line.trim_end_matches(','))) {
                lines.add(&field);
            }
        }
        lines
    }

    /// The arguments of all calls so far.
    fn arguments(&self) -> impl Iterator<Item = &Value> {
        let said = self.messages.iter().filter_map(|message| match message {
            Message::Assistant { calls, .. } => Some(calls),
            _ => None,
        });
        let said = said.flatten().filter_map(|call| match &call.arguments {
            Arguments::Json(arguments) => Some(arguments),
            Arguments::Malformed(_) => None,
        });
        said.chain(&self.put_away)
    }

    /// Takes what a person says before the next turn. Says whether somebody did.
    pub(super) fn hear(&mut self) -> Result<bool, Halt> {
        let mut heard = false;
        while let Some(say) = recall::<SayStep>(self.session.journal, &step::say(self.turn, self.heard))? {
            self.add_message(say);
            heard = true;
        }
        Ok(heard)
    }

    /// The same, and takes what a person has said meanwhile where no run before has come further: what a run has heard stands where it
    /// heard it, and turns may follow that.
    pub(super) async fn hear_now(&mut self) -> Result<bool, Halt> {
        if self.hear()? {
            return Ok(true);
        }
        let mut heard = false;
        while let Some(text) = self.session.journal.take_message(&step::say(self.turn, self.heard)).await? {
            self.add_message(SayStep { text, since: None });
            heard = true;
        }
        Ok(heard)
    }

    fn add_message(&mut self, say: SayStep) {
        self.watch.event(&Event::Message { text: say.text.clone() });
        let content = say.since.map_or(say.text.clone(), |since| format!("{since}\n\n{}", say.text));
        self.messages.push(Message::User { content });
        (self.asked, self.repairs_since) = (0, 0);
        self.heard += 1;
    }

    /// What the model says next: what it said in an earlier run, or now.
    pub(super) async fn take_turn(&mut self, turn: u32) -> Result<(TurnStep, bool), Halt> {
        let name = step::turn(turn);
        let before = recall::<TurnStep>(self.session.journal, &name)?;
        if before.is_none() {
            // A run that stops here hears nothing more: what waits is for the next one.
            self.stop.check()?;
            self.hear_now().await?;
        }
        self.age();
        if let Some(said) = before {
            self.note_turn(&said);
            self.ran_before(said.elapsed_ms);
            self.tell_turn(turn, &said, true);
            return Ok((said, true));
        }
        self.stop.check()?;
        self.check_limits()?;
        let began = self.session.clock.monotonic();
        let mut reply = self.ask(turn).await?;
        self.asked += 1;
        bound(&mut reply, self.limits.calls_per_turn);
        for (n, call) in reply.calls.iter_mut().enumerate() {
            // Providers give ids that are missing, or the same twice. Ours name the step, so the result can be found.
            call.id = step::call(turn, n);
        }
        reply.usage = self.metered(&reply);
        let ids = reply.calls.len().max(if reply.calls.is_empty() { CHECK_CALLS } else { 0 });
        let said = TurnStep {
            call_ids: (0..ids).map(|_| self.host.new_id()).collect(),
            // A reply of which nobody says what it took has no price either.
            cost: self.model.facts().price.filter(|_| reply.usage.total() > 0).map(|price| cost(&reply.usage, &price)),
            ms: millis(self.session.clock.monotonic().saturating_sub(began)),
            elapsed_ms: self.elapsed_ms(),
            reply,
        };
        self.note_turn(&said);
        let standing = tally(turn + 1, &self.usage, self.cost, said.elapsed_ms);
        let value = serde_json::to_value(&said).map_err(|error| JournalError::Failed(error.to_string()))?;
        self.session.journal.keep(&name, value, Some(standing)).await?;
        self.tell_turn(turn, &said, false);
        Ok((said, false))
    }

    /// How long earlier runs took, as far as is recalled; the timer of this one counts it.
    pub(super) fn ran_before(&mut self, ms: u64) {
        self.before_ms = ms;
        *self.stop.before_ms.lock().unwrap_or_else(PoisonError::into_inner) = ms;
    }

    fn note_turn(&mut self, said: &TurnStep) {
        let (told, usage) = (said.reply.usage, self.metered(&said.reply));
        if let Some(estimate) = self.estimate.filter(|_| told.input_tokens > 0 && !told.estimated) {
            self.calibration.observe(estimate, told.input_tokens);
            self.counter = self.counter.calibrated(self.calibration);
        }
        self.usage.add(&usage);
        let price = || self.model.facts().price.filter(|_| usage.estimated);
        // One turn without a price makes the sum unknown.
        self.cost = match (self.cost, said.cost.or_else(|| price().map(|price| cost(&usage, &price)))) {
            (Some(sum), Some(cost)) => Some(sum + cost),
            _ => None,
        };
    }

    /// What a reply took. Where its server does not say and a limit has to know, it is counted.
    fn metered(&mut self, reply: &Reply) -> Usage {
        let is_limited = self.limits.tokens_max.is_some() || self.limits.cost_max.is_some();
        if reply.usage.total() > 0 || !is_limited {
            return reply.usage;
        }
        let input_tokens = self.counted();
        let (mut said, counter) = (Tally::default(), &self.counter);
        said.update(&[spoken(reply)], counter);
        Usage { input_tokens, output_tokens: said.total(counter), estimated: true, ..Usage::default() }
    }

    fn tell_turn(&self, turn: u32, said: &TurnStep, replayed: bool) {
        self.watch.event(&said.event(turn, replayed));
    }

    async fn ask(&mut self, turn: u32) -> Result<Reply, Halt> {
        self.check_window()?;
        self.watch.event(&Event::Asked { turn });
        let urged = self.urged();
        let request = Request {
            system: &self.session.opening.system,
            messages: urged.as_deref().unwrap_or(&self.messages),
            tools: self.host.catalog().specs(),
            output_tokens_max: Some(self.model.facts().output_tokens),
            json: !matches!(self.session.opening.answer, AnswerForm::Text),
        };
        let follow = Follower { turn, watch: &**self.watch };
        match self.model.reply(request, &follow, &self.stop.soft).await {
            Ok(reply) => {
                // An answer that came while somebody stopped the session is kept all the same: it is paid for.
                Ok(reply)
            }
            Err(ModelError::Cancelled) => {
                self.stop.check()?;
                Err(Halt::Cancelled)
            }
            Err(error) => Err(Halt::Failed(error.code(), error.to_string())),
        }
    }

    /// Puts away old results and long arguments of old calls, where the conversation has become long; the same in every run
    /// of the session.
    fn age(&mut self) {
        let mut policy = Aging::of_window(self.model.facts().window);
        policy.reread = self.host.reread();
        let room = self.room();
        if self.tally.is_none() && self.weight.tokens_max(&self.messages) <= policy.high.min(room) {
            return;
        }
        let tokens_before = self.counted();
        let Some(tally) = &mut self.tally else { return };
        let (counter, messages) = (&self.counter, &mut self.messages);
        let mut aged = age(messages, tally, counter, policy);
        if tally.total(counter) > room {
            // One turn alone may bring more than the window holds: then no result is too new to be put away.
            let all = Aging { high: room, low: room * 3 / 4, turns_kept: 0, ..policy };
            aged.extend(age(messages, tally, counter, all));
            if tally.total(counter) > room {
                // What is left of each call is short, but there are very many.
                aged.extend(strip(messages, tally, counter, Aging { turns_kept: 1, ..all }));
            }
        }
        let tokens_after = tally.total(counter);
        self.estimate = Some(tokens_after);
        if !aged.is_empty() {
            self.watch.event(&Event::Aged { results: aged.len(), tokens_before, tokens_after });
        }
        self.put_away.extend(aged.into_iter().filter_map(|aged| aged.arguments));
    }

    /// Tokens of the conversation so far.
    fn counted(&mut self) -> u64 {
        let counter = &self.counter;
        let tally = self.tally.get_or_insert_with(|| {
            let mut tally = Tally::default();
            tally.set_base(&self.session.opening.system, self.host.catalog().specs(), counter);
            tally
        });
        tally.update(&self.messages, counter);
        tally.total(counter)
    }

    /// Tokens that a request may have.
    fn room(&self) -> u64 {
        let facts = self.model.facts();
        u64::from(facts.window).saturating_sub(u64::from(facts.output_tokens))
    }

    fn check_window(&self) -> Result<(), Halt> {
        let (window, room) = (self.model.facts().window, self.room());
        let Some(estimate) = self.estimate.filter(|estimate| *estimate > room) else { return Ok(()) };
        let message = format!(
            "the conversation has about {estimate} tokens when all is put away that may be; {room} of {window} are left \
             for it; `session fork --at` goes back to an earlier turn",
        );
        Err(Halt::Failed(ErrorCode::ContextBudget, message))
    }

    fn check_limits(&self) -> Result<(), Halt> {
        let limited = |code, message| Err(Halt::Limited(code, message));
        let limits = self.limits;
        if let Some(max) = limits.time_max.filter(|max| self.elapsed_ms() >= millis(*max)) {
            return limited(ErrorCode::TimeLimit, format!("the session has run for {} s", max.as_secs_f32()));
        }
        if self.replies_left() == 0 {
            let message = format!("the model was asked {} times without an answer", limits.max_iterations);
            return limited(ErrorCode::LoopLimit, message);
        }
        if let Some(max) = limits.tokens_max.filter(|max| self.usage.total() >= *max) {
            let message = format!("the session has used {} tokens; {max} is the most", self.usage.total());
            return limited(ErrorCode::TokenLimit, message);
        }
        match (limits.cost_max, self.cost) {
            (Some(max), Some(cost)) if cost >= max => {
                limited(ErrorCode::CostLimit, format!("the session has cost ${cost:.4}; ${max:.4} is the most"))
            }
            (Some(_), None) => {
                let message = "what this model costs is not known, so its cost cannot be limited".to_owned();
                limited(ErrorCode::CostLimit, message)
            }
            _ => Ok(()),
        }
    }

    fn replies_left(&self) -> u32 {
        let repairs = REPAIR_REPLIES.saturating_mul(self.repairs_since);
        self.limits.max_iterations.saturating_add(repairs).saturating_sub(self.asked)
    }

    /// The conversation, with a message at its end that says how few replies are left. The session does not keep that message,
    /// because each resume gives the model new replies.
    fn urged(&self) -> Option<Vec<Message>> {
        let left = self.replies_left();
        if left > LAST_REPLIES || self.asked == 0 {
            return None;
        }
        let content = match left {
            1 => "This is your last reply: give your final answer now, and call nothing.".to_owned(),
            left => format!("You have {left} replies left, this one included. Come to your final answer."),
        };
        let mut messages = self.messages.clone();
        messages.push(Message::User { content });
        Some(messages)
    }

    pub(super) fn elapsed_ms(&self) -> u64 {
        let now = self.session.clock.monotonic().saturating_sub(self.began);
        self.before_ms.saturating_add(millis(now))
    }
}

/// A reply as a part of the conversation.
fn spoken(reply: &Reply) -> Message {
    Message::Assistant { content: reply.text.clone(), calls: reply.calls.clone(), signatures: reply.signatures.clone() }
}

/// A reply as later turns carry it: the beginning and the end of a text that would not fit into a window for good.
pub(super) fn remembered(reply: &Reply) -> Message {
    if reply.text.len() <= SAID_BYTES_MAX {
        return spoken(reply);
    }
    let head = &reply.text[..reply.text.floor_char_boundary(SAID_BYTES_MAX / 2)];
    let tail = &reply.text[reply.text.ceil_char_boundary(reply.text.len() - SAID_BYTES_MAX / 4)..];
    let left_out = reply.text.len() - head.len() - tail.len();
    let text = format!("{head}\n[{left_out} bytes of this message are left out here]\n{tail}");
    spoken(&Reply { text, ..reply.clone() })
}

/// What a model may say is bounded where it comes in: what is kept must be readable for good, and fit into a request.
fn bound(reply: &mut Reply, calls_max: usize) {
    // One more than are run: it is answered with how many may be.
    let dropped = reply.calls.len().saturating_sub(calls_max + 1);
    if dropped > 0 {
        tracing::warn!(dropped, "a turn asked for more calls than are kept");
        reply.calls.truncate(calls_max + 1);
    }
    for call in &mut reply.calls {
        if let Some((end, _)) = call.name.char_indices().nth(TOOL_NAME_CHARS_MAX) {
            call.name.truncate(end);
        }
        if let Arguments::Json(arguments) = &call.arguments
            && is_too_deep(arguments)
        {
            call.arguments = Arguments::Malformed(arguments.to_string());
        }
    }
}

/// The pieces of a reply, as events.
struct Follower<'a> {
    turn: u32,
    watch: &'a dyn Watch,
}

impl Follow for Follower<'_> {
    fn delta(&self, delta: Delta<'_>) {
        let turn = self.turn;
        let event = match delta {
            Delta::Text(text) => Event::Text { turn, text: text.to_owned() },
            Delta::Thought(text) => Event::Thought { turn, text: text.to_owned() },
            Delta::Again { attempt, wait_ms, why } => Event::Again { turn, attempt, wait_ms, why: why.to_owned() },
            // Calls are told when they are whole.
            Delta::Call { .. } => return,
        };
        self.watch.event(&event);
    }
}

pub(super) fn recall<T: DeserializeOwned>(journal: &dyn Journal, step: &str) -> Result<Option<T>, JournalError> {
    let Some(value) = journal.recall(step) else { return Ok(None) };
    let read = serde_json::from_value(value);
    read.map(Some).map_err(|error| JournalError::Failed(format!("step {step} cannot be read: {error}")))
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
