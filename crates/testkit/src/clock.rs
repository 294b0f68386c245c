//! Time and ids that a test decides.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use toolhost_contract::{CallId, Clock, IdSource};

/// 2026-01-01T00:00:00Z.
const START_UNIX_MS: i64 = 1_767_225_600_000;

/// A clock that stands still until it is told to go on.
#[derive(Debug, Default)]
pub struct FakeClock {
    since_start: Mutex<Duration>,
    /// What the machine's clock is set wrong by.
    shift_ms: AtomicI64,
}

impl FakeClock {
    pub fn advance(&self, by: Duration) {
        *self.since_start.lock().unwrap() += by;
    }

    /// Sets the time of day; the monotonic time goes on as before.
    pub fn set_unix_ms(&self, at_ms: i64) {
        let shift = at_ms - (self.unix_ms() - self.shift_ms.load(Ordering::Relaxed));
        self.shift_ms.store(shift, Ordering::Relaxed);
    }

    /// As a machine's clock may be set.
    pub fn turn_back(&self, by: Duration) {
        *self.since_start.lock().unwrap() -= by;
    }
}

impl Clock for FakeClock {
    fn unix_ms(&self) -> i64 {
        let since = i64::try_from(self.monotonic().as_millis()).unwrap();
        START_UNIX_MS + since + self.shift_ms.load(Ordering::Relaxed)
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
