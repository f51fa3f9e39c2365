//! What runs of both kinds have in common: rows that carry the number of their run, and count for nothing until what
//! says which runs are whole names it. Rows of any other run were left by an interrupted process, or were merged.

use tidal_entities::{CodecError, parse_aggregate_row_key, parse_run_row_key};
use tidal_keys::{EncodedKey, EntityId, Tag, encode_key};
use tidal_storage::{Engine, Partition, Storage, WriteBatch};

use crate::{Error, Result};

/// Where the rows of one kind of runs are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunTable {
    /// Stored aggregates.
    Aggregates,
    /// Signals by user.
    Signals,
}

impl RunTable {
    /// The numbers of all runs that have rows, in ascending order.
    pub(crate) fn numbers(self, storage: &Storage) -> Result<Vec<u64>> {
        let mut numbers = Vec::new();
        let mut from = 1;
        loop {
            let row = self.engine(storage).scan_tag_from(self.tag(), &self.start_of(from))?.next();
            let Some((key, _)) = row.transpose()? else { return Ok(numbers) };
            let number = self.number_of(&key).map_err(|cause| {
                Error::damaged_view("the key of a row of a run does not decode", Some(cause))
            })?;
            numbers.push(number);
            let Some(next) = number.checked_add(1) else { return Ok(numbers) };
            from = next;
        }
    }

    /// What removes up to so many rows of one run; empty if none are left.
    pub(crate) fn removal(self, storage: &Storage, number: u64, rows: usize) -> Result<WriteBatch> {
        let mut slice = WriteBatch::new();
        for row in self.engine(storage).scan_tag_from(self.tag(), &self.start_of(number))?.take(rows) {
            let (key, _) = row?;
            if self.number_of(&key).is_ok_and(|found| found == number) {
                slice.delete(self.partition(), &key);
            } else {
                break;
            }
        }
        Ok(slice)
    }

    fn start_of(self, number: u64) -> EncodedKey {
        encode_key(EntityId::new(number), self.tag(), b"")
    }

    fn number_of(self, key: &[u8]) -> std::result::Result<u64, CodecError> {
        match self {
            Self::Aggregates => Ok(parse_aggregate_row_key(key)?.0),
            Self::Signals => Ok(parse_run_row_key(key)?.0),
        }
    }

    fn engine(self, storage: &Storage) -> &Engine {
        match self {
            Self::Aggregates => storage.items_engine(),
            Self::Signals => storage.system_engine(),
        }
    }

    const fn partition(self) -> Partition {
        match self {
            Self::Aggregates => Partition::Items,
            Self::Signals => Partition::System,
        }
    }

    const fn tag(self) -> Tag {
        match self {
            Self::Aggregates => Tag::SignalState,
            Self::Signals => Tag::MaterializedView,
        }
    }
}
