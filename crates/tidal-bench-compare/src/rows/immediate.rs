//! Signals that are on disk when the call returns: many callers share a commit.

use std::time::Instant;

use tidal_bench::{Bound, EVENT_TIME_NS, Figure, Sample, ratio, schema};
use tidal_db::{Scope, TidalDb, Weight};

use crate::run::Run;

const CALLERS: u64 = 64;
const BOUNDED_BY: &str = "One commit carries what all 64 callers recorded since the last. Beside the disk it is the \
                          wake-up of 64 threads on two processors: each is switched to once a signal. To wake only \
                          whom the end of a commit concerns, and to let those whom the last one woke stage what they \
                          have before the next is made, has nearly doubled it; from run to run it lies on either \
                          side of the target.";

pub(crate) fn run(run: &Run) {
    let rounds = run.scale.pick(11, 3);
    let calls = run.scale.pick(200, 30);
    let folder = run.scratch();
    let path = folder.path().join("immediate.tidal");
    let db = TidalDb::builder().schema(schema()).path(&path).create(true).open().unwrap();
    let (mut one, mut many) = (Sample::new(), Sample::new());
    for round in 0..=rounds {
        let (alone, together) = (signals_per_second(&db, 1, calls), signals_per_second(&db, CALLERS, calls));
        // The first round warms both up.
        if round > 0 {
            one.push(alone);
            many.push(together);
        }
    }
    let sent = (rounds + 1) * calls * (1 + CALLERS);
    let counted = db.aggregate(&Scope::Global, 7, "view").unwrap().unwrap().count;
    assert_eq!(counted, sent);
    db.close().unwrap();
    let db = TidalDb::builder().path(&path).open().unwrap();
    assert_eq!(db.aggregate(&Scope::Global, 7, "view").unwrap().unwrap().count, sent, "all of it is on disk");

    let (times, spread) = ratio(&many, &one);
    Figure::new("signals a second, Immediate: 64 callers against one", times, "times")
        .between(spread)
        .target(Bound::AtLeast(20.0))
        .bounded_by(BOUNDED_BY)
        .print();
    for (what, sample) in [("one caller", &one), ("64 callers", &many)] {
        let what = format!("signals, Immediate, {what}");
        Figure::new(what, sample.median(), "signals/s").between(sample.quartiles()).print();
    }
}

fn signals_per_second(db: &TidalDb, callers: u64, calls: u64) -> f64 {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for caller in 0..callers {
            scope.spawn(move || {
                for _ in 0..calls {
                    db.signal_exact(caller, 7, "view", Weight::ONE, Some(EVENT_TIME_NS)).unwrap();
                }
            });
        }
    });
    (callers * calls) as f64 / began.elapsed().as_secs_f64()
}
