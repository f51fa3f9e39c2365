/// 2 to a whole exponent between -1022 and 1023, exact.
pub(crate) fn power_of_two(exponent: i64) -> f64 {
    const EXPONENT_BIAS: i64 = 1023;
    const STORED_MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    let biased = (exponent + EXPONENT_BIAS).clamp(1, 2 * EXPONENT_BIAS);
    f64::from_bits(biased.unsigned_abs() << STORED_MANTISSA_BITS)
}
