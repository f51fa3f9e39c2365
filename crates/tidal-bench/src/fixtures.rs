//! Databases of a given size, built as fast as `apply` goes.

use std::path::Path;
use std::time::Duration;

use tidal_db::{Action, Durability, Event, Schema, Storage, TidalDb, Weight};

use crate::background::wait_until_caught_up;

/// When everything happens.
pub const EVENT_TIME_NS: u64 = 1_700_000_000_000_000_000;

/// In how much time a score falls to half.
pub const HALF_LIFE: Duration = Duration::from_secs(7 * 86_400);

/// So many signals are in the history of each user of [`build_events`].
pub const EVENTS_PER_USER: u64 = 100;

/// So many signals of [`build_events`] are about one item, which is in five aggregates.
pub const EVENTS_PER_ITEM: u64 = 5;

/// So many ids there are in [`build_leavers`], whoever leaves.
const USERS: u64 = 20_000_000;

/// One signal type, and cohorts by one attribute.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn schema() -> Schema {
    Schema::builder().signal("view", HALF_LIFE).cohorts_by("region").build().unwrap()
}

/// On disk within 50 ms.
#[must_use]
pub fn batched() -> Durability {
    Durability::Batched { max_events: 200_000, max_delay: Duration::from_millis(50) }
}

/// Even ids, spread over twenty million.
pub fn leaver_ids(leavers: u64) -> impl Iterator<Item = u64> {
    let step = USERS / leavers.max(1) / 2 * 2;
    (0..leavers).map(move |nth| nth * step)
}

/// A new file in which so many users have left, and nothing else has happened.
///
/// # Panics
///
/// If the file is there, or there are more leavers than ten million.
pub fn build_leavers(path: &Path, leavers: u64) {
    assert!(leavers * 2 <= USERS, "every other id is of somebody who stays");
    let leave = |user| Event { at_ns: EVENT_TIME_NS, action: Action::Leave { user } };
    let db = build(path, leaver_ids(leavers).map(leave));
    assert_eq!(db.left_count(), leavers);
    db.close().unwrap();
}

/// The signals of [`build_events`].
pub fn events_of(signals: u64) -> impl Iterator<Item = Event> {
    let (users, items) = (users_of(signals), (signals / EVENTS_PER_ITEM).max(1));
    let view = move |nth: u64| Action::Signal {
        user: nth % users,
        item: nth % items,
        signal_type: "view".to_owned(),
        weight: Weight::ONE,
    };
    (0..signals).map(move |nth| Event { at_ns: EVENT_TIME_NS, action: view(nth) })
}

/// What one user of [`build_events`] acts on, in order.
pub fn items_of(user: u64, signals: u64) -> impl Iterator<Item = u64> {
    let items = (signals / EVENTS_PER_ITEM).max(1);
    (user..signals).step_by(users_of(signals) as usize).map(move |nth| nth % items)
}

fn users_of(signals: u64) -> u64 {
    (signals / EVENTS_PER_USER).max(1)
}

/// A new file with so many signals, each of which adds to five aggregates: as many aggregates as signals.
///
/// # Panics
///
/// If the file is there.
pub fn build_events(path: &Path, signals: u64) {
    let event = |action| Event { at_ns: EVENT_TIME_NS, action };
    let set_up = (0..users_of(signals)).flat_map(move |user| {
        let region = Action::SetAttribute { user, name: "region".into(), value: "Scotland".into() };
        let joins = (1..=3).map(move |community| event(Action::Join { user, community }));
        [event(region)].into_iter().chain(joins)
    });
    let db = build(path, set_up.chain(events_of(signals)));
    db.close().unwrap();
}

fn build(path: &Path, events: impl IntoIterator<Item = Event>) -> TidalDb {
    TidalDb::builder().schema(schema()).path(path).create(true).open().unwrap().close().unwrap();
    let storage = Storage::options().check_integrity(false).open(path).unwrap();
    let config = TidalDb::builder().path(path).durability(batched());
    let db = TidalDb::from_parts(storage.clone(), config).unwrap();
    db.apply("fixture", 1, events).unwrap();
    wait_until_caught_up(&db, &storage);
    db
}
