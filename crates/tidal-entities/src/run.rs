mod index;
mod row;

use tidal_keys::{EncodedKey, EntityId, Tag, encode_key, parse_key};

use crate::{CodecError, SignalEntry, SignalTypeId, Weight, Withheld};

pub use index::{Run, RunIndex, decode_run_index, encode_run_index, run_index_key};
pub use row::{RunRow, RunRowBuilder};

/// A place in a run: its entries are sorted by user, and those of a user as they were delivered.
///
/// Sequence numbers begin at 1, so no entry has the place of [`RunPlace::START`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunPlace {
    /// Who acted.
    pub user: u64,
    /// The sequence number of the signal in the log.
    pub sequence: u64,
}

impl RunPlace {
    /// Before every entry.
    pub const START: Self = Self { user: 0, sequence: 0 };
}

/// A signal as a run keeps it: what the history of its user says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunEntry {
    /// Who acted, and which entry of the log it is.
    pub place: RunPlace,
    /// On what.
    pub item: u64,
    /// How, as a number of the stored schema.
    pub signal_type: SignalTypeId,
    /// How much it counts.
    pub weight: Weight,
    /// When the act took place, in ns since the Unix epoch.
    pub event_time_ns: u64,
    /// Why no scope took it, if it was withheld.
    pub withheld: Option<Withheld>,
}

impl RunEntry {
    /// What a run keeps of the signal with this sequence number.
    #[must_use]
    pub const fn new(sequence: u64, signal: &SignalEntry) -> Self {
        Self {
            place: RunPlace { user: signal.user, sequence },
            item: signal.item,
            signal_type: signal.signal_type,
            weight: signal.weight,
            event_time_ns: signal.event_time_ns,
            withheld: signal.withheld,
        }
    }
}

/// The key of a row of a run, in the system partition: the number of the run, and the place of the row's last entry.
///
/// The last, not the first: the first row from the place of a user on is then the first that can hold one of his entries.
#[must_use]
pub fn run_row_key(run: u64, last: RunPlace) -> EncodedKey {
    let [user, sequence] = [last.user.to_be_bytes(), last.sequence.to_be_bytes()];
    encode_key(EntityId::new(run), Tag::MaterializedView, &[user, sequence].concat())
}

/// Takes the number of the run and the place of the row's last entry out of the key of a row of a run.
///
/// # Errors
///
/// [`CodecError::Key`] and [`CodecError::ForeignKey`] if it is no such key.
///
/// ```
/// use tidal_entities::{RunPlace, parse_run_row_key, run_row_key};
///
/// let last = RunPlace { user: 7, sequence: 12 };
/// assert_eq!(parse_run_row_key(&run_row_key(3, last))?, (3, last));
/// # Ok::<(), tidal_entities::CodecError>(())
/// ```
pub fn parse_run_row_key(key: &[u8]) -> Result<(u64, RunPlace), CodecError> {
    const WHAT: &str = "row of a run";
    let (run, tag, suffix) = parse_key(key).map_err(|source| CodecError::Key { what: WHAT, source })?;
    match (tag, suffix.split_first_chunk::<8>()) {
        (Tag::MaterializedView, Some((user, sequence))) if run.get() != 0 => {
            let sequence = <[u8; 8]>::try_from(sequence).map_err(|_| CodecError::foreign_key(WHAT, key))?;
            let [user, sequence] = [*user, sequence].map(u64::from_be_bytes);
            Ok((run.get(), RunPlace { user, sequence }))
        }
        _ => Err(CodecError::foreign_key(WHAT, key)),
    }
}
