//! The value of `--since`.

use std::time::{Duration, SystemTime};

use toolhost_contract::Clock;

const SECONDS_PER_MINUTE: u64 = 60;

/// A time, a duration before now, or a number of minutes before now.
///
/// # Errors
/// It is none of them, or lies before 1970.
pub(crate) fn since(text: &str) -> Result<SystemTime, String> {
    if let Ok(at) = humantime::parse_rfc3339_weak(text) {
        return Ok(at);
    }
    let minutes =
        text.parse::<u64>().ok().map(|minutes| Duration::from_secs(minutes.saturating_mul(SECONDS_PER_MINUTE)));
    let ago = minutes
        .or_else(|| humantime::parse_duration(text).ok())
        .ok_or("write a time such as 2026-11-21T09:00:00Z, a duration such as 30m, or a number of minutes")?;
    let now = u64::try_from(toolhost_contract::SystemClock::default().unix_ms()).unwrap_or(0);
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now);
    let at = now.checked_sub(ago).ok_or("that is too long ago")?;
    if at < SystemTime::UNIX_EPOCH { Err("that is too long ago".to_owned()) } else { Ok(at) }
}

/// Milliseconds since 1970, as records and the audit have times.
pub(crate) fn unix_ms(at: SystemTime) -> i64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
