//! The yardstick: the same updates on a bare map in memory, without gate, log, profiles and receipts.

use dashmap::DashMap;
use tidal_db::{HalfLife, Weight};
use tidal_entities::AggregateState;

use crate::fixtures::{EVENT_TIME_NS, HALF_LIFE};

/// A scope by number, and an item.
pub type UpdateKey = (u32, u64);

/// A map with a fast hasher, and so many shards that two threads seldom meet.
#[derive(Debug)]
pub struct BareUpdates {
    by_key: DashMap<UpdateKey, AggregateState, foldhash::fast::RandomState>,
    half_life: HalfLife,
}

impl Default for BareUpdates {
    fn default() -> Self {
        Self {
            by_key: DashMap::with_hasher_and_shard_amount(foldhash::fast::RandomState::default(), 256),
            half_life: HalfLife::try_from(HALF_LIFE).unwrap(),
        }
    }
}

impl BareUpdates {
    /// Adds one signal to one aggregate.
    pub fn add(&self, key: UpdateKey) {
        self.by_key.entry(key).or_default().add(Weight::ONE, EVENT_TIME_NS, self.half_life);
    }

    /// Every aggregate with its count, in order.
    #[must_use]
    pub fn counts(&self) -> Vec<(UpdateKey, u64)> {
        let count = |state: &AggregateState| state.snapshot(EVENT_TIME_NS, self.half_life).count;
        let mut counts: Vec<_> =
            self.by_key.iter().map(|entry| (*entry.key(), count(entry.value()))).collect();
        counts.sort_unstable();
        counts
    }
}
