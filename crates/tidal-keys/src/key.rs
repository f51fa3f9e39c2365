use std::{fmt, ops::Deref};

use crate::{EntityId, KeyError, Tag};

// The offsets are each built from the one before, so that the layout has one source.
const ID_LEN: usize = size_of::<u64>();
const SEPARATOR_OFFSET: usize = ID_LEN;
const TAG_OFFSET: usize = SEPARATOR_OFFSET + 1;
const SUFFIX_OFFSET: usize = TAG_OFFSET + 1;

const SEPARATOR: u8 = 0x00;

const _: () = assert!(TAG_OFFSET == 9 && SUFFIX_OFFSET == 10);

/// The bytes of a key, as [`encode_key`] lays them out.
///
/// It compares, sorts and hashes as its bytes do, and that order is the order of `(id, tag, suffix)`. `Debug`
/// prints the bytes in hexadecimal.
///
/// ```
/// use tidal_keys::{EntityId, Tag, encode_key};
///
/// let key = encode_key(EntityId::new(7), Tag::Metadata, b"name");
/// assert_eq!(format!("{key:?}"), "EncodedKey(0000000000000007 00 03 6e616d65)");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EncodedKey(Box<[u8]>);

impl EncodedKey {
    /// The bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Lays out the key of a record: the id, the separator, the tag, the suffix.
///
/// Every combination is laid out, also one that [`parse_key`] refuses (a suffix under
/// [`Tag::CommunityLeave`]): to build a key cannot fail, to store under it can.
///
/// ```
/// use tidal_keys::{EntityId, Tag, encode_key};
///
/// let key = encode_key(EntityId::new(258), Tag::Relationship, &4u64.to_be_bytes());
/// assert_eq!(key.as_ref(), [0, 0, 0, 0, 0, 0, 1, 2, 0x00, 0x04, 0, 0, 0, 0, 0, 0, 0, 4]);
/// ```
#[must_use]
pub fn encode_key(id: EntityId, tag: Tag, suffix: &[u8]) -> EncodedKey {
    let mut bytes = Vec::with_capacity(SUFFIX_OFFSET + suffix.len());
    bytes.extend_from_slice(&entity_tag_prefix(id, tag));
    bytes.extend_from_slice(suffix);
    EncodedKey(bytes.into_boxed_slice())
}

/// Takes a key apart into id, tag and suffix.
///
/// # Errors
///
/// [`KeyError::TooShort`] below 10 bytes, [`KeyError::Separator`] if byte 8 is not `0x00`,
/// [`KeyError::UnknownTag`] if byte 9 is no [`Tag`], and [`KeyError::UnexpectedSuffix`] if bytes follow
/// [`Tag::CommunityLeave`]. The first that applies is given.
///
/// ```
/// use tidal_keys::{KeyError, Tag, parse_key};
///
/// assert_eq!(parse_key(b"seven"), Err(KeyError::TooShort { len: 5 }));
///
/// let leave_key_with_suffix = [0, 0, 0, 0, 0, 0, 0, 7, 0x00, 0x11, 0xff];
/// assert_eq!(
///     parse_key(&leave_key_with_suffix),
///     Err(KeyError::UnexpectedSuffix { tag: Tag::CommunityLeave, len: 1 }),
/// );
/// ```
pub fn parse_key(key: &[u8]) -> Result<(EntityId, Tag, &[u8]), KeyError> {
    let Some((head, suffix)) = key.split_first_chunk::<SUFFIX_OFFSET>() else {
        return Err(KeyError::TooShort { len: key.len() });
    };
    let [i0, i1, i2, i3, i4, i5, i6, i7, separator, tag] = *head;
    if separator != SEPARATOR {
        return Err(KeyError::Separator { found: separator });
    }
    let tag = Tag::try_from(tag)?;
    if !suffix.is_empty() && !tag.allows_suffix() {
        return Err(KeyError::UnexpectedSuffix { tag, len: suffix.len() });
    }
    let id = u64::from_be_bytes([i0, i1, i2, i3, i4, i5, i6, i7]);
    Ok((EntityId::new(id), tag, suffix))
}

/// What all keys of one entity begin with: the id and the separator.
///
/// ```
/// use tidal_keys::{EntityId, Tag, encode_key, entity_prefix};
///
/// let id = EntityId::new(7);
/// assert!(encode_key(id, Tag::Metadata, b"name").starts_with(&entity_prefix(id)));
/// ```
#[must_use]
pub const fn entity_prefix(id: EntityId) -> [u8; TAG_OFFSET] {
    let [i0, i1, i2, i3, i4, i5, i6, i7] = id.get().to_be_bytes();
    [i0, i1, i2, i3, i4, i5, i6, i7, SEPARATOR]
}

/// What all keys of one entity and tag begin with: the id, the separator and the tag.
///
/// ```
/// use tidal_keys::{EntityId, Tag, encode_key, entity_tag_prefix};
///
/// let id = EntityId::new(7);
/// let prefix = entity_tag_prefix(id, Tag::Metadata);
/// assert!(encode_key(id, Tag::Metadata, b"name").starts_with(&prefix));
/// assert!(!encode_key(id, Tag::Event, b"name").starts_with(&prefix));
/// ```
#[must_use]
pub const fn entity_tag_prefix(id: EntityId, tag: Tag) -> [u8; SUFFIX_OFFSET] {
    let [i0, i1, i2, i3, i4, i5, i6, i7, separator] = entity_prefix(id);
    [i0, i1, i2, i3, i4, i5, i6, i7, separator, tag.as_u8()]
}

impl AsRef<[u8]> for EncodedKey {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for EncodedKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<EncodedKey> for Vec<u8> {
    fn from(key: EncodedKey) -> Self {
        key.0.into_vec()
    }
}

impl fmt::Debug for EncodedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EncodedKey(")?;
        for (offset, byte) in self.0.iter().enumerate() {
            // A gap between the fields makes a key readable at a glance.
            if matches!(offset, SEPARATOR_OFFSET | TAG_OFFSET | SUFFIX_OFFSET) {
                formatter.write_str(" ")?;
            }
            write!(formatter, "{byte:02x}")?;
        }
        formatter.write_str(")")
    }
}
