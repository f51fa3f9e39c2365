use super::{EPOCH_HALF_LIVES, FRACTION_BITS, exp2::exp2};
use crate::{
    HalfLife, Weight,
    window::{NO_BUCKET, bucket_of},
};

/// What one signal adds to a score, as an integer.
///
/// Computed once for a signal and then added to as many aggregates as take it, see
/// [`AggregateState::add_contribution`](crate::AggregateState::add_contribution).
///
/// Time is cut into epochs of 32 half-lives from the Unix epoch on. A signal that lies x half-lives after the
/// start of its epoch contributes round(weight in units of 1e-9 * 2^(x + 35)), half away from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Contribution {
    weight: Weight,
    // Both fit, which keeps this at 32 bytes: checkpoints hold a million.
    epoch: u32,
    bucket: u32,
    value: i128,
}

const _: () = {
    assert!(size_of::<Contribution>() == 32);
    assert!(u64::MAX / HalfLife::MIN.ns() / EPOCH_HALF_LIVES as u64 <= u32::MAX as u64);
};

impl Contribution {
    /// Works out what a signal adds, without windows. Every event time is fine, 0 and `u64::MAX` included.
    #[must_use]
    pub fn new(weight: Weight, event_time_ns: u64, half_life: HalfLife) -> Self {
        let place = EpochPlace::new(event_time_ns, half_life);
        // At most 2^60 * 2^64: a weight, and a power below 2 with 63 bits behind the point.
        let product = u128::from(weight.nanos().unsigned_abs()) * u128::from(exp2(place.fraction));
        let bits_behind_point = POWER_BITS - FRACTION_BITS;
        let magnitude = if place.half_lives < bits_behind_point {
            let shift = bits_behind_point - place.half_lives;
            // Rounds what is shifted out half up.
            ((product >> (shift - 1)) + 1) >> 1
        } else {
            product << (place.half_lives - bits_behind_point)
        };
        // Below 2^127, as the assertion beside CONTRIBUTION_BITS proves.
        let magnitude = magnitude.cast_signed();
        let value = if weight.nanos() < 0 { -magnitude } else { magnitude };
        Self { weight, epoch: place.epoch, bucket: NO_BUCKET, value }
    }

    /// The same for a signal of a type that [keeps windows](crate::SchemaBuilder::windowed).
    #[must_use]
    pub fn windowed(weight: Weight, event_time_ns: u64, half_life: HalfLife) -> Self {
        Self { bucket: bucket_of(event_time_ns), ..Self::new(weight, event_time_ns, half_life) }
    }

    /// The weight of the signal.
    #[must_use]
    pub const fn weight(&self) -> Weight {
        self.weight
    }

    /// The epoch of the signal: how many times 32 half-lives lie between the Unix epoch and its event time.
    #[must_use]
    #[allow(clippy::cast_lossless, reason = "From is not const")]
    pub const fn epoch(&self) -> u64 {
        self.epoch as u64
    }

    /// The bucket of 5 minutes that the signal falls into, if windows are kept.
    pub(crate) fn bucket(&self) -> Option<u32> {
        (self.bucket != NO_BUCKET).then_some(self.bucket)
    }

    /// The integer that is added to the sum of the epoch.
    #[must_use]
    pub const fn value(&self) -> i128 {
        self.value
    }
}

/// A power of [`exp2`] has this many bits behind the point.
pub(super) const POWER_BITS: u32 = 63;

/// A time as an epoch, and a number of half-lives since the start of the epoch.
pub(super) struct EpochPlace {
    pub(super) epoch: u32,
    /// 0 to 31.
    pub(super) half_lives: u32,
    /// With 64 bits behind the point, rounded down.
    pub(super) fraction: u64,
}

impl EpochPlace {
    /// Divides in integers: a quotient of two floats is off by 4e-8 half-lives after 30 years at 1 s.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the assertion beside Contribution proves the first; below 32; below 2^64 since the dividend is below it"
    )]
    pub(super) fn new(time_ns: u64, half_life: HalfLife) -> Self {
        let half_life_ns = half_life.ns();
        let whole = time_ns / half_life_ns;
        let part_ns = time_ns % half_life_ns;
        Self {
            epoch: (whole / u64::from(EPOCH_HALF_LIVES)) as u32,
            half_lives: (whole % u64::from(EPOCH_HALF_LIVES)) as u32,
            fraction: ((u128::from(part_ns) << u64::BITS) / u128::from(half_life_ns)) as u64,
        }
    }
}
