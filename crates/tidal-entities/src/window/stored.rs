use super::{
    buckets::{Bucket, Buckets},
    sums::{COARSE_KEPT, FINE_IN_COARSE, FINE_KEPT, LAST_BUCKET, WindowSums},
};
use crate::{CodecError, Weight, packed_nanos::PackedNanos, reader::Reader};

/// Lays out windows after the epochs of an aggregate.
pub(crate) fn encode_windows(windows: &WindowSums, row: &mut Vec<u8>) {
    row.extend_from_slice(&windows.newest.to_le_bytes());
    encode_buckets(windows.newest, windows.fine.as_slice(), row);
    encode_buckets(windows.newest / FINE_IN_COARSE, windows.coarse.as_slice(), row);
}

/// Reads windows behind the epochs of an aggregate that holds `count` signals.
pub(crate) fn decode_windows(reader: &mut Reader<'_>, count: u64) -> Result<WindowSums, CodecError> {
    let newest = reader.u32()?;
    if newest > LAST_BUCKET {
        return Err(CodecError::Value {
            what: "newest bucket of an aggregate",
            found: newest.to_string(),
            expected: "is at most that of the last time there is",
        });
    }
    let fine = decode_buckets::<FINE_KEPT>(newest, count, reader)?;
    let coarse = decode_buckets::<COARSE_KEPT>(newest / FINE_IN_COARSE, count, reader)?;
    Ok(WindowSums { newest, fine, coarse })
}

#[allow(clippy::cast_possible_truncation, reason = "at most 192 buckets are kept, none older than 191")]
fn encode_buckets(newest: u32, buckets: &[Bucket], row: &mut Vec<u8>) {
    row.push(buckets.len() as u8);
    for bucket in buckets {
        row.push((newest - bucket.number) as u8);
        row.extend_from_slice(&bucket.count.to_le_bytes());
        row.extend_from_slice(&bucket.weight_nanos.get().to_le_bytes());
    }
}

fn decode_buckets<const KEPT: u32>(
    newest: u32,
    signals: u64,
    reader: &mut Reader<'_>,
) -> Result<Buckets<KEPT>, CodecError> {
    let len = reader.u8()?;
    let mut buckets: Vec<Bucket> = Vec::with_capacity(usize::from(len));
    let mut rest = signals;
    for _ in 0..len {
        let age = reader.u8()?;
        let (count, weight_nanos) = (reader.u64()?, reader.i128()?);
        let number = newest.checked_sub(u32::from(age)).filter(|_| u32::from(age) < KEPT);
        let number = number.filter(|number| buckets.last().is_none_or(|last| last.number < *number));
        let most = u128::from(count) * u128::from(Weight::MAX.nanos().unsigned_abs());
        let left = rest.checked_sub(count).filter(|_| count > 0 && weight_nanos.unsigned_abs() <= most);
        let (Some(number), Some(left)) = (number, left) else {
            return Err(CodecError::Value {
                what: "age of a bucket of an aggregate",
                found: age.to_string(),
                expected: "follows a higher one that is kept, with signals of the aggregate and what they may weigh",
            });
        };
        rest = left;
        buckets.push(Bucket { number, count, weight_nanos: PackedNanos::new(weight_nanos) });
    }
    Ok(Buckets::from_ascending(buckets))
}

const _: () = assert!(COARSE_KEPT <= u8::MAX as u32 && FINE_KEPT <= COARSE_KEPT);
