//! The same signals on tidal and on other engines, round by round.

use std::time::Instant;

use tidal_bench::{BareUpdates, Bound, Crowd, Figure, Sample, note, ratio};

use crate::engines::{self, Engine};
use crate::run::Run;

pub(crate) fn run(run: &Run) {
    let signals = run.scale.pick(50_000, 5_000);
    let rounds = run.scale.pick(11, 3);
    let [_, _, items] = run.sizes(100_000);
    let folder = run.scratch();
    let (mut engines, missing) = engines::all(folder.path());
    let mut crowd = Crowd::with_items(items as usize);
    let expected = BareUpdates::default();
    let mut samples = vec![Sample::new(); engines.len()];
    // With what is left to the background, which for tidal comes every few rounds.
    let mut rested_s = vec![0.0; engines.len()];
    for round in 0..=rounds {
        let sent = crowd.signals(signals);
        let len = engines.len();
        // Another one begins each round, so that nobody always pays for who was before.
        for nth in 0..len {
            let place = (nth + round) % len;
            let engine = &mut engines[place];
            let began = Instant::now();
            engine.take(&sent);
            let took = began.elapsed();
            engine.rest();
            if round > 0 {
                samples[place].push(signals as f64 / took.as_secs_f64());
                rested_s[place] += began.elapsed().as_secs_f64();
            }
        }
        for signal in sent {
            Crowd::gated_updates(signal).for_each(|key| expected.add(key));
        }
    }
    let expected = expected.counts();
    for engine in &mut engines {
        assert_eq!(engine.counts(), expected, "{} has the same totals as all others", engine.name());
    }
    print(&engines, &samples);
    for (engine, engine_s) in engines.iter().zip(&rested_s).skip(1) {
        let what = format!("the same until tidal's checkpoints and runs have caught up: {}", engine.name());
        Figure::new(what, engine_s / rested_s[0], "times, all rounds together").print();
    }
    if let Some(reason) = missing {
        note(format!("Redis: {reason}."));
    }
    note(
        "One caller; all engines take the same signals in the same order, and in the end have the same totals in \
         every aggregate. tidal's time ends when all of them are on disk. Of the other engines whoever left is kept out by \
         the caller; none keeps a log, histories or scores.",
    );
}

fn print(engines: &[Box<dyn Engine>], samples: &[Sample]) {
    let tidal = &samples[0];
    for (engine, sample) in engines.iter().zip(samples) {
        let name = engine.name();
        Figure::new(format!("signals: {name}"), sample.median(), "signals/s")
            .between(sample.quartiles())
            .print();
    }
    for (engine, sample) in engines.iter().zip(samples).skip(1) {
        let (times, spread) = ratio(tidal, sample);
        let figure = Figure::new(format!("tidal against {}", engine.name()), times, "times").between(spread);
        let sentence =
            "The other engine's own work for five aggregates a signal against tidal's memory and log.";
        match engine.name() {
            name if name.starts_with("SQLite") => {
                figure.target(Bound::AtLeast(20.0)).bounded_by(sentence).print();
            }
            name if name.starts_with("Redis") => {
                figure.target(Bound::AtLeast(10.0)).bounded_by(sentence).print();
            }
            _ => figure.print(),
        }
    }
}
