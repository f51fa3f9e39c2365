//! What an open costs, with and without the check of every page: what is checkpointed is not read from
//! the log again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench fails by panicking, and its macros write undocumented functions"
)]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tidal_bench::build_events;
use tidal_db::TidalDb;

const SIZES: [u64; 2] = [100_000, 1_000_000];

fn reopen(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let mut group = criterion.benchmark_group("reopen");
    for events in SIZES {
        let path = folder.path().join(format!("{events}.tidal"));
        build_events(&path, events);
        eprintln!("{events} events take {} bytes", path.metadata().unwrap().len());
        for (name, check) in [("no_page_checked", false), ("every_page_checked", true)] {
            group.bench_function(BenchmarkId::new(name, events), |bench| {
                bench.iter(|| TidalDb::builder().path(&path).check_integrity(check).open().unwrap());
            });
        }
        let db = TidalDb::builder().path(&path).open().unwrap();
        assert_eq!(db.aggregates(None).unwrap().count() as u64, events);
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(3));
    targets = reopen
}
criterion_main!(benches);
