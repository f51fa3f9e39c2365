//! Signals: recorded always, forwarded only through the gate.

use tidal_entities::{Contribution, SignalEntry, SignalTypeId, Weight, Withheld, WithheldCounts};

use crate::aggregates::Update;
use crate::canary::Break;
use crate::gate::{EventTime, ForwardPermit};
use crate::log_state::{Origin, StagedSignal, Staging};
use crate::scopes::ScopeSetRef;
use crate::{Durability, Error, Result, TidalDb};

/// What became of one signal. The user's history and the item's global aggregate took it in any
/// case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalReceipt {
    /// How many cohorts took it.
    pub cohorts: u32,
    /// How many communities took it.
    pub communities: u32,
    /// Why it was kept from all of them; `None` if it was not.
    pub withheld: Option<Withheld>,
}

/// A signal whose names are looked up and whose values are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResolvedSignal {
    pub(crate) user: u64,
    pub(crate) item: u64,
    pub(crate) signal_type: SignalTypeId,
    pub(crate) event_time: EventTime,
    /// Worked out once for all scopes, before any lock is taken.
    pub(crate) contribution: Contribution,
}

impl TidalDb {
    /// Records that `user_id` acted on `item` now, and forwards it to the cohorts and communities
    /// that the user is in, unless the user left the community layer. A signal without an event
    /// time is never late, even if the clock stepped back.
    ///
    /// `weight` is taken as the shortest decimal that reads as this `f64`, rounded half to even at
    /// 1e-9. When this returns, the signal is visible, and on disk as the chosen
    /// [`Durability`] says.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tidal_db::{Schema, Scope, TidalDb, Withheld};
    /// # let schema = Schema::builder().signal("view", Duration::from_secs(3600)).build()?;
    /// # let db = TidalDb::builder().schema(schema).ephemeral().open()?;
    /// db.join_community(7, 4)?;
    /// assert_eq!(db.signal(7, 1752, "view", 1.0)?.communities, 1);
    /// db.leave_community_layer(7)?;
    /// assert_eq!(db.signal(7, 1752, "view", 1.0)?.withheld, Some(Withheld::Left));
    /// let count = |scope| Ok::<_, tidal_db::Error>(db.aggregate(&scope, 1752, "view")?.map(|a| a.count));
    /// assert_eq!(count(Scope::Community(4))?, Some(1));
    /// assert_eq!(count(Scope::Global)?, Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::UndeclaredSignalType`] and [`Error::Weight`], before anything is recorded;
    /// [`Error::Latched`], [`Error::Closed`], [`Error::ThreadPanicked`] if nothing can be recorded. If the commit itself
    /// fails ([`Error::Latched`] too), whether the signal is on disk shows after reopening.
    pub fn signal(&self, user_id: u64, item: u64, signal_type: &str, weight: f64) -> Result<SignalReceipt> {
        self.signal_exact(user_id, item, signal_type, Weight::try_from(weight)?, None)
    }

    /// The same for an act that took place at `event_time_ns`, ns since the Unix epoch. It is
    /// withheld if the user is away now, or was away then. A time in ms instead of ns reads as a day in
    /// 1970, which is in no away period, so nothing would be withheld as late.
    ///
    /// # Errors
    ///
    /// As for [`signal`](Self::signal), and [`Error::TooFarAhead`] for a time further ahead of the
    /// clock than the allowed skew.
    pub fn signal_at(
        &self,
        user_id: u64,
        item: u64,
        signal_type: &str,
        weight: f64,
        event_time_ns: u64,
    ) -> Result<SignalReceipt> {
        self.signal_exact(user_id, item, signal_type, Weight::try_from(weight)?, Some(event_time_ns))
    }

    /// The same with a weight that an `f64` may not hold exactly; without an event time, now. The event time is
    /// in ns: see [`signal_at`](Self::signal_at).
    ///
    /// # Errors
    ///
    /// As for [`signal_at`](Self::signal_at).
    pub fn signal_exact(
        &self,
        user_id: u64,
        item: u64,
        signal_type: &str,
        weight: Weight,
        event_time_ns: Option<u64>,
    ) -> Result<SignalReceipt> {
        let now_ns = self.now_ns();
        let event_time = match event_time_ns {
            None => EventTime::Now(now_ns),
            Some(at_ns) => {
                self.check_not_ahead(at_ns, now_ns)?;
                EventTime::At(at_ns)
            }
        };
        self.signal_durably(user_id, item, signal_type, weight, event_time)
    }

    /// How many signals were withheld since the database was created, by reason.
    #[must_use]
    pub fn withheld_counts(&self) -> WithheldCounts {
        self.inner.log.withheld()
    }

    fn signal_durably(
        &self,
        user: u64,
        item: u64,
        signal_type: &str,
        weight: Weight,
        event_time: EventTime,
    ) -> Result<SignalReceipt> {
        let declared = self.resolve_signal_type(signal_type)?;
        let contribution = declared.contribution(weight, event_time.ns());
        let signal = ResolvedSignal { user, item, signal_type: declared.id, event_time, contribution };
        let (receipt, staged) = self.record_signal(&signal, None)?;
        self.inner.aggregates.keep_up(&self.inner.log, staged.additions_waiting)?;
        match self.inner.durability {
            Durability::Immediate => {
                self.inner.log.wait_durable(staged.ticket)?;
                if staged.must_wait {
                    self.inner.log.wait_for_checkpoint()?;
                }
            }
            Durability::Batched { .. } if staged.must_wait => {
                self.inner.log.keep_within_bounds(staged.ticket)?;
            }
            Durability::Batched { .. } => {}
        }
        Ok(receipt)
    }

    /// Decides, logs and publishes one signal under one permit, so that all scopes take it or none,
    /// and no total moves after a leave returned. The caller acknowledges it after the commit.
    pub(crate) fn record_signal(
        &self,
        signal: &ResolvedSignal,
        origin: Option<&Origin<'_>>,
    ) -> Result<(SignalReceipt, StagedSignal)> {
        let inner = &self.inner;
        inner.aggregates.check_whole()?;
        let permit = inner.gate.permit(&inner.community_leave_status, signal.user, signal.event_time);
        let withheld = permit.withheld();
        let (profile_lock, scope_set) = loop {
            let (profile_lock, scope_set) = inner.profiles.read(signal.user);
            if withheld.is_some() {
                break (profile_lock, ScopeSetRef::EMPTY);
            }
            if let Some(scope_set) = scope_set {
                break (profile_lock, scope_set);
            }
            drop(profile_lock);
            self.resolve_scopes(signal.user)?;
        };
        let entry = SignalEntry {
            user: signal.user,
            item: signal.item,
            signal_type: signal.signal_type,
            weight: signal.contribution.weight(),
            event_time_ns: signal.event_time.ns(),
            scope_set: scope_set.id,
            withheld,
        };
        let mut update = Update::new(signal.item, signal.signal_type, signal.contribution, scope_set.id);
        let cohorts = try_cohort_attribution(&permit, scope_set, &mut update);
        let permit = inner.gate.for_next_scope(permit, || {
            inner.gate.permit(&inner.community_leave_status, signal.user, signal.event_time)
        });
        let communities = self.try_community_forwarding(&permit, scope_set, &mut update);
        let _permit = inner.gate.until_staged(permit);
        let additions = 1 + cohorts as usize + communities as usize;
        let staged = inner.log.stage_signal(origin, &entry, update, additions)?;
        drop(profile_lock);
        Ok((SignalReceipt { cohorts, communities, withheld }, staged))
    }

    /// Finds out which cohorts and communities take the signals of `user_id`, and gives the set its
    /// number.
    fn resolve_scopes(&self, user_id: u64) -> Result<()> {
        let inner = &self.inner;
        inner.profiles.resolve(user_id, |attributes| {
            let cohorts = inner.schema.cohorts_of(attributes);
            let communities = inner.community_membership.communities_of(user_id);
            let intern = |staging: &mut Staging<'_>| Ok(inner.interner.intern(staging, cohorts, communities));
            Ok(inner.log.stage(None, intern)?.0)
        })
    }

    /// Lets the communities that the user is in take the signal, if the gate does; returns how many.
    fn try_community_forwarding<G>(
        &self,
        permit: &ForwardPermit<G>,
        scope_set: ScopeSetRef,
        update: &mut Update,
    ) -> u32 {
        if permit.withheld().is_some() || self.inner.canary.is(Break::ViewDrifts) {
            return 0;
        }
        update.forward_to_communities();
        scope_set.communities
    }

    /// Refuses a time further ahead of `now_ns` than the allowed skew.
    pub(crate) fn check_not_ahead(&self, at_ns: u64, now_ns: u64) -> Result<()> {
        let allowed_skew_ns = self.inner.allowed_skew_ns;
        if at_ns <= now_ns.saturating_add(allowed_skew_ns) {
            return Ok(());
        }
        Err(Error::TooFarAhead { at_ns, now_ns, allowed_skew_ns })
    }
}

/// Lets the cohorts that the user matches take the signal, if the gate does; returns how many.
fn try_cohort_attribution<G>(permit: &ForwardPermit<G>, scope_set: ScopeSetRef, update: &mut Update) -> u32 {
    if permit.withheld().is_some() {
        return 0;
    }
    update.forward_to_cohorts();
    scope_set.cohorts
}
