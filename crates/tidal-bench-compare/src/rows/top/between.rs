//! The same question where a signal comes between every two: nothing that is kept for the next is as it was.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use tidal_bench::{Dice, Figure, Sample, note, ratio};
use tidal_db::{Scope, TidalDb};

use super::{K, any_time_ns, any_weight, best_of_sqlite, best_of_tidal};
use crate::run::Run;

/// What one engine took, a round at a time.
#[derive(Default)]
struct Took {
    change_us: Sample,
    question_us: Sample,
}

impl Took {
    fn both_us(&self) -> Sample {
        let rounds = self.change_us.values().iter().zip(self.question_us.values());
        rounds.map(|(change_us, question_us)| change_us + question_us).collect()
    }
}

/// Asks both engines about the same items, and after each change expects the same answers.
pub(super) fn measure(db: &TidalDb, other: &Connection, items: u64, run: &Run) {
    other.pragma_update(None, "journal_mode", "MEMORY").unwrap();
    other.pragma_update(None, "synchronous", "OFF").unwrap();
    other.execute_batch("CREATE UNIQUE INDEX by_item ON aggregate (scope, type, item)").unwrap();
    let among_best = |dice: &mut Dice, best: &[(u64, f64)]| best[dice.below(K as u64) as usize].0;
    print(items, "one of them", &rounds(db, other, run, among_best));
    print(items, "any item", &rounds(db, other, run, |dice: &mut Dice, _: &[(u64, f64)]| dice.below(items)));
    note(
        "Where a signal comes between two questions, it goes to one of the ten best or to any item, a tenth of them with \
         a negative weight. It waits to be added up, which is part of tidal's question. In SQLite it is an UPDATE of one \
         stored score, both indexes kept, in a transaction that is not synced, and timed on its own like the signal.",
    );
}

fn rounds(
    db: &TidalDb,
    other: &Connection,
    run: &Run,
    mut pick: impl FnMut(&mut Dice, &[(u64, f64)]) -> u64,
) -> [Took; 2] {
    let (rounds, calls) = run.scale.pick((21, 500), (5, 50));
    let mut update =
        other.prepare("UPDATE aggregate SET score = ?1 WHERE scope = 0 AND type = 0 AND item = ?2").unwrap();
    let mut of_sqlite = best_of_sqlite(other);
    let (mut tidal, mut sqlite) = (Took::default(), Took::default());
    let mut dice = Dice::new(2);
    let mut best = best_of_tidal(db);
    for _ in 0..rounds {
        let mut spent = [Duration::ZERO; 4];
        for _ in 0..calls {
            let item = pick(&mut dice, &best);
            let (weight, at_ns) = (any_weight(&mut dice), any_time_ns(&mut dice));
            spent[0] += timed(|| db.signal_at(7, item, "view", weight, at_ns).unwrap()).1;
            let (answer, took) = timed(|| best_of_tidal(db));
            spent[1] += took;
            // The clock stands at the time of the scores that SQLite has.
            let score = db.aggregate(&Scope::Global, item, "view").unwrap().unwrap().score;
            spent[2] += timed(|| update.execute((score, item.cast_signed())).unwrap()).1;
            let (other_answer, took) = timed(&mut of_sqlite);
            spent[3] += took;
            assert_eq!(answer, other_answer, "both know the same ten");
            best = answer;
        }
        let each_us = spent.map(|spent| spent.as_nanos() as f64 / 1e3 / f64::from(calls));
        for (sample, us) in
            [&mut tidal.change_us, &mut tidal.question_us, &mut sqlite.change_us, &mut sqlite.question_us]
                .into_iter()
                .zip(each_us)
        {
            sample.push(us);
        }
    }
    [tidal, sqlite]
}

fn timed<R>(call: impl FnOnce() -> R) -> (R, Duration) {
    let began = Instant::now();
    let result = call();
    (result, began.elapsed())
}

fn print(items: u64, which: &str, [tidal, sqlite]: &[Took; 2]) {
    let figure = |what: String, sample: &Sample| {
        Figure::new(what, sample.median(), "us").between(sample.quartiles()).print();
    };
    figure(format!("the ten best of {items} items, each time after a signal to {which}"), &tidal.question_us);
    figure(format!("the same of SQLite, each time after an UPDATE of {which}"), &sqlite.question_us);
    let times = |what: String, (times, spread): (f64, (f64, f64))| {
        Figure::new(what, times, "times").between(spread).print();
    };
    let what = format!("after a change of {which}: SQLite's time against tidal's");
    times(what, ratio(&sqlite.question_us, &tidal.question_us));
    figure(format!("the signal to {which} itself"), &tidal.change_us);
    figure(format!("the UPDATE of {which} itself"), &sqlite.change_us);
    let what = format!("change of {which} and question together: SQLite's time against tidal's");
    times(what, ratio(&sqlite.both_us(), &tidal.both_us()));
}
