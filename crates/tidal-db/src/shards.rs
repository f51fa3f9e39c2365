//! Reading a shard of a concurrent map under a lock that a hit and a miss hold alike, and that gives
//! way to writers; filling shards.
//!
//! The map's own locks let readers in while a writer waits, so readers that follow each other closely
//! could keep a leave waiting for ever. A writer therefore says that it waits, and readers that come
//! later let it pass.

use std::hash::{BuildHasher, Hash};

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::map::{DashMap, Entry, SharedValue};
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

/// Rows of one shard that are put into it under one lock.
const FILL_ROWS: usize = 256;

/// Puts many rows into a map. A lock for each row would make the processor wait until the memory of that row is there;
/// under one for many it fetches that of the next ones meanwhile.
pub(crate) struct Filler<'a, V, S> {
    map: &'a DashMap<u64, V, S>,
    /// What is still to be put into each shard, with the hash of its key.
    by_shard: Vec<Vec<(u64, u64, V)>>,
}

impl<'a, V, S: BuildHasher + Clone> Filler<'a, V, S> {
    pub(crate) fn new(map: &'a DashMap<u64, V, S>) -> Self {
        Self { map, by_shard: map.shards().iter().map(|_| Vec::new()).collect() }
    }

    /// Inserts a row, or replaces that of the same key; in the map once this is at its [`end`](Self::end).
    pub(crate) fn insert(&mut self, key: u64, value: V) {
        let hash = self.map.hasher().hash_one(key);
        let shard = shard_of(self.map, hash);
        #[expect(clippy::indexing_slicing, reason = "as many as there are shards")]
        let rows = &mut self.by_shard[shard];
        rows.push((hash, key, value));
        if rows.len() == FILL_ROWS {
            fill(self.map, shard, rows);
        }
    }

    pub(crate) fn end(mut self) {
        for (shard, rows) in self.by_shard.iter_mut().enumerate() {
            fill(self.map, shard, rows);
        }
    }
}

fn fill<V, S: BuildHasher + Clone>(map: &DashMap<u64, V, S>, shard: usize, rows: &mut Vec<(u64, u64, V)>) {
    #[expect(clippy::indexing_slicing, reason = "determine_shard answers an index into shards()")]
    let mut shard = map.shards()[shard].write();
    for (hash, key, value) in rows.drain(..) {
        match shard.get_mut(hash, |(stored, _)| *stored == key) {
            Some((_, stored)) => *stored.get_mut() = value,
            None => {
                shard.insert(hash, (key, SharedValue::new(value)), |(key, _)| map.hasher().hash_one(key));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Filler;
    use crate::sync::map::DashMap;

    #[test]
    fn what_was_filled_in_is_found_and_the_last_of_a_key_counts() {
        let map = DashMap::new();
        map.insert(7, 0);
        let mut filler = Filler::new(&map);
        for key in 0..100_000 {
            filler.insert(key, key);
        }
        filler.insert(8, 1);
        filler.end();
        assert_eq!(map.len(), 100_000);
        assert!((0..100_000).all(|key| map.get(&key).is_some_and(|value| *value == key) != (key == 8)));
        assert_eq!(map.get(&8).map(|value| *value), Some(1));
    }
}
