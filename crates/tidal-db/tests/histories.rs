//! Histories are what the log says, while runs are made, merged, interrupted and damaged.
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

#[path = "histories/rows.rs"]
mod rows;
mod scenarios;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use rows::{Signals, index, logged, run_numbers, run_rows, shown, wait_until_tidy};
use scenarios::config;
use scenarios::medium::{RecordingMedium, take_step};
use tidal_db::{Action, Config, DifferenceKind, Durability, Error, Event, Storage, TidalDb, Weight};
use tidal_entities::{
    RunEntry, RunIndex, RunPlace, RunRow, RunRowBuilder, encode_run_index, parse_run_row_key, run_index_key,
};
use tidal_storage::{MemoryMedium, Partition, WriteBatch};

const USERS: u64 = 5;

fn small_runs(entries: u64) -> Config {
    config().1.run_entries(entries)
}

fn open_on(medium: &Arc<MemoryMedium>, config: Config) -> (TidalDb, Storage) {
    let storage = if medium.snapshot().is_empty() {
        Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap()
    } else {
        Storage::options().open_on(medium.clone()).unwrap()
    };
    (TidalDb::from_parts(storage.clone(), config).unwrap(), storage)
}

/// A view of `item` by `user`, with a weight and a time of its own.
fn view(user: u64, item: u64) -> Event {
    let weight = Weight::from_nanos(i64::try_from(item).unwrap() + 1).unwrap();
    Event { at_ns: 1 + item % 900, action: Action::Signal { user, item, signal_type: "view".into(), weight } }
}

/// Views by users in turn, each of another item.
fn views(from: u64, to: u64, users: u64) -> impl Iterator<Item = Event> {
    (from..to).map(move |item| view(item % users, item))
}

fn assert_all(db: &TidalDb, expected: &Signals, users: u64) {
    for user in 0..=users {
        assert_eq!(&shown(db, user).unwrap(), expected.get(&user).unwrap_or(&Vec::new()), "user {user}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// So many signals of a user.
    Burst(u64, u64),
    /// Something in the log that is no signal.
    Join(u64, u64),
    LeaveAndReturn(u64),
    Flush,
    /// Waits until every run is made and merged.
    Settle,
    /// Opens what is on the medium, without a close.
    Crash,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..USERS, 1..60_u64).prop_map(|(user, signals)| Step::Burst(user, signals)),
        2 => (0..USERS, 0..9_u64).prop_map(|(user, community)| Step::Join(user, community)),
        1 => (0..USERS).prop_map(Step::LeaveAndReturn),
        2 => Just(Step::Flush),
        2 => Just(Step::Settle),
        1 => Just(Step::Crash),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn histories_are_what_the_log_says_after_every_step(
        run_entries in 1..12_u64,
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        // Nothing is on disk until it must be.
        let batched = Durability::Batched { max_events: 1_000_000, max_delay: Duration::MAX };
        let config = || small_runs(run_entries).durability(batched);
        let mut medium = Arc::new(MemoryMedium::default());
        let (mut db, mut storage) = open_on(&medium, config());
        // What is not on disk, as the log will have it.
        let mut pending: Vec<(u64, u64)> = Vec::new();
        let mut item = 0;
        for step in steps {
            match step {
                Step::Burst(user, signals) => {
                    for _ in 0..signals {
                        db.signal(user, item, "view", 1.0).unwrap();
                        pending.push((user, item));
                        item += 1;
                    }
                }
                Step::Join(user, community) => db.join_community(user, community).unwrap(),
                Step::LeaveAndReturn(user) => {
                    db.leave_community_layer(user).unwrap();
                    db.signal(user, item, "view", 1.0).unwrap();
                    item += 1;
                    db.rejoin_community_layer(user).unwrap();
                }
                Step::Flush => db.flush().unwrap(),
                Step::Settle => wait_until_tidy(&storage, run_entries),
                Step::Crash => {
                    pending.clear();
                    medium = Arc::new(MemoryMedium::from_bytes(medium.snapshot()));
                    (db, storage) = open_on(&medium, config());
                }
                Step::Reopen => {
                    db.close().unwrap();
                    (db, storage) = open_on(&medium, config());
                }
            }
            let on_disk = logged(&storage);
            let items_on_disk: BTreeSet<u64> = on_disk.values().flatten().map(|event| event.item).collect();
            pending.retain(|(_, item)| !items_on_disk.contains(item));
            for user in 0..=USERS {
                let expected: Vec<u64> = on_disk.get(&user).into_iter().flatten().map(|event| event.item)
                    .chain(pending.iter().filter(|(of, _)| *of == user).map(|(_, item)| *item)).collect();
                let events = shown(&db, user).unwrap();
                let items: Vec<u64> = events.iter().map(|event| event.item).collect();
                prop_assert_eq!(items, expected);
                let durable = on_disk.get(&user).map_or(0, Vec::len);
                prop_assert_eq!(&events[..durable], on_disk.get(&user).map_or(&[][..], Vec::as_slice));
            }
        }
        let differences = db.verify().unwrap().differences;
        prop_assert!(differences.is_empty(), "{:?}", differences);
    }
}

/// Runs of several rows, in which users begin and end anywhere.
#[test]
fn long_runs_are_made_merged_and_read() {
    const SIGNALS: u64 = 20_000;
    let medium = Arc::new(MemoryMedium::default());
    let (db, storage) = open_on(&medium, small_runs(1_000));
    // One user has more than several rows, the others less than one.
    db.apply("views", 1, (0..SIGNALS).map(|item| view(if item % 3 == 0 { 40 } else { item % 97 }, item)))
        .unwrap();
    wait_until_tidy(&storage, 1_000);
    let expected = logged(&storage);
    assert_all(&db, &expected, 100);
    let now = index(&storage);
    assert!(now.runs.iter().any(|run| run.level > 0), "{now:?}");
    assert!(now.runs.len() < 16, "{now:?}");
    assert!(run_rows(&storage).len() > 40);
    db.close().unwrap();

    let (db, storage) = open_on(&medium, small_runs(1_000));
    assert_all(&db, &expected, 100);
    // A database from before there were runs gets them.
    let mut without = WriteBatch::new();
    without.delete(Partition::System, &run_index_key());
    for (key, _) in run_rows(&storage) {
        without.delete(Partition::System, &key);
    }
    db.close().unwrap();
    let bare = Storage::options().open_on(medium.clone()).unwrap();
    bare.commit(without).unwrap();
    bare.close().unwrap();
    let (db, storage) = open_on(&medium, small_runs(1_000));
    assert_all(&db, &expected, 100);
    wait_until_tidy(&storage, 1_000);
    assert_all(&db, &expected, 100);
    assert!(db.verify().unwrap().differences.is_empty());
}

#[test]
fn an_iterator_shows_what_was_there_when_it_was_made() {
    let medium = Arc::new(MemoryMedium::default());
    let (db, storage) = open_on(&medium, small_runs(50));
    db.apply("views", 1, views(0, 1_000, USERS)).unwrap();
    wait_until_tidy(&storage, 50);
    let expected = shown(&db, 3).unwrap();
    let mut early = db.history(3).unwrap();
    let mut seen = vec![early.next().unwrap().unwrap()];
    // Every run that it reads is merged and removed meanwhile.
    db.apply("views", 1_001, views(1_000, 9_000, USERS)).unwrap();
    wait_until_tidy(&storage, 50);
    seen.extend(early.map(Result::unwrap));
    assert_eq!(seen, expected);
}

#[test]
fn histories_are_whole_while_runs_are_made_and_merged() {
    const SIGNALS: u64 = 6_000;
    let medium = Arc::new(MemoryMedium::default());
    let (db, storage) = open_on(&medium, small_runs(16));
    let acknowledged = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (db, acknowledged, done) = (&db, &acknowledged, &done);
            scope.spawn(move || {
                let mut user = reader;
                while !done.load(Ordering::Acquire) {
                    let at_least = acknowledged.load(Ordering::Acquire);
                    let items: Vec<u64> = shown(db, user).unwrap().iter().map(|event| event.item).collect();
                    // Without a hole, in order, each once, and nothing acknowledged is missing.
                    let expected: Vec<u64> = (user..SIGNALS).step_by(5).take(items.len()).collect();
                    assert_eq!(items, expected);
                    assert!(items.last().is_none_or(|last| last + USERS >= at_least), "at least {at_least}");
                    assert!(at_least <= user || !items.is_empty());
                    user = (user + 1) % USERS;
                }
            });
        }
        for from in (0..SIGNALS).step_by(20) {
            db.apply("views", from + 1, views(from, from + 20, USERS)).unwrap();
            acknowledged.store(from + 20, Ordering::Release);
        }
        done.store(true, Ordering::Release);
    });
    wait_until_tidy(&storage, 16);
    assert!(index(&storage).runs.iter().any(|run| run.level >= 2));
    assert_all(&db, &logged(&storage), USERS);
    assert!(db.verify().unwrap().differences.is_empty());
}

#[test]
fn a_crash_at_any_write_of_runs_and_merges_leaves_histories_whole() {
    const BURST: u64 = 300;
    let medium = Arc::new(RecordingMedium::default());
    let storage = Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap();
    let db = TidalDb::from_parts(storage.clone(), small_runs(BURST)).unwrap();
    let begin = medium.steps_len();
    for burst in 0..9 {
        db.apply("views", 1 + burst * BURST, views(burst * BURST, (burst + 1) * BURST, 40)).unwrap();
    }
    wait_until_tidy(&storage, BURST);
    assert!(index(&storage).runs.iter().any(|run| run.level == 1));
    db.close().unwrap();

    let mut image = Vec::new();
    let mut images = 0;
    let (mut unfinished, mut replaced) = (0, 0);
    for (done, step) in medium.steps().iter().enumerate() {
        take_step(&mut image, step);
        // Every third write: the others take as long and show as much.
        if done < begin || done % 3 != 0 {
            continue;
        }
        let medium = Arc::new(MemoryMedium::from_bytes(image.clone()));
        let storage = Storage::options().open_on(medium.clone()).unwrap();
        let (now, numbers) = (index(&storage), run_numbers(&storage));
        let others: Vec<u64> =
            numbers.into_iter().filter(|number| now.runs.iter().all(|run| run.number != *number)).collect();
        unfinished += usize::from(others.iter().any(|number| *number >= now.next_number));
        replaced += usize::from(others.iter().any(|number| *number < now.next_number));
        let copy = TidalDb::from_parts(storage.clone(), small_runs(BURST)).unwrap();
        let applied = copy.position("views").unwrap().unwrap_or(0);
        let check = |copy: &TidalDb| {
            let mut taken = 0;
            for user in 0..40 {
                let items: Vec<u64> = shown(copy, user).unwrap().iter().map(|event| event.item).collect();
                let expected: Vec<u64> = (user..applied).step_by(40).collect();
                assert_eq!(items, expected, "user {user} after {done} steps");
                taken += items.len() as u64;
            }
            assert_eq!(taken, applied, "after {done} steps");
        };
        check(&copy);
        // What the crash interrupted is gone on with, and what it left is removed.
        wait_until_tidy(&storage, BURST);
        check(&copy);
        assert!(copy.verify().unwrap().differences.is_empty(), "after {done} steps");
        images += 1;
    }
    assert!(images > 30, "only {images} images were opened");
    assert!(unfinished > 3 && replaced > 3, "{unfinished} images within a run, {replaced} behind a merge");
}

/// What a change to the rows beneath makes of the histories and of verify.
fn with_change(image: &[u8], change: WriteBatch) -> tidal_db::Result<TidalDb> {
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image.to_vec()))).unwrap();
    storage.commit(change).unwrap();
    // No more runs are made, so that nothing but the change is seen.
    TidalDb::from_parts(storage, small_runs(1_000_000))
}

fn one_change(key: &[u8], value: Option<&[u8]>) -> WriteBatch {
    let mut batch = WriteBatch::new();
    match value {
        Some(value) => batch.put(Partition::System, key, value),
        None => batch.delete(Partition::System, key),
    }
    batch
}

/// Two merged runs of several rows, and a few that are not merged.
fn run_image() -> (Vec<u8>, Storage) {
    let medium = Arc::new(MemoryMedium::default());
    let (db, storage) = open_on(&medium, small_runs(500));
    db.apply("views", 1, views(0, 5_500, 50)).unwrap();
    wait_until_tidy(&storage, 500);
    db.close().unwrap();
    let image = medium.snapshot();
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image.clone()))).unwrap();
    (image, storage)
}

#[test]
fn a_row_that_is_damaged_or_gone_is_named_and_never_shortens_a_history() {
    let (image, storage) = run_image();
    let expected = logged(&storage);
    let rows = run_rows(&storage);
    assert!(rows.len() > 15);
    for (key, value) in &rows {
        let mut flipped = value.clone();
        flipped[20] ^= 1;
        for (change, said) in [(None, "is missing"), (Some(&flipped[..]), "does not decode")] {
            let db = with_change(&image, one_change(key, change)).unwrap();
            let number = parse_run_row_key(key).unwrap().0;
            let touched: BTreeSet<u64> =
                RunRow::decode(key, value).unwrap().entries().iter().map(|entry| entry.place.user).collect();
            for user in 0..50 {
                match shown(&db, user) {
                    Ok(events) => {
                        assert_eq!(events, expected[&user], "user {user}");
                        assert!(!touched.contains(&user), "user {user} without an error");
                    }
                    Err(error) => {
                        let text = error.to_string();
                        assert!(matches!(error, Error::DamagedView { .. }), "{error:?}");
                        assert!(text.contains(said) && text.contains(&format!("run {number}")), "{text}");
                    }
                }
            }
            let report = db.verify().unwrap();
            let [difference] = &report.differences[..] else { panic!("{:?}", report.differences) };
            assert_eq!(difference.kind, DifferenceKind::History);
            assert!(difference.what.contains(said), "{difference}");
        }
    }
}

type Change = fn(&mut Vec<RunEntry>);

fn without_it(entries: &mut Vec<RunEntry>) {
    entries.remove(100);
}

#[allow(clippy::ptr_arg, reason = "all changes have one type")]
fn to_another_user(entries: &mut Vec<RunEntry>) {
    entries[100].place.user += 1;
    entries.sort_unstable_by_key(|entry| entry.place);
}

/// Sound rows that say something else than the log.
#[test]
fn verify_names_signals_that_are_not_those_of_the_log() {
    let (image, storage) = run_image();
    let (key, value) = &run_rows(&storage)[1];
    let row = RunRow::decode(key, value).unwrap();
    let rebuilt = |change: Change| {
        let mut entries = row.entries().to_vec();
        change(&mut entries);
        let mut builder = RunRowBuilder::new(row.previous());
        for entry in &entries {
            builder.push(entry);
        }
        builder.finish(row.run())
    };
    let RunPlace { user, sequence } = row.entries()[100].place;
    let cases: [(Change, u64, &str); 5] = [
        (without_it, user, "is missing in run"),
        (|entries| entries[100].item += 1, user, "is not what the log says"),
        (|entries| entries[100].weight = Weight::ONE, user, "is not what the log says"),
        (to_another_user, user, "is missing in run"),
        (to_another_user, user + 1, "is not what the log says"),
    ];
    for (change, user, said) in cases {
        let (new_key, new_value) = rebuilt(change);
        assert_eq!(new_key.as_ref(), &key[..]);
        let db = with_change(&image, one_change(key, Some(&new_value))).unwrap();
        let named: Vec<String> = db.verify().unwrap().differences.iter().map(ToString::to_string).collect();
        let place = format!("user {user} at sequence {sequence} ");
        assert!(named.iter().any(|what| what.contains(&place) && what.contains(said)), "{named:#?}");
    }
}

#[test]
fn an_index_that_is_damaged_or_ahead_of_the_log_is_refused() {
    let (image, storage) = run_image();
    let key = run_index_key();
    let sound = index(&storage);
    let refused = |value: &[u8]| {
        let error = with_change(&image, one_change(&key, Some(value))).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. } | Error::DamagedView { .. }), "{error:?}");
        error.to_string()
    };
    assert!(refused(b"no index").contains("index of runs does not decode"));
    let ahead = RunIndex { through: 10_000, ..sound.clone() };
    assert!(refused(&encode_run_index(&key, &ahead)).contains("runs of signals by user go to 10000"));

    // A run that is not in the index is in no history, so the index is not believed without its part.
    let mut shorter = sound;
    shorter.runs.remove(0);
    let db = with_change(&image, one_change(&key, Some(&encode_run_index(&key, &shorter)))).unwrap();
    let named = db.verify().unwrap().differences;
    assert!(named.iter().any(|difference| difference.what.contains("none is for the signal")), "{named:?}");
}

/// An interrupted run left many rows under the number that the index would give next, and there is a
/// run to be made at once.
#[test]
fn rows_that_an_interrupted_run_left_are_never_taken_for_a_new_one() {
    let (image, _) = run_image();
    let medium = Arc::new(MemoryMedium::from_bytes(image));
    let (db, _) = open_on(&medium, small_runs(1_000_000));
    db.apply("views", 5_501, views(5_500, 7_000, 50)).unwrap();
    db.close().unwrap();

    let storage = Storage::options().open_on(medium.clone()).unwrap();
    let expected = logged(&storage);
    let number = index(&storage).next_number;
    let entry = RunEntry { place: RunPlace::START, ..run_entry_of(&run_rows(&storage)[0]) };
    let (mut left, mut previous) = (WriteBatch::new(), RunPlace::START);
    for user in 0..400 {
        let mut builder = RunRowBuilder::new(previous);
        previous = RunPlace { user, sequence: 1 };
        builder.push(&RunEntry { place: previous, ..entry });
        let (key, value) = builder.finish(number);
        left.put(Partition::System, &key, &value);
    }
    storage.commit(left).unwrap();
    storage.close().unwrap();

    let (db, storage) = open_on(&medium, small_runs(500));
    wait_until_tidy(&storage, 500);
    assert_all(&db, &expected, 50);
    assert!(db.verify().unwrap().differences.is_empty());
}

fn run_entry_of((key, value): &(Vec<u8>, Vec<u8>)) -> RunEntry {
    RunRow::decode(key, value).unwrap().entries()[0]
}

/// Damage to what can be made again must not stop a leave.
#[test]
fn damaged_runs_stop_neither_signals_nor_leaves() {
    let (image, storage) = run_image();
    let mut damage = WriteBatch::new();
    for (key, value) in run_rows(&storage) {
        damage.put(Partition::System, &key, &value[1..]);
    }
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image))).unwrap();
    storage.commit(damage).unwrap();
    let db = TidalDb::from_parts(storage, small_runs(10)).unwrap();
    for item in 6_000..7_000 {
        db.signal(3, item, "view", 1.0).unwrap();
    }
    db.leave_community_layer(3).unwrap();
    assert!(shown(&db, 3).is_err());
    db.close().unwrap();
}

#[test]
fn a_database_in_memory_needs_no_runs() {
    let db = config().1.run_entries(1).ephemeral().open().unwrap();
    for item in 0..500 {
        db.signal(item % 7, item, "view", 1.0).unwrap();
    }
    db.flush().unwrap();
    let items: Vec<u64> = shown(&db, 3).unwrap().iter().map(|event| event.item).collect();
    assert_eq!(items, (3..500).step_by(7).collect::<Vec<u64>>());
}
