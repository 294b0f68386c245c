//! Moments on pages, for people and for programs.

/// A moment as `<time>` has it.
pub(super) struct When {
    /// Such as `2026-11-28T19:05:16Z`.
    pub(super) iso: String,
    /// Such as `2026-11-28 19:05 UTC`.
    pub(super) text: String,
}

impl When {
    /// Milliseconds since 1970.
    pub(super) fn of(ms: i64) -> Self {
        let seconds = ms.div_euclid(1000);
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        Self {
            iso: format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"),
            text: format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC"),
        }
    }
}

/// The date of a day, counted from 1970-01-01. The year begins in March, so that the leap day is its last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::When;

    #[test]
    fn moments_are_told_as_the_calendar_has_them() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_999, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_772_323_200_000, "2026-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(When::of(ms).iso, expected);
        }
        assert_eq!(When::of(0).text, "1970-01-01 00:00 UTC");
    }
}
