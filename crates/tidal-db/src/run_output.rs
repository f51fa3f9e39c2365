//! A run that is being written, in slices.

use tidal_entities::{Run, RunEntry, RunPlace, RunRowBuilder};
use tidal_storage::{Partition, WriteBatch};

/// Lays out the rows of one run. Until the index names it they count for nothing.
#[derive(Debug)]
pub(crate) struct RunOutput {
    number: u64,
    row: RunRowBuilder,
    entry_count: u64,
    slice_rows: usize,
    slice: WriteBatch,
}

impl RunOutput {
    /// The run with this number, with so many rows a slice.
    pub(crate) fn new(number: u64, slice_rows: usize) -> Self {
        let row = RunRowBuilder::new(RunPlace::START);
        Self { number, row, entry_count: 0, slice_rows, slice: WriteBatch::new() }
    }

    /// Appends an entry, whose place must lie behind that of the one before.
    pub(crate) fn push(&mut self, entry: &RunEntry) {
        self.row.push(entry);
        self.entry_count += 1;
        if self.row.is_full() {
            self.close_row();
        }
    }

    /// Whether it is time to take the slice.
    pub(crate) fn has_slice(&self) -> bool {
        self.slice.len() >= self.slice_rows
    }

    /// The rows since the last slice.
    pub(crate) fn take_slice(&mut self) -> WriteBatch {
        std::mem::take(&mut self.slice)
    }

    /// How many entries there are.
    pub(crate) fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// Ends the run: the last slice, and what the index says of the whole.
    pub(crate) fn finish(&mut self, level: u8, first_sequence: u64, last_sequence: u64) -> (WriteBatch, Run) {
        if !self.row.is_empty() {
            self.close_row();
        }
        let run = Run {
            number: self.number,
            level,
            first_sequence,
            last_sequence,
            entry_count: self.entry_count,
            last: self.row.last(),
        };
        (self.take_slice(), run)
    }

    fn close_row(&mut self) {
        let next = RunRowBuilder::new(self.row.last());
        let (key, value) = std::mem::replace(&mut self.row, next).finish(self.number);
        self.slice.put(Partition::System, &key, &value);
    }
}
