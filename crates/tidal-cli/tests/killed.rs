//! A replay that is killed at any moment goes on where it stopped, and counts nothing twice; and whatever a
//! process acknowledged before it was killed is there when its database is opened again. `TIDAL_KILLS` sets how
//! many of the latter are killed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "tests fail by panicking"
)]

#[path = "killed/child.rs"]
mod child;
#[path = "killed/ledger.rs"]
mod ledger;
#[path = "killed/op.rs"]
mod op;
#[path = "killed/parent.rs"]
mod parent;
mod support;

use std::process::{Child, Stdio};
use std::time::{Instant, SystemTime};

use ledger::{Figures, Ledger};
use support::{Folder, Recorded};
use tidal_db::{Durability, TidalDb, Weight};

const KILLS: u32 = 10;
/// Processes that are killed under each durability, unless `TIDAL_KILLS` says otherwise.
const ACKNOWLEDGING_KILLS: u64 = 12;
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

/// Not a test by itself: the parent starts this program again with an order for it.
#[test]
fn a_child_obeys_its_parent() {
    child::obey();
}

fn assert_acknowledged_is_kept(durability: Durability) {
    let kills = std::env::var("TIDAL_KILLS").map_or(ACKNOWLEDGING_KILLS, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let figures = parent::kill(kills, durability, folder.path());
    println!("{durability:?}: {figures:?}; lost 0, reopened 0, differences 0");
    assert!(figures.kills >= kills);
    assert!(
        figures.leaves > 0 && figures.rejoins > 0 && figures.signals > 0,
        "too little was done: {figures:?}"
    );
}

#[test]
fn what_was_acknowledged_survives_kills_when_signals_are_immediate() {
    assert_acknowledged_is_kept(Durability::Immediate);
}

#[test]
fn what_was_acknowledged_survives_kills_when_signals_are_batched() {
    assert_acknowledged_is_kept(child::BATCHED);
}

/// The ledger of a child that said `lines`, compared with a database in which `done` was done.
fn compared(lines: &[&str], done: impl FnOnce(&TidalDb)) -> Result<(), Box<dyn std::any::Any + Send>> {
    let db = TidalDb::builder().schema(child::schema()).ephemeral().open().unwrap();
    done(&db);
    let mut figures = Figures::default();
    let mut ledger = Ledger::new(false);
    for line in lines {
        ledger.hear(line, &mut figures);
    }
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ledger.compare(&db, &mut figures)))
}

fn signal(db: &TidalDb, nanos: i64) {
    db.signal_exact(0, 1, "view", Weight::from_nanos(nanos).unwrap(), None).unwrap();
}

#[test]
fn the_ledger_notices_what_is_lost_and_what_was_never_done() {
    let left = ["try 0 leave 0", "done 0"];
    let leave = |db: &TidalDb| {
        db.leave_community_layer(0).unwrap();
    };
    compared(&left, leave).unwrap();
    compared(&left, |_| ()).expect_err("an acknowledged leave is gone");
    let back = |db: &TidalDb| {
        leave(db);
        db.rejoin_community_layer(0).unwrap();
    };
    compared(&left, back).expect_err("the user is back, and never came");
    compared(&["try 0 leave 0"], |_| ()).unwrap();
    compared(&["try 0 leave 0"], leave).unwrap();

    let joined = ["try 0 join 0 4", "done 0"];
    let sent = ["try 0 join 0 4", "done 0", "try 0 signal 0 1 9", "done 0", "try 0 leave 0", "done 0"];
    let whole = |db: &TidalDb| {
        db.join_community(0, 4).unwrap();
        signal(db, 9);
        leave(db);
    };
    compared(&sent, whole).unwrap();
    compared(&joined, whole).expect_err("a signal that was never sent");
    let without_signal = |db: &TidalDb| {
        db.join_community(0, 4).unwrap();
        leave(db);
    };
    compared(&sent, without_signal).expect_err("the leave took along the signal before it");
    let moved = |db: &TidalDb| {
        db.join_community(0, 4).unwrap();
        signal(db, 9);
        back(db);
        signal(db, 10);
    };
    compared(&sent, moved).expect_err("a total moved after an acknowledged leave");
    let delivered = ["try 0 apply 1 0 1 9 0 1 10", "done 0"];
    compared(&delivered, |db| signal(db, 9)).expect_err("a delivery that is not there");
}
