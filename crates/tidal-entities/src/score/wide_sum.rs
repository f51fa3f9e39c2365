/// A signed integer of 192 bits: the sum of up to 2^64 contributions, which have 127 bits and a sign.
///
/// In a struct of 64-bit limbs, since a `u128` would align it to 16 bytes and an epoch would take 48 instead of 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct WideSum {
    low: u64,
    middle: u64,
    high: i64,
}

impl WideSum {
    pub(crate) const BITS: u32 = 192;
    pub(crate) const LEN_BYTES: usize = 24;

    pub(crate) const fn is_zero(self) -> bool {
        self.low == 0 && self.middle == 0 && self.high == 0
    }

    pub(crate) fn add(self, value: i128) -> Self {
        let (low, carry) = self.low_half().overflowing_add(value.cast_unsigned());
        let sign = if value < 0 { -1 } else { 0 };
        // The high limb cannot overflow, as the assertion beside CONTRIBUTION_BITS proves.
        Self::from_halves(self.high.wrapping_add(sign).wrapping_add(i64::from(carry)), low)
    }

    pub(crate) fn subtract(self, value: i128) -> Self {
        let (low, borrow) = self.low_half().overflowing_sub(value.cast_unsigned());
        let sign = if value < 0 { -1 } else { 0 };
        Self::from_halves(self.high.wrapping_sub(sign).wrapping_sub(i64::from(borrow)), low)
    }

    /// The sum of two sums, if together they are of no more contributions than one may have.
    pub(crate) fn plus(self, other: Self) -> Self {
        let (low, carry) = self.low_half().overflowing_add(other.low_half());
        Self::from_halves(self.high.wrapping_add(other.high).wrapping_add(i64::from(carry)), low)
    }

    pub(crate) fn is_negative(self) -> bool {
        self.high < 0
    }

    /// The absolute value: bits 128 to 191, and bits 0 to 127.
    pub(crate) fn magnitude(self) -> (u64, u128) {
        let (high, low) = (self.high.cast_unsigned(), self.low_half());
        if !self.is_negative() {
            return (high, low);
        }
        let (low, carry) = (!low).overflowing_add(1);
        ((!high).wrapping_add(u64::from(carry)), low)
    }

    /// Whether a number of contributions, each below 2^127, can add up to this.
    pub(crate) fn can_be_sum_of(self, count: u64) -> bool {
        let (high, low) = self.magnitude();
        // count * 2^127, as halves of 64 and 128 bits.
        let limit = (count >> 1, u128::from(count & 1) << 127);
        (high, low) < limit
    }

    /// An `f64` within 2^-52 of the sum, relative to the sum.
    #[allow(clippy::cast_precision_loss, reason = "an f64 is what is asked for")]
    pub(crate) fn to_f64(self) -> f64 {
        const LOW_HALF: f64 = 340_282_366_920_938_463_463_374_607_431_768_211_456.0;
        // Both parts have the same sign, so that adding them cancels nothing.
        let (high, low) = self.magnitude();
        let magnitude = high as f64 * LOW_HALF + low as f64;
        if self.is_negative() { -magnitude } else { magnitude }
    }

    pub(crate) fn to_le_bytes(self) -> [u8; Self::LEN_BYTES] {
        let mut bytes = [0; Self::LEN_BYTES];
        let limbs = [self.low.to_le_bytes(), self.middle.to_le_bytes(), self.high.to_le_bytes()];
        for (byte, limb_byte) in bytes.iter_mut().zip(limbs.as_flattened()) {
            *byte = *limb_byte;
        }
        bytes
    }

    pub(crate) fn from_le_bytes(bytes: [u8; Self::LEN_BYTES]) -> Self {
        let [low, middle, high] = *bytes.as_chunks().0 else { return Self::default() };
        Self::from_limbs(u64::from_le_bytes(low), u64::from_le_bytes(middle), i64::from_le_bytes(high))
    }

    pub(crate) const fn from_limbs(low: u64, middle: u64, high: i64) -> Self {
        Self { low, middle, high }
    }

    fn low_half(self) -> u128 {
        u128::from(self.middle) << u64::BITS | u128::from(self.low)
    }

    #[allow(clippy::cast_possible_truncation, reason = "each limb takes its own 64 bits")]
    fn from_halves(high: i64, low: u128) -> Self {
        Self { low: low as u64, middle: (low >> u64::BITS) as u64, high }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut into limbs on purpose")]
#[allow(clippy::cast_precision_loss, clippy::float_cmp, reason = "compared within a tolerance, or exact")]
mod tests {
    use proptest::prelude::*;

    use super::WideSum;

    /// Adds in 64-bit steps, so that the sum is not computed by what is tested.
    fn sum_of_limbs(values: &[i128]) -> [u64; 3] {
        let mut sum = [0_u64; 3];
        for value in values {
            let extension = if *value < 0 { u64::MAX } else { 0 };
            let limbs = [*value as u64, (*value >> 64) as u64, extension];
            let mut carry = 0;
            for (sum, limb) in sum.iter_mut().zip(limbs) {
                let total = u128::from(*sum) + u128::from(limb) + carry;
                *sum = total as u64;
                carry = total >> 64;
            }
        }
        sum
    }

    proptest! {
        #[test]
        fn adds_like_long_addition(values in prop::collection::vec(any::<i128>(), 0..20)) {
            let sum = values.iter().fold(WideSum::default(), |sum, value| sum.add(*value));
            let [low, middle, high] = sum_of_limbs(&values);
            prop_assert_eq!(sum, WideSum::from_limbs(low, middle, high.cast_signed()));

            let back = values.iter().rev().fold(sum, |sum, value| sum.subtract(*value));
            prop_assert!(back.is_zero());
        }

        #[test]
        fn sums_add_up_like_their_values(
            values in prop::collection::vec(any::<i128>(), 0..20),
            others in prop::collection::vec(any::<i128>(), 0..20),
        ) {
            let sum_of = |values: &[i128]| values.iter().fold(WideSum::default(), |sum, value| sum.add(*value));
            let all: Vec<i128> = values.iter().chain(&others).copied().collect();
            prop_assert_eq!(sum_of(&values).plus(sum_of(&others)), sum_of(&all));
        }

        #[test]
        fn negation_mirrors(value in any::<i128>(), other in any::<i128>()) {
            let sum = WideSum::default().add(value).add(other);
            let mirrored = WideSum::default().subtract(value).subtract(other);
            prop_assert_eq!(sum.magnitude(), mirrored.magnitude());
            prop_assert_eq!(sum.to_f64().to_bits(), (0.0 - mirrored.to_f64()).to_bits());
        }

        #[test]
        fn float_of_one_value_is_near(value in any::<i128>()) {
            let sum = WideSum::default().add(value);
            prop_assert!((sum.to_f64() - value as f64).abs() <= (value as f64).abs() * f64::EPSILON);
        }
    }

    #[test]
    fn small_negative_sums_keep_all_digits() {
        assert_eq!(WideSum::default().subtract(1).to_f64(), -1.0);
        assert_eq!(WideSum::default().add(i128::MIN).add(i128::MIN).to_f64(), -(2.0_f64.powi(128)));
    }
}
