//! Calls that change something, and what the oracle says of each.

use std::collections::BTreeMap;

use tidal_db::{Action, CommunityMembership, Event, TransitionKind};

use super::compare::membership;
use super::oracle::{Applied, Oracle, Receipt, Refusal, Source, When};
use super::world::{BAD_WEIGHTS, Mode, USERS, WEIGHTS};

#[derive(Clone, Debug)]
pub enum Call {
    Join {
        user: u64,
        community: u64,
    },
    Quit {
        user: u64,
        community: u64,
    },
    Attribute {
        user: u64,
        name: &'static str,
        value: &'static str,
    },
    Signal {
        user: u64,
        item: u64,
        signal_type: &'static str,
        weight: f64,
    },
    SignalAt {
        user: u64,
        item: u64,
        signal_type: &'static str,
        weight: f64,
        at_ns: u64,
    },
    SignalExact {
        user: u64,
        item: u64,
        signal_type: &'static str,
        weight_nanos: i64,
        at_ns: Option<u64>,
    },
    Leave {
        user: u64,
    },
    Rejoin {
        user: u64,
    },
    Repair {
        user: u64,
    },
    Deliver {
        source: &'static str,
        first_position: u64,
        events: Vec<Event>,
    },
    /// What was applied, from the event of this number on, and something new.
    Redeliver {
        source: &'static str,
        from: usize,
        new: Vec<Event>,
    },
    Flush,
}

/// How a call ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Done,
    /// For any of these reasons, and nothing was changed.
    Refused(Vec<Refusal>),
    Membership(CommunityMembership),
    /// There was nothing to write.
    Unchanged(CommunityMembership),
    Receipt(Receipt),
    /// With what was delivered.
    Applied {
        first_position: u64,
        events: Vec<Event>,
        outcome: Applied,
    },
}

impl Answer {
    /// Whether all that was done so far is on disk when a call of this kind ends so.
    pub fn is_durable(&self, mode: Mode) -> bool {
        match self {
            Self::Done | Self::Membership(_) => true,
            Self::Receipt(_) => mode == Mode::Immediate,
            Self::Refused(_) | Self::Unchanged(_) => false,
            Self::Applied { outcome, .. } => {
                matches!(outcome, Applied::Whole(_) | Applied::Stopped { .. })
            }
        }
    }
}

fn weight_nanos(weight: f64) -> Option<i64> {
    WEIGHTS.iter().find(|(known, _)| known.total_cmp(&weight).is_eq()).map(|(_, nanos)| *nanos)
}

impl Oracle {
    pub fn call(&mut self, call: &Call, now_ns: u64) -> Answer {
        match call {
            Call::Join { user, community } => self.join(*user, *community, now_ns),
            Call::Quit { user, community } => self.quit(*user, *community, now_ns),
            Call::Attribute { user, name, value } => {
                if let Err(reason) = self.set_attribute(*user, name, value, now_ns) {
                    return Answer::Refused(vec![reason]);
                }
            }
            Call::Signal { user, item, signal_type, weight } => {
                let weight = (*weight, weight_nanos(*weight));
                return self.signal_call((*user, *item), signal_type, weight, When::Now(now_ns), now_ns);
            }
            Call::SignalAt { user, item, signal_type, weight, at_ns } => {
                let weight = (*weight, weight_nanos(*weight));
                return self.signal_call((*user, *item), signal_type, weight, When::At(*at_ns), now_ns);
            }
            Call::SignalExact { user, item, signal_type, weight_nanos, at_ns } => {
                let when = at_ns.map_or(When::Now(now_ns), When::At);
                return self.signal_call(
                    (*user, *item),
                    signal_type,
                    (0.0, Some(*weight_nanos)),
                    when,
                    now_ns,
                );
            }
            Call::Leave { user } => {
                self.leave(*user, now_ns);
                return Answer::Membership(membership(self, *user));
            }
            Call::Rejoin { user } => {
                if self.user(*user).damaged {
                    return Answer::Refused(vec![Refusal::Damaged]);
                }
                self.rejoin(*user, now_ns);
                return Answer::Membership(membership(self, *user));
            }
            Call::Repair { user } => {
                if !self.user(*user).damaged {
                    return Answer::Unchanged(membership(self, *user));
                }
                self.repair(*user, now_ns);
                return Answer::Membership(membership(self, *user));
            }
            Call::Deliver { source, first_position, events } => {
                return self.delivered(source, *first_position, events.clone(), now_ns);
            }
            Call::Redeliver { source, from, new } => {
                let (first_position, events) = self.again(source, *from, new);
                return self.delivered(source, first_position, events, now_ns);
            }
            Call::Flush => {}
        }
        Answer::Done
    }

    /// The states in which a crash within `call` can leave what came before it: one after each event.
    pub fn within(&self, call: &Call, now_ns: u64) -> Vec<Self> {
        let (source, first_position, events) = match call {
            Call::Deliver { source, first_position, events } => (source, *first_position, events.clone()),
            Call::Redeliver { source, from, new } => {
                let (first_position, events) = self.again(source, *from, new);
                (source, first_position, events)
            }
            _ => return Vec::new(),
        };
        let prefix = |len: usize| {
            let mut oracle = self.clone();
            oracle.apply(source, first_position, &events[..len], now_ns);
            oracle
        };
        (1..events.len()).map(prefix).collect()
    }

    fn delivered(&mut self, source: &str, first_position: u64, events: Vec<Event>, now_ns: u64) -> Answer {
        let outcome = self.apply(source, first_position, &events, now_ns);
        Answer::Applied { first_position, events, outcome }
    }

    fn signal_call(
        &mut self,
        (user, item): (u64, u64),
        signal_type: &str,
        (weight, weight_nanos): (f64, Option<i64>),
        when: When,
        now_ns: u64,
    ) -> Answer {
        let mut reasons = Vec::new();
        if BAD_WEIGHTS.iter().any(|bad| bad.total_cmp(&weight).is_eq()) {
            reasons.push(Refusal::Weight);
        }
        if matches!(when, When::At(at_ns) if Self::is_ahead(at_ns, now_ns)) {
            reasons.push(Refusal::Ahead);
        }
        let signal_type = self.type_index(signal_type);
        if signal_type.is_none() {
            reasons.push(Refusal::SignalType);
        }
        match (signal_type, weight_nanos) {
            (Some(signal_type), Some(weight_nanos)) if reasons.is_empty() => {
                Answer::Receipt(self.signal(user, item, signal_type, weight_nanos, when))
            }
            _ => Answer::Refused(reasons),
        }
    }

    /// What `source` delivered from its event number `from` on, and `new` after it. Positions that
    /// were left out are filled.
    fn again(&self, source: &str, from: usize, new: &[Event]) -> (u64, Vec<Event>) {
        let Some(known) = self.sources.get(source) else { return (3, new.to_vec()) };
        let (first_position, _) = known.applied[from % known.applied.len()];
        let by_position: BTreeMap<_, _> = known.applied.iter().cloned().collect();
        let filler = || Event { at_ns: 1, action: Action::Join { user: USERS[0], community: 0 } };
        let before = (first_position..=Source::reached(known))
            .map(|position| by_position.get(&position).cloned().unwrap_or_else(filler));
        (first_position, before.chain(new.iter().cloned()).collect())
    }

    /// Users whose record is damaged, in order of their ids.
    pub fn damaged(&self) -> Vec<u64> {
        self.users.iter().filter(|(_, user)| user.damaged).map(|(id, _)| *id).collect()
    }

    /// How many users have a record that can be believed.
    pub fn sound_records(&self) -> usize {
        let is_sound = |moved: &[super::oracle::Moved]| matches!(moved, [first, ..] if first.kind == TransitionKind::Leave);
        self.users.values().filter(|user| !user.damaged && is_sound(&user.transitions)).count()
    }
}
