mod codec;
mod row;

use tidal_keys::{EncodedKey, EntityId, Tag, encode_key, parse_key};

use crate::{CodecError, ScopeSetId, SignalTypeId, Weight, Withheld};

pub use row::{LogEntries, LogRow, LogRowBuilder};

/// One entry of the log: everything that ever changed a database is one, in one order.
///
/// The place of an entry in that order is its sequence number. It is not stored with the entry, but follows from
/// the first number of the row and the entry's place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogEntry {
    /// A user acted on an item.
    Signal(SignalEntry),
    /// A user left the community layer.
    Leave {
        /// Who left.
        user: u64,
        /// When, in ns since the Unix epoch.
        at_ns: u64,
    },
    /// A user came back into the community layer.
    Rejoin {
        /// Who came back.
        user: u64,
        /// When, in ns since the Unix epoch.
        at_ns: u64,
    },
    /// A user joined a community.
    Join {
        /// Who joined.
        user: u64,
        /// The community.
        community: u64,
        /// When, in ns since the Unix epoch.
        at_ns: u64,
    },
    /// A user quit a community.
    Quit {
        /// Who quit.
        user: u64,
        /// The community.
        community: u64,
        /// When, in ns since the Unix epoch.
        at_ns: u64,
    },
    /// An attribute of a user was set.
    SetAttribute {
        /// Whose attribute it is.
        user: u64,
        /// When, in ns since the Unix epoch.
        at_ns: u64,
        /// Its name, 1 to 255 bytes without `=`.
        name: String,
        /// Its value, at most 1,024 bytes.
        value: String,
    },
    /// A source of events was applied up to a position.
    SourcePosition {
        /// The name of the source, 1 to 255 bytes.
        source: String,
        /// The position of the first event that was ever applied from it.
        first_position: u64,
        /// The position of the last event that was applied.
        position: u64,
        /// The SHA-256 of all events applied so far.
        digest: [u8; 32],
    },
}

/// A signal as the log keeps it: with what was decided about it, so that nobody has to decide again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalEntry {
    /// Who acted.
    pub user: u64,
    /// On what.
    pub item: u64,
    /// How, as a number of the stored schema.
    pub signal_type: SignalTypeId,
    /// How much it counts.
    pub weight: Weight,
    /// When the act took place, in ns since the Unix epoch.
    pub event_time_ns: u64,
    /// Which scopes took it besides the global one.
    pub scope_set: ScopeSetId,
    /// Why no scope took it, if it was withheld.
    pub withheld: Option<Withheld>,
}

/// The key of a row of the log, in the system partition: the sequence number of its first entry.
#[must_use]
pub fn log_row_key(first_sequence: u64) -> EncodedKey {
    encode_key(EntityId::new(first_sequence), Tag::Event, b"")
}

/// Takes the sequence number of the first entry out of the key of a row of the log.
///
/// # Errors
///
/// [`CodecError::Key`] and [`CodecError::ForeignKey`] if it is no such key.
pub fn parse_log_row_key(key: &[u8]) -> Result<u64, CodecError> {
    const WHAT: &str = "row of the log";
    match parse_key(key).map_err(|source| CodecError::Key { what: WHAT, source })? {
        (first_sequence, Tag::Event, []) => Ok(first_sequence.get()),
        _ => Err(CodecError::foreign_key(WHAT, key)),
    }
}
