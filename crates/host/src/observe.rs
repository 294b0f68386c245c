//! A port that is told how each call has ended. Metrics and traces are made of it.

use std::sync::Arc;
use std::time::Duration;

use toolhost_contract::{CallId, Effect};

use crate::origin::Origin;

/// Is told how each call has ended. The answer of the call waits for it, so it only counts.
pub trait CallObserver: Send + Sync {
    fn ended(&self, call: &EndedCall<'_>);
}

/// Several that are told one after the other.
pub struct CallObservers(pub Vec<Arc<dyn CallObserver>>);

impl CallObserver for CallObservers {
    fn ended(&self, call: &EndedCall<'_>) {
        for observer in &self.0 {
            observer.ended(call);
        }
    }
}

/// How a call has ended.
#[derive(Debug, Clone, Copy)]
pub struct EndedCall<'a> {
    pub id: &'a CallId,
    /// The tool's canonical name; `None` where there is no such tool, because what was asked for may be any text.
    pub tool: Option<&'a str>,
    /// The same name as MCP writes it.
    pub wire_name: Option<&'a str>,
    pub effect: Option<Effect>,
    /// Where the call came from, if its door says.
    pub origin: Option<&'a Origin>,
    pub session: Option<&'a str>,
    pub door: &'a str,
    /// `ok`, `pending`, or the kind of its error.
    pub outcome: &'static str,
    /// What of policy denied it: a rule, or `effect` where no rule matched.
    pub denied_by: Option<&'a str>,
    /// Whether a person was asked: the call has then waited for them, and not for a place.
    pub is_asked: bool,
    /// What a person has answered that this call has used.
    pub answer: Option<PersonAnswer>,
    pub times: CallTimes,
}

/// Where the time of a call went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTimes {
    pub total: Duration,
    /// For a person, or for a place among the calls that run at once.
    pub waiting: Duration,
    /// In the tool.
    pub running: Duration,
    /// The part of [`Self::running`] in which a tool that asks people, or waits for their answer, waited for one.
    pub waiting_inside: Duration,
    /// How long after its beginning the call began to wait.
    pub until_waiting: Duration,
    /// How long after its beginning the tool began to run.
    pub until_running: Duration,
}

impl CallTimes {
    /// What is left: checks, policy, and rows of the audit.
    #[must_use]
    pub fn gate(&self) -> Duration {
        self.total.saturating_sub(self.waiting).saturating_sub(self.running)
    }
}

/// What a person has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonAnswer {
    pub agreed: bool,
    /// How long after they were asked.
    pub after: Duration,
}

impl PersonAnswer {
    /// Of times in milliseconds since the epoch, which may come from clocks of two machines.
    pub(crate) fn new(agreed: bool, asked_at_ms: i64, answered_at_ms: i64) -> Self {
        let after_ms = u64::try_from(answered_at_ms.saturating_sub(asked_at_ms)).unwrap_or(0);
        Self { agreed, after: Duration::from_millis(after_ms) }
    }
}
