//! Aggregates as they are stored: in runs, each sorted and written once. A run says what a part of the log adds to
//! them; an aggregate is the sum of what all runs say of it, in whatever order.

use tidal_keys::EncodedKey;

use super::{
    AggregateKey, AggregateState, aggregate_row_key,
    codec::{decode_aggregate, encode_aggregate},
    decode_key, encode_key_fields, parse_aggregate_row_key,
};
use crate::{
    CodecError, SEAL_LEN, ScopeId, SignalTypeId,
    reader::Reader,
    sealed::{seal_in_place, unseal},
};

const WHAT: &str = "row of aggregates";

/// With its key and what the engine adds, a full row stays below 16 KiB, the size of the page it is stored in. Only an
/// aggregate that is longer than that by itself has a longer row.
const ROW_BYTES: usize = 16_000;

/// A run that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AggregateRun {
    /// Its number, which its rows carry; at least 1, and no other run of this log gets it.
    pub number: u64,
    /// How many aggregates it has, at least 1.
    pub aggregate_count: u64,
    /// How long its rows are, keys not counted.
    pub byte_count: u64,
    /// The last of its aggregates.
    pub last: AggregateKey,
}

/// Lays out the rows of one run.
///
/// ```
/// use tidal_entities::{
///     AggregateKey, AggregateRow, AggregateRunBuilder, AggregateState, HalfLife, ScopeId, SignalTypeId, Weight,
/// };
///
/// let key = AggregateKey { item: 1752, scope: ScopeId::GLOBAL, signal_type: SignalTypeId(0) };
/// let mut state = AggregateState::default();
/// state.add(Weight::ONE, 100, HalfLife::MIN);
///
/// let mut run = AggregateRunBuilder::new(3, None);
/// assert_eq!(run.push(key, &state), None);
/// let (row_key, row, run) = run.finish().expect("there is an aggregate");
/// assert_eq!((run.number, run.aggregate_count, run.last), (3, 1, key));
///
/// let row = AggregateRow::decode(&row_key, &row)?;
/// assert_eq!((row.run(), row.previous(), row.last()), (3, None, key));
/// assert_eq!(row.into_aggregates(), [(key, state)]);
/// # Ok::<(), tidal_entities::CodecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct AggregateRunBuilder {
    number: u64,
    aggregate_count: u64,
    byte_count: u64,
    last: Option<AggregateKey>,
    row: Vec<u8>,
    /// Kept for its memory.
    entry: Vec<u8>,
}

impl AggregateRunBuilder {
    /// The rows behind `previous`, which is none for a whole run, of the run with this number, which is at least 1.
    #[must_use]
    pub fn new(number: u64, previous: Option<AggregateKey>) -> Self {
        let row = begin_row(previous);
        Self { number, aggregate_count: 0, byte_count: 0, last: previous, row, entry: Vec::new() }
    }

    /// Appends an aggregate, which must hold a signal and whose key must lie behind that of the one before: the row is
    /// not decoded otherwise. Returns key and value of the row before, if a new one was begun.
    pub fn push(&mut self, key: AggregateKey, state: &AggregateState) -> Option<(EncodedKey, Vec<u8>)> {
        self.entry.clear();
        encode_aggregate(self.last.map_or(0, |last| last.item), key, state, &mut self.entry);
        let is_full = self.row.len() + self.entry.len() + SEAL_LEN > ROW_BYTES;
        let closed = match self.last {
            Some(last) if is_full && self.row.len() > HEADER_LEN => Some(self.close_row(last)),
            _ => None,
        };
        self.row.extend_from_slice(&self.entry);
        self.aggregate_count += 1;
        self.last = Some(key);
        closed
    }

    /// Ends the run: key and value of its last row, and what stands for the whole. `None` if there is no aggregate.
    #[must_use]
    pub fn finish(mut self) -> Option<(EncodedKey, Vec<u8>, AggregateRun)> {
        let last = self.last.filter(|_| self.aggregate_count > 0)?;
        let (key, row) = self.close_row(last);
        let Self { number, aggregate_count, byte_count, .. } = self;
        Some((key, row, AggregateRun { number, aggregate_count, byte_count, last }))
    }

    fn close_row(&mut self, last: AggregateKey) -> (EncodedKey, Vec<u8>) {
        let key = aggregate_row_key(self.number, last);
        let mut row = std::mem::replace(&mut self.row, begin_row(Some(last)));
        seal_in_place(&key, &mut row);
        self.byte_count += row.len() as u64;
        (key, row)
    }
}

/// Whether there is a row before, and its last aggregate.
const HEADER_LEN: usize = 15;

fn begin_row(previous: Option<AggregateKey>) -> Vec<u8> {
    let mut row = Vec::with_capacity(ROW_BYTES);
    row.push(u8::from(previous.is_some()));
    encode_key_fields(previous.unwrap_or(LOWEST), &mut row);
    row
}

const LOWEST: AggregateKey = AggregateKey { item: 0, scope: ScopeId::GLOBAL, signal_type: SignalTypeId(0) };

/// A row of a run, checked against its seal and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateRow {
    run: u64,
    previous: Option<AggregateKey>,
    last: AggregateKey,
    aggregates: Vec<(AggregateKey, AggregateState)>,
}

impl AggregateRow {
    /// Checks and decodes a row.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if key or row are not what an [`AggregateRunBuilder`] lays out, if the keys of the aggregates do
    /// not ascend, or if sums are larger than counts allow.
    pub fn decode(key: &[u8], value: &[u8]) -> Result<Self, CodecError> {
        let (run, last) = parse_aggregate_row_key(key)?;
        let mut reader = Reader::new(WHAT, unseal(key, value)?);
        let previous = match (reader.u8()?, decode_key(&mut reader)?) {
            (0, LOWEST) => None,
            (1, previous) => Some(previous),
            (flag, previous) => {
                return Err(CodecError::Value {
                    what: "beginning of a row of aggregates",
                    found: format!("{flag}, {previous:?}"),
                    expected: "is 1 and an aggregate, or nothing but zeros",
                });
            }
        };
        let mut aggregates = Vec::with_capacity(value.len() / USUAL_AGGREGATE_BYTES);
        let mut reached = previous;
        while !reader.is_empty() {
            let (key, state) = decode_aggregate(reached.map_or(0, |before| before.item), &mut reader)?;
            if reached.is_some_and(|before| before >= key) {
                return Err(misplaced(key, "follows a lower one"));
            }
            reached = Some(key);
            aggregates.push((key, state));
        }
        if aggregates.is_empty() || reached != Some(last) {
            return Err(misplaced(reached.unwrap_or(LOWEST), "is, of the last, that of the row's key"));
        }
        Ok(Self { run, previous, last, aggregates })
    }

    /// The number of the run.
    #[must_use]
    pub const fn run(&self) -> u64 {
        self.run
    }

    /// The last aggregate of the row before, so that a row that is gone is missed.
    #[must_use]
    pub const fn previous(&self) -> Option<AggregateKey> {
        self.previous
    }

    /// The last aggregate.
    #[must_use]
    pub const fn last(&self) -> AggregateKey {
        self.last
    }

    /// The aggregates, in ascending order of their keys.
    #[must_use]
    pub fn aggregates(&self) -> &[(AggregateKey, AggregateState)] {
        &self.aggregates
    }

    /// The aggregates, in ascending order of their keys.
    #[must_use]
    pub fn into_aggregates(self) -> Vec<(AggregateKey, AggregateState)> {
        self.aggregates
    }
}

/// Of one epoch, without windows, which is what most are.
const USUAL_AGGREGATE_BYTES: usize = 20;

fn misplaced(key: AggregateKey, expected: &'static str) -> CodecError {
    CodecError::Value { what: "aggregate in a row of aggregates", found: format!("{key:?}"), expected }
}
