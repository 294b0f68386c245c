//! Ids, and where they come from.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One call, for good: in its outcome, its audit rows and the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CallId(String);

impl CallId {
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A source of ids, handed in so that a test knows them beforehand.
pub trait IdSource: Send + Sync {
    fn call_id(&self) -> CallId;
}

/// UUIDs of version 7 (RFC 9562): unique, and sorted by time.
#[derive(Debug, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "ids are sorted by the machine's time, whatever it is")]
    fn call_id(&self) -> CallId {
        // Before 1970 there is no time to sort by, and what makes such ids falls over.
        let is_set = std::time::SystemTime::now() >= std::time::UNIX_EPOCH;
        CallId(if is_set { uuid::Uuid::now_v7() } else { uuid::Uuid::new_v4() }.to_string())
    }
}
