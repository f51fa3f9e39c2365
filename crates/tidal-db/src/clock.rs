//! Where "now" comes from.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::sync::atomic::{AtomicU64, Ordering};

/// A source of the present time, in nanoseconds since the Unix epoch.
///
/// A clock may step back: the order of transitions is the order of calls, not of clocks.
/// It is never called while the database holds a lock.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the Unix epoch.
    fn now_ns(&self) -> u64;
}

/// The clock of the operating system. Before 1970 it reads 0, after the year 2554 `u64::MAX`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A clock that stands still until it is told to move: for tests and for replaying files.
///
/// ```
/// use tidal_db::{Clock, ManualClock};
///
/// let clock = ManualClock::new(100);
/// clock.advance(5);
/// assert_eq!(clock.now_ns(), 105);
/// clock.set(7);
/// assert_eq!(clock.now_ns(), 7);
/// ```
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
}

impl ManualClock {
    /// A clock that reads `now_ns`.
    #[must_use]
    pub fn new(now_ns: u64) -> Self {
        Self { now_ns: AtomicU64::new(now_ns) }
    }

    /// Sets the time, forward or back.
    pub fn set(&self, now_ns: u64) {
        self.now_ns.store(now_ns, Ordering::SeqCst);
    }

    /// Moves the time forward by `by_ns`, at most to `u64::MAX`.
    pub fn advance(&self, by_ns: u64) {
        // The closure never answers None, so the update cannot fail.
        let _previous = self
            .now_ns
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| Some(now.saturating_add(by_ns)));
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }
}
