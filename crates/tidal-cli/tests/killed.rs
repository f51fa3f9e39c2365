//! A replay that is killed at any moment goes on where it stopped, and counts nothing twice.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use std::process::{Child, Stdio};
use std::time::{Instant, SystemTime};

use support::{Folder, Recorded};
use tidal_db::TidalDb;

const KILLS: u32 = 10;
/// A replay that ends before its moment comes is no kill; so many in a row would say that the moments are wrong.
const MAX_ATTEMPTS: usize = 100;
const DB: &str = "year.tidal";

/// Starts a replay, however far an earlier one came.
fn start(recorded: &Recorded, folder: &Folder, db: &str) -> Child {
    let half_life = recorded.half_life();
    let events = recorded.events.to_str().unwrap();
    let arguments =
        ["replay", events, "--db", db, "--create", "--signal", &half_life, "--cohorts-by", "region"];
    folder.command(&arguments).stdout(Stdio::null()).spawn().unwrap()
}

/// The rows of the recorded file that are on disk; none if the file was not made yet.
fn rows_on_disk(folder: &Folder) -> u64 {
    let path = folder.path(DB);
    if !path.exists() {
        return 0;
    }
    let db = TidalDb::builder().path(&path).open().unwrap();
    let position = db.position("events.csv.gz").unwrap();
    db.close().unwrap();
    position.unwrap_or(0)
}

#[test]
fn the_university_year_killed_ten_times_gives_the_expected_totals() {
    assert_killed_replay("oulad");
}

#[test]
fn the_late_events_killed_ten_times_give_the_expected_totals() {
    assert_killed_replay("late");
}

fn assert_killed_replay(name: &str) {
    let recorded = Recorded::read(name);
    let folder = Folder::new();
    let begin = Instant::now();
    assert!(start(&recorded, &folder, "undisturbed.tidal").wait().unwrap().success());
    let whole = begin.elapsed();

    // The seed is the clock's: each run tries other moments, and a failing one names its own.
    let mut seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    let mut moments = Vec::new();
    let mut partial_count = 0;
    let mut kill_count = 0;
    while kill_count < KILLS {
        // A linear congruence is random enough to pick moments by.
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let moment = whole.mul_f64(f64::from(seed) / f64::from(u32::MAX) * 0.5);
        moments.push(moment);
        assert!(moments.len() <= MAX_ATTEMPTS, "only {kill_count} kills hit a running replay: {moments:?}");
        let mut replay = start(&recorded, &folder, DB);
        std::thread::sleep(moment);
        let has_ended = replay.try_wait().unwrap().is_some();
        // On Unix this is SIGKILL: the process gets no chance to tidy up.
        replay.kill().unwrap();
        replay.wait().unwrap();
        let row_count = rows_on_disk(&folder);
        assert!(row_count <= recorded.row_count(), "killed at {moments:?}");
        if row_count > 0 && row_count < recorded.row_count() {
            partial_count += 1;
        }
        if has_ended {
            // It was through before the moment came: a kill that hits nothing shows nothing, so begin anew.
            recorded.assert_totals(&folder, DB);
            std::fs::remove_file(folder.path(DB)).unwrap();
        } else {
            kill_count += 1;
        }
    }
    println!("killed at {moments:?} of {whole:?}, {partial_count} times within the file");
    assert!(partial_count > 0, "no kill hit between the first and the last row: {moments:?} of {whole:?}");
    assert!(start(&recorded, &folder, DB).wait().unwrap().success(), "killed at {moments:?}");

    assert_eq!(rows_on_disk(&folder), recorded.row_count());
    recorded.assert_totals(&folder, DB);
    let db = TidalDb::builder().path(folder.path(DB)).open().unwrap();
    let withheld = db.withheld_counts();
    assert_eq!(withheld.left, recorded.withheld("left"));
    assert_eq!(withheld.away_period, recorded.withheld("away_period"));
    assert_eq!(withheld.unknown, 0);
    db.close().unwrap();
}
