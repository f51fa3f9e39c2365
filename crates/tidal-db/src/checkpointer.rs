//! Stored aggregates follow the log, in slices beside it.
//!
//! A checkpoint reads what the log says after the last one and adds it to the stored aggregates.
//! It never looks at the aggregates in memory, so no signal waits for it, and what it stores is by
//! construction what the log says up to the aggregate's mark. Each slice is a commit of its own,
//! short enough that a leave behind it waits for milliseconds. When the process ends between two
//! slices, some aggregates are at the target already; the next open reads their marks.

use std::cell::RefCell;
use std::sync::Arc;

use tidal_entities::{
    AggregateState, Checkpoint, Contribution, LogEntry, Schema, SignalEntry, aggregate_key, checkpoint_key,
    decode_aggregate, encode_aggregate, encode_checkpoint,
};
use tidal_storage::{Partition, Storage, WriteBatch};

use crate::aggregates::AggregateKey;
use crate::canary::{Break, Canary};
use crate::log_replay::for_each_aggregate;
use crate::log_rows::visit_entries;
use crate::log_writer::LogWriter;
use crate::scopes::Interner;
use crate::sync::{Mutex, lock};
use crate::{Error, Result};

/// Aggregates a commit: some milliseconds of the one writer there is.
const SLICE_AGGREGATES: usize = 4_000;

/// Bytes of rows after which a commit is made as well, since a row with windows is up to a hundred times as long.
const SLICE_BYTES: usize = 1 << 20;

/// Additions a checkpoint, and at most those of one row of the log more: bounds its memory. 24 bytes each and 32 for
/// each signal are 224 megabytes, if no signal is forwarded. The more it takes at once, the fewer times it stores an
/// aggregate that changes often.
const MAX_ADDITIONS: usize = 4_000_000;

/// What the log adds, signal by signal: kept as a list and then sorted, since a map of sums would cost a look into
/// memory that has to be fetched for each of them.
#[derive(Debug, Default)]
struct Additions {
    contributions: Vec<Contribution>,
    /// Which of the contributions goes to which aggregate.
    by_aggregate: Vec<(AggregateKey, u32)>,
}

/// Brings the stored aggregates after the log. There is one for each database on disk.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    pub(crate) storage: Storage,
    pub(crate) schema: Arc<Schema>,
    pub(crate) interner: Arc<Interner>,
    pub(crate) log: Arc<LogWriter>,
    pub(crate) checkpoint: Checkpoint,
    /// Held while a checkpoint is made: whoever has it sees the stored aggregates between two.
    pub(crate) turn: Arc<Mutex<()>>,
    /// A checkpoint begins when the log is so many entries ahead.
    pub(crate) interval: u64,
    pub(crate) canary: Canary,
}

impl Checkpointer {
    /// Makes checkpoints until the database is closed or a commit fails. Runs on its own thread.
    pub(crate) fn run(mut self) {
        while let Some(durable_sequence) = self.log.wait_for_log(self.checkpoint.floor, self.interval) {
            let turn = Arc::clone(&self.turn);
            let _held = lock(&turn);
            match self.advance(durable_sequence) {
                Ok(()) => self.log.checkpointed(self.checkpoint.floor),
                // The next open goes on with what is left.
                Err(Error::Closed | Error::Latched { .. }) => return,
                Err(error) => {
                    self.log.fail(error);
                    return;
                }
            }
        }
    }

    /// Makes one checkpoint, or goes on with the one that was under way.
    fn advance(&mut self, durable_sequence: u64) -> Result<()> {
        let is_resumed = self.checkpoint.target > self.checkpoint.floor;
        let goal = if is_resumed { self.checkpoint.target } else { durable_sequence };
        let mut withheld = self.checkpoint.withheld;
        let additions = RefCell::new(Additions::default());
        let reached = visit_entries(
            &self.storage,
            self.checkpoint.floor,
            |sequence, entry| {
                let LogEntry::Signal(signal) = entry else { return Ok(()) };
                if let Some(reason) = signal.withheld {
                    withheld.add(reason);
                }
                additions.borrow_mut().note(&self.schema, &self.interner, sequence, &signal)
            },
            |sequence| {
                let is_full = !is_resumed && additions.borrow().is_full();
                sequence >= goal || is_full || self.log.check_writable().is_err()
            },
        )?;
        self.log.check_writable()?;
        if is_resumed && reached != goal {
            return Err(Error::damaged(format!(
                "a checkpoint was under way to sequence {goal}, but no row of the log ends there"
            )));
        }
        self.checkpoint.target = reached;
        self.store(additions.into_inner())?;
        self.canary.strike(Break::CheckpointPanics);
        self.checkpoint = Checkpoint { floor: reached, withheld, ..self.checkpoint };
        let mut last = WriteBatch::new();
        put_checkpoint(&mut last, &self.checkpoint);
        Ok(self.storage.commit(last)?)
    }

    /// Stores the aggregates in slices; each says that the checkpoint is on its way.
    fn store(&mut self, additions: Additions) -> Result<()> {
        let Additions { contributions, mut by_aggregate } = additions;
        by_aggregate.sort_unstable();
        let mut aggregates = by_aggregate.chunk_by(|a, b| a.0 == b.0).peekable();
        while aggregates.peek().is_some() {
            let several: Vec<_> = aggregates.by_ref().take(SLICE_AGGREGATES).collect();
            self.store_slices(&several, &contributions)?;
        }
        Ok(())
    }

    /// Adds to stored aggregates what they do not hold yet.
    fn store_slices(
        &mut self,
        aggregates: &[&[(AggregateKey, u32)]],
        contributions: &[Contribution],
    ) -> Result<()> {
        let target = self.checkpoint.target;
        let keys: Vec<_> = aggregates
            .iter()
            .filter_map(|additions| additions.first())
            .map(|(key, _)| aggregate_key(key.item, key.scope, key.signal_type))
            .collect();
        let stored = self.storage.items_engine().get_each(&keys)?;
        let mut slice = WriteBatch::new();
        let mut slice_bytes = 0;
        for ((key, stored), additions) in keys.iter().zip(stored).zip(aggregates) {
            let mut state = AggregateState::default();
            if let Some(value) = &stored {
                let (mark, found) = decode_aggregate(key, value).map_err(|cause| {
                    Error::damaged_view("a stored aggregate does not decode", Some(cause))
                })?;
                // Stored by the same checkpoint, before it was interrupted. Marks between floor and
                // target there are none.
                if mark == target {
                    continue;
                }
                self.checkpoint.aggregates.remove_aggregate(key, value);
                state = found;
            }
            let contributions = additions.iter().filter_map(|(_, nth)| contributions.get(*nth as usize));
            contributions.for_each(|contribution| state.add_contribution(contribution));
            let value = encode_aggregate(key, target, &state);
            self.checkpoint.aggregates.add_aggregate(key, &value);
            slice.put(Partition::Items, key, &value);
            slice_bytes += value.len();
            if slice_bytes >= SLICE_BYTES {
                self.commit_slice(std::mem::take(&mut slice))?;
                slice_bytes = 0;
            }
        }
        if slice.is_empty() { Ok(()) } else { self.commit_slice(slice) }
    }

    /// A close waits for one commit at most, and not for all that a checkpoint has to store.
    fn commit_slice(&self, mut slice: WriteBatch) -> Result<()> {
        self.log.check_writable()?;
        put_checkpoint(&mut slice, &self.checkpoint);
        Ok(self.storage.commit(slice)?)
    }
}

impl Additions {
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

fn put_checkpoint(batch: &mut WriteBatch, checkpoint: &Checkpoint) {
    let key = checkpoint_key();
    batch.put(Partition::System, &key, &encode_checkpoint(&key, checkpoint));
}
