//! Stored aggregates follow the log, an open reads no more of it than was allowed, and a crash at any
//! write of a checkpoint leaves what the events give.
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

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scenarios::medium::{RecordingMedium, take_step};
use scenarios::{community, config, open_image};
use tidal_db::{Action, Config, Event, Scope, Storage, TidalDb, Weight};
use tidal_entities::{
    AggregateKey, AggregateRunBuilder, AggregateState, Checkpoint, HalfLife, ScopeId, SignalTypeId,
    checkpoint_key, decode_checkpoint, encode_checkpoint, parse_aggregate_row_key,
};
use tidal_keys::Tag;
use tidal_storage::{MemoryMedium, Partition, WriteBatch};

/// With two scopes more aggregates than one slice of a checkpoint holds.
const ITEMS: u64 = 2_100;

fn views(from: u64, to: u64) -> impl Iterator<Item = Event> {
    (from..to).map(|item| Event {
        at_ns: 1_000,
        action: Action::Signal { user: 7, item, signal_type: "view".to_owned(), weight: Weight::ONE },
    })
}

fn bounded() -> Config {
    config().1.recovery_entries(400)
}

/// Every aggregate is what the history gives, whatever of it was stored as an aggregate.
fn assert_views_follow_the_events(db: &TidalDb) -> u64 {
    let mut taken = 0;
    let mut items: Vec<u64> = db.history(7).unwrap().map(|event| event.unwrap().item).collect();
    items.sort_unstable();
    let mut global: Vec<u64> = Vec::new();
    let mut joined: Vec<u64> = Vec::new();
    for row in db.aggregates(None).unwrap() {
        let row = row.unwrap();
        let times = usize::try_from(row.aggregate.count).unwrap();
        assert_eq!(row.aggregate.weight_nanos, i128::from(row.aggregate.count) * 1_000_000_000);
        match row.scope {
            Scope::Global => global.extend(std::iter::repeat_n(row.item, times)),
            _ => joined.extend(std::iter::repeat_n(row.item, times)),
        }
        taken += row.aggregate.count;
    }
    assert_eq!(global, items);
    assert_eq!(joined, items);
    taken
}

/// Waits until a reopened copy would read little of the log.
fn wait_for_checkpoints(medium: &MemoryMedium, at_most: u64) {
    let patience = Instant::now();
    loop {
        let copy = open_image(medium.snapshot(), bounded()).unwrap();
        if copy.open_report().replayed_entries <= at_most {
            return;
        }
        assert!(patience.elapsed() < Duration::from_secs(60), "no checkpoint came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_open_reads_no_more_than_was_allowed() {
    let medium = Arc::new(MemoryMedium::default());
    let db = scenarios::create_on(&medium, bounded()).unwrap();
    db.join_community(7, 4).unwrap();
    for round in 0..6 {
        db.apply("views", 1 + round * ITEMS, views(0, ITEMS)).unwrap();
        // Whoever waited for the checkpoint has come back only when it was there.
        let copy = open_image(medium.snapshot(), bounded()).unwrap();
        assert!(copy.open_report().replayed_entries <= 400, "{:?}", copy.open_report());
        assert_eq!(assert_views_follow_the_events(&copy), 2 * ITEMS * (round + 1));
    }
    wait_for_checkpoints(&medium, 100);
    assert_eq!(db.aggregate(&community(4), 9, "view").unwrap().unwrap().count, 6);
    db.close().unwrap();
    let db = open_image(medium.snapshot(), bounded()).unwrap();
    assert_eq!(assert_views_follow_the_events(&db), 12 * ITEMS);
}

#[test]
fn a_crash_at_any_write_of_a_checkpoint_loses_nothing_and_counts_nothing_twice() {
    let medium = Arc::new(RecordingMedium::default());
    let storage = Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap();
    let db = TidalDb::from_parts(storage, bounded()).unwrap();
    db.join_community(7, 4).unwrap();
    let begin = medium.steps_len();
    db.apply("views", 1, views(0, ITEMS)).unwrap();
    db.apply("views", 1 + ITEMS, views(0, ITEMS)).unwrap();
    db.close().unwrap();
    let steps = medium.steps();

    let mut image = Vec::new();
    let mut images = 0;
    let mut within_a_checkpoint = 0;
    for (done, step) in steps.iter().enumerate() {
        take_step(&mut image, step);
        // Every second write: the others take as long and show as much.
        if done < begin || done % 2 != 0 {
            continue;
        }
        within_a_checkpoint += usize::from(is_within_a_checkpoint(&image));
        let copy = open_image(image.clone(), bounded()).unwrap();
        let taken = assert_views_follow_the_events(&copy);
        assert_eq!(taken, 2 * copy.position("views").unwrap().unwrap_or(0), "after {done} steps");
        // What the crash interrupted is gone on with.
        copy.apply("views", 1, views(0, ITEMS).chain(views(0, ITEMS))).unwrap();
        assert_eq!(assert_views_follow_the_events(&copy), 4 * ITEMS, "after {done} steps");
        images += 1;
    }
    assert!(images > 50, "only {images} images were opened");
    assert!(within_a_checkpoint > 0, "no image was taken within a checkpoint");
}

/// The numbers of the runs that have rows, and of those that the checkpoint names.
fn run_numbers(image: &[u8]) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image.to_vec()))).unwrap();
    let rows = storage.items_engine().scan_tag(Tag::SignalState).unwrap().map(Result::unwrap);
    let stored = rows.map(|(key, _)| parse_aggregate_row_key(&key).unwrap().0).collect();
    let key = checkpoint_key();
    let value = storage.system_engine().get(&key).unwrap().unwrap();
    let runs = decode_checkpoint(&key, &value).unwrap().runs;
    (stored, runs.iter().map(|run| run.number).collect())
}

/// What a crash in the middle of a checkpoint leaves: a row of a run that is not whole.
fn interrupted_run(storage: &Storage) -> WriteBatch {
    let key = checkpoint_key();
    let value = storage.system_engine().get(&key).unwrap().unwrap();
    let mut checkpoint = decode_checkpoint(&key, &value).unwrap();
    let mut run = AggregateRunBuilder::new(checkpoint.next_number, None);
    let mut state = AggregateState::default();
    state.add(Weight::ONE, 1_000, HalfLife::MIN);
    let aggregate = AggregateKey { item: 1, scope: ScopeId::GLOBAL, signal_type: SignalTypeId(0) };
    assert!(run.push(aggregate, &state).is_none());
    let (row_key, row, _) = run.finish().unwrap();
    checkpoint.next_number += 1;
    let mut batch = WriteBatch::new();
    batch.put(Partition::Items, &row_key, &row);
    batch.put(Partition::System, &key, &encode_checkpoint(&key, &checkpoint));
    batch
}

#[test]
fn runs_are_merged_and_what_was_merged_or_interrupted_goes() {
    const ROUNDS: u64 = 60;
    let medium = Arc::new(MemoryMedium::default());
    let mut db = scenarios::create_on(&medium, bounded()).unwrap();
    db.join_community(7, 4).unwrap();
    for round in 0..ROUNDS {
        // As it comes, in the middle of a checkpoint or of a merge; at last one process removes what it merged itself.
        if round % 8 == 7 && round < 40 {
            db.close().unwrap();
            let storage = Storage::options().open_on(medium.clone()).unwrap();
            storage.commit(interrupted_run(&storage)).unwrap();
            db = TidalDb::from_parts(storage, bounded()).unwrap();
        }
        db.apply("views", 1 + 100 * round, views(40 * round, 40 * round + 100)).unwrap();
    }
    let patience = Instant::now();
    let named = loop {
        let (stored, named) = run_numbers(&medium.snapshot());
        if stored == named && named.len() < 6 {
            break named;
        }
        assert!(patience.elapsed() < Duration::from_secs(60), "rows of {stored:?}, but runs are {named:?}");
        std::thread::sleep(Duration::from_millis(5));
    };
    // Numbers are given in turn: those that are missing were merged, or interrupted.
    assert!(named.last().is_some_and(|number| *number > 2 * named.len() as u64), "{named:?}");
    let report = db.verify().unwrap();
    assert!(report.differences.is_empty(), "{:?}", report.differences);
    assert_eq!(assert_views_follow_the_events(&db), 2 * ROUNDS * 100);
}

/// Whether some rows are of a run that the checkpoint does not name yet. Their number is not to be given again, or
/// what removes them would remove a run that is whole.
fn is_within_a_checkpoint(image: &[u8]) -> bool {
    let medium = Arc::new(MemoryMedium::from_bytes(image.to_vec()));
    let storage = Storage::options().open_on(medium).unwrap();
    let key = checkpoint_key();
    let value = storage.system_engine().get(&key).unwrap();
    let Some(value) = value else { return false };
    let Checkpoint { runs, next_number, .. } = decode_checkpoint(&key, &value).unwrap();
    let newest = runs.iter().map(|run| run.number).max().unwrap_or(0);
    let rows = storage.items_engine().scan_tag(Tag::SignalState).unwrap().map(Result::unwrap);
    let last = rows.map(|(key, _)| parse_aggregate_row_key(&key).unwrap().0).max().unwrap_or(0);
    assert!(last < next_number, "rows of run {last}, but the next is {next_number}");
    last > newest
}
