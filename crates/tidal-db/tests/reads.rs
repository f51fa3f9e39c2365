//! Case 17: what is read of the store where many have left: by the gate nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    dead_code,
    reason = "tests fail by panicking, and use a part of what is shared"
)]

mod common;
#[path = "scenarios/faulty.rs"]
mod faulty;

use std::sync::Arc;
use std::time::Duration;

use common::{A, COMMUNITY, c, config, create_on, global, join, leave, left, view};
use faulty::FaultyMedium;
use tidal_db::{Action, Durability, Event, MembershipStatus, Storage, TidalDb, Withheld};
use tidal_keys::Tag;
use tidal_storage::MemoryMedium;

/// A million takes too long without optimization, so a debug build tries a fifth.
const LEAVERS: u64 = if cfg!(debug_assertions) { 200_000 } else { 1_000_000 };

/// Nobody with a lower id left.
const FIRST_LEAVER: u64 = u64::MAX - LEAVERS + 1;

/// Away from 100 to 200.
const CAME_BACK: u64 = 7;

/// Opens without a cache, so that whoever asks the store asks the medium.
fn uncached(medium: &Arc<FaultyMedium>) -> Storage {
    let options = Storage::options().cache_size_bytes(0).check_integrity(false);
    options.open_on(medium.clone()).unwrap()
}

/// Opens so that nothing is done but what is asked for: no commit, no checkpoint, no run.
fn open_idle(storage: Storage) -> TidalDb {
    let durability = Durability::Batched { max_events: 1_000_000, max_delay: Duration::from_secs(3600) };
    let (_, config) = config(300);
    let config = config.durability(durability).recovery_entries(u64::MAX).run_entries(u64::MAX);
    TidalDb::from_parts(storage, config).unwrap()
}

fn image_of_leavers() -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::default());
    let (clock, config) = config(100);
    let (db, _) = create_on(&medium, config.run_entries(u64::MAX));
    for user in [0, CAME_BACK, FIRST_LEAVER, u64::MAX] {
        db.join_community(user, COMMUNITY).unwrap();
    }
    db.leave_community_layer(CAME_BACK).unwrap();
    clock.set(200);
    db.rejoin_community_layer(CAME_BACK).unwrap();
    db.apply("leavers", 1, (FIRST_LEAVER..=u64::MAX).map(|user| leave(200, user))).unwrap();
    db.close().unwrap();
    medium.snapshot()
}

#[test]
fn case_17_the_gate_never_reads_the_store() {
    let medium = Arc::new(FaultyMedium::from_bytes(image_of_leavers()));
    let db = open_idle(uncached(&medium));
    assert_eq!(db.left_count(), LEAVERS);
    let reads_of_open = medium.reads();

    for user in FIRST_LEAVER..=u64::MAX {
        assert_eq!(db.community_layer_status(user), left(user, 200));
        assert_eq!(db.community_layer_status(user - LEAVERS).status, MembershipStatus::Active);
    }
    let some_leavers = (FIRST_LEAVER..u64::MAX).step_by(100).chain([u64::MAX]);
    for user in some_leavers.clone() {
        assert_eq!(db.signal(user, A, "view", 1.0).unwrap().withheld, Some(Withheld::Left));
        assert_eq!(db.signal_at(user, A, "view", 1.0, 150).unwrap().withheld, Some(Withheld::Left));
        for stranger in [user - LEAVERS, 0] {
            assert_eq!(db.signal(stranger, A, "view", 1.0).unwrap().withheld, None);
        }
    }
    let late = db.signal_at(CAME_BACK, A, "view", 1.0, 150).unwrap();
    assert_eq!(late.withheld, Some(Withheld::AwayPeriod));
    assert_eq!(db.signal(CAME_BACK, A, "view", 1.0).unwrap().communities, 1);
    assert_eq!(db.left_users().len() as u64, LEAVERS);
    let asked = some_leavers.count() as u64;
    assert_eq!((c(&db), global(&db)), (asked + 1, 4 * asked + 2));
    assert_eq!(medium.reads(), reads_of_open, "the gate, or a status, read the store");

    // What does read the store is counted.
    assert_eq!(db.membership_history(u64::MAX).unwrap().len(), 1);
    assert!(medium.reads() > reads_of_open, "a read of the store was not counted");
}

/// How often the medium was read.
#[derive(Debug)]
struct Reads {
    /// By one look at all attributes and memberships.
    profiles: u64,
    /// By one look at all leave records and transitions.
    leavers: u64,
    /// By the open of the database, which looks at both.
    open: u64,
}

impl Reads {
    fn of(image: Vec<u8>) -> Self {
        let medium = Arc::new(FaultyMedium::from_bytes(image));
        let storage = uncached(&medium);
        let look = |tags: [Tag; 2]| {
            let before = medium.reads();
            for tag in tags {
                assert!(storage.users_engine().scan_tag(tag).unwrap().all(|row| row.is_ok()));
            }
            medium.reads() - before
        };
        let profiles = look([Tag::Metadata, Tag::Relationship]);
        let leavers = look([Tag::CommunityLeave, Tag::CommunityTransition]);
        let before = medium.reads();
        let db = open_idle(storage);
        let open = medium.reads() - before;
        assert_eq!(db.left_count(), 1_000);
        assert!(db.open_report().replayed_entries <= 1);
        Self { profiles, leavers, open }
    }
}

/// A closed database of so many users who all signalled, of whom a thousand left. The stored aggregates
/// have followed the log, so that an open reads one entry of it at most.
fn image_of_users(users: u64, have_profiles: bool) -> Vec<u8> {
    let medium = Arc::new(MemoryMedium::default());
    let (db, storage) = create_on(&medium, config(300).1.run_entries(u64::MAX));
    let region = |user| Action::SetAttribute { user, name: "region".into(), value: "Wales".into() };
    let events = (0..users).flat_map(|user| {
        let profile = [Event { at_ns: 100, action: region(user) }, join(100, user)];
        let leaves = user % (users / 1_000) == 0;
        let profile = profile.into_iter().filter(|_| have_profiles);
        profile.chain([view(150, user)]).chain(leaves.then(|| leave(200, user)))
    });
    db.apply("users", 1, events).unwrap();
    drop((db, storage));
    let storage = Storage::options().open_on(medium.clone()).unwrap();
    let follow = config(300).1.recovery_entries(1).run_entries(u64::MAX).rebuild(true);
    TidalDb::from_parts(storage, follow).unwrap().close().unwrap();
    medium.snapshot()
}

#[test]
fn case_17_users_who_never_left_are_not_asked_about_at_open() {
    for have_profiles in [false, true] {
        let [few, many] = [1_000, 50_000].map(|users| Reads::of(image_of_users(users, have_profiles)));
        eprintln!("profiles {have_profiles}: {few:?}, {many:?}");
        // The rows of those who left lie together, whoever else there is.
        assert_eq!(few.leavers, many.leavers);
        // Attributes and memberships are read once. The rest is the same, but for tables a level deeper.
        let [few, many] = [few, many].map(|reads| reads.open - reads.profiles);
        assert!(many < few + 10, "{few} reads became {many}");
    }
}
