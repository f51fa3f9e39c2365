//! What it costs to open a database in which many have left, and nothing else happened.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench fails by panicking, and its macros write undocumented functions"
)]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tidal_bench::build_leavers;
use tidal_db::TidalDb;

const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];

fn restore(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let mut group = criterion.benchmark_group("restore");
    for leavers in SIZES {
        let path = folder.path().join(format!("{leavers}.tidal"));
        build_leavers(&path, leavers);
        group.throughput(Throughput::Elements(leavers));
        for (name, check) in [("no_page_checked", false), ("every_page_checked", true)] {
            group.bench_function(BenchmarkId::new(name, leavers), |bench| {
                bench.iter(|| {
                    let db = TidalDb::builder().path(&path).check_integrity(check).open().unwrap();
                    assert_eq!(db.left_count(), leavers);
                });
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(3));
    targets = restore
}
criterion_main!(benches);
