//! Stored aggregates follow the log, beside it.
//!
//! A checkpoint reads what the log on disk says after the last one, adds it up and writes it as a run: sorted, in one
//! go, and without a look at what is stored. It never looks at the aggregates in memory either, so no signal waits
//! for it, and what the runs add up to is by construction what the log says up to the floor. Runs that have become
//! small beside those before them are merged. Everything is done in slices, each a commit of its own, short enough
//! that a leave behind it waits for milliseconds; the commit of the last slice says in the checkpoint that the run is
//! whole. Rows of any other run count for nothing and are removed, in slices too.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use tidal_entities::{
    AggregateState, Checkpoint, Contribution, LogEntry, Schema, SignalEntry, checkpoint_key,
    encode_checkpoint,
};
use tidal_storage::{Partition, Storage, WriteBatch};

use crate::aggregate_merge::{AggregateMerge, Merged, first_to_merge};
use crate::aggregate_output::AggregateOutput;
use crate::aggregates::AggregateKey;
use crate::canary::{Break, Canary};
use crate::give_way::{self, GiveWay};
use crate::log_replay::for_each_aggregate;
use crate::log_rows::visit_entries;
use crate::log_writer::LogWriter;
use crate::run_table::RunTable;
use crate::scopes::Interner;
use crate::{Error, Result};

/// Rows of a commit, 1 MiB: some milliseconds of the one writer there is.
const SLICE_ROWS: usize = 64;

/// Rows that one commit removes, for each that one would write: their pages are not written.
const REMOVED_PER_ROW: usize = 4;

/// Slices of merges and removals for each that a checkpoint wrote, before the next checkpoint if the log is ahead
/// again. Merges write a run some five times before it is a small part of the whole, so they keep up even so.
const TIDY_SLICES_PER_SLICE: usize = 8;

/// Additions a checkpoint, and at most those of one row of the log more: bounds its memory. 24 bytes each and 32 for
/// each signal are 224 megabytes, if no signal is forwarded. The more it takes at once, the fewer times it stores an
/// aggregate that changes often.
const MAX_ADDITIONS: usize = 4_000_000;

/// How many times as much room as a checkpoint needed is kept for the next.
const KEPT_ROOM: usize = 8;

/// What the log adds, signal by signal: kept as a list and then sorted, since a map of sums would cost a look into
/// memory that has to be fetched for each of them. The lists are kept from one checkpoint to the next: to give back or
/// to copy that much memory would hold up whoever allocates meanwhile.
#[derive(Debug, Default)]
struct Additions {
    contributions: Vec<Contribution>,
    /// Which of the contributions goes to which aggregate.
    by_aggregate: Vec<(AggregateKey, u32)>,
}

/// Brings the stored aggregates after the log. There is one for each database on disk.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    storage: Storage,
    schema: Arc<Schema>,
    interner: Arc<Interner>,
    log: Arc<LogWriter>,
    checkpoint: Checkpoint,
    /// A checkpoint begins when the log is so many entries ahead.
    interval: u64,
    canary: Canary,
    slice_rows: usize,
    additions: Additions,
    merge: Option<AggregateMerge>,
    are_runs_damaged: bool,
    /// Runs whose rows are to be removed.
    gone: VecDeque<u64>,
}

impl Checkpointer {
    /// Reads which rows an interrupted process left. Part of the open: what cannot be read fails it. The thread removes
    /// them at once, and goes on with merges.
    pub(crate) fn prepare(
        storage: Storage,
        schema: Arc<Schema>,
        interner: Arc<Interner>,
        log: Arc<LogWriter>,
        checkpoint: Checkpoint,
        interval: u64,
        canary: Canary,
    ) -> Result<Self> {
        // Short checkpoints have slices too, so that tests need no long ones.
        let slice_rows = usize::try_from(interval / 1_024).unwrap_or(SLICE_ROWS).clamp(1, SLICE_ROWS);
        let mut gone = VecDeque::new();
        for number in RunTable::Aggregates.numbers(&storage)? {
            // The next run would be taken for one that is to be removed.
            if number >= checkpoint.next_number {
                let what = format!(
                    "there are rows of run {number} of stored aggregates, but the checkpoint says that {} is the next",
                    checkpoint.next_number
                );
                return Err(Error::damaged_view(what, None));
            }
            if !checkpoint.runs.iter().any(|run| run.number == number) {
                gone.push_back(number);
            }
        }
        Ok(Self {
            storage,
            schema,
            interner,
            log,
            checkpoint,
            interval,
            canary,
            slice_rows,
            additions: Additions::default(),
            merge: None,
            are_runs_damaged: false,
            gone,
        })
    }

    /// Makes checkpoints until the database is closed or a commit fails. Runs on its own thread.
    pub(crate) fn run(mut self) {
        match self.follow_log() {
            // The next open goes on with what is left.
            Ok(()) | Err(Error::Closed | Error::Latched { .. }) => {}
            Err(error) => self.log.fail(error),
        }
    }

    fn follow_log(&mut self) -> Result<()> {
        loop {
            let mut slices_owed = 0;
            if self.is_log_ahead() {
                slices_owed = TIDY_SLICES_PER_SLICE * self.advance(self.log.durable_sequence())?;
                self.log.checkpointed(self.checkpoint.floor);
            }
            while self.tidy_up()? {
                slices_owed = slices_owed.saturating_sub(1);
                if slices_owed == 0 && self.is_log_ahead() {
                    break;
                }
            }
            if !self.is_log_ahead() && self.log.wait_for_log(self.checkpoint.floor, self.interval).is_none() {
                return Ok(());
            }
        }
    }

    fn is_log_ahead(&self) -> bool {
        self.log.durable_sequence().saturating_sub(self.checkpoint.floor) >= self.interval
    }

    /// Makes one checkpoint; returns how many slices it wrote.
    fn advance(&mut self, goal: u64) -> Result<usize> {
        let Checkpoint { floor, mut withheld, .. } = self.checkpoint;
        let additions = RefCell::new(std::mem::take(&mut self.additions));
        let mut give_way = GiveWay::default();
        let reached = visit_entries(
            &self.storage,
            floor,
            |sequence, entry| {
                give_way.step();
                let LogEntry::Signal(signal) = entry else { return Ok(()) };
                if let Some(reason) = signal.withheld {
                    withheld.add(reason);
                }
                additions.borrow_mut().note(&self.schema, &self.interner, sequence, &signal)
            },
            |sequence| {
                let mut additions = additions.borrow_mut();
                additions.make_room(sequence.saturating_sub(floor), goal.saturating_sub(floor));
                sequence >= goal || additions.is_full() || self.log.check_writable().is_err()
            },
        )?;
        self.log.check_writable()?;
        let mut additions = additions.into_inner();
        let (slices, output) = self.write_sums(&mut additions)?;
        additions.clear();
        self.additions = additions;
        self.canary.strike(Break::CheckpointPanics);
        let (slice, run) = output.finish();
        self.checkpoint.runs.extend(run);
        (self.checkpoint.floor, self.checkpoint.withheld) = (reached, withheld);
        self.commit(slice)?;
        Ok(slices + 1)
    }

    /// Writes what the log adds to each aggregate, but for the last slice.
    fn write_sums(&mut self, additions: &mut Additions) -> Result<(usize, AggregateOutput)> {
        let Additions { contributions, by_aggregate } = additions;
        give_way::sort_by_key(by_aggregate, |(key, _)| in_order(*key));
        let mut output = self.begin_run();
        let mut give_way = GiveWay::default();
        let mut slices = 0;
        for same in by_aggregate.chunk_by(|a, b| a.0 == b.0) {
            let Some((key, _)) = same.first() else { continue };
            let mut sum = AggregateState::default();
            // A hot item has a good part of them all.
            for contribution in same.iter().filter_map(|(_, nth)| contributions.get(*nth as usize)) {
                give_way.step();
                sum.add_contribution(contribution);
            }
            if let Some(slice) = output.push(*key, &sum) {
                self.commit(slice)?;
                slices += 1;
            }
        }
        Ok((slices, output))
    }

    fn begin_run(&mut self) -> AggregateOutput {
        let number = self.checkpoint.next_number;
        self.checkpoint.next_number += 1;
        AggregateOutput::new(number, self.slice_rows)
    }

    fn begin_merge(&mut self) -> Option<AggregateMerge> {
        let first = first_to_merge(&self.checkpoint.runs)?;
        let output = self.begin_run();
        Some(AggregateMerge::new(self.checkpoint.runs.get(first..).unwrap_or_default(), output))
    }

    /// Removes or merges one slice; `false` if there is nothing of either to do.
    fn tidy_up(&mut self) -> Result<bool> {
        if let Some(number) = self.gone.front().copied() {
            let rows = self.slice_rows * REMOVED_PER_ROW;
            let slice = RunTable::Aggregates.removal(&self.storage, number, rows)?;
            if slice.is_empty() {
                self.gone.pop_front();
            } else {
                self.commit(slice)?;
            }
            return Ok(true);
        }
        if self.are_runs_damaged {
            return Ok(false);
        }
        match self.merge_slice() {
            // Damage to what repeats the log must stop no leave. The next open says it and can make them anew.
            Err(error @ Error::DamagedView { .. }) => {
                tracing::error!(%error, "stored aggregates are merged no more");
                self.are_runs_damaged = true;
                Ok(false)
            }
            merged => merged,
        }
    }

    fn merge_slice(&mut self) -> Result<bool> {
        let Some(merge) = self.merge.take().or_else(|| self.begin_merge()) else { return Ok(false) };
        match merge.step(&self.storage)? {
            Merged::Slice(slice, rest) => {
                self.merge = Some(rest);
                self.commit(slice)?;
            }
            Merged::Whole(slice, run, replaced) => {
                let runs = &mut self.checkpoint.runs;
                let is_replaced = |number| replaced.contains(&number);
                let position = runs.iter().position(|run| is_replaced(run.number)).unwrap_or(0);
                runs.retain(|run| !is_replaced(run.number));
                runs.insert(position, run);
                self.commit(slice)?;
                self.gone.extend(replaced);
            }
        }
        Ok(true)
    }

    /// A close waits for one commit at most, and not for all that a checkpoint has to store. Each says the checkpoint
    /// too: rows without one are damage, and no number is given twice.
    fn commit(&self, mut slice: WriteBatch) -> Result<()> {
        self.log.check_writable()?;
        let key = checkpoint_key();
        slice.put(Partition::System, &key, &encode_checkpoint(&key, &self.checkpoint));
        Ok(self.storage.commit(slice)?)
    }
}

impl Additions {
    /// Makes room for as many more as `done` of so many entries let expect, early and at once: lists that grow as they
    /// fill are copied again and again.
    fn make_room(&mut self, done: u64, entries: u64) {
        make_room(&mut self.by_aggregate, done, entries);
        make_room(&mut self.contributions, done, entries);
    }

    /// Keeps the memory, but not what is far more than was needed.
    fn clear(&mut self) {
        self.by_aggregate.shrink_to(KEPT_ROOM * self.by_aggregate.len());
        self.contributions.shrink_to(KEPT_ROOM * self.contributions.len());
        self.by_aggregate.clear();
        self.contributions.clear();
    }

    fn is_full(&self) -> bool {
        self.by_aggregate.len() >= MAX_ADDITIONS
    }

    fn note(
        &mut self,
        schema: &Schema,
        interner: &Interner,
        sequence: u64,
        signal: &SignalEntry,
    ) -> Result<()> {
        // One row of the log more than the maximum is far below 2^32.
        let nth = u32::try_from(self.contributions.len()).unwrap_or(u32::MAX);
        let mut last = None;
        for_each_aggregate(schema, interner, sequence, signal, |key, contribution| {
            self.by_aggregate.push((key, nth));
            last = Some(*contribution);
        })?;
        self.contributions.extend(last);
        Ok(())
    }
}

/// Keys as one number, which is compared without a branch for each field.
fn in_order(AggregateKey { item, scope, signal_type }: AggregateKey) -> u128 {
    u128::from(item) << 64 | u128::from(scope.0) << 16 | u128::from(signal_type.0)
}

/// Reserves room in a list which `done` of so many entries have filled so far.
fn make_room<T>(list: &mut Vec<T>, done: u64, entries: u64) {
    // An eighth more, so that it need not be done again.
    let expected = u128::from(entries) * list.len() as u128 / u128::from(done.max(1)) / 8 * 9;
    let expected = usize::try_from(expected).unwrap_or(MAX_ADDITIONS).min(MAX_ADDITIONS);
    if list.capacity() < expected {
        list.reserve_exact(expected - list.len());
    }
}
