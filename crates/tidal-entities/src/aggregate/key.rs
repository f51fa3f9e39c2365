use tidal_keys::{EncodedKey, EntityId, Tag, encode_key, parse_key};

use crate::{CodecError, ScopeId, SignalTypeId, reader::Reader};

/// Which aggregate. Stored aggregates are in this order: all of an item together, and within them those of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AggregateKey {
    /// What the signals were about.
    pub item: u64,
    /// Who took them.
    pub scope: ScopeId,
    /// What they were, as a number of the stored schema.
    pub signal_type: SignalTypeId,
}

/// The key of a row of a run of aggregates, in the items partition: the number of the run, and which aggregate is the
/// last of the row, big-endian.
#[must_use]
pub fn aggregate_row_key(run: u64, last: AggregateKey) -> EncodedKey {
    let mut suffix = Vec::with_capacity(14);
    suffix.extend_from_slice(&last.item.to_be_bytes());
    suffix.extend_from_slice(&last.scope.0.to_be_bytes());
    suffix.extend_from_slice(&last.signal_type.0.to_be_bytes());
    encode_key(EntityId::new(run), Tag::SignalState, &suffix)
}

/// Takes the number of the run and the last aggregate out of the key of a row of a run of aggregates.
///
/// # Errors
///
/// [`CodecError::Key`] and [`CodecError::ForeignKey`] if it is no such key.
///
/// ```
/// use tidal_entities::{AggregateKey, ScopeId, SignalTypeId, aggregate_row_key, parse_aggregate_row_key};
///
/// let last = AggregateKey { item: 1752, scope: ScopeId::GLOBAL, signal_type: SignalTypeId(0) };
/// assert_eq!(parse_aggregate_row_key(&aggregate_row_key(3, last))?, (3, last));
/// # Ok::<(), tidal_entities::CodecError>(())
/// ```
pub fn parse_aggregate_row_key(key: &[u8]) -> Result<(u64, AggregateKey), CodecError> {
    const WHAT: &str = "row of aggregates";
    match parse_key(key).map_err(|source| CodecError::Key { what: WHAT, source })? {
        (run, Tag::SignalState, &[i0, i1, i2, i3, i4, i5, i6, i7, s0, s1, s2, s3, t0, t1])
            if run.get() != 0 =>
        {
            let last = AggregateKey {
                item: u64::from_be_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
                scope: ScopeId(u32::from_be_bytes([s0, s1, s2, s3])),
                signal_type: SignalTypeId(u16::from_be_bytes([t0, t1])),
            };
            Ok((run.get(), last))
        }
        _ => Err(CodecError::foreign_key(WHAT, key)),
    }
}

/// Lays out which aggregate, in 14 bytes.
pub(crate) fn encode_key_fields(key: AggregateKey, out: &mut Vec<u8>) {
    out.extend_from_slice(&key.item.to_le_bytes());
    out.extend_from_slice(&key.scope.0.to_le_bytes());
    out.extend_from_slice(&key.signal_type.0.to_le_bytes());
}

pub(crate) fn decode_key(reader: &mut Reader<'_>) -> Result<AggregateKey, CodecError> {
    Ok(AggregateKey {
        item: reader.u64()?,
        scope: ScopeId(reader.u32()?),
        signal_type: SignalTypeId(reader.u16()?),
    })
}
