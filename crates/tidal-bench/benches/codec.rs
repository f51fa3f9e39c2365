//! What the nine bytes of a leave record cost.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench fails by panicking, and its macros write undocumented functions"
)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tidal_bench::EVENT_TIME_NS;
use tidal_entities::community::{
    CommunityMembership, MembershipStatus, deserialize_membership, serialize_membership,
};

const USER: u64 = 7;

fn record_codec(criterion: &mut Criterion) {
    let left = CommunityMembership {
        user_id: USER,
        status: MembershipStatus::Left,
        left_at_ns: Some(EVENT_TIME_NS),
    };
    let bytes = serialize_membership(&left);
    assert_eq!(bytes[0], 1);
    assert_eq!(bytes[1..], EVENT_TIME_NS.to_le_bytes());
    assert_eq!(deserialize_membership(USER, &bytes), Some(left));

    let mut group = criterion.benchmark_group("record");
    group.bench_function("encode", |bench| bench.iter(|| serialize_membership(black_box(&left))));
    group.bench_function("decode", |bench| {
        bench.iter(|| deserialize_membership(black_box(USER), black_box(&bytes)));
    });
    group.finish();
}

criterion_group!(benches, record_codec);
criterion_main!(benches);
