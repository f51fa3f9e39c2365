//! The ten best of a scope, however many items it has, against a covering index on a stored score.

mod between;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::Connection;
use tidal_bench::{Bound, Dice, EVENT_TIME_NS, Figure, Sample, note, point, ratio, schema};
use tidal_db::{ManualClock, Scope, TidalDb};

use crate::run::Run;

const K: usize = 10;
const DAY_NS: u64 = 86_400_000_000_000;
const END_NS: u64 = EVENT_TIME_NS + 30 * DAY_NS;
const COVERED: &str = "SELECT item, score FROM aggregate INDEXED BY best WHERE scope = 0 AND type = 0 \
                       ORDER BY score DESC, item LIMIT 10";

pub(crate) fn run(run: &Run) {
    let calls = run.scale.pick(2_000, 100);
    let rounds = run.scale.pick(21, 5);
    let sizes = run.sizes(1_000_000);
    let mut medians = Vec::new();
    for items in sizes {
        let db = database(items);
        let other = covering_index(&db, run);
        let mut of_sqlite = best_of_sqlite(&other.1);
        let of_tidal = || best_of_tidal(&db);
        assert_eq!(of_tidal(), of_sqlite(), "both know the same ten");
        let (mut tidal_us, mut sqlite_us) = (Sample::new(), Sample::new());
        for round in 0..=rounds {
            let (tidal, sqlite) = (time_us(calls, of_tidal), time_us(calls, &mut of_sqlite));
            // The first round warms both up.
            if round > 0 {
                tidal_us.push(tidal);
                sqlite_us.push(sqlite);
            }
        }
        medians.push(tidal_us.median());
        point("top", "tidal", items as f64, tidal_us.median());
        point("top", "SQLite, covering index on a stored score", items as f64, sqlite_us.median());
        if items == sizes[2] {
            print(items, &tidal_us, &sqlite_us);
            between::measure(&db, &other.1, items, run);
        }
    }
    Figure::new(
        format!("the ten best of {} items against those of {}", sizes[2], sizes[0]),
        medians[2] / medians[0],
        "times",
    )
    .target(Bound::AtMost(2.0))
    .bounded_by("Misses of the caches: the ten are found in a list, whose items are in ten places.")
    .print();
    note(
        "A tenth of the weights is negative. SQLite's scores are those of one moment: to keep them it would have to \
         write all of them anew as time passes, or each at every signal; tidal's are of any moment.",
    );
}

fn print(items: u64, tidal_us: &Sample, sqlite_us: &Sample) {
    Figure::new(format!("the ten best of {items} items"), tidal_us.median(), "us")
        .between(tidal_us.quartiles())
        .target(Bound::AtMost(20.0))
        .bounded_by(
            "Ten listed items are compared with their aggregates. A scope that nobody asked lately, or of whose best some \
             sank, has no such list; there some ten blocks of 64 items are looked at, which takes some 10 us.",
        )
        .print();
    let (times, spread) = ratio(sqlite_us, tidal_us);
    Figure::new(format!("the ten best of {items} items: SQLite's time against tidal's"), times, "times")
        .between(spread)
        .target(Bound::AtLeast(10.0))
        .bounded_by(
            "SQLite reads ten neighbouring entries of an index that is in its cache. tidal compares ten listed items \
             with their aggregates, under one lock, after it looked for signals to add up, under another, and works out \
             ten scores as of the moment asked for. To look at some ten blocks of 64 aggregates for each question was \
             slower than SQLite.",
        )
        .print();
    Figure::new("the same of SQLite, covering index on a stored score", sqlite_us.median(), "us")
        .between(sqlite_us.quartiles())
        .print();
}

fn best_of_tidal(db: &TidalDb) -> Vec<(u64, f64)> {
    db.top_items_at(&Scope::Global, "view", K, END_NS).unwrap()
}

fn best_of_sqlite(other: &Connection) -> impl FnMut() -> Vec<(u64, f64)> {
    let mut statement = other.prepare(COVERED).unwrap();
    move || {
        let pair = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?));
        statement.query_map((), pair).unwrap().map(Result::unwrap).collect()
    }
}

fn time_us<R>(calls: u32, mut ask: impl FnMut() -> R) -> f64 {
    let began = Instant::now();
    for _ in 0..calls {
        black_box(ask());
    }
    began.elapsed().as_nanos() as f64 / 1e3 / f64::from(calls)
}

/// Each item has a signal, and as many again fall anywhere, over a month of which nothing is in order.
fn database(items: u64) -> TidalDb {
    let clock = Arc::new(ManualClock::new(END_NS));
    let db = TidalDb::builder().schema(schema()).clock(clock).ephemeral().open().unwrap();
    let mut dice = Dice::new(1);
    for nth in 0..2 * items {
        let item = if nth < items { nth } else { dice.below(items) };
        let weight = any_weight(&mut dice);
        db.signal_at(7, item, "view", weight, any_time_ns(&mut dice)).unwrap();
    }
    db
}

fn any_weight(dice: &mut Dice) -> f64 {
    let size = (1 + dice.below(8)) as f64;
    if dice.below(10) == 0 { -size } else { size }
}

fn any_time_ns(dice: &mut Dice) -> u64 {
    EVENT_TIME_NS + dice.below(30 * DAY_NS)
}

/// The scores of one moment, and the folder that they are in.
fn covering_index(db: &TidalDb, run: &Run) -> (tempfile::TempDir, Connection) {
    let folder = run.scratch();
    let mut connection = Connection::open(folder.path().join("top.sqlite")).unwrap();
    connection.pragma_update(None, "cache_size", -256 * 1024).unwrap();
    connection
        .execute_batch("CREATE TABLE aggregate (scope INTEGER, type INTEGER, item INTEGER, score REAL)")
        .unwrap();
    let transaction = connection.transaction().unwrap();
    let mut insert = transaction.prepare("INSERT INTO aggregate VALUES (0, 0, ?1, ?2)").unwrap();
    for row in db.aggregates_at(Some(&Scope::Global), END_NS).unwrap() {
        let row = row.unwrap();
        insert.execute((row.item.cast_signed(), row.aggregate.score)).unwrap();
    }
    drop(insert);
    transaction.commit().unwrap();
    connection
        .execute_batch("CREATE INDEX best ON aggregate (scope, type, score DESC, item); ANALYZE")
        .unwrap();
    (folder, connection)
}
