//! Windows hold what took place within them, in whatever order it came, and forget no more than they say.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

use proptest::{prelude::*, sample::Index};
use tidal_entities::{
    AggregateKey, AggregateRow, AggregateRunBuilder, AggregateState, CodecError, Contribution, HalfLife,
    ScopeId, SignalTypeId, SubtractError, Weight, Window, WindowAggregate, WindowError, aggregate_row_key,
    seal,
};
use tidal_keys::EncodedKey;

const MINUTE_NS: u64 = 60_000_000_000;
const HOUR_NS: u64 = 60 * MINUTE_NS;
const DAY_NS: u64 = 24 * HOUR_NS;
const WINDOWS: [Window; 3] = [Window::Hour, Window::Day, Window::Week];

/// A time and a weight in units of 1e-9.
type Signal = (u64, i64);

fn contribution((at_ns, nanos): Signal) -> Contribution {
    Contribution::windowed(Weight::from_nanos(nanos).unwrap(), at_ns, HalfLife::MAX)
}

fn state_of(signals: &[Signal]) -> AggregateState {
    let mut state = AggregateState::default();
    for signal in signals {
        state.add_contribution(&contribution(*signal));
    }
    state
}

/// The first time of the window that ends at a time, and the first time after it.
fn bounds(window: Window, at_ns: u64) -> (u64, u128) {
    let bucket = at_ns / window.bucket_ns();
    let buckets = window.length_ns() / window.bucket_ns();
    let end = (u128::from(bucket) + 1) * u128::from(window.bucket_ns());
    ((bucket + 1).saturating_sub(buckets) * window.bucket_ns(), end)
}

fn recount(signals: &[Signal], window: Window, at_ns: u64) -> (u64, i128) {
    let (from_ns, to_ns) = bounds(window, at_ns);
    let within = |signal: &&Signal| signal.0 >= from_ns && u128::from(signal.0) < to_ns;
    let within = signals.iter().filter(within);
    within.fold((0, 0), |(count, sum), signal| (count + 1, sum + i128::from(signal.1)))
}

fn found(state: &AggregateState, window: Window, at_ns: u64) -> (u64, i128) {
    let WindowAggregate { count, weight_nanos, weight_sum } = state.window(window, at_ns).unwrap();
    assert_eq!(weight_sum.to_bits(), tidal_entities::weight_sum_to_f64(weight_nanos).to_bits());
    (count, weight_nanos)
}

/// The first time that is still kept apart for a window after a signal at `newest_ns`.
fn kept_from_ns(window: Window, newest_ns: u64) -> u64 {
    let (widest, more_ns) =
        if window == Window::Hour { (Window::Hour, HOUR_NS) } else { (Window::Week, DAY_NS) };
    bounds(widest, newest_ns).0.saturating_sub(more_ns)
}

#[test]
fn windows_are_half_open_and_end_with_the_bucket_of_their_end() {
    let at_ns = 1_000 * DAY_NS + 7 * MINUTE_NS;
    let counts = |signal_ns| WINDOWS.map(|window| found(&state_of(&[(signal_ns, 5)]), window, at_ns).0);
    assert_eq!(counts(at_ns), [1, 1, 1]);
    // Buckets of 5 minutes: the one of the end runs from minute 5 to 10.
    let hour = at_ns - 7 * MINUTE_NS + 10 * MINUTE_NS - HOUR_NS;
    assert_eq!((counts(hour), counts(hour - 1)), ([1, 1, 1], [0, 1, 1]));
    let midnight_ns = 1_000 * DAY_NS;
    let day = midnight_ns + HOUR_NS - DAY_NS;
    assert_eq!((counts(day), counts(day - 1)), ([0, 1, 1], [0, 0, 1]));
    let week = midnight_ns + HOUR_NS - 7 * DAY_NS;
    assert_eq!((counts(week), counts(week - 1)), ([0, 0, 1], [0, 0, 0]));
    // Ahead of the end, but in its bucket; then in the next.
    assert_eq!(counts(midnight_ns + 10 * MINUTE_NS - 1), [1, 1, 1]);
    assert_eq!(counts(midnight_ns + 10 * MINUTE_NS), [0, 1, 1]);
    assert_eq!(counts(midnight_ns + HOUR_NS - 1), [0, 1, 1]);
    assert_eq!(counts(midnight_ns + HOUR_NS), [0, 0, 0]);
}

#[test]
fn a_window_is_never_longer_than_its_name_and_at_most_a_bucket_shorter() {
    for at_ns in [0, 1, HOUR_NS - 1, 1_000 * DAY_NS, 1_000 * DAY_NS + 7 * MINUTE_NS, u64::MAX] {
        for window in WINDOWS {
            let (from_ns, to_ns) = bounds(window, at_ns);
            assert!(to_ns - u128::from(from_ns) <= u128::from(window.length_ns()));
            assert!(at_ns - from_ns < window.length_ns());
            assert!(from_ns == 0 || at_ns - from_ns >= window.length_ns() - window.bucket_ns());
        }
    }
}

#[test]
fn both_ends_of_time_have_buckets() {
    let signals = [(0, 1), (u64::MAX, 2)];
    let state = state_of(&signals);
    assert_eq!(state, state_of(&[signals[1], signals[0]]));
    for window in WINDOWS {
        assert_eq!(found(&state, window, u64::MAX), (1, 2));
        assert_eq!(found(&state_of(&signals[..1]), window, 0), (1, 1));
        assert_eq!(found(&state_of(&signals[..1]), window, u64::MAX), (0, 0));
    }
    assert_eq!((state.count(), state.weight_nanos()), (2, 3));
}

#[test]
fn what_reaches_back_too_far_is_refused() {
    let newest_ns = 1_000 * DAY_NS + 30 * MINUTE_NS;
    let state = state_of(&[(newest_ns, 1)]);
    for (window, earliest_ns) in [
        (Window::Hour, newest_ns - HOUR_NS),
        (Window::Day, 1_000 * DAY_NS - 7 * DAY_NS),
        (Window::Week, 1_000 * DAY_NS - DAY_NS),
    ] {
        assert!(state.window(window, earliest_ns).is_ok());
        let at_ns = earliest_ns - 1;
        assert_eq!(state.window(window, at_ns), Err(WindowError::Passed { at_ns, earliest_ns }));
    }
    let without = {
        let mut state = AggregateState::default();
        state.add(Weight::ONE, newest_ns, HalfLife::MAX);
        state
    };
    assert_eq!(without.window(Window::Day, newest_ns), Err(WindowError::NotKept));
    assert!(!without.has_windows() && state.has_windows());
    let errors =
        [WindowError::NotKept, state.window(Window::Week, 7).unwrap_err()].map(|error| error.to_string());
    insta::assert_snapshot!("window_errors", errors.join("\n"));
}

#[test]
fn what_was_never_added_is_not_taken_away() {
    let now_ns = 1_000 * DAY_NS;
    let mut state = state_of(&[(now_ns, 5), (now_ns - HOUR_NS, 7)]);
    let before = state.clone();
    for (signal, error) in [
        ((now_ns + HOUR_NS, 5), SubtractError::OtherTime),
        ((now_ns - 2 * HOUR_NS, 5), SubtractError::OtherTime),
        ((now_ns, 7), SubtractError::OtherTime),
    ] {
        assert_eq!(state.subtract_contribution(&contribution(signal)), Err(error));
        assert_eq!(state, before);
    }
    let mut without = AggregateState::default();
    without.add(Weight::ONE, now_ns, HalfLife::MAX);
    let windowed = contribution((now_ns, Weight::ONE.nanos()));
    assert_eq!(without.subtract_contribution(&windowed), Err(SubtractError::OtherTime));
}

#[test]
fn an_aggregate_takes_no_more_than_its_bound() {
    let len = |signals: &[Signal]| row_of(&state_of(signals)).1.len();
    let one = len(&[(0, 1)]);
    let mut without = AggregateState::default();
    without.add(Weight::from_nanos(1).unwrap(), 0, HalfLife::MAX);
    assert_eq!(one, row_of(&without).1.len() + 56);
    // A signal every minute, for a month, newest last and first.
    let mut signals: Vec<Signal> = (0..30 * 24 * 60).map(|minute| (minute * MINUTE_NS, 1)).collect();
    // Count, weight and sum take some bytes more than those of one.
    let many = len(&signals);
    assert!((one..one + 16).contains(&(many - 25 * (23 + 191))), "{many} bytes, {one} of one signal");
    signals.reverse();
    assert_eq!(len(&signals), many);
}

const KEY: AggregateKey = AggregateKey { item: 7, scope: ScopeId(3), signal_type: SignalTypeId(1) };

fn row_of(state: &AggregateState) -> (EncodedKey, Vec<u8>) {
    let mut run = AggregateRunBuilder::new(5, None);
    run.push(KEY, state);
    let (key, row, _) = run.finish().unwrap();
    (key, row)
}

fn decoded(key: &[u8], row: &[u8]) -> Result<AggregateState, CodecError> {
    Ok(AggregateRow::decode(key, row)?.into_aggregates().remove(0).1)
}

/// A sealed row of so many signals whose windows are these bytes.
fn row_with(key: &[u8], count: u8, windows: &[u8]) -> Vec<u8> {
    seal(key, &[&[0; 15][..], &[7, 3, 1, count, 0, 1], windows].concat())
}

#[test]
fn windows_that_are_never_written_are_refused() {
    let key = aggregate_row_key(5, KEY);
    let bucket =
        |age: u8, count: u64, nanos: i128| [&[age][..], &count.to_le_bytes(), &nanos.to_le_bytes()].concat();
    let decode = |count: u8, newest: u32, fine: &[Vec<u8>], coarse: &[Vec<u8>], end: &[u8]| {
        let len = |buckets: &[Vec<u8>]| vec![u8::try_from(buckets.len()).unwrap()];
        let windows = [
            newest.to_le_bytes().to_vec(),
            len(fine),
            fine.concat(),
            len(coarse),
            coarse.concat(),
            end.to_vec(),
        ];
        decoded(&key, &row_with(&key, count, &windows.concat())).map(|state| state.has_windows())
    };
    let last_bucket = u32::try_from(u64::MAX / (5 * MINUTE_NS)).unwrap();
    assert!(decode(2, last_bucket, &[], &[], b"").unwrap());
    assert!(decode(2, 9_000, &[bucket(23, 1, 3), bucket(0, 1, -3)], &[bucket(191, 2, 0)], b"").unwrap());
    let refused = [
        decode(0, 9_000, &[], &[], b""),
        decode(2, last_bucket + 1, &[], &[], b""),
        // Not kept, twice, out of order, before all time.
        decode(2, 9_000, &[bucket(24, 1, 3)], &[], b""),
        decode(2, 9_000, &[], &[bucket(192, 1, 3)], b""),
        decode(2, 9_000, &[bucket(3, 1, 3), bucket(3, 1, 3)], &[], b""),
        decode(2, 9_000, &[], &[bucket(3, 1, 3), bucket(4, 1, 3)], b""),
        decode(2, 3, &[bucket(4, 1, 3)], &[], b""),
        // No signals, more than there are, more than they may weigh.
        decode(2, 9_000, &[bucket(3, 0, 0)], &[], b""),
        decode(2, 9_000, &[], &[bucket(3, 1, 3), bucket(2, 2, 3)], b""),
        decode(2, 9_000, &[bucket(3, 1, 1_000_000_000_000_000_001)], &[], b""),
        decode(2, 9_000, &[], &[], b"x"),
    ];
    let messages: Vec<String> = refused.into_iter().map(|refused| refused.unwrap_err().to_string()).collect();
    insta::assert_snapshot!("window_codec_errors", messages.join("\n"));
}

fn signals() -> impl Strategy<Value = Vec<Signal>> {
    let base_ns = 20_000 * DAY_NS;
    let times = prop_oneof![
        6 => (0..10 * DAY_NS).prop_map(move |later_ns| base_ns + later_ns),
        6 => (0..2 * HOUR_NS).prop_map(move |later_ns| base_ns + later_ns),
        // On boundaries, and beside them.
        4 => (0..3_000_u64, 0..3_u64)
            .prop_map(move |(bucket, shift)| base_ns + bucket * 5 * MINUTE_NS + shift - 1),
        1 => Just(0),
    ];
    let nanos = prop_oneof![4 => 0..3_000_000_000_i64, 1 => -2_000_000_000..0_i64];
    prop::collection::vec((times, nanos), 1..120)
}

proptest! {
    #[test]
    fn windows_equal_a_recount(signals in signals(), later_ns in 0..9 * DAY_NS, earlier_ns in 0..9 * DAY_NS) {
        let state = state_of(&signals);
        let newest_ns = signals.iter().map(|signal| signal.0).max().unwrap();
        for window in WINDOWS {
            for at_ns in [newest_ns, newest_ns + later_ns, newest_ns + later_ns % HOUR_NS] {
                prop_assert_eq!(found(&state, window, at_ns), recount(&signals, window, at_ns));
            }
            let at_ns = newest_ns.saturating_sub(earlier_ns);
            if bounds(window, at_ns).0 >= kept_from_ns(window, newest_ns) {
                prop_assert_eq!(found(&state, window, at_ns), recount(&signals, window, at_ns));
            } else {
                let passed = state.window(window, at_ns);
                let is_passed = matches!(passed, Err(WindowError::Passed { .. }));
                prop_assert!(is_passed, "{:?}", passed);
            }
        }
    }

    #[test]
    fn neither_order_nor_stops_on_the_way_matter(
        signals in signals(),
        order in prop::collection::vec(any::<u32>(), 120),
        stops in prop::collection::vec(any::<Index>(), 0..6),
    ) {
        let expected = state_of(&signals);
        let mut shuffled: Vec<_> = signals.iter().copied().zip(order).collect();
        shuffled.sort_by_key(|(_, place)| *place);
        let stops: Vec<usize> = stops.iter().map(|stop| stop.index(signals.len())).collect();
        let mut state = AggregateState::default();
        for (index, (signal, _)) in shuffled.into_iter().enumerate() {
            // One without signals is not stored.
            if index > 0 && stops.contains(&index) {
                let (key, row) = row_of(&state);
                state = decoded(&key, &row).unwrap();
            }
            state.add_contribution(&contribution(signal));
        }
        prop_assert_eq!(&state, &expected);
        prop_assert_eq!(row_of(&state), row_of(&expected));
    }

    #[test]
    fn states_add_up_like_their_signals(first in signals(), second in signals(), third in signals()) {
        let all = state_of(&[&first[..], &second[..], &third[..]].concat());
        let [first, second, third] = [first, second, third].map(|signals| state_of(&signals));
        let mut left = first.clone();
        left.merge(&second);
        left.merge(&third);
        let mut right = third;
        right.merge(&AggregateState::default());
        right.merge(&second);
        let mut whole = AggregateState::default();
        whole.merge(&right);
        whole.merge(&first);
        prop_assert_eq!(&left, &all);
        prop_assert_eq!(&whole, &all);
        prop_assert!(all.buckets_len() <= 216);
    }

    #[test]
    fn what_is_taken_away_is_gone_from_its_bucket_alone(
        signals in signals(),
        taken in prop::collection::vec(any::<Index>(), 0..120),
    ) {
        let mut state = state_of(&signals);
        let newest_ns = signals.iter().map(|signal| signal.0).max().unwrap();
        let mut left = signals;
        for any in taken {
            if left.is_empty() {
                break;
            }
            let signal = left.swap_remove(any.index(left.len()));
            prop_assert_eq!(state.subtract_contribution(&contribution(signal)), Ok(()));
            if left.is_empty() {
                break;
            }
            for window in WINDOWS {
                prop_assert_eq!(found(&state, window, newest_ns), recount(&left, window, newest_ns));
            }
            let (key, row) = row_of(&state);
            prop_assert_eq!(decoded(&key, &row).unwrap(), state.clone());
        }
        for signal in left {
            prop_assert_eq!(state.subtract_contribution(&contribution(signal)), Ok(()));
        }
        prop_assert_eq!(state, AggregateState::default());
    }
}
