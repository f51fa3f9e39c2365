//! The threads beside the calls: closed, dropped, out of disk and full in the middle of their work.
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

#[path = "background/thread_medium.rs"]
mod thread_medium;

mod scenarios;

use std::sync::Arc;
use std::time::{Duration, Instant};

use scenarios::{community, config, open_image};
use thread_medium::ThreadMedium;
use tidal_db::{
    Action, Config, Durability, Error, Event, MembershipStatus, Scope, Storage, TidalDb, Weight, Withheld,
};
use tidal_entities::{checkpoint_key, decode_checkpoint, run_index_key};
use tidal_storage::{MemoryMedium, WriteBatch};

const CHECKPOINTER: &str = "tidal-checkpoint";
const RUN_MAKER: &str = "tidal-runs";

/// Of each an aggregate in two scopes, which are more than one slice of a checkpoint.
const ITEMS: u64 = 3_000;

fn views(from: u64, to: u64) -> impl Iterator<Item = Event> {
    (from..to).map(|item| Event {
        at_ns: 1_000,
        action: Action::Signal { user: 7, item, signal_type: "view".to_owned(), weight: Weight::ONE },
    })
}

/// A checkpoint begins after `ITEMS` entries, and nothing waits for it.
fn patient() -> Config {
    config().1.recovery_entries(4 * ITEMS).run_entries(1_000_000)
}

fn create(medium: &Arc<ThreadMedium>, config: Config) -> TidalDb {
    let storage = Storage::options().create_on(medium.clone(), WriteBatch::new()).unwrap();
    let db = TidalDb::from_parts(storage, config).unwrap();
    db.join_community(7, 4).unwrap();
    db
}

fn floor_of(image: &[u8]) -> u64 {
    let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image.to_vec()))).unwrap();
    let key = checkpoint_key();
    let value = storage.system_engine().get(&key).unwrap();
    value.map_or(0, |value| decode_checkpoint(&key, &value).unwrap().floor)
}

/// What is stored and in memory is what `items` views of user 7 gave, each once.
fn assert_sound(db: &TidalDb, items: u64) {
    let report = db.verify().unwrap();
    assert!(report.differences.is_empty(), "{:?}", report.differences);
    assert_eq!(report.aggregates, 2 * items);
    let best = db.top_items(&community(4), "view", 1_000_000).unwrap();
    assert_eq!(best.len() as u64, items);
    assert_eq!(db.history(7).unwrap().count() as u64, items);
}

#[test]
fn a_close_leaves_the_rest_of_a_checkpoint_to_the_next_open() {
    let medium = Arc::new(ThreadMedium::default());
    let db = create(&medium, patient());
    medium.block_sync(CHECKPOINTER);
    db.apply("views", 1, views(0, ITEMS)).unwrap();
    medium.wait_until_blocked();
    let other = db.clone();
    let closing = std::thread::spawn(move || db.close());
    while !matches!(other.position("views"), Err(Error::Closed)) {
        std::thread::yield_now();
    }
    medium.release();
    closing.join().unwrap().unwrap();

    let image = medium.snapshot();
    let floor = floor_of(&image);
    assert!(floor < ITEMS, "the close waited for the checkpoint, which stands at {floor} of {ITEMS}");
    let db = open_image(image, patient()).unwrap();
    assert_sound(&db, ITEMS);
}

#[test]
fn a_drop_without_a_close_keeps_what_was_batched() {
    let medium = Arc::new(ThreadMedium::default());
    let lazy = Durability::Batched { max_events: 1_000_000, max_delay: Duration::MAX };
    let db = create(&medium, patient().durability(lazy));
    for item in 0..ITEMS {
        db.signal(7, item, "view", 1.0).unwrap();
    }
    let other = db.clone();
    drop(db);
    assert_eq!(other.durable_sequence(), 1, "a clone is still there");
    drop(other);
    assert_sound(&open_image(medium.snapshot(), patient()).unwrap(), ITEMS);
}

#[test]
fn a_signal_beside_a_close_is_refused_or_on_disk() {
    let lazy = Durability::Batched { max_events: 1_000_000, max_delay: Duration::MAX };
    for _ in 0..50 {
        let medium = Arc::new(ThreadMedium::default());
        let db = create(&medium, patient().durability(lazy));
        let recorded = std::thread::scope(|scope| {
            let signals = |item| {
                let db = db.clone();
                move || (0..ITEMS).take_while(|_| db.signal(7, item, "view", 1.0).is_ok()).count()
            };
            let threads = [scope.spawn(signals(1)), scope.spawn(signals(2))];
            db.clone().close().unwrap();
            threads.map(|thread| thread.join().unwrap())
        });
        let db = open_image(medium.snapshot(), patient()).unwrap();
        let on_disk = db.history(7).unwrap().count();
        assert_eq!(on_disk, recorded.iter().sum::<usize>(), "{recorded:?}");
    }
}

/// Runs out of disk at a write of the thread, sooner or later; returns at how many it did.
fn disk_full_on(thread: &'static str, config: fn() -> Config, is_done: fn(&[u8]) -> bool) -> u64 {
    // Each attempt gets twice as far as the one before it.
    for failures in 0.. {
        let nth = (1 << failures) - 1;
        let medium = Arc::new(ThreadMedium::default());
        let db = create(&medium, config());
        medium.fail_writes(thread, nth);
        // It may fail while this waits, or later.
        let _ = db.apply("views", 1, views(0, ITEMS));
        let patience = Instant::now();
        // Once it failed, the failure is soon told to whoever writes.
        while db.flush().is_ok() && !is_done(&medium.snapshot()) {
            assert!(patience.elapsed() < Duration::from_secs(60), "{thread} does nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
        if !medium.has_failed() {
            assert_sound(&db, ITEMS);
            return failures;
        }
        // Nothing more is written, and whoever asks is told, and why.
        let refused = |error: Error| {
            assert!(matches!(error, Error::Latched { .. }), "{error:?}");
            assert!(with_causes(&error).contains("disk is full"), "{}", with_causes(&error));
        };
        refused(db.signal(7, 1, "view", 1.0).unwrap_err());
        refused(db.leave_community_layer(7).unwrap_err());
        assert_eq!(db.community_layer_status(7).status, MembershipStatus::Left, "the gate is shut");
        // What is in memory can still be asked for.
        assert!(db.aggregate(&Scope::Global, 1, "view").unwrap().is_some());
        assert!(db.close().is_err());

        let db = open_image(medium.snapshot(), config()).unwrap();
        let reached = db.position("views").unwrap().unwrap_or(0);
        assert_eq!(reached, ITEMS, "after failure {nth}");
        assert_sound(&db, ITEMS);
        db.leave_community_layer(7).unwrap();
        assert_eq!(db.signal(7, 1, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
    }
    unreachable!("some attempt ends without a failure")
}

fn with_causes(error: &Error) -> String {
    let mut said = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        said.push_str(": ");
        said.push_str(&error.to_string());
        cause = error.source();
    }
    said
}

#[test]
fn a_disk_that_is_full_in_a_checkpoint_loses_nothing_and_is_told() {
    let failures = disk_full_on(CHECKPOINTER, patient, |image| floor_of(image) >= ITEMS);
    assert!(failures > 3, "only {failures} writes failed");
}

#[test]
fn a_disk_that_is_full_in_a_run_loses_nothing_and_is_told() {
    let is_done = |image: &[u8]| {
        let storage = Storage::options().open_on(Arc::new(MemoryMedium::from_bytes(image.to_vec()))).unwrap();
        storage.system_engine().get(&run_index_key()).unwrap().is_some()
    };
    let failures = disk_full_on(RUN_MAKER, || config().1.run_entries(ITEMS), is_done);
    assert!(failures > 2, "only {failures} writes failed");
}

/// The queue is full: the call waits for the disk, and tells if that fails.
#[test]
fn a_full_queue_waits_for_the_disk_and_says_if_it_fails() {
    let medium = Arc::new(ThreadMedium::default());
    let bounded = Durability::Batched { max_events: 8, max_delay: Duration::MAX };
    let db = create(&medium, patient().durability(bounded));
    for item in 0..100 {
        db.signal(7, item, "view", 1.0).unwrap();
        // This one, and those that were recorded before it.
        let recorded = item + 2;
        assert!(recorded - db.durable_sequence() < 8, "{recorded} and {}", db.durable_sequence());
    }
    medium.fail_all();
    let failed = (100..109).find_map(|item| db.signal(7, item, "view", 1.0).err());
    let error = failed.expect("a full queue and no disk");
    assert!(matches!(error, Error::Latched { .. }), "{error:?}");
    assert!(db.flush().is_err() && db.leave_community_layer(7).is_err());
}

#[test]
fn options_at_their_ends_change_nothing_that_is_seen() {
    let at_the_end = [
        Durability::Immediate,
        Durability::Batched { max_events: 0, max_delay: Duration::ZERO },
        Durability::Batched { max_events: 1, max_delay: Duration::MAX },
        Durability::Batched { max_events: usize::MAX, max_delay: Duration::ZERO },
        Durability::Batched { max_events: usize::MAX, max_delay: Duration::MAX },
    ];
    for durability in at_the_end {
        for recovery_entries in [0, 1, u64::MAX] {
            for run_entries in [0, u64::MAX] {
                let medium = Arc::new(ThreadMedium::default());
                let options = || {
                    let config = config().1.recovery_entries(recovery_entries);
                    config.run_entries(run_entries).durability(durability)
                };
                let db = create(&medium, options());
                for item in 0..40 {
                    db.signal(7, item, "view", 1.0).unwrap();
                }
                assert_sound(&db, 40);
                assert_eq!(db.leave_community_layer(7).unwrap().status, MembershipStatus::Left);
                db.close().unwrap();
                let db = open_image(medium.snapshot(), options()).unwrap();
                assert_sound(&db, 40);
                let receipt = db.signal(7, 1, "view", 1.0).unwrap();
                assert_eq!(receipt.withheld, Some(Withheld::Left));
                for k in [0, 1, 39, 40, 41, usize::MAX] {
                    let best = db.top_items(&community(4), "view", k).unwrap();
                    assert_eq!(best.len(), k.min(40));
                    assert!(best.iter().map(|(item, _)| *item).eq(0..k.min(40) as u64), "ties by id");
                }
            }
        }
    }
}
