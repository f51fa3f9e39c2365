//! Reading and writing while nothing goes wrong.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod common;

use std::sync::Arc;

use common::{Call, LEFT_AT_100, TestMedium, engine, key, leave_key, rows, sample_batch};
use tidal_keys::{EntityId, Tag, entity_prefix, entity_tag_prefix};
use tidal_storage::{
    Engine, MAX_KEY_BYTES, MAX_VALUE_BYTES, MemoryMedium, Partition, Scan, Storage, StorageError,
    StorageOptions, WriteBatch,
};

#[test]
fn handles_may_cross_threads() {
    fn crosses_threads<T: Send + Sync>() {}
    fn moves_to_threads<T: Send>() {}
    crosses_threads::<Storage>();
    crosses_threads::<Engine>();
    crosses_threads::<StorageError>();
    crosses_threads::<StorageOptions>();
    moves_to_threads::<Scan>();
    moves_to_threads::<WriteBatch>();
}

#[test]
fn each_engine_is_its_partition() {
    let storage = Storage::in_memory().unwrap();
    for &partition in Partition::ALL {
        let engine = engine(&storage, partition);
        assert_eq!(engine.partition(), partition);
        engine.put(&key(7, Tag::Metadata, b""), partition.to_string().as_bytes()).unwrap();
    }
    for &partition in Partition::ALL {
        let value = engine(&storage, partition).get(&key(7, Tag::Metadata, b"")).unwrap().unwrap();
        assert_eq!(value, partition.to_string());
    }
}

#[test]
fn put_replaces_and_delete_removes() {
    let storage = Storage::in_memory().unwrap();
    let users = storage.users_engine();
    assert_eq!(users.get(&leave_key(7)).unwrap(), None);
    users.delete(&leave_key(7)).unwrap();
    users.put(&leave_key(7), b"first").unwrap();
    users.put(&leave_key(7), b"").unwrap();
    assert_eq!(users.get(&leave_key(7)).unwrap().as_deref(), Some(&b""[..]));
    users.delete(&leave_key(7)).unwrap();
    assert_eq!(users.get(&leave_key(7)).unwrap(), None);
}

#[test]
fn later_change_to_a_key_wins_within_a_batch() {
    let storage = Storage::in_memory().unwrap();
    let mut batch = WriteBatch::new();
    assert!(batch.is_empty());
    batch.delete(Partition::Users, &leave_key(7));
    batch.put(Partition::Users, &leave_key(7), b"first");
    batch.put(Partition::Users, &leave_key(7), b"second");
    batch.put(Partition::Users, &leave_key(8), b"first");
    batch.delete(Partition::Users, &leave_key(8));
    batch.put(Partition::Items, &key(8, Tag::Metadata, b""), b"another partition");
    assert_eq!(batch.len(), 3);
    assert!(!batch.is_empty());
    storage.commit(batch).unwrap();
    assert_eq!(storage.users_engine().get(&leave_key(7)).unwrap().unwrap(), "second");
    assert_eq!(storage.users_engine().get(&leave_key(8)).unwrap(), None);
    assert!(storage.items_engine().get(&key(8, Tag::Metadata, b"")).unwrap().is_some());
}

#[test]
fn malformed_key_anywhere_in_a_batch_writes_nothing() {
    let storage = Storage::in_memory().unwrap();
    let malformed: [&[u8]; 4] = [
        b"short",
        &[0, 0, 0, 0, 0, 0, 0, 7, 1, 0x11],
        &[0, 0, 0, 0, 0, 0, 0, 7, 0, 0x77],
        &key(7, Tag::CommunityLeave, b"suffix"),
    ];
    let mut messages = Vec::new();
    for bytes in malformed {
        let mut batch = WriteBatch::new();
        batch.put(Partition::Items, &key(7, Tag::Metadata, b""), b"value");
        batch.put(Partition::Users, bytes, b"value");
        batch.put(Partition::Users, &key(7, Tag::Metadata, b""), b"value");
        let error = storage.commit(batch).unwrap_err();
        let users = storage.users_engine();
        for result in [users.get(bytes).map(drop), users.put(bytes, b""), users.delete(bytes)] {
            assert_eq!(result.unwrap_err().to_string(), error.to_string());
        }
        assert!(matches!(users.scan_tag_from(Tag::Metadata, bytes), Err(StorageError::Key { .. })));
        let cause = std::error::Error::source(&error).unwrap();
        messages.push(format!("{error}\n  {cause}"));
    }
    insta::assert_snapshot!("malformed_keys", messages.join("\n"));
    assert!(common::everything(&storage).unwrap().iter().all(|(_, rows)| rows.is_empty()));
}

#[test]
fn long_malformed_key_is_shown_in_part() {
    let storage = Storage::in_memory().unwrap();
    let error = storage.users_engine().get(&[0x5a; 5000]).unwrap_err();
    assert!(error.to_string().len() < 250, "{error}");
    assert!(error.to_string().contains("(5000 bytes)"), "{error}");
}

#[test]
fn too_long_keys_and_values_are_refused() {
    let storage = Storage::in_memory().unwrap();
    let users = storage.users_engine();
    let longest = key(7, Tag::Metadata, &[b'n'; MAX_KEY_BYTES - 10]);
    users.put(&longest, b"value").unwrap();
    assert!(users.get(&longest).unwrap().is_some());
    let error = users.put(&key(7, Tag::Metadata, &[b'n'; MAX_KEY_BYTES - 9]), b"value").unwrap_err();
    insta::assert_snapshot!("key_too_long", error.to_string());
    let error = users.put(&leave_key(7), &vec![0; MAX_VALUE_BYTES + 1]).unwrap_err();
    insta::assert_snapshot!("value_too_long", error.to_string());
    assert_eq!(users.get(&leave_key(7)).unwrap(), None);
}

#[test]
fn lowest_and_highest_ids_are_met_by_every_scan() {
    let storage = Storage::in_memory().unwrap();
    storage.commit(sample_batch()).unwrap();
    let users = storage.users_engine();
    let ids = |scan: Scan| -> Vec<u64> {
        rows(scan).unwrap().iter().map(|(key, _)| u64::from_be_bytes(key[..8].try_into().unwrap())).collect()
    };
    assert_eq!(ids(users.scan_tag(Tag::CommunityLeave).unwrap()), [0, 7, 300, u64::MAX]);
    assert_eq!(ids(users.scan_tag_from(Tag::CommunityLeave, &leave_key(8)).unwrap()), [300, u64::MAX]);
    assert_eq!(ids(users.scan_tag_from(Tag::CommunityLeave, &leave_key(u64::MAX)).unwrap()), [u64::MAX]);
    assert_eq!(ids(users.scan_prefix(&[]).unwrap()), [0, 0, 7, 7, 300, 300, u64::MAX, u64::MAX]);
    assert_eq!(ids(users.scan_prefix(&[0xff]).unwrap()), [u64::MAX, u64::MAX]);
    let highest = EntityId::new(u64::MAX);
    assert_eq!(ids(users.scan_prefix(&entity_prefix(highest)).unwrap()), [u64::MAX, u64::MAX]);
    let prefix = entity_tag_prefix(highest, Tag::CommunityLeave);
    assert_eq!(ids(users.scan_prefix(&prefix).unwrap()), [u64::MAX]);
    let (last, value) = users.last(Tag::CommunityLeave).unwrap().unwrap();
    assert_eq!((&*last, &*value), (&*leave_key(u64::MAX), &LEFT_AT_100[..]));
    assert_eq!(users.last(Tag::PurgeManifest).unwrap(), None);
}

#[test]
fn rows_that_are_lent_and_rows_that_are_kept_take_turns() {
    // Several chunks.
    let storage = Storage::in_memory().unwrap();
    let mut batch = WriteBatch::new();
    for id in 0..20_000_u64 {
        batch.put(Partition::Users, &leave_key(id), &id.to_le_bytes());
    }
    storage.commit(batch).unwrap();
    let mut scan = storage.users_engine().scan_tag(Tag::CommunityLeave).unwrap();
    for id in 0..20_000_u64 {
        let expected = (leave_key(id).to_vec(), id.to_le_bytes().to_vec());
        let found = if id % 3 == 0 {
            let (key, value) = scan.next().unwrap().unwrap();
            (key.to_vec(), value.to_vec())
        } else {
            let (key, value) = scan.next_row().unwrap().unwrap();
            (key.to_vec(), value.to_vec())
        };
        assert_eq!(found, expected);
    }
    assert!(scan.next_row().unwrap().is_none() && scan.next().is_none());
    assert!(scan.next_row().unwrap().is_none());
}

#[test]
fn prefix_that_no_key_has_is_refused() {
    let storage = Storage::in_memory().unwrap();
    let users = storage.users_engine();
    for prefix in [
        &[0, 0, 0, 0, 0, 0, 0, 7, 1][..],
        &[0, 0, 0, 0, 0, 0, 0, 7, 0, 0x77],
        &[0, 0, 0, 0, 0, 0, 0, 7, 1, 3],
    ] {
        assert!(matches!(users.scan_prefix(prefix), Err(StorageError::Key { .. })), "{prefix:?}");
    }
}

#[test]
fn scan_sees_the_snapshot_it_was_made_in() {
    let storage = Storage::in_memory().unwrap();
    storage.commit(sample_batch()).unwrap();
    let users = storage.users_engine();
    let before = rows(users.scan_prefix(&[]).unwrap()).unwrap();
    let scan = users.scan_prefix(&[]).unwrap();
    users.put(&leave_key(8), &LEFT_AT_100).unwrap();
    users.delete(&leave_key(7)).unwrap();
    assert_eq!(rows(scan).unwrap(), before);
    assert_ne!(rows(users.scan_prefix(&[]).unwrap()).unwrap(), before);
}

#[test]
fn many_rows_and_long_rows_come_whole_and_in_order() {
    let storage = Storage::in_memory().unwrap();
    let mut batch = WriteBatch::new();
    let mut expected = Vec::new();
    // More rows than a chunk takes, and rows longer than a chunk among them.
    for id in 0..10_000_u64 {
        let len = if id % 1000 == 999 { 100_000 } else { usize::try_from(id % 7).unwrap() };
        let value = vec![u8::try_from(id % 251).unwrap(); len];
        let key = key(id, Tag::Event, b"");
        batch.put(Partition::System, &key, &value);
        expected.push((key.to_vec(), value));
    }
    storage.commit(batch).unwrap();
    let system = storage.system_engine();
    assert_eq!(rows(system.scan_tag(Tag::Event).unwrap()).unwrap(), expected);
    assert_eq!(rows(system.scan_prefix(&[]).unwrap()).unwrap(), expected);
    let start = key(4321, Tag::Event, b"");
    assert_eq!(rows(system.scan_tag_from(Tag::Event, &start).unwrap()).unwrap(), expected[4321..]);

    // An iterator that has ended stays ended.
    let mut scan = system.scan_tag(Tag::Metadata).unwrap();
    assert!(scan.next().is_none());
    assert!(scan.next().is_none());
}

#[test]
fn closed_storage_refuses_on_every_handle() {
    let medium = Arc::new(MemoryMedium::default());
    let storage = StorageOptions::new().create_on(medium.clone(), sample_batch()).unwrap();
    let clone = storage.clone();
    let users = storage.users_engine().clone();
    let mut scan = users.scan_prefix(&[]).unwrap();
    storage.close().unwrap();

    let closed = [
        storage.close(),
        clone.close(),
        clone.commit(WriteBatch::new()),
        clone.commit(sample_batch()),
        users.get(&leave_key(7)).map(drop),
        users.put(&leave_key(7), &LEFT_AT_100),
        users.delete(&leave_key(7)),
        users.scan_prefix(&[]).map(drop),
        users.scan_tag(Tag::CommunityLeave).map(drop),
        users.last(Tag::CommunityLeave).map(drop),
        scan.next().unwrap().map(drop),
    ];
    for (position, result) in closed.into_iter().enumerate() {
        assert!(matches!(result, Err(StorageError::Closed { .. })), "{position}: {result:?}");
    }
    assert!(scan.next().is_none(), "a scan went on after an error");
    // None of the handles that are still around keeps the database from being opened again.
    StorageOptions::new().open_on(medium).unwrap();
}

#[test]
fn scan_does_not_keep_the_database_open() {
    let medium = Arc::new(MemoryMedium::default());
    let storage = StorageOptions::new().create_on(medium.clone(), sample_batch()).unwrap();
    let scan = storage.users_engine().scan_prefix(&[]).unwrap();
    drop(storage);
    let again = StorageOptions::new().open_on(medium).unwrap();
    again.users_engine().put(&leave_key(8), &LEFT_AT_100).unwrap();
    drop(scan);
}

#[test]
fn close_waits_for_commits_under_way() {
    let medium = Arc::new(MemoryMedium::default());
    let storage = StorageOptions::new().create_on(medium.clone(), WriteBatch::new()).unwrap();
    let acknowledged: Vec<u64> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4_u64)
            .map(|writer| {
                let storage = storage.clone();
                scope.spawn(move || {
                    let ids = (0..).map(|n| n * 4 + writer);
                    ids.take_while(|id| match storage.users_engine().put(&leave_key(*id), &LEFT_AT_100) {
                        Ok(()) => true,
                        Err(StorageError::Closed { .. }) => false,
                        Err(error) => panic!("{error}"),
                    })
                    .collect::<Vec<_>>()
                })
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(50));
        storage.close().unwrap();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let again = StorageOptions::new().open_on(medium).unwrap();
    assert!(!acknowledged.is_empty());
    for id in &acknowledged {
        assert!(
            again.users_engine().get(&leave_key(*id)).unwrap().is_some(),
            "{id} was acknowledged and is gone"
        );
    }
    let stored = rows(again.users_engine().scan_tag(Tag::CommunityLeave).unwrap()).unwrap().len();
    assert_eq!(stored, acknowledged.len());
}

#[test]
fn every_commit_is_synced_and_a_leave_in_two_phases() {
    let medium = TestMedium::from_bytes(common::sample_bytes());
    let storage = StorageOptions::new().open_on(medium.clone()).unwrap();
    let syncs = |change: &dyn Fn()| {
        let before = medium.count(|call| *call == Call::Sync);
        change();
        medium.count(|call| *call == Call::Sync) - before
    };
    let users = storage.users_engine();
    // The first write after an open also marks the file as in use.
    users.put(&key(7, Tag::Metadata, b"region"), b"England").unwrap();
    assert_eq!(syncs(&|| users.put(&key(7, Tag::Metadata, b"region"), b"Wales").unwrap()), 1);
    assert_eq!(syncs(&|| users.delete(&key(7, Tag::Metadata, b"region")).unwrap()), 1);
    assert_eq!(syncs(&|| users.put(&leave_key(7), &LEFT_AT_100).unwrap()), 2);
    assert_eq!(syncs(&|| users.delete(&leave_key(7)).unwrap()), 2);
    assert_eq!(syncs(&|| storage.commit(sample_batch()).unwrap()), 2);
    assert_eq!(syncs(&|| storage.commit(WriteBatch::new()).unwrap()), 0);
    // What is not fsynced when a call returns is not durable.
    assert_eq!(medium.calls.lock().unwrap().last(), Some(&Call::Sync));
}

#[test]
fn debug_says_what_a_handle_is() {
    let storage = Storage::in_memory().unwrap();
    assert_eq!(format!("{storage:?}"), "Storage { place: Memory, .. }");
    assert_eq!(format!("{:?}", storage.users_engine()), "Engine { partition: Users, place: Memory, .. }");
    let scan = storage.users_engine().scan_prefix(&[]).unwrap();
    assert_eq!(format!("{scan:?}"), "Scan { ready_rows: 0, ended: false, .. }");
}
