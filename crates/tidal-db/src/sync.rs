//! Where threads, locks, atomics, channels and concurrent maps come from; locks that outlive a panic, and turns that
//! one caller at a time may take.
//!
//! No other module names `std::sync`, `std::thread` or `dashmap` for what threads meet in, so that the crate
//! can be built with every such step under the control of a scheduler: see `crates/tidal-interleavings`.
//! Only [`Arc`](std::sync::Arc), [`OnceLock`](std::sync::OnceLock), at which nothing but an allocation is waited
//! for, and the index of communities, each call of which is one step of its own, are as everywhere.

#[cfg(shuttle)]
mod scheduled;

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

#[cfg(not(shuttle))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard, atomic, mpsc},
    thread,
};

#[cfg(not(shuttle))]
pub(crate) use dashmap as map;

#[cfg(shuttle)]
pub(crate) use self::scheduled::map;
#[cfg(shuttle)]
pub(crate) use shuttle::{
    sync::{Condvar, Mutex, MutexGuard, atomic, mpsc},
    thread,
};

/// Locks `mutex`. What it guards is valid between any two statements of its critical sections,
/// so a panic of another thread is no reason to refuse.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a thread panicked while it held `mutex`.
pub(crate) fn is_poisoned<T>(mutex: &Mutex<T>) -> bool {
    #[cfg(not(shuttle))]
    return mutex.is_poisoned();
    // The scheduler's lock tells only who asks for it.
    #[cfg(shuttle)]
    return matches!(mutex.try_lock(), Err(std::sync::TryLockError::Poisoned(_)));
}

/// Lets other threads go on. Says whether `limit` is not over yet, counted from `began_at`.
pub(crate) fn yield_within(began_at: Instant, limit: Duration) -> bool {
    thread::yield_now();
    // Under the scheduler nothing depends on the time, so that a schedule can be repeated.
    cfg!(shuttle) || began_at.elapsed() < limit
}

/// One turn per key: whoever holds it is the only one who changes what the key stands for.
///
/// A turn, unlike a lock, may be held across a commit: only callers with the same key wait.
#[derive(Debug)]
pub(crate) struct Turns<K> {
    taken: Mutex<HashSet<K>>,
    given_back: Condvar,
}

impl<K: Eq + Hash + Clone> Turns<K> {
    pub(crate) fn new() -> Self {
        Self { taken: Mutex::new(HashSet::new()), given_back: Condvar::new() }
    }

    /// Waits until nobody has the turn of `key`, then takes it.
    pub(crate) fn take(&self, key: &K) -> Turn<'_, K> {
        let mut taken = lock(&self.taken);
        while taken.contains(key) {
            taken = self.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        taken.insert(key.clone());
        Turn { turns: self, key: key.clone() }
    }

    /// Takes the turn of `key` if nobody has it.
    pub(crate) fn try_take(&self, key: &K) -> Option<Turn<'_, K>> {
        lock(&self.taken).insert(key.clone()).then(|| Turn { turns: self, key: key.clone() })
    }
}

/// Given back when dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a, K: Eq + Hash + Clone> {
    turns: &'a Turns<K>,
    key: K,
}

impl<K: Eq + Hash + Clone> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        lock(&self.turns.taken).remove(&self.key);
        self.turns.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::Turns;

    #[test]
    fn a_turn_is_given_once_and_given_back() {
        let turns = Turns::new();
        let first = turns.take(&7);
        assert!(turns.try_take(&7).is_none());
        assert!(turns.try_take(&8).is_some());
        drop(first);
        assert!(turns.try_take(&7).is_some());
    }
}
