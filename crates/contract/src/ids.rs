//! Ids, and where they come from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One call, for good: in its outcome, its audit rows and the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
        // A clock before 1970 makes ids that are not sorted, and not a host that falls over.
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let random = uuid::Uuid::new_v4();
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let bytes: [u8; 10] = std::array::from_fn(|n| random.as_bytes()[n + usize::from(n >= 6) + usize::from(n >= 7)]);
        CallId(uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid().to_string())
    }
}
