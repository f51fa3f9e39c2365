//! A run of aggregates that is being written, in slices.

use tidal_entities::{AggregateKey, AggregateRun, AggregateRunBuilder, AggregateState};
use tidal_storage::{Partition, WriteBatch};

/// Lays out the rows of one run. Until the checkpoint names it they count for nothing.
#[derive(Debug)]
pub(crate) struct AggregateOutput {
    run: AggregateRunBuilder,
    slice_rows: usize,
    slice: WriteBatch,
}

impl AggregateOutput {
    /// The run with this number, with so many rows a slice.
    pub(crate) fn new(number: u64, slice_rows: usize) -> Self {
        Self { run: AggregateRunBuilder::new(number, None), slice_rows, slice: WriteBatch::new() }
    }

    /// Appends an aggregate, whose key must lie behind that of the one before. Returns a slice if it is time for one.
    pub(crate) fn push(&mut self, key: AggregateKey, state: &AggregateState) -> Option<WriteBatch> {
        let (key, row) = self.run.push(key, state)?;
        self.slice.put(Partition::Items, &key, &row);
        (self.slice.len() >= self.slice_rows).then(|| std::mem::take(&mut self.slice))
    }

    /// Ends the run: the last slice, and what stands for the whole if there is any aggregate.
    pub(crate) fn finish(mut self) -> (WriteBatch, Option<AggregateRun>) {
        let run = self.run.finish().map(|(key, row, run)| {
            self.slice.put(Partition::Items, &key, &row);
            run
        });
        (self.slice, run)
    }
}
