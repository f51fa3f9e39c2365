//! The state machine that the database is compared with.
//!
//! What a crash or a failing disk leaves is not known beforehand, only what it may leave. So the reference holds
//! every state that is possible, and the database under test says by what it holds which of them it is in.

use std::fmt;

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use super::calls::Answer;
use super::oracle::Oracle;
use super::transitions::{Step, step};
use super::world::{FIRST_NOW_NS, Mode};

/// More possible states than this are not followed.
const MAX_WORLDS: usize = 24;

/// One state in which the database may be.
#[derive(Clone, Debug)]
pub struct World {
    /// Which of the possible states each restart so far left.
    pub kept: Vec<usize>,
    pub oracle: Oracle,
    /// The state at the last durable call, and after each call since. A crash leaves one of them.
    pub may_be_left: Vec<Oracle>,
    /// How the last call ends.
    pub answer: Answer,
}

/// All states in which the database may be.
#[derive(Clone)]
pub struct Expected {
    pub mode: Mode,
    pub now_ns: u64,
    pub worlds: Vec<World>,
}

/// What a person has to know of it to read a sequence.
impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.mode)
    }
}

impl World {
    /// All that was done so far is on disk.
    fn durable(&mut self) {
        self.may_be_left = vec![self.oracle.clone()];
    }

    fn restarts(&self, outcomes: Vec<Oracle>, answer: &Answer) -> Vec<Self> {
        let world = |(kept, oracle): (usize, Oracle)| Self {
            kept: self.kept.iter().copied().chain([kept]).collect(),
            may_be_left: vec![oracle.clone()],
            oracle,
            answer: answer.clone(),
        };
        outcomes.into_iter().enumerate().map(world).collect()
    }
}

impl Expected {
    pub fn new(mode: Mode) -> Self {
        let oracle = Oracle::default();
        let may_be_left = vec![oracle.clone()];
        let world = World { kept: Vec::new(), oracle, may_be_left, answer: Answer::Done };
        Self { mode, now_ns: FIRST_NOW_NS, worlds: vec![world] }
    }

    /// The state that the restarts so far left.
    pub fn world(&self, kept: &[usize]) -> &World {
        self.worlds.iter().find(|world| world.kept == kept).expect("the restarts lead to one of the states")
    }

    /// The states that the next restart after `kept` may have left, the newest last.
    pub fn after(&self, kept: &[usize]) -> Vec<&World> {
        self.worlds
            .iter()
            .filter(|world| world.kept.split_last().is_some_and(|(_, before)| before == kept))
            .collect()
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Clock(now_ns) => self.now_ns = *now_ns,
            Step::Call(call) => {
                for world in &mut self.worlds {
                    world.answer = world.oracle.call(call, self.now_ns);
                    if world.answer.is_durable(self.mode) {
                        world.durable();
                    } else if matches!(world.answer, Answer::Receipt(_)) {
                        world.may_be_left.push(world.oracle.clone());
                    }
                }
            }
            Step::Refused(_) | Step::Verify => {}
            Step::Grow => {
                for world in &mut self.worlds {
                    world.oracle.is_grown = true;
                    world.durable();
                }
            }
            Step::Close | Step::RefusedOpen | Step::Rebuild { .. } | Step::Drop => {
                self.worlds.iter_mut().for_each(World::durable);
            }
            Step::Damage { user, damage } => {
                for world in &mut self.worlds {
                    world.oracle.damage(*user, *damage);
                    world.durable();
                }
            }
            Step::Crash { .. } => {
                let restarts = |world: &World| world.restarts(world.may_be_left.clone(), &Answer::Done);
                self.worlds = self.worlds.iter().flat_map(restarts).collect();
            }
            Step::FailingDisk { call, .. } => {
                let restarts = |world: &World| {
                    let mut after = world.oracle.clone();
                    let answer = after.call(call, self.now_ns);
                    let mut outcomes = world.may_be_left.clone();
                    outcomes.extend(world.oracle.within(call, self.now_ns));
                    outcomes.push(after);
                    outcomes.dedup();
                    world.restarts(outcomes, &answer)
                };
                self.worlds = self.worlds.iter().flat_map(restarts).collect();
            }
        }
    }
}

/// Sequences under one way to be durable, or under one that waits.
#[derive(Debug)]
pub struct Reference<const BATCHED: bool>;

impl<const BATCHED: bool> ReferenceStateMachine for Reference<BATCHED> {
    type State = Expected;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Expected> {
        if BATCHED {
            prop_oneof![Just(Mode::BatchedForEver), Just(Mode::BatchedByThree)]
                .prop_map(Expected::new)
                .boxed()
        } else {
            Just(Expected::new(Mode::Immediate)).boxed()
        }
    }

    fn transitions(_: &Expected) -> BoxedStrategy<Step> {
        step().boxed()
    }

    fn apply(mut expected: Expected, step: &Step) -> Expected {
        expected.step(step);
        expected
    }

    fn preconditions(expected: &Expected, step: &Step) -> bool {
        if !matches!(step, Step::Crash { .. } | Step::FailingDisk { .. }) {
            return true;
        }
        let outcomes: usize = expected.worlds.iter().map(|world| world.may_be_left.len()).sum();
        outcomes <= MAX_WORLDS
    }
}
