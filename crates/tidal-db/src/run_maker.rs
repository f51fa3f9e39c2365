//! Runs follow the log, beside it: nobody waits for them.
//!
//! What the log on disk says after the last run is sorted by user and written as a run; eight runs of
//! one level are merged into one of the next. Everything is done in slices, each a short commit of its
//! own, and the commit of the last slice says in the index that the run is whole. Rows of any other
//! run count for nothing and are removed, in slices too.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tidal_entities::{LogEntry, RunEntry, RunIndex, RunPlace, encode_run_index, run_index_key};
use tidal_storage::{Partition, Storage, WriteBatch};

use crate::canary::{Break, Canary};
use crate::give_way::{self, GiveWay};
use crate::log_rows::visit_entries;
use crate::log_writer::LogWriter;
use crate::run_merge::{Merge, Merged};
use crate::run_output::RunOutput;
use crate::run_table::RunTable;
use crate::{Error, Result};

/// So many runs of one level are merged into one of the next.
const MERGED_RUNS: usize = 8;

/// Slices of merges and removals for each new run, before the next if the log is ahead again. Of each level a run
/// costs 6 slices that are written and 2 that are removed, so hundreds of millions of signals are kept
/// up with even so.
const SLICES_PER_RUN: usize = 32;

/// Rows of a commit, 256 KiB: a millisecond or two of the one writer there is.
const SLICE_ROWS: usize = 16;

/// Rows that one commit removes, for each that one would write: their pages are not written.
const REMOVED_PER_ROW: usize = 4;

/// Makes runs and merges them. There is one for each database on disk.
#[derive(Debug)]
pub(crate) struct RunMaker {
    storage: Storage,
    log: Arc<LogWriter>,
    /// As it is stored, but for numbers of runs that are not whole yet.
    index: RunIndex,
    /// A run begins when the log is so many entries ahead.
    interval: u64,
    canary: Canary,
    slice_rows: usize,
    /// The merges under way, by the level that they merge.
    merges: BTreeMap<u8, Merge>,
    /// Runs whose rows are to be removed.
    gone: VecDeque<u64>,
}

impl RunMaker {
    /// Reads which rows an interrupted process left. Part of the open: what cannot be read fails it. The thread
    /// removes them at once, and goes on with merges.
    pub(crate) fn prepare(
        storage: Storage,
        log: Arc<LogWriter>,
        index: RunIndex,
        interval: u64,
        canary: Canary,
    ) -> Result<Self> {
        // Short runs have slices too, so that tests need no long ones.
        let slice_rows = usize::try_from(interval / 2_048).unwrap_or(SLICE_ROWS).clamp(1, SLICE_ROWS);
        let mut maker = Self {
            storage,
            log,
            index,
            interval,
            canary,
            slice_rows,
            merges: BTreeMap::new(),
            gone: VecDeque::new(),
        };
        maker.find_gone()?;
        Ok(maker)
    }

    /// Makes runs until the database is closed or a commit fails. Runs on its own thread.
    pub(crate) fn run(mut self) {
        match self.follow_log() {
            Ok(()) | Err(Error::Closed | Error::Latched { .. }) => {}
            // Damage to runs must stop no leave. Histories say it where they come upon it.
            Err(error @ (Error::Damaged { .. } | Error::DamagedView { .. })) => {
                tracing::error!(%error, "no more runs of signals by user are made; histories read more of the log instead");
            }
            Err(error) => self.log.fail(error),
        }
    }

    fn follow_log(&mut self) -> Result<()> {
        loop {
            for _ in 0..SLICES_PER_RUN {
                if !self.tidy_up()? {
                    // Nothing is left to do but to wait.
                    if self.log.wait_for_log(self.index.through, self.interval).is_none() {
                        return Ok(());
                    }
                    break;
                }
            }
            let durable_sequence = self.log.durable_sequence();
            if durable_sequence.saturating_sub(self.index.through) >= self.interval {
                self.make_run(durable_sequence)?;
            }
        }
    }

    /// Finds the rows that an interrupted process left, and keeps their numbers from being used again.
    fn find_gone(&mut self) -> Result<()> {
        for number in RunTable::Signals.numbers(&self.storage)? {
            if !self.index.runs.iter().any(|run| run.number == number) {
                self.gone.push_back(number);
            }
            self.index.next_number = self.index.next_number.max(number.saturating_add(1));
        }
        Ok(())
    }

    /// Removes or merges one slice; `false` if there is nothing of either to do.
    fn tidy_up(&mut self) -> Result<bool> {
        if let Some(number) = self.gone.front().copied() {
            if !self.remove_slice(number)? {
                self.gone.pop_front();
            }
            return Ok(true);
        }
        self.begin_merges();
        // The lowest level first: it has the most runs to get rid of for the least work.
        let Some(mut under_way) = self.merges.first_entry() else { return Ok(false) };
        match under_way.get_mut().step(&self.storage)? {
            Merged::Slice(slice) => self.commit(slice)?,
            Merged::Whole(slice, run, replaced) => {
                under_way.remove();
                let is_replaced = |number| replaced.contains(&number);
                let position = self.index.runs.iter().position(|run| is_replaced(run.number)).unwrap_or(0);
                self.index.runs.retain(|run| !is_replaced(run.number));
                self.index.runs.insert(position, run);
                self.commit_with_index(slice)?;
                self.gone.extend(replaced);
            }
        }
        Ok(true)
    }

    fn begin_merges(&mut self) {
        let mut by_level: BTreeMap<u8, Vec<_>> = BTreeMap::new();
        for run in &self.index.runs {
            by_level.entry(run.level).or_default().push(*run);
        }
        for (level, runs) in by_level {
            let Some(next_level) = level.checked_add(1) else { continue };
            if let Some(merged) = runs.get(..MERGED_RUNS)
                && !self.merges.contains_key(&level)
            {
                let output = self.begin_run();
                self.merges.insert(level, Merge::new(merged, next_level, output));
            }
        }
    }

    /// Makes a run of what the log says after the last.
    fn make_run(&mut self, durable_sequence: u64) -> Result<()> {
        let after = self.index.through;
        let goal = durable_sequence.min(after.saturating_add(self.interval));
        // Grown bit by bit it would be copied, and whoever allocates meanwhile be held up.
        let mut entries = Vec::with_capacity(usize::try_from(goal.saturating_sub(after)).unwrap_or(0));
        let reached = visit_entries(
            &self.storage,
            after,
            |sequence, entry| {
                if let LogEntry::Signal(signal) = entry {
                    entries.push(RunEntry::new(sequence, &signal));
                }
                Ok(())
            },
            |sequence| sequence >= goal,
        )?;
        if reached < goal {
            return Err(Error::damaged(format!("the log ends at sequence {reached}, before {goal}")));
        }
        self.index.through = reached;
        if entries.is_empty() {
            return self.commit_with_index(WriteBatch::new());
        }
        // As one number, which is compared without a branch for each field.
        let in_order = |RunPlace { user, sequence }| u128::from(user) << 64 | u128::from(sequence);
        give_way::sort_by_key(&mut entries, |entry| in_order(entry.place));
        let mut output = self.begin_run();
        let mut give_way = GiveWay::default();
        for entry in &entries {
            give_way.step();
            if output.has_slice() {
                let slice = output.take_slice();
                self.commit(slice)?;
            }
            output.push(entry);
        }
        self.canary.strike(Break::RunsPanic);
        let (slice, run) = output.finish(0, after + 1, reached);
        self.index.runs.push(run);
        self.commit_with_index(slice)
    }

    fn begin_run(&mut self) -> RunOutput {
        let number = self.index.next_number;
        self.index.next_number += 1;
        RunOutput::new(number, self.slice_rows)
    }

    /// Removes some rows of a run that is not in the index; `false` if none are left.
    fn remove_slice(&self, number: u64) -> Result<bool> {
        let slice = RunTable::Signals.removal(&self.storage, number, self.slice_rows * REMOVED_PER_ROW)?;
        if slice.is_empty() {
            return Ok(false);
        }
        self.commit(slice)?;
        Ok(true)
    }

    fn commit_with_index(&self, mut slice: WriteBatch) -> Result<()> {
        let key = run_index_key();
        slice.put(Partition::System, &key, &encode_run_index(&key, &self.index));
        self.commit(slice)
    }

    /// A close waits for one commit at most.
    fn commit(&self, slice: WriteBatch) -> Result<()> {
        self.log.check_writable()?;
        Ok(self.storage.commit(slice)?)
    }
}
