//! Leaving the community layer, and returning to it.
//!
//! A leave shuts the gate in effect, is written, and is then published in the status map; a rejoin
//! is written, and is then published. One transition of a user at a time: whoever has the user's
//! turn holds it until the commit ended, so memory and disk see the same order.

use bytes::Bytes;
use tidal_entities::community::{CommunityMembership, MembershipStatus, serialize_membership};
use tidal_entities::{LogEntry, Transition, TransitionKind, decode_transition, encode_transition};
use tidal_keys::{EntityId, Tag, encode_key, entity_tag_prefix};

use crate::canary::Break;
use crate::log_state::{Origin, Staging, Ticket};
use crate::report::DamagedUser;
use crate::sync::Turn;
use crate::{Error, Result, TidalDb};

/// The earliest time of a transition: 0 stands for "never" in the record.
const EARLIEST_TRANSITION_NS: u64 = 1;

/// A transition that is staged, and published once its commit ended.
#[derive(Debug)]
pub(crate) struct StagedTransition {
    pub(crate) membership: CommunityMembership,
    pub(crate) ticket: Ticket,
    /// Set by a rejoin: the away period that it closes.
    closes: Option<(u64, u64)>,
}

/// What asking for a transition came to.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The user is already there.
    Unchanged(CommunityMembership, Ticket),
    /// It has to be committed, and published with [`TidalDb::settle_transition`].
    Staged(StagedTransition),
}

impl TidalDb {
    /// Withdraws `user_id` from the whole community layer. Once this returns `Ok`, it is on disk,
    /// and nothing that the user does reaches a cohort or community aggregate until a rejoin;
    /// signals of the user that run beside this call land wholly before it or are withheld.
    ///
    /// Leaving while Left changes nothing: `left_at_ns` stays that of the first leave. A user never
    /// seen before can leave. Of a user whose record is damaged this settles the record.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use tidal_db::{ManualClock, MembershipStatus, Schema, TidalDb};
    /// # let schema = Schema::builder().signal("view", Duration::from_secs(3600)).build()?;
    /// let clock = Arc::new(ManualClock::new(100));
    /// let db = TidalDb::builder().schema(schema).clock(clock.clone()).ephemeral().open()?;
    /// db.leave_community_layer(7)?;
    /// clock.set(999);
    /// let membership = db.leave_community_layer(7)?;
    /// assert_eq!(membership.status, MembershipStatus::Left);
    /// assert_eq!(membership.left_at_ns, Some(100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Latched`] if it could not be written, [`Error::Closed`]. The gate is shut in this
    /// process all the same; whether the leave is on disk shows after reopening.
    pub fn leave_community_layer(&self, user_id: u64) -> Result<CommunityMembership> {
        let (_turn, at_ns) = self.take_transition_turn(user_id);
        self.settle_now(self.stage_leave(user_id, at_ns, None)?)
    }

    /// Lets the signals of `user_id` flow again: those that take place from now on. On disk when
    /// this returns `Ok`. Rejoining while Active changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::DamagedRecord`] if the user's record cannot be believed: settle it first with
    /// [`repair_community_layer`](Self::repair_community_layer). [`Error::Latched`] if it could not
    /// be written, [`Error::Closed`]. The gate stays shut in this process; disk decides at reopening.
    pub fn rejoin_community_layer(&self, user_id: u64) -> Result<CommunityMembership> {
        let (turn, at_ns) = self.take_transition_turn(user_id);
        let asked = self.stage_rejoin(user_id, at_ns, None)?;
        let _turn = (!self.inner.canary.is(Break::RejoinOvertaken)).then_some(turn);
        self.settle_now(asked)
    }

    /// Whether `user_id` is Active or Left, and when they last left: the first leave of that time. Users who never
    /// left are Active. Said only once it is on disk.
    #[must_use]
    pub fn community_layer_status(&self, user_id: u64) -> CommunityMembership {
        self.inner
            .community_leave_status
            .get(&user_id)
            .map_or_else(|| CommunityMembership::default_active(user_id), |membership| *membership)
    }

    /// How many users are Left. Costs the same whatever their number.
    #[must_use]
    pub fn left_count(&self) -> u64 {
        self.inner.gate.left_count()
    }

    /// All users who are Left, in order of their ids.
    #[must_use]
    pub fn left_users(&self) -> Vec<CommunityMembership> {
        let mut left: Vec<_> = self
            .inner
            .community_leave_status
            .iter()
            .filter(|membership| membership.status == MembershipStatus::Left)
            .map(|membership| *membership)
            .collect();
        left.sort_unstable_by_key(|membership| membership.user_id);
        left
    }

    /// All leaves and rejoins of `user_id` that are on disk, oldest first.
    ///
    /// With [`history`](Self::history) they show that nothing came after a leave: each has its `sequence`, the place in
    /// the order of everything. Times do not show it, since a late signal is dated before the leave that withholds it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tidal_db::{HistoryEvent, Schema, TidalDb, TransitionKind};
    /// # let schema = Schema::builder().signal("view", Duration::from_secs(3600)).build()?;
    /// # let db = TidalDb::builder().schema(schema).ephemeral().open()?;
    /// db.signal(7, 1752, "view", 1.0)?;
    /// db.leave_community_layer(7)?;
    /// db.signal(7, 1752, "view", 1.0)?;
    /// let signals = db.history(7)?.collect::<Result<Vec<HistoryEvent>, _>>()?;
    /// let moves = db.membership_history(7)?;
    /// for (index, leave) in moves.iter().enumerate().filter(|(_, moved)| moved.kind == TransitionKind::Leave) {
    ///     let until = moves.get(index + 1).map_or(u64::MAX, |rejoin| rejoin.sequence);
    ///     let mut after = signals.iter().filter(|signal| (leave.sequence..until).contains(&signal.sequence));
    ///     assert!(after.all(|signal| signal.withheld.is_some()));
    /// }
    /// assert!(db.verify()?.differences.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if a stored transition does not decode; [`Error::Storage`],
    /// [`Error::Closed`].
    pub fn membership_history(&self, user_id: u64) -> Result<Vec<Transition>> {
        self.inner.log.check_open()?;
        let prefix = entity_tag_prefix(EntityId::new(user_id), Tag::CommunityTransition);
        let mut history = Vec::new();
        for row in self.inner.storage.users_engine().scan_prefix(&prefix)? {
            let (key, value) = row?;
            let (_, transition) = decode_transition(&key, &value).map_err(|cause| {
                Error::undecodable(format!("a transition of user {user_id} does not decode"), cause)
            })?;
            history.push(transition);
        }
        Ok(history)
    }

    /// Settles a damaged record as Left, and writes record and history anew. `left_at_ns` is that
    /// of the history where the history says Left, the present time where it does not. Of a user
    /// whose record is sound this changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Latched`] if it could not be written, [`Error::Closed`]. The gate stays shut.
    pub fn repair_community_layer(&self, user_id: u64) -> Result<CommunityMembership> {
        let (_turn, at_ns) = self.take_transition_turn(user_id);
        if self.inner.gate.damaged(user_id).is_none() {
            self.inner.log.check_writable()?;
            return Ok(self.community_layer_status(user_id));
        }
        self.settle_now(self.stage_leave(user_id, at_ns, None)?)
    }

    /// Takes the turn of `user_id` and the time of the transition. No caller's clock is read under a
    /// turn; where another transition of the user came in between, the time is read anew, so that it
    /// is not earlier than what it follows.
    fn take_transition_turn(&self, user_id: u64) -> (Turn<'_, u64>, u64) {
        loop {
            let before = self.community_layer_status(user_id);
            let at_ns = self.now_ns();
            let turn = self.inner.transition_turns.take(&user_id);
            let is_stale = self.community_layer_status(user_id) != before;
            if !is_stale || self.inner.canary.is(Break::StaleTransitionTime) {
                return (turn, at_ns);
            }
        }
    }

    /// Shuts the gate of `user_id` and stages the leave. The caller has the user's turn.
    pub(crate) fn stage_leave(&self, user_id: u64, at_ns: u64, origin: Option<&Origin<'_>>) -> Result<Asked> {
        let inner = &self.inner;
        let at_ns = at_ns.max(EARLIEST_TRANSITION_NS);
        let current = self.community_layer_status(user_id);
        let damaged = inner.gate.damaged(user_id);
        let again = current.status == MembershipStatus::Left && damaged.is_none();
        if again && !inner.canary.is(Break::LastLeaveCounts) {
            let ticket = self.stage_nothing(at_ns, origin)?;
            return Ok(Asked::Unchanged(current, ticket));
        }
        let stale_keys = if damaged.is_some() {
            inner.log.check_writable()?;
            self.transition_keys(user_id)?
        } else {
            Vec::new()
        };
        let known_left_at_ns = damaged.as_ref().and_then(|user| left_at_of(&user.logged));
        let membership = CommunityMembership {
            user_id,
            status: MembershipStatus::Left,
            left_at_ns: Some(known_left_at_ns.unwrap_or(at_ns)),
        };
        let staged = inner.gate.shut_and(&inner.community_leave_status, user_id, || {
            inner.log.stage(origin, |staging| {
                let transition = if known_left_at_ns.is_none() {
                    let sequence = staging.append(&LogEntry::Leave { user: user_id, at_ns }, at_ns)?;
                    Some(Transition { sequence, kind: TransitionKind::Leave, at_ns })
                } else {
                    None
                };
                // Without an entry of its own or of its source, no commit would keep the time.
                if origin.is_some() {
                    staging.see_time(at_ns);
                }
                if let Some(user) = &damaged {
                    self.rewrite_history(staging, &stale_keys, user);
                }
                if let Some(transition) = transition {
                    self.put_transition(staging, user_id, &transition);
                    staging.fingerprint().add_transition(user_id, &transition);
                }
                self.persist_leave_record(staging, membership);
                Ok(())
            })
        });
        match staged {
            Ok(((), ticket)) => Ok(Asked::Staged(StagedTransition { membership, ticket, closes: None })),
            Err(error) => {
                inner.gate.publish(&inner.community_leave_status, membership);
                Err(error)
            }
        }
    }

    /// Stages the return of `user_id`. The caller has the user's turn.
    pub(crate) fn stage_rejoin(
        &self,
        user_id: u64,
        at_ns: u64,
        origin: Option<&Origin<'_>>,
    ) -> Result<Asked> {
        let inner = &self.inner;
        let at_ns = at_ns.max(EARLIEST_TRANSITION_NS);
        if let Some(user) = inner.gate.damaged(user_id) {
            if !inner.canary.is(Break::DamagedRejoined) {
                // A handle through which nothing can be settled says so first.
                inner.log.check_writable()?;
                return Err(Error::DamagedRecord { user_id, cause: user.cause });
            }
            inner.gate.settled(user_id);
        }
        let current = self.community_layer_status(user_id);
        if current.status == MembershipStatus::Active {
            let ticket = self.stage_nothing(at_ns, origin)?;
            return Ok(Asked::Unchanged(current, ticket));
        }
        let membership = CommunityMembership { status: MembershipStatus::Active, ..current };
        let ((), ticket) = inner.log.stage(origin, |staging| {
            let sequence = staging.append(&LogEntry::Rejoin { user: user_id, at_ns }, at_ns)?;
            let transition = Transition { sequence, kind: TransitionKind::Rejoin, at_ns };
            self.put_transition(staging, user_id, &transition);
            staging.fingerprint().add_transition(user_id, &transition);
            self.persist_leave_record(staging, membership);
            Ok(())
        })?;
        let closes = membership.left_at_ns.map(|left_at_ns| (left_at_ns, at_ns));
        Ok(Asked::Staged(StagedTransition { membership, ticket, closes }))
    }

    /// Publishes a staged transition whose commit ended with `outcome`: a leave in any case, a
    /// rejoin only if it is on disk.
    pub(crate) fn settle_transition(&self, staged: &StagedTransition, committed: bool) {
        let inner = &self.inner;
        let membership = staged.membership;
        match membership.status {
            MembershipStatus::Left => {
                if committed {
                    inner.gate.settled(membership.user_id);
                }
                inner.gate.publish(&inner.community_leave_status, membership);
            }
            MembershipStatus::Active if committed || inner.canary.is(Break::FailedRejoinPublished) => {
                if inner.canary.is(Break::AwayPeriodAfterRejoin) {
                    inner.gate.publish(&inner.community_leave_status, membership);
                }
                if let Some((left_at_ns, rejoined_at_ns)) = staged.closes {
                    inner.gate.add_away_period(membership.user_id, left_at_ns, rejoined_at_ns);
                }
                inner.gate.publish(&inner.community_leave_status, membership);
            }
            MembershipStatus::Active => {}
        }
    }

    fn settle_now(&self, asked: Asked) -> Result<CommunityMembership> {
        match asked {
            Asked::Unchanged(membership, ticket) => {
                self.inner.log.wait_durable(ticket)?;
                Ok(membership)
            }
            Asked::Staged(staged) => {
                let outcome = if self.inner.canary.is(Break::PersistSkipped) {
                    Ok(())
                } else {
                    self.inner.log.wait_durable(staged.ticket)
                };
                self.settle_transition(&staged, outcome.is_ok());
                outcome.map(|()| staged.membership)
            }
        }
    }

    /// Puts the leave record of one user into the commit being staged: the only place from which
    /// one is written, for leaves, rejoins, files of events and repairs alike.
    fn persist_leave_record(&self, staging: &mut Staging<'_>, membership: CommunityMembership) {
        let users = self.inner.storage.users_engine();
        let key = encode_key(EntityId::new(membership.user_id), Tag::CommunityLeave, b"");
        staging.put(users.partition(), &key, &serialize_membership(&membership));
    }

    fn put_transition(&self, staging: &mut Staging<'_>, user_id: u64, transition: &Transition) {
        let (key, value) = encode_transition(user_id, transition);
        staging.put(self.inner.storage.users_engine().partition(), &key, &value);
    }

    /// The keys of the transitions of `user_id` that are stored, whatever is in them.
    fn transition_keys(&self, user_id: u64) -> Result<Vec<Bytes>> {
        let prefix = entity_tag_prefix(EntityId::new(user_id), Tag::CommunityTransition);
        let rows = self.inner.storage.users_engine().scan_prefix(&prefix)?;
        Ok(rows.map(|row| row.map(|(key, _)| key)).collect::<std::result::Result<_, _>>()?)
    }

    /// Replaces the stored history of a damaged user by what the log says.
    fn rewrite_history(&self, staging: &mut Staging<'_>, stale_keys: &[Bytes], user: &DamagedUser) {
        for key in stale_keys {
            staging.delete(self.inner.storage.users_engine().partition(), key);
        }
        for transition in &user.logged {
            self.put_transition(staging, user.user_id, transition);
        }
    }
}

/// The time of the leave with which `history` ends, if it ends with one.
pub(crate) fn left_at_of(history: &[Transition]) -> Option<u64> {
    history.last().filter(|last| last.kind == TransitionKind::Leave).map(|last| last.at_ns)
}
