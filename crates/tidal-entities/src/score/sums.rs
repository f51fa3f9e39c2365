use super::{Contribution, EPOCH_HALF_LIVES, ScoreRank, WideSum, older::OlderEpochs};
use crate::{HalfLife, Weight, power_of_two::power_of_two};

/// An exponentially decayed sum from which everything can be taken away again.
///
/// The score at time t is the sum of weight * 2^(-(t - event time) / half-life). It is kept as integers: time is cut
/// into epochs of 32 half-lives, and each epoch in which something happened has one sum, of 192 bits, of what its
/// [`Contribution`]s are. Hence
///
/// - to add and to subtract are exact inverses, and the order does not matter, however far apart the events are;
/// - a score is within 1e-9 of the sum of |weight| * 2^(-(t - event time) / half-life), for every half-life and
///   every t, also one before the events; it is never infinite or NaN, but stops at the largest `f64`, and at 0 below
///   the smallest;
/// - all sums of one half-life must be made and read with that half-life: it is not kept here.
///
/// One epoch takes 32 bytes. With a half-life of a week one covers seven months; with one of a second it covers 32
/// seconds, so an item that is used all day has 2,700 of them, 86 kB, for each day. Epochs whose sum is zero are dropped.
///
/// ```
/// use std::time::Duration;
/// use tidal_entities::{Contribution, HalfLife, ScoreSums, Weight};
///
/// let half_life = HalfLife::try_from(Duration::from_secs(1))?;
/// let thirty_years_ns = 946_728_000_000_000_000;
///
/// let mut sums = ScoreSums::default();
/// sums.add(Weight::ONE, 0, half_life);
/// let before = sums.clone();
/// sums.add(Weight::MAX, thirty_years_ns, half_life);
/// sums.subtract(Weight::MAX, thirty_years_ns, half_life);
/// assert_eq!(sums, before);
/// assert_eq!(sums.value_at(3_000_000_000, half_life), 0.125);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScoreSums {
    // Most sums have one epoch, which then needs no allocation. A sum of zero stands for no epoch at all, which is 8
    // bytes less than an option.
    newest: EpochSum,
    // All before the newest, behind one pointer, since most sums have none. None if there are none, so that equal sums
    // are equal.
    older: Option<Box<OlderEpochs>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct EpochSum {
    pub(crate) epoch: u64,
    pub(crate) sum: WideSum,
}

const _: () = assert!(size_of::<EpochSum>() == 32 && size_of::<ScoreSums>() == 40);

/// An epoch further behind the newest than this cannot change a score by 1e-9 of its scale: a sum is below 2^191, so
/// it has shrunk below 2^(191 - 32 * 9) = 2^-97, while the newest epoch holds at least one contribution of 2^35.
const MAX_NEAR_EPOCHS: u64 = 8;

impl ScoreSums {
    /// Adds a signal.
    pub fn add(&mut self, weight: Weight, event_time_ns: u64, half_life: HalfLife) {
        self.add_contribution(&Contribution::new(weight, event_time_ns, half_life));
    }

    /// Takes a signal away that was added before.
    pub fn subtract(&mut self, weight: Weight, event_time_ns: u64, half_life: HalfLife) {
        self.subtract_contribution(&Contribution::new(weight, event_time_ns, half_life));
    }

    /// Adds what a signal contributes.
    pub fn add_contribution(&mut self, contribution: &Contribution) {
        self.change(contribution.epoch(), |sum| sum.add(contribution.value()));
    }

    /// Takes away what a signal contributes.
    pub fn subtract_contribution(&mut self, contribution: &Contribution) {
        self.change(contribution.epoch(), |sum| sum.subtract(contribution.value()));
    }

    /// The score at a time, in ns since the Unix epoch. An event that is still to come counts for more than its
    /// weight.
    #[must_use]
    pub fn value_at(&self, at_ns: u64, half_life: HalfLife) -> f64 {
        self.rank().value_at(at_ns, half_life)
    }

    /// Where the score stands among all scores of the same half-life, at every time.
    #[must_use]
    pub fn rank(&self) -> ScoreRank {
        let newest = self.newest;
        // From the oldest on, so that small sums are added up before they meet large ones.
        let near =
            self.older.iter().flat_map(|older| older.since(newest.epoch.saturating_sub(MAX_NEAR_EPOCHS)));
        let (mut total, mut total_epoch) = (0.0, newest.epoch);
        for EpochSum { epoch, sum } in near.chain([&newest]) {
            let gap_epochs = i64::try_from(epoch.saturating_sub(total_epoch)).unwrap_or(i64::MAX);
            total = total * power_of_two(-gap_epochs * i64::from(EPOCH_HALF_LIVES)) + sum.to_f64();
            total_epoch = *epoch;
        }
        ScoreRank::new(total, newest.epoch)
    }

    /// Whether nothing contributes: nothing was added, everything was taken away, or all of it cancels out.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.newest.sum.is_zero()
    }

    /// How many epochs there are.
    #[must_use]
    pub fn epochs_len(&self) -> usize {
        self.older.as_ref().map_or(0, |older| older.len()) + usize::from(!self.is_empty())
    }

    /// The epochs in ascending order.
    pub(crate) fn epochs(&self) -> impl Iterator<Item = &EpochSum> {
        self.older.iter().flat_map(|older| older.iter()).chain((!self.is_empty()).then_some(&self.newest))
    }

    /// Takes epochs in ascending order without zeros among them; the newest is zero if there are none.
    pub(crate) fn from_parts(older: Vec<EpochSum>, newest: EpochSum) -> Self {
        let older = (!older.is_empty()).then(|| Box::new(OlderEpochs::from_ascending(older)));
        Self { newest, older }
    }

    /// Adds everything that another sum of the same half-life holds.
    pub fn merge(&mut self, other: &Self) {
        for EpochSum { epoch, sum } in other.epochs() {
            self.change(*epoch, |own| own.plus(*sum));
        }
    }

    fn change(&mut self, epoch: u64, apply: impl FnOnce(WideSum) -> WideSum) {
        if self.is_empty() || self.newest.epoch < epoch {
            let sum = apply(WideSum::default());
            if !sum.is_zero() {
                let before = std::mem::replace(&mut self.newest, EpochSum { epoch, sum });
                if !before.sum.is_zero() {
                    self.older.get_or_insert_default().push(before);
                }
            }
        } else if self.newest.epoch == epoch {
            self.newest.sum = apply(self.newest.sum);
            if self.newest.sum.is_zero() {
                self.newest = self.older.as_mut().and_then(|older| older.pop()).unwrap_or_default();
                self.drop_empty();
            }
        } else {
            self.older.get_or_insert_default().change(epoch, apply);
            self.drop_empty();
        }
    }

    fn drop_empty(&mut self) {
        if self.older.as_ref().is_some_and(|older| older.is_empty()) {
            self.older = None;
        }
    }
}
