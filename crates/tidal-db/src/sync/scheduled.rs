//! A stand-in for `dashmap` whose locks the scheduler of `shuttle` knows: the part of its interface that this
//! crate uses, with the same locks taken by the same calls.
//!
//! There are two shards, so that two keys are on one as often as not, and a key's shard is the same in every
//! run, so that a schedule can be repeated. As with `dashmap`, readers are let in while a writer waits.
#![expect(
    clippy::indexing_slicing,
    reason = "positions are those of rows that are locked; built for tests only"
)]

pub(crate) mod map {
    use std::collections::hash_map::DefaultHasher;
    use std::fmt;
    use std::hash::{BuildHasher, BuildHasherDefault, Hash};
    use std::marker::PhantomData;
    use std::ops::{Deref, DerefMut};
    use std::rc::Rc;
    use std::sync::PoisonError;

    use shuttle::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

    const SHARDS: usize = 2;

    /// Whatever hasher the map was made for, so that no run depends on a seed.
    type FixedHasher = BuildHasherDefault<DefaultHasher>;

    /// The rows of one shard.
    pub(crate) struct Rows<K, V> {
        rows: Vec<(K, SharedValue<V>)>,
    }

    /// A value, read as one in `dashmap`'s own shards.
    pub(crate) struct SharedValue<V>(V);

    impl<V> SharedValue<V> {
        pub(crate) fn new(value: V) -> Self {
            Self(value)
        }

        pub(crate) fn get_mut(&mut self) -> &mut V {
            &mut self.0
        }

        pub(crate) fn get(&self) -> &V {
            &self.0
        }
    }

    impl<K: Eq, V> Rows<K, V> {
        pub(crate) fn get(
            &self,
            _hash: u64,
            is_it: impl FnMut(&&(K, SharedValue<V>)) -> bool,
        ) -> Option<&(K, SharedValue<V>)> {
            self.rows.iter().find(is_it)
        }

        pub(crate) fn get_mut(
            &mut self,
            _hash: u64,
            mut is_it: impl FnMut(&(K, SharedValue<V>)) -> bool,
        ) -> Option<&mut (K, SharedValue<V>)> {
            self.rows.iter_mut().find(|row| is_it(row))
        }

        pub(crate) fn insert(
            &mut self,
            _hash: u64,
            row: (K, SharedValue<V>),
            _hasher: impl Fn(&(K, SharedValue<V>)) -> u64,
        ) {
            self.rows.push(row);
        }

        fn position(&self, key: &K) -> Option<usize> {
            self.rows.iter().position(|(stored, _)| stored == key)
        }
    }

    /// The lock of one shard.
    pub(crate) struct Shard<K, V>(RwLock<Rows<K, V>>);

    impl<K, V> Shard<K, V> {
        pub(crate) fn read(&self) -> RwLockReadGuard<'_, Rows<K, V>> {
            self.0.read().unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Rows<K, V>> {
            self.0.write().unwrap_or_else(PoisonError::into_inner)
        }
    }

    pub(crate) struct DashMap<K, V, S = std::hash::RandomState> {
        shards: [Shard<K, V>; SHARDS],
        hasher: FixedHasher,
        made_for: PhantomData<S>,
    }

    impl<K, V, S> fmt::Debug for DashMap<K, V, S> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("DashMap").finish_non_exhaustive()
        }
    }

    impl<K: Eq + Hash, V, S> Default for DashMap<K, V, S> {
        fn default() -> Self {
            let shard = || Shard(RwLock::new(Rows { rows: Vec::new() }));
            Self { shards: [shard(), shard()], hasher: FixedHasher::default(), made_for: PhantomData }
        }
    }

    impl<K: Eq + Hash, V> DashMap<K, V> {
        pub(crate) fn new() -> Self {
            Self::default()
        }
    }

    impl<K: Eq + Hash, V, S> DashMap<K, V, S> {
        pub(crate) fn with_hasher_and_shard_amount(_hasher: S, _amount: usize) -> Self {
            Self::default()
        }

        pub(crate) fn shards(&self) -> &[Shard<K, V>] {
            &self.shards
        }

        pub(crate) fn hasher(&self) -> &impl BuildHasher {
            &self.hasher
        }

        #[expect(clippy::unused_self, reason = "as in dashmap")]
        pub(crate) fn determine_shard(&self, hash: usize) -> usize {
            hash % SHARDS
        }

        fn shard(&self, key: &K) -> &Shard<K, V> {
            let [even, odd] = &self.shards;
            if self.hasher.hash_one(key).is_multiple_of(2) { even } else { odd }
        }

        pub(crate) fn get(&self, key: &K) -> Option<Ref<'_, K, V>> {
            let rows = self.shard(key).read();
            let position = rows.position(key)?;
            Some(Ref { rows, position })
        }

        pub(crate) fn contains_key(&self, key: &K) -> bool {
            self.get(key).is_some()
        }

        pub(crate) fn entry(&self, key: K) -> Entry<'_, K, V> {
            let rows = self.shard(&key).write();
            match rows.position(&key) {
                Some(position) => Entry::Occupied(OccupiedEntry { place: RefMut { rows, position } }),
                None => Entry::Vacant(VacantEntry { rows, key }),
            }
        }

        pub(crate) fn insert(&self, key: K, value: V) -> Option<V> {
            match self.entry(key) {
                Entry::Occupied(mut entry) => Some(std::mem::replace(entry.get_mut(), value)),
                Entry::Vacant(entry) => {
                    entry.insert(value);
                    None
                }
            }
        }

        pub(crate) fn remove(&self, key: &K) -> Option<(K, V)> {
            let mut rows = self.shard(key).write();
            let position = rows.position(key)?;
            let (key, value) = rows.rows.swap_remove(position);
            Some((key, value.0))
        }

        pub(crate) fn len(&self) -> usize {
            self.shards.iter().map(|shard| shard.read().rows.len()).sum()
        }
    }

    impl<K, V, S> DashMap<K, V, S> {
        /// A shard stays locked for reading until the iterator is past it and its rows are dropped.
        pub(crate) fn iter(&self) -> impl Iterator<Item = RefMulti<'_, K, V>> + use<'_, K, V, S> {
            self.shards.iter().flat_map(|shard| {
                let rows = Rc::new(shard.read());
                (0..rows.rows.len()).map(move |position| RefMulti { rows: Rc::clone(&rows), position })
            })
        }
    }

    impl<'a, K, V, S> IntoIterator for &'a DashMap<K, V, S> {
        type Item = RefMulti<'a, K, V>;
        type IntoIter = Box<dyn Iterator<Item = RefMulti<'a, K, V>> + 'a>;

        fn into_iter(self) -> Self::IntoIter {
            Box::new(self.iter())
        }
    }

    /// One row, while its shard is locked for reading.
    pub(crate) struct Ref<'a, K, V> {
        rows: RwLockReadGuard<'a, Rows<K, V>>,
        position: usize,
    }

    /// One row of an iteration.
    pub(crate) struct RefMulti<'a, K, V> {
        rows: Rc<RwLockReadGuard<'a, Rows<K, V>>>,
        position: usize,
    }

    /// One row, while its shard is locked for writing.
    pub(crate) struct RefMut<'a, K, V> {
        rows: RwLockWriteGuard<'a, Rows<K, V>>,
        position: usize,
    }

    impl<K, V> RefMulti<'_, K, V> {
        pub(crate) fn key(&self) -> &K {
            &self.rows.rows[self.position].0
        }

        pub(crate) fn value(&self) -> &V {
            &self.rows.rows[self.position].1.0
        }
    }

    impl<K, V> Deref for Ref<'_, K, V> {
        type Target = V;

        fn deref(&self) -> &V {
            &self.rows.rows[self.position].1.0
        }
    }

    impl<K, V> Deref for RefMulti<'_, K, V> {
        type Target = V;

        fn deref(&self) -> &V {
            self.value()
        }
    }

    impl<K, V> Deref for RefMut<'_, K, V> {
        type Target = V;

        fn deref(&self) -> &V {
            &self.rows.rows[self.position].1.0
        }
    }

    impl<K, V> DerefMut for RefMut<'_, K, V> {
        fn deref_mut(&mut self) -> &mut V {
            &mut self.rows.rows[self.position].1.0
        }
    }

    /// The place of one key, while its shard is locked for writing.
    pub(crate) enum Entry<'a, K, V> {
        Occupied(OccupiedEntry<'a, K, V>),
        Vacant(VacantEntry<'a, K, V>),
    }

    pub(crate) struct OccupiedEntry<'a, K, V> {
        place: RefMut<'a, K, V>,
    }

    pub(crate) struct VacantEntry<'a, K, V> {
        rows: RwLockWriteGuard<'a, Rows<K, V>>,
        key: K,
    }

    impl<'a, K, V> Entry<'a, K, V> {
        pub(crate) fn insert(self, value: V) -> RefMut<'a, K, V> {
            match self {
                Self::Occupied(entry) => {
                    let mut place = entry.place;
                    *place = value;
                    place
                }
                Self::Vacant(entry) => entry.insert(value),
            }
        }

        pub(crate) fn or_default(self) -> RefMut<'a, K, V>
        where
            V: Default,
        {
            match self {
                Self::Occupied(entry) => entry.place,
                Self::Vacant(entry) => entry.insert(V::default()),
            }
        }
    }

    impl<K, V> OccupiedEntry<'_, K, V> {
        pub(crate) fn get(&self) -> &V {
            &self.place
        }

        pub(crate) fn get_mut(&mut self) -> &mut V {
            &mut self.place
        }
    }

    impl<'a, K, V> VacantEntry<'a, K, V> {
        pub(crate) fn insert(self, value: V) -> RefMut<'a, K, V> {
            let mut rows = self.rows;
            let position = rows.rows.len();
            rows.rows.push((self.key, SharedValue::new(value)));
            RefMut { rows, position }
        }
    }

    #[derive(Debug)]
    pub(crate) struct DashSet<K>(DashMap<K, ()>);

    impl<K: Eq + Hash> Default for DashSet<K> {
        fn default() -> Self {
            Self(DashMap::default())
        }
    }

    impl<K: Eq + Hash> DashSet<K> {
        pub(crate) fn insert(&self, key: K) -> bool {
            self.0.insert(key, ()).is_none()
        }

        pub(crate) fn remove(&self, key: &K) -> Option<K> {
            self.0.remove(key).map(|(key, ())| key)
        }

        pub(crate) fn contains(&self, key: &K) -> bool {
            self.0.contains_key(key)
        }
    }
}
