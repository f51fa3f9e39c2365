//! What only repeats the log is made anew from it, whatever became of it; the log itself never is.
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

use std::sync::Arc;

use rows::{logged, run_numbers, run_rows, shown, wait_until_tidy};
use scenarios::medium::{RecordingMedium, take_step};
use scenarios::{config, create_on};
use tidal_db::{Action, Config, DifferenceKind, Error, Event, Storage, TidalDb, Weight, Withheld};
use tidal_entities::{
    AggregateKey, ScopeId, SignalTypeId, aggregate_row_key, checkpoint_key, decode_checkpoint,
    encode_checkpoint, run_index_key, seal, unseal,
};
use tidal_keys::Tag;
use tidal_storage::{Medium, MemoryMedium, Partition, WriteBatch};

const USERS: u64 = 6;
const SIGNALS: u64 = 600;
const RUN_ENTRIES: u64 = 50;

fn options() -> Config {
    config().1.run_entries(RUN_ENTRIES).recovery_entries(100)
}

fn open(image: &[u8], config: Config) -> tidal_db::Result<(TidalDb, Storage)> {
    let medium = Arc::new(MemoryMedium::from_bytes(image.to_vec()));
    let storage = Storage::options().open_on(medium).unwrap();
    TidalDb::from_parts(storage.clone(), config).map(|db| (db, storage))
}

/// A database whose aggregates are stored and whose runs are made, with all kinds of entries in its log.
fn image() -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::default());
    let db = create_on(&medium, options()).unwrap();
    for user in 0..USERS {
        db.join_community(user, user % 2).unwrap();
        db.set_user_attribute(user, "region", "Scotland").unwrap();
    }
    db.leave_community_layer(3).unwrap();
    let views = (0..SIGNALS).map(|item| {
        let weight = Weight::from_nanos(i64::try_from(item).unwrap() - 100).unwrap();
        let action =
            Action::Signal { user: item % USERS, item: item % 40, signal_type: "view".into(), weight };
        Event { at_ns: 1 + item, action }
    });
    db.apply("views", 1, views).unwrap();
    db.rejoin_community_layer(3).unwrap();
    db.leave_community_layer(5).unwrap();
    db.close().unwrap();
    // The runs that the close interrupted are gone on with.
    let storage = Storage::options().open_on(medium.clone()).unwrap();
    let db = TidalDb::from_parts(storage.clone(), options()).unwrap();
    wait_until_tidy(&storage, RUN_ENTRIES);
    db.close().unwrap();
    medium.snapshot()
}

fn changed(image: &[u8], change: impl FnOnce(&Storage) -> WriteBatch) -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::from_bytes(image.to_vec()));
    let storage = Storage::options().open_on(medium.clone()).unwrap();
    storage.commit(change(&storage)).unwrap();
    storage.close().unwrap();
    medium.snapshot()
}

fn put(partition: Partition, key: &[u8], value: &[u8]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(partition, key, value);
    batch
}

fn delete(partition: Partition, key: &[u8]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.delete(partition, key);
    batch
}

fn stored_aggregates(storage: &Storage) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = storage.items_engine().scan_tag(Tag::SignalState).unwrap().map(Result::unwrap);
    rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Everything that the log says is there, and who has left has.
fn assert_sound(db: &TidalDb, storage: &Storage) {
    let report = db.verify().unwrap();
    assert!(report.differences.is_empty(), "{:?}", report.differences);
    let expected = logged(storage);
    assert_eq!(expected.values().map(Vec::len).sum::<usize>() as u64, SIGNALS);
    for user in 0..USERS {
        assert_eq!(shown(db, user).unwrap(), expected[&user], "user {user}");
    }
    let left: Vec<u64> = db.left_users().iter().map(|record| record.user_id).collect();
    assert_eq!(left, [5]);
}

#[test]
fn every_damage_to_what_repeats_the_log_is_named_and_rebuilt() {
    type Damage = fn(&Storage) -> WriteBatch;
    let kinds: [(&str, Damage); 10] = [
        ("a row of a run", |storage| {
            let (key, value) = &run_rows(storage)[0];
            put(Partition::System, key, &value[1..])
        }),
        ("a run without a row", |storage| delete(Partition::System, &run_rows(storage)[0].0)),
        ("the index of runs", |_| put(Partition::System, &run_index_key(), b"no index")),
        ("aggregates", |storage| {
            let (key, value) = &stored_aggregates(storage)[0];
            put(Partition::Items, key, &value[1..])
        }),
        ("aggregates that are gone", |storage| delete(Partition::Items, &stored_aggregates(storage)[0].0)),
        ("aggregates in the place of others", |storage| {
            let (key, value) = &stored_aggregates(storage)[0];
            put(Partition::Items, key, &seal(&checkpoint_key(), unseal(key, value).unwrap()))
        }),
        ("fewer aggregates than the checkpoint says", |storage| {
            let key = checkpoint_key();
            let value = storage.system_engine().get(&key).unwrap().unwrap();
            let mut checkpoint = decode_checkpoint(&key, &value).unwrap();
            checkpoint.runs[0].aggregate_count += 1;
            put(Partition::System, &key, &encode_checkpoint(&key, &checkpoint))
        }),
        ("aggregates of a run that is still to come", |storage| {
            let key = checkpoint_key();
            let value = storage.system_engine().get(&key).unwrap().unwrap();
            let next = decode_checkpoint(&key, &value).unwrap().next_number;
            let last = AggregateKey { item: 1, scope: ScopeId::GLOBAL, signal_type: SignalTypeId(0) };
            put(Partition::Items, &aggregate_row_key(next, last), b"no row")
        }),
        ("the checkpoint", |_| put(Partition::System, &checkpoint_key(), b"no checkpoint")),
        ("a checkpoint that is gone", |_| delete(Partition::System, &checkpoint_key())),
    ];
    let sound = image();
    for (what, damage) in kinds {
        let damaged = changed(&sound, damage);
        let error = match open(&damaged, options()) {
            Err(error) => error,
            Ok((db, _)) => (0..USERS).find_map(|user| shown(&db, user).err()).expect(what),
        };
        assert!(matches!(error, Error::DamagedView { .. }), "{what}: {error:?}");
        assert!(error.to_string().contains("rebuild(true)"), "{what}: {error}");

        let medium = Arc::new(MemoryMedium::from_bytes(damaged));
        let storage = Storage::options().open_on(medium.clone()).unwrap();
        let db = TidalDb::from_parts(storage.clone(), options().rebuild(true)).unwrap();
        assert_sound(&db, &storage);
        wait_until_tidy(&storage, RUN_ENTRIES);
        assert_sound(&db, &storage);
        db.close().unwrap();

        // Nobody needs to know of it later, and an open reads as little as before.
        let (db, storage) = open(&medium.snapshot(), options()).unwrap();
        assert!(db.open_report().replayed_entries <= 100, "{what}: {:?}", db.open_report());
        assert!(!stored_aggregates(&storage).is_empty() && !run_numbers(&storage).is_empty());
        assert_sound(&db, &storage);
    }
}

/// The log is what everything is made from. Nothing is dropped when it cannot be believed.
#[test]
fn a_log_that_lost_its_end_is_refused_and_nothing_is_dropped() {
    let without_its_end = changed(&image(), |storage| {
        let mut change = WriteBatch::new();
        let rows = storage.system_engine().scan_tag(Tag::Event).unwrap().map(Result::unwrap);
        rows.skip(3).for_each(|(key, _)| change.delete(Partition::System, &key));
        change
    });
    let before = contents(&without_its_end);
    let medium = Arc::new(MemoryMedium::from_bytes(without_its_end));
    let storage = Storage::options().open_on(medium.clone()).unwrap();
    let error = TidalDb::from_parts(storage.clone(), options().rebuild(true)).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
    storage.close().unwrap();
    assert_eq!(contents(&medium.snapshot()), before);
}

/// Signals change nothing beside the log: that they are gone is known only by what has followed them, and of the stored
/// aggregates and the runs each must say so alone.
#[test]
fn a_log_that_lost_only_signals_is_refused_by_whatever_has_followed_them() {
    let medium = Arc::new(MemoryMedium::default());
    let storage = Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap();
    let db = TidalDb::from_parts(storage.clone(), options()).unwrap();
    for item in 0..200 {
        db.signal(7, item, "view", 1.0).unwrap();
    }
    wait_until_tidy(&storage, RUN_ENTRIES);
    db.close().unwrap();
    for forgotten in [run_index_key(), checkpoint_key()] {
        let without_its_end = changed(&medium.snapshot(), |storage| {
            let mut change = WriteBatch::new();
            let rows = storage.system_engine().scan_tag(Tag::Event).unwrap().map(Result::unwrap);
            rows.skip(3).for_each(|(key, _)| change.delete(Partition::System, &key));
            change.delete(Partition::System, &forgotten);
            change
        });
        let before = contents(&without_its_end);
        let medium = Arc::new(MemoryMedium::from_bytes(without_its_end));
        let storage = Storage::options().open_on(medium.clone()).unwrap();
        let error = TidalDb::from_parts(storage.clone(), options().rebuild(true)).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "without {forgotten:?}: {error:?}");
        storage.close().unwrap();
        assert_eq!(contents(&medium.snapshot()), before, "without {forgotten:?}");
    }
}

fn contents(image: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image.to_vec()))).unwrap();
    let mut rows = stored_aggregates(&storage);
    rows.extend(run_rows(&storage));
    let system = storage.system_engine().scan_tag(Tag::Metadata).unwrap().map(Result::unwrap);
    rows.extend(system.map(|(key, value)| (key.to_vec(), value.to_vec())));
    rows
}

#[test]
fn a_crash_at_any_write_of_a_rebuild_leaves_what_can_be_rebuilt() {
    let start = image();
    let medium = Arc::new(RecordingMedium::default());
    medium.set_len(start.len() as u64).unwrap();
    medium.write(0, &start).unwrap();
    let begin = medium.steps_len();
    let storage = Storage::options().open_on(medium.clone()).unwrap();
    let db = TidalDb::from_parts(storage.clone(), options().rebuild(true)).unwrap();
    wait_until_tidy(&storage, RUN_ENTRIES);
    db.close().unwrap();

    let mut image = Vec::new();
    let (mut images, mut refused) = (0, 0);
    for (done, step) in medium.steps().iter().enumerate() {
        take_step(&mut image, step);
        // Every second write: the others take as long and show as much.
        if done < begin || done % 2 != 0 {
            continue;
        }
        let opened = match open(&image, options()) {
            Err(Error::DamagedView { .. }) => {
                refused += 1;
                open(&image, options().rebuild(true))
            }
            opened => opened,
        };
        let (db, storage) = opened.unwrap();
        assert_sound(&db, &storage);
        images += 1;
    }
    assert!(
        images > 20 && refused > 0 && refused < images,
        "{images} images were opened, {refused} of them refused"
    );
}

#[test]
fn a_stored_aggregate_that_is_gone_is_named_while_the_database_is_open() {
    let (db, storage) = open(&image(), options()).unwrap();
    assert_sound(&db, &storage);
    let (key, _) = &stored_aggregates(&storage)[0];
    storage.commit(delete(Partition::Items, key)).unwrap();
    let differences = db.verify().unwrap().differences;
    let [difference] = &differences[..] else { panic!("{differences:?}") };
    assert_eq!(difference.kind, DifferenceKind::StoredAggregate, "{difference}");
}

/// Merges read what is stored, and there is nothing that a leave needs of it.
#[test]
fn damage_that_a_merge_comes_upon_stops_no_leave() {
    let medium = Arc::new(MemoryMedium::from_bytes(image()));
    let storage = Storage::options().open_on(medium.clone()).unwrap();
    let db = TidalDb::from_parts(storage.clone(), options()).unwrap();
    for (key, _) in stored_aggregates(&storage) {
        storage.commit(delete(Partition::Items, &key)).unwrap();
    }
    // So many checkpoints that merges of those that are gone are due, and of those that come after.
    for position in SIGNALS + 1.. {
        let action =
            Action::Signal { user: 1, item: position, signal_type: "view".into(), weight: Weight::ONE };
        db.apply("views", position, [Event { at_ns: 1, action }]).unwrap();
        let key = checkpoint_key();
        let value = storage.system_engine().get(&key).unwrap().unwrap();
        if decode_checkpoint(&key, &value).unwrap().runs.len() > 8 {
            break;
        }
    }
    db.leave_community_layer(1).unwrap();
    assert_eq!(db.signal(1, 1, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
    db.close().unwrap();
    let error = open(&medium.snapshot(), options()).map(|(db, _)| db).unwrap_err();
    assert!(matches!(error, Error::DamagedView { .. }), "{error:?}");
    let (db, _) = open(&medium.snapshot(), options().rebuild(true)).unwrap();
    assert_eq!(db.left_users().iter().map(|record| record.user_id).collect::<Vec<_>>(), [1, 5]);
}
