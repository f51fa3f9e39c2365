mod decimal;
mod float;

use std::{fmt, str::FromStr};

pub use decimal::format_nanos;
pub use float::weight_sum_to_f64;

use crate::CodecError;
use decimal::ParseError;

/// How much a signal counts: an exact decimal with a resolution of 1e-9, between -1e9 and 1e9.
///
/// A text is taken exactly as it is written, an `f64` as the shortest decimal that reads back as that `f64`: 0.1 is
/// one tenth. Digits beyond the ninth round half to even. The bounds apply to the value before rounding.
///
/// ```
/// use tidal_entities::Weight;
///
/// assert_eq!(Weight::try_from(0.1)?.nanos(), 100_000_000);
/// assert_eq!("903.50".parse::<Weight>()?.to_string(), "903.5");
/// assert_eq!("-6.25e0".parse::<Weight>()?, Weight::try_from(-6.25)?);
/// assert!(Weight::try_from(f64::NAN).is_err());
/// assert!("1000000000.0000000001".parse::<Weight>().is_err());
/// # Ok::<(), tidal_entities::WeightError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(i64);

/// Why a number is no weight.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WeightError {
    /// The number is NaN or infinite.
    #[error("weight {value} is not finite: give a number between -1e9 and 1e9")]
    NotFinite {
        /// The number.
        value: f64,
    },

    /// The number is too large.
    #[error("weight {value} is out of range: give a number between -1e9 and 1e9")]
    OutOfRange {
        /// The number, cut short if it has more than 40 characters.
        value: String,
    },

    /// The text is no decimal number.
    #[error("weight {text:?} is not a decimal number: write it like 12, -0.5 or 2.5e3")]
    NotADecimal {
        /// The text, cut short if it has more than 40 characters.
        text: String,
    },
}

impl Weight {
    /// 0: recorded and counted, but without weight.
    pub const ZERO: Self = Self(0);
    /// 1.
    pub const ONE: Self = Self(NANOS_PER_UNIT);
    /// The largest weight: 1e9.
    pub const MAX: Self = Self(MAX_NANOS);
    /// The smallest weight: -1e9.
    pub const MIN: Self = Self(-MAX_NANOS);

    /// Takes a number of units of 1e-9.
    ///
    /// # Errors
    ///
    /// [`WeightError::OutOfRange`] if it is not between -1e18 and 1e18.
    pub fn from_nanos(nanos: i64) -> Result<Self, WeightError> {
        if nanos.unsigned_abs() > MAX_NANOS.unsigned_abs() {
            return Err(WeightError::OutOfRange { value: format_nanos(i128::from(nanos)) });
        }
        Ok(Self(nanos))
    }

    /// The weight in units of 1e-9.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// The nearest `f64`.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        weight_sum_to_f64(i128::from(self.0))
    }
}

impl TryFrom<f64> for Weight {
    type Error = WeightError;

    fn try_from(value: f64) -> Result<Self, WeightError> {
        if !value.is_finite() {
            return Err(WeightError::NotFinite { value });
        }
        if let Some(nanos) = float::nanos_of_short_decimal(value) {
            return Self::from_nanos(nanos);
        }
        // Display of an f64 is its shortest decimal; with an exponent it stays short.
        Self::from_str(&format!("{value:e}"))
    }
}

impl FromStr for Weight {
    type Err = WeightError;

    /// Reads a decimal: an optional sign, digits with at most one point, an optional exponent. `5`, `+5.`, `.5`,
    /// `-0.5e-3` are weights; an empty text, `1_000`, `0x10`, `inf` and anything with a space are none.
    fn from_str(text: &str) -> Result<Self, WeightError> {
        match decimal::parse_nanos(text, MAX_NANOS.unsigned_abs()) {
            Ok(nanos) => Ok(Self(nanos)),
            Err(ParseError::OutOfRange) => Err(WeightError::OutOfRange { value: cut_short(text) }),
            Err(ParseError::NotADecimal) => Err(WeightError::NotADecimal { text: cut_short(text) }),
        }
    }
}

/// The exact decimal without trailing zeros: `903.5`, `-6.25`, `0`.
impl fmt::Display for Weight {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format_nanos(i128::from(self.0)))
    }
}

const NANOS_PER_UNIT: i64 = 1_000_000_000;
const MAX_NANOS: i64 = 1_000_000_000 * NANOS_PER_UNIT;

fn cut_short(text: &str) -> String {
    // The text may be megabytes, and an error is one line.
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push_str("..");
    }
    short
}

/// Takes a weight out of a row, in units of 1e-9.
pub(crate) fn stored_weight(nanos: i64) -> Result<Weight, CodecError> {
    Weight::from_nanos(nanos).map_err(|_| CodecError::Value {
        what: "weight of a signal in units of 1e-9",
        found: nanos.to_string(),
        expected: "lies between -1e18 and 1e18",
    })
}
