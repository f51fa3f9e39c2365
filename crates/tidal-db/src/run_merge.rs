//! Several runs become one, a slice at a time.

use std::collections::VecDeque;

use tidal_entities::{Run, RunEntry, RunPlace};
use tidal_storage::{Storage, WriteBatch};

use crate::give_way::GiveWay;
use crate::run_output::RunOutput;
use crate::runs::RunScan;
use crate::{Error, Result};

/// Rows read of a run at a time. A scan held for longer would keep old pages from being used again.
const ROWS_AT_A_TIME: usize = 4;

/// One of the runs to be merged.
#[derive(Debug)]
struct Input {
    run: Run,
    read_to: RunPlace,
    entries: VecDeque<RunEntry>,
}

impl Input {
    /// The next entry; `None` at the end of the run.
    fn head(&mut self, storage: &Storage) -> Result<Option<RunEntry>> {
        if self.entries.is_empty() && self.read_to != self.run.last {
            let mut rows = RunScan::after(storage, &self.run, self.read_to)?;
            for _ in 0..ROWS_AT_A_TIME {
                let Some(row) = rows.next_row()? else { break };
                self.read_to = row.last();
                self.entries.extend(row.into_entries());
            }
        }
        Ok(self.entries.front().copied())
    }
}

/// What one step of a merge leads to.
#[derive(Debug)]
pub(crate) enum Merged {
    /// A slice of the new run.
    Slice(WriteBatch),
    /// The last slice, the new run, and the numbers of those that it replaces.
    Whole(WriteBatch, Run, Vec<u64>),
}

/// A merge under way.
#[derive(Debug)]
pub(crate) struct Merge {
    level: u8,
    inputs: Vec<Input>,
    output: RunOutput,
}

impl Merge {
    /// Of runs that follow each other, into one of this level.
    pub(crate) fn new(runs: &[Run], level: u8, output: RunOutput) -> Self {
        let input = |run: &Run| Input { run: *run, read_to: RunPlace::START, entries: VecDeque::new() };
        Self { level, inputs: runs.iter().map(input).collect(), output }
    }

    /// Goes on for one slice.
    pub(crate) fn step(&mut self, storage: &Storage) -> Result<Merged> {
        let mut give_way = GiveWay::default();
        loop {
            give_way.step();
            let mut lowest: Option<(RunPlace, usize)> = None;
            for (position, input) in self.inputs.iter_mut().enumerate() {
                if let Some(head) = input.head(storage)?
                    && lowest.is_none_or(|(place, _)| head.place < place)
                {
                    lowest = Some((head.place, position));
                }
            }
            let input = lowest.and_then(|(_, position)| self.inputs.get_mut(position));
            let Some(entry) = input.and_then(|input| input.entries.pop_front()) else { return self.finish() };
            self.output.push(&entry);
            if self.output.has_slice() {
                return Ok(Merged::Slice(self.output.take_slice()));
            }
        }
    }

    fn finish(&mut self) -> Result<Merged> {
        let expected: u64 = self.inputs.iter().map(|input| input.run.entry_count).sum();
        let found = self.output.entry_count();
        if found != expected {
            let what = format!("runs of signals by user hold {found} signals, but {expected} in their index");
            return Err(Error::damaged_view(what, None));
        }
        let first_sequence = self.inputs.first().map_or(0, |input| input.run.first_sequence);
        let last_sequence = self.inputs.last().map_or(0, |input| input.run.last_sequence);
        let numbers = self.inputs.iter().map(|input| input.run.number).collect();
        let (slice, run) = self.output.finish(self.level, first_sequence, last_sequence);
        Ok(Merged::Whole(slice, run, numbers))
    }
}
