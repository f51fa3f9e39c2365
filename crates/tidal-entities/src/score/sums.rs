use super::{
    Contribution, EPOCH_HALF_LIVES, FRACTION_BITS, WideSum,
    contribution::{EpochPlace, POWER_BITS},
    exp2::exp2,
};
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
/// seconds, so an item that is used all day has many. Epochs whose sum is zero are dropped.
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
    // Most sums have one epoch, which then needs no allocation.
    newest: Option<EpochSum>,
    // Ascending, all before `newest`, none zero.
    older: Vec<EpochSum>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EpochSum {
    pub(crate) epoch: u64,
    pub(crate) sum: WideSum,
}

const _: () = assert!(size_of::<EpochSum>() == 32);

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
        let Some(newest) = self.newest else { return 0.0 };
        // From the oldest on, so that small sums are added up before they meet large ones.
        let first_near = self.older.partition_point(|older| newest.epoch - older.epoch > MAX_NEAR_EPOCHS);
        let near = self.older.get(first_near..).unwrap_or_default();
        let (mut total, mut total_epoch) = (0.0, newest.epoch);
        for EpochSum { epoch, sum } in near.iter().chain([&newest]) {
            let gap_epochs = i64::try_from(epoch.saturating_sub(total_epoch)).unwrap_or(i64::MAX);
            total = total * power_of_two(-gap_epochs * i64::from(EPOCH_HALF_LIVES)) + sum.to_f64();
            total_epoch = *epoch;
        }

        let place = EpochPlace::new(at_ns, half_life);
        let decayed = total / exp2_f64(place.fraction) / NANOS_PER_UNIT;
        let epochs_ahead = i128::from(newest.epoch) - i128::from(place.epoch);
        let exponent = epochs_ahead * i128::from(EPOCH_HALF_LIVES)
            - i128::from(place.half_lives)
            - i128::from(FRACTION_BITS);
        scale(decayed, exponent)
    }

    /// Whether nothing contributes: nothing was added, everything was taken away, or all of it cancels out.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    /// How many epochs there are.
    #[must_use]
    pub fn epochs_len(&self) -> usize {
        self.older.len() + usize::from(self.newest.is_some())
    }

    /// The epochs in ascending order.
    pub(crate) fn epochs(&self) -> impl Iterator<Item = &EpochSum> {
        self.older.iter().chain(&self.newest)
    }

    /// Takes epochs in ascending order without zeros among them.
    pub(crate) fn from_epochs(mut epochs: Vec<EpochSum>) -> Self {
        let newest = epochs.pop();
        Self { newest, older: epochs }
    }

    fn change(&mut self, epoch: u64, apply: impl FnOnce(WideSum) -> WideSum) {
        match &mut self.newest {
            Some(newest) if newest.epoch == epoch => {
                newest.sum = apply(newest.sum);
                if newest.sum.is_zero() {
                    self.newest = self.older.pop();
                }
            }
            Some(newest) if newest.epoch > epoch => self.change_older(epoch, apply),
            _ => {
                let sum = apply(WideSum::default());
                if !sum.is_zero() {
                    self.older.extend(self.newest.replace(EpochSum { epoch, sum }));
                }
            }
        }
    }

    fn change_older(&mut self, epoch: u64, apply: impl FnOnce(WideSum) -> WideSum) {
        let index = self.older.partition_point(|older| older.epoch < epoch);
        match self.older.get_mut(index) {
            Some(older) if older.epoch == epoch => {
                older.sum = apply(older.sum);
                if older.sum.is_zero() {
                    self.older.remove(index);
                }
            }
            _ => {
                let sum = apply(WideSum::default());
                if !sum.is_zero() {
                    self.older.insert(index, EpochSum { epoch, sum });
                }
            }
        }
    }
}

const NANOS_PER_UNIT: f64 = 1e9;

#[allow(clippy::cast_precision_loss, reason = "53 bits of 64 are enough for a score")]
fn exp2_f64(fraction: u64) -> f64 {
    exp2(fraction) as f64 * power_of_two(-i64::from(POWER_BITS))
}

/// A value times a power of two, which stops at the largest `f64`, and at 0 instead of below the smallest.
fn scale(value: f64, exponent: i128) -> f64 {
    // Every value here lies between 2^-32 and 2^192, so that exponents beyond these all end at the same bounds.
    const EXPONENT_LIMIT: i128 = 2_000;
    const MAX_STEP: i64 = 1_000;
    let mut remaining = i64::try_from(exponent.clamp(-EXPONENT_LIMIT, EXPONENT_LIMIT)).unwrap_or(0);
    let mut scaled = value;
    while remaining != 0 {
        let step = remaining.clamp(-MAX_STEP, MAX_STEP);
        scaled *= power_of_two(step);
        remaining -= step;
    }
    // Adding 0 turns a negative zero into a plain one.
    scaled.clamp(f64::MIN, f64::MAX) + 0.0
}
