//! One aggregate within a row: numbers in as few bytes as they take, of sums only the bytes that say something. There
//! is one layout for each aggregate.

use unsigned_varint::encode;

use super::{AggregateKey, AggregateState};
use crate::{
    CodecError, ScopeId, ScoreSums, SignalTypeId, Weight,
    packed_nanos::PackedNanos,
    reader::Reader,
    score::{EpochSum, WideSum},
    window::{decode_windows, encode_windows},
};

/// From here a count still takes centuries to overflow.
const MAX_STORED_COUNT: u64 = 1 << 63;

/// Lays out an aggregate behind one whose item is `item_before`, which is not higher.
pub(super) fn encode_aggregate(
    item_before: u64,
    key: AggregateKey,
    state: &AggregateState,
    out: &mut Vec<u8>,
) {
    let AggregateState { count, weight_nanos, score, windows } = state;
    put_varint(key.item.wrapping_sub(item_before), out);
    put_varint(u64::from(key.scope.0), out);
    put_varint(u64::from(key.signal_type.0), out);
    put_varint(*count, out);
    out.extend_from_slice(encode::u128(zigzag(weight_nanos.get()), &mut encode::u128_buffer()));
    put_varint((score.epochs_len() as u64) << 1 | u64::from(windows.is_some()), out);
    let mut epoch_before = 0;
    for EpochSum { epoch, sum } in score.epochs() {
        put_varint(epoch.wrapping_sub(epoch_before), out);
        encode_sum(*sum, out);
        epoch_before = *epoch;
    }
    if let Some(windows) = windows {
        encode_windows(windows, out);
    }
}

/// Reads the next aggregate behind one whose item is `item_before`.
pub(super) fn decode_aggregate(
    item_before: u64,
    reader: &mut Reader<'_>,
) -> Result<(AggregateKey, AggregateState), CodecError> {
    let key = AggregateKey {
        item: advance("item of an aggregate", item_before, reader.varint_u64()?)?,
        scope: ScopeId(narrow("scope of an aggregate", reader.varint_u64()?)?),
        signal_type: SignalTypeId(narrow("signal type of an aggregate", reader.varint_u64()?)?),
    };
    let count = reader.varint_u64()?;
    if count == 0 || count > MAX_STORED_COUNT {
        return Err(CodecError::Value {
            what: "count of an aggregate",
            found: count.to_string(),
            expected: "is at least 1 and at most 2^63",
        });
    }
    let weight_nanos = unzigzag(reader.varint_u128()?);
    if weight_nanos.unsigned_abs() > u128::from(count) * u128::from(Weight::MAX.nanos().unsigned_abs()) {
        return Err(CodecError::Value {
            what: "weight of an aggregate in units of 1e-9",
            found: weight_nanos.to_string(),
            expected: "is at most 1e18 a signal",
        });
    }
    let head = reader.varint_u64()?;
    let score = decode_score(head >> 1, count, reader)?;
    let windows = if head & 1 == 1 { Some(Box::new(decode_windows(reader, count)?)) } else { None };
    Ok((key, AggregateState { count, weight_nanos: PackedNanos::new(weight_nanos), score, windows }))
}

fn decode_score(epochs_len: u64, count: u64, reader: &mut Reader<'_>) -> Result<ScoreSums, CodecError> {
    let mut older = Vec::new();
    let mut newest: Option<EpochSum> = None;
    for _ in 0..epochs_len {
        let gap = reader.varint_u64()?;
        let epoch = match newest {
            None => gap,
            Some(before) => {
                older.push(before);
                let epoch = advance("epoch of an aggregate", before.epoch, gap)?;
                if gap == 0 { Err(unsound_epoch(epoch))? } else { epoch }
            }
        };
        let sum = decode_sum(reader)?;
        if !sum.can_be_sum_of(count) {
            return Err(unsound_epoch(epoch));
        }
        newest = Some(EpochSum { epoch, sum });
    }
    Ok(ScoreSums::from_parts(older, newest.unwrap_or_default()))
}

/// A sum other than zero: how many bytes that are zero come first, how many follow, and these. What is above them
/// has their sign.
fn encode_sum(sum: WideSum, out: &mut Vec<u8>) {
    let bytes = sum.to_le_bytes();
    let skipped = bytes.iter().take_while(|byte| **byte == 0).count();
    let significant = bytes.get(skipped..).unwrap_or_default();
    let redundant = significant.windows(2).rev().take_while(|pair| is_redundant(pair)).count();
    let kept = significant.get(..significant.len() - redundant).unwrap_or_default();
    // Both are at most 24.
    out.extend([skipped, kept.len()].map(|len| u8::try_from(len).unwrap_or(u8::MAX)));
    out.extend_from_slice(kept);
}

fn decode_sum(reader: &mut Reader<'_>) -> Result<WideSum, CodecError> {
    let (skipped, len) = (usize::from(reader.u8()?), usize::from(reader.u8()?));
    let kept = reader.bytes(len)?;
    let is_shortest = kept.first().is_some_and(|first| *first != 0)
        && !kept.windows(2).next_back().is_some_and(is_redundant);
    let mut bytes = [0; WideSum::LEN_BYTES];
    let room = bytes.get_mut(skipped..).filter(|room| is_shortest && room.len() >= len);
    let Some((taken, above)) = room.map(|room| room.split_at_mut(len)) else {
        return Err(CodecError::Value {
            what: "sum of an epoch of an aggregate",
            found: format!("{len} bytes behind {skipped} that are zero"),
            expected: "is not zero, has 24 bytes at most, and none too many",
        });
    };
    taken.copy_from_slice(kept);
    let is_negative = kept.last().is_some_and(|last| last & SIGN != 0);
    above.fill(if is_negative { u8::MAX } else { 0 });
    Ok(WideSum::from_le_bytes(bytes))
}

const SIGN: u8 = 1 << 7;

/// Whether the upper of two bytes only repeats the sign of the lower.
fn is_redundant(pair: &[u8]) -> bool {
    matches!(pair, [lower, 0] if lower & SIGN == 0) || matches!(pair, [lower, u8::MAX] if lower & SIGN != 0)
}

fn advance(what: &'static str, before: u64, gap: u64) -> Result<u64, CodecError> {
    before.checked_add(gap).ok_or_else(|| CodecError::Value {
        what,
        found: format!("{gap} after {before}"),
        expected: "is below 2^64",
    })
}

fn narrow<T: TryFrom<u64>>(what: &'static str, number: u64) -> Result<T, CodecError> {
    T::try_from(number).map_err(|_| CodecError::Value {
        what,
        found: number.to_string(),
        expected: "is a number that the field has room for",
    })
}

fn unsound_epoch(epoch: u64) -> CodecError {
    CodecError::Value {
        what: "epoch of an aggregate",
        found: epoch.to_string(),
        expected: "follows a lower one and has a sum below 2^127 a signal",
    }
}

fn put_varint(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(encode::u64(number, &mut encode::u64_buffer()));
}

/// Numbers near zero become small ones, whatever their sign.
const fn zigzag(number: i128) -> u128 {
    (number << 1 ^ number >> 127).cast_unsigned()
}

const fn unzigzag(number: u128) -> i128 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::{decode_sum, encode_sum, unzigzag, zigzag};
    use crate::{reader::Reader, score::WideSum};

    fn wide_sums() -> impl Strategy<Value = WideSum> {
        let byte = prop_oneof![Just(0_u8), Just(u8::MAX), Just(0x7f), Just(0x80), any::<u8>()];
        prop::collection::vec(byte, 24).prop_map(|bytes| WideSum::from_le_bytes(bytes.try_into().unwrap()))
    }

    proptest! {
        #[test]
        fn a_sum_comes_back_and_nothing_longer_is_taken_for_it(sum in wide_sums()) {
            prop_assume!(!sum.is_zero());
            let mut bytes = Vec::new();
            encode_sum(sum, &mut bytes);
            let mut reader = Reader::new("sum", &bytes);
            prop_assert_eq!(decode_sum(&mut reader).unwrap(), sum);
            prop_assert!(reader.is_empty());

            let all = sum.to_le_bytes();
            for skipped in 0..24_u8 {
                for len in 0..=24 - skipped {
                    let kept = &all[usize::from(skipped)..usize::from(skipped + len)];
                    let other = [&[skipped, len], kept].concat();
                    let same = decode_sum(&mut Reader::new("sum", &other)).is_ok_and(|found| found == sum);
                    prop_assert_eq!(same, other == bytes);
                }
            }
        }

        #[test]
        fn signs_come_back(number in any::<i128>()) {
            prop_assert_eq!(unzigzag(zigzag(number)), number);
            prop_assert_eq!(zigzag(number) >> 1, if number < 0 { !number } else { number }.unsigned_abs());
        }
    }

    #[test]
    fn a_sum_that_does_not_fit_is_refused() {
        for bytes in [&[23, 2, 1, 1][..], &[24, 1, 1], &[255, 1, 1], &[0, 0], &[0, 25], &[0, 2, 1]] {
            assert!(decode_sum(&mut Reader::new("sum", bytes)).is_err(), "{bytes:?}");
        }
    }
}
