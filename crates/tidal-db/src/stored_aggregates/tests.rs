//! Runs are added up aggregate by aggregate, however they are read, and what is missing is missed.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tidal_entities::{
    AggregateKey, AggregateRow, AggregateRun, AggregateState, HalfLife, ScopeId, SignalTypeId, Weight,
    aggregate_row_key,
};
use tidal_keys::{EntityId, Tag, encode_key};
use tidal_storage::{Medium as _, MemoryMedium, Partition, Storage, WriteBatch};

use super::StoredAggregates;
use crate::Error;
use crate::aggregate_output::AggregateOutput;

type Sums = BTreeMap<AggregateKey, AggregateState>;

fn key(item: u64, scope: u32) -> AggregateKey {
    AggregateKey { item, scope: ScopeId(scope), signal_type: SignalTypeId(0) }
}

fn state(signals: u64, event_time_ns: u64) -> AggregateState {
    let mut state = AggregateState::default();
    (0..signals).for_each(|_| state.add(Weight::ONE, event_time_ns, HalfLife::MIN));
    state
}

/// Stores a run, and neighbours of it that count for nothing.
fn store(storage: &Storage, number: u64, sums: &Sums) -> AggregateRun {
    let write = |number, sums: &Sums| {
        let mut output = AggregateOutput::new(number, 2);
        for (key, state) in sums {
            if let Some(slice) = output.push(*key, state) {
                storage.commit(slice).unwrap();
            }
        }
        let (slice, run) = output.finish();
        storage.commit(slice).unwrap();
        run.unwrap()
    };
    let neighbour = Sums::from([(key(0, 0), state(1, 0)), (key(u64::MAX, u32::MAX), state(1, 0))]);
    write(number - 1, &neighbour);
    write(number + 1, &neighbour);
    write(number, sums)
}

fn read(
    storage: &Storage,
    runs: &[AggregateRun],
    rows_at_a_time: Option<usize>,
) -> crate::Result<Vec<(AggregateKey, AggregateState)>> {
    let mut stored = match rows_at_a_time {
        Some(rows_at_a_time) => StoredAggregates::in_steps(runs, rows_at_a_time),
        None => StoredAggregates::of(storage, runs)?,
    };
    let mut read = Vec::new();
    while let Some(next) = stored.next(storage)? {
        read.push(next);
    }
    Ok(read)
}

fn runs() -> impl Strategy<Value = Vec<Sums>> {
    let aggregate = || ((0..900_u64, 0..3_u32), (1..3_u64, 0..u64::MAX));
    // Some are longer than a row.
    let aggregates = prop_oneof![
        prop::collection::vec(aggregate(), 1..20),
        prop::collection::vec(aggregate(), 1_500..1_800),
    ];
    let sums = aggregates.prop_map(|aggregates| {
        let sum = |((item, scope), (signals, at_ns))| (key(item, scope), state(signals, at_ns));
        aggregates.into_iter().map(sum).collect()
    });
    prop::collection::vec(sums, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn runs_are_added_up(runs in runs(), rows_at_a_time in 1..4_usize) {
        let storage = Storage::in_memory().unwrap();
        let mut expected = Sums::new();
        let mut stored = Vec::new();
        for (number, sums) in (2..).step_by(3).zip(&runs) {
            stored.push(store(&storage, number, sums));
            for (key, state) in sums {
                expected.entry(*key).or_default().merge(state);
            }
        }
        let expected: Vec<_> = expected.into_iter().collect();
        prop_assert_eq!(&read(&storage, &stored, Some(rows_at_a_time)).unwrap(), &expected);
        stored.reverse();
        prop_assert_eq!(&read(&storage, &stored, None).unwrap(), &expected);
    }
}

#[test]
fn no_runs_add_up_to_nothing() {
    assert_eq!(read(&Storage::in_memory().unwrap(), &[], None).unwrap(), []);
}

/// How much longer the store becomes while much is written and little kept, with some runs read up to their middle.
fn growth(read: impl FnOnce(&Storage, &[AggregateRun]) -> StoredAggregates) -> u64 {
    let medium = Arc::new(MemoryMedium::default());
    let storage = Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap();
    let long: Sums = (1..3_000).map(|item| (key(item, 1), state(1, 5))).collect();
    let short = Sums::from([(key(1_500, 2), state(1, 5))]);
    let runs = [store(&storage, 2, &long), store(&storage, 5, &short)];
    let mut sums = read(&storage, &runs);
    for _ in 0..1_000 {
        sums.next(&storage).unwrap().unwrap();
    }
    let before = medium.len().unwrap();
    for byte in 0..100 {
        storage
            .items_engine()
            .put(&encode_key(EntityId::new(1), Tag::Metadata, b""), &vec![byte; 100_000])
            .unwrap();
    }
    medium.len().unwrap() - before
}

#[test]
fn a_run_that_is_read_in_steps_keeps_no_pages_in_between() {
    let in_steps = growth(|_, runs| StoredAggregates::in_steps(runs, 4));
    let held = growth(|storage, runs| StoredAggregates::of(storage, runs).unwrap());
    assert!(in_steps < 2_000_000 && held > 8_000_000, "{in_steps} bytes more in steps, {held} of one state");
}

#[test]
fn a_row_that_is_gone_or_another_is_missed() {
    let storage = Storage::in_memory().unwrap();
    let sums: Sums = (1..3_000).map(|item| (key(item, 1), state(1, 5))).collect();
    let run = store(&storage, 5, &sums);
    let rows: Vec<_> = storage
        .items_engine()
        .scan_tag_from(Tag::SignalState, &aggregate_row_key(5, key(0, 0)))
        .unwrap()
        .map(Result::unwrap)
        .filter(|(key, _)| key[..8] == 5_u64.to_be_bytes())
        .collect();
    assert!(rows.len() > 2, "{} rows", rows.len());
    for (at, value) in &rows {
        let mut gone = WriteBatch::new();
        gone.delete(Partition::Items, at);
        storage.commit(gone).unwrap();
        for rows_at_a_time in [Some(1), None] {
            let error = read(&storage, &[run], rows_at_a_time).unwrap_err();
            assert!(matches!(error, Error::DamagedView { .. }), "{error}");
        }
        let mut back = WriteBatch::new();
        back.put(Partition::Items, at, value);
        storage.commit(back).unwrap();
        assert_eq!(read(&storage, &[run], None).unwrap().len(), sums.len());
    }
    for wrong in [
        AggregateRun { aggregate_count: run.aggregate_count + 1, ..run },
        AggregateRun { last: key(3_000, 1), ..run },
        AggregateRun { last: key(1_500, 1), ..run },
        AggregateRun { number: 7, ..run },
    ] {
        let error = read(&storage, &[wrong], None).unwrap_err();
        assert!(matches!(error, Error::DamagedView { .. }), "{wrong:?}: {error}");
    }
}

/// The runs differ in what they say of the same aggregates, so that a row of one is well in the place of the other's.
#[test]
fn a_row_of_the_next_run_is_not_taken_for_one_that_is_gone() {
    let storage = Storage::in_memory().unwrap();
    let sums = Sums::from([(key(0, 0), state(2, 5)), (key(u64::MAX, u32::MAX), state(3, 5))]);
    let run = store(&storage, 5, &sums);
    let next = AggregateRun { number: 6, ..run };
    assert_eq!(read(&storage, &[next], Some(1)).unwrap().len(), sums.len());
    let mut gone = WriteBatch::new();
    gone.delete(Partition::Items, &aggregate_row_key(5, run.last));
    storage.commit(gone).unwrap();
    let error = read(&storage, &[run], Some(1)).unwrap_err();
    assert!(matches!(error, Error::DamagedView { .. }), "{error}");
    assert_eq!(read(&storage, &[next], Some(1)).unwrap().len(), sums.len());
}

/// Each row says what lies before it, whatever the number of aggregates says.
#[test]
fn a_row_that_is_gone_is_missed_even_if_the_rest_has_as_many_as_it_should() {
    let storage = Storage::in_memory().unwrap();
    let sums: Sums = (1..3_000).map(|item| (key(item, 1), state(1, 5))).collect();
    let run = store(&storage, 5, &sums);
    for first in [true, false] {
        let rows = storage.items_engine().scan_tag_from(Tag::SignalState, &aggregate_row_key(5, key(0, 0)));
        let rows: Vec<_> = rows.unwrap().map(Result::unwrap).take(2).collect();
        let (at, value) = &rows[usize::from(!first)];
        let taken = AggregateRow::decode(at, value).unwrap().aggregates().len() as u64;
        let mut gone = WriteBatch::new();
        gone.delete(Partition::Items, at);
        storage.commit(gone).unwrap();
        let fewer = AggregateRun { aggregate_count: run.aggregate_count - taken, ..run };
        for rows_at_a_time in [Some(1), None] {
            let error = read(&storage, &[fewer], rows_at_a_time).unwrap_err();
            assert!(matches!(error, Error::DamagedView { .. }), "{error}");
        }
        let mut back = WriteBatch::new();
        back.put(Partition::Items, at, value);
        storage.commit(back).unwrap();
    }
}
