use super::{
    EPOCH_HALF_LIVES, FRACTION_BITS, contribution::EpochPlace, contribution::POWER_BITS, exp2::exp2,
};
use crate::{HalfLife, power_of_two::power_of_two};

/// A score without its time: of two scores of one half-life, the one with the larger rank is larger at every time.
///
/// All scores of one half-life decay alike, so their order never changes. A rank holds a score as a sign, a power of
/// two that spans all time, and 52 binary digits, so that it also tells apart scores that are too small or too large
/// for an `f64`. [`value_at`](Self::value_at) gives the score at a time:
///
/// - it never decreases when the rank grows;
/// - different ranks give different scores, as long as neither is beyond the largest `f64` nor below
///   [`f64::MIN_POSITIVE`]. Hence to sort by rank is to sort by score, ties included.
///
/// ```
/// use std::time::Duration;
/// use tidal_entities::{HalfLife, ScoreRank, ScoreSums, Weight};
///
/// let half_life = HalfLife::try_from(Duration::from_secs(1))?;
/// let rank = |weight, event_time_ns| {
///     let mut sums = ScoreSums::default();
///     sums.add(weight, event_time_ns, half_life);
///     sums.rank()
/// };
/// let (older, newer) = (rank(Weight::ONE, 0), rank(Weight::ONE, 5_000_000_000));
/// assert!(older < newer && ScoreRank::ZERO < older);
/// // A year later both scores are 0, and still one was larger.
/// assert_eq!(newer.value_at(31_536_000_000_000_000, half_life), 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// Two halves, since a u128 would align what holds it to 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScoreRank {
    /// Above [`SIGN`] the exponent, counted from [`LOWEST_EXPONENT`]; all bits flipped for a negative score.
    high: u64,
    /// The digits behind the leading one; all bits flipped for a negative score.
    low: u64,
}

/// Set for a score that is not negative.
const SIGN: u64 = 1 << 63;

/// Below the exponent of every sum: the smallest is 1, eight epochs behind 0.
const LOWEST_EXPONENT: i64 = -512;

const STORED_MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
const MANTISSA_MASK: u64 = (1 << STORED_MANTISSA_BITS) - 1;

/// The last digit of an `f64` is left out: dividing by anything between 1 and 2 could make two that differ only in it
/// the same, and two that differ in the digit before it never.
const DIGITS_MASK: u64 = MANTISSA_MASK & !1;

const EXPONENT_BIAS: i64 = 1023;

impl ScoreRank {
    /// The rank of a score of 0.
    pub const ZERO: Self = Self { high: SIGN, low: 0 };

    /// Below the rank of every score. It stands for no score at all.
    pub const LOWEST: Self = Self { high: 0, low: 0 };

    /// The rank of `sum * 2^(32 * epoch)`; the sum is 0 or between 2^-256 and 2^192.
    pub(super) fn new(sum: f64, epoch: u64) -> Self {
        if sum == 0.0 {
            return Self::ZERO;
        }
        let bits = sum.abs().to_bits();
        let exponent = (bits >> STORED_MANTISSA_BITS).cast_signed() - EXPONENT_BIAS;
        // Epochs are below 2^30, since the shortest half-life is 1 s.
        let exponent = exponent + epoch.cast_signed() * i64::from(EPOCH_HALF_LIVES);
        let high = SIGN | (exponent - LOWEST_EXPONENT).cast_unsigned();
        let low = bits & DIGITS_MASK;
        if sum < 0.0 { Self { high: !high, low: !low } } else { Self { high, low } }
    }

    /// The score at a time, in ns since the Unix epoch; the half-life is that of the sums.
    #[must_use]
    pub fn value_at(self, at_ns: u64, half_life: HalfLife) -> f64 {
        if self == Self::ZERO { 0.0 } else { ScoreMoment::new(at_ns, half_life).value_of(self) }
    }
}

/// A time at which many scores of one half-life are read: what they have in common is worked out once.
///
/// ```
/// use std::time::Duration;
/// use tidal_entities::{HalfLife, ScoreMoment, ScoreSums, Weight};
///
/// let half_life = HalfLife::try_from(Duration::from_secs(1))?;
/// let mut sums = ScoreSums::default();
/// sums.add(Weight::ONE, 0, half_life);
/// let moment = ScoreMoment::new(3_000_000_000, half_life);
/// assert_eq!(moment.value_of(sums.rank()), 0.125);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ScoreMoment {
    /// See [`one_unit`].
    one_unit: f64,
    /// Since the Unix epoch, whole ones.
    half_lives: i64,
}

impl ScoreMoment {
    /// A time in ns since the Unix epoch.
    #[must_use]
    pub fn new(at_ns: u64, half_life: HalfLife) -> Self {
        let place = EpochPlace::new(at_ns, half_life);
        Self {
            one_unit: one_unit(place.fraction),
            half_lives: i64::from(place.epoch) * i64::from(EPOCH_HALF_LIVES) + i64::from(place.half_lives),
        }
    }

    /// The score of that rank at that time: [`ScoreRank::value_at`].
    #[must_use]
    pub fn value_of(&self, rank: ScoreRank) -> f64 {
        if rank == ScoreRank::ZERO {
            return 0.0;
        }
        let is_negative = rank.high & SIGN == 0;
        let (high, low) = if is_negative { (!rank.high, !rank.low) } else { (rank.high, rank.low) };
        let exponent = (high & !SIGN).cast_signed() + LOWEST_EXPONENT;
        let digits = f64::from_bits(EXPONENT_BIAS.cast_unsigned() << STORED_MANTISSA_BITS | low);

        // One division, by what is the same for all scores at that time, is what keeps different ranks apart.
        let quotient = digits / self.one_unit;
        let value = scale(quotient, exponent - self.half_lives - i64::from(FRACTION_BITS));
        // A zero has no sign.
        if is_negative { 0.0 - value } else { value }
    }
}

const NANOS_PER_UNIT: u128 = 1_000_000_000;

/// What a weight of 1 contributes at a time so many half-lives after a whole number of them, digits as in a rank:
/// hence a weight of 1 is worth 1 at its own time.
#[allow(clippy::cast_precision_loss, reason = "so many digits are kept as a rank has")]
fn one_unit(fraction: u64) -> f64 {
    let product = (NANOS_PER_UNIT * u128::from(exp2(fraction))) as f64;
    f64::from_bits(product.to_bits() & !1) * power_of_two(-i64::from(POWER_BITS))
}

/// A value between 2^-31 and 2^-28, times a power of two, which stops at the largest `f64`, and at 0.
fn scale(value: f64, exponent: i64) -> f64 {
    // Within this the product is exact, so that whatever is rounded is rounded once: the order survives.
    const EXACT: i64 = 900;
    // Beyond twice this everything ends at one of the bounds.
    let exponent = exponent.clamp(-2 * EXACT, 2 * EXACT);
    let exact = exponent.clamp(-EXACT, EXACT);
    (value * power_of_two(exact) * power_of_two(exponent - exact)).min(f64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DIGITS_MASK, ScoreRank};
    use crate::HalfLife;

    const SECOND_NS: u64 = 1_000_000_000;

    /// The next larger number of 52 digits.
    fn next(sum: f64) -> f64 {
        f64::from_bits(if sum < 0.0 { sum.to_bits() - 2 } else { sum.to_bits() + 2 })
    }

    /// Any number that a sum may be, in 52 digits.
    fn sums() -> impl Strategy<Value = f64> {
        let near_one = prop_oneof![any::<u64>(), 0..8_u64, (0..8_u64).prop_map(|below| u64::MAX - below)];
        (any::<bool>(), -250..190_i32, near_one).prop_map(|(is_negative, exponent, digits)| {
            let size = f64::from_bits(1023 << 52 | digits & DIGITS_MASK) * 2_f64.powi(exponent);
            if is_negative { -size } else { size }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn neighbours_differ_at_every_time(
            sum in sums(),
            epoch in 0..1_u64 << 29,
            half_life_ns in SECOND_NS..HalfLife::MAX.ns(),
            half_lives_later in 0..900_u64,
            part_ns in any::<u64>(),
        ) {
            let half_life = HalfLife::from_ns(half_life_ns).unwrap();
            let event_ns = u128::from(epoch) * 32 * u128::from(half_life_ns);
            let at_ns = event_ns + u128::from(half_lives_later) * u128::from(half_life_ns);
            let at_ns = u64::try_from(at_ns + u128::from(part_ns % half_life_ns)).unwrap_or(u64::MAX);
            let epoch = u64::try_from(event_ns).map_or(0, |_| epoch);
            let (low, high) = (ScoreRank::new(sum, epoch), ScoreRank::new(next(sum), epoch));
            prop_assert!(low < high);
            let (low, high) = (low.value_at(at_ns, half_life), high.value_at(at_ns, half_life));
            prop_assert!(low <= high);
            let is_told_apart = |score: f64| score.is_normal() && score.abs() < f64::MAX;
            prop_assert!(low < high || !is_told_apart(low) || !is_told_apart(high), "{low:e} {high:e}");
        }

        /// A number is the same number, whichever epoch it is counted from.
        #[test]
        fn epochs_are_powers_of_two(sum in sums(), epoch in 8..1_u64 << 29, epochs in 1..3_u64) {
            let factor = 2_f64.powi(32 * i32::try_from(epochs).unwrap());
            prop_assume!(sum.abs() < 2_f64.powi(100));
            prop_assert_eq!(ScoreRank::new(sum, epoch), ScoreRank::new(sum * factor, epoch - epochs));
        }

        #[test]
        fn ranks_of_one_epoch_are_in_the_order_of_the_sums(a in sums(), b in sums(), epoch in 0..1_u64 << 29) {
            let rank = |sum: f64| ScoreRank::new(sum, epoch);
            prop_assert_eq!(Some(rank(a).cmp(&rank(b))), a.partial_cmp(&b));
            prop_assert_eq!(rank(a).cmp(&ScoreRank::ZERO), a.total_cmp(&0.0));
        }

        #[test]
        fn scores_mirror(sum in sums(), epoch in 0..1_u64 << 29, at_ns in any::<u64>()) {
            let score = |sum: f64| ScoreRank::new(sum, epoch).value_at(at_ns, HalfLife::MIN);
            prop_assert_eq!(score(sum).to_bits(), (0.0 - score(-sum)).to_bits());
        }
    }
}
