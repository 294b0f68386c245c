//! A session: a model, its tools and the loop between them, kept step by step so that it survives its process.
//!
//! The hard problem is that a process may end anywhere. Every step has a name; what a step came to is kept under it, and
//! a run asks the journal first and does only what no run before has done ([`Journal`](toolhost_contract::Journal)).
//! Reads are repeated. Whether any other call ran, the audit knows: the gate writes "started" before it runs. Start with
//! [`run_tool_loop`].

mod answer;
mod calls;
mod event;
mod lines;
mod noticed;
mod only;
mod run;
mod turns;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolhost_builder::envelope::{Mode, TargetType};
use toolhost_builder::refs::Object;
use toolhost_contract::{CallId, ErrorCode, ErrorKind};

use crate::budget::TrimReport;
use crate::model::{Message, Reply, SystemBlock, Usage};

pub use answer::{Answer, AnswerForm, summary_of};
pub use event::{Asked, Event, Unwatched, Watch, replay};
pub use run::{Control, SessionState};
pub use turns::run_tool_loop;

/// The first step: all that the loop needs to know besides model and tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opening {
    /// What a person asked for.
    pub goal: String,
    /// The model's instructions, the same bytes in every request of the session.
    pub system: Vec<SystemBlock>,
    /// The conversation when the session begins; its last message is the goal's.
    pub messages: Vec<Message>,
    /// What its answer has to be.
    pub answer: AnswerForm,
    /// What a change set in its answer has to say of itself; none for sessions that began before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    /// Of the composed prompt.
    pub signature: String,
    /// How results are told to the model.
    pub results: ResultForm,
    /// Whether a session on a workflow package has all tools of its profile, as a person asked for, instead of those for
    /// packages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_tools: bool,
    /// Who works, as commits and comments name them.
    pub persona: String,
    /// The ticket that the work is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// What was left out of the context, so that whoever asks what was sent can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<TrimReport>,
}

/// What a session on a workflow package is for, as the contract of its change sets names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub target_type: TargetType,
    pub mode: Mode,
    /// The object, such as `step:main/begin`; none in sessions of versions that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Object>,
}

impl Opening {
    /// Whether its tools are those for packages, whatever its profile has.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.answer == AnswerForm::Change && !self.all_tools
    }
}

/// How the result of a call is told to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultForm {
    /// As a text that is complete on its own.
    Text,
    /// As the envelope `{ok, data, error, meta}` (CrewAgent seed BAI-2.4).
    Envelope,
}

/// How far a session may go. What counts turns counts those that this run asks for, since a person last said something:
/// who resumes a session grants it as many again.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopLimits {
    /// Replies of the model (frozen default 8, CrewAgent seed BAI-2.5). An answer that is sent back gives
    /// [`REPAIR_REPLIES`] more: to read, to stage anew and to answer.
    pub max_iterations: u32,
    /// Answers sent back with findings (frozen default 2).
    pub max_repairs: u32,
    /// Of the whole session, in and out.
    pub tokens_max: Option<u64>,
    /// Of the whole session, US dollars. Without a known price nothing is spent.
    pub cost_max: Option<f64>,
    /// Of the whole session, while it runs.
    pub time_max: Option<Duration>,
    /// Reads of one turn that run at once.
    pub parallel_reads: usize,
    /// Calls of one turn. One more is answered and not run, and those after it are dropped from the turn.
    pub calls_per_turn: usize,
    /// Characters of one result that the model is shown; the rest can be read with `session.result`.
    pub result_chars_max: usize,
}

/// Replies that a model gets on top for each answer that is sent back.
pub const REPAIR_REPLIES: u32 = 3;

impl Default for LoopLimits {
    fn default() -> Self {
        Self {
            max_iterations: 8,
            max_repairs: 2,
            tokens_max: None,
            cost_max: None,
            time_max: None,
            parallel_reads: 8,
            calls_per_turn: 32,
            result_chars_max: 48_000,
        }
    }
}

/// How a run of the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// With an answer.
    Completed,
    /// A person wants it to wait.
    Paused,
    /// A limit was reached; it can be resumed with more.
    Limited,
    /// It cannot go on; `error` says why. It can be resumed.
    Failed,
    /// A person has ended it, for good.
    Cancelled,
}

/// What a run of the loop came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopResult {
    pub session: String,
    pub status: Status,
    pub answer: Option<Answer>,
    /// All calls of the session, in their order.
    pub calls: Vec<CallSummary>,
    /// Replies of the model, earlier runs of the session included.
    pub iterations: u32,
    /// Answers that were sent back.
    pub repairs: u32,
    /// Change sets that the session staged and of which nobody has asked whether they could be applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unvalidated: Vec<String>,
    /// Change sets that the session staged, and that were found not valid and are still open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
    pub usage: Usage,
    /// US dollars; none where the model's price is not known.
    pub cost: Option<f64>,
    /// The tool's share of the time and the model's, earlier runs included.
    pub elapsed_ms: u64,
    pub error: Option<LoopError>,
}

/// Why a loop ended without an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoopError {
    pub code: ErrorCode,
    pub message: String,
}

/// One call of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallSummary {
    /// The step of the journal, which is also the handle to read its result again.
    pub step: String,
    pub call_id: CallId,
    pub tool: String,
    pub ok: bool,
    pub code: Option<String>,
    /// Of a command that ran: 0 where it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    pub ms: u64,
}

impl CallSummary {
    /// Whether the call failed, or its command did.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        !self.ok || self.exit_code.is_some_and(|code| code != 0)
    }
}

/// The step `turn_N`: what the model said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStep {
    pub reply: Reply,
    /// The gate's ids of its calls, given before any of them runs.
    pub call_ids: Vec<CallId>,
    pub cost: Option<f64>,
    pub ms: u64,
    /// Time that the session has run so far, in milliseconds.
    pub elapsed_ms: u64,
}

/// The step `call_N_I`: what a call came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallStep {
    pub call_id: CallId,
    pub tool: String,
    pub ok: bool,
    /// It came to its end, and may have changed something: the audit has rows of it, and `audit verify` misses them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ran: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why it failed, as the outcome says it; none where it did not, or was kept before this was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ErrorKind>,
    /// The whole answer, as the model is told it.
    pub content: String,
    /// Its first line, for people.
    pub brief: String,
    /// It waits for a person, and has not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// The end of what its command has printed. For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What it changed in files, as a unified diff, or what it wrote into a new one; its beginning where it is long. For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    pub ms: u64,
}

/// Ids of calls that a turn without calls needs for the check of its answer: to stage, to validate and to discard.
const CHECK_CALLS: usize = 3;

/// The step `check_N`: what was found wrong with an answer, or that nothing was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Checked {
    Good(Answer),
    /// The findings are for the model.
    Bad {
        code: ErrorCode,
        findings: String,
        /// The set that must not stay in the way of what comes instead. It is discarded when this is kept: a host that
        /// dies between would not know what was wrong with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        discard: Option<String>,
    },
}

/// The step `say_N_K`: a message of a person before turn N.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SayStep {
    pub text: String,
    /// What has happened since the model spoke last, told before the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// The step `end_N_K`: why a run ended without an answer after N turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndStep {
    pub code: String,
    pub message: String,
}

/// The names of steps.
pub mod step {
    /// The first one: an [`Opening`](super::Opening).
    pub const OPEN: &str = "open";

    /// What the model said: a [`TurnStep`](super::TurnStep).
    #[must_use]
    pub fn turn(turn: u32) -> String {
        format!("turn_{turn}")
    }

    /// What a call came to: a [`CallStep`](super::CallStep). Providers know the call by this name, too.
    #[must_use]
    pub fn call(turn: u32, index: usize) -> String {
        format!("call_{turn}_{index}")
    }

    /// The id of a call that is begun again, the how many-th time, from 0: the one before had changed nothing.
    #[must_use]
    pub fn again(turn: u32, index: usize, number: u32) -> String {
        format!("again_{turn}_{index}_{number}")
    }

    /// What a person says before a turn, the how many-th thing, from 0: a [`SayStep`](super::SayStep).
    #[must_use]
    pub fn say(turn: u32, number: u32) -> String {
        format!("say_{turn}_{number}")
    }

    /// Why a run ended without an answer before a turn, the how many-th time, from 0: an [`EndStep`](super::EndStep).
    #[must_use]
    pub fn end(turn: u32, number: u32) -> String {
        format!("end_{turn}_{number}")
    }

    /// The change set that an answer became.
    #[must_use]
    pub fn staged(turn: u32) -> String {
        format!("staged_{turn}")
    }

    /// What was found wrong with an answer, or that nothing was.
    #[must_use]
    pub fn check(turn: u32) -> String {
        format!("check_{turn}")
    }
}

/// Where a session stands that has come as far as these turns, for lists.
#[must_use]
pub fn standing_after(turns: &[TurnStep]) -> Value {
    let mut usage = Usage::default();
    turns.iter().for_each(|turn| usage.add(&turn.reply.usage));
    let cost = turns.iter().map(|turn| turn.cost).sum::<Option<f64>>().filter(|_| !turns.is_empty());
    let elapsed_ms = turns.last().map_or(0, |turn| turn.elapsed_ms);
    tally(u32::try_from(turns.len()).unwrap_or(u32::MAX), &usage, cost, elapsed_ms)
}

/// Where a session stands, for lists.
fn tally(iterations: u32, usage: &Usage, cost: Option<f64>, elapsed_ms: u64) -> Value {
    serde_json::json!({
        "turns": iterations,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cost": cost,
        "elapsedMs": elapsed_ms,
    })
}
