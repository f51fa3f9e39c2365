//! Deliberate breaks, to show that the tests would notice. Compiled only with the feature
//! `canaries`; without it every question here is answered "no" at compile time.

use crate::Result;

/// One way to break a guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(not(feature = "canaries"), expect(unreachable_pub, reason = "exported with the feature only"))]
pub enum Break {
    /// Ask the gate, let go of it, forward (breaks G1).
    RacyGate,
    /// Ask the gate anew for cohorts and for communities, in place of one permit for all (breaks G1).
    PermitPerScope,
    /// Let go of the permit before the signal is in the log and the aggregates (breaks G1).
    PermitEndsEarly,
    /// Give the turn back before the rejoin is published, so that a later leave may overtake it (breaks G1).
    RejoinOvertaken,
    /// Publish a rejoin before the away period that it closes is remembered (breaks G5).
    AwayPeriodAfterRejoin,
    /// Take the time of a transition before the one that it follows had its own (breaks G5).
    StaleTransitionTime,
    /// Answer a leave without writing it (breaks G2).
    PersistSkipped,
    /// Open without reading who left (breaks G3).
    RestoreSkipped,
    /// Take a read of who left that failed for "nobody" (breaks G3).
    FailedReadIsNobody,
    /// Publish a rejoin whose commit failed (breaks G3).
    FailedRejoinPublished,
    /// Rejoin a user whose record is damaged (breaks G3).
    DamagedRejoined,
    /// Keep a withheld signal out of the user's own history (breaks G4).
    HistorySkipped,
    /// Forward late events of away periods (breaks G5).
    AwayPeriodsIgnored,
    /// Let a repeated leave move the time of the first (breaks G6).
    LastLeaveCounts,
    /// Forward to communities without adding it up (breaks G7).
    ViewDrifts,
    /// Add a signal up without moving its item in the ranking (breaks G7).
    RankingStale,
    /// Add a signal up without telling the list of the best items, once there is one (breaks G7).
    ShortlistStale,
    /// Forget that a user was away as soon as the user is back (breaks G5 and G7).
    AwayPeriodLost,
    /// Do not count what is withheld (breaks G8).
    WithheldUncounted,
    /// Commit the effects of a source without its position (breaks G9).
    PositionSkipped,
    /// Panic in the flush thread, with the lock of the log held: what stands on it must go on.
    FlushPanics,
    /// Panic in the thread that makes checkpoints, in the middle of one.
    CheckpointPanics,
    /// Panic in the thread that makes runs, in the middle of one.
    RunsPanic,
}

/// The break in force, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Canary {
    #[cfg(feature = "canaries")]
    broken: Option<Break>,
}

impl Canary {
    #[cfg(feature = "canaries")]
    pub(crate) fn new(broken: Break) -> Self {
        Self { broken: Some(broken) }
    }

    #[cfg(feature = "canaries")]
    pub(crate) fn is(self, what: Break) -> bool {
        self.broken == Some(what)
    }

    /// Panics here, if that is the break.
    #[cfg(feature = "canaries")]
    pub(crate) fn strike(self, what: Break) {
        assert!(!self.is(what), "a panic on purpose: {what:?}");
    }

    #[cfg(not(feature = "canaries"))]
    #[expect(clippy::unused_self, reason = "the same signature as with the feature")]
    pub(crate) const fn strike(self, _what: Break) {}

    /// What failed counts as done, if that is the break.
    #[cfg(feature = "canaries")]
    pub(crate) fn forgive(self, what: Break, outcome: Result<()>) -> Result<()> {
        if self.is(what) { Ok(()) } else { outcome }
    }

    #[cfg(not(feature = "canaries"))]
    #[expect(clippy::unused_self, reason = "the same signature as with the feature")]
    pub(crate) fn forgive(self, _what: Break, outcome: Result<()>) -> Result<()> {
        outcome
    }

    #[cfg(not(feature = "canaries"))]
    #[expect(clippy::unused_self, reason = "the same signature as with the feature")]
    pub(crate) const fn is(self, _what: Break) -> bool {
        false
    }
}
