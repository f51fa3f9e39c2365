//! The aggregates in memory, and how they are read.
//!
//! A signal is visible from the moment it is staged in the log: together with its entry, under the
//! log's lock, it is put among the updates that wait, and whoever reads adds those first. So readers
//! see what a prefix of the log comes to, whole signals, and between reads signals are added many at
//! a time by the callers who made them, with no lock for each aggregate.
//!
//! Lock order: the view, then the log's state or the interned scopes. Never back.

mod board_numbers;
mod index;
mod update;
mod view;

use std::ops::Deref;
use std::sync::{Arc, TryLockError};

pub(crate) use tidal_entities::AggregateKey;
use tidal_entities::{Aggregate, AggregateState, Scope, ScopeId, ScoreRank, SignalType, SignalTypeId};

pub(crate) use self::update::Update;
pub(crate) use self::view::AggregateView;
use crate::log_writer::LogWriter;
use crate::scopes::{Interner, ScopeSet};
use crate::sync::{Mutex, MutexGuard, is_poisoned};
use crate::{Error, Result, TidalDb};

/// So many additions are worth making at once; a reader finds hardly more to do than this. Few enough under the
/// scheduler for two signals to make them.
const BATCH: usize = if cfg!(shuttle) { 6 } else { 1_280 };

/// With so many waiting, a signal waits until they are made: a reader finds no more than these, and those
/// of one signal for each thread that records.
const MAX_WAITING: usize = if cfg!(shuttle) { 2 * BATCH } else { 8 * BATCH };

/// So many blocks of a board are read before others get a turn.
const BLOCKS_A_TURN: usize = 16;

/// All aggregates of all scopes.
#[derive(Debug)]
pub(crate) struct Aggregates {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    view: AggregateView,
    /// Kept for its memory; empty but while they are added.
    updates: Vec<Update>,
    interner: Arc<Interner>,
    /// All sets that updates may name, by number.
    sets: Vec<Arc<ScopeSet>>,
}

impl State {
    fn catch_up(&mut self, log: &LogWriter) {
        log.take_updates(&mut self.updates);
        // Every set was interned before a signal of it was staged.
        self.interner.complete(&mut self.sets);
        self.view.add_all(&self.updates, &self.sets);
        self.updates.clear();
    }
}

/// The aggregates with everything in them that was staged before it was asked for. Updates wait as
/// long as it is held.
#[derive(Debug)]
pub(crate) struct CaughtUp<'a> {
    state: MutexGuard<'a, State>,
}

impl Deref for CaughtUp<'_> {
    type Target = AggregateView;

    fn deref(&self) -> &AggregateView {
        &self.state.view
    }
}

impl CaughtUp<'_> {
    /// The `k` best items of one scope and signal type, best first, equal ones by id.
    pub(crate) fn top(
        &mut self,
        scope: ScopeId,
        signal_type: SignalTypeId,
        k: usize,
    ) -> Vec<(u64, ScoreRank)> {
        self.state.view.top(scope, signal_type, k)
    }
}

impl Aggregates {
    pub(crate) fn new(view: AggregateView, interner: Arc<Interner>) -> Self {
        Self { state: Mutex::new(State { view, updates: Vec::new(), interner, sets: Vec::new() }) }
    }

    /// Adds everything staged so far, for whoever wants to read.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadPanicked`]: a panic left updates half added, so nothing here can be believed.
    pub(crate) fn caught_up(&self, log: &LogWriter) -> Result<CaughtUp<'_>> {
        let mut state = self.state.lock().map_err(|_| Error::ThreadPanicked)?;
        state.catch_up(log);
        Ok(CaughtUp { state })
    }

    /// Refuses once a panic left updates half added: what is recorded then could not be read.
    ///
    /// # Errors
    ///
    /// As for [`caught_up`](Self::caught_up).
    pub(crate) fn check_whole(&self) -> Result<()> {
        if is_poisoned(&self.state) { Err(Error::ThreadPanicked) } else { Ok(()) }
    }

    /// Adds what waits if that is worth it, for whoever made it `waiting` additions; waits only if
    /// there are too many.
    ///
    /// # Errors
    ///
    /// As for [`caught_up`](Self::caught_up).
    pub(crate) fn keep_up(&self, log: &LogWriter, waiting: usize) -> Result<()> {
        if waiting < BATCH {
            return Ok(());
        }
        if waiting >= MAX_WAITING {
            return self.caught_up(log).map(drop);
        }
        match self.state.try_lock() {
            Ok(mut state) => {
                state.catch_up(log);
                Ok(())
            }
            // Somebody else is at it, or reads.
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Poisoned(_)) => Err(Error::ThreadPanicked),
        }
    }
}

/// One aggregate with what it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateRow {
    /// Who took the signals.
    pub scope: Scope,
    /// What they were about.
    pub item: u64,
    /// What they were.
    pub signal_type: String,
    /// What they add up to.
    pub aggregate: Aggregate,
}

impl TidalDb {
    /// What the signals of one type on `item` add up to in `scope`, the score as of
    /// [`score_time_ns`](Self::score_time_ns). `None` if the scope took none: a community or cohort
    /// value that nobody has is no error.
    ///
    /// # Errors
    ///
    /// [`Error::UndeclaredSignalType`]; [`Error::Schema`] for a cohort that is not declared;
    /// [`Error::Closed`]; [`Error::ThreadPanicked`] if an addition panicked.
    pub fn aggregate(&self, scope: &Scope, item: u64, signal_type: &str) -> Result<Option<Aggregate>> {
        self.inner.log.check_open()?;
        let SignalType { id: signal_type, half_life, .. } = *self.resolve_signal_type(signal_type)?;
        let Some(scope) = self.resolve_scope(scope)? else { return Ok(None) };
        let at_ns = self.score_time_ns();
        let view = self.aggregate_view()?;
        Ok(view.get(AggregateKey { item, scope, signal_type }).map(|state| state.snapshot(at_ns, half_life)))
    }

    /// All aggregates of `scope`, or of every scope: in order of scope (global, cohorts by name,
    /// communities by id), item and declaration of the signal type; scores as of
    /// [`score_time_ns`](Self::score_time_ns). They are read piece by piece, so that signals need not
    /// wait: one that is recorded meanwhile may be in some rows and not in others.
    ///
    /// # Errors
    ///
    /// [`Error::Schema`] for a cohort that is not declared; [`Error::Closed`]; [`Error::ThreadPanicked`] if an addition
    /// panicked.
    pub fn aggregates(
        &self,
        scope: Option<&Scope>,
    ) -> Result<impl Iterator<Item = Result<AggregateRow>> + use<>> {
        self.aggregates_at(scope, self.score_time_ns())
    }

    /// The same with scores as of `at_ns`, ns since the Unix epoch. At a time before an event its
    /// weight counts more, not less; scores end at `±f64::MAX`.
    ///
    /// # Errors
    ///
    /// As for [`aggregates`](Self::aggregates).
    pub fn aggregates_at(
        &self,
        scope: Option<&Scope>,
        at_ns: u64,
    ) -> Result<impl Iterator<Item = Result<AggregateRow>> + use<>> {
        self.inner.log.check_open()?;
        let wanted = match scope {
            None => None,
            // A scope that never took a signal has no number, and no rows.
            Some(scope) => match self.resolve_scope(scope)? {
                Some(id) => Some(id),
                None => return Ok(Vec::new().into_iter()),
            },
        };
        let boards = self.aggregate_view()?.board_scopes().to_vec();
        let scopes = self.inner.interner.scopes();
        let mut rows = Vec::new();
        for (board, (scope, signal_type)) in boards.into_iter().enumerate() {
            if wanted.is_some_and(|wanted| wanted != scope) {
                continue;
            }
            let scope = usize::try_from(scope.0).ok().and_then(|index| scopes.get(index));
            let declared = self.inner.schema.signal_type_by_id(signal_type);
            // Both were interned before the aggregates could exist.
            let (Some(scope), Some(declared)) = (scope, declared) else { continue };
            self.for_each_in_board(board, |item, state| {
                rows.push((scope, item, declared, state.snapshot(at_ns, declared.half_life)));
            })?;
        }
        rows.sort_by(|a, b| (a.0, a.1, a.2.id).cmp(&(b.0, b.1, b.2.id)));
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(scope, item, declared, aggregate)| {
                let (scope, signal_type) = (scope.clone(), declared.name.clone());
                Ok(AggregateRow { scope, item, signal_type, aggregate })
            })
            .collect();
        Ok(rows.into_iter())
    }

    /// The aggregates with everything in them that was staged so far.
    pub(crate) fn aggregate_view(&self) -> Result<CaughtUp<'_>> {
        self.inner.aggregates.caught_up(&self.inner.log)
    }

    /// Shows each aggregate of a board as it is at one moment; updates get their turn in between.
    fn for_each_in_board(&self, board: usize, mut visit: impl FnMut(u64, &AggregateState)) -> Result<()> {
        for first in (0..).step_by(BLOCKS_A_TURN) {
            let view = self.aggregate_view()?;
            for block in first..first + BLOCKS_A_TURN {
                let Some(cells) = view.cells(board, block) else { return Ok(()) };
                let taken = cells.iter().filter(|cell| !cell.state.is_empty());
                taken.for_each(|cell| visit(cell.item, &cell.state));
            }
        }
        Ok(())
    }

    /// The time as of which scores are given: the clock, or the newest time seen if that is later.
    #[must_use]
    pub fn score_time_ns(&self) -> u64 {
        self.now_ns().max(self.newest_time_ns())
    }

    pub(crate) fn resolve_signal_type(&self, name: &str) -> Result<&SignalType> {
        self.inner
            .schema
            .signal_type_by_name(name)
            .ok_or_else(|| Error::UndeclaredSignalType { name: name.chars().take(64).collect() })
    }

    /// The number of `scope`; `None` if it never took a signal and nobody is in it.
    pub(crate) fn resolve_scope(&self, scope: &Scope) -> Result<Option<ScopeId>> {
        if let Scope::Cohort(name) = scope {
            self.inner.schema.resolve_cohort(name)?;
        }
        Ok(self.inner.interner.id(scope))
    }
}

#[cfg(test)]
mod tests;
