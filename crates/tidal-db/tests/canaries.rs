//! Each guarantee is broken on purpose, and its test must notice.
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
#[path = "model/mod.rs"]
mod sequences;

use scenarios::{crash, failing_io, once, promises, race, stress};
use sequences::{Plan, broken};
use tidal_db::{Break, Config};

/// The scenario run with the break must see it, and say so in these words.
fn caught<T>(
    scenario: impl FnOnce(fn(Config) -> Config) -> scenarios::Seen<T>,
    broken: fn(Config) -> Config,
    said: &str,
) {
    match scenario(broken) {
        Ok(_) => panic!("the break was not noticed"),
        Err(seen) => {
            assert!(seen.contains(said), "noticed was something else: {seen}");
            println!("noticed: {}", seen.chars().take(200).collect::<String>());
        }
    }
}

#[test]
fn g1_the_racy_gate_is_caught() {
    caught(race::no_total_moves_after_a_leave, |config| config.broken(Break::RacyGate), "the leave ");
}

#[test]
fn g1_the_racy_gate_is_caught_amid_many_leaves() {
    caught(
        |adapt| stress::no_total_moves_after_any_leave(1_000, adapt),
        |config| config.broken(Break::RacyGate),
        "returned the totals were",
    );
}

#[test]
fn g1_a_signal_that_was_forwarded_after_a_leave_is_named_by_verify() {
    caught(
        promises::nothing_was_forwarded_after_a_leave,
        |config| config.broken(Break::RestoreSkipped),
        "kind: Forwarded",
    );
}

#[test]
fn g2_a_leave_that_is_not_written_is_caught() {
    caught(
        crash::every_crash_keeps_what_was_acknowledged,
        |config| config.broken(Break::PersistSkipped),
        "the leave of user 7 was acknowledged, and it is not there",
    );
}

#[test]
fn g2_a_crash_after_which_who_left_is_not_restored_is_caught() {
    caught(
        crash::every_crash_keeps_what_was_acknowledged,
        |config| config.broken(Break::RestoreSkipped),
        "verify names",
    );
}

#[test]
fn g7_a_view_that_drifts_is_caught_after_a_crash() {
    caught(
        crash::every_crash_keeps_what_was_acknowledged,
        |config| config.broken(Break::ViewDrifts),
        "it shows",
    );
}

#[test]
fn g3_a_restore_that_is_skipped_is_caught() {
    caught(
        promises::a_leave_survives_reopening,
        |config| config.broken(Break::RestoreSkipped),
        "the receipt says",
    );
}

#[test]
fn g3_a_failed_read_that_is_taken_for_nobody_is_caught() {
    caught(
        |adapt| failing_io::every_failure_while_opening_keeps_the_gate_shut(&adapt, 1),
        |config| config.broken(Break::FailedReadIsNobody),
        "and the status says active",
    );
}

#[test]
fn g3_a_leave_that_is_not_written_is_caught_by_failing_io() {
    caught(
        |adapt| failing_io::every_failure_of_the_transitions_keeps_the_gate_shut(&adapt, 5),
        |config| config.broken(Break::PersistSkipped),
        "was acknowledged, and it is not there",
    );
}

#[test]
fn g3_a_damaged_record_that_is_believed_is_caught() {
    caught(
        promises::a_damaged_record_shuts_the_gate,
        |config| config.broken(Break::DamagedRejoined),
        "a rejoin was believed",
    );
}

#[test]
fn g4_a_history_without_withheld_signals_is_caught() {
    caught(
        promises::history_is_untouched,
        |config| config.broken(Break::HistorySkipped),
        "the history holds 2 of 5",
    );
}

#[test]
fn g5_away_periods_that_are_ignored_are_caught() {
    caught(promises::late_events_are_withheld, |config| config.broken(Break::AwayPeriodsIgnored), "at 2000:");
}

#[test]
fn g6_a_last_leave_that_counts_is_caught() {
    caught(
        promises::the_first_leave_counts,
        |config| config.broken(Break::LastLeaveCounts),
        "leaving at 999",
    );
}

#[test]
fn g7_a_view_that_drifts_is_caught() {
    caught(promises::views_follow_the_events, |config| config.broken(Break::ViewDrifts), "verify names");
}

#[test]
fn g7_a_ranking_that_does_not_follow_is_caught() {
    caught(promises::views_follow_the_events, |config| config.broken(Break::RankingStale), "kind: Ranking");
}

#[test]
fn g7_a_list_of_the_best_that_does_not_follow_is_caught() {
    caught(promises::views_follow_the_events, |config| config.broken(Break::ShortlistStale), "so listed");
}

#[test]
fn g7_an_away_period_that_is_lost_is_caught() {
    caught(promises::views_follow_the_events, |config| config.broken(Break::AwayPeriodLost), "was away at");
}

#[test]
fn g8_withheld_signals_that_are_not_counted_are_caught() {
    caught(
        promises::what_is_withheld_is_said,
        |config| config.broken(Break::WithheldUncounted),
        "counted are",
    );
}

#[test]
fn g9_effects_without_their_position_are_caught() {
    caught(
        once::redelivery_counts_once,
        |config| config.broken(Break::PositionSkipped),
        "the second delivery",
    );
}

/// Every break that one caller can see, and in which words. The racy gate takes two.
const SEEN_BY_ONE_CALLER: [(Break, &[&str]); 12] = [
    (Break::PersistSkipped, &["membership_history of", "status of"]),
    (Break::RestoreSkipped, &["status of", "the open report"]),
    // By itself, or in a delivery, which other reasons may stop as well, or a later event.
    (Break::DamagedRejoined, &["Damaged]", "[Damaged", "the position it stopped at"]),
    (Break::HistorySkipped, &["\nhistory of"]),
    (Break::AwayPeriodsIgnored, &["AwayPeriod)", "the report"]),
    (Break::AwayPeriodLost, &["was away at", "AwayPeriod)", "the report"]),
    (Break::LastLeaveCounts, &["membership_history of", "the answer", "status of"]),
    (Break::ViewDrifts, &["the receipt", "the report", "the list of aggregates"]),
    (Break::RankingStale, &["the best", "kind: Ranking"]),
    (Break::ShortlistStale, &["the best", "kind: Ranking"]),
    (Break::WithheldUncounted, &["withheld_counts", "the report"]),
    (Break::PositionSkipped, &["the report", "position of"]),
];

/// Sequences within which each break must be noticed.
const NOTICED_WITHIN: u32 = 2_000;

#[test]
fn random_sequences_notice_every_break_that_one_caller_can_see() {
    let plan = Plan { sequences: NOTICED_WITHIN, shrink_steps: 10, seeds: None };
    let mut otherwise = Vec::new();
    for (what, said) in SEEN_BY_ONE_CALLER {
        broken::break_it(what);
        let Err(seen) = sequences::run::<false>(&plan) else { panic!("{what:?} went unnoticed") };
        // The sequence itself, which is in other words, comes after what was noticed.
        let seen = seen.split("minimal failing input").next().unwrap_or_default();
        println!("{what:?} noticed: {}", seen.chars().take(300).collect::<String>());
        if !said.iter().any(|words| seen.contains(words)) {
            otherwise.push(what);
        }
    }
    assert!(otherwise.is_empty(), "noticed was something else under {otherwise:?}");
}
