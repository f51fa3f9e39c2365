//! A background thread that panics: nobody waits for it, and the handle says that it is to be closed.
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

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use scenarios::{ITEM, community, config, count, create_on, open_image};
use tidal_db::{Break, Config, Durability, Error, MembershipStatus, TidalDb};
use tidal_storage::MemoryMedium;

/// Long enough for any call on any machine; who waits longer waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls until one is refused; every caller comes back.
fn call_until_refused(db: &TidalDb, thread: u64) -> Error {
    loop {
        let outcome = match thread {
            0 => db.signal(9, ITEM, "view", 1.0).map(drop),
            1 => db.set_user_attribute(9, "region", "Wales"),
            2 => db.flush(),
            3 => db.leave_community_layer(20).and_then(|_| db.rejoin_community_layer(20)).map(drop),
            _ => db.verify().map(drop).and_then(|()| db.signal(thread, ITEM, "view", 1.0).map(drop)),
        };
        if let Err(error) = outcome {
            return error;
        }
        thread::yield_now();
    }
}

fn is_a_panic(error: &Error) -> bool {
    match error {
        Error::ThreadPanicked => true,
        Error::Latched { cause } => is_a_panic(cause),
        _ => false,
    }
}

fn closes_the_handle(adapt: impl Fn(Config) -> Config, panics: Break) {
    let medium = Arc::new(MemoryMedium::default());
    let db = create_on(&medium, adapt(config().1).broken(panics)).unwrap();
    let (said, heard) = mpsc::channel();
    for thread in 0..6 {
        let (db, said) = (db.clone(), said.clone());
        thread::spawn(move || said.send(call_until_refused(&db, thread)));
    }
    for _ in 0..6 {
        let error = heard.recv_timeout(PATIENCE).expect("a caller waits for ever");
        assert!(is_a_panic(&error), "{panics:?}: {error:?}");
        assert!(error.to_string().contains("close the database and open it again"), "{error}");
    }
    // The gate shuts although nothing is written, and what is in memory is still answered.
    assert!(is_a_panic(&db.leave_community_layer(7).unwrap_err()));
    assert_eq!(db.community_layer_status(7).status, MembershipStatus::Left);
    assert!(db.signal(7, ITEM, "view", 1.0).is_err());
    assert_eq!(count(&db, &community(1)).unwrap(), 0);
    let (said, heard) = mpsc::channel();
    thread::spawn(move || said.send(db.close()));
    let closed = heard.recv_timeout(PATIENCE).expect("the close waits for ever");
    assert!(is_a_panic(&closed.unwrap_err()));

    // The next handle, of the same process, works.
    let db = open_image(medium.snapshot(), adapt(config().1)).unwrap();
    assert!(db.verify().unwrap().differences.is_empty());
    db.leave_community_layer(7).unwrap();
    db.close().unwrap();
}

#[test]
fn a_panic_in_the_flush_thread_closes_the_handle() {
    let batched = Durability::Batched { max_events: 1_000_000, max_delay: Duration::from_millis(1) };
    closes_the_handle(|config| config.durability(batched), Break::FlushPanics);
}

#[test]
fn a_panic_in_a_checkpoint_closes_the_handle() {
    closes_the_handle(|config| config.recovery_entries(4), Break::CheckpointPanics);
}

#[test]
fn a_panic_in_a_run_closes_the_handle() {
    closes_the_handle(|config| config.run_entries(4), Break::RunsPanic);
}
