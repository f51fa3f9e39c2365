use super::NANOS_PER_UNIT;

/// How many digits a weight can have: 10 before the point (1e9), 9 after it.
const MAX_NANOS_DIGITS: i64 = 19;
/// Beyond this many digits before the first or after the last one that counts, all exponents are alike.
const EXPONENT_LIMIT: i64 = 1 << 40;

pub(super) enum ParseError {
    NotADecimal,
    OutOfRange,
}

/// Writes a number of units of 1e-9 as an exact decimal without trailing zeros.
///
/// ```
/// use tidal_entities::format_nanos;
///
/// assert_eq!(format_nanos(903_500_000_000), "903.5");
/// assert_eq!(format_nanos(-6_250_000_000), "-6.25");
/// assert_eq!(format_nanos(-1), "-0.000000001");
/// assert_eq!(format_nanos(0), "0");
/// ```
#[must_use]
pub fn format_nanos(nanos: i128) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let magnitude = nanos.unsigned_abs();
    let per_unit = u128::from(NANOS_PER_UNIT.unsigned_abs());
    let (whole, fraction) = (magnitude / per_unit, magnitude % per_unit);
    if fraction == 0 {
        return format!("{sign}{whole}");
    }
    let text = format!("{sign}{whole}.{fraction:09}");
    text.trim_end_matches('0').to_owned()
}

/// Reads a decimal text as units of 1e-9, rounded half to even. What is beyond the limit before it is rounded is
/// out of range.
pub(super) fn parse_nanos(text: &str, limit_nanos: u64) -> Result<i64, ParseError> {
    let (is_negative, unsigned) = split_sign(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return Err(ParseError::NotADecimal);
    }

    // The value is 0.d1d2d3.. * 10^point with d1 other than 0.
    let digits = whole.bytes().chain(fraction.bytes());
    let leading_zeros = digits.clone().take_while(|&digit| digit == b'0').count();
    let mut digits = digits.skip(leading_zeros).map(|digit| u64::from(digit - b'0')).peekable();
    if digits.peek().is_none() {
        return Ok(0);
    }
    let point = as_exponent(whole.len()) - as_exponent(leading_zeros) + exponent;

    let nanos_digits = point + 9;
    if nanos_digits > MAX_NANOS_DIGITS {
        return Err(ParseError::OutOfRange);
    }
    if nanos_digits < 0 {
        return Ok(0);
    }
    let mut nanos = 0_u64;
    for _ in 0..nanos_digits {
        // Nineteen digits stay below 2^64.
        nanos = nanos * 10 + digits.next().unwrap_or(0);
    }
    let tenths = digits.next().unwrap_or(0);
    let is_more = digits.any(|digit| digit != 0);
    if nanos > limit_nanos || nanos == limit_nanos && (tenths > 0 || is_more) {
        return Err(ParseError::OutOfRange);
    }
    if tenths > 5 || tenths == 5 && (is_more || nanos % 2 == 1) {
        nanos += 1;
    }
    let nanos = i64::try_from(nanos).map_err(|_| ParseError::OutOfRange)?;
    Ok(if is_negative { -nanos } else { nanos })
}

fn parse_exponent(text: &str) -> Result<i64, ParseError> {
    let (is_negative, digits) = split_sign(text);
    if digits.is_empty() || !is_digits(digits) {
        return Err(ParseError::NotADecimal);
    }
    // An exponent of a thousand digits is still an exponent: it only leads far out of range or to 0.
    let exponent = digits
        .bytes()
        .fold(0_i64, |exponent, digit| (exponent * 10 + i64::from(digit - b'0')).min(EXPONENT_LIMIT));
    Ok(if is_negative { -exponent } else { exponent })
}

fn split_sign(text: &str) -> (bool, &str) {
    match (text.strip_prefix('-'), text.strip_prefix('+')) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => (false, text),
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn as_exponent(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}
