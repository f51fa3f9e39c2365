use std::collections::HashSet;

use tidal_keys::{EncodedKey, EntityId, Tag, encode_key};

use super::{
    RunPlace,
    row::{decode_place, encode_place},
};
use crate::{
    CodecError,
    reader::Reader,
    sealed::{seal_in_place, unseal},
};

const WHAT: &str = "index of runs";

/// A run that is whole: signals of a part of the log, sorted by user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Its number, which its rows carry; at least 1, and no other run ever gets it.
    pub number: u64,
    /// How often its signals were merged.
    pub level: u8,
    /// The first sequence number of its part of the log.
    pub first_sequence: u64,
    /// The last sequence number of its part of the log.
    pub last_sequence: u64,
    /// How many signals it holds: all of that part; at least 1.
    pub entry_count: u64,
    /// The place of its last entry.
    pub last: RunPlace,
}

/// Which runs are whole. Rows of other runs count for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIndex {
    /// Every signal up to this sequence number, itself included, is in one of the runs.
    pub through: u64,
    /// The number of the next run.
    pub next_number: u64,
    /// The runs, in the order of the parts of the log that they hold.
    pub runs: Vec<Run>,
}

impl Default for RunIndex {
    fn default() -> Self {
        Self { through: 0, next_number: 1, runs: Vec::new() }
    }
}

/// The key of the index of runs, in the system partition. No run has the number 0.
#[must_use]
pub fn run_index_key() -> EncodedKey {
    encode_key(EntityId::new(0), Tag::MaterializedView, b"runs")
}

/// Lays out the row of the index under its key.
#[must_use]
pub fn encode_run_index(key: &[u8], index: &RunIndex) -> Vec<u8> {
    let mut row = Vec::new();
    row.extend_from_slice(&index.through.to_le_bytes());
    row.extend_from_slice(&index.next_number.to_le_bytes());
    for Run { number, level, first_sequence, last_sequence, entry_count, last } in &index.runs {
        row.extend_from_slice(&number.to_le_bytes());
        row.push(*level);
        for value in [first_sequence, last_sequence, entry_count] {
            row.extend_from_slice(&value.to_le_bytes());
        }
        encode_place(*last, &mut row);
    }
    seal_in_place(key, &mut row);
    row
}

/// Reads the row of the index.
///
/// # Errors
///
/// [`CodecError`] if the row is not what [`encode_run_index`] lays out under this key, if parts of the log overlap or go
/// beyond what the index reaches, or a number is there twice or still to be given.
pub fn decode_run_index(key: &[u8], value: &[u8]) -> Result<RunIndex, CodecError> {
    let mut reader = Reader::new(WHAT, unseal(key, value)?);
    let mut index = RunIndex { through: reader.u64()?, next_number: reader.u64()?, runs: Vec::new() };
    let mut numbers = HashSet::new();
    let mut reached = 0;
    while !reader.is_empty() {
        let run = Run {
            number: reader.u64()?,
            level: reader.u8()?,
            first_sequence: reader.u64()?,
            last_sequence: reader.u64()?,
            entry_count: reader.u64()?,
            last: decode_place(&mut reader)?,
        };
        if run.number == 0 || run.number >= index.next_number || !numbers.insert(run.number) {
            return Err(refused(&run, "has a number of its own, above 0 and below the next"));
        }
        let is_part = run.first_sequence > reached
            && run.last_sequence >= run.first_sequence
            && run.last_sequence <= index.through;
        if !is_part {
            return Err(refused(&run, "follows the run before it, and ends where the index does or before"));
        }
        let room = run.last_sequence - run.first_sequence;
        if run.entry_count == 0 || run.entry_count - 1 > room {
            return Err(refused(&run, "holds a signal, and none twice"));
        }
        if !(run.first_sequence..=run.last_sequence).contains(&run.last.sequence) {
            return Err(refused(&run, "ends with a signal of its part of the log"));
        }
        reached = run.last_sequence;
        index.runs.push(run);
    }
    Ok(index)
}

fn refused(run: &Run, expected: &'static str) -> CodecError {
    CodecError::Value { what: "run in an index of runs", found: format!("{run:?}"), expected }
}
