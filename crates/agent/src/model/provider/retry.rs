//! How long to wait before asking again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use toolhost_contract::Clock;

use super::config::Retry;

impl Retry {
    /// Before the attempt after this one (counted from 1). What the provider asks for is the least, the settings' `max`
    /// the most. Half of our own wait is by chance: clients that were turned away together shall not come back together.
    pub(super) fn wait(&self, attempt: u32, asked: Option<Duration>) -> Duration {
        let full = self.base.saturating_mul(1_u32.checked_shl(attempt - 1).unwrap_or(u32::MAX)).min(self.max);
        let ours = full / 2 + (full / 2).mul_f64(chance());
        ours.max(asked.unwrap_or_default()).min(self.max)
    }
}

/// From 0 to 1. The standard library seeds its hash tables by chance; more than that is not needed to scatter waits.
fn chance() -> f64 {
    let [byte, ..] = RandomState::new().hash_one(0_u8).to_le_bytes();
    f64::from(byte) / f64::from(u8::MAX)
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
    let at_ms = date_unix_s(after)?.checked_mul(1000)?;
    Some(Duration::from_millis(u64::try_from(at_ms - clock.unix_ms()).unwrap_or(0)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that is still sent (RFC 9110, 5.6.7): seconds since 1970.
fn date_unix_s(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.split_once(", ")?;
    let [day, month, year, time, "GMT"] = rest.split(' ').collect::<Vec<_>>()[..] else { return None };
    let month = i64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()? + 1;
    let [hours, minutes, seconds] = time.split(':').collect::<Vec<_>>()[..] else { return None };
    let (day, year) = (day.parse::<u8>().ok()?, year.parse::<u16>().ok()?);
    let [hours, minutes, seconds] =
        [hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?, seconds.parse::<u8>().ok()?];
    let days = days_since_1970(i64::from(year), month, i64::from(day));
    Some(((days * 24 + i64::from(hours)) * 60 + i64::from(minutes)) * 60 + i64::from(seconds))
}

/// Of a day of the Gregorian calendar (Howard Hinnant's `days_from_civil`): years begin in March, so the leap day is last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_as_its_seconds() {
        assert_eq!(date_unix_s("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(date_unix_s("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(date_unix_s("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        assert_eq!(date_unix_s("soon"), None);
        assert_eq!(date_unix_s("Sun, 06 Nov 1994 08:49:37 CET"), None);
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
