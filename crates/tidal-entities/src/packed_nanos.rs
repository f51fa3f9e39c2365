/// A sum of weights in units of 1e-9.
///
/// In two halves, since an `i128` would align every aggregate to 16 bytes and make it 8 bytes larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct PackedNanos {
    low: u64,
    high: i64,
}

impl PackedNanos {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "each half takes its own 64 bits"
    )]
    pub(crate) const fn new(nanos: i128) -> Self {
        Self { low: nanos as u64, high: (nanos >> u64::BITS) as i64 }
    }

    #[allow(clippy::cast_lossless, reason = "From is not const")]
    pub(crate) const fn get(self) -> i128 {
        (self.high as i128) << u64::BITS | self.low as i128
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::PackedNanos;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(nanos in any::<i128>()) {
            prop_assert_eq!(PackedNanos::new(nanos).get(), nanos);
        }
    }
}
