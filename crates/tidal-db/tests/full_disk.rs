//! A disk that is full: what works, what is refused, and the way back in the same process.
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

mod common;
mod scenarios;

use std::io;
use std::sync::Arc;

use common::{A, COMMUNITY, c, config, global, history, said, view};
use scenarios::small_disk::{Refuses, SmallDisk};
use tidal_db::{Config, Error, MembershipStatus, Scope, Storage, StorageError, TidalDb, Withheld};
use tidal_storage::WriteBatch;

const AMPLE_PAGES: u64 = 1_000_000;

fn configured() -> Config {
    config(1_000).1
}

fn open(disk: &Arc<SmallDisk>) -> tidal_db::Result<TidalDb> {
    TidalDb::from_parts(Storage::options().open_on(disk.clone())?, configured())
}

/// A database of which user 8 left, on a disk that has room for `spare_pages` more.
fn nearly_full(refuses: Refuses, spare_pages: u64) -> (Arc<SmallDisk>, TidalDb) {
    let disk = Arc::new(SmallDisk::new(refuses, AMPLE_PAGES));
    let storage = Storage::options().create_on(disk.clone(), WriteBatch::new()).unwrap();
    let db = TidalDb::from_parts(storage, configured()).unwrap();
    for user in [7, 8] {
        db.join_community(user, COMMUNITY).unwrap();
        db.signal(user, A, "view", 1.0).unwrap();
    }
    db.leave_community_layer(8).unwrap();
    disk.set_room(disk.used_pages() + spare_pages);
    (disk, db)
}

/// Signals of others until one is refused. Returns how many were taken.
fn fill(db: &TidalDb) -> (u64, Error) {
    for taken in 0..1_000_000 {
        // A source of its own each, so that there are many rows.
        let events = (0..200).map(|_| view(900, 1_000 + taken));
        if let Err(error) = db.apply(&format!("source {taken}"), 1, events) {
            return (taken * 200, error);
        }
    }
    panic!("the disk never got full");
}

/// Whether some cause of the error is that there is no room.
fn is_full(error: &Error) -> bool {
    match error {
        Error::Storage(StorageError::Io { source, .. }) => source.kind() == io::ErrorKind::StorageFull,
        Error::Latched { cause } => is_full(cause),
        Error::Apply { cause, .. } => is_full(cause),
        _ => false,
    }
}

/// What answers on a full disk, and what is refused; user 7, who is Active, and 8, who left.
fn assert_reads_work_and_the_gate_holds(db: &TidalDb, taken: u64) {
    assert_eq!((c(db), db.left_count(), db.communities_of(7)), (2, 1, vec![COMMUNITY]));
    assert!(global(db) >= taken + 2);
    assert_eq!((history(db, 7).len(), history(db, 8).len()), (1, 1));
    assert_eq!(db.membership_history(8).unwrap().len(), 1);
    assert_eq!(db.top_items(&Scope::Global, "view", 3).unwrap().len(), 1);

    // A leave that is refused is in force here all the same, and a return that is refused is not.
    for (user, outcome) in [(7, db.leave_community_layer(7)), (8, db.rejoin_community_layer(8))] {
        let error = outcome.unwrap_err();
        assert!(is_full(&error), "{}", said(&error));
        assert!(said(&error).contains("see to the disk, then close and open it again"), "{}", said(&error));
        assert_eq!(db.community_layer_status(user).status, MembershipStatus::Left);
        assert!(db.signal(user, A, "view", 1.0).is_err());
    }
    assert!(db.join_community(9, COMMUNITY).is_err());
    assert!(db.set_user_attribute(9, "region", "Wales").is_err());
    assert!(db.flush().is_err());
    assert_eq!(c(db), 2);
}

#[test]
fn a_service_gets_back_from_a_full_disk_without_ending_its_process() {
    for refuses in [Refuses::Length, Refuses::Pages] {
        for spare_pages in [0, 5, 40] {
            let (disk, db) = nearly_full(refuses, spare_pages);
            let (taken, error) = fill(&db);
            assert!(is_full(&error), "{}", said(&error));
            assert_reads_work_and_the_gate_holds(&db, taken);
            let clone = db.clone();
            assert!(db.close().is_err(), "closing says nothing");
            assert!(matches!(clone.flush(), Err(Error::Closed)));

            // Still full: what is there can be opened, since opening writes only where something was.
            let db = open(&disk).unwrap();
            assert_eq!(
                (global(&db), c(&db), db.left_count()),
                (taken + 2, 2, 1),
                "{refuses:?} {spare_pages}"
            );
            assert_eq!(
                db.signal(8, A, "view", 1.0).map_or(Some(Withheld::Left), |r| r.withheld),
                Some(Withheld::Left)
            );
            let left = db.leave_community_layer(7);
            println!(
                "{refuses:?}, {spare_pages} pages: {taken} signals, and on the full disk a leave is {}",
                if left.is_ok() { "taken" } else { "refused" }
            );
            assert_eq!(db.community_layer_status(7).status, MembershipStatus::Left);
            let _closed = db.close();

            // With room again, the same process goes on.
            disk.set_room(AMPLE_PAGES);
            let db = open(&disk).unwrap();
            assert_eq!(db.community_layer_status(7).status == MembershipStatus::Left, left.is_ok());
            db.leave_community_layer(7).unwrap();
            assert_eq!(db.signal(7, A, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
            db.rejoin_community_layer(8).unwrap();
            assert_eq!(db.signal(8, A, "view", 1.0).unwrap().communities, 1);
            assert!(db.verify().unwrap().differences.is_empty());
            db.close().unwrap();
        }
    }
}
