use crate::Tag;

/// Why bytes are not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There are not enough bytes for an id, the separator and a tag.
    #[error("key of {len} bytes is too short: an id, a separator and a tag take 10")]
    TooShort {
        /// How many bytes there are, 0 to 9.
        len: usize,
    },

    /// Byte 8 is not the separator.
    #[error("key has byte {found:#04x} where the separator 0x00 belongs, after the id")]
    Separator {
        /// The byte found in its place.
        found: u8,
    },

    /// Byte 9 is no tag of this version.
    #[error("tag {tag:#04x} is unknown: a newer version may have written it, or the key is damaged")]
    UnknownTag {
        /// The byte found in the place of the tag.
        tag: u8,
    },

    /// The tag allows one record an entity, and yet there is a suffix.
    #[error("key with tag {tag:?} has a suffix of {len} bytes: such a key ends with its tag")]
    UnexpectedSuffix {
        /// The tag that allows no suffix.
        tag: Tag,
        /// How many bytes follow the tag.
        len: usize,
    },
}
