use std::ops::Range;

use crate::{Transition, TransitionKind};

/// The times during which a user was away, so that a signal from such a time is withheld however late it comes.
///
/// A period is `[min, max)` of the time of leaving and the time of coming back: the time of leaving is in it, the
/// time of coming back is not. Clocks step back, hence the smaller of the two is the start. Periods that overlap
/// or touch become one, and empty ones vanish.
///
/// At most [`MAX_AWAY_PERIODS`](Self::MAX_AWAY_PERIODS) are kept, so that a user who toggles all day does not fill
/// the memory. Beyond that the two with the smallest gap between them become one. The gap then counts as time away:
/// a late signal from it is withheld although the user was there, never the other way round. The same periods
/// added in the same order always give the same result.
///
/// ```
/// use tidal_entities::AwayPeriods;
///
/// let mut away = AwayPeriods::default();
/// away.add(100, 200);
/// assert!(away.contains(100));
/// assert!(away.contains(199));
/// assert!(!away.contains(200));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AwayPeriods {
    // Sorted, not empty, with a gap of at least 1 ns between one and the next.
    periods: Vec<Range<u64>>,
}

impl AwayPeriods {
    /// How many periods are kept for a user.
    pub const MAX_AWAY_PERIODS: usize = 1024;

    /// The periods that a history of transitions closes. The last leave closes none if no rejoin follows.
    ///
    /// The history is in the order of its sequence numbers. Of two leaves in a row the first counts, and a rejoin
    /// without a leave before it is passed over.
    ///
    /// ```
    /// use tidal_entities::{AwayPeriods, Transition, TransitionKind};
    ///
    /// let history = [
    ///     Transition { sequence: 1, kind: TransitionKind::Leave, at_ns: 100 },
    ///     Transition { sequence: 5, kind: TransitionKind::Rejoin, at_ns: 200 },
    ///     Transition { sequence: 9, kind: TransitionKind::Leave, at_ns: 300 },
    /// ];
    /// assert!(AwayPeriods::from_history(&history).periods().eq([100..200]));
    /// ```
    #[must_use]
    pub fn from_history(history: &[Transition]) -> Self {
        let mut away = Self::default();
        let mut left_at_ns = None;
        for transition in history {
            match (transition.kind, left_at_ns) {
                (TransitionKind::Leave, None) => left_at_ns = Some(transition.at_ns),
                (TransitionKind::Rejoin, Some(left_at)) => {
                    away.add(left_at, transition.at_ns);
                    left_at_ns = None;
                }
                (TransitionKind::Leave, Some(_)) | (TransitionKind::Rejoin, None) => {}
            }
        }
        away
    }

    /// Adds the period between two times in ns since the Unix epoch.
    pub fn add(&mut self, left_at_ns: u64, rejoined_at_ns: u64) {
        let mut start = left_at_ns.min(rejoined_at_ns);
        let mut end = left_at_ns.max(rejoined_at_ns);
        if start == end {
            return;
        }
        let first = self.periods.partition_point(|period| period.end < start);
        let after = self.periods.partition_point(|period| period.start <= end);
        for touched in self.periods.drain(first..after) {
            start = start.min(touched.start);
            end = end.max(touched.end);
        }
        self.periods.insert(first, start..end);
        if self.periods.len() > Self::MAX_AWAY_PERIODS {
            self.close_smallest_gap();
        }
    }

    /// Whether a time, in ns since the Unix epoch, lies in one of the periods.
    #[must_use]
    pub fn contains(&self, time_ns: u64) -> bool {
        let after = self.periods.partition_point(|period| period.start <= time_ns);
        after
            .checked_sub(1)
            .and_then(|last| self.periods.get(last))
            .is_some_and(|period| time_ns < period.end)
    }

    /// The periods, earliest first, in ns since the Unix epoch.
    #[must_use]
    pub fn periods(&self) -> impl ExactSizeIterator<Item = Range<u64>> + '_ {
        self.periods.iter().cloned()
    }

    /// How many periods there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.periods.len()
    }

    /// Whether the user was never away for any time, or has not come back yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.periods.is_empty()
    }

    fn close_smallest_gap(&mut self) {
        let gaps =
            self.periods.iter().zip(self.periods.iter().skip(1)).map(|(left, right)| right.start - left.end);
        // The earliest of equal gaps, so that the same additions always give the same periods.
        let Some((index, _)) = gaps.enumerate().min_by_key(|&(_, gap_ns)| gap_ns) else { return };
        let right = self.periods.remove(index + 1);
        if let Some(left) = self.periods.get_mut(index) {
            left.end = right.end;
        }
    }
}
