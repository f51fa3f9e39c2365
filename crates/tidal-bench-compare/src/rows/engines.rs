//! The same signals on tidal and on other engines, round by round.

use std::time::Instant;

use tidal_bench::{BareUpdates, Bound, Crowd, Figure, Sample, UpdateKey, not_measured, note, ratio};

use crate::engines::{self, Engine, Total};
use crate::run::Run;

const AGAINST_SQLITE: &str = "SQLite finds and changes five rows of a tree a signal and syncs once for a thousand; \
                              tidal changes five places in memory and syncs a row of its log.";
const AGAINST_REDIS: &str = "Redis keeps all in memory as tidal does and syncs nothing, so what is left between them is \
                             what it costs to send and read ten commands a signal: some 1.3 us each, on two processors. \
                             tidal's side is bounded by what bounds it against the bare map. Commands used to be made \
                             while the server waited, a seventh of its time; now it always has the next pipeline. More \
                             rounds, engines in both orders, and a pause until tidal's background is done keep each \
                             from paying for another, and the quartiles still lie far apart, since client and server \
                             need both processors at once.";

pub(crate) fn run(run: &Run) {
    let signals = run.scale.pick(50_000, 5_000);
    let rounds = run.scale.pick(17, 3);
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
        // Another one begins each round, in one order and in the other, so that nobody always pays for what the one
        // before still has on the disk or does in threads of its own.
        for nth in 0..len {
            let nth = if round % 2 == 0 { nth } else { len - 1 - nth };
            let place = (nth + round / 2) % len;
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
    // Every weight is one.
    let expected: Vec<(UpdateKey, Total)> =
        expected.counts().into_iter().map(|(key, count)| (key, (count, count as f64))).collect();
    for engine in &mut engines {
        assert_eq!(engine.totals(), expected, "{} has the same totals as all others", engine.name());
    }
    print(&engines, &samples);
    for (engine, engine_s) in engines.iter().zip(&rested_s).skip(1) {
        let what = format!("the same until tidal's checkpoints and runs have caught up: {}", engine.name());
        Figure::new(what, engine_s / rested_s[0], "times, all rounds together").print();
    }
    if let Some(reason) = missing {
        not_measured("tidal against Redis", Bound::AtLeast(10.0), reason);
    }
    note(
        "One caller; all engines take the same signals in the same order, and in the end have the same totals in \
         every aggregate. tidal's time ends when all of them are on disk. Of the other engines whoever left is kept out by \
         the caller; none keeps a log, histories or scores. fjall is given the sum of a batch for each aggregate, since it \
         cannot read what a batch has not written yet; the others each addition. Redis takes two commands an aggregate, \
         since tidal too keeps a count and a weight: with a count alone it would take half as many.",
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
        match engine.name() {
            name if name.starts_with("SQLite") => {
                figure.target(Bound::AtLeast(20.0)).bounded_by(AGAINST_SQLITE).print();
            }
            name if name.starts_with("Redis") => {
                figure.target(Bound::AtLeast(10.0)).bounded_by(AGAINST_REDIS).print();
            }
            _ => figure.print(),
        }
    }
}
