//! Failing calls, panics, damage and crashes below the engine.
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

use common::{
    Call, Fate, LEFT_AT_100, TestMedium, everything, key, leave_key, rows, sample_batch, sample_bytes,
};
use tidal_keys::Tag;
use tidal_storage::{
    Medium as _, MemoryMedium, Partition, Storage, StorageError, StorageOptions, WriteBatch,
};

fn open(bytes: Vec<u8>) -> Result<Storage, StorageError> {
    StorageOptions::new().open_on(Arc::new(MemoryMedium::from_bytes(bytes)))
}

/// A batch over two partitions, so that half of it would show.
fn two_part_batch() -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(Partition::Users, &leave_key(8), &LEFT_AT_100);
    batch.put(Partition::System, &key(8, Tag::Event, b""), &[0xcd; 9000]);
    batch
}

/// How many parts of [`two_part_batch`] are there.
fn parts_of_batch(storage: &Storage) -> usize {
    usize::from(storage.users_engine().get(&leave_key(8)).unwrap().is_some())
        + usize::from(storage.system_engine().get(&key(8, Tag::Event, b"")).unwrap().is_some())
}

fn set_bit(bytes: &[u8], byte: usize, bit: u8) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    flipped[byte] ^= 1 << bit;
    flipped
}

#[test]
fn any_read_that_fails_while_opening_is_an_error() {
    let bytes = sample_bytes();
    for check in [true, false] {
        let options = StorageOptions::new().check_integrity(check);
        let mut refused = 0;
        for position in 0.. {
            let medium = TestMedium::from_bytes(bytes.clone());
            medium.plan(Fate::Fails, Call::is_read, position);
            let opened = options.open_on(medium.clone());
            if !medium.has_struck() {
                opened.unwrap();
                break;
            }
            assert!(matches!(opened, Err(StorageError::Io { .. })), "read {position}: {opened:?}");
            assert_eq!(medium.memory.snapshot(), bytes, "read {position}: a failed open changed the medium");
            // The failure passes, and nothing of it stays: the same medium opens.
            drop(options.open_on(medium).unwrap());
            refused += 1;
        }
        assert!(refused > 5, "only {refused} reads were tried");
    }
}

#[test]
fn any_call_that_fails_while_a_killed_file_is_repaired_loses_nothing() {
    let medium = TestMedium::from_bytes(sample_bytes());
    let storage = StorageOptions::new().open_on(medium.clone()).unwrap();
    storage.commit(two_part_batch()).unwrap();
    let killed = medium.memory.snapshot();
    let intact = everything(&storage).unwrap();
    for fate in [Fate::Fails, Fate::Panics] {
        let mut refused = 0;
        for position in 0.. {
            let medium = TestMedium::from_bytes(killed.clone());
            medium.plan(fate, |call| !call.is_read(), position);
            let opened = StorageOptions::new().open_on(medium.clone());
            if !medium.has_struck() {
                opened.unwrap();
                break;
            }
            match opened {
                Err(StorageError::Io { .. }) => assert_eq!(fate, Fate::Fails),
                Err(StorageError::EnginePanicked { .. }) => assert_eq!(fate, Fate::Panics),
                other => panic!("call {position}: {other:?}"),
            }
            let again = StorageOptions::new().open_on(medium).unwrap();
            assert_eq!(everything(&again).unwrap(), intact, "call {position}");
            refused += 1;
        }
        assert!(refused > 3, "only {refused} calls were tried");
    }
}

#[test]
fn any_read_that_fails_during_a_scan_ends_it_with_an_error() {
    let medium = Arc::new(MemoryMedium::default());
    let mut first = WriteBatch::new();
    for id in 0..2000 {
        first.put(Partition::Users, &leave_key(id), &LEFT_AT_100);
    }
    StorageOptions::new().create_on(medium.clone(), first).unwrap().close().unwrap();
    let bytes = medium.snapshot();
    let mut refused = 0;
    for position in 0.. {
        let medium = TestMedium::from_bytes(bytes.clone());
        // Without a cache every page is read anew.
        let storage = StorageOptions::new().cache_size_bytes(0).open_on(medium.clone()).unwrap();
        medium.plan(Fate::Fails, Call::is_read, position);
        let mut count = 0_u32;
        let outcome = storage.users_engine().scan_tag(Tag::CommunityLeave).and_then(|mut scan| {
            let outcome = scan.try_for_each(|row| row.map(|_| count += 1));
            assert!(scan.next().is_none(), "read {position}: a scan went on after its end");
            outcome
        });
        if !medium.has_struck() {
            outcome.unwrap();
            assert_eq!(count, 2000);
            break;
        }
        assert!(
            matches!(outcome, Err(StorageError::Io { .. })),
            "read {position}: {outcome:?} after {count} rows"
        );
        let refusal = storage.users_engine().put(&leave_key(1), &LEFT_AT_100).unwrap_err();
        assert!(matches!(refusal, StorageError::Latched { .. }), "{refusal}");
        refused += 1;
    }
    assert!(refused > 5, "only {refused} reads were tried");
}

#[test]
fn any_call_that_fails_during_a_commit_latches_and_leaves_all_or_nothing() {
    let bytes = sample_bytes();
    let (mut absent, mut present) = (0, 0);
    for position in 0.. {
        let medium = TestMedium::from_bytes(bytes.clone());
        let storage = StorageOptions::new().open_on(medium.clone()).unwrap();
        medium.plan(Fate::Fails, |_| true, position);
        let committed = storage.commit(two_part_batch());
        if !medium.has_struck() {
            committed.unwrap();
            break;
        }
        assert!(matches!(committed, Err(StorageError::Io { .. })), "call {position}: {committed:?}");
        for refusal in [
            storage.commit(two_part_batch()),
            storage.users_engine().put(&leave_key(9), b""),
            storage.close(),
        ] {
            assert!(matches!(refusal, Err(StorageError::Latched { .. })), "call {position}: {refusal:?}");
        }
        let again = StorageOptions::new().open_on(medium).unwrap();
        match parts_of_batch(&again) {
            0 => absent += 1,
            2 => present += 1,
            parts => panic!("call {position}: {parts} of 2 parts are there"),
        }
        again.commit(two_part_batch()).unwrap();
        assert_eq!(parts_of_batch(&again), 2);
    }
    // An error does not say that nothing was written: both ends are met.
    assert!(absent > 0 && present > 0, "{absent} absent, {present} present");
}

#[test]
fn latch_names_the_first_failure() {
    let medium = TestMedium::from_bytes(sample_bytes());
    let storage = StorageOptions::new().open_on(medium.clone()).unwrap();
    medium.plan(Fate::Fails, |call| *call == Call::Sync, 0);
    let error = storage.users_engine().put(&leave_key(8), &LEFT_AT_100).unwrap_err();
    insta::assert_snapshot!(
        "commit_io",
        format!("{error}\n  {}", std::error::Error::source(&error).unwrap())
    );
    let refusal = storage.users_engine().put(&leave_key(8), &LEFT_AT_100).unwrap_err();
    insta::assert_snapshot!("commit_latched", refusal.to_string());
    // What is in the cache can still be read.
    assert!(storage.users_engine().get(&leave_key(7)).unwrap().is_some());
}

#[test]
fn failing_creation_is_an_error_or_is_whole() {
    for position in 0.. {
        let medium = TestMedium::from_bytes(Vec::new());
        medium.plan(Fate::Fails, |_| true, position);
        let created = StorageOptions::new().create_on(medium.clone(), sample_batch());
        if !medium.has_struck() {
            assert_eq!(
                everything(&created.unwrap()).unwrap(),
                everything(&open(sample_bytes()).unwrap()).unwrap()
            );
            break;
        }
        assert!(matches!(created, Err(StorageError::Io { .. })), "call {position}: {created:?}");
        if let Ok(storage) = open(medium.memory.snapshot()) {
            assert_eq!(everything(&storage).unwrap(), everything(&open(sample_bytes()).unwrap()).unwrap());
        }
    }
}

#[test]
fn panic_during_open_is_an_error_that_changes_nothing() {
    let bytes = sample_bytes();
    for position in 0.. {
        let medium = TestMedium::from_bytes(bytes.clone());
        medium.plan(Fate::Panics, Call::is_read, position);
        let opened = StorageOptions::new().open_on(medium.clone());
        if !medium.has_struck() {
            opened.unwrap();
            break;
        }
        let Err(error) = opened else { panic!("read {position} panicked and it opened") };
        assert!(matches!(error, StorageError::EnginePanicked { .. }), "read {position}: {error}");
        assert_eq!(medium.memory.snapshot(), bytes, "read {position}");
        StorageOptions::new().open_on(medium).unwrap();
    }
}

#[test]
fn panic_during_a_commit_latches_and_leaves_all_or_nothing() {
    let bytes = sample_bytes();
    for position in 0.. {
        let medium = TestMedium::from_bytes(bytes.clone());
        let storage = StorageOptions::new().open_on(medium.clone()).unwrap();
        medium.plan(Fate::Panics, |_| true, position);
        let committed = storage.commit(two_part_batch());
        if !medium.has_struck() {
            committed.unwrap();
            break;
        }
        let error = committed.unwrap_err();
        assert!(matches!(&error, StorageError::EnginePanicked { .. }), "call {position}: {error}");
        insta::assert_snapshot!("commit_panicked", error.to_string());
        // What the engine would answer from here on is not known to be true.
        let users = storage.users_engine();
        for refusal in [
            storage.commit(two_part_batch()),
            users.get(&leave_key(7)).map(drop),
            users.scan_tag(Tag::CommunityLeave).map(drop),
        ] {
            let refusal = refusal.unwrap_err();
            assert!(matches!(&refusal, StorageError::Latched { .. }), "call {position}: {refusal}");
            insta::assert_snapshot!("panic_latched", refusal.to_string());
        }
        // Whatever close makes of it, it returns, and the medium is free.
        drop(storage.close());
        let again = StorageOptions::new().open_on(medium).unwrap();
        assert!(matches!(parts_of_batch(&again), 0 | 2), "call {position}: half of a batch is there");
    }
}

#[test]
fn panic_during_close_or_drop_goes_no_further() {
    let bytes = sample_bytes();
    for dropped in [false, true] {
        for position in 0.. {
            let medium = TestMedium::from_bytes(bytes.clone());
            let storage = StorageOptions::new().open_on(medium.clone()).unwrap();
            storage.commit(two_part_batch()).unwrap();
            medium.plan(Fate::Panics, |_| true, position);
            if dropped {
                drop(storage);
            } else {
                let closed = storage.close();
                assert_eq!(closed.is_err(), medium.has_struck(), "call {position}: {closed:?}");
            }
            let struck = medium.has_struck();
            medium.clear_plan();
            let again = StorageOptions::new().open_on(medium).unwrap();
            assert_eq!(parts_of_batch(&again), 2, "call {position}: an acknowledged batch is gone");
            if !struck {
                break;
            }
        }
    }
}

#[test]
fn crash_at_any_call_leaves_all_or_nothing_of_a_batch() {
    let bytes = sample_bytes();
    let medium = TestMedium::from_bytes(bytes.clone());
    let storage = StorageOptions::new().open_on(medium.clone()).unwrap();
    let before_commit = medium.memory.snapshot();
    let calls_before = medium.calls.lock().unwrap().len();
    storage.commit(two_part_batch()).unwrap();
    let calls: Vec<_> = medium.calls.lock().unwrap()[calls_before..].to_vec();
    assert!(calls.iter().filter(|call| call.changes_bytes()).count() > 2, "{calls:?}");

    let image = MemoryMedium::from_bytes(before_commit);
    let mut seen = [0; 3];
    for call in calls {
        let crashed = open(image.snapshot()).unwrap();
        seen[parts_of_batch(&crashed)] += 1;
        drop(crashed);
        match call {
            Call::SetLen(len) => image.set_len(len).unwrap(),
            Call::Write(offset, data) => image.write(offset, &data).unwrap(),
            Call::Len | Call::Read | Call::Sync => {}
        }
    }
    assert_eq!(parts_of_batch(&open(image.snapshot()).unwrap()), 2, "an acknowledged batch is gone");
    assert_eq!(seen[1], 0, "half of a batch is there");
    assert!(seen[0] > 0);
}

#[test]
fn flipped_bit_in_a_closed_database_never_alters_a_record() {
    let bytes = sample_bytes();
    let intact = everything(&open(bytes.clone()).unwrap()).unwrap();
    // All bytes of the header and a sample of what follows, a bit of each.
    let header = (0..320).map(|byte| bit_of(byte, 1));
    let rest = (320..bytes.len()).step_by(61).map(|byte| bit_of(byte, 61));
    let (mut refused, mut harmless) = (0, 0);
    for (byte, bit) in header.chain(rest) {
        let medium = Arc::new(MemoryMedium::from_bytes(set_bit(&bytes, byte, bit)));
        match StorageOptions::new().open_on(medium.clone()) {
            Ok(storage) => {
                assert_eq!(everything(&storage).unwrap(), intact, "byte {byte} bit {bit} altered records");
                harmless += 1;
            }
            Err(StorageError::EnginePanicked { message, .. }) => panic!("byte {byte} bit {bit}: {message}"),
            Err(_) => {
                assert_eq!(
                    medium.snapshot(),
                    set_bit(&bytes, byte, bit),
                    "a refused open changed the medium"
                );
                refused += 1;
            }
        }
    }
    assert!(refused > 100 && harmless > 100, "{refused} refused, {harmless} harmless");
}

#[test]
fn flipped_bit_without_the_check_is_an_error_at_worst() {
    let bytes = sample_bytes();
    let mut panicked = 0;
    for (byte, bit) in (0..bytes.len()).step_by(97).map(|byte| bit_of(byte, 97)) {
        let medium = Arc::new(MemoryMedium::from_bytes(set_bit(&bytes, byte, bit)));
        let outcome = StorageOptions::new()
            .check_integrity(false)
            .open_on(medium)
            .and_then(|storage| everything(&storage).map(drop));
        panicked += usize::from(matches!(outcome, Err(StorageError::EnginePanicked { .. })));
    }
    // The canary: were there none, this test would not show that panics are contained.
    assert!(panicked > 0, "no flip made the engine panic");
}

/// Damages the file of a process that was killed after a change, a bit at a time, and finds the bits whose flip
/// silently takes the change back.
fn bits_that_lose(
    change: impl Fn(&Storage),
    is_there: impl Fn(&Storage) -> bool,
    bits: impl Fn(usize) -> Vec<(usize, u8)>,
) -> Vec<(usize, u8)> {
    let medium = TestMedium::from_bytes(sample_bytes());
    let storage = StorageOptions::new().open_on(medium.clone()).unwrap();
    change(&storage);
    let killed = medium.memory.snapshot();
    let loses =
        |&(byte, bit): &(usize, u8)| open(set_bit(&killed, byte, bit)).is_ok_and(|opened| !is_there(&opened));
    bits(killed.len()).into_iter().filter(loses).collect()
}

fn bit_of(byte: usize, stride: usize) -> (usize, u8) {
    (byte, u8::try_from(byte / stride % 8).unwrap())
}

#[test]
fn damage_to_a_killed_file_does_not_undo_a_leave() {
    let lost = bits_that_lose(
        |storage| storage.users_engine().put(&leave_key(8), &LEFT_AT_100).unwrap(),
        |storage| storage.users_engine().get(&leave_key(8)).unwrap().is_some(),
        |len| {
            let header = (0..320).flat_map(|byte| (0..8).map(move |bit| (byte, bit)));
            header.chain((320..len).step_by(127).map(|byte| bit_of(byte, 127))).collect()
        },
    );
    // The one bit that is left names the commit before as the newest.
    assert_eq!(lost, [(9, 0)]);
    // The canary: a plain commit is lost to many a flip, so the test would see it.
    let attribute = key(8, Tag::Metadata, b"region");
    let lost = bits_that_lose(
        |storage| storage.users_engine().put(&attribute, b"Wales").unwrap(),
        |storage| storage.users_engine().get(&attribute).unwrap().is_some(),
        |_| (0..320).map(|byte| bit_of(byte, 1)).collect(),
    );
    assert!(lost.len() > 50, "{} flips", lost.len());
}

#[test]
fn rows_before_an_error_are_handed_out() {
    // Enough rows for several chunks, and no cache, so that a later read fails.
    let medium = Arc::new(MemoryMedium::default());
    let mut first = WriteBatch::new();
    for id in 0..20_000 {
        first.put(Partition::Users, &leave_key(id), &LEFT_AT_100);
    }
    StorageOptions::new().create_on(medium.clone(), first).unwrap().close().unwrap();
    let medium = TestMedium::from_bytes(medium.snapshot());
    let storage = StorageOptions::new().cache_size_bytes(0).open_on(medium.clone()).unwrap();
    let mut scan = storage.users_engine().scan_tag(Tag::CommunityLeave).unwrap();
    scan.next().unwrap().unwrap();
    medium.plan(Fate::Fails, Call::is_read, 3);
    let mut count = 1_u64;
    let error = loop {
        match scan.next() {
            Some(Ok((key, _))) => {
                assert_eq!(*key, *leave_key(count));
                count += 1;
            }
            Some(Err(error)) => break error,
            None => panic!("{count} rows and no error"),
        }
    };
    assert!(matches!(error, StorageError::Io { .. }), "{error}");
    assert!(count > 1 && count < 20_000, "{count}");
    assert!(rows(scan).unwrap().is_empty());
}
