use std::fmt;

use crate::CodecError;

/// Why a signal was recorded, but not attributed to cohorts or forwarded to communities.
///
/// Where several reasons hold, the first of `Unknown`, `Left`, `AwayPeriod` is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Withheld {
    /// The user had left the community layer when the signal was delivered.
    Left,
    /// The user was back when the signal was delivered, but away at its event time.
    AwayPeriod,
    /// The user's record is damaged, so that nobody can know whether they left.
    Unknown,
}

impl Withheld {
    /// `left`, `away_period` or `unknown`, as in the output of the command.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::AwayPeriod => "away_period",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// How many signals were withheld, by reason.
///
/// ```
/// use tidal_entities::{Withheld, WithheldCounts};
///
/// let mut counts = WithheldCounts::default();
/// counts.add(Withheld::Left);
/// counts.add(Withheld::Left);
/// counts.add(Withheld::AwayPeriod);
/// assert_eq!((counts.left, counts.away_period, counts.unknown), (2, 1, 0));
/// assert_eq!(counts.total(), 3);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WithheldCounts {
    /// Signals of users who had left.
    pub left: u64,
    /// Signals whose event time lies in an away period.
    pub away_period: u64,
    /// Signals of users whose record is damaged.
    pub unknown: u64,
}

impl WithheldCounts {
    /// Counts one signal.
    pub fn add(&mut self, reason: Withheld) {
        let count = match reason {
            Withheld::Left => &mut self.left,
            Withheld::AwayPeriod => &mut self.away_period,
            Withheld::Unknown => &mut self.unknown,
        };
        *count = count.saturating_add(1);
    }

    /// How many signals were withheld for any reason.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.left.saturating_add(self.away_period).saturating_add(self.unknown)
    }
}

const WITHHELD_NOT: u8 = 0;
const WITHHELD_LEFT: u8 = 1;
const WITHHELD_AWAY_PERIOD: u8 = 2;
const WITHHELD_UNKNOWN: u8 = 3;

/// The byte that says in a row whether a signal was withheld, and why.
pub(crate) const fn encode_reason(withheld: Option<Withheld>) -> u8 {
    match withheld {
        None => WITHHELD_NOT,
        Some(Withheld::Left) => WITHHELD_LEFT,
        Some(Withheld::AwayPeriod) => WITHHELD_AWAY_PERIOD,
        Some(Withheld::Unknown) => WITHHELD_UNKNOWN,
    }
}

/// Reads what [`encode_reason`] gave.
pub(crate) const fn decode_reason(byte: u8) -> Result<Option<Withheld>, CodecError> {
    match byte {
        WITHHELD_NOT => Ok(None),
        WITHHELD_LEFT => Ok(Some(Withheld::Left)),
        WITHHELD_AWAY_PERIOD => Ok(Some(Withheld::AwayPeriod)),
        WITHHELD_UNKNOWN => Ok(Some(Withheld::Unknown)),
        found => Err(CodecError::UnknownKind { what: "reason for withholding", found }),
    }
}
