use tidal_keys::{EncodedKey, EntityId, Tag, encode_key, parse_key};

use crate::{
    CodecError,
    reader::{Reader, utf8},
    sealed::{seal, unseal},
};

const SUFFIX_PREFIX: &[u8] = b"source/";
const DIGEST_LEN: usize = 32;
const PAYLOAD_LEN: usize = size_of::<u64>() + size_of::<u64>() + DIGEST_LEN;

const _: () = assert!(PAYLOAD_LEN == 48);

/// How far a source of events was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourcePosition {
    /// The position of the first event that was ever applied from the source.
    pub first_position: u64,
    /// The position of the last event that was applied.
    pub position: u64,
    /// The SHA-256 of all events applied so far, so that a source replaced under the same name is found out.
    pub digest: [u8; DIGEST_LEN],
}

/// The key of the position of a source, in the system partition.
#[must_use]
pub fn source_key(name: &str) -> EncodedKey {
    let mut suffix = Vec::with_capacity(SUFFIX_PREFIX.len() + name.len());
    suffix.extend_from_slice(SUFFIX_PREFIX);
    suffix.extend_from_slice(name.as_bytes());
    encode_key(EntityId::new(0), Tag::Metadata, &suffix)
}

/// Takes the name of the source out of the key of its position.
///
/// # Errors
///
/// [`CodecError::Key`], [`CodecError::ForeignKey`] and [`CodecError::Utf8`] if it is no such key.
pub fn parse_source_key(key: &[u8]) -> Result<&str, CodecError> {
    const WHAT: &str = "position of a source";
    let (id, tag, suffix) = parse_key(key).map_err(|source| CodecError::Key { what: WHAT, source })?;
    match (id.get(), tag, suffix.strip_prefix(SUFFIX_PREFIX)) {
        (0, Tag::Metadata, Some(name)) => utf8("name of a source", name),
        _ => Err(CodecError::foreign_key(WHAT, key)),
    }
}

/// Lays out the row of the position of a source under its key.
#[must_use]
pub fn encode_source_position(key: &[u8], position: &SourcePosition) -> Vec<u8> {
    let mut payload = Vec::with_capacity(PAYLOAD_LEN);
    payload.extend_from_slice(&position.first_position.to_le_bytes());
    payload.extend_from_slice(&position.position.to_le_bytes());
    payload.extend_from_slice(&position.digest);
    seal(key, &payload)
}

/// Reads the row of the position of a source.
///
/// # Errors
///
/// [`CodecError`] if the row is not what [`encode_source_position`] lays out under this key.
pub fn decode_source_position(key: &[u8], value: &[u8]) -> Result<SourcePosition, CodecError> {
    let mut reader = Reader::new("position of a source", unseal(key, value)?);
    let position =
        SourcePosition { first_position: reader.u64()?, position: reader.u64()?, digest: reader.array()? };
    reader.end()?;
    Ok(position)
}
