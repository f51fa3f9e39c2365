//! Reading a shard of a concurrent map under a lock that a hit and a miss hold alike, and that gives
//! way to writers.
//!
//! The map's own locks let readers in while a writer waits, so readers that follow each other closely
//! could keep a leave waiting for ever. A writer therefore says that it waits, and readers that come
//! later let it pass.

use std::hash::{BuildHasher, Hash};

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::map::{DashMap, Entry};
use crate::sync::thread;

/// How often a reader lets the processor go before it takes the lock all the same: writers that never
/// stop coming must not shut readers out either. Under a scheduler more would only be steps that lead nowhere.
const YIELDS: u32 = if cfg!(shuttle) { 2 } else { 256 };

/// For each shard of one map, how many writers wait for it.
#[derive(Debug, Default)]
pub(crate) struct WaitingWriters {
    by_shard: Box<[AtomicU32]>,
}

impl WaitingWriters {
    /// Nobody waits for any shard of `map` yet.
    pub(crate) fn of<K: Eq + Hash, V, S: BuildHasher + Clone>(map: &DashMap<K, V, S>) -> Self {
        Self { by_shard: map.shards().iter().map(|_| AtomicU32::new(0)).collect() }
    }

    fn give_way(&self, shard: usize) {
        // Relaxed: the count only decides who tries first; the lock itself orders what they do.
        let Some(waiting) = self.by_shard.get(shard) else { return };
        for _ in 0..YIELDS {
            if waiting.load(Ordering::Relaxed) == 0 {
                return;
            }
            thread::yield_now();
        }
    }
}

fn shard_of<V, S: BuildHasher + Clone>(map: &DashMap<u64, V, S>, hash: u64) -> usize {
    // The map takes the same bits of the hash, cut to the width of the platform.
    #[expect(clippy::cast_possible_truncation, reason = "as the map does")]
    map.determine_shard(hash as usize)
}

/// Locks the shard in which `key` is or would be, for reading, and looks `key` up in it. Hit or
/// miss, no writer gets at the key while the first of the two is held.
pub(crate) fn read_shard<'a, V, R, S: BuildHasher + Clone, P: FnOnce(&V) -> R>(
    map: &'a DashMap<u64, V, S>,
    waiting: &WaitingWriters,
    key: u64,
    pick: P,
) -> (impl Sized + use<'a, V, R, S, P>, Option<R>) {
    let hash = map.hasher().hash_one(key);
    let shard = shard_of(map, hash);
    waiting.give_way(shard);
    #[expect(clippy::indexing_slicing, reason = "determine_shard answers an index into shards()")]
    let shard = map.shards()[shard].read();
    let picked = shard.get(hash, |(stored, _)| *stored == key).map(|(_, value)| pick(value.get()));
    (shard, picked)
}

/// Locks the shard of `key` for writing; readers that come while this waits let it pass.
pub(crate) fn write_entry<'a, V, S: BuildHasher + Clone>(
    map: &'a DashMap<u64, V, S>,
    waiting: &WaitingWriters,
    key: u64,
) -> Entry<'a, u64, V> {
    let shard = waiting.by_shard.get(shard_of(map, map.hasher().hash_one(key)));
    if let Some(shard) = shard {
        shard.fetch_add(1, Ordering::Relaxed);
    }
    let entry = map.entry(key);
    if let Some(shard) = shard {
        shard.fetch_sub(1, Ordering::Relaxed);
    }
    entry
}
