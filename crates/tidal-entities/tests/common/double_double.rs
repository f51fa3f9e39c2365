//! Numbers of about 31 digits as an unevaluated sum of two floats: the reference that scores are held against.
//! It shares nothing with the integers that it checks.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "the remainder is kept as well"
)]

use std::ops::{Add, Div, Mul, Neg, Sub};

#[derive(Clone, Copy, Debug)]
pub struct DoubleDouble {
    high: f64,
    low: f64,
}

const LN_2: DoubleDouble = DoubleDouble { high: std::f64::consts::LN_2, low: 2.319_046_813_846_299_6e-17 };

impl DoubleDouble {
    pub const ZERO: Self = Self { high: 0.0, low: 0.0 };

    pub fn from_i128(value: i128) -> Self {
        let high = value as f64;
        let rest = value.wrapping_sub(high as i128);
        quick_two_sum(high, rest as f64)
    }

    pub fn from_f64(high: f64) -> Self {
        Self { high, low: 0.0 }
    }

    pub fn to_f64(self) -> f64 {
        self.high + self.low
    }

    pub fn abs(self) -> Self {
        if self.high < 0.0 { -self } else { self }
    }

    /// 2^x for x in [0, 1].
    pub fn exp2(self) -> Self {
        const HALVINGS: i32 = 12;
        let small = self * LN_2 * Self::from_f64(2_f64.powi(-HALVINGS));
        // Terms below 2^-12 each: ten of them reach 2^-120.
        let mut term = Self::from_f64(1.0);
        let mut sum = term;
        for divisor in 1..=10 {
            term = term * small / Self::from_f64(f64::from(divisor));
            sum = sum + term;
        }
        (0..HALVINGS).fold(sum, |power, _| power * power)
    }

    /// Times 2^exponent, for results that stay normal.
    pub fn scaled(self, exponent: i32) -> Self {
        let (half, rest) = (2_f64.powi(exponent / 2), 2_f64.powi(exponent - exponent / 2));
        Self { high: self.high * half * rest, low: self.low * half * rest }
    }
}

/// What a score should be, and the sum that its tolerance refers to, both times 2^shift. The shift is free, so that
/// neither must fit an `f64` by itself.
pub fn reference_score(
    signals: &[(i64, u64)],
    at_ns: u64,
    half_life_ns: u64,
    shift: i128,
) -> (DoubleDouble, DoubleDouble) {
    let mut score = DoubleDouble::ZERO;
    let mut scale = DoubleDouble::ZERO;
    for (weight_nanos, event_time_ns) in signals {
        let age_ns = i128::from(at_ns) - i128::from(*event_time_ns);
        let half_life = i128::from(half_life_ns);
        let (whole, part) = (age_ns.div_euclid(half_life), age_ns.rem_euclid(half_life));
        let exponent = shift - whole;
        // A weight of 0 adds nothing, also where its power has no float.
        if exponent < -900 || *weight_nanos == 0 {
            continue;
        }
        let power = (DoubleDouble::from_i128(part) / DoubleDouble::from_i128(half_life)).exp2();
        let weight = DoubleDouble::from_i128(i128::from(*weight_nanos)) / DoubleDouble::from_f64(1e9);
        let decayed = (weight / power).scaled(i32::try_from(exponent).unwrap());
        score = score + decayed;
        scale = scale + decayed.abs();
    }
    (score, scale)
}

impl Add for DoubleDouble {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let sum = two_sum(self.high, other.high);
        let low = two_sum(self.low, other.low);
        let sum = quick_two_sum(sum.high, sum.low + low.high);
        quick_two_sum(sum.high, sum.low + low.low)
    }
}

impl Neg for DoubleDouble {
    type Output = Self;

    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Sub for DoubleDouble {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for DoubleDouble {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let high = self.high * other.high;
        let error = self.high.mul_add(other.high, -high);
        quick_two_sum(high, error + (self.high * other.low + self.low * other.high))
    }
}

impl Div for DoubleDouble {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let first = Self::from_f64(self.high / other.high);
        let rest = self - first * other;
        let second = Self::from_f64(rest.high / other.high);
        let rest = rest - second * other;
        first + second + Self::from_f64(rest.high / other.high)
    }
}

fn two_sum(left: f64, right: f64) -> DoubleDouble {
    let high = left + right;
    let part = high - left;
    DoubleDouble { high, low: (left - (high - part)) + (right - part) }
}

fn quick_two_sum(large: f64, small: f64) -> DoubleDouble {
    let high = large + small;
    DoubleDouble { high, low: small - (high - large) }
}
