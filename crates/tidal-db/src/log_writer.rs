//! The one ordered log: entries get their sequence here, and shared commits carry them to disk.
//!
//! Nothing is called from under the log's lock but the interner and `commit_waits`, and it is not held across a commit;
//! the order of locks stands at the head of `db.rs`.
//!
//! A commit takes along everything staged before it, so what survives a crash is a prefix of the
//! order in which entries were staged.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tidal_entities::{SignalEntry, SourcePosition, WithheldCounts};
use tidal_storage::{Partition, Storage, WriteBatch};

use crate::aggregates::Update;
use crate::canary::Break;
use crate::commit_waits::{CommitWaits, Woken};
use crate::log_state::{Bounds, LogEnd, LogState, Origin, StagedSignal, Staging, StoredRow, Ticket};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, yield_within};
use crate::{Error, Result};

/// How often a caller who gathers looks in vain for more: some microseconds, where a commit is a hundred or more.
const MAX_IDLE_YIELDS: u32 = 32;

/// How long they gather at most: on a busy machine whoever yields is not back at once.
const MAX_GATHERING: Duration = Duration::from_micros(500);

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
    /// Who waits for a commit to end.
    commit_waits: CommitWaits,
    /// Told when a commit ended with which the log is as long as was waited for.
    grown: Condvar,
    /// Told when there is something for the flush thread to do.
    work: Condvar,
    /// Told when the stored aggregates have followed the log.
    checkpointed: Condvar,
    /// Told when a pause is over.
    resumed: Condvar,
    bounds: Bounds,
}

impl LogWriter {
    pub(crate) fn new(storage: Storage, end: LogEnd, bounds: Bounds) -> Self {
        Self {
            storage,
            state: Mutex::new(LogState::new(end)),
            commit_waits: CommitWaits::new(),
            grown: Condvar::new(),
            work: Condvar::new(),
            checkpointed: Condvar::new(),
            resumed: Condvar::new(),
            bounds,
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
        while state.paused && !state.closed {
            state = self.resumed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.writable()?;
        let before = state.pending.events;
        let result = change(&mut Staging { state: &mut state })?;
        // Started early, so that callers seldom have to wait; said once, since it costs a call of the system.
        let is_half = |max_events| (before + 1..=state.pending.events).contains(&half_of(max_events));
        if self.bounds.max_events.is_some_and(is_half) {
            self.work.notify_one();
        }
        if let Some(origin) = origin {
            state.advance_source(origin);
        }
        if state.pending.oldest_at.is_none() && !state.pending.is_empty() {
            state.pending.oldest_at = Some(Instant::now());
            self.work.notify_one();
        }
        Ok((result, Ticket(state.pending_number)))
    }

    /// Stages a signal, and publishes it at the same moment; so many aggregates take it.
    pub(crate) fn stage_signal(
        &self,
        origin: Option<&Origin<'_>>,
        entry: &SignalEntry,
        update: Update,
        additions: usize,
    ) -> Result<StagedSignal> {
        let ((additions_waiting, must_wait), ticket) = self.stage(origin, |staging| {
            staging.append_signal(entry, update, additions)?;
            let state = &*staging.state;
            Ok((state.additions, state.is_beyond(self.bounds)))
        })?;
        Ok(StagedSignal { ticket, additions_waiting, must_wait })
    }

    /// Takes the updates that wait, in exchange for a vector without any.
    pub(crate) fn take_updates(&self, emptied: &mut Vec<Update>) {
        let mut state = lock(&self.state);
        std::mem::swap(&mut state.updates, emptied);
        state.additions = 0;
    }

    /// How many signals were withheld, by reason.
    pub(crate) fn withheld(&self) -> WithheldCounts {
        lock(&self.state).withheld
    }

    /// Lets nothing new be staged. Whoever stages waits for the end of the pause, with the locks they
    /// hold: nothing may be locked in a pause that is held for staging.
    pub(crate) fn pause(&self) -> Pause<'_> {
        let mut state = lock(&self.state);
        while state.paused {
            state = self.resumed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.paused = true;
        Pause { log: self }
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
            if state.in_flight.is_some() || state.is_gathering {
                match self.commit_waits.wait(state, ticket.0) {
                    Woken::Durable => return Ok(()),
                    Woken::AskLog => state = lock(&self.state),
                }
                continue;
            }
            if state.expected_events > state.pending.events {
                state = self.gather(state);
                if state.failure.is_some() {
                    continue;
                }
            }
            match state.take_pending() {
                Ok((mut batch, commit)) => {
                    let rows = Arc::clone(&commit.rows);
                    state.in_flight = Some(commit);
                    drop(state);
                    for (key, row) in rows.iter() {
                        batch.put(Partition::System, key, row);
                    }
                    drop(rows);
                    let outcome = self.commit_contained(batch);
                    state = lock(&self.state);
                    state.finish_commit(outcome);
                }
                Err(cause) => state.failure = Some(Arc::new(cause)),
            }
            let is_durable = state.durable_number >= ticket.0;
            self.tell_of_end(state);
            if is_durable {
                return Ok(());
            }
            state = lock(&self.state);
        }
    }

    /// Lets those whom the last commit woke stage what they have next, so that one commit takes all of it. Whoever
    /// stages meanwhile waits for the caller.
    fn gather<'a>(&'a self, mut state: MutexGuard<'a, LogState>) -> MutexGuard<'a, LogState> {
        let began_at = Instant::now();
        state.is_gathering = true;
        let mut idle_yields = 0;
        while state.pending.events < state.expected_events && idle_yields < MAX_IDLE_YIELDS {
            let before = state.pending.events;
            drop(state);
            let is_in_time = yield_within(began_at, MAX_GATHERING);
            state = lock(&self.state);
            if !is_in_time {
                break;
            }
            idle_yields = if state.pending.events == before { idle_yields + 1 } else { 0 };
        }
        state.is_gathering = false;
        state
    }

    /// Wakes whom the end of a commit concerns, without the log's lock, into which they would run.
    fn tell_of_end(&self, mut state: MutexGuard<'_, LogState>) {
        if state.failure.is_some() {
            drop(state);
            self.tell_of_failure();
            return;
        }
        let notices = self.commit_waits.say_durable(state.durable_number);
        // Who made the commit may come again as well. Of one caller alone nobody expects more.
        state.expected_events =
            if notices.has_company() { state.pending.events + notices.callers + 1 } else { 0 };
        let has_grown = state.awaited_sequence.is_some_and(|awaited| state.durable_sequence >= awaited);
        if has_grown {
            state.awaited_sequence = None;
        }
        drop(state);
        self.commit_waits.send(notices);
        if has_grown {
            self.grown.notify_all();
        }
    }

    /// Nothing that anybody waits for will come.
    fn tell_of_failure(&self) {
        self.commit_waits.fail();
        self.grown.notify_all();
        self.work.notify_all();
        self.checkpointed.notify_all();
    }

    /// Commits, and answers also where the store panics: everybody waits for this answer.
    fn commit_contained(&self, batch: WriteBatch) -> Result<()> {
        match catch_unwind(AssertUnwindSafe(|| self.storage.commit(batch))) {
            Ok(outcome) => Ok(outcome?),
            Err(payload) => {
                // What was thrown may throw again when it is dropped.
                std::mem::forget(payload);
                Err(Error::ThreadPanicked)
            }
        }
    }

    /// Waits until the log on disk is `interval` entries ahead of `floor`, and returns its last
    /// sequence; `None` once the database is closed or a commit failed.
    pub(crate) fn wait_for_log(&self, floor: u64, interval: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        loop {
            if state.closed || state.failure.is_some() {
                return None;
            }
            if state.durable_sequence.saturating_sub(floor) >= interval {
                return Some(state.durable_sequence);
            }
            let needed = floor.saturating_add(interval);
            state.awaited_sequence =
                Some(state.awaited_sequence.map_or(needed, |awaited| awaited.min(needed)));
            state = self.grown.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The stored aggregates have followed the log up to `floor`.
    pub(crate) fn checkpointed(&self, floor: u64) {
        lock(&self.state).checkpoint_floor = floor;
        self.checkpointed.notify_all();
    }

    /// Something that must be written could not be: nothing is written any more, and everybody who
    /// waits is told.
    pub(crate) fn fail(&self, cause: Error) {
        tracing::error!(error = %cause, "a background thread failed; nothing more is written");
        let mut state = lock(&self.state);
        state.failure.get_or_insert_with(|| Arc::new(cause));
        drop(state);
        self.tell_of_failure();
    }

    /// Waits until the disk, and the stored aggregates, are no further behind than is allowed.
    pub(crate) fn keep_within_bounds(&self, ticket: Ticket) -> Result<()> {
        let state = lock(&self.state);
        if self.bounds.max_events.is_some_and(|max_events| state.undurable_events() >= max_events) {
            self.commit_through(state, ticket)?;
        } else {
            drop(state);
        }
        self.wait_for_checkpoint()
    }

    /// Waits until no more than allowed would be read at an open after a crash.
    pub(crate) fn wait_for_checkpoint(&self) -> Result<()> {
        let Some(recovery_entries) = self.bounds.recovery_entries else { return Ok(()) };
        let mut state = lock(&self.state);
        while state.ahead_of_checkpoint() > recovery_entries && !state.closed {
            if let Some(cause) = &state.failure {
                return Err(Error::Latched { cause: Arc::clone(cause) });
            }
            if state.pending.is_empty() {
                state = self.checkpointed.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                // A checkpoint follows only what is on disk.
                let ticket = Ticket(state.pending_number);
                self.commit_through(state, ticket)?;
                state = lock(&self.state);
            }
        }
        Ok(())
    }

    /// Commits whatever is older than `max_delay` or more than half of `max_events`, until the
    /// database is closed or a commit fails. Runs on the flush thread.
    pub(crate) fn run_flusher(&self, max_events: usize, max_delay: Duration) {
        let mut state = lock(&self.state);
        while !state.closed && state.failure.is_none() {
            let due_at = state.pending.oldest_at.and_then(|oldest| oldest.checked_add(max_delay));
            let full = state.pending.events > 0 && state.pending.events >= half_of(max_events);
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
        state.canary.strike(Break::FlushPanics);
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
        self.grown.notify_all();
        self.checkpointed.notify_all();
        self.resumed.notify_all();
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

    /// The rows that are not yet known to be on disk.
    pub(crate) fn undurable_rows(&self) -> UndurableRows {
        let state = lock(&self.state);
        let mut pending = state.pending.closed_rows.clone();
        if !state.pending.row.is_empty() {
            pending.push(state.pending.row.clone().finish(state.newest_time_ns, state.fingerprint));
        }
        UndurableRows {
            durable_sequence: state.durable_sequence,
            in_flight: state.in_flight.as_ref().map(|commit| Arc::clone(&commit.rows)),
            pending,
        }
    }
}

/// So many events are reason enough to commit.
fn half_of(max_events: usize) -> usize {
    max_events.div_ceil(2)
}

/// While it lives, nothing is staged.
#[derive(Debug)]
pub(crate) struct Pause<'a> {
    log: &'a LogWriter,
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        lock(&self.log.state).paused = false;
        self.log.resumed.notify_all();
    }
}

#[cfg(test)]
mod tests;
