//! The one ordered log: entries get their sequence here, and shared commits carry them to disk.
//!
//! Lock order: gate shard, profile shard, **log state**, interned scopes. Nothing is called from
//! under the log state but the interner; no lock is held across a commit.
//!
//! A commit takes along everything staged before it, so what survives a crash is a prefix of the
//! order in which entries were staged.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidal_entities::{LogEntry, LogRowBuilder, SourcePosition, encode_source_position, source_key};
use tidal_keys::EncodedKey;
use tidal_storage::{Partition, Storage, WriteBatch};

use crate::canary::{Break, Canary};
use crate::sync::lock;
use crate::{Error, Result};

/// A row is closed when it has grown to this: big rows are good to append, bad to look things up in.
const ROW_BYTES: usize = 64 * 1024;

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
pub(crate) struct Ticket(u64);

/// What a source has reached: `reached` in memory, `durable_position` on disk.
#[derive(Clone, Copy, Debug)]
struct SourceState {
    reached: SourcePosition,
    durable_position: Option<u64>,
}

/// A log row as it is stored: key and value.
type StoredRow = (EncodedKey, Vec<u8>);

/// What the next commit will hold.
#[derive(Debug)]
struct Pending {
    row: LogRowBuilder,
    closed_rows: Vec<StoredRow>,
    state_rows: WriteBatch,
    moved_sources: Vec<String>,
    events: usize,
    oldest_at: Option<Instant>,
}

impl Pending {
    fn new(next_sequence: u64) -> Self {
        Self {
            row: LogRowBuilder::new(next_sequence),
            closed_rows: Vec::new(),
            state_rows: WriteBatch::new(),
            moved_sources: Vec::new(),
            events: 0,
            oldest_at: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.row.is_empty()
            && self.closed_rows.is_empty()
            && self.state_rows.is_empty()
            && self.moved_sources.is_empty()
    }

    /// Appends an entry, or changes nothing.
    fn append(&mut self, entry: &LogEntry, newest_time_ns: u64) -> Result<u64> {
        let sequence = self
            .row
            .push(entry)
            .map_err(|cause| Error::Unloggable { what: "an entry of the log cannot be laid out", cause })?;
        if self.row.len_bytes() >= ROW_BYTES {
            self.close_row(newest_time_ns);
        }
        Ok(sequence)
    }

    fn close_row(&mut self, newest_time_ns: u64) {
        if self.row.is_empty() {
            return;
        }
        let next = LogRowBuilder::new(self.row.next_sequence());
        self.closed_rows.push(std::mem::replace(&mut self.row, next).finish(newest_time_ns));
    }
}

/// The commit under way: its rows stay readable until they are known to be on disk.
#[derive(Debug)]
struct InFlight {
    number: u64,
    rows: Arc<Vec<StoredRow>>,
    events: usize,
    last_sequence: u64,
    sources: Vec<(String, u64)>,
}

#[derive(Debug)]
struct LogState {
    pending: Pending,
    /// The number that `pending` will have as a commit.
    pending_number: u64,
    in_flight: Option<InFlight>,
    durable_number: u64,
    durable_sequence: u64,
    newest_time_ns: u64,
    sources: HashMap<String, SourceState>,
    canary: Canary,
    failure: Option<Arc<Error>>,
    closed: bool,
}

impl LogState {
    fn writable(&self) -> Result<()> {
        if let Some(cause) = &self.failure {
            return Err(Error::Latched { cause: Arc::clone(cause) });
        }
        if self.closed { Err(Error::Closed) } else { Ok(()) }
    }

    fn undurable_events(&self) -> usize {
        self.pending.events + self.in_flight.as_ref().map_or(0, |commit| commit.events)
    }

    /// Closes the pending commit and makes room for the next.
    fn take_pending(&mut self) -> Result<(WriteBatch, InFlight)> {
        let mut sources = Vec::new();
        for name in std::mem::take(&mut self.pending.moved_sources) {
            let Some(source) = self.sources.get(&name) else { continue };
            if self.canary.is(Break::PositionSkipped) {
                continue;
            }
            let SourcePosition { first_position, position, digest } = source.reached;
            let entry = LogEntry::SourcePosition { source: name.clone(), first_position, position, digest };
            self.pending.append(&entry, self.newest_time_ns)?;
            let key = source_key(&name);
            let value = encode_source_position(&key, &source.reached);
            self.pending.state_rows.put(Partition::System, &key, &value);
            sources.push((name, source.reached.position));
        }
        self.pending.close_row(self.newest_time_ns);
        let next_sequence = self.pending.row.next_sequence();
        let taken = std::mem::replace(&mut self.pending, Pending::new(next_sequence));
        let mut batch = taken.state_rows;
        for (key, value) in &taken.closed_rows {
            batch.put(Partition::System, key, value);
        }
        let number = self.pending_number;
        self.pending_number += 1;
        let commit = InFlight {
            number,
            rows: Arc::new(taken.closed_rows),
            events: taken.events,
            last_sequence: next_sequence - 1,
            sources,
        };
        Ok((batch, commit))
    }
}

/// What an open found the log to be.
#[derive(Debug, Default)]
pub(crate) struct LogEnd {
    pub(crate) last_sequence: u64,
    pub(crate) newest_time_ns: u64,
    pub(crate) sources: HashMap<String, SourcePosition>,
    pub(crate) canary: Canary,
}

/// Entries that are not yet known to be on disk, as rows, and the sequence after which they begin.
#[derive(Debug)]
pub(crate) struct UndurableRows {
    pub(crate) durable_sequence: u64,
    pub(crate) in_flight: Option<Arc<Vec<StoredRow>>>,
    pub(crate) pending: Vec<StoredRow>,
}

/// Assigns sequences and commits. See the module's head for the order of locks.
#[derive(Debug)]
pub(crate) struct LogWriter {
    storage: Storage,
    state: Mutex<LogState>,
    /// Told when a commit ended.
    committed: Condvar,
    /// Told when there is something for the flush thread to do.
    work: Condvar,
}

impl LogWriter {
    pub(crate) fn new(storage: Storage, end: LogEnd) -> Self {
        let sources = end
            .sources
            .into_iter()
            .map(|(name, reached)| (name, SourceState { reached, durable_position: Some(reached.position) }))
            .collect();
        Self {
            storage,
            state: Mutex::new(LogState {
                pending: Pending::new(end.last_sequence + 1),
                pending_number: 1,
                in_flight: None,
                durable_number: 0,
                durable_sequence: end.last_sequence,
                newest_time_ns: end.newest_time_ns,
                sources,
                canary: end.canary,
                failure: None,
                closed: false,
            }),
            committed: Condvar::new(),
            work: Condvar::new(),
        }
    }

    /// Refuses when nothing can be written any more.
    pub(crate) fn check_writable(&self) -> Result<()> {
        lock(&self.state).writable()
    }

    /// Refuses once the database was closed; a failed commit is no reason not to read.
    pub(crate) fn check_open(&self) -> Result<()> {
        if lock(&self.state).closed { Err(Error::Closed) } else { Ok(()) }
    }

    /// Stages what `change` appends and puts, all of it into one commit, and `origin` with it.
    /// `change` appends first: if that fails, nothing is staged.
    pub(crate) fn stage<R>(
        &self,
        origin: Option<&Origin<'_>>,
        change: impl FnOnce(&mut Staging<'_>) -> Result<R>,
    ) -> Result<(R, Ticket)> {
        let mut state = lock(&self.state);
        state.writable()?;
        let result = change(&mut Staging { state: &mut state })?;
        if let Some(origin) = origin {
            advance_source(&mut state, origin);
        }
        if state.pending.oldest_at.is_none() && !state.pending.is_empty() {
            state.pending.oldest_at = Some(Instant::now());
            self.work.notify_one();
        }
        Ok((result, Ticket(state.pending_number)))
    }

    /// Waits until the commit `ticket` is on disk; commits itself if nobody else is at it.
    pub(crate) fn wait_durable(&self, ticket: Ticket) -> Result<()> {
        self.commit_through(lock(&self.state), ticket)
    }

    /// Brings everything staged so far to disk.
    pub(crate) fn flush(&self) -> Result<()> {
        let state = lock(&self.state);
        state.writable()?;
        let ticket = if state.pending.is_empty() {
            Ticket(state.pending_number - 1)
        } else {
            Ticket(state.pending_number)
        };
        self.commit_through(state, ticket)
    }

    fn commit_through<'a>(&'a self, mut state: MutexGuard<'a, LogState>, ticket: Ticket) -> Result<()> {
        loop {
            if state.durable_number >= ticket.0 {
                return Ok(());
            }
            if let Some(cause) = &state.failure {
                return Err(Error::Latched { cause: Arc::clone(cause) });
            }
            if state.in_flight.is_some() {
                state = self.committed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            match state.take_pending() {
                Ok((batch, commit)) => {
                    state.in_flight = Some(commit);
                    drop(state);
                    let outcome = self.storage.commit(batch);
                    state = lock(&self.state);
                    finish_commit(&mut state, outcome.map_err(Error::from));
                }
                Err(cause) => state.failure = Some(Arc::new(cause)),
            }
            self.committed.notify_all();
        }
    }

    /// With batched durability: waits for the disk when `max_events` events are not there yet.
    pub(crate) fn keep_within(&self, max_events: usize) -> Result<()> {
        let state = lock(&self.state);
        if state.undurable_events() < max_events {
            // Start early, so that callers seldom have to wait.
            if state.pending.events >= max_events.div_ceil(2) {
                self.work.notify_one();
            }
            return Ok(());
        }
        let ticket = Ticket(state.pending_number);
        self.commit_through(state, ticket)
    }

    /// Commits whatever is older than `max_delay` or more than half of `max_events`, until the
    /// database is closed or a commit fails. Runs on the flush thread.
    pub(crate) fn run_flusher(&self, max_events: usize, max_delay: Duration) {
        let mut state = lock(&self.state);
        while !state.closed && state.failure.is_none() {
            let due_at = state.pending.oldest_at.and_then(|oldest| oldest.checked_add(max_delay));
            let full = state.pending.events >= max_events.div_ceil(2);
            let now = Instant::now();
            state = match due_at {
                _ if full => self.flush_from(state),
                Some(due_at) if due_at <= now => self.flush_from(state),
                Some(due_at) => {
                    self.work.wait_timeout(state, due_at - now).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn flush_from<'a>(&'a self, state: MutexGuard<'a, LogState>) -> MutexGuard<'a, LogState> {
        let ticket = Ticket(state.pending_number);
        // A failure is latched in the state: every later call says so, and the thread ends.
        if let Err(error) = self.commit_through(state, ticket) {
            tracing::error!(%error, "a background flush failed; nothing more is written");
        }
        lock(&self.state)
    }

    /// Brings everything staged so far to disk, and refuses what comes later.
    pub(crate) fn flush_and_close(&self) -> Result<()> {
        let mut state = lock(&self.state);
        let writable = state.writable();
        state.closed = true;
        let ticket = Ticket(state.pending_number);
        let flushed = writable.and_then(|()| self.commit_through(state, ticket));
        self.work.notify_all();
        flushed
    }

    /// The latest time of any entry or applied event, in ns.
    pub(crate) fn newest_time_ns(&self) -> u64 {
        lock(&self.state).newest_time_ns
    }

    /// The last sequence that is on disk.
    pub(crate) fn durable_sequence(&self) -> u64 {
        lock(&self.state).durable_sequence
    }

    /// How far `source_name` was applied, in memory.
    pub(crate) fn reached(&self, source_name: &str) -> Option<SourcePosition> {
        lock(&self.state).sources.get(source_name).map(|source| source.reached)
    }

    /// How far `source_name` was applied, on disk.
    pub(crate) fn durable_position(&self, source_name: &str) -> Option<u64> {
        lock(&self.state).sources.get(source_name).and_then(|source| source.durable_position)
    }

    /// Moves the newest time without an entry; stored with the next commit.
    pub(crate) fn see_time(&self, at_ns: u64) {
        let mut state = lock(&self.state);
        state.newest_time_ns = state.newest_time_ns.max(at_ns);
    }

    /// The rows that are not yet known to be on disk.
    pub(crate) fn undurable_rows(&self) -> UndurableRows {
        let state = lock(&self.state);
        let mut pending = state.pending.closed_rows.clone();
        if !state.pending.row.is_empty() {
            pending.push(state.pending.row.clone().finish(state.newest_time_ns));
        }
        UndurableRows {
            durable_sequence: state.durable_sequence,
            in_flight: state.in_flight.as_ref().map(|commit| Arc::clone(&commit.rows)),
            pending,
        }
    }
}

/// Publishes the outcome of the commit in flight. After a failure its rows stay readable in memory.
fn finish_commit(state: &mut LogState, outcome: Result<()>) {
    match outcome {
        Ok(()) => {
            let Some(commit) = state.in_flight.take() else { return };
            state.durable_number = commit.number;
            state.durable_sequence = commit.last_sequence;
            for (name, position) in commit.sources {
                if let Some(source) = state.sources.get_mut(&name) {
                    source.durable_position = Some(position);
                }
            }
        }
        Err(cause) => state.failure = Some(Arc::new(cause)),
    }
}

fn advance_source(state: &mut LogState, origin: &Origin<'_>) {
    let reached =
        |first_position| SourcePosition { first_position, position: origin.position, digest: origin.digest };
    match state.sources.get_mut(origin.source_name) {
        Some(source) => source.reached = reached(source.reached.first_position),
        None => {
            let source = SourceState { reached: reached(origin.first_position), durable_position: None };
            state.sources.insert(origin.source_name.to_owned(), source);
        }
    }
    if !state.pending.moved_sources.iter().any(|name| name == origin.source_name) {
        state.pending.moved_sources.push(origin.source_name.to_owned());
    }
}

/// What a change may do while it is being staged.
#[derive(Debug)]
pub(crate) struct Staging<'a> {
    state: &'a mut LogState,
}

impl Staging<'_> {
    /// Appends an entry that took place at `at_ns`; returns its sequence. Changes nothing if it fails.
    pub(crate) fn append(&mut self, entry: &LogEntry, at_ns: u64) -> Result<u64> {
        let newest_time_ns = self.state.newest_time_ns.max(at_ns);
        let sequence = self.state.pending.append(entry, newest_time_ns)?;
        self.state.newest_time_ns = newest_time_ns;
        self.state.pending.events += 1;
        Ok(sequence)
    }

    /// Moves the newest time without an entry.
    pub(crate) fn see_time(&mut self, at_ns: u64) {
        self.state.newest_time_ns = self.state.newest_time_ns.max(at_ns);
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
