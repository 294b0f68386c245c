//! What happens in a session, for whoever watches it live.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolhost_contract::ErrorKind;

use super::{CallStep, Checked, EndStep, LoopResult, Opening, SayStep, TurnStep};
use crate::model::Usage;

/// One thing that has happened. Its JSON has a field `event`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event {
    /// The session begins, or goes on.
    Opened {
        session: String,
        model: String,
    },
    /// A person has said something: the goal, or a message after an answer.
    Message {
        text: String,
    },
    /// The model is being asked.
    Asked {
        turn: u32,
    },
    /// A piece of what the model says.
    Text {
        turn: u32,
        text: String,
    },
    /// A piece of what it thinks.
    Thought {
        turn: u32,
        text: String,
    },
    /// The provider broke off or was busy: what came of this turn is void.
    Again {
        turn: u32,
        attempt: u32,
        wait_ms: u64,
        why: String,
    },
    /// The whole of what it said, and what it asks for.
    Said {
        turn: u32,
        text: String,
        calls: Vec<Asked>,
        usage: Usage,
        /// US dollars, where the model's price is known.
        cost: Option<f64>,
        ms: u64,
        replayed: bool,
    },
    CallStarted {
        step: String,
        tool: String,
        arguments: Value,
    },
    /// Where a long call stands.
    CallProgress {
        step: String,
        message: String,
        /// The last lines of what a command has printed so far.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
    },
    CallEnded {
        step: String,
        tool: String,
        ok: bool,
        code: Option<String>,
        /// Why it failed: `security`, `denied`, `validation`, …
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<ErrorKind>,
        /// The first line of its answer.
        brief: String,
        /// It waits for a person, and has not run.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        waits: bool,
        /// The end of what its command has printed.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// What it changed in files, as a unified diff, or the lines of a new file.
        #[serde(skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
        /// Of a command: 0 where it succeeded.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        ms: u64,
        replayed: bool,
    },
    /// The answer was not as it has to be, and the model is told why.
    Repair {
        turn: u32,
        findings: String,
    },
    /// Old results and arguments were replaced by what is needed to read them again.
    Aged {
        results: usize,
        tokens_before: u64,
        tokens_after: u64,
    },
    /// A run before this one ended without an answer, as its journal tells.
    Stopped {
        code: String,
        message: String,
    },
    Ended {
        result: Box<LoopResult>,
    },
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    pub step: String,
    pub tool: String,
}

/// What a step of a journal tells, as the events it was once. `replayed`: it was kept before anybody watched.
///
/// # Errors
/// If the step is not as this version writes it.
pub fn replay(step: &str, body: &Value, replayed: bool) -> Result<Vec<Event>, serde_json::Error> {
    let kind = step.split('_').next().unwrap_or_default();
    let number = step.split('_').nth(1).and_then(|number| number.parse().ok()).unwrap_or_default();
    Ok(match kind {
        "open" => vec![Event::Message { text: Opening::deserialize(body)?.goal }],
        "say" => vec![Event::Message { text: SayStep::deserialize(body)?.text }],
        "turn" => {
            let said = TurnStep::deserialize(body)?;
            let mut events = vec![Event::Asked { turn: number }, said.event(number, replayed)];
            events.extend(said.reply.calls.iter().map(|call| Event::CallStarted {
                step: call.id.clone(),
                tool: call.name.clone(),
                arguments: call.arguments.value(),
            }));
            events
        }
        "call" => vec![CallStep::deserialize(body)?.event(step, replayed)],
        "end" => {
            let EndStep { code, message } = EndStep::deserialize(body)?;
            vec![Event::Stopped { code, message }]
        }
        "check" => match Checked::deserialize(body)? {
            Checked::Bad { findings, .. } => vec![Event::Repair { turn: number, findings }],
            Checked::Good(_) => Vec::new(),
        },
        _ => Vec::new(),
    })
}

impl TurnStep {
    pub(super) fn event(&self, turn: u32, replayed: bool) -> Event {
        let calls = self.reply.calls.iter().map(|call| Asked { step: call.id.clone(), tool: call.name.clone() });
        Event::Said {
            turn,
            text: self.reply.text.clone(),
            calls: calls.collect(),
            usage: self.reply.usage,
            cost: self.cost,
            ms: self.ms,
            replayed,
        }
    }
}

impl CallStep {
    pub(super) fn event(&self, step: &str, replayed: bool) -> Event {
        Event::CallEnded {
            step: step.to_owned(),
            tool: self.tool.clone(),
            ok: self.ok,
            code: self.code.clone(),
            kind: self.kind,
            brief: self.brief.clone(),
            waits: self.waits,
            output: self.output.clone(),
            diff: self.diff.clone(),
            exit_code: self.exit_code,
            ms: self.ms,
            replayed,
        }
    }
}

/// Who watches.
pub trait Watch: Send + Sync {
    fn event(&self, event: &Event);
}

/// Nobody watches.
#[derive(Debug, Default, Clone, Copy)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn event(&self, _: &Event) {}
}
