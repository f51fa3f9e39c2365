use std::{fmt, time::Duration};

/// After how long a signal counts for half as much, 1 s to 100 years.
///
/// ```
/// use std::time::Duration;
/// use tidal_entities::HalfLife;
///
/// let half_life = HalfLife::try_from(Duration::from_secs(7 * 86_400))?;
/// assert_eq!(half_life.ns(), 604_800_000_000_000);
/// assert_eq!(half_life.to_string(), "7d");
/// assert!(HalfLife::try_from(Duration::from_millis(999)).is_err());
/// # Ok::<(), tidal_entities::HalfLifeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HalfLife(u64);

/// Why a length of time is no half-life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HalfLifeError {
    /// It is shorter than 1 s or longer than 100 years.
    #[error("half-life {0:?} is out of range: it must lie between 1 s and 36,525 days")]
    OutOfRange(Duration),
}

impl HalfLife {
    /// The shortest half-life: 1 s.
    pub const MIN: Self = Self(NS_PER_SECOND);
    /// The longest half-life: 100 years of 365.25 days.
    pub const MAX: Self = Self(36_525 * NS_PER_DAY);

    /// Takes a number of ns.
    ///
    /// # Errors
    ///
    /// [`HalfLifeError::OutOfRange`] if it is not between [`HalfLife::MIN`] and [`HalfLife::MAX`].
    pub const fn from_ns(ns: u64) -> Result<Self, HalfLifeError> {
        if ns < Self::MIN.0 || ns > Self::MAX.0 {
            return Err(HalfLifeError::OutOfRange(Duration::from_nanos(ns)));
        }
        Ok(Self(ns))
    }

    /// The half-life in ns.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.0
    }
}

impl TryFrom<Duration> for HalfLife {
    type Error = HalfLifeError;

    fn try_from(duration: Duration) -> Result<Self, HalfLifeError> {
        let ns = u64::try_from(duration.as_nanos()).map_err(|_| HalfLifeError::OutOfRange(duration))?;
        Self::from_ns(ns)
    }
}

impl From<HalfLife> for Duration {
    fn from(half_life: HalfLife) -> Self {
        Self::from_nanos(half_life.0)
    }
}

/// In the largest unit that gives a whole number: `7d`, `90min`, `1500ms`.
impl fmt::Display for HalfLife {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (NS_PER_DAY, "d"),
            (3_600 * NS_PER_SECOND, "h"),
            (60 * NS_PER_SECOND, "min"),
            (NS_PER_SECOND, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
        ];
        let (unit_ns, unit) =
            units.into_iter().find(|(unit_ns, _)| self.0.is_multiple_of(*unit_ns)).unwrap_or((1, "ns"));
        write!(formatter, "{}{unit}", self.0 / unit_ns)
    }
}

const NS_PER_SECOND: u64 = 1_000_000_000;
const NS_PER_DAY: u64 = 86_400 * NS_PER_SECOND;
