//! Sends signals of users who stay, round by round, as it is told: once built as shipped, once without the gate.
//!
//! `gate-worker FILE` answers each line `SIGNALS THREADS` on its input with the nanoseconds that they took, and
//! ends with a look at all totals. So two builds can be measured in turn, in one run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a bench fails by panicking"
)]

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use tidal_bench::{
    ACTIVE_USERS, Dice, GATE_ITEMS, active_user, gate_database, leaver_ids, set_up_active_users,
};
use tidal_db::{HAS_GATE, Scope, TidalDb, Withheld};

fn main() {
    let path = std::env::args().nth(1).expect("the file of leavers");
    let db = gate_database(Path::new(&path));
    set_up_active_users(&db);
    println!("ready {HAS_GATE}");
    let mut sent = ACTIVE_USERS;
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut words = line.split_whitespace().map(|word| word.parse::<u64>().expect("SIGNALS THREADS"));
        let (signals, threads) = (words.next().unwrap(), words.next().unwrap());
        println!("{}", round(&db, signals, threads, sent));
        std::io::stdout().flush().unwrap();
        sent += signals / threads * threads;
    }
    check(&db, sent);
}

/// The time of the slowest thread, in nanoseconds.
fn round(db: &TidalDb, signals: u64, threads: u64, seed: u64) -> u128 {
    let part = |thread: u64| {
        let mut dice = Dice::new(seed + thread);
        let pairs: Vec<_> = (0..signals / threads)
            .map(|_| (active_user(dice.below(ACTIVE_USERS)), dice.below(GATE_ITEMS)))
            .collect();
        move |start: &std::sync::Barrier| {
            start.wait();
            let began = Instant::now();
            for (user, item) in pairs {
                db.signal(user, item, "view", 1.0).unwrap();
            }
            began.elapsed().as_nanos()
        }
    };
    let start = std::sync::Barrier::new(usize::try_from(threads).unwrap());
    let work: Vec<_> = (0..threads).map(part).collect();
    let start = &start;
    std::thread::scope(|scope| {
        let running: Vec<_> = work.into_iter().map(|work| scope.spawn(move || work(start))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
    })
}

/// Every signal is in its item, its cohort and its three communities; and the gate is there, or is not.
fn check(db: &TidalDb, sent: u64) {
    let (mut global, mut cohorts, mut communities) = (0, 0, 0);
    for row in db.aggregates(None).unwrap() {
        let row = row.unwrap();
        match row.scope {
            Scope::Global => global += row.aggregate.count,
            Scope::Cohort(_) => cohorts += row.aggregate.count,
            Scope::Community(_) => communities += row.aggregate.count,
            other => panic!("{other:?} is no scope of these"),
        }
    }
    assert_eq!((global, cohorts, communities), (sent, sent, 3 * sent));
    let leaver = leaver_ids(db.left_count()).next().expect("somebody has left");
    let expected = if HAS_GATE { Some(Withheld::Left) } else { None };
    assert_eq!(db.signal(leaver, 0, "view", 1.0).unwrap().withheld, expected);
}
