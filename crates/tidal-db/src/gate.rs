//! The gate: may this signal shape what others see?
//!
//! The answer must stay true until the signal is in every aggregate, so the permit holds the
//! read lock of the user's shard of the status map, whether the user has a record or not: a
//! leave needs that shard's write lock to shut the gate, so it waits for the signals before it,
//! and every signal after it finds the gate shut.
//!
//! The order of locks stands at the head of `db.rs`. No call into the store or into a caller's code
//! is made under them.

use tidal_entities::community::{CommunityMembership, MembershipStatus};
use tidal_entities::{AwayPeriods, Withheld};

use crate::canary::{Break, Canary};
use crate::report::DamagedUser;
use crate::shards::{WaitingWriters, read_shard, write_entry};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::map::{DashMap, DashSet, Entry};
use crate::sync::thread;

/// When a signal took place, and whether that can fall into an away period of the past.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventTime {
    /// Now: never late, even if the clock stepped back.
    Now(u64),
    /// At a time that the caller named.
    At(u64),
}

impl EventTime {
    pub(crate) fn ns(self) -> u64 {
        match self {
            Self::Now(ns) | Self::At(ns) => ns,
        }
    }
}

/// Whether one signal is withheld, and the lock that keeps the answer true.
#[derive(Debug)]
pub(crate) struct ForwardPermit<G> {
    withheld: Option<Withheld>,
    _status_shard: Option<G>,
}

impl<G> ForwardPermit<G> {
    /// Why the signal must not be forwarded; `None` if it may.
    pub(crate) fn withheld(&self) -> Option<Withheld> {
        self.withheld
    }

    #[cfg(feature = "bench-without-gate")]
    pub(crate) fn without_gate() -> ForwardPermit<G> {
        Self { withheld: None, _status_shard: None }
    }
}

/// What the gate knows beside the status map itself.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Users whose leave is staged but not yet on disk: shut in effect, not yet said.
    leaving: DashSet<u64>,
    /// The size of `leaving`, so that a signal pays one load when nobody is leaving. Changed only
    /// under the write lock of the leaver's status shard, read under the read lock of the same.
    leaving_count: AtomicUsize,
    /// Users whose record cannot be believed. Their status is Left.
    damaged: DashMap<u64, DamagedUser>,
    /// Closed away periods of users who came back.
    away: DashMap<u64, AwayPeriods>,
    left_count: AtomicU64,
    /// Leaves and rejoins that wait for the signals before them.
    waiting: WaitingWriters,
    canary: Canary,
}

impl Gate {
    pub(crate) fn new(status: &DashMap<u64, CommunityMembership>, canary: Canary) -> Self {
        Self { canary, waiting: WaitingWriters::of(status), ..Self::default() }
    }

    /// Takes the permit for one signal of `user_id`. Held until the signal is in every aggregate.
    #[cfg(not(feature = "bench-without-gate"))]
    pub(crate) fn permit<'a>(
        &'a self,
        status: &'a DashMap<u64, CommunityMembership>,
        user_id: u64,
        event_time: EventTime,
    ) -> ForwardPermit<impl Sized + 'a> {
        let (shard, record) = read_shard(status, &self.waiting, user_id, |record| *record);
        let withheld = self.decide(record.as_ref(), user_id, event_time);
        let shard = if self.canary.is(Break::RacyGate) {
            drop(shard);
            // Long enough for a leave to return in between.
            thread::sleep(std::time::Duration::from_micros(200));
            None
        } else {
            Some(shard)
        };
        ForwardPermit { withheld, _status_shard: shard }
    }

    /// The permit from the last scope to the log: it stays as it was taken.
    pub(crate) fn until_staged<G>(&self, permit: ForwardPermit<G>) -> ForwardPermit<G> {
        if self.canary.is(Break::PermitEndsEarly) {
            return ForwardPermit { withheld: permit.withheld, _status_shard: None };
        }
        permit
    }

    /// The permit from the cohorts to the communities: it stays as it was taken.
    pub(crate) fn for_next_scope<G>(
        &self,
        permit: ForwardPermit<G>,
        ask: impl FnOnce() -> ForwardPermit<G>,
    ) -> ForwardPermit<G> {
        if self.canary.is(Break::PermitPerScope) {
            drop(permit);
            return ask();
        }
        permit
    }

    /// Unknown before Left before `AwayPeriod`. Users without a record never left.
    #[cfg(not(feature = "bench-without-gate"))]
    fn decide(
        &self,
        record: Option<&CommunityMembership>,
        user_id: u64,
        event_time: EventTime,
    ) -> Option<Withheld> {
        let leaving = self.leaving_count.load(Ordering::Acquire) != 0 && self.leaving.contains(&user_id);
        if leaving || record.is_some_and(|record| record.status == MembershipStatus::Left) {
            let unknown = self.damaged.contains_key(&user_id);
            return Some(if unknown { Withheld::Unknown } else { Withheld::Left });
        }
        record?;
        let EventTime::At(at_ns) = event_time else { return None };
        if self.canary.is(Break::AwayPeriodsIgnored) {
            return None;
        }
        let late = self.away.get(&user_id).is_some_and(|periods| periods.contains(at_ns));
        late.then_some(Withheld::AwayPeriod)
    }

    /// Shuts the gate of `user_id` in effect, before the leave is on disk, and runs `stage` while
    /// no signal of the user is under way: whatever is staged later is withheld.
    pub(crate) fn shut_and<R>(
        &self,
        status: &DashMap<u64, CommunityMembership>,
        user_id: u64,
        stage: impl FnOnce() -> R,
    ) -> R {
        let entry = write_entry(status, &self.waiting, user_id);
        if self.leaving.insert(user_id) {
            self.leaving_count.fetch_add(1, Ordering::Release);
        }
        let result = stage();
        drop(entry);
        result
    }

    /// Says that `membership` is the user's, and ends the time in which a leave was under way.
    pub(crate) fn publish(
        &self,
        status: &DashMap<u64, CommunityMembership>,
        membership: CommunityMembership,
    ) {
        let user_id = membership.user_id;
        let entry = write_entry(status, &self.waiting, user_id);
        let was_left = matches!(&entry, Entry::Occupied(old) if old.get().status == MembershipStatus::Left);
        let is_left = membership.status == MembershipStatus::Left;
        match (was_left, is_left) {
            (false, true) => self.left_count.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.left_count.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
        let shown = entry.insert(membership);
        if self.leaving.remove(&user_id).is_some() {
            self.leaving_count.fetch_sub(1, Ordering::Release);
        }
        drop(shown);
    }

    /// Remembers a closed away period; called before the gate opens again.
    pub(crate) fn add_away_period(&self, user_id: u64, left_at_ns: u64, rejoined_at_ns: u64) {
        if self.canary.is(Break::AwayPeriodLost) {
            return;
        }
        self.away.entry(user_id).or_default().add(left_at_ns, rejoined_at_ns);
    }

    /// The closed away periods of `user_id`.
    pub(crate) fn away_periods(&self, user_id: u64) -> AwayPeriods {
        self.away.get(&user_id).map(|periods| periods.clone()).unwrap_or_default()
    }

    /// Sets the closed away periods found at open.
    pub(crate) fn restore_away_periods(&self, user_id: u64, periods: AwayPeriods) {
        self.away.insert(user_id, periods);
    }

    /// Sets the number of users who are Left, as found at open.
    pub(crate) fn restore_left_count(&self, left_count: u64) {
        self.left_count.store(left_count, Ordering::Relaxed);
    }

    /// Keeps the gate of `user_id` shut until it is settled.
    pub(crate) fn mark_damaged(&self, user: DamagedUser) {
        self.damaged.insert(user.user_id, user);
    }

    /// What is wrong with the record of `user_id`, if anything.
    pub(crate) fn damaged(&self, user_id: u64) -> Option<DamagedUser> {
        self.damaged.get(&user_id).map(|user| user.clone())
    }

    /// The record of `user_id` was written anew.
    pub(crate) fn settled(&self, user_id: u64) {
        self.damaged.remove(&user_id);
    }

    /// How many users count as Left.
    pub(crate) fn left_count(&self) -> u64 {
        self.left_count.load(Ordering::Relaxed)
    }
}
