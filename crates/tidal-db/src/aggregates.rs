//! The aggregates in memory, and how they are read.
//!
//! A reader sees each aggregate as it is at one moment; two aggregates may be from two moments.

use dashmap::DashMap;
use tidal_entities::{Aggregate, AggregateState, Contribution, HalfLife, Scope, ScopeId, SignalTypeId};

use crate::{Error, Result, TidalDb};

/// Which aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AggregateKey {
    // In the order of the stored keys.
    pub(crate) item: u64,
    pub(crate) scope: ScopeId,
    pub(crate) signal_type: SignalTypeId,
}

/// All aggregates of all scopes.
#[derive(Debug, Default)]
pub(crate) struct Aggregates {
    by_key: DashMap<AggregateKey, AggregateState>,
}

impl Aggregates {
    /// Adds one signal to one aggregate. Additions commute.
    pub(crate) fn add(&self, key: AggregateKey, contribution: &Contribution) {
        self.by_key.entry(key).or_default().add_contribution(contribution);
    }

    /// Sets an aggregate found at open.
    pub(crate) fn restore(&self, key: AggregateKey, state: AggregateState) {
        self.by_key.insert(key, state);
    }

    /// Shows every aggregate, in no order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(AggregateKey, &AggregateState)) {
        for entry in &self.by_key {
            visit(*entry.key(), entry.value());
        }
    }

    fn get(&self, key: AggregateKey, at_ns: u64, half_life: HalfLife) -> Option<Aggregate> {
        self.by_key.get(&key).map(|state| state.snapshot(at_ns, half_life))
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
        let (signal_type, half_life) = self.resolve_signal_type(signal_type)?;
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
            rows.push((scope, key, &declared.name, entry.value().snapshot(at_ns, declared.half_life)));
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

    pub(crate) fn resolve_signal_type(&self, name: &str) -> Result<(SignalTypeId, HalfLife)> {
        self.inner
            .schema
            .signal_type(name)
            .ok_or_else(|| Error::UndeclaredSignalType { name: name.chars().take(64).collect() })
    }

    /// The number of `scope`; `None` if it never took a signal and nobody is in it.
    fn resolve_scope(&self, scope: &Scope) -> Result<Option<ScopeId>> {
        if let Scope::Cohort(name) = scope {
            self.inner.schema.resolve_cohort(name)?;
        }
        Ok(self.inner.interner.id(scope))
    }
}
