//! Whether one order explains the calls that concern one user.
//!
//! What is promised, as a machine that does one step at a time. A signal asks the gate and is in all the scopes
//! that take it in one step, a read is one, and so is a rejoin. A leave shuts the gate in one step, and its status
//! is said in a later one. Leaves and rejoins take place in the order in which the disk has them. Every step is
//! taken between a call and its return. The calls are as promised if some order of the steps gives every answer.

use std::collections::HashSet;

use tidal_interleavings::{CommunityMembership, MembershipStatus, Transition, TransitionKind, Withheld};

use crate::act::{Call, Said};
use crate::stage::GLOBAL;

/// What happened to one user: the calls, and the leaves and rejoins that the disk has.
pub struct UserStory<'a> {
    pub user: u64,
    pub calls: &'a [Call],
    pub transitions: &'a [Transition],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    /// Bit n for call n.
    done: u32,
    /// So many leaves and rejoins are in force.
    in_force: usize,
    /// The leave that is in force and not yet said.
    unsaid: Option<usize>,
}

impl UserStory<'_> {
    pub fn has_an_order(&self) -> bool {
        assert!(self.calls.len() <= 32, "one bit of a state for each call");
        let mut tried = HashSet::new();
        let mut open = vec![State::default()];
        while let Some(state) = open.pop() {
            if self.is_end(&state) {
                return true;
            }
            if tried.insert(state) {
                open.extend((0..self.calls.len()).filter_map(|call| self.step(state, call)));
            }
        }
        false
    }

    fn is_end(&self, state: &State) -> bool {
        state.done.count_ones() as usize == self.calls.len()
            && state.in_force == self.transitions.len()
            && state.unsaid.is_none()
    }

    /// The next step of `index`, if it can be taken now.
    fn step(&self, mut state: State, index: usize) -> Option<State> {
        let call = &self.calls[index];
        if state.done & (1 << index) != 0 {
            return None;
        }
        let comes_first = |other: &Call| other.returned_at < call.made_at;
        let is_open = |other: usize| state.done & (1 << other) == 0;
        if self.calls.iter().enumerate().any(|(other, earlier)| comes_first(earlier) && is_open(other)) {
            return None;
        }
        let is_done = match call.said {
            Said::Signal { at_ns, withheld, .. } => self.decide(&state, at_ns) == withheld,
            Said::Read { scope, marks } => self.taken(&state, scope) == marks,
            Said::Status(said) => self.status(state.in_force - usize::from(state.unsaid.is_some())) == said,
            Said::Leave(said) if state.unsaid == Some(index) => {
                state.unsaid = None;
                self.status(state.in_force) == said
            }
            // One transition of a user at a time.
            Said::Leave(_) | Said::Rejoin(_) if state.unsaid.is_some() => false,
            Said::Leave(said) => {
                let current = self.status(state.in_force);
                if current.status == MembershipStatus::Active {
                    return self.shut(state, index);
                }
                current == said
            }
            Said::Rejoin(said) => {
                if self.status(state.in_force).status == MembershipStatus::Left {
                    self.next(&mut state, TransitionKind::Rejoin)?;
                }
                self.status(state.in_force) == said
            }
        };
        state.done |= 1 << index;
        is_done.then_some(state)
    }

    fn shut(&self, mut state: State, index: usize) -> Option<State> {
        self.next(&mut state, TransitionKind::Leave)?;
        state.unsaid = Some(index);
        Some(state)
    }

    fn next(&self, state: &mut State, kind: TransitionKind) -> Option<()> {
        (self.transitions.get(state.in_force)?.kind == kind).then(|| state.in_force += 1)
    }

    /// The signals that a scope took.
    fn taken(&self, state: &State, scope: usize) -> u32 {
        let done = self.calls.iter().enumerate().filter(|(index, _)| state.done & (1 << index) != 0);
        done.fold(0, |all, (_, call)| match call.said {
            Said::Signal { mark, withheld, .. } if scope == GLOBAL || withheld.is_none() => all | mark,
            _ => all,
        })
    }

    /// What the gate answers.
    fn decide(&self, state: &State, at_ns: Option<u64>) -> Option<Withheld> {
        if self.status(state.in_force).status == MembershipStatus::Left {
            return Some(Withheld::Left);
        }
        let at_ns = at_ns?;
        let is_away = |pair: &[Transition]| {
            let (left_at_ns, rejoined_at_ns) = (pair[0].at_ns, pair[1].at_ns);
            (left_at_ns.min(rejoined_at_ns)..left_at_ns.max(rejoined_at_ns)).contains(&at_ns)
        };
        let away = self.transitions[..state.in_force].chunks_exact(2).any(is_away);
        away.then_some(Withheld::AwayPeriod)
    }

    fn status(&self, in_force: usize) -> CommunityMembership {
        let in_force = &self.transitions[..in_force];
        let last_leave = in_force.iter().rfind(|transition| transition.kind == TransitionKind::Leave);
        let is_left = in_force.last().is_some_and(|last| last.kind == TransitionKind::Leave);
        CommunityMembership {
            user_id: self.user,
            status: if is_left { MembershipStatus::Left } else { MembershipStatus::Active },
            left_at_ns: last_leave.map(|leave| leave.at_ns),
        }
    }
}
