//! Scores against a reference of 31 digits, and that everything added can be taken away again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

mod common;

use std::fmt::Write;

use common::double_double::{DoubleDouble, reference_score};
use proptest::prelude::*;
use tidal_entities::{AggregateState, Contribution, HalfLife, ScoreSums, SubtractError, Weight};

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;
const THIRTY_YEARS_NS: u64 = 10_957 * DAY_NS;

/// Ten times stricter than what is promised.
const TOLERANCE: f64 = 1e-10;

fn half_life(ns: u64) -> HalfLife {
    HalfLife::from_ns(ns).unwrap()
}

fn weight(nanos: i64) -> Weight {
    Weight::from_nanos(nanos).unwrap()
}

fn sums_of(signals: &[(i64, u64)], half_life: HalfLife) -> ScoreSums {
    let mut sums = ScoreSums::default();
    for (nanos, event_time_ns) in signals {
        sums.add(weight(*nanos), *event_time_ns, half_life);
    }
    sums
}

/// By how much of its scale a score is off.
fn error(signals: &[(i64, u64)], at_ns: u64, half_life_ns: u64) -> f64 {
    let found = sums_of(signals, half_life(half_life_ns)).value_at(at_ns, half_life(half_life_ns));
    let (expected, scale) = reference_score(signals, at_ns, half_life_ns, 0);
    ((DoubleDouble::from_f64(found) - expected).abs() / scale).to_f64()
}

#[test]
fn contributions_are_part_of_the_format() {
    let mut table = String::new();
    for (nanos, event_time_ns, half_life_ns) in [
        (1, 0, SECOND_NS),
        (1, SECOND_NS / 2, SECOND_NS),
        (-1, SECOND_NS / 2, SECOND_NS),
        (1_000_000_000, 1_380_541_057_835_384_575, 180 * DAY_NS),
        (78_500_000_000, 1_434_744_807_976_594_394, 7 * DAY_NS),
        (1_000_000_000_000_000_000, 32 * SECOND_NS - 1, SECOND_NS),
        (-1_000_000_000_000_000_000, 32 * SECOND_NS - 1, SECOND_NS),
        (1_000_000_000, u64::MAX, SECOND_NS),
        (1_000_000_000, u64::MAX, HalfLife::MAX.ns()),
    ] {
        let contribution = Contribution::new(weight(nanos), event_time_ns, half_life(half_life_ns));
        writeln!(
            table,
            "weight {}e-9, event time {event_time_ns} ns, half-life {half_life_ns} ns: epoch {}, value {}",
            contribution.weight().nanos(),
            contribution.epoch(),
            contribution.value(),
        )
        .unwrap();
    }
    insta::assert_snapshot!("v1_contributions", table);
}

#[test]
fn whole_half_lives_are_powers_of_two() {
    let hour = half_life(3_600 * SECOND_NS);
    let mut sums = ScoreSums::default();
    sums.add(Weight::ONE, 1000 * hour.ns(), hour);
    for (half_lives, score) in
        [(0, 1.0), (1, 0.5), (10, 1.0 / 1024.0), (31, 2_f64.powi(-31)), (500, 2_f64.powi(-500))]
    {
        assert_eq!(sums.value_at((1000 + half_lives) * hour.ns(), hour), score);
        assert_eq!(sums.value_at((1000 - half_lives) * hour.ns(), hour), 1.0 / score);
    }
}

#[test]
fn the_smallest_weight_is_within_the_promise_at_every_time() {
    for half_life_ns in [SECOND_NS, SECOND_NS + 1, 7 * DAY_NS, HalfLife::MAX.ns()] {
        for step in 0..4_000_u64 {
            let event_time_ns = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (step % 30);
            assert!(error(&[(1, event_time_ns)], event_time_ns, half_life_ns) <= TOLERANCE);
        }
    }
}

#[test]
fn thirty_years_apart_at_one_second() {
    let hour_ns = 3_600 * SECOND_NS;
    let signals: Vec<(i64, u64)> = (0..100_u32)
        .map(|step| {
            let event_time_ns = 1_000_000_007 * SECOND_NS + u64::from(step) * (THIRTY_YEARS_NS / 100 + 7);
            (1_000_000_001 + i64::from(step), event_time_ns)
        })
        .collect();
    let newest_ns = signals.last().unwrap().1;
    for at_ns in [newest_ns, newest_ns + 1, newest_ns + 333_333_333, newest_ns + 59 * SECOND_NS] {
        assert!(error(&signals, at_ns, SECOND_NS) <= TOLERANCE);
        assert!(error(&signals, at_ns, hour_ns) <= TOLERANCE);
        assert!(error(&signals, at_ns, HalfLife::MAX.ns()) <= TOLERANCE);
    }
}

#[test]
fn the_ends_of_time_are_fine() {
    for half_life in [HalfLife::MIN, half_life(DAY_NS), HalfLife::MAX] {
        let mut sums = ScoreSums::default();
        sums.add(Weight::ONE, 0, half_life);
        sums.add(Weight::ONE, u64::MAX, half_life);
        assert!(sums.value_at(u64::MAX, half_life) >= 1.0);
        assert!(sums.value_at(u64::MAX, half_life) < 1.0 + 0.03);
        assert!(sums.value_at(0, half_life) > 1.0);
        assert!(sums.value_at(0, half_life).is_finite());
        sums.subtract(Weight::ONE, 0, half_life);
        sums.subtract(Weight::ONE, u64::MAX, half_life);
        assert_eq!(sums, ScoreSums::default());
    }
}

#[test]
fn scores_stop_at_the_bounds_of_a_float() {
    let mut sums = ScoreSums::default();
    sums.add(Weight::MIN, THIRTY_YEARS_NS, HalfLife::MIN);
    assert_eq!(sums.value_at(0, HalfLife::MIN), f64::MIN);
    sums.add(Weight::MAX, THIRTY_YEARS_NS + 60 * SECOND_NS, HalfLife::MIN);
    assert_eq!(sums.value_at(0, HalfLife::MIN), f64::MAX);
    sums.add(Weight::MIN, 2 * THIRTY_YEARS_NS, HalfLife::MIN);
    assert_eq!(sums.value_at(4 * THIRTY_YEARS_NS, HalfLife::MIN).to_bits(), 0.0_f64.to_bits());

    // Just above the bottom, where floats lose digits one by one, a score still falls without a jump.
    let mut sums = ScoreSums::default();
    sums.add(Weight::ONE, 0, HalfLife::MIN);
    assert_eq!(sums.value_at(1074 * SECOND_NS, HalfLife::MIN), f64::from_bits(1));
    assert_eq!(sums.value_at(1076 * SECOND_NS, HalfLife::MIN), 0.0);
}

#[test]
fn a_newer_event_absorbs_nothing() {
    let mut sums = ScoreSums::default();
    sums.add(weight(1), 0, HalfLife::MIN);
    let before = sums.clone();
    for step in 1..=1_000 {
        sums.add(Weight::MAX, step * 59 * SECOND_NS, HalfLife::MIN);
    }
    assert_eq!(sums.epochs_len(), 1_001);
    for step in (1..=1_000).rev() {
        sums.subtract(Weight::MAX, step * 59 * SECOND_NS, HalfLife::MIN);
    }
    assert_eq!(sums, before);
    assert_eq!(sums.value_at(0, HalfLife::MIN), 1e-9);
}

#[test]
fn weights_of_zero_and_sums_that_cancel_out_keep_no_epoch() {
    let mut sums = ScoreSums::default();
    sums.add(Weight::ZERO, 5, HalfLife::MIN);
    assert!(sums.is_empty());
    sums.add(Weight::ONE, 5, HalfLife::MIN);
    sums.add("-1".parse().unwrap(), 5, HalfLife::MIN);
    assert!(sums.is_empty());
    assert_eq!(sums.value_at(5, HalfLife::MIN).to_bits(), 0.0_f64.to_bits());
}

#[test]
fn aggregates_do_not_go_below_zero() {
    let mut state = AggregateState::default();
    assert_eq!(state.subtract(Weight::ZERO, 0, HalfLife::MIN), Err(SubtractError::Empty));
    state.add(Weight::ONE, 1, HalfLife::MIN);
    let before = state.clone();
    assert_eq!(state.subtract(Weight::ZERO, 1, HalfLife::MIN), Err(SubtractError::OtherSignal));
    assert_eq!(state.subtract(Weight::ONE, 2, HalfLife::MIN), Err(SubtractError::OtherSignal));
    assert_eq!(state, before);
    assert_eq!(state.subtract(Weight::ONE, 1, HalfLife::MIN), Ok(()));
    assert_eq!(state, AggregateState::default());
    assert_eq!(state.subtract(Weight::ONE, 1, HalfLife::MIN), Err(SubtractError::Empty));
}

fn half_lives() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(SECOND_NS),
        Just(SECOND_NS + 1),
        Just(HalfLife::MAX.ns()),
        Just(7 * DAY_NS),
        SECOND_NS..=HalfLife::MAX.ns(),
        SECOND_NS..100 * SECOND_NS,
    ]
}

fn weights() -> impl Strategy<Value = i64> {
    (any::<i64>(), 4..64_u32).prop_map(|(bits, shift)| bits >> shift)
}

/// Signals within thirty years, many of them close together.
fn signals() -> impl Strategy<Value = Vec<(i64, u64)>> {
    let times = prop_oneof![
        0..THIRTY_YEARS_NS,
        (0..30_u64, 0..100 * SECOND_NS).prop_map(|(year, ns)| year * 365 * DAY_NS + ns),
        (0..100 * SECOND_NS).prop_map(|ns| THIRTY_YEARS_NS - ns),
    ];
    prop::collection::vec((weights(), times), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn scores_agree_with_the_reference(
        signals in signals(),
        half_life_ns in half_lives(),
        late in 0.0..40.0_f64,
    ) {
        let newest_ns = signals.iter().filter(|(nanos, _)| *nanos != 0).map(|(_, time_ns)| *time_ns).max();
        let Some(newest_ns) = newest_ns else { return Ok(()) };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "any time will do")]
        let at_ns = newest_ns.saturating_add((half_life_ns as f64 * late) as u64);
        let error = error(&signals, at_ns, half_life_ns);
        prop_assert!(error <= TOLERANCE, "{error:e} of the scale");
    }

    #[test]
    fn scores_before_the_events_agree_with_the_reference(
        signals in signals(),
        half_life_ns in (10 * DAY_NS..=HalfLife::MAX.ns()),
        at_ns in 0..THIRTY_YEARS_NS,
    ) {
        // Thirty years are at most 1,096 half-lives of ten days, so the newest may be beyond an f64: compare scaled.
        let newest_ns = signals.iter().map(|(_, time_ns)| *time_ns).max().unwrap();
        let ahead = i128::from(newest_ns.saturating_sub(at_ns) / half_life_ns);
        let (expected, scale) = reference_score(&signals, at_ns, half_life_ns, -ahead);
        prop_assume!(scale.to_f64() > 0.0);
        let found = sums_of(&signals, half_life(half_life_ns)).value_at(at_ns, half_life(half_life_ns));
        prop_assert!(found.is_finite());
        if found.abs() < f64::MAX && ahead < 900 {
            let found = DoubleDouble::from_f64(found).scaled(-i32::try_from(ahead).unwrap());
            let error = ((found - expected).abs() / scale).to_f64();
            prop_assert!(error <= TOLERANCE, "{error:e} of the scale");
        }
    }

    #[test]
    fn order_does_not_matter_and_what_was_added_can_be_taken_away(
        kept in signals(),
        purged in signals(),
        half_life_ns in half_lives(),
        order in any::<u64>(),
    ) {
        let half_life = half_life(half_life_ns);
        let mut steps: Vec<(i64, u64, bool)> = kept.iter().chain(&purged).map(|(nanos, at)| (*nanos, *at, true)).collect();
        // A shuffle that needs no generator of its own.
        steps.sort_by_key(|(nanos, at, _)| (nanos.unsigned_abs() ^ at ^ order).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        steps.extend(purged.iter().rev().map(|(nanos, at)| (*nanos, *at, false)));

        let mut state = AggregateState::default();
        for (nanos, at, is_added) in steps {
            if is_added {
                state.add(weight(nanos), at, half_life);
            } else {
                state.subtract(weight(nanos), at, half_life).unwrap();
            }
        }
        let mut expected = AggregateState::default();
        for (nanos, at) in kept {
            expected.add_contribution(&Contribution::new(weight(nanos), at, half_life));
        }
        prop_assert_eq!(&state, &expected);
        prop_assert_eq!(state.snapshot(THIRTY_YEARS_NS, half_life), expected.snapshot(THIRTY_YEARS_NS, half_life));
    }

    #[test]
    fn ranks_are_in_the_order_of_the_exact_scores(
        a in signals(),
        b in signals(),
        half_life_ns in half_lives(),
        at_ns in any::<u64>(),
    ) {
        let [rank_a, rank_b] = [&a, &b].map(|signals| sums_of(signals, half_life(half_life_ns)).rank());
        let [score_a, score_b] = [rank_a, rank_b].map(|rank| rank.value_at(at_ns, half_life(half_life_ns)));
        prop_assert!(score_a.total_cmp(&score_b) == rank_a.cmp(&rank_b) || score_a == score_b);

        // Exact, as of the newest event: there neither can be beyond what a float holds.
        let newest_ns = a.iter().chain(&b).map(|(_, time_ns)| *time_ns).max().unwrap();
        let (exact_a, scale_a) = reference_score(&a, newest_ns, half_life_ns, 0);
        let (exact_b, scale_b) = reference_score(&b, newest_ns, half_life_ns, 0);
        let (lead, scale) = ((exact_a - exact_b).to_f64(), (scale_a + scale_b).to_f64());
        if lead.abs() > 2.0 * TOLERANCE * scale {
            prop_assert_eq!(rank_a.cmp(&rank_b), lead.total_cmp(&0.0), "{} of {}", lead, scale);
        }
    }

    #[test]
    fn scores_are_always_finite(
        signals in prop::collection::vec((weights(), any::<u64>()), 0..20),
        half_life_ns in half_lives(),
        at_ns in any::<u64>(),
    ) {
        let score = sums_of(&signals, half_life(half_life_ns)).value_at(at_ns, half_life(half_life_ns));
        prop_assert!(score.is_finite());
    }
}
