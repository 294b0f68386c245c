//! An ask, a permit, and what becomes of them, as types: what is said of them in tables and lists.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a person is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskKind {
    /// To allow one exact call.
    Approval,
    /// To look at a text.
    Review,
    /// To answer a question.
    Question,
}

/// Where an ask stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskState {
    Open,
    /// A person has said something, and no call has used it yet.
    Answered,
    Used,
    /// Its caller no longer wants it, or a person took the answer back.
    Withdrawn,
    /// Nobody answered in time, or nobody used the answer in time.
    Expired,
}

/// The field of the outcome of an ask that was withdrawn when its session was cancelled.
pub(crate) const SESSION_CANCELLED: &str = "sessionCancelled";

/// What became of an ask. Each text for people is made from this, so that no page and no command has its own reading of
/// [`AskState`] and the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskEnd {
    /// A person can still answer.
    Open,
    /// A person answered; a call can still use the answer.
    Answered,
    /// A call used the answer.
    Used,
    /// A person took the answer back before a call used it.
    TakenBack,
    /// Its caller stopped waiting before a person answered.
    Withdrawn,
    /// Its session was cancelled. Whether a person had answered is in [`Ask::answered_by`].
    SessionCancelled,
    /// A person answered in time; the answer expired before a call used it.
    Unused,
    /// It expired before a person answered.
    Unanswered,
}

impl AskEnd {
    fn of(state: AskState, is_answered: bool, is_of_cancelled: bool) -> Self {
        match (state, is_answered, is_of_cancelled) {
            (AskState::Open, ..) => Self::Open,
            (AskState::Answered, ..) => Self::Answered,
            (AskState::Used, ..) => Self::Used,
            (AskState::Withdrawn, _, true) => Self::SessionCancelled,
            (AskState::Withdrawn, true, false) => Self::TakenBack,
            (AskState::Withdrawn, false, false) => Self::Withdrawn,
            (AskState::Expired, true, _) => Self::Unused,
            (AskState::Expired, false, _) => Self::Unanswered,
        }
    }

    /// Why an ask was withdrawn, as a part of a sentence for people. Empty of one that was not.
    #[must_use]
    pub fn why_withdrawn(self) -> &'static str {
        match self {
            Self::Withdrawn => "its caller no longer waits for an answer",
            Self::SessionCancelled => "the session that asked was cancelled",
            Self::Open | Self::Answered | Self::Used | Self::TakenBack | Self::Unused | Self::Unanswered => "",
        }
    }
}

/// An ask to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAsk {
    pub project_id: i64,
    pub kind: AskKind,
    /// Of the call that waits; an open ask with the same two digests is the same ask.
    pub digest: String,
    pub effect_digest: String,
    pub subject: Option<String>,
    pub round: i64,
    pub user_id: i64,
    pub session_id: Option<String>,
    pub tool: String,
    pub call: Value,
    pub shown: Value,
    pub lives_ms: u64,
    pub limits: AskLimits,
}

/// How much of one session may wait for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskLimits {
    /// Open asks.
    pub open: i64,
    /// Bytes of their calls and of what people are shown of them, answers that no call has used included.
    pub bytes: i64,
}

impl Default for AskLimits {
    fn default() -> Self {
        Self { open: 50, bytes: 32 << 20 }
    }
}

/// An ask in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AskSummary {
    pub number: i64,
    pub kind: AskKind,
    pub state: AskState,
    pub tool: String,
    pub session_id: Option<String>,
    pub persona: String,
    /// Its beginning.
    pub summary: String,
    /// The one word of the answer.
    pub said: Option<String>,
    pub answered_by: Option<String>,
    pub created_at_ms: i64,
    pub expires_at_ms: i64,
}

impl AskSummary {
    /// Of a session that was cancelled, a list says that the ask was withdrawn.
    #[must_use]
    pub fn end(&self) -> AskEnd {
        AskEnd::of(self.state, self.answered_by.is_some(), false)
    }
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AskPage {
    pub asks: Vec<AskSummary>,
    /// How many follow.
    pub more: i64,
}

/// An ask as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    pub number: i64,
    pub kind: AskKind,
    pub state: AskState,
    pub digest: String,
    pub effect_digest: String,
    pub subject: Option<String>,
    /// The how many-th ask about its subject since the last one that settled it, from 1.
    pub round: i64,
    pub user_id: i64,
    pub session_id: Option<String>,
    pub tool: String,
    /// With its arguments as they are, secrets included: not for showing.
    #[serde(skip_serializing)]
    pub call: Value,
    /// The host of whoever asks.
    #[serde(skip_serializing)]
    pub host: Option<String>,
    pub shown: Value,
    pub answer: Option<Value>,
    pub answered_by: Option<String>,
    pub answered_at_ms: Option<i64>,
    pub used_by: Option<String>,
    /// Of one that was used, the outcome of its call.
    pub outcome: Option<Value>,
    pub created_at_ms: i64,
    pub expires_at_ms: i64,
}

impl Ask {
    #[must_use]
    pub fn end(&self) -> AskEnd {
        let is_of_cancelled = self.outcome.as_ref().is_some_and(|outcome| outcome.get(SESSION_CANCELLED).is_some());
        AskEnd::of(self.state, self.answered_by.is_some(), is_of_cancelled)
    }
}

/// Calls that a person allows for a while.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPermit {
    pub tool: String,
    pub profile: String,
    /// Argument name to glob.
    pub conditions: Value,
    pub lives_ms: u64,
}

/// A permit as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Permit {
    pub number: i64,
    pub tool: String,
    pub profile: String,
    pub conditions: Value,
    pub granted_by: String,
    /// The ask whose answer it came with.
    pub ask_number: i64,
    pub created_at_ms: i64,
    pub expires_at_ms: i64,
    pub revoked_at_ms: Option<i64>,
    pub revoked_by: Option<String>,
}

/// What an audit row brings about, in its own transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum AskChange {
    /// A person has been shown all of it: the text with this digest.
    Seen {
        number: i64,
        account_id: i64,
        digest: String,
        place: &'static str,
    },
    Answer {
        number: i64,
        answer: Value,
        by: String,
        permit: Option<NewPermit>,
    },
    /// The call of the row uses the answer.
    Use {
        number: i64,
    },
    /// The call of the row runs by the rule that came with this answer, which is used with it if nothing has used it. Refuses nothing.
    UseBesideRule {
        number: i64,
    },
    /// An answer that no call has used is taken back.
    TakeBack {
        number: i64,
    },
    /// What became of the call that used the answer is kept, for whoever asks again. Refuses nothing.
    Keep {
        number: i64,
        outcome: Value,
    },
    RevokePermit {
        number: i64,
        by: String,
    },
}
