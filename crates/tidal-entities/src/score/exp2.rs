/// One, with 63 bits behind the point.
const ONE: u64 = 1 << FRACTION_BITS;
const FRACTION_BITS: u32 = 63;

/// The exponent is read in groups of 6 bits, from the top.
const GROUP_BITS: u32 = 6;
const GROUP_SIZE: usize = 1 << GROUP_BITS;
const GROUP_COUNT: usize = 6;

/// The bits below the last group. They say less than 2^-36, where 2^y and 1 + y ln 2 are the same to 73 bits.
const REST_BITS: u32 = u64::BITS - GROUP_BITS * 6;
const REST_MASK: u64 = (1 << REST_BITS) - 1;

const _: () = assert!(GROUP_COUNT == 6 && REST_BITS == 28);

/// The natural logarithm of 2 with 32 bits behind the point, rounded down.
const LN_2: u64 = 2_977_044_471;
const LN_2_BITS: u32 = 32;

/// 2^(g * 2^-6), 2^(g * 2^-12), .. for each group value g, with 63 bits behind the point.
static POWERS: [[u64; GROUP_SIZE]; GROUP_COUNT] = powers();

/// 2 to a fraction that has 64 bits behind the point: from 1 up to, but without, 2, with 63 bits behind the point.
///
/// Integers only, so that every platform gives the same bits: sums that are stored on one are taken apart on
/// another. Each step rounds down, hence the result is never above the true value, and it is within 2^-56 of it.
/// What comes out is part of the format of stored aggregates.
#[allow(clippy::indexing_slicing, reason = "six bits index a table of 64")]
#[allow(clippy::cast_possible_truncation, reason = "six bits fit every integer, and the sum is below 2")]
pub(super) fn exp2(fraction: u64) -> u64 {
    let mut shift = u64::BITS;
    let mut product = ONE;
    for table in &POWERS {
        shift -= GROUP_BITS;
        product = multiply(product, table[(fraction >> shift) as usize % GROUP_SIZE]);
    }
    let rest_ln_2 = (fraction & REST_MASK) * LN_2;
    let increase = (u128::from(product) * u128::from(rest_ln_2)) >> (u64::BITS + LN_2_BITS);
    product + increase as u64
}

#[allow(clippy::cast_possible_truncation, reason = "two factors below 2 whose product is below 2")]
const fn multiply(left: u64, right: u64) -> u64 {
    ((left as u128 * right as u128) >> FRACTION_BITS) as u64
}

/// Each square root halves the exponent: 2^(1/2), 2^(1/4), 2^(1/8), ..
#[allow(clippy::indexing_slicing, reason = "evaluated at compile time, where a wrong index does not compile")]
#[allow(clippy::cast_possible_truncation, reason = "the square root of a value below 2 is below 2")]
const fn powers() -> [[u64; GROUP_SIZE]; GROUP_COUNT] {
    let mut powers = [[ONE; GROUP_SIZE]; GROUP_COUNT];
    let mut root = 2_u128 << FRACTION_BITS;
    let mut group = 0;
    while group < GROUP_COUNT {
        let mut bit = GROUP_SIZE / 2;
        while bit > 0 {
            root = (root << FRACTION_BITS).isqrt();
            let mut value = 0;
            while value < GROUP_SIZE {
                if value & bit != 0 {
                    powers[group][value] = multiply(powers[group][value], root as u64);
                }
                value += 1;
            }
            bit /= 2;
        }
        group += 1;
    }
    powers
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss, reason = "compared within a tolerance")]
mod tests {
    use proptest::prelude::*;

    use super::{ONE, exp2};

    #[test]
    fn known_values() {
        assert_eq!(exp2(0), ONE);
        // floor(2^63 * sqrt(2)), floor(2^63 * 2^(1/4)) and the last value below 2.
        assert_eq!(exp2(1 << 63), 0xb504_f333_f9de_6484);
        assert!(0x9837_f051_8db8_a96f_u64.abs_diff(exp2(1 << 62)) <= 1);
        assert!(u64::MAX - exp2(u64::MAX) < 128);
    }

    proptest! {
        /// 2^a * 2^b = 2^(a + b) with all factors within 2^-56 leaves no room for a wrong table.
        #[test]
        fn exponents_add_up(a in any::<u64>(), b in any::<u64>()) {
            let product = u128::from(exp2(a)) * u128::from(exp2(b));
            let (sum, is_above_one) = a.overflowing_add(b);
            let expected = u128::from(exp2(sum)) << (63 + u32::from(is_above_one));
            prop_assert!(product.abs_diff(expected) <= expected >> 54, "{product:x} {expected:x}");
        }

        #[test]
        fn agrees_with_floats(fraction in any::<u64>()) {
            let expected = (fraction as f64 / 2_f64.powi(64)).exp2();
            let found = exp2(fraction) as f64 / ONE as f64;
            prop_assert!((found - expected).abs() <= 4.0 * f64::EPSILON);
        }

        #[test]
        fn grows(a in any::<u64>(), b in any::<u64>()) {
            // Rounding may blur neighbours, not values that are 2^-52 apart.
            if a.saturating_add(1 << 12) < b {
                prop_assert!(exp2(a) < exp2(b));
            }
        }
    }
}
