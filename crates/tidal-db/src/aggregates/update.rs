use tidal_entities::{Contribution, ScopeId, ScopeSetId, SignalTypeId};

use crate::scopes::ScopeSet;

/// A signal that is staged and not yet added to its aggregates.
#[derive(Debug)]
pub(crate) struct Update {
    item: u64,
    signal_type: SignalTypeId,
    takes_cohorts: bool,
    takes_communities: bool,
    scope_set: ScopeSetId,
    /// Worked out once for all scopes.
    pub(super) contribution: Contribution,
}

const _: () = assert!(size_of::<Update>() == 48);

impl Update {
    /// Of the global aggregate alone, until it is forwarded to the scopes of a set.
    pub(crate) fn new(
        item: u64,
        signal_type: SignalTypeId,
        contribution: Contribution,
        scope_set: ScopeSetId,
    ) -> Self {
        Self { item, signal_type, takes_cohorts: false, takes_communities: false, scope_set, contribution }
    }

    /// Lets the cohorts of its set take it.
    pub(crate) fn forward_to_cohorts(&mut self) {
        self.takes_cohorts = true;
    }

    /// Lets the communities of its set take it.
    pub(crate) fn forward_to_communities(&mut self) {
        self.takes_communities = true;
    }

    pub(super) fn item(&self) -> u64 {
        self.item
    }

    pub(super) fn scope_set(&self) -> ScopeSetId {
        self.scope_set
    }

    pub(super) fn signal_type(&self) -> SignalTypeId {
        self.signal_type
    }

    /// All scopes that take the signal, whose set is this.
    pub(super) fn scopes<'a>(&self, set: &'a ScopeSet) -> impl Iterator<Item = ScopeId> + use<'a> {
        let ScopeSet { cohorts, communities, .. } = set;
        let cohorts: &[ScopeId] = if self.takes_cohorts { cohorts } else { &[] };
        let communities: &[ScopeId] = if self.takes_communities { communities } else { &[] };
        std::iter::once(&ScopeId::GLOBAL).chain(cohorts).chain(communities).copied()
    }
}
