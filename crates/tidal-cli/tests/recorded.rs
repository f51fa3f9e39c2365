//! Both recorded files through the command, against totals that were calculated without it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use serde_json::{Value, json};
use support::{Folder, Recorded};

fn replay(recorded: &Recorded, folder: &Folder) -> Value {
    let half_life = recorded.half_life();
    let events = recorded.events.to_str().unwrap();
    let arguments = [
        "replay",
        events,
        "--db",
        "year.tidal",
        "--create",
        "--signal",
        &half_life,
        "--cohorts-by",
        "region",
    ];
    folder.json(&arguments).pop().unwrap()
}

fn assert_summary(recorded: &Recorded, summary: &Value) {
    let withheld = ["left", "away_period", "unknown"].map(|reason| recorded.withheld(reason));
    let [left, away_period, unknown] = withheld;
    let expected = json!({
        "rows": recorded.expected["rows"],
        "applied": recorded.row_count(),
        "skipped": 0,
        "forwarded": recorded.signal_count() - withheld.iter().sum::<u64>(),
        "withheld": { "left": left, "away_period": away_period, "unknown": unknown },
        "left": recorded.expected["left_at_end"],
    });
    assert_eq!(summary, &expected);
}

fn assert_replays(name: &str) {
    let recorded = Recorded::read(name);
    let folder = Folder::new();
    assert_summary(&recorded, &replay(&recorded, &folder));
    recorded.assert_totals(&folder, "year.tidal");

    // Delivered again, nothing is counted twice.
    let again = replay(&recorded, &folder);
    assert_eq!(again["applied"], 0);
    assert_eq!(again["skipped"], recorded.row_count());
    assert_eq!(again["rows"], recorded.expected["rows"]);
    recorded.assert_totals(&folder, "year.tidal");
}

#[test]
fn the_university_year_gives_the_expected_totals() {
    assert_replays("oulad");
}

#[test]
fn the_late_events_give_the_expected_totals_and_scores() {
    let recorded = Recorded::read("late");
    assert_eq!((recorded.withheld("left"), recorded.withheld("away_period")), (275, 116));
    assert_replays("late");
}

#[test]
fn scores_at_another_time_have_decayed() {
    let folder = Folder::new();
    folder.write_events(
        "events.csv",
        "2012-03-28T00:00:00Z,signal,7,9,view,8,,\n2012-03-29T00:00:00Z,signal,8,9,view,0,,\n",
    );
    folder.json(&["replay", "events.csv", "--db", "x.tidal", "--create", "--signal", "view=12h"]);
    let score = |at: &[&str]| {
        let arguments = [&["aggregates", "--db", "x.tidal"], at].concat();
        folder.json(&arguments)[0]["score"].as_f64().unwrap()
    };
    // Two half-lives to the newest time, three to the time asked for, and back before the first signal.
    assert!((score(&[]) - 2.0).abs() < 1e-8);
    assert!((score(&["--at", "2012-03-29T13:00:00+01:00"]) - 1.0).abs() < 1e-8);
    assert!((score(&["--at", "2012-03-27T12:00:00Z"]) - 16.0).abs() < 1e-7);
}
