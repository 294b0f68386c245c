//! How long to wait before asking again.

use std::time::{Duration, UNIX_EPOCH};

use toolhost_contract::Clock;

use super::config::Retry;

impl Retry {
    /// Before the attempt after this one (counted from 1). What the provider asks for is the least, the settings' `max`
    /// the most. Half of our own wait is by chance: clients that were turned away together shall not come back together.
    pub(super) fn wait(&self, attempt: u32, asked: Option<Duration>) -> Duration {
        let full = self.base.saturating_mul(1_u32.checked_shl(attempt - 1).unwrap_or(u32::MAX)).min(self.max);
        let ours = full / 2 + (full / 2).mul_f64(fastrand::f64());
        ours.max(asked.unwrap_or_default()).min(self.max)
    }
}

/// What a provider asks for: `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, 10.2.3).
pub(super) fn asked(headers: &reqwest::header::HeaderMap, clock: &dyn Clock) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let after = text("retry-after")?;
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = httpdate::parse_http_date(after).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let now = Duration::from_millis(u64::try_from(clock.unix_ms()).unwrap_or(0));
    Some(at.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 784,111,776 seconds after 1970.
    struct Then;

    impl Clock for Then {
        fn unix_ms(&self) -> i64 {
            784_111_776_000
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[test]
    fn what_a_provider_asks_for_is_read_in_each_form() {
        use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
        let asked = |name: &'static str, value: &'static str| {
            let header = (HeaderName::from_static(name), HeaderValue::from_static(value));
            asked(&HeaderMap::from_iter([header]), &Then)
        };
        assert_eq!(asked("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(asked("retry-after", "2.5"), Some(Duration::from_millis(2500)));
        assert_eq!(asked("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(1)));
        assert_eq!(asked("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT"), Some(Duration::ZERO), "it has passed");
        for nothing in ["soon", "-3", "Sun, 06 Nov 1994 08:49:37 CET"] {
            assert_eq!(asked("retry-after", nothing), None, "{nothing}");
        }
    }

    #[test]
    fn waits_grow_up_to_their_limit_and_never_past_it() {
        let retry = Retry { attempts: 9, base: Duration::from_millis(100), max: Duration::from_secs(1) };
        for (attempt, full_ms) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (40, 1000)] {
            let wait = retry.wait(attempt, None);
            assert!(wait >= Duration::from_millis(full_ms / 2), "{attempt}: {wait:?}");
            assert!(wait <= Duration::from_millis(full_ms), "{attempt}: {wait:?}");
        }
        assert_eq!(retry.wait(1, Some(Duration::from_millis(700))), Duration::from_millis(700));
        assert_eq!(retry.wait(1, Some(Duration::from_secs(3600))), Duration::from_secs(1));
    }
}
