//! Every guarantee, tried.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "tests fail by panicking, and use a part of the scenarios"
)]

mod scenarios;

use scenarios::{crash, once, promises, race, stress};

/// How many users leave beside signals where `TIDAL_STRESS_LEAVES` does not ask for more.
const STRESS_LEAVES: u64 = 4_000;

#[test]
fn g1_no_total_moves_after_a_leave_returned() {
    race::no_total_moves_after_a_leave(|config| config).unwrap();
}

#[test]
fn g1_no_total_moves_after_any_of_many_leaves() {
    let asked = std::env::var("TIDAL_STRESS_LEAVES");
    let leaves = asked.map_or(STRESS_LEAVES, |asked| asked.parse().expect("TIDAL_STRESS_LEAVES is a number"));
    let tried = stress::no_total_moves_after_any_leave(leaves, |config| config).unwrap();
    println!("{tried:?}");
    assert!(tried.leaves >= leaves && tried.signals >= 2 * leaves, "{tried:?}");
}

#[test]
fn g1_verify_finds_nothing_forwarded_after_a_leave() {
    promises::nothing_was_forwarded_after_a_leave(|config| config).unwrap();
}

#[test]
fn g2_every_crash_keeps_what_was_acknowledged() {
    let images = crash::every_crash_keeps_what_was_acknowledged(|config| config).unwrap();
    assert!(images > 500, "only {images} crash images were tried");
}

#[test]
fn g3_a_leave_survives_reopening() {
    promises::a_leave_survives_reopening(|config| config).unwrap();
}

#[test]
fn g3_a_damaged_record_shuts_the_gate() {
    promises::a_damaged_record_shuts_the_gate(|config| config).unwrap();
}

#[test]
fn g4_history_is_untouched() {
    promises::history_is_untouched(|config| config).unwrap();
}

#[test]
fn g5_late_events_are_withheld() {
    promises::late_events_are_withheld(|config| config).unwrap();
}

#[test]
fn g6_the_first_leave_counts() {
    promises::the_first_leave_counts(|config| config).unwrap();
}

#[test]
fn g7_views_follow_the_events() {
    promises::views_follow_the_events(|config| config).unwrap();
}

#[test]
fn g8_what_is_withheld_is_said() {
    promises::what_is_withheld_is_said(|config| config).unwrap();
}

#[test]
fn g9_redelivery_counts_once() {
    once::redelivery_counts_once(|config| config).unwrap();
}
