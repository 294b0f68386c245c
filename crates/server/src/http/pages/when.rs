//! Moments as pages show them: for machines, and for people.

use std::time::Duration;

use super::visitor::Visitor;

/// Characters of a moment up to its minutes.
const MINUTES: usize = 16;

/// A moment: for machines, and for people.
pub(super) struct When {
    pub(super) iso: String,
    pub(super) text: String,
}

impl When {
    /// `2026-11-28 19:05 UTC`, in milliseconds since 1970.
    pub(super) fn on(at_ms: i64) -> Self {
        let since = Duration::from_millis(u64::try_from(at_ms).unwrap_or(0));
        // Later years than a calendar has are nobody's.
        let at = std::time::UNIX_EPOCH.checked_add(since.min(Duration::from_secs(253_402_300_799)));
        let iso = humantime::format_rfc3339_seconds(at.unwrap_or(std::time::UNIX_EPOCH)).to_string();
        let text = format!("{} UTC", iso[..MINUTES].replace('T', " "));
        Self { iso, text }
    }

    /// The same, with its distance from now: `12 minutes ago`.
    pub(super) fn of(visitor: &Visitor<'_>, at_ms: i64) -> Self {
        let text = if at_ms > visitor.clock.unix_ms() { visitor.time_left(at_ms) } else { visitor.time_since(at_ms) };
        Self { text, ..Self::on(at_ms) }
    }
}
