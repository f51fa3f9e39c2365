//! Random sequences over the whole public API, with restarts, crashes, failing disks, damaged records and bad
//! input, compared after every step with a plain model of what is promised. `TIDAL_SEQUENCES` sets how many, and
//! `TIDAL_SEQUENCE_STEPS` how long they are at most.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

#[path = "model/mod.rs"]
mod sequences;

use proptest::test_runner::Config;
use proptest_state_machine::StateMachineTest;
use sequences::calls::Call;
use sequences::disk::ALL;
use sequences::oracle::Damage;
use sequences::reference::Expected;
use sequences::system::Sequences;
use sequences::transitions::Step;
use sequences::world::{COMMUNITIES, ITEMS, Mode, SECOND_NS, SOURCES, USERS};
use sequences::{Plan, from_environment, run};
use tidal_db::{Action, Event, Weight};

/// As many as take some twenty seconds in a debug build.
const DEFAULT_SEQUENCES: u32 = 300;

/// Half of all sequences, after the seeds of those that once failed.
fn keep_what_is_promised<const BATCHED: bool>(seeds: &'static str) {
    let sequences = from_environment("TIDAL_SEQUENCES").unwrap_or(DEFAULT_SEQUENCES).div_ceil(2);
    let plan = Plan { sequences, shrink_steps: 2_000, seeds: Some(seeds) };
    if let Err(failed) = run::<BATCHED>(&plan) {
        panic!("{failed}");
    }
    println!("{sequences} sequences did what is promised");
}

#[test]
fn immediate_sequences_do_what_is_promised() {
    keep_what_is_promised::<false>("proptest-regressions/model-immediate.txt");
}

#[test]
fn batched_sequences_do_what_is_promised() {
    keep_what_is_promised::<true>("proptest-regressions/model-batched.txt");
}

/// Runs a sequence that was once found to end otherwise.
fn keeps_its_promise<const BATCHED: bool>(mode: Mode, steps: Vec<Step>) {
    Sequences::<BATCHED>::test_sequential(Config::default(), Expected::new(mode), steps, None);
}

fn joins_at(at_ns: u64) -> Event {
    Event { at_ns, action: Action::Join { user: USERS[0], community: COMMUNITIES[0] } }
}

fn leaves() -> Step {
    Step::Call(Call::Leave { user: USERS[0] })
}

fn deliver(events: Vec<Event>) -> Step {
    Step::Call(Call::Deliver { source: SOURCES[0], first_position: 1, events })
}

#[test]
fn a_skipped_event_that_was_never_applied_moves_no_time() {
    let steps = vec![deliver(vec![joins_at(1), joins_at(1)]), deliver(vec![joins_at(2)])];
    keeps_its_promise::<false>(Mode::Immediate, steps);
}

#[test]
fn an_apply_of_nothing_takes_along_what_came_before() {
    let signal = Call::Signal { user: USERS[0], item: ITEMS[0], signal_type: "view", weight: 1.0 };
    keeps_its_promise::<true>(Mode::BatchedForEver, vec![Step::Call(signal), deliver(Vec::new())]);
}

#[test]
fn one_record_that_is_gone_is_one_sound_record_less() {
    let other_leaves = Step::Call(Call::Leave { user: USERS[1] });
    let gone = Step::Damage { user: USERS[0], damage: Damage::Missing };
    keeps_its_promise::<false>(Mode::Immediate, vec![other_leaves, leaves(), gone]);
}

#[test]
fn a_closed_database_says_so_of_a_damaged_user_too() {
    for damage in [Damage::CutShort, Damage::BadStatus, Damage::Flipped] {
        let damaged = Step::Damage { user: USERS[0], damage };
        keeps_its_promise::<false>(Mode::Immediate, vec![damaged, Step::Close]);
    }
}

#[test]
fn a_delivery_that_stops_at_a_bad_event_on_a_failing_disk_names_the_disk() {
    let events = vec![joins_at(1), joins_at(SECOND_NS * 1_000)];
    for nth in 0..12 {
        let call = Call::Deliver { source: SOURCES[0], first_position: 1, events: events.clone() };
        let failing = Step::FailingDisk { nth, for_good: true, call, kept: ALL };
        keeps_its_promise::<false>(Mode::Immediate, vec![failing]);
    }
}

#[test]
fn a_leave_in_a_delivery_settles_a_damaged_user_for_the_signals_behind_it() {
    let user = USERS[0];
    let signal = Action::Signal { user, item: ITEMS[0], signal_type: "view".to_owned(), weight: Weight::ONE };
    let leave = Event { at_ns: 1, action: Action::Leave { user } };
    let damaged = Step::Damage { user, damage: Damage::CutShort };
    let steps = vec![damaged, deliver(vec![leave, Event { at_ns: 1, action: signal }])];
    keeps_its_promise::<false>(Mode::Immediate, steps);
}
