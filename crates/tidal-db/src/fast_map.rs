//! Maps that every signal touches: a fast hasher, and so many shards that threads seldom meet.

use std::hash::Hash;

use crate::sync::map::DashMap;

/// Seeded for each map, so that ids cannot be chosen to collide in every process.
pub(crate) type FastHasher = foldhash::fast::RandomState;

/// A map that is fast under many threads. For maps of which there is one: an empty one takes 32 KiB.
pub(crate) type FastMap<K, V> = DashMap<K, V, FastHasher>;

const SHARDS: usize = 256;

/// An empty map.
pub(crate) fn fast_map<K: Eq + Hash, V>() -> FastMap<K, V> {
    FastMap::with_hasher_and_shard_amount(FastHasher::default(), SHARDS)
}
