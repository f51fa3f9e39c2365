//! Random sequences of steps, each compared after every step with a plain model of what is promised.
#![allow(dead_code, reason = "each test file uses its own part of it")]

pub mod answers;
pub mod broken;
pub mod calls;
pub mod compare;
pub mod disk;
pub mod full_sort;
pub mod oracle;
pub mod reference;
pub mod refused;
pub mod system;
pub mod transitions;
pub mod views;
pub mod world;

use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};
use reference::Reference;
use system::Sequences;

/// Short sequences find what a few steps can break sooner than long ones.
const DEFAULT_STEPS: usize = 24;

/// How many sequences are run, and what becomes of those that fail.
#[derive(Clone, Debug)]
pub struct Plan {
    pub sequences: u32,
    /// Steps that may be taken away to make what fails shorter.
    pub shrink_steps: u32,
    /// The file that keeps the seeds of what failed; they are run before all others.
    pub seeds: Option<&'static str>,
}

/// A number that the environment may set.
pub fn from_environment<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, and should be a number")))
}

/// Runs random sequences under `Immediate`, or `BATCHED` ones; answers what failed.
pub fn run<const BATCHED: bool>(plan: &Plan) -> Result<(), String> {
    let config = Config {
        cases: plan.sequences,
        failure_persistence: plan.seeds.map(|seeds| Box::new(FileFailurePersistence::Direct(seeds)) as _),
        max_shrink_iters: plan.shrink_steps,
        ..Config::default()
    };
    let steps = from_environment("TIDAL_SEQUENCE_STEPS").unwrap_or(DEFAULT_STEPS);
    let sequences = Reference::<BATCHED>::sequential_strategy(1..=steps.max(1));
    let ran = TestRunner::new(config.clone()).run(&sequences, |(initial, steps, seen)| {
        Sequences::<BATCHED>::test_sequential(config.clone(), initial, steps, seen);
        Ok(())
    });
    ran.map_err(|failed| failed.to_string())
}
