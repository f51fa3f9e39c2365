use super::NANOS_PER_UNIT;
use crate::power_of_two::power_of_two;

/// A decimal of at most 15 digits is the shortest one of the `f64` it reads as: no other of that length reads as
/// the same `f64`.
const SHORT_DECIMAL_LIMIT: f64 = 1e15;
const WHOLE_LIMIT: f64 = 1e9;

/// The nearest `f64` to a sum of weights in units of 1e-9; of two equally near ones the even one.
///
/// ```
/// use tidal_entities::weight_sum_to_f64;
///
/// assert_eq!(weight_sum_to_f64(903_500_000_000), 903.5);
/// assert_eq!(weight_sum_to_f64(100_000_000), 0.1);
/// ```
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "rounding to the nearest f64 is the purpose, and happens once")]
pub fn weight_sum_to_f64(nanos: i128) -> f64 {
    let magnitude = nanos.unsigned_abs();
    if magnitude == 0 {
        return 0.0;
    }
    // With the top bit set, the quotient has at least 97 bits, so that a remainder can be told by the last of them
    // long before it matters for rounding to 53.
    let shift = magnitude.leading_zeros();
    let dividend = magnitude << shift;
    let divisor = u128::from(NANOS_PER_UNIT.unsigned_abs());
    let (quotient, remainder) = (dividend / divisor, dividend % divisor);
    let rounded = (quotient | u128::from(remainder != 0)) as f64;
    // Both factors are normal and one is a power of two, so the product is exact.
    let value = rounded * power_of_two(-i64::from(shift));
    if nanos < 0 { -value } else { value }
}

/// The units of 1e-9 of an `f64` whose shortest decimal is a whole number up to 1e9, or has at most 15 digits and
/// none beyond the ninth place. Anything else is `None`, and must be read as a text.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "whole and below 2^53 each time"
)]
#[allow(clippy::float_cmp, reason = "only equality to the last bit proves the decimal")]
pub(super) fn nanos_of_short_decimal(value: f64) -> Option<i64> {
    if value.abs() <= WHOLE_LIMIT && value.trunc() == value {
        return Some(value as i64 * NANOS_PER_UNIT);
    }
    let per_unit = NANOS_PER_UNIT as f64;
    let nanos = (value * per_unit).round();
    // The division rounds once, as reading the decimal text would.
    (nanos.abs() < SHORT_DECIMAL_LIMIT && nanos / per_unit == value).then_some(nanos as i64)
}
