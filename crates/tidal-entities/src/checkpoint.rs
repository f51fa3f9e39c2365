use std::collections::HashSet;

use tidal_keys::{EncodedKey, EntityId, Tag, encode_key};

use crate::{
    AggregateRun, CodecError, WithheldCounts,
    aggregate::{decode_key, encode_key_fields},
    reader::Reader,
    sealed::{seal_in_place, unseal},
};

/// How far the stored aggregates have followed the log, and which runs they are the sum of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    /// The sequence number up to which, itself included, the runs hold what the log says.
    pub floor: u64,
    /// The signals withheld up to the floor.
    pub withheld: WithheldCounts,
    /// The number of the next run.
    pub next_number: u64,
    /// The runs that are whole. Rows of any other count for nothing.
    pub runs: Vec<AggregateRun>,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self { floor: 0, withheld: WithheldCounts::default(), next_number: 1, runs: Vec::new() }
    }
}

/// The key of the checkpoint, in the system partition.
#[must_use]
pub fn checkpoint_key() -> EncodedKey {
    encode_key(EntityId::new(0), Tag::Metadata, b"checkpoint")
}

/// Lays out the row of the checkpoint under its key.
#[must_use]
pub fn encode_checkpoint(key: &[u8], checkpoint: &Checkpoint) -> Vec<u8> {
    let Checkpoint { floor, withheld, next_number, runs } = checkpoint;
    let WithheldCounts { left, away_period, unknown } = *withheld;
    let mut row = Vec::new();
    for number in [*floor, left, away_period, unknown, *next_number] {
        row.extend_from_slice(&number.to_le_bytes());
    }
    for AggregateRun { number, aggregate_count, byte_count, last } in runs {
        for number in [number, aggregate_count, byte_count] {
            row.extend_from_slice(&number.to_le_bytes());
        }
        encode_key_fields(*last, &mut row);
    }
    seal_in_place(key, &mut row);
    row
}

/// Reads the row of the checkpoint.
///
/// # Errors
///
/// [`CodecError`] if the row is not what [`encode_checkpoint`] lays out under this key, or a run has no aggregate, or a
/// number that is there twice or still to be given.
pub fn decode_checkpoint(key: &[u8], value: &[u8]) -> Result<Checkpoint, CodecError> {
    let mut reader = Reader::new("checkpoint", unseal(key, value)?);
    let floor = reader.u64()?;
    let withheld = WithheldCounts { left: reader.u64()?, away_period: reader.u64()?, unknown: reader.u64()? };
    let next_number = reader.u64()?;
    if next_number == 0 {
        return Err(CodecError::Value {
            what: "next number in a checkpoint",
            found: next_number.to_string(),
            expected: "is at least 1",
        });
    }
    let mut runs = Vec::new();
    let mut numbers = HashSet::new();
    while !reader.is_empty() {
        let run = AggregateRun {
            number: reader.u64()?,
            aggregate_count: reader.u64()?,
            byte_count: reader.u64()?,
            last: decode_key(&mut reader)?,
        };
        let is_own = run.number > 0 && run.number < next_number && numbers.insert(run.number);
        if !is_own || run.aggregate_count == 0 {
            return Err(CodecError::Value {
                what: "run of aggregates in a checkpoint",
                found: format!("{run:?}"),
                expected: "has an aggregate, and a number of its own, above 0 and below the next",
            });
        }
        runs.push(run);
    }
    Ok(Checkpoint { floor, withheld, next_number, runs })
}
