//! The history of one user among many signals.

use std::time::Instant;

use tidal_bench::{Bound, Dice, EVENTS_PER_USER, Figure, items_of, note, point, quantile};
use tidal_db::TidalDb;

use crate::run::Run;

pub(crate) fn run(run: &Run) {
    let reads = run.scale.pick(500, 50);
    let sizes = run.event_sizes();
    for signals in sizes {
        let db = TidalDb::builder().path(run.events(signals)).check_integrity(false).open().unwrap();
        let users = signals / EVENTS_PER_USER;
        let mut dice = Dice::new(3);
        let mut times_ms: Vec<f64> = (0..reads)
            .map(|_| {
                let user = dice.below(users);
                let began = Instant::now();
                let history: Vec<_> = db.history(user).unwrap().map(Result::unwrap).collect();
                let took = began.elapsed();
                let items = history.iter().map(|event| event.item);
                assert!(items.eq(items_of(user, signals)), "what the user acted on, in order");
                assert!(history.is_sorted_by_key(|event| event.sequence));
                took.as_nanos() as f64 / 1e6
            })
            .collect();
        times_ms.sort_by(f64::total_cmp);
        let median = quantile(&times_ms, 0.5);
        point("history", "median", signals as f64, median);
        if signals == sizes[2] {
            Figure::new(format!("history of a user with 100 signals among {signals}"), median, "ms")
                .between((quantile(&times_ms, 0.25), quantile(&times_ms, 0.75)))
                .target(Bound::AtMost(3.0))
                .bounded_by("One row of each run of signals by user, and the log that no run holds yet.")
                .print();
            Figure::new("the same, 99 of 100", quantile(&times_ms, 0.99), "ms").print();
        }
        db.close().unwrap();
    }
    note(
        "Users are taken at random, once the background has caught up; the file is in the page cache of the system.",
    );
}
