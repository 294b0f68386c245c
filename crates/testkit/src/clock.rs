//! Time and ids that a test decides.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use toolhost_contract::{CallId, Clock, IdSource};

/// 2026-01-01T00:00:00Z.
const START_UNIX_MS: i64 = 1_767_225_600_000;

/// A clock that stands still until it is told to go on.
#[derive(Debug, Default)]
pub struct FakeClock {
    since_start: Mutex<Duration>,
}

impl FakeClock {
    pub fn advance(&self, by: Duration) {
        *self.since_start.lock().unwrap() += by;
    }

    /// As a machine's clock may be set.
    pub fn turn_back(&self, by: Duration) {
        *self.since_start.lock().unwrap() -= by;
    }
}

impl Clock for FakeClock {
    fn unix_ms(&self) -> i64 {
        START_UNIX_MS + i64::try_from(self.monotonic().as_millis()).unwrap()
    }

    fn monotonic(&self) -> Duration {
        *self.since_start.lock().unwrap()
    }
}

/// `call-1`, `call-2`, …
#[derive(Debug, Default)]
pub struct CountingIds {
    given: AtomicU64,
}

impl IdSource for CountingIds {
    fn call_id(&self) -> CallId {
        CallId::new(format!("call-{}", self.given.fetch_add(1, Ordering::Relaxed) + 1))
    }
}
