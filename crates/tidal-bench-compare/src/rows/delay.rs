//! How long a signal may take, at a steady pace, while checkpoints and runs are made.

use std::time::{Duration, Instant};

use tidal_bench::{Bound, Crowd, EVENT_TIME_NS, Figure, note, quantile, wait_until_caught_up};
use tidal_db::Weight;

use crate::live_bytes::stored_bytes;
use crate::run::Run;

const PER_SECOND: u64 = 200_000;
/// Enough that their rows differ, few enough to be made beforehand.
const PREPARED: usize = 2_000_000;

pub(crate) fn run(run: &Run) {
    let seconds = run.scale.pick(60, 3);
    let [_, _, items] = run.sizes(100_000);
    let folder = run.scratch();
    let path = folder.path().join("delay.tidal");
    let (db, storage) = Crowd::database(&path);
    let sent = Crowd::with_items(items as usize).signals(PREPARED);
    let total = PER_SECOND * seconds;
    let mut waits_us = Vec::with_capacity(total as usize);
    let mut calls_us = Vec::with_capacity(total as usize);
    let began = Instant::now();
    for nth in 0..total {
        let due = began + Duration::from_nanos(nth * (1_000_000_000 / PER_SECOND));
        let mut called = Instant::now();
        while called < due {
            std::hint::spin_loop();
            called = Instant::now();
        }
        let (user, item) = sent[nth as usize % PREPARED];
        db.signal_exact(user, item, "view", Weight::ONE, Some(EVENT_TIME_NS)).unwrap();
        let ended = Instant::now();
        waits_us.push((ended - due).as_nanos() as f64 / 1e3);
        calls_us.push((ended - called).as_nanos() as f64 / 1e3);
    }
    let reached = total as f64 / began.elapsed().as_secs_f64();
    wait_until_caught_up(&db, &storage);
    let counted: u64 = Crowd::counts(&db).iter().map(|(_, count)| count).sum();
    let expected: usize =
        (0..total).map(|nth| Crowd::gated_updates(sent[nth as usize % PREPARED]).count()).sum();
    assert_eq!(counted, expected as u64, "every signal is where it belongs");
    db.close().unwrap();
    drop(storage);

    print(seconds, reached, waits_us, calls_us);
    let (len, stored) = (path.metadata().unwrap().len(), stored_bytes(&path));
    Figure::new(
        format!("the file against the keys and values in it, after {seconds} s of that"),
        len as f64 / stored as f64,
        "times",
    )
    .target(Bound::AtMost(2.0))
    .bounded_by(
        "Pages that checkpoints, runs and merges wrote anew are free for the next, and the file keeps them.",
    )
    .print();
}

fn print(seconds: u64, reached: f64, mut waits_us: Vec<f64>, mut calls_us: Vec<f64>) {
    waits_us.sort_by(f64::total_cmp);
    calls_us.sort_by(f64::total_cmp);
    let pace = format!("at {PER_SECOND} signals/s for {seconds} s");
    Figure::new(format!("pace reached {pace}, one caller"), reached, "signals/s").print();
    Figure::new(
        format!("delay of a signal {pace}, 99.99 of 100, from when it was due"),
        quantile(&waits_us, 0.9999) / 1e3,
        "ms",
    )
    .target(Bound::AtMost(5.0))
    .bounded_by(
        "The processors that checkpoints, runs and commits share with the caller. The background offers its own \
         every 50 us or so, since a thread that computes keeps it for some 4 ms otherwise, and keeps its memory, \
         since to copy or give back long lists holds up whoever allocates. Stored aggregates that were changed row \
         by row, as they were before, could not keep up with this pace.",
    )
    .print();
    let figures = [
        ("median, from when it was due", quantile(&waits_us, 0.5)),
        ("99 of 100, from when it was due", quantile(&waits_us, 0.99)),
        ("longest, from when it was due", quantile(&waits_us, 1.0)),
        ("99.99 of 100, of the call alone", quantile(&calls_us, 0.9999)),
        ("longest, of the call alone", quantile(&calls_us, 1.0)),
    ];
    for (what, us) in figures {
        Figure::new(format!("delay of a signal {pace}, {what}"), us / 1e3, "ms").print();
    }
    note(
        "The caller does not wait for an answer to be late: what was due meanwhile counts from when it was due.",
    );
}
