//! Weights are exact: as decimals, as floats, and as sums.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

mod common;

use common::chain;
use proptest::prelude::*;
use tidal_entities::{Weight, WeightError, format_nanos, weight_sum_to_f64};

fn from_float(value: f64) -> Result<i64, WeightError> {
    Weight::try_from(value).map(Weight::nanos)
}

fn from_text(text: &str) -> Result<i64, WeightError> {
    text.parse().map(Weight::nanos)
}

#[test]
fn floats_are_their_shortest_decimals() {
    for (value, nanos) in [
        (0.0, 0),
        (-0.0, 0),
        (0.1, 100_000_000),
        (0.1 + 0.2, 300_000_000),
        (-6.25, -6_250_000_000),
        (1e-9, 1),
        (-1e-9, -1),
        (1e9, 1_000_000_000_000_000_000),
        (-1e9, -1_000_000_000_000_000_000),
        (999_999_999.999_999_9, 999_999_999_999_999_900),
        (123_456_789.123_456_79, 123_456_789_123_456_790),
        (f64::MIN_POSITIVE, 0),
        (5e-324, 0),
    ] {
        assert_eq!(from_float(value), Ok(nanos), "{value:e}");
    }
}

#[test]
fn digits_beyond_the_ninth_round_half_to_even() {
    for (text, nanos) in [
        ("5e-10", 0),
        ("15e-10", 2),
        ("25e-10", 2),
        ("35e-10", 4),
        ("-5e-10", 0),
        ("-15e-10", -2),
        ("5.0000000000000000000000000000000001e-10", 1),
        ("4.9999999999999999999999999999999999e-10", 0),
        ("0.1234567895", 123_456_790),
        ("0.1234567885", 123_456_788),
    ] {
        assert_eq!(from_text(text), Ok(nanos), "{text}");
    }
    for (value, nanos) in [(5e-10, 0), (1.5e-9, 2), (2.5e-9, 2), (0.123_456_788_5, 123_456_788)] {
        assert_eq!(from_float(value), Ok(nanos), "{value:e}");
    }
}

#[test]
fn texts_are_decimals() {
    for (text, nanos) in [
        ("0", 0),
        ("-0", 0),
        ("+1", 1_000_000_000),
        (".5", 500_000_000),
        ("5.", 5_000_000_000),
        ("007.250", 7_250_000_000),
        ("1e-30", 0),
        ("1E3", 1_000_000_000_000),
        ("-2.5e+3", -2_500_000_000_000),
        ("0e99999999999999999999", 0),
        ("1e-99999999999999999999", 0),
        ("1000000000", 1_000_000_000_000_000_000),
        ("0.000000001e18", 1_000_000_000_000_000_000),
        ("-1000000000.0000000000", -1_000_000_000_000_000_000),
    ] {
        assert_eq!(from_text(text), Ok(nanos), "{text}");
    }
    let long = format!("{}5{}", "0".repeat(5_000), "0".repeat(5_000));
    assert_eq!(from_text(&format!("{long}e-5000")), Ok(5_000_000_000));
}

#[test]
fn what_is_no_decimal_is_refused() {
    for text in [
        "", " ", "abc", "1_0", "1,5", " 1", "1 ", "+", "-", ".", "+.", "--1", "+-1", "e5", "1e", "1e+",
        "1e1.5", "1.2.3", "0x10", "inf", "-inf", "NaN", "١", "1\n", "½",
    ] {
        assert!(matches!(from_text(text), Err(WeightError::NotADecimal { .. })), "{text:?}");
    }
}

#[test]
fn what_is_out_of_range_is_refused_before_it_is_rounded() {
    for text in
        ["1000000000.0000000001", "-1000000000.0000000001", "1000000001", "1e10", "1e99999999999999999999"]
    {
        assert!(matches!(from_text(text), Err(WeightError::OutOfRange { .. })), "{text}");
    }
    for value in [1e9_f64.next_up(), (-1e9_f64).next_down(), 1e10, f64::MAX, f64::MIN] {
        assert!(matches!(from_float(value), Err(WeightError::OutOfRange { .. })), "{value:e}");
    }
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(from_float(value), Err(WeightError::NotFinite { .. })), "{value}");
    }
    for nanos in [1_000_000_000_000_000_001, -1_000_000_000_000_000_001, i64::MAX, i64::MIN] {
        assert!(matches!(Weight::from_nanos(nanos), Err(WeightError::OutOfRange { .. })), "{nanos}");
    }
}

#[test]
fn messages_name_the_value() {
    let mut messages = String::new();
    for text in ["", "1_0", "1e10", &"9".repeat(100)] {
        messages += &chain(&from_text(text).unwrap_err());
        messages += "\n";
    }
    for value in [f64::NAN, f64::NEG_INFINITY, 1e9_f64.next_up()] {
        messages += &chain(&from_float(value).unwrap_err());
        messages += "\n";
    }
    messages += &chain(&Weight::from_nanos(i64::MIN).unwrap_err());
    insta::assert_snapshot!("weight_errors", messages);
}

#[test]
fn sums_print_as_exact_decimals() {
    for (nanos, text) in [
        (0, "0"),
        (1, "0.000000001"),
        (-1, "-0.000000001"),
        (903_500_000_000, "903.5"),
        (-6_250_000_000, "-6.25"),
        (100_000_000_000, "100"),
        (i128::MAX, "170141183460469231731687303715.884105727"),
        (i128::MIN, "-170141183460469231731687303715.884105728"),
    ] {
        assert_eq!(format_nanos(nanos), text);
    }
    assert_eq!(format!("{:>8}|", Weight::ONE), "       1|");
}

/// Weights of every size, and such as people write.
fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        -1e9..1e9_f64,
        -1.0..1.0_f64,
        (-1_000_000_000..1_000_000_000_i32).prop_map(f64::from),
        (any::<i64>(), 0..20).prop_map(|(digits, places)| digits as f64 / 10_f64.powi(places)),
        (-1_000_000_000_000_000..1_000_000_000_000_000_i64, 0..20).prop_map(|(digits, places)| format!(
            "{digits}e-{places}"
        )
        .parse()
        .unwrap()),
    ]
}

fn rounded_half_even(dividend: u128, divisor: u128) -> u128 {
    let (quotient, remainder) = (dividend / divisor, dividend % divisor);
    quotient + u128::from(remainder * 2 > divisor || remainder * 2 == divisor && quotient % 2 == 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Display of an `f64` is its shortest decimal, and reading a text has no shortcuts.
    #[test]
    fn shortcuts_for_floats_agree_with_their_text(value in floats()) {
        let by_text = from_text(&value.to_string());
        match from_float(value) {
            Ok(nanos) => prop_assert_eq!(by_text, Ok(nanos)),
            Err(_) => prop_assert!(by_text.is_err()),
        }
    }

    #[test]
    fn texts_are_read_exactly(digits in 0..10_u128.pow(25), places in 0..30_u32, is_negative in any::<bool>()) {
        // digits * 10^-places in units of 1e-9, as far as it fits.
        let (dividend, divisor) = if places <= 9 {
            let Some(dividend) = digits.checked_mul(10_u128.pow(9 - places)) else { return Ok(()) };
            (dividend, 1)
        } else {
            (digits, 10_u128.pow(places - 9))
        };
        let sign = if is_negative { "-" } else { "" };
        let plain = if places == 0 {
            format!("{sign}{digits}")
        } else {
            let padded = format!("{digits:0>width$}", width = places as usize + 1);
            let (whole, fraction) = padded.split_at(padded.len() - places as usize);
            format!("{sign}{whole}.{fraction}")
        };
        let with_exponent = format!("{sign}{digits}e-{places}");
        prop_assert_eq!(from_text(&plain), from_text(&with_exponent).map_err(|error| match error {
            WeightError::OutOfRange { .. } => from_text(&plain).unwrap_err(),
            other => other,
        }));

        let is_in_range = dividend <= divisor * 10_u128.pow(18);
        match from_text(&plain) {
            Ok(nanos) => {
                prop_assert!(is_in_range);
                prop_assert_eq!(u128::from(nanos.unsigned_abs()), rounded_half_even(dividend, divisor));
                prop_assert!(nanos == 0 || (nanos < 0) == is_negative);
            }
            Err(_) => prop_assert!(!is_in_range),
        }
    }

    #[test]
    fn printed_weights_read_back(nanos in -1_000_000_000_000_000_000..=1_000_000_000_000_000_000_i64) {
        let weight = Weight::from_nanos(nanos).unwrap();
        prop_assert_eq!(weight.to_string().parse(), Ok(weight));
    }

    #[test]
    fn floats_of_sums_are_the_nearest(value in any::<i128>(), shift in 0..128_u32) {
        let nanos = value >> shift;
        let nearest: f64 = format_nanos(nanos).parse().unwrap();
        prop_assert_eq!(weight_sum_to_f64(nanos).to_bits(), (nearest + 0.0).to_bits(), "{}", nanos);
    }

    /// Numbers halfway between two floats, and their neighbours, are where a second rounding would show.
    #[test]
    fn floats_of_sums_near_halves_are_the_nearest(mantissa in 1_u64 << 53..1 << 54, exponent in 0..40_u32, step in -1..=1_i128) {
        let nanos = (i128::from(mantissa | 1) << exponent) + step;
        let nearest: f64 = format_nanos(nanos).parse().unwrap();
        prop_assert_eq!(weight_sum_to_f64(nanos).to_bits(), nearest.to_bits(), "{}", nanos);
        let nanos = nanos * 1_000_000_000;
        let nearest: f64 = format_nanos(nanos).parse().unwrap();
        prop_assert_eq!(weight_sum_to_f64(nanos).to_bits(), nearest.to_bits(), "{}", nanos);
    }
}
