//! The whole signal path with batched durability, on a file, and the same five updates on a bare map in memory.
//!
//! The two beside each other, in turn, with their ratio: `cargo xtask bench --only ingest`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench fails by panicking, and its macros write undocumented functions"
)]

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tidal_bench::{BareUpdates, Crowd, EVENT_TIME_NS, wait_until_caught_up};
use tidal_db::Weight;

const ITEMS: usize = 100_000;
/// A power of two, so that what is sent comes round without a division.
const SIGNALS: usize = 1 << 18;

fn ingest(criterion: &mut Criterion) {
    let signals = Crowd::with_items(ITEMS).signals(SIGNALS);
    let signal_at = |nth: u64| signals[usize::try_from(nth).unwrap() % SIGNALS];
    let mut group = criterion.benchmark_group("ingest");
    group.throughput(Throughput::Elements(1));

    let bare = BareUpdates::default();
    let mut sent = 0;
    group.bench_function("five_updates_on_a_bare_map", |bench| {
        bench.iter(|| {
            for key in Crowd::updates(signal_at(sent)) {
                bare.add(key);
            }
            sent += 1;
        });
    });
    let counted: u64 = bare.counts().iter().map(|(_, count)| count).sum();
    assert_eq!(counted, 5 * sent);

    let folder = tempfile::tempdir().unwrap();
    let (db, storage) = Crowd::database(&folder.path().join("ingest.tidal"));
    let mut sent = 0;
    group.bench_function("signal_batched_on_a_file", |bench| {
        bench.iter_custom(|iterations| {
            wait_until_caught_up(&db, &storage);
            let began = Instant::now();
            for nth in sent..sent + iterations {
                let (user, item) = signal_at(nth);
                db.signal_exact(user, item, "view", Weight::ONE, Some(EVENT_TIME_NS)).unwrap();
            }
            sent += iterations;
            began.elapsed()
        });
    });
    let expected: u64 = (0..sent).map(|nth| Crowd::gated_updates(signal_at(nth)).count() as u64).sum();
    let counted: u64 = Crowd::counts(&db).iter().map(|(_, count)| count).sum();
    assert_eq!(counted, expected);
    group.finish();
    db.close().unwrap();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(5));
    targets = ingest
}
criterion_main!(benches);
