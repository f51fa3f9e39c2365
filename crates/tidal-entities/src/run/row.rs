use tidal_keys::EncodedKey;

use super::{RunEntry, RunPlace, parse_run_row_key, run_row_key};
use crate::{
    CodecError, SEAL_LEN, SignalTypeId,
    reader::Reader,
    sealed::{seal_in_place, unseal},
    weight::stored_weight,
    withheld::{decode_reason, encode_reason},
};

const WHAT: &str = "row of a run";

const PLACE_LEN: usize = 2 * size_of::<u64>();
const ENTRY_LEN: usize = PLACE_LEN + 3 * size_of::<u64>() + size_of::<u16>() + size_of::<u8>();

/// With its key and what the engine adds, a full row stays below 16 KiB, the size of the page it is stored in.
const ROW_ENTRIES: usize = (16_000 - PLACE_LEN - SEAL_LEN) / ENTRY_LEN;

const _: () = assert!(ENTRY_LEN == 43 && ROW_ENTRIES == 371);

/// Gathers entries of a run, in ascending order of their places, into one row.
///
/// ```
/// use tidal_entities::{RunEntry, RunPlace, RunRow, RunRowBuilder, SignalTypeId, Weight};
///
/// let entry = RunEntry {
///     place: RunPlace { user: 7, sequence: 3 },
///     item: 1752,
///     signal_type: SignalTypeId(0),
///     weight: Weight::ONE,
///     event_time_ns: 100,
///     withheld: None,
/// };
/// let mut builder = RunRowBuilder::new(RunPlace::START);
/// builder.push(&entry);
/// let (key, row) = builder.finish(1);
///
/// let row = RunRow::decode(&key, &row)?;
/// assert_eq!((row.run(), row.previous(), row.last()), (1, RunPlace::START, entry.place));
/// assert_eq!(row.entries(), [entry]);
/// # Ok::<(), tidal_entities::CodecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RunRowBuilder {
    last: RunPlace,
    payload: Vec<u8>,
}

impl RunRowBuilder {
    /// A row without entries, which follows the row whose last entry is at `previous`; [`RunPlace::START`] for the
    /// first row of a run.
    #[must_use]
    pub fn new(previous: RunPlace) -> Self {
        let mut payload = Vec::new();
        encode_place(previous, &mut payload);
        Self { last: previous, payload }
    }

    /// Appends an entry. Its place must lie behind that of the entry before it: the row is not decoded otherwise.
    pub fn push(&mut self, entry: &RunEntry) {
        let RunEntry { place, item, signal_type, weight, event_time_ns, withheld } = entry;
        encode_place(*place, &mut self.payload);
        self.payload.extend_from_slice(&item.to_le_bytes());
        self.payload.extend_from_slice(&signal_type.0.to_le_bytes());
        self.payload.extend_from_slice(&weight.nanos().to_le_bytes());
        self.payload.extend_from_slice(&event_time_ns.to_le_bytes());
        self.payload.push(encode_reason(*withheld));
        self.last = *place;
    }

    /// The place of the last entry, or of the last one of the row before.
    #[must_use]
    pub const fn last(&self) -> RunPlace {
        self.last
    }

    /// Whether there is no entry yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.payload.len() == PLACE_LEN
    }

    /// Whether the row is as long as rows get: the next entry should begin another.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.payload.len() >= PLACE_LEN + ROW_ENTRIES * ENTRY_LEN
    }

    /// Lays out key and value of the row, of the run with this number.
    #[must_use]
    pub fn finish(self, run: u64) -> (EncodedKey, Vec<u8>) {
        let key = run_row_key(run, self.last);
        let mut row = self.payload;
        seal_in_place(&key, &mut row);
        (key, row)
    }
}

/// A row of a run, checked against its seal and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    run: u64,
    previous: RunPlace,
    last: RunPlace,
    entries: Vec<RunEntry>,
}

impl RunRow {
    /// Checks and decodes a row.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if key or row are not what [`RunRowBuilder::finish`] lays out, or the places do not ascend.
    pub fn decode(key: &[u8], value: &[u8]) -> Result<Self, CodecError> {
        let (run, last) = parse_run_row_key(key)?;
        let mut reader = Reader::new(WHAT, unseal(key, value)?);
        let previous = decode_place(&mut reader)?;
        let mut entries = Vec::with_capacity(value.len() / ENTRY_LEN);
        let mut reached = previous;
        while !reader.is_empty() {
            let entry = decode_entry(&mut reader)?;
            if entry.place <= reached || entry.place.sequence == 0 {
                return Err(misplaced(entry.place, "ascends, with sequences from 1 on"));
            }
            reached = entry.place;
            entries.push(entry);
        }
        if entries.is_empty() || reached != last {
            return Err(misplaced(reached, "is, of the last entry, that of the key"));
        }
        Ok(Self { run, previous, last, entries })
    }

    /// The number of the run.
    #[must_use]
    pub const fn run(&self) -> u64 {
        self.run
    }

    /// The place of the last entry of the row before, so that a row that is gone is missed.
    #[must_use]
    pub const fn previous(&self) -> RunPlace {
        self.previous
    }

    /// The place of the last entry.
    #[must_use]
    pub const fn last(&self) -> RunPlace {
        self.last
    }

    /// The entries, in ascending order of their places.
    #[must_use]
    pub fn entries(&self) -> &[RunEntry] {
        &self.entries
    }

    /// The entries, in ascending order of their places.
    #[must_use]
    pub fn into_entries(self) -> Vec<RunEntry> {
        self.entries
    }
}

pub(super) fn encode_place(place: RunPlace, out: &mut Vec<u8>) {
    out.extend_from_slice(&place.user.to_le_bytes());
    out.extend_from_slice(&place.sequence.to_le_bytes());
}

pub(super) fn decode_place(reader: &mut Reader<'_>) -> Result<RunPlace, CodecError> {
    Ok(RunPlace { user: reader.u64()?, sequence: reader.u64()? })
}

fn decode_entry(reader: &mut Reader<'_>) -> Result<RunEntry, CodecError> {
    Ok(RunEntry {
        place: decode_place(reader)?,
        item: reader.u64()?,
        signal_type: SignalTypeId(reader.u16()?),
        weight: stored_weight(reader.i64()?)?,
        event_time_ns: reader.u64()?,
        withheld: decode_reason(reader.u8()?)?,
    })
}

fn misplaced(place: RunPlace, expected: &'static str) -> CodecError {
    CodecError::Value {
        what: "place in a row of a run",
        found: format!("user {}, sequence {}", place.user, place.sequence),
        expected,
    }
}
