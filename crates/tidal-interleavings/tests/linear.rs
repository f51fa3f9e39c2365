//! Leave, rejoin and signal are linearizable: the sources of the database, run with every step at which threads
//! meet under a scheduler, and each history compared with what one order of its calls would give.
//!
//! `TIDAL_INTERLEAVINGS` says how many schedules each test runs, `TIDAL_INTERLEAVINGS_SEED` which ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

#[path = "linear/act.rs"]
mod act;
#[path = "linear/crowd.rs"]
mod crowd;
#[path = "linear/failing.rs"]
mod failing;
#[path = "linear/log.rs"]
mod log;
#[path = "linear/order.rs"]
mod order;
#[path = "linear/program.rs"]
mod program;
#[path = "linear/schedules.rs"]
mod schedules;
#[path = "linear/stage.rs"]
mod stage;

use schedules::{By, Schedules};
use tidal_interleavings::Break;

/// How many schedules of each scheduler are run where nobody says otherwise.
const SCHEDULES: usize = 1_500;

#[test]
fn random_schedules_have_one_order() {
    Schedules::asked_for(SCHEDULES).run(By::Random);
}

#[test]
fn schedules_of_few_preemptions_have_one_order() {
    Schedules::asked_for(SCHEDULES).run(By::FewPreemptions);
}

#[test]
fn on_a_failing_disk_random_schedules_have_one_order_and_an_end() {
    Schedules::asked_for(SCHEDULES).of(failing::act_out).run(By::Random);
}

#[test]
fn on_a_failing_disk_schedules_of_few_preemptions_have_one_order_and_an_end() {
    Schedules::asked_for(SCHEDULES).of(failing::act_out).run(By::FewPreemptions);
}

#[test]
fn callers_who_share_commits_have_one_order_and_an_end() {
    for by in [By::Random, By::FewPreemptions] {
        Schedules::asked_for(SCHEDULES).of(crowd::act_out).run(by);
    }
}

#[test]
fn callers_who_share_commits_on_a_failing_disk_have_one_order_and_an_end() {
    for by in [By::Random, By::FewPreemptions] {
        Schedules::asked_for(SCHEDULES).of(crowd::act_out_on_failing_disk).run(by);
    }
}

#[test]
fn callers_who_share_commits_when_the_database_is_closed_have_an_end_in_order() {
    for by in [By::Random, By::FewPreemptions] {
        Schedules::asked_for(SCHEDULES).of(crowd::act_out_closing).run(by);
    }
}

/// Both schedulers must find the break within what they try where nobody asks for more.
fn found(broken: Break, said: &[&str]) {
    found_in(Schedules::at_most(SCHEDULES), broken, said);
}

fn found_in(schedules: Schedules, broken: Break, said: &[&str]) {
    for by in [By::Random, By::FewPreemptions] {
        schedules.find(by, broken, said);
    }
}

#[test]
fn on_a_failing_disk_a_leave_that_is_not_written_is_found() {
    let failing = Schedules::at_most(SCHEDULES).of(failing::act_out);
    found_in(failing, Break::PersistSkipped, &["was acknowledged, and on disk the user is"]);
}

#[test]
fn on_a_failing_disk_a_failed_rejoin_that_is_published_is_found() {
    let failing = Schedules::at_most(SCHEDULES).of(failing::act_out);
    found_in(failing, Break::FailedRejoinPublished, &["the status is active after", "passed the gate after"]);
}

#[test]
fn the_racy_gate_is_found() {
    found(Break::RacyGate, &["no order of the calls", "after Some(Leave)", "kind: Forwarded"]);
}

#[test]
fn a_permit_for_each_scope_is_found() {
    found(Break::PermitPerScope, &["in 1 cohorts and 0 of 2 communities"]);
}

#[test]
fn a_permit_that_ends_before_the_aggregates_is_found() {
    found(Break::PermitEndsEarly, &["no order of the calls", "after Some(Leave)", "kind: Forwarded"]);
}

#[test]
fn a_rejoin_that_is_published_out_of_order_is_found() {
    found(Break::RejoinOvertaken, &["no order of the calls", "two rejoins", "memory says"]);
}

#[test]
fn an_away_period_that_is_remembered_too_late_is_found() {
    found(Break::AwayPeriodAfterRejoin, &["no order of the calls"]);
}

#[test]
fn a_time_from_before_the_transition_that_it_follows_is_found() {
    found(Break::StaleTransitionTime, &["dated before the one that it follows"]);
}
