//! Random scripts over the whole public API, compared after every step with a plain model of what
//! is promised. `PROPTEST_CASES` sets how many.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

#[path = "model/compare.rs"]
mod compare;
#[path = "model/full_sort.rs"]
mod full_sort;
#[path = "model/oracle.rs"]
mod oracle;
#[path = "model/run.rs"]
mod run;
#[path = "model/steps.rs"]
mod steps;
#[path = "model/world.rs"]
mod world;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use steps::{Mode, Script, Step, script};
use tidal_db::{Action, Event};
use world::{ITEMS, SOURCES, USERS};

/// As many scripts as take some twenty seconds in a debug build, unless the environment says otherwise.
fn config(default_cases: u32) -> ProptestConfig {
    let from_environment = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: from_environment.unwrap_or(default_cases),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/model.txt"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(220))]

    #[test]
    fn immediate_scripts_do_what_is_promised(script in script(&[Mode::Immediate])) {
        run::run(&script).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn batched_scripts_do_what_is_promised(script in script(&[Mode::BatchedForEver, Mode::BatchedByThree])) {
        run::run(&script).map_err(TestCaseError::fail)?;
    }
}

/// Runs a script that was once found to end otherwise.
fn keeps_its_promise(mode: Mode, steps: Vec<Step>) {
    let script = Script { mode, steps };
    if let Err(said) = run::run(&script) {
        panic!("{said}\n{script:?}");
    }
}

fn joins_at(at_ns: u64) -> Event {
    Event { at_ns, action: Action::Join { user: USERS[0], community: 4 } }
}

#[test]
fn a_skipped_event_that_was_never_applied_moves_no_time() {
    let source = SOURCES[0];
    keeps_its_promise(
        Mode::Immediate,
        vec![
            Step::Deliver { source, first_position: 1, events: vec![joins_at(1), joins_at(1)] },
            Step::Deliver { source, first_position: 1, events: vec![joins_at(2)] },
        ],
    );
}

#[test]
fn an_apply_of_nothing_takes_along_what_came_before() {
    let signal = Step::Signal { user: USERS[0], item: ITEMS[0], signal_type: "view", weight: 1.0 };
    let nothing = Step::Deliver { source: SOURCES[0], first_position: 1, events: Vec::new() };
    keeps_its_promise(Mode::BatchedForEver, vec![signal, nothing]);
}
