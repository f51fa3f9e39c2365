use std::sync::Arc;

use tidal_entities::{Contribution, ScopeId, SignalTypeId};

use crate::aggregates::AggregateKey;
use crate::scopes::ScopeSet;

/// A signal that is staged and not yet added to its aggregates.
#[derive(Debug)]
pub(crate) struct Update {
    item: u64,
    signal_type: SignalTypeId,
    takes_cohorts: bool,
    takes_communities: bool,
    /// Worked out once for all scopes.
    pub(super) contribution: Contribution,
    scope_set: Arc<ScopeSet>,
}

const _: () = assert!(size_of::<Update>() == 64);

impl Update {
    /// Of the global aggregate alone, until it is forwarded.
    pub(crate) fn new(
        item: u64,
        signal_type: SignalTypeId,
        contribution: Contribution,
        scope_set: Arc<ScopeSet>,
    ) -> Self {
        Self { item, signal_type, takes_cohorts: false, takes_communities: false, contribution, scope_set }
    }

    /// Lets the cohorts of the set take it; returns how many.
    pub(crate) fn forward_to_cohorts(&mut self) -> u32 {
        self.takes_cohorts = true;
        u32::try_from(self.scope_set.cohorts.len()).unwrap_or(u32::MAX)
    }

    /// Lets the communities of the set take it; returns how many.
    pub(crate) fn forward_to_communities(&mut self) -> u32 {
        self.takes_communities = true;
        u32::try_from(self.scope_set.communities.len()).unwrap_or(u32::MAX)
    }

    /// How many aggregates take the signal.
    pub(crate) fn additions(&self) -> usize {
        let ScopeSet { cohorts, communities, .. } = &*self.scope_set;
        let cohorts = if self.takes_cohorts { cohorts.len() } else { 0 };
        let communities = if self.takes_communities { communities.len() } else { 0 };
        1 + cohorts + communities
    }

    /// All aggregates that take the signal.
    pub(super) fn keys(&self) -> impl Iterator<Item = AggregateKey> + '_ {
        let ScopeSet { cohorts, communities, .. } = &*self.scope_set;
        let cohorts = self.takes_cohorts.then_some(cohorts).into_iter().flatten();
        let communities = self.takes_communities.then_some(communities).into_iter().flatten();
        let scopes = std::iter::once(&ScopeId::GLOBAL).chain(cohorts).chain(communities);
        scopes.map(|scope| AggregateKey { item: self.item, scope: *scope, signal_type: self.signal_type })
    }
}
