//! One user's history of 100 signals among two million, found by runs and by reading the whole log.
//! `HISTORY_SIGNALS` says among how many.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench fails by panicking, and its macros write undocumented functions"
)]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use tidal_bench::{EVENT_TIME_NS, wait_until_caught_up};
use tidal_db::{Action, Config, Event, Storage, TidalDb, Weight};

const SIGNALS_PER_USER: u64 = 100;

fn signals_len() -> u64 {
    std::env::var("HISTORY_SIGNALS").map_or(2_000_000, |signals| signals.parse().unwrap())
}

fn config() -> Config {
    let schema = tidal_db::Schema::builder().signal("view", Duration::from_secs(86_400)).build().unwrap();
    TidalDb::builder().schema(schema)
}

/// Every user has as many signals, spread over the whole log.
fn fill(db: &TidalDb, signals: u64) {
    let event = |nth: u64| Event {
        at_ns: EVENT_TIME_NS,
        action: Action::Signal {
            user: nth % (signals / SIGNALS_PER_USER),
            item: nth % 1_000,
            signal_type: "view".to_owned(),
            weight: Weight::ONE,
        },
    };
    db.apply("bench", 1, (0..signals).map(event)).unwrap();
}

/// Opens with runs, and waits until they have followed the log.
fn open_with_runs(path: &Path, signals: u64) -> TidalDb {
    let storage = Storage::open(path).unwrap();
    let db = TidalDb::from_parts(storage.clone(), config().path(path)).unwrap();
    let caught_up = wait_until_caught_up(&db, &storage);
    eprintln!("runs of {signals} signals after {caught_up:?}");
    db
}

fn read(db: &TidalDb, user: u64) -> usize {
    db.history(user).unwrap().collect::<Result<Vec<_>, _>>().unwrap().len()
}

fn history(criterion: &mut Criterion) {
    let signals = signals_len();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.tidal");
    let users = signals / SIGNALS_PER_USER;
    let mut group = criterion.benchmark_group("history");
    group.sample_size(10);

    let db = config().path(&path).create(true).run_entries(u64::MAX).open().unwrap();
    let began = Instant::now();
    fill(&db, signals);
    eprintln!("filled without runs in {:?}", began.elapsed());
    group.bench_function("by_reading_the_log", |bench| {
        bench.iter(|| assert_eq!(read(&db, black_box(7)), 100));
    });
    db.close().unwrap();

    let db = open_with_runs(&path, signals);
    let mut user = 0;
    group.bench_function("by_runs", |bench| {
        bench.iter(|| {
            user = (user + 7_919) % users;
            assert_eq!(read(&db, black_box(user)), 100);
        });
    });
    group.finish();
    db.close().unwrap();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    targets = history
}
criterion_main!(benches);
