use std::{fmt, str::Utf8Error};

use tidal_keys::KeyError;

use crate::{LimitError, SchemaError};

/// Why bytes are not the record they should be, or why a record cannot be laid out as bytes.
///
/// A row that cannot be decoded was damaged, was moved to another key, or was written by a newer version. None
/// of these heals by trying again: check the disk, and restore the database from a backup.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes end within a field.
    #[error("{what} is cut short (bytes missing: {missing}): the row is damaged or from a newer version")]
    CutShort {
        /// What was to be decoded.
        what: &'static str,
        /// How many bytes are missing to the end of the field.
        missing: usize,
    },

    /// Bytes follow the last field.
    #[error(
        "{what} goes on after its last field (bytes too many: {extra}): the row is damaged or from a newer version"
    )]
    TrailingBytes {
        /// What was to be decoded.
        what: &'static str,
        /// How many bytes there are too many.
        extra: usize,
    },

    /// The byte that says what follows has a value that this version does not know.
    #[error("{what} {found:#04x} is unknown: a newer version may have written it, or the row is damaged")]
    UnknownKind {
        /// Which byte it is.
        what: &'static str,
        /// Its value.
        found: u8,
    },

    /// The checksum of a sealed row does not fit its key and payload.
    #[error(
        "row under key {key} carries checksum {stored:#010x}, but its bytes give {computed:#010x}: it was damaged or \
         moved from another key, so restore the database from a backup"
    )]
    Checksum {
        /// The key of the row, in hexadecimal.
        key: String,
        /// The checksum that the row carries.
        stored: u32,
        /// The checksum of the key and the payload as they are.
        computed: u32,
    },

    /// A text is not UTF-8.
    #[error("{what} is not UTF-8: the row is damaged")]
    Utf8 {
        /// Which text it is.
        what: &'static str,
        /// Where the text stops being UTF-8.
        source: Utf8Error,
    },

    /// A field has a value that is never written.
    #[error("{what} is {found}, but it {expected}: the row is damaged or from a newer version")]
    Value {
        /// Which field it is.
        what: &'static str,
        /// Its value.
        found: String,
        /// What is written there, in words.
        expected: &'static str,
    },

    /// A count or a number is too large to be laid out.
    #[error("{what} is {found}, more than the {limit} that a row can hold: split what you write")]
    TooMany {
        /// What was counted.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        limit: u64,
    },

    /// The bytes of a key are no key at all.
    #[error("key for {what} is malformed")]
    Key {
        /// What was looked for under the key.
        what: &'static str,
        /// What is wrong with the key.
        source: KeyError,
    },

    /// A key leads to another kind of row.
    #[error("key {key} belongs to no {what}: pass the key of such a row")]
    ForeignKey {
        /// What was looked for under the key.
        what: &'static str,
        /// The key, in hexadecimal.
        key: String,
    },

    /// A name or a text is empty or too long.
    #[error("{what} holds a text that cannot be stored")]
    Limit {
        /// What was to be laid out.
        what: &'static str,
        /// Which text it is, and its limit.
        source: LimitError,
    },

    /// The stored schema is not the JSON that this version writes.
    #[error("stored schema is not understood: it was written by a newer version, or the row is damaged")]
    Json(#[source] Box<dyn std::error::Error + Send + Sync>),

    /// The stored schema breaks a rule that every schema keeps.
    #[error("stored schema is not valid: it was written by a newer version, or the row is damaged")]
    Schema(#[source] Box<SchemaError>),
}

impl CodecError {
    pub(crate) fn foreign_key(what: &'static str, key: &[u8]) -> Self {
        Self::ForeignKey { what, key: Hex(key).to_string() }
    }
}

/// Bytes as pairs of hexadecimal digits.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}
