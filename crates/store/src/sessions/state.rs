//! Where a session stands.

use serde::{Deserialize, Serialize};

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// Made, or run by a host: by a living one, unless it was killed.
    Active,
    /// It can be resumed.
    Paused,
    /// A limit stopped it; it can be resumed with more.
    Limited,
    /// Something failed; it can be resumed.
    Failed,
    /// It has given its answer; it goes on with a new message.
    Done,
    /// For good.
    Cancelled,
}

impl SessionState {
    pub const ALL: [Self; 6] = [Self::Active, Self::Paused, Self::Limited, Self::Failed, Self::Done, Self::Cancelled];

    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Limited => "limited",
            Self::Failed => "failed",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }
}
