//! What an open costs, with and without the check of every page: what is checkpointed is not read from
//! the log again. `OPEN_EVENTS=10000000` for ten million events.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a bench fails by panicking")]

use std::time::{Duration, Instant};

use tidal_db::{Action, Event, Schema, TidalDb, Weight};

const USERS: u64 = 1_000;
const EVENT_TIME_NS: u64 = 1_700_000_000_000_000_000;

fn main() {
    let events: u64 = std::env::var("OPEN_EVENTS").map_or(1_000_000, |events| events.parse().unwrap());
    // Each item is in five aggregates: its own, one of a cohort, three of communities.
    let items = (events / 50).max(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("open.tidal");
    let half_life = Duration::from_secs(7 * 86_400);
    let schema = Schema::builder().signal("view", half_life).cohorts_by("region").build().unwrap();
    let db = TidalDb::builder().schema(schema).path(&path).create(true).open().unwrap();
    for user in 0..USERS {
        db.set_user_attribute(user, "region", "Scotland").unwrap();
        for community in 1..=3 {
            db.join_community(user, community).unwrap();
        }
    }
    let view = |nth: u64| Event {
        at_ns: EVENT_TIME_NS,
        action: Action::Signal {
            user: nth % USERS,
            item: nth % items,
            signal_type: "view".to_owned(),
            weight: Weight::ONE,
        },
    };
    let begin = Instant::now();
    db.apply("views", 1, (0..events).map(view)).unwrap();
    println!("{events} events applied in {:?}", begin.elapsed());
    std::thread::sleep(Duration::from_secs(10));
    db.close().unwrap();
    println!("the file has {} MB", std::fs::metadata(&path).unwrap().len() / 1_000_000);
    for (what, check) in
        [("every page checked", true), ("no page checked", false), ("no page checked", false)]
    {
        let begin = Instant::now();
        let db = TidalDb::builder().path(&path).check_integrity(check).open().unwrap();
        let took = begin.elapsed();
        let rows = db.aggregates(None).unwrap().count();
        let replayed = db.open_report().replayed_entries;
        println!("{what}: {took:?}, {rows} aggregates, {replayed} entries of the log read");
        db.close().unwrap();
    }
}
