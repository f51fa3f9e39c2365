//! Both recorded files through the library: opened again and again along the way, and call by call.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use support::Recorded;
use tidal_cli::event_file::EventFile;
use tidal_db::{Action, Config, Event, ManualClock, MembershipStatus, Schema, TidalDb, format_nanos};

const REOPENINGS: usize = 20;

fn events(recorded: &Recorded) -> Vec<Event> {
    EventFile::open(&recorded.events).unwrap().map(Result::unwrap).collect()
}

fn config(recorded: &Recorded) -> Config {
    let days = recorded.expected["half_life_days"].as_u64().unwrap_or(7);
    let schema = Schema::builder()
        .signal("submit", Duration::from_secs(days * 86_400))
        .cohorts_by("region")
        .build()
        .unwrap();
    TidalDb::builder().schema(schema)
}

/// Every aggregate as the command would print it, scores as of the newest time.
fn rows(db: &TidalDb) -> Vec<Value> {
    let rows = db.aggregates_at(None, db.newest_time_ns()).unwrap();
    rows.map(|row| {
        let row = row.unwrap();
        json!({
            "scope": row.scope.kind(), "id": row.scope.id(), "item": row.item, "signal": row.signal_type,
            "count": row.aggregate.count, "weight_sum": format_nanos(row.aggregate.weight_nanos),
            "score": row.aggregate.score,
        })
    })
    .collect()
}

fn assert_totals(recorded: &Recorded, db: &TidalDb) {
    recorded.assert_aggregates(&rows(db));
    for (user, expected) in recorded.expected["status"].as_object().unwrap() {
        let found = db.community_layer_status(user.parse().unwrap());
        let status = if found.status == MembershipStatus::Left { "left" } else { "active" };
        assert_eq!(json!({ "status": status, "left_at_ns": found.left_at_ns }), *expected, "user {user}");
    }
    assert_eq!(json!(db.left_count()), recorded.expected["left_at_end"]);
    assert_eq!(db.left_users().len() as u64, db.left_count());
    let withheld = db.withheld_counts();
    assert_eq!(
        (withheld.left, withheld.away_period),
        (recorded.withheld("left"), recorded.withheld("away_period"))
    );
    assert_eq!(withheld.unknown, 0);
}

fn open(recorded: &Recorded, path: &Path) -> TidalDb {
    config(recorded).path(path).create(true).open().unwrap()
}

/// Applies the file in parts; between two of them the database is closed, or dropped without a close.
fn assert_reopened(name: &str) {
    let recorded = Recorded::read(name);
    let events = events(&recorded);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("year.tidal");
    let part_len = events.len() / REOPENINGS + 1;
    let mut position = 1;
    for (nth, part) in events.chunks(part_len).enumerate() {
        let db = open(&recorded, &path);
        let report = db.apply(name, position, part.iter().cloned()).unwrap();
        assert_eq!((report.applied, report.skipped), (part.len() as u64, 0));
        position += part.len() as u64;
        assert_eq!(report.position, Some(position - 1));
        if nth % 2 == 0 {
            db.close().unwrap();
        }
    }
    let db = open(&recorded, &path);
    assert_totals(&recorded, &db);
    assert!(db.open_report().is_clean());
    // Delivered again from its start, the whole of it is known.
    let report = db.apply(name, 1, events).unwrap();
    assert_eq!((report.applied, report.skipped), (0, position - 1));
    assert_totals(&recorded, &db);
}

/// Makes every row the call that a service would make, with the clock at the latest time so far.
fn assert_call_by_call(name: &str) {
    let recorded = Recorded::read(name);
    let clock = Arc::new(ManualClock::new(0));
    let db = config(&recorded).clock(clock.clone()).ephemeral().open().unwrap();
    for event in events(&recorded) {
        let at_ns = event.at_ns;
        match event.action {
            Action::Signal { user, item, signal_type, weight } => {
                clock.set(at_ns.max(db.newest_time_ns()));
                db.signal_exact(user, item, &signal_type, weight, Some(at_ns)).map(drop)
            }
            action => {
                // A transition takes place now, and the file's clock steps back.
                clock.set(at_ns);
                match action {
                    Action::SetAttribute { user, name, value } => db.set_user_attribute(user, &name, &value),
                    Action::Join { user, community } => db.join_community(user, community),
                    Action::Quit { user, community } => db.quit_community(user, community),
                    Action::Leave { user } => db.leave_community_layer(user).map(drop),
                    Action::Rejoin { user } => db.rejoin_community_layer(user).map(drop),
                    other => panic!("{other:?} is in no event file"),
                }
            }
        }
        .unwrap();
    }
    assert_totals(&recorded, &db);
}

#[test]
fn the_university_year_reopened_along_the_way_gives_the_expected_totals() {
    assert_reopened("oulad");
}

#[test]
fn the_late_events_reopened_along_the_way_give_the_expected_totals() {
    assert_reopened("late");
}

#[test]
fn the_university_year_call_by_call_gives_the_expected_totals() {
    assert_call_by_call("oulad");
}

#[test]
fn the_late_events_call_by_call_give_the_expected_totals() {
    assert_call_by_call("late");
}
