mod buckets;
mod stored;
mod sums;

pub(crate) use stored::{decode_windows, encode_windows};
pub(crate) use sums::{NO_BUCKET, WindowSums, bucket_of};

const MINUTE_NS: u64 = 60_000_000_000;
const HOUR_NS: u64 = 60 * MINUTE_NS;

/// A stretch of time that ends now, or at another time that is asked for.
///
/// Time is cut into buckets from the Unix epoch on: of 5 minutes for the hour, of an hour for the day and the week. A
/// window is the bucket of its end, as far as that is filled, and the whole ones before it: 12, 24 and 168 in all. It
/// never holds a signal that is older than its name says, and it reaches up to one bucket less far back: the last
/// hour is at least the last 55 minutes, the last day at least 23 hours, and the last week at least 167.
///
/// Each aggregate keeps the buckets of its last 2 hours and of its last 8 days up to its newest signal, whatever the
/// clock says: so an hour can end up to an hour before that signal, a week up to a day, and a day up to a week.
///
/// ```
/// use tidal_entities::Window;
///
/// assert_eq!(Window::Hour.length_ns(), 12 * Window::Hour.bucket_ns());
/// assert_eq!(Window::Day.length_ns(), 24 * Window::Day.bucket_ns());
/// assert_eq!(Window::Week.length_ns(), 168 * Window::Week.bucket_ns());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Window {
    /// The last hour.
    Hour,
    /// The last 24 hours.
    Day,
    /// The last 7 days.
    Week,
}

impl Window {
    /// How long it is when the bucket of its end is full, in ns.
    #[must_use]
    pub const fn length_ns(self) -> u64 {
        match self {
            Self::Hour => HOUR_NS,
            Self::Day => 24 * HOUR_NS,
            Self::Week => 7 * 24 * HOUR_NS,
        }
    }

    /// How long the buckets are that it is made of, in ns.
    #[must_use]
    pub const fn bucket_ns(self) -> u64 {
        match self {
            Self::Hour => 5 * MINUTE_NS,
            Self::Day | Self::Week => HOUR_NS,
        }
    }
}

/// What the signals of one scope, item and signal type within a [`Window`] add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowAggregate {
    /// How many signals there are.
    pub count: u64,
    /// The sum of their weights in units of 1e-9, exact.
    pub weight_nanos: i128,
    /// The nearest `f64` to the sum of their weights.
    pub weight_sum: f64,
}

/// Why there is no answer for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// The signals were added without windows.
    #[error(
        "no windows are kept of these signals: declare their type with SchemaBuilder::windowed, under a new name"
    )]
    NotKept,

    /// The window begins before the times that are still kept apart. Newer signals have moved those on.
    #[error(
        "window that ends at {at_ns} ns reaches back beyond what is kept: ask for one that ends at {earliest_ns} ns \
         or later"
    )]
    Passed {
        /// The end of the window, in ns since the Unix epoch.
        at_ns: u64,
        /// The earliest end for which there is an answer, in ns since the Unix epoch.
        earliest_ns: u64,
    },
}
