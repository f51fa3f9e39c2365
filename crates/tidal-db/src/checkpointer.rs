//! Stored aggregates follow the log, in slices beside it.
//!
//! A checkpoint reads what the log says after the last one and adds it to the stored aggregates.
//! It never looks at the aggregates in memory, so no signal waits for it, and what it stores is by
//! construction what the log says up to the aggregate's mark. Each slice is a commit of its own,
//! short enough that a leave behind it waits for milliseconds. When the process ends between two
//! slices, some aggregates are at the target already; the next open reads their marks.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tidal_entities::{
    AggregateState, Checkpoint, LogEntry, Schema, aggregate_key, checkpoint_key, decode_aggregate,
    encode_aggregate, encode_checkpoint,
};
use tidal_storage::{Partition, Storage, WriteBatch};

use crate::aggregates::AggregateKey;
use crate::fast_map::FastHasher;
use crate::log_replay::for_each_aggregate;
use crate::log_rows::visit_entries;
use crate::log_writer::LogWriter;
use crate::scopes::Interner;
use crate::sync::lock;
use crate::{Error, Result};

/// Aggregates a commit: a few milliseconds of the one writer there is.
const SLICE_AGGREGATES: usize = 1_000;

/// Bytes of rows after which a commit is made as well, since a row with windows is up to a hundred times as long.
const SLICE_BYTES: usize = 1 << 20;

/// Aggregates a checkpoint, at most those of one row of the log more: bounds its memory to some hundred
/// megabytes. The more it takes at once, the fewer times it stores one that changes often.
const MAX_AGGREGATES: usize = 1_000_000;

/// So many buckets of windows take the memory of an aggregate.
const BUCKETS_PER_AGGREGATE: usize = 4;

/// What the log adds to each aggregate.
type Additions = HashMap<AggregateKey, AggregateState, FastHasher>;

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
}

impl Checkpointer {
    /// Makes checkpoints until the database is closed or a commit fails. Runs on its own thread.
    pub(crate) fn run(mut self) {
        while let Some(durable_sequence) = self.log.wait_for_log(self.checkpoint.floor, self.interval) {
            let turn = Arc::clone(&self.turn);
            let _held = lock(&turn);
            match self.advance(durable_sequence) {
                Ok(()) => self.log.checkpointed(self.checkpoint.floor),
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
        let mut additions = Additions::default();
        let additions_len = Cell::new(0_usize);
        let mut buckets_len = 0_usize;
        let reached = visit_entries(
            &self.storage,
            self.checkpoint.floor,
            |sequence, entry| {
                let LogEntry::Signal(signal) = entry else { return Ok(()) };
                if let Some(reason) = signal.withheld {
                    withheld.add(reason);
                }
                for_each_aggregate(&self.schema, &self.interner, sequence, &signal, |key, contribution| {
                    let state = additions.entry(key).or_default();
                    buckets_len -= state.buckets_len();
                    state.add_contribution(contribution);
                    buckets_len += state.buckets_len();
                    additions_len.set(additions.len() + buckets_len / BUCKETS_PER_AGGREGATE);
                })
            },
            |sequence| sequence >= goal || (!is_resumed && additions_len.get() >= MAX_AGGREGATES),
        )?;
        if is_resumed && reached != goal {
            return Err(Error::damaged(format!(
                "a checkpoint was under way to sequence {goal}, but no row of the log ends there"
            )));
        }
        self.checkpoint.target = reached;
        self.store(&additions)?;
        self.checkpoint = Checkpoint { floor: reached, withheld, ..self.checkpoint };
        let mut last = WriteBatch::new();
        put_checkpoint(&mut last, &self.checkpoint);
        Ok(self.storage.commit(last)?)
    }

    /// Stores the aggregates in slices; each says that the checkpoint is on its way.
    fn store(&mut self, additions: &Additions) -> Result<()> {
        let mut all: Vec<_> = additions.iter().collect();
        all.sort_unstable_by_key(|(key, _)| **key);
        let mut slice = WriteBatch::new();
        let mut slice_bytes = 0;
        for (key, addition) in all {
            slice_bytes += self.add_to_stored(&mut slice, *key, addition)?;
            if slice.len() >= SLICE_AGGREGATES || slice_bytes >= SLICE_BYTES {
                self.commit_slice(std::mem::take(&mut slice))?;
                slice_bytes = 0;
            }
        }
        if slice.is_empty() { Ok(()) } else { self.commit_slice(slice) }
    }

    /// Adds to one stored aggregate what it does not hold yet. Returns how long the row is that is to be written.
    fn add_to_stored(
        &mut self,
        slice: &mut WriteBatch,
        key: AggregateKey,
        addition: &AggregateState,
    ) -> Result<usize> {
        let target = self.checkpoint.target;
        let stored_key = aggregate_key(key.item, key.scope, key.signal_type);
        let stored = self.storage.items_engine().get(&stored_key)?;
        let mut state = AggregateState::default();
        if let Some(value) = &stored {
            let (mark, found) = decode_aggregate(&stored_key, value)
                .map_err(|cause| Error::undecodable("a stored aggregate does not decode", cause))?;
            // Stored by the same checkpoint, before it was interrupted. Marks between floor and
            // target there are none.
            if mark == target {
                return Ok(0);
            }
            self.checkpoint.aggregates.remove_aggregate(&stored_key, value);
            state = found;
        }
        state.merge(addition);
        let value = encode_aggregate(&stored_key, target, &state);
        self.checkpoint.aggregates.add_aggregate(&stored_key, &value);
        slice.put(Partition::Items, &stored_key, &value);
        Ok(value.len())
    }

    fn commit_slice(&self, mut slice: WriteBatch) -> Result<()> {
        put_checkpoint(&mut slice, &self.checkpoint);
        Ok(self.storage.commit(slice)?)
    }
}

fn put_checkpoint(batch: &mut WriteBatch, checkpoint: &Checkpoint) {
    let key = checkpoint_key();
    batch.put(Partition::System, &key, &encode_checkpoint(&key, checkpoint));
}
