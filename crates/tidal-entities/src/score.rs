mod contribution;
mod exp2;
mod older;
mod rank;
mod sums;
mod wide_sum;

pub use contribution::Contribution;
pub use rank::{ScoreMoment, ScoreRank};
pub use sums::ScoreSums;

pub(crate) use sums::EpochSum;
pub(crate) use wide_sum::WideSum;

/// How many half-lives an epoch has: within one, weights differ by a factor below 2^32.
const EPOCH_HALF_LIVES: u32 = 32;

/// How many bits a contribution has behind the point, counted from a weight of 1e-9 at the start of an epoch.
///
/// 35 is the most for which nothing can overflow (see the assertion), and keeps the error of rounding below 2^-36,
/// which is 1.5e-11, of the smallest weight.
const FRACTION_BITS: u32 = 35;

/// The least power of two above the largest weight in units of 1e-9.
const WEIGHT_BITS: u32 = 60;
const COUNT_BITS: u32 = u64::BITS;
const CONTRIBUTION_BITS: u32 = WEIGHT_BITS + EPOCH_HALF_LIVES + FRACTION_BITS;

const _: () = assert!(1_u64 << WEIGHT_BITS > crate::Weight::MAX.nanos().unsigned_abs());
// A contribution fits an i128, and as many as a u64 can count fit the 192 bits of a sum.
const _: () =
    assert!(CONTRIBUTION_BITS == i128::BITS - 1 && CONTRIBUTION_BITS + COUNT_BITS == WideSum::BITS - 1);
