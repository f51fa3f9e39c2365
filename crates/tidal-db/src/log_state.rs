//! What is staged and not yet on disk. Everything here happens under the log's lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use tidal_entities::{
    CodecError, Fingerprint, LogEntry, LogRowBuilder, SignalEntry, SourcePosition, WithheldCounts,
    encode_source_position, source_key,
};
use tidal_keys::EncodedKey;
use tidal_storage::{Partition, WriteBatch};

use crate::aggregates::Update;
use crate::canary::{Break, Canary};
use crate::{Durability, Error, Result};

/// A row is closed when it has grown to this: big rows are good to append, bad to look things up in. With one signal
/// more, its key and what the engine adds it stays below 64 KiB; beyond, the engine would give it a page of 128.
const ROW_BYTES: usize = 65_000;

/// Two megabytes: what a commit of fifty thousand signals has, and the next meanwhile.
const MAX_SPARE_ROWS: usize = 32;

/// Where an entry of a source came from; staged together with its effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) source_name: &'a str,
    pub(crate) first_position: u64,
    pub(crate) position: u64,
    pub(crate) digest: [u8; 32],
}

/// The number of the commit that will carry what was staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// What became of a signal in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StagedSignal {
    pub(crate) ticket: Ticket,
    /// How many additions to aggregates wait, those of this signal included.
    pub(crate) additions_waiting: usize,
    /// Whether more is undurable, or was not followed by a checkpoint, than is allowed.
    pub(crate) must_wait: bool,
}

/// How far what is staged may be ahead before whoever stages waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Of the disk. `None` if every caller waits for it anyway.
    pub(crate) max_events: Option<usize>,
    /// Of the stored aggregates. `None` if none are stored.
    pub(crate) recovery_entries: Option<u64>,
}

impl Bounds {
    pub(crate) fn new(durability: Durability, recovery_entries: Option<u64>) -> Self {
        let max_events = match durability {
            Durability::Immediate => None,
            Durability::Batched { max_events, .. } => Some(max_events),
        };
        Self { max_events, recovery_entries }
    }
}

/// What a source has reached: `reached` in memory, `durable_position` on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceState {
    pub(crate) reached: SourcePosition,
    /// What the log and the fingerprint say; `reached` may be ahead of it until the next commit.
    logged: Option<SourcePosition>,
    pub(crate) durable_position: Option<u64>,
}

/// A log row as it is stored: key and value.
pub(crate) type StoredRow = (EncodedKey, Vec<u8>);

/// What an open found the log to be.
#[derive(Debug, Default)]
pub(crate) struct LogEnd {
    pub(crate) last_sequence: u64,
    pub(crate) newest_time_ns: u64,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) checkpoint_floor: u64,
    pub(crate) withheld: WithheldCounts,
    pub(crate) sources: HashMap<String, SourcePosition>,
    pub(crate) canary: Canary,
}

/// What the next commit will hold.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) row: LogRowBuilder,
    pub(crate) closed_rows: Vec<StoredRow>,
    pub(crate) state_rows: WriteBatch,
    pub(crate) moved_sources: Vec<String>,
    pub(crate) events: usize,
    pub(crate) oldest_at: Option<Instant>,
}

impl Pending {
    fn new(row: LogRowBuilder) -> Self {
        Self {
            row,
            closed_rows: Vec::new(),
            state_rows: WriteBatch::new(),
            moved_sources: Vec::new(),
            events: 0,
            oldest_at: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.row.is_empty()
            && self.closed_rows.is_empty()
            && self.state_rows.is_empty()
            && self.moved_sources.is_empty()
    }

    /// Closes the row, and begins the next in the memory of one that is no longer needed.
    fn close_row(&mut self, newest_time_ns: u64, fingerprint: Fingerprint, spare_row: Option<Vec<u8>>) {
        let next = LogRowBuilder::reusing(self.row.next_sequence(), spare_row.unwrap_or_default());
        self.closed_rows.push(std::mem::replace(&mut self.row, next).finish(newest_time_ns, fingerprint));
    }
}

/// The commit under way: its rows stay readable until they are known to be on disk.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) number: u64,
    pub(crate) rows: Arc<Vec<StoredRow>>,
    pub(crate) events: usize,
    pub(crate) last_sequence: u64,
    pub(crate) sources: Vec<(String, u64)>,
}

#[derive(Debug)]
pub(crate) struct LogState {
    pub(crate) pending: Pending,
    /// The memory of rows that are on disk, for the next: to give it back in another thread than it was taken in would
    /// hold up whoever allocates.
    spare_rows: Vec<Vec<u8>>,
    /// Signals that are staged and not yet added to their aggregates.
    pub(crate) updates: Vec<Update>,
    /// How many additions they come to.
    pub(crate) additions: usize,
    pub(crate) withheld: WithheldCounts,
    /// The number that `pending` will have as a commit.
    pub(crate) pending_number: u64,
    pub(crate) in_flight: Option<InFlight>,
    /// Whether a caller who is to commit lets others stage first.
    pub(crate) is_gathering: bool,
    /// So many will be staged for the next commit if all come again whom the last one woke.
    pub(crate) expected_events: usize,
    pub(crate) durable_number: u64,
    pub(crate) durable_sequence: u64,
    /// The first sequence on disk for which a background thread waits.
    pub(crate) awaited_sequence: Option<u64>,
    pub(crate) newest_time_ns: u64,
    /// Of the rows beside the log, as they will be when everything staged is on disk.
    pub(crate) fingerprint: Fingerprint,
    /// Up to here the stored aggregates have followed the log.
    pub(crate) checkpoint_floor: u64,
    pub(crate) sources: HashMap<String, SourceState>,
    pub(crate) canary: Canary,
    pub(crate) failure: Option<Arc<Error>>,
    pub(crate) closed: bool,
    /// Whether whoever wants to stage has to wait.
    pub(crate) paused: bool,
}

impl LogState {
    pub(crate) fn new(end: LogEnd) -> Self {
        let on_disk = |reached: SourcePosition| SourceState {
            reached,
            logged: Some(reached),
            durable_position: Some(reached.position),
        };
        Self {
            pending: Pending::new(LogRowBuilder::new(end.last_sequence + 1)),
            spare_rows: Vec::new(),
            updates: Vec::new(),
            additions: 0,
            withheld: end.withheld,
            pending_number: 1,
            in_flight: None,
            is_gathering: false,
            expected_events: 0,
            durable_number: 0,
            durable_sequence: end.last_sequence,
            awaited_sequence: None,
            newest_time_ns: end.newest_time_ns,
            fingerprint: end.fingerprint,
            checkpoint_floor: end.checkpoint_floor,
            sources: end.sources.into_iter().map(|(name, reached)| (name, on_disk(reached))).collect(),
            canary: end.canary,
            failure: None,
            closed: false,
            paused: false,
        }
    }

    pub(crate) fn writable(&self) -> Result<()> {
        // Of a handle that failed and was closed, there is nothing left to close.
        if self.closed {
            return Err(Error::Closed);
        }
        self.failure.as_ref().map_or(Ok(()), |cause| Err(Error::Latched { cause: Arc::clone(cause) }))
    }

    pub(crate) fn undurable_events(&self) -> usize {
        self.pending.events + self.in_flight.as_ref().map_or(0, |commit| commit.events)
    }

    /// How far the log is ahead of the stored aggregates, in entries.
    pub(crate) fn ahead_of_checkpoint(&self) -> u64 {
        let last_sequence = self.pending.row.next_sequence().saturating_sub(1);
        last_sequence.saturating_sub(self.checkpoint_floor)
    }

    pub(crate) fn is_beyond(&self, bounds: Bounds) -> bool {
        bounds.max_events.is_some_and(|max_events| self.undurable_events() >= max_events)
            || bounds.recovery_entries.is_some_and(|entries| self.ahead_of_checkpoint() > entries)
    }

    /// Closes the pending commit and makes room for the next. Returns the rows beside those of the log.
    pub(crate) fn take_pending(&mut self) -> Result<(WriteBatch, InFlight)> {
        let mut sources = Vec::new();
        for name in std::mem::take(&mut self.pending.moved_sources) {
            let Some(source) = self.sources.get_mut(&name) else { continue };
            if self.canary.is(Break::PositionSkipped) {
                continue;
            }
            let reached = source.reached;
            let SourcePosition { first_position, position, digest } = reached;
            let entry = LogEntry::SourcePosition { source: name.clone(), first_position, position, digest };
            let before = source.logged.replace(reached);
            self.append(&entry)?;
            if let Some(before) = before {
                self.fingerprint.remove_source(&name, &before);
            }
            self.fingerprint.add_source(&name, &reached);
            let key = source_key(&name);
            let value = encode_source_position(&key, &reached);
            self.pending.state_rows.put(Partition::System, &key, &value);
            sources.push((name, position));
        }
        self.close_row();
        let next_sequence = self.pending.row.next_sequence();
        let next_row = std::mem::replace(&mut self.pending.row, LogRowBuilder::new(next_sequence));
        let taken = std::mem::replace(&mut self.pending, Pending::new(next_row));
        let number = self.pending_number;
        self.pending_number += 1;
        let commit = InFlight {
            number,
            rows: Arc::new(taken.closed_rows),
            events: taken.events,
            last_sequence: next_sequence - 1,
            sources,
        };
        Ok((taken.state_rows, commit))
    }

    fn close_row(&mut self) {
        if self.pending.row.is_empty() {
            return;
        }
        self.pending.close_row(self.newest_time_ns, self.fingerprint, self.spare_rows.pop());
    }

    /// Appends an entry, or changes nothing.
    fn append(&mut self, entry: &LogEntry) -> Result<u64> {
        self.row_with_room().push(entry).map_err(unloggable)
    }

    /// A full row is closed only when the next entry comes, with the fingerprint as its last left it.
    fn row_with_room(&mut self) -> &mut LogRowBuilder {
        if self.pending.row.len_bytes() >= ROW_BYTES {
            self.close_row();
        }
        &mut self.pending.row
    }

    /// Publishes the outcome of the commit in flight. After a failure its rows stay readable in memory.
    pub(crate) fn finish_commit(&mut self, outcome: Result<()>) {
        match outcome {
            Ok(()) => {
                let Some(commit) = self.in_flight.take() else { return };
                self.durable_number = commit.number;
                self.durable_sequence = commit.last_sequence;
                self.keep_memory_of(commit.rows);
                for (name, position) in commit.sources {
                    if let Some(source) = self.sources.get_mut(&name) {
                        source.durable_position = Some(position);
                    }
                }
            }
            Err(cause) => self.failure = Some(Arc::new(cause)),
        }
    }

    fn keep_memory_of(&mut self, rows: Arc<Vec<StoredRow>>) {
        // A reader may have them still.
        let Ok(rows) = Arc::try_unwrap(rows) else { return };
        let room = MAX_SPARE_ROWS.saturating_sub(self.spare_rows.len());
        let full = rows.into_iter().map(|(_, row)| row).filter(|row| row.capacity() >= ROW_BYTES);
        self.spare_rows.extend(full.take(room));
    }

    /// Moves a source on, in the commit that is being staged.
    pub(crate) fn advance_source(&mut self, origin: &Origin<'_>) {
        let Origin { source_name, first_position, position, digest } = *origin;
        let known = self.sources.get(source_name).map(|source| source.reached.first_position);
        let first_position = known.unwrap_or(first_position);
        let reached = SourcePosition { first_position, position, digest };
        if let Some(source) = self.sources.get_mut(source_name) {
            source.reached = reached;
        } else {
            self.sources.insert(
                source_name.to_owned(),
                SourceState { reached, logged: None, durable_position: None },
            );
        }
        if !self.pending.moved_sources.iter().any(|name| name == source_name) {
            self.pending.moved_sources.push(source_name.to_owned());
        }
    }
}

/// What a change may do while it is being staged.
#[derive(Debug)]
pub(crate) struct Staging<'a> {
    pub(crate) state: &'a mut LogState,
}

impl Staging<'_> {
    /// Appends an entry that took place at `at_ns`; returns its sequence. Changes nothing if it fails.
    pub(crate) fn append(&mut self, entry: &LogEntry, at_ns: u64) -> Result<u64> {
        let sequence = self.state.append(entry)?;
        self.count_entry(at_ns);
        Ok(sequence)
    }

    /// Appends a signal and publishes it. Changes nothing if it fails.
    pub(crate) fn append_signal(
        &mut self,
        signal: &SignalEntry,
        update: Update,
        additions: usize,
    ) -> Result<()> {
        let canary = self.state.canary;
        if !(signal.withheld.is_some() && canary.is(Break::HistorySkipped)) {
            self.state.row_with_room().push_signal(signal).map_err(unloggable)?;
            self.count_entry(signal.event_time_ns);
        }
        if let Some(reason) = signal.withheld
            && !canary.is(Break::WithheldUncounted)
        {
            self.state.withheld.add(reason);
        }
        self.state.additions += additions;
        self.state.updates.push(update);
        Ok(())
    }

    fn count_entry(&mut self, at_ns: u64) {
        self.see_time(at_ns);
        self.state.pending.events += 1;
    }

    /// Moves the newest time without an entry.
    pub(crate) fn see_time(&mut self, at_ns: u64) {
        self.state.newest_time_ns = self.state.newest_time_ns.max(at_ns);
    }

    /// The fingerprint of the rows beside the log, to follow what is put and deleted.
    pub(crate) fn fingerprint(&mut self) -> &mut Fingerprint {
        &mut self.state.fingerprint
    }

    /// Puts a row of derived state into the same commit.
    pub(crate) fn put(&mut self, partition: Partition, key: &[u8], value: &[u8]) {
        self.state.pending.state_rows.put(partition, key, value);
    }

    /// Removes a row of derived state in the same commit.
    pub(crate) fn delete(&mut self, partition: Partition, key: &[u8]) {
        self.state.pending.state_rows.delete(partition, key);
    }
}

fn unloggable(cause: CodecError) -> Error {
    Error::Unloggable { what: "an entry of the log cannot be laid out", cause }
}
