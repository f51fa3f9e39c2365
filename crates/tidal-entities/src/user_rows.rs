use tidal_keys::{EncodedKey, EntityId, Tag, encode_key, parse_key};

use crate::{
    CodecError, check_attribute_name,
    reader::{Reader, utf8},
    sealed::{seal, seal_in_place, unseal},
};

/// The key of the row that says that a user is in a community, in the users partition.
#[must_use]
pub fn joined_key(user: u64, community: u64) -> EncodedKey {
    encode_key(EntityId::new(user), Tag::Relationship, &community.to_be_bytes())
}

/// Takes user and community out of the key of a membership.
///
/// # Errors
///
/// [`CodecError::Key`] and [`CodecError::ForeignKey`] if it is no such key.
pub fn parse_joined_key(key: &[u8]) -> Result<(u64, u64), CodecError> {
    const WHAT: &str = "membership in a community";
    match parse_key(key).map_err(|source| CodecError::Key { what: WHAT, source })? {
        (user, Tag::Relationship, suffix) => match <[u8; 8]>::try_from(suffix) {
            Ok(community) => Ok((user.get(), u64::from_be_bytes(community))),
            Err(_) => Err(CodecError::foreign_key(WHAT, key)),
        },
        _ => Err(CodecError::foreign_key(WHAT, key)),
    }
}

/// Lays out the row of a membership under its key: the sequence number of the join.
#[must_use]
pub fn encode_joined(key: &[u8], joined_sequence: u64) -> Vec<u8> {
    seal(key, &joined_sequence.to_le_bytes())
}

/// Reads the row of a membership: the sequence number of the join.
///
/// # Errors
///
/// [`CodecError`] if the row is not what [`encode_joined`] lays out under this key.
pub fn decode_joined(key: &[u8], value: &[u8]) -> Result<u64, CodecError> {
    let mut reader = Reader::new("membership in a community", unseal(key, value)?);
    let joined_sequence = reader.u64()?;
    reader.end()?;
    Ok(joined_sequence)
}

/// The key of an attribute of a user, in the users partition.
#[must_use]
pub fn attribute_key(user: u64, name: &str) -> EncodedKey {
    encode_key(EntityId::new(user), Tag::Metadata, name.as_bytes())
}

/// Takes the user and the name of the attribute out of its key.
///
/// # Errors
///
/// [`CodecError::Key`], [`CodecError::ForeignKey`], [`CodecError::Utf8`] and [`CodecError::Limit`] if it is no such key.
pub fn parse_attribute_key(key: &[u8]) -> Result<(u64, &str), CodecError> {
    const WHAT: &str = "attribute of a user";
    match parse_key(key).map_err(|source| CodecError::Key { what: WHAT, source })? {
        (user, Tag::Metadata, name) if !name.is_empty() => {
            let name = utf8("name of an attribute", name)?;
            check_attribute_name(name).map_err(|source| CodecError::Limit { what: WHAT, source })?;
            Ok((user.get(), name))
        }
        _ => Err(CodecError::foreign_key(WHAT, key)),
    }
}

/// Lays out the row of an attribute under its key: the sequence number at which it was set, then its value.
#[must_use]
pub fn encode_attribute(key: &[u8], set_sequence: u64, value: &str) -> Vec<u8> {
    let mut row = set_sequence.to_le_bytes().to_vec();
    row.extend_from_slice(value.as_bytes());
    seal_in_place(key, &mut row);
    row
}

/// Reads the row of an attribute: the sequence number at which it was set, and its value.
///
/// # Errors
///
/// [`CodecError`] if the row is not what [`encode_attribute`] lays out under this key.
pub fn decode_attribute<'a>(key: &[u8], value: &'a [u8]) -> Result<(u64, &'a str), CodecError> {
    let mut reader = Reader::new("attribute of a user", unseal(key, value)?);
    let set_sequence = reader.u64()?;
    Ok((set_sequence, utf8("value of an attribute", reader.rest())?))
}
