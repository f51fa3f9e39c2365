//! What a durable leave costs one caller, and a rejoin after it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench fails by panicking, and its macros write undocumented functions"
)]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use tidal_bench::schema;
use tidal_db::{MembershipStatus, TidalDb};

fn leave(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leave.tidal");
    let db = TidalDb::builder().schema(schema()).path(&path).create(true).open().unwrap();
    let mut left = 0;
    criterion.bench_function("leave", |bench| {
        bench.iter(|| {
            left += 1;
            db.leave_community_layer(left).unwrap()
        });
    });
    assert_eq!(db.left_count(), left);
    let mut returned = 0;
    criterion.bench_function("leave_and_rejoin", |bench| {
        bench.iter(|| {
            returned += 1;
            db.leave_community_layer(u64::MAX - returned).unwrap();
            let membership = db.rejoin_community_layer(u64::MAX - returned).unwrap();
            assert_eq!(membership.status, MembershipStatus::Active);
        });
    });
    assert_eq!(db.left_count(), left);
    db.close().unwrap();
    let db = TidalDb::builder().path(&path).open().unwrap();
    assert_eq!(db.left_count(), left);
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3));
    targets = leave
}
criterion_main!(benches);
