//! What each thread does: few calls on few users, thrown anew for every schedule.

use shuttle::rand::{Rng, thread_rng};

use crate::act::Act;
use crate::stage::{FIRST_NS, LATEST_NS, SCOPES, USERS};

/// Calls of one thread, one after the other.
pub type Part = Vec<(u64, Act)>;

/// How the database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every call waits for its commit, which calls share; nothing runs beside them.
    Immediate,
    /// Signals are flushed by the thread for that.
    Batched,
    /// Every call waits for its commit, and checkpoints and runs are made by their threads.
    WithBackground,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub mode: Mode,
    /// What was done before the threads begin.
    pub before: Part,
    pub threads: Vec<Part>,
}

impl Program {
    pub fn thrown() -> Self {
        let mut dice = thread_rng();
        let mode = match dice.gen_range(0..8) {
            0..=5 => Mode::Immediate,
            6 => Mode::Batched,
            _ => Mode::WithBackground,
        };
        let users_len = if dice.gen_range(0..3) == 0 { 2 } else { 1 };
        let users = &USERS[..users_len];
        let mut before = Vec::new();
        for user in users {
            let acts: &[Act] = match dice.gen_range(0..4) {
                0 | 1 => &[],
                2 => &[Act::Leave],
                _ => &[Act::Leave, Act::Rejoin],
            };
            before.extend(acts.iter().map(|act| (*user, *act)));
        }
        if dice.gen_range(0..6) == 0 {
            return Self::late_beside_a_return(mode);
        }
        // Where nothing but transitions are made they meet more often.
        let only_transitions = dice.gen_range(0..5) == 0;
        let threads_len = dice.gen_range(2..=4);
        let threads = (0..threads_len).map(|_| {
            let part = (0..dice.gen_range(1..=3)).map(|_| {
                let user = users[dice.gen_range(0..users_len)];
                (user, thrown_act(&mut dice, only_transitions))
            });
            part.collect()
        });
        Self { mode, before, threads: threads.collect() }
    }

    /// Signals from the time away, while the user comes back: thrown one by one they seldom fall into it.
    fn late_beside_a_return(mode: Mode) -> Self {
        let user = USERS[0];
        let late = (user, Act::Signal { at_ns: Some(FIRST_NS) });
        let threads = vec![vec![(user, Act::Rejoin)], vec![late; 3]];
        Self { mode, before: vec![(user, Act::Leave)], threads }
    }

    /// Enough callers for one commit under way and several who wait for each, and nobody who does not wait.
    pub fn crowd() -> Self {
        let mut dice = thread_rng();
        let mode = if dice.gen_range(0..4) == 0 { Mode::WithBackground } else { Mode::Immediate };
        let threads_len = dice.gen_range(4..=6);
        let threads = (0..threads_len).map(|_| {
            let part = (0..dice.gen_range(1..=2)).map(|_| {
                let act = match dice.gen_range(0..6) {
                    0..=3 => Act::Signal { at_ns: None },
                    4 => Act::Leave,
                    _ => Act::Rejoin,
                };
                (USERS[dice.gen_range(0..USERS.len())], act)
            });
            part.collect()
        });
        Self { mode, before: Vec::new(), threads: threads.collect() }
    }
}

fn thrown_act(dice: &mut impl Rng, only_transitions: bool) -> Act {
    let kind = if only_transitions { dice.gen_range(9..16) } else { dice.gen_range(0..20) };
    match kind {
        0..=6 => Act::Signal { at_ns: None },
        7 | 8 => Act::Signal { at_ns: Some(dice.gen_range(1..=LATEST_NS)) },
        9..=12 => Act::Leave,
        13..=15 => Act::Rejoin,
        16 => Act::Status,
        _ => Act::Read { scope: dice.gen_range(0..SCOPES) },
    }
}
