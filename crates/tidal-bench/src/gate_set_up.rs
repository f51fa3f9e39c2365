//! What the gate is measured on: users who stay, spread among many who left.

use std::path::Path;

use tidal_db::{Action, Durability, Event, Storage, TidalDb};

use crate::fixtures::{EVENT_TIME_NS, schema};

/// So many users act, so that what the gate knows of them is in no cache.
pub const ACTIVE_USERS: u64 = 200_000;
/// So few items are acted on, so that the rest of a signal is cheap.
pub const GATE_ITEMS: u64 = 1_024;
/// Regions of the acting users.
pub const GATE_REGIONS: u64 = 12;
/// Communities of the acting users.
pub const GATE_COMMUNITIES: u64 = 30;

/// Odd ids below twenty million: nobody of them ever leaves.
#[must_use]
pub fn active_user(nth: u64) -> u64 {
    nth % ACTIVE_USERS * 100 + 1
}

/// Opens a file of leavers without anything in the background: nothing is written until it is asked for.
///
/// # Panics
///
/// If there is no such file.
#[must_use]
pub fn gate_database(path: &Path) -> TidalDb {
    let storage = Storage::options().check_integrity(false).open(path).unwrap();
    let never = Durability::Batched { max_events: usize::MAX, max_delay: std::time::Duration::MAX };
    let config = TidalDb::builder().schema(schema()).ephemeral().durability(never);
    TidalDb::from_parts(storage, config).unwrap()
}

/// Gives each acting user a region and three communities, and sends one signal of each, after which it is known where
/// their signals go.
///
/// # Panics
///
/// If that was done before.
pub fn set_up_active_users(db: &TidalDb) {
    let event = |action| Event { at_ns: EVENT_TIME_NS, action };
    let set_up = (0..ACTIVE_USERS).flat_map(|nth| {
        let user = active_user(nth);
        let value = (nth % GATE_REGIONS).to_string();
        let region = event(Action::SetAttribute { user, name: "region".into(), value });
        let community_of = move |other: u64| (nth + other * 7) % GATE_COMMUNITIES;
        let joins = (0..3).map(move |other| event(Action::Join { user, community: community_of(other) }));
        [region].into_iter().chain(joins)
    });
    db.apply("active users", 1, set_up).unwrap();
    for nth in 0..ACTIVE_USERS {
        db.signal(active_user(nth), nth % GATE_ITEMS, "view", 1.0).unwrap();
    }
}
