use tidal_keys::{EncodedKey, EntityId, Tag, encode_key};

use crate::{
    CodecError, Fingerprint, WithheldCounts,
    reader::Reader,
    sealed::{seal, unseal},
};

/// How far the stored aggregates have followed the log.
///
/// Every stored aggregate holds what the log says up to `floor`. While a checkpoint is under way some of them are at
/// `target` already, as their marks say; otherwise the two are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    /// The sequence number up to which, itself included, every aggregate has followed the log.
    pub floor: u64,
    /// The sequence number that the checkpoint under way will reach; not below the floor.
    pub target: u64,
    /// The signals withheld up to the floor.
    pub withheld: WithheldCounts,
    /// The fingerprint of all stored aggregates, so that one that is lost or old is noticed.
    pub aggregates: Fingerprint,
}

/// The key of the checkpoint, in the system partition.
#[must_use]
pub fn checkpoint_key() -> EncodedKey {
    encode_key(EntityId::new(0), Tag::Metadata, b"checkpoint")
}

/// Lays out the row of the checkpoint under its key.
#[must_use]
pub fn encode_checkpoint(key: &[u8], checkpoint: &Checkpoint) -> Vec<u8> {
    let Checkpoint { floor, target, withheld, aggregates } = checkpoint;
    let WithheldCounts { left, away_period, unknown } = *withheld;
    let numbers = [*floor, *target, left, away_period, unknown, aggregates.get()];
    let payload: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    seal(key, &payload)
}

/// Reads the row of the checkpoint.
///
/// # Errors
///
/// [`CodecError`] if the row is not what [`encode_checkpoint`] lays out under this key, or its target lies below its
/// floor.
pub fn decode_checkpoint(key: &[u8], value: &[u8]) -> Result<Checkpoint, CodecError> {
    let mut reader = Reader::new("checkpoint", unseal(key, value)?);
    let (floor, target) = (reader.u64()?, reader.u64()?);
    let withheld = WithheldCounts { left: reader.u64()?, away_period: reader.u64()?, unknown: reader.u64()? };
    let aggregates = Fingerprint::from_stored(reader.u64()?);
    reader.end()?;
    if target < floor {
        return Err(CodecError::Value {
            what: "target of a checkpoint",
            found: target.to_string(),
            expected: "is not below its floor",
        });
    }
    Ok(Checkpoint { floor, target, withheld, aggregates })
}
