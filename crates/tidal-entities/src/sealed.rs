use crate::{CodecError, error::Hex};

/// How many bytes a seal adds to a payload.
pub const SEAL_LEN: usize = size_of::<u32>();

/// Lays out a row: the payload, then the CRC-32 of the key and the payload, little-endian.
///
/// The key is part of the checksum, so that a row cannot be taken for another one.
///
/// ```
/// use tidal_entities::{seal, unseal};
///
/// let row = seal(b"key", b"payload");
/// assert_eq!(row.len(), 7 + 4);
/// assert_eq!(unseal(b"key", &row)?, b"payload");
/// assert!(unseal(b"another key", &row).is_err());
/// # Ok::<(), tidal_entities::CodecError>(())
/// ```
#[must_use]
pub fn seal(key: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(payload.len() + SEAL_LEN);
    row.extend_from_slice(payload);
    seal_in_place(key, &mut row);
    row
}

/// Checks a row that [`seal`] laid out, and gives back its payload.
///
/// # Errors
///
/// [`CodecError::CutShort`] below 4 bytes, [`CodecError::Checksum`] if the row is not as it was sealed under this
/// key.
pub fn unseal<'a>(key: &[u8], value: &'a [u8]) -> Result<&'a [u8], CodecError> {
    let Some((payload, stored)) = value.split_last_chunk::<SEAL_LEN>() else {
        return Err(CodecError::CutShort { what: "sealed row", missing: SEAL_LEN - value.len() });
    };
    let stored = u32::from_le_bytes(*stored);
    let computed = checksum(key, payload);
    if stored != computed {
        return Err(CodecError::Checksum { key: Hex(key).to_string(), stored, computed });
    }
    Ok(payload)
}

/// Turns a payload into a row without copying it.
pub(crate) fn seal_in_place(key: &[u8], payload: &mut Vec<u8>) {
    let checksum = checksum(key, payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
}

fn checksum(key: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(payload);
    hasher.finalize()
}
