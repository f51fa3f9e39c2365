//! Times as text: RFC 3339 in, nanoseconds since 1970 out, and back.

use std::time::Duration;

use jiff::fmt::friendly::{Designator, Spacing, SpanPrinter};
use jiff::{SignedDuration, Timestamp};

/// Why a text is not a time that a database takes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TimeError {
    /// Not RFC 3339.
    #[error("{value:?} is not an RFC 3339 time ({reason}); write it like 2012-03-28T16:28:14.929583699Z")]
    NotATime {
        /// The text.
        value: String,
        /// What is wrong with it.
        reason: String,
    },

    /// Before the epoch.
    #[error("{value:?} is before 1970-01-01T00:00:00Z, the earliest time that can be stored; correct it")]
    Before1970 {
        /// The text.
        value: String,
    },

    /// Beyond what 64 bits of nanoseconds hold.
    #[error(
        "{value:?} is after 2554-07-21T23:34:33.709551615Z, the latest time that can be stored; correct it"
    )]
    TooLate {
        /// The text.
        value: String,
    },
}

/// Reads an RFC 3339 time with any offset as nanoseconds since 1970.
pub(crate) fn parse_time_ns(text: &str) -> Result<u64, TimeError> {
    let value = || crate::event_file::shown(text);
    // A zone in brackets could contradict the offset, and no RFC 3339 time has one.
    if text.contains('[') {
        return Err(TimeError::NotATime { value: value(), reason: "it names a zone in brackets".to_owned() });
    }
    let timestamp: Timestamp = text.parse().map_err(|error: jiff::Error| {
        let reason = error.to_string().trim_end().to_owned();
        TimeError::NotATime { value: value(), reason }
    })?;
    let nanos = timestamp.as_nanosecond();
    if nanos < 0 {
        return Err(TimeError::Before1970 { value: value() });
    }
    u64::try_from(nanos).map_err(|_| TimeError::TooLate { value: value() })
}

/// The time in UTC, as [`parse_time_ns`] reads it.
pub(crate) fn format_time_ns(at_ns: u64) -> String {
    // Every u64 of nanoseconds lies in years that a timestamp holds; the number itself is no lie either.
    Timestamp::from_nanosecond(i128::from(at_ns))
        .map_or_else(|_| format!("{at_ns} ns"), |time| time.to_string())
}

/// A length of time in words, such as `5 minutes`.
pub(crate) fn format_duration_ns(duration_ns: u64) -> String {
    // Days and more are left out, since a day is not always 24 hours long.
    const PRINTER: SpanPrinter =
        SpanPrinter::new().designator(Designator::Verbose).spacing(Spacing::BetweenUnitsAndDesignators);
    // A signed count of whole seconds holds every u64 of nanoseconds.
    SignedDuration::try_from(Duration::from_nanos(duration_ns))
        .map_or_else(|_| format!("{duration_ns} ns"), |duration| PRINTER.duration_to_string(&duration))
}

#[cfg(test)]
mod tests {
    use super::{TimeError, format_duration_ns, format_time_ns, parse_time_ns};

    #[test]
    fn offsets_are_converted() {
        for text in ["1970-01-01T00:00:01.5Z", "1970-01-01T01:00:01.5+01:00", "1969-12-31T20:00:01.5-04:00"] {
            assert_eq!(parse_time_ns(text).unwrap(), 1_500_000_000, "{text}");
        }
    }

    #[test]
    fn every_nanosecond_comes_back() {
        for at_ns in [0, 1, 999_999_999, 1_333_384_094_929_583_699, u64::MAX - 1, u64::MAX] {
            assert_eq!(parse_time_ns(&format_time_ns(at_ns)).unwrap(), at_ns);
        }
    }

    #[test]
    fn lengths_of_time_are_words() {
        for (duration_ns, words) in [
            (0, "0 seconds"),
            (1, "1 nanosecond"),
            (300_000_000_000, "5 minutes"),
            (90_061_500_000_000, "25 hours 1 minute 1 second 500 milliseconds"),
        ] {
            assert_eq!(format_duration_ns(duration_ns), words);
        }
        assert!(format_duration_ns(u64::MAX).starts_with("5124095 hours 34 minutes"));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let not_times = [
            "",
            "today",
            "2012-03-28",
            "2012-03-28T16:28:14",
            "2012-02-30T00:00:00Z",
            "2012-03-28T24:00:00Z",
            "2012-03-28T00:00:00.1234567891Z",
            "2012-03-28T00:00:00Z[Europe/London]",
            "1332950400",
            "1332950400000000000",
        ];
        for text in not_times {
            assert!(matches!(parse_time_ns(text), Err(TimeError::NotATime { .. })), "{text}");
        }
    }

    #[test]
    fn times_out_of_range_are_refused() {
        assert!(matches!(parse_time_ns("1969-12-31T23:59:59.999999999Z"), Err(TimeError::Before1970 { .. })));
        assert!(matches!(parse_time_ns("2554-07-21T23:34:33.709551616Z"), Err(TimeError::TooLate { .. })));
    }
}
