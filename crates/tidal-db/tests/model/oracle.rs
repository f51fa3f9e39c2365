//! What the database promises, written as plainly as possible: one map each, nothing shared with it.

use std::collections::{BTreeMap, BTreeSet};

use tidal_db::{Action, Event, Scope, TransitionKind, Withheld};

use super::world::{ALLOWED_SKEW_NS, cohorts_of, signal_types};

/// When a signal took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At the time of the clock, never late.
    Now(u64),
    /// At a time that was named.
    At(u64),
}

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Weight,
    Ahead,
    SignalType,
    Limit,
    /// The user's leave record is damaged.
    Damaged,
    /// Positions would pass the last there can be.
    Position,
    /// The scope names a cohort that is not declared.
    Cohort,
}

/// What happened to the stored leave record of a user while nobody looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It has too few bytes.
    CutShort,
    /// Its status is none.
    BadStatus,
    /// It decodes, and says the opposite.
    Flipped,
    /// It is gone.
    Missing,
}

/// The time in a record that [`Damage::Flipped`] makes of nothing.
pub const MADE_UP_LEFT_AT_NS: u64 = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub kind: TransitionKind,
    pub at_ns: u64,
    /// The place among all signals and transitions.
    pub place: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acted {
    pub item: u64,
    pub signal_type: usize,
    pub weight_nanos: i64,
    pub event_time_ns: u64,
    pub withheld: Option<Withheld>,
    /// The place among all signals and transitions.
    pub place: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct User {
    pub left: bool,
    /// Nobody can know whether the user left, so the user counts as Left.
    pub damaged: bool,
    pub left_at_ns: Option<u64>,
    pub attributes: BTreeMap<String, String>,
    pub communities: BTreeSet<u64>,
    pub transitions: Vec<Moved>,
    pub history: Vec<Acted>,
}

impl User {
    /// What the transitions say, whatever became of the record.
    pub fn has_left(&self) -> bool {
        self.transitions.last().is_some_and(|last| last.kind == TransitionKind::Leave)
    }

    /// The time of the newest leave.
    pub fn last_leave_ns(&self) -> Option<u64> {
        self.transitions.iter().rfind(|moved| moved.kind == TransitionKind::Leave).map(|moved| moved.at_ns)
    }

    /// Whether `at_ns` lies in an away period that is over.
    fn was_away(&self, at_ns: u64) -> bool {
        // Leaves and rejoins alternate, so each pair is one period.
        self.transitions.chunks_exact(2).any(|pair| {
            let (left_at, rejoined_at) = (pair[0].at_ns, pair[1].at_ns);
            left_at.min(rejoined_at) <= at_ns && at_ns < left_at.max(rejoined_at)
        })
    }
}

/// One signal as an aggregate sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contributed {
    pub weight_nanos: i64,
    pub event_time_ns: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub first_position: u64,
    pub applied: Vec<(u64, Event)>,
}

impl Source {
    pub fn reached(&self) -> u64 {
        self.applied.last().map_or(0, |(position, _)| *position)
    }
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub cohorts: usize,
    pub communities: usize,
    pub withheld: Option<Withheld>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub left: u64,
    pub away_period: u64,
    pub unknown: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub applied: u64,
    pub skipped: u64,
    pub forwarded: u64,
    pub withheld: Counts,
    pub position: Option<u64>,
}

/// How an `apply` ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    Whole(Report),
    /// It stopped before this position, for any of these reasons.
    Stopped {
        position: u64,
        reasons: Vec<Refusal>,
        report: Report,
    },
    /// Refused, since it begins before anything that was ever applied from the source.
    Before,
    Replaced {
        position: u64,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Oracle {
    pub users: BTreeMap<u64, User>,
    /// By scope, item and place of the signal type in the schema.
    pub taken: BTreeMap<(Scope, u64, usize), Vec<Contributed>>,
    pub withheld: Counts,
    pub sources: BTreeMap<String, Source>,
    pub newest_ns: u64,
    /// How many signals and transitions there were.
    pub recorded: usize,
    /// Whether the schema was extended.
    pub is_grown: bool,
}

impl Counts {
    fn add(&mut self, reason: Withheld) {
        match reason {
            Withheld::Left => self.left += 1,
            Withheld::AwayPeriod => self.away_period += 1,
            Withheld::Unknown => self.unknown += 1,
            other => panic!("the model does not know {other:?}"),
        }
    }
}

impl Oracle {
    pub fn user(&self, user: u64) -> User {
        self.users.get(&user).cloned().unwrap_or_default()
    }

    fn edit(&mut self, user: u64) -> &mut User {
        self.users.entry(user).or_default()
    }

    fn see(&mut self, at_ns: u64) {
        self.newest_ns = self.newest_ns.max(at_ns);
    }

    fn next_place(&mut self) -> usize {
        self.recorded += 1;
        self.recorded - 1
    }

    /// Joins; joining again is no event.
    pub fn join(&mut self, user: u64, community: u64, at_ns: u64) {
        if self.edit(user).communities.insert(community) {
            self.see(at_ns);
        }
    }

    pub fn quit(&mut self, user: u64, community: u64, at_ns: u64) {
        if self.edit(user).communities.remove(&community) {
            self.see(at_ns);
        }
    }

    pub fn set_attribute(&mut self, user: u64, name: &str, value: &str, at_ns: u64) -> Result<(), Refusal> {
        if name.is_empty() || name.len() > 255 || name.contains('=') || value.len() > 1024 {
            return Err(Refusal::Limit);
        }
        let before = self.edit(user).attributes.insert(name.to_owned(), value.to_owned());
        if before.as_deref() != Some(value) {
            self.see(at_ns);
        }
        Ok(())
    }

    /// The first leave counts; the order is that of calls, whatever the clock says.
    pub fn leave(&mut self, user: u64, at_ns: u64) {
        self.turn(user, at_ns, TransitionKind::Leave);
    }

    pub fn rejoin(&mut self, user: u64, at_ns: u64) {
        self.turn(user, at_ns, TransitionKind::Rejoin);
    }

    fn turn(&mut self, user: u64, at_ns: u64, kind: TransitionKind) {
        // 0 stands for "never" in the record.
        let at_ns = at_ns.max(1);
        if self.user(user).damaged {
            assert!(kind == TransitionKind::Leave, "a rejoin of a damaged user is refused before");
            return self.settle(user, at_ns);
        }
        let leaves = kind == TransitionKind::Leave;
        if self.user(user).left == leaves {
            return;
        }
        let place = self.next_place();
        self.see(at_ns);
        let user = self.edit(user);
        user.left = leaves;
        if leaves {
            user.left_at_ns = Some(at_ns);
        }
        user.transitions.push(Moved { kind, at_ns, place });
    }

    /// A leave or a repair of a damaged user: what the transitions say of the time counts, and what they do not
    /// say happens now.
    fn settle(&mut self, user_id: u64, at_ns: u64) {
        let user = self.edit(user_id);
        user.damaged = false;
        user.left = user.has_left();
        user.left_at_ns = user.last_leave_ns();
        self.turn(user_id, at_ns, TransitionKind::Leave);
    }

    /// Settles a damaged record as Left; of a sound one this changes nothing.
    pub fn repair(&mut self, user: u64, at_ns: u64) {
        if self.user(user).damaged {
            self.settle(user, at_ns.max(1));
        }
    }

    /// The stored record becomes another while the database is closed.
    pub fn damage(&mut self, user_id: u64, damage: Damage) {
        let mut user = self.user(user_id);
        if user.transitions.is_empty() && damage == Damage::Missing {
            // Nothing is left that contradicts the log, which says that the user never left.
            (user.damaged, user.left, user.left_at_ns) = (false, false, None);
            self.users.insert(user_id, user);
            return;
        }
        let recorded =
            (damage == Damage::Flipped).then(|| user.last_leave_ns().unwrap_or(MADE_UP_LEFT_AT_NS));
        user.left_at_ns = if user.has_left() { user.last_leave_ns() } else { recorded };
        user.left = true;
        user.damaged = true;
        self.users.insert(user_id, user);
    }

    /// Left when delivered comes before late, and what nobody can know before both.
    pub fn gate(&self, user: u64, when: When) -> Option<Withheld> {
        let user = self.users.get(&user)?;
        if user.damaged {
            return Some(Withheld::Unknown);
        }
        if user.left {
            return Some(Withheld::Left);
        }
        match when {
            When::At(at_ns) if user.was_away(at_ns) => Some(Withheld::AwayPeriod),
            _ => None,
        }
    }

    pub fn signal(
        &mut self,
        user: u64,
        item: u64,
        signal_type: usize,
        weight_nanos: i64,
        when: When,
    ) -> Receipt {
        let withheld = self.gate(user, when);
        let (When::Now(event_time_ns) | When::At(event_time_ns)) = when;
        self.record(user, item, signal_type, weight_nanos, event_time_ns, withheld)
    }

    /// Records a signal about which the gate has decided.
    pub fn record(
        &mut self,
        user_id: u64,
        item: u64,
        signal_type: usize,
        weight_nanos: i64,
        event_time_ns: u64,
        withheld: Option<Withheld>,
    ) -> Receipt {
        let place = self.next_place();
        self.see(event_time_ns);
        let is_grown = self.is_grown;
        let user = self.edit(user_id);
        user.history.push(Acted { item, signal_type, weight_nanos, event_time_ns, withheld, place });
        let cohorts = cohorts_of(&user.attributes, is_grown);
        let communities = user.communities.clone();
        let mut receipt = Receipt { cohorts: 0, communities: 0, withheld };
        let mut scopes = vec![Scope::Global];
        if let Some(reason) = withheld {
            self.withheld.add(reason);
        } else {
            receipt.cohorts = cohorts.len();
            receipt.communities = communities.len();
            scopes.extend(cohorts.into_iter().map(Scope::Cohort));
            scopes.extend(communities.into_iter().map(Scope::Community));
        }
        for scope in scopes {
            let contributed = Contributed { weight_nanos, event_time_ns };
            self.taken.entry((scope, item, signal_type)).or_default().push(contributed);
        }
        receipt
    }

    /// The place of a signal type that is declared.
    pub fn type_index(&self, signal_type: &str) -> Option<usize> {
        signal_types(self.is_grown).iter().position(|(name, _)| *name == signal_type)
    }

    /// Whether a time is refused.
    pub fn is_ahead(at_ns: u64, now_ns: u64) -> bool {
        u128::from(at_ns) > u128::from(now_ns) + u128::from(ALLOWED_SKEW_NS)
    }

    pub fn apply(
        &mut self,
        source_name: &str,
        first_position: u64,
        events: &[Event],
        now_ns: u64,
    ) -> Applied {
        let mut report = Report::default();
        let delivered = || (first_position..).zip(events.iter().cloned());
        if let Some(source) = self.sources.get(source_name) {
            if first_position < source.first_position {
                return Applied::Before;
            }
            let reached = source.reached();
            let gets_there = delivered().any(|(position, _)| position == reached);
            let begins_here = source.first_position == first_position;
            let same = delivered()
                .take_while(|(position, _)| *position <= reached)
                .eq(source.applied.iter().cloned());
            if begins_here && gets_there && !same {
                return Applied::Replaced { position: reached };
            }
        }
        for (position, event) in delivered() {
            if self.sources.get(source_name).is_some_and(|source| position <= source.reached()) {
                report.skipped += 1;
                continue;
            }
            if let Err(reasons) = self.apply_one(&event, now_ns, &mut report) {
                report.position = self.sources.get(source_name).map(Source::reached);
                return Applied::Stopped { position, reasons, report };
            }
            report.applied += 1;
            // A transition that changes nothing is an event all the same, and none is earlier than 1.
            let is_transition = matches!(event.action, Action::Leave { .. } | Action::Rejoin { .. });
            self.see(event.at_ns.max(u64::from(is_transition)));
            self.sources
                .entry(source_name.to_owned())
                .or_insert_with(|| Source { first_position, applied: Vec::new() })
                .applied
                .push((position, event));
        }
        report.position = self.sources.get(source_name).map(Source::reached);
        Applied::Whole(report)
    }

    fn apply_one(&mut self, event: &Event, now_ns: u64, report: &mut Report) -> Result<(), Vec<Refusal>> {
        let at_ns = event.at_ns;
        let mut reasons = Vec::new();
        if Self::is_ahead(at_ns, now_ns) {
            reasons.push(Refusal::Ahead);
        }
        if let Action::Signal { signal_type, .. } = &event.action
            && self.type_index(signal_type).is_none()
        {
            reasons.push(Refusal::SignalType);
        }
        if let Action::Rejoin { user } = &event.action
            && self.user(*user).damaged
        {
            reasons.push(Refusal::Damaged);
        }
        if !reasons.is_empty() {
            return Err(reasons);
        }
        match &event.action {
            Action::SetAttribute { user, name, value } => {
                return self.set_attribute(*user, name, value, at_ns).map_err(|reason| vec![reason]);
            }
            Action::Join { user, community } => self.join(*user, *community, at_ns),
            Action::Quit { user, community } => self.quit(*user, *community, at_ns),
            Action::Leave { user } => self.leave(*user, at_ns),
            Action::Rejoin { user } => self.rejoin(*user, at_ns),
            Action::Signal { user, item, signal_type, weight } => {
                let signal_type = self.type_index(signal_type).expect("looked up above");
                let receipt = self.signal(*user, *item, signal_type, weight.nanos(), When::At(at_ns));
                match receipt.withheld {
                    Some(reason) => report.withheld.add(reason),
                    None => report.forwarded += 1,
                }
            }
            other => panic!("the model does not know {other:?}"),
        }
        Ok(())
    }
}
