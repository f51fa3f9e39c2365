//! The aggregates in memory, and how they are read.
//!
//! A reader sees each aggregate as it is at one moment; two aggregates may be from two moments.
//!
//! Lock order: the shard of the aggregate, then its ranking. Never back.

use std::sync::Arc;

use dashmap::{DashMap, Entry};
use tidal_entities::{
    Aggregate, AggregateState, Contribution, HalfLife, Scope, ScopeId, ScoreRank, SignalType, SignalTypeId,
    SubtractError, Window, WindowAggregate, WindowError,
};

use crate::fast_map::{FastMap, fast_map};
use crate::ranking::{Ranking, Slot};
use crate::{Error, Result, TidalDb};

/// Which aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AggregateKey {
    // In the order of the stored keys.
    pub(crate) item: u64,
    pub(crate) scope: ScopeId,
    pub(crate) signal_type: SignalTypeId,
}

/// One aggregate, and where it stands in the ranking of its scope and signal type.
#[derive(Debug)]
struct Cell {
    state: AggregateState,
    /// Shared by all cells of the scope and signal type, so that no update has to look it up.
    ranking: Arc<Ranking>,
    slot: Slot,
}

// With the 8 bytes of the allocator 96, the least that holds more than 80.
const _: () = assert!(size_of::<Cell>() == 88);

impl Cell {
    fn ranked(item: u64, state: AggregateState, ranking: Arc<Ranking>) -> Self {
        let slot = ranking.insert(item, state.score().rank());
        Self { state, ranking, slot }
    }

    fn add(&mut self, item: u64, contribution: &Contribution) {
        self.state.add_contribution(contribution);
        self.ranking.set(self.slot, item, self.state.score().rank());
    }
}

/// All aggregates of all scopes.
#[derive(Debug)]
pub(crate) struct Aggregates {
    /// In boxes, since half of a map's places are empty.
    by_key: FastMap<AggregateKey, Box<Cell>>,
    rankings: DashMap<(ScopeId, SignalTypeId), Arc<Ranking>>,
}

impl Default for Aggregates {
    fn default() -> Self {
        Self { by_key: fast_map(), rankings: DashMap::new() }
    }
}

impl Aggregates {
    /// Adds one signal to one aggregate. Additions commute.
    pub(crate) fn add(&self, key: AggregateKey, contribution: &Contribution) {
        if let Some(mut cell) = self.by_key.get_mut(&key) {
            cell.add(key.item, contribution);
            return;
        }
        // Looked up before the shard is locked again: no map is asked under the lock of another.
        let ranking = self.ranking(key);
        match self.by_key.entry(key) {
            Entry::Occupied(mut cell) => cell.get_mut().add(key.item, contribution),
            Entry::Vacant(place) => {
                let mut state = AggregateState::default();
                state.add_contribution(contribution);
                place.insert(Box::new(Cell::ranked(key.item, state, ranking)));
            }
        }
    }

    /// Takes one signal away from the aggregate that it was added to; one without signals is gone.
    #[cfg_attr(not(test), expect(dead_code, reason = "purge and erasure stand on it"))]
    pub(crate) fn subtract(
        &self,
        key: AggregateKey,
        contribution: &Contribution,
    ) -> Result<(), SubtractError> {
        let Entry::Occupied(mut entry) = self.by_key.entry(key) else { return Err(SubtractError::Empty) };
        let cell = entry.get_mut();
        cell.state.subtract_contribution(contribution)?;
        if cell.state.is_empty() {
            cell.ranking.remove(cell.slot);
            entry.remove();
        } else {
            cell.ranking.set(cell.slot, key.item, cell.state.score().rank());
        }
        Ok(())
    }

    /// Sets an aggregate found at open.
    pub(crate) fn restore(&self, key: AggregateKey, state: AggregateState) {
        let ranking = self.ranking(key);
        if let Entry::Vacant(place) = self.by_key.entry(key) {
            place.insert(Box::new(Cell::ranked(key.item, state, ranking)));
        }
    }

    fn ranking(&self, key: AggregateKey) -> Arc<Ranking> {
        Arc::clone(&self.rankings.entry((key.scope, key.signal_type)).or_default())
    }

    /// Shows every aggregate, in no order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(AggregateKey, &AggregateState)) {
        for entry in &self.by_key {
            visit(*entry.key(), &entry.value().state);
        }
    }

    fn get(&self, key: AggregateKey, at_ns: u64, half_life: HalfLife) -> Option<Aggregate> {
        self.by_key.get(&key).map(|cell| cell.state.snapshot(at_ns, half_life))
    }

    /// What a window holds; `None` without the aggregate.
    pub(crate) fn window(
        &self,
        key: AggregateKey,
        window: Window,
        at_ns: u64,
    ) -> Result<Option<WindowAggregate>, WindowError> {
        self.by_key.get(&key).map(|cell| cell.state.window(window, at_ns)).transpose()
    }

    /// The `k` items with the highest scores, best first, equal ones by id.
    pub(crate) fn top(&self, scope: ScopeId, signal_type: SignalTypeId, k: usize) -> Vec<(u64, ScoreRank)> {
        let ranking = self.rankings.get(&(scope, signal_type)).map(|found| Arc::clone(&found));
        ranking.map(|ranking| ranking.top(k)).unwrap_or_default()
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
    /// [`Error::Closed`].
    pub fn aggregate(&self, scope: &Scope, item: u64, signal_type: &str) -> Result<Option<Aggregate>> {
        self.inner.log.check_open()?;
        let SignalType { id: signal_type, half_life, .. } = *self.resolve_signal_type(signal_type)?;
        let Some(scope) = self.resolve_scope(scope)? else { return Ok(None) };
        let at_ns = self.score_time_ns();
        Ok(self.inner.aggregates.get(AggregateKey { item, scope, signal_type }, at_ns, half_life))
    }

    /// All aggregates of `scope`, or of every scope: in order of scope (global, cohorts by name,
    /// communities by id), item and declaration of the signal type; scores as of
    /// [`score_time_ns`](Self::score_time_ns).
    ///
    /// # Errors
    ///
    /// [`Error::Schema`] for a cohort that is not declared; [`Error::Closed`].
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
        let scopes = self.inner.interner.scopes();
        let mut rows = Vec::new();
        for entry in &self.inner.aggregates.by_key {
            let key = *entry.key();
            if wanted.is_some_and(|wanted| wanted != key.scope) {
                continue;
            }
            let scope = usize::try_from(key.scope.0).ok().and_then(|index| scopes.get(index));
            let signal_type = self.inner.schema.signal_type_by_id(key.signal_type);
            // Both were interned before the aggregate could exist.
            let (Some(scope), Some(declared)) = (scope, signal_type) else { continue };
            rows.push((scope, key, &declared.name, entry.value().state.snapshot(at_ns, declared.half_life)));
        }
        rows.sort_by(|a, b| (a.0, a.1.item, a.1.signal_type).cmp(&(b.0, b.1.item, b.1.signal_type)));
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(scope, key, name, aggregate)| {
                Ok(AggregateRow {
                    scope: scope.clone(),
                    item: key.item,
                    signal_type: name.clone(),
                    aggregate,
                })
            })
            .collect();
        Ok(rows.into_iter())
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
