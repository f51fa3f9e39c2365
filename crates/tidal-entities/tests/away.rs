//! Away periods against a plain list, below and beyond their limit.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]
#![allow(clippy::single_range_in_vec_init, reason = "a list of one period is meant")]

use proptest::prelude::*;
use tidal_entities::{AwayPeriods, Transition, TransitionKind};

fn away(periods: &[(u64, u64)]) -> AwayPeriods {
    let mut away = AwayPeriods::default();
    for (left_at_ns, rejoined_at_ns) in periods {
        away.add(*left_at_ns, *rejoined_at_ns);
    }
    away
}

#[test]
fn the_start_is_in_and_the_end_is_not() {
    let away = away(&[(100, 200)]);
    assert_eq!([99, 100, 199, 200].map(|time_ns| away.contains(time_ns)), [false, true, true, false]);
}

#[test]
fn a_return_dated_before_its_leave_counts_the_same() {
    assert_eq!(away(&[(200, 100)]), away(&[(100, 200)]));
    assert!(away(&[(100, 100)]).is_empty());
}

#[test]
fn the_ends_of_time_are_fine() {
    let away = away(&[(0, u64::MAX)]);
    assert!(away.contains(0));
    assert!(away.contains(u64::MAX - 1));
    assert!(!away.contains(u64::MAX));
}

#[test]
fn periods_that_overlap_or_touch_become_one() {
    assert!(away(&[(1, 5), (5, 9)]).periods().eq([1..9]));
    assert!(away(&[(5, 9), (1, 5)]).periods().eq([1..9]));
    assert!(away(&[(1, 3), (5, 7), (9, 11), (2, 10)]).periods().eq([1..11]));
    assert!(away(&[(1, 10), (3, 4)]).periods().eq([1..10]));
    assert!(away(&[(1, 3), (5, 7)]).periods().eq([1..3, 5..7]));
}

#[test]
fn history_gives_its_closed_periods() {
    let history: Vec<Transition> = [
        (TransitionKind::Rejoin, 5),
        (TransitionKind::Leave, 100),
        (TransitionKind::Leave, 50),
        (TransitionKind::Rejoin, 200),
        (TransitionKind::Rejoin, 250),
        (TransitionKind::Leave, 400),
        (TransitionKind::Rejoin, 300),
        (TransitionKind::Leave, 500),
    ]
    .into_iter()
    .zip(1..)
    .map(|((kind, at_ns), sequence)| Transition { sequence, kind, at_ns })
    .collect();
    assert!(AwayPeriods::from_history(&history).periods().eq([100..200, 300..400]));
    assert!(AwayPeriods::from_history(&[]).is_empty());
}

#[test]
fn beyond_the_limit_the_smallest_gap_is_closed() {
    let limit = AwayPeriods::MAX_AWAY_PERIODS as u64;
    let mut away = AwayPeriods::default();
    // Gaps of 100, but one of 10 after the period that begins at 5,000.
    for number in 0..limit {
        let start = 1_000 * number;
        away.add(start, start + if number == 5 { 990 } else { 900 });
    }
    assert_eq!(away.len() as u64, limit);
    assert!(!away.contains(5_995));

    away.add(u64::MAX - 1, u64::MAX);
    assert_eq!(away.len() as u64, limit);
    assert!(away.contains(5_995));
    assert!(!away.contains(6_950));

    // Of equal gaps the earliest.
    away.add(u64::MAX - 5, u64::MAX - 4);
    assert_eq!(away.len() as u64, limit);
    assert!(away.contains(u64::MAX - 3));
    away.add(u64::MAX - 2_000, u64::MAX - 1_900);
    assert_eq!(away.len() as u64, limit);
    assert!(away.contains(950));
    assert!(!away.contains(1_950));
}

proptest! {
    #[test]
    fn equals_a_plain_list(periods in prop::collection::vec((0..60_u64, 0..60_u64), 0..20)) {
        let away = away(&periods);
        for time_ns in 0..61 {
            let is_away = periods.iter().any(|(left, rejoined)| left.min(rejoined) <= &time_ns && &time_ns < left.max(rejoined));
            prop_assert_eq!(away.contains(time_ns), is_away, "at {}", time_ns);
        }
        let kept: Vec<_> = away.periods().collect();
        prop_assert!(kept.iter().all(|period| period.start < period.end));
        prop_assert!(kept.windows(2).all(|pair| pair[0].end < pair[1].start));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn beyond_the_limit_nothing_away_is_forgotten(
        periods in prop::collection::vec((0..1_u64 << 40, 1..1_u64 << 20), 1_500..2_000),
    ) {
        let periods: Vec<(u64, u64)> = periods.into_iter().map(|(start, len)| (start, start + len)).collect();
        let away = away(&periods);
        prop_assert_eq!(away.len(), AwayPeriods::MAX_AWAY_PERIODS);
        prop_assert!(periods.iter().all(|(left, rejoined)| away.contains(*left) && away.contains(rejoined - 1)));
    }
}
