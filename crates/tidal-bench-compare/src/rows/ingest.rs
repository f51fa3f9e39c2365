//! The whole signal path on a file against five updates on a bare map in memory, in turn.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use tidal_bench::{
    BareUpdates, Bound, Crowd, EVENT_TIME_NS, Figure, Sample, SignalOf, note, point, ratio,
    wait_until_caught_up,
};
use tidal_db::{Scope, TidalDb, Weight};

use crate::run::Run;

const BOUNDED_BY: &str = "A signal does what the bare map does, and besides keeps items ranked and writes itself \
                          into the log, under its one lock; one caller at a time makes the additions of all, and \
                          with two of them on two processors checkpoints and runs take their part from both. Of the \
                          additions most is waiting for memory, and every fourth makes an aggregate that was not \
                          there. Where the aggregates of an item are is found at once, and read for many signals \
                          before the first is added. To remember it for an item and a set of scopes would help \
                          little, since more than half of these pairs are new; larger groups of signals, cells in \
                          larger pieces, and larger first pieces made no difference. With two callers half of the \
                          processor time that tidal takes is that of checkpoints, runs and commits. Additions of \
                          several callers at once, each to its part of the aggregates, are not tried: the ranking of \
                          a scope would have parts too, and a reader would have to see them all at one moment.";

pub(crate) fn run(run: &Run) {
    let signals = run.scale.pick(500_000, 30_000);
    let rounds = run.scale.pick(11, 3);
    let [_, _, items] = run.sizes(100_000);
    for threads in [1, 2] {
        let measured = measure(run, items as usize, signals, rounds, threads);
        let (times, spread) = ratio(&measured.tidal, &measured.bare);
        let what = format!(
            "signals a second, batched, on a file, against five updates on a bare map, {threads} at once"
        );
        Figure::new(what, times, "times")
            .between(spread)
            .target(Bound::AtLeast(0.7))
            .bounded_by(BOUNDED_BY)
            .print();
        let (times, spread) = ratio(&measured.caught_up, &measured.bare);
        let what = format!("the same until checkpoints and runs have caught up, {threads} at once");
        Figure::new(what, times, "times").between(spread).print();
        for (what, sample) in [("five updates on a bare map", &measured.bare), ("tidal", &measured.tidal)] {
            let what = format!("{what}, {threads} at once");
            Figure::new(what, sample.median(), "signals/s").between(sample.quartiles()).print();
        }
    }
    note(format!(
        "Users act alike, items by Zipf's law among {items}, one in fifty users has left; {signals} signals a round. \
         Before each round what the one before left to the background is done."
    ));
    for items in run.sizes(1_000_000) {
        let measured = measure(run, items as usize, signals, rounds / 3, 1);
        point("ingest", "tidal", items as f64, measured.tidal.median());
        point("ingest", "five updates on a bare map", items as f64, measured.bare.median());
    }
}

/// Signals a second, round by round.
#[derive(Default)]
struct Measured {
    bare: Sample,
    tidal: Sample,
    /// The same of tidal with the wait until nothing is left to do.
    caught_up: Sample,
}

fn measure(run: &Run, items: usize, signals: usize, rounds: usize, threads: usize) -> Measured {
    let folder = run.scratch();
    let (db, storage) = Crowd::database(&folder.path().join("ingest.tidal"));
    let (bare, expected) = (BareUpdates::default(), BareUpdates::default());
    let mut crowd = Crowd::with_items(items);
    let mut measured = Measured::default();
    for round in 0..=rounds {
        let sent = crowd.signals(signals);
        wait_until_caught_up(&db, &storage);
        let bare_time = on_threads(&sent, threads, |signal| {
            for key in Crowd::updates(*signal) {
                bare.add(key);
            }
        });
        let began = Instant::now();
        let sending_time = on_threads(&sent, threads, |signal| send(&db, *signal));
        // The last few may wait for a reader to be added.
        let read_began = Instant::now();
        db.aggregate(&Scope::Global, 0, "view").unwrap();
        let tidal_time = sending_time + read_began.elapsed();
        wait_until_caught_up(&db, &storage);
        let caught_up_time = began.elapsed();
        // The first round warms all up.
        if round > 0 {
            let per_second = |time: Duration| signals as f64 / time.as_secs_f64();
            measured.bare.push(per_second(bare_time));
            measured.tidal.push(per_second(tidal_time));
            measured.caught_up.push(per_second(caught_up_time));
        }
        for signal in sent {
            Crowd::gated_updates(signal).for_each(|key| expected.add(key));
        }
    }
    assert_eq!(Crowd::counts(&db), expected.counts(), "every signal is where it belongs");
    let counted: u64 = bare.counts().iter().map(|(_, count)| count).sum();
    assert_eq!(counted, 5 * (signals * (rounds + 1)) as u64);
    assert!(db.withheld_counts().left > 0, "somebody has left");
    db.close().unwrap();
    measured
}

fn send(db: &TidalDb, (user, item): SignalOf) {
    db.signal_exact(user, item, "view", Weight::ONE, Some(EVENT_TIME_NS)).unwrap();
}

/// The time of the slowest of so many threads, each with its part.
fn on_threads(sent: &[SignalOf], threads: usize, work: impl Fn(&SignalOf) + Sync) -> Duration {
    let start = Barrier::new(threads);
    let timed = |part: &[SignalOf]| {
        start.wait();
        let began = Instant::now();
        part.iter().for_each(&work);
        began.elapsed()
    };
    let timed = &timed;
    std::thread::scope(|scope| {
        let parts = sent.chunks(sent.len().div_ceil(threads));
        let running: Vec<_> = parts.map(|part| scope.spawn(move || timed(part))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
    })
}
