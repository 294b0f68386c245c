//! The time of day, finer than the clock tells it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolhost_contract::Clock;

/// How far the two clocks may be apart before the clock of the day is believed again, milliseconds: somebody has set it.
const APART_MS_MAX: i64 = 50;

/// The clock of the day counts milliseconds, and most calls are shorter: what goes on from one reading of it is the other clock.
pub(crate) struct Time {
    clock: Arc<dyn Clock>,
    anchor: Mutex<Anchor>,
}

#[derive(Clone, Copy)]
struct Anchor {
    unix_ms: i64,
    monotonic: Duration,
}

impl Time {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let anchor = Mutex::new(Anchor::read(&*clock));
        Self { clock, anchor }
    }

    pub(crate) fn now(&self) -> SystemTime {
        let read = Anchor::read(&*self.clock);
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        let since = read.monotonic.saturating_sub(anchor.monotonic);
        let expected = anchor.unix_ms.saturating_add(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        if expected.abs_diff(read.unix_ms) > APART_MS_MAX.unsigned_abs() {
            *anchor = read;
        }
        let since = read.monotonic.saturating_sub(anchor.monotonic);
        UNIX_EPOCH + Duration::from_millis(u64::try_from(anchor.unix_ms).unwrap_or(0)) + since
    }
}

impl Anchor {
    fn read(clock: &dyn Clock) -> Self {
        Self { unix_ms: clock.unix_ms(), monotonic: clock.monotonic() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use toolhost_contract::Clock;
    use toolhost_testkit::FakeClock;

    use super::Time;

    #[test]
    fn what_is_shorter_than_a_millisecond_can_be_told_and_a_clock_that_is_set_is_followed() {
        let clock = Arc::new(FakeClock::default());
        let time = Time::new(Arc::<FakeClock>::clone(&clock));
        let first = time.now();
        clock.advance(Duration::from_micros(250));
        assert_eq!(time.now().duration_since(first).ok(), Some(Duration::from_micros(250)));
        clock.set_unix_ms(clock.unix_ms() + 3_600_000);
        assert!(time.now().duration_since(first).is_ok_and(|since| since >= Duration::from_secs(3600)));
    }
}
