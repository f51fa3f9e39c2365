//! What the best ten items of a scope cost, by how many items it has, against sorting all of them.
//!
//! A tenth of the weights is negative: items sink as well as rise.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a bench fails by panicking, and its macros write undocumented functions"
)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tidal_db::{Schema, Scope, TidalDb};

const DAY_NS: u64 = 86_400_000_000_000;
const FIRST_TIME_NS: u64 = 1_700_000_000_000_000_000;
const SIZES: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
const K: usize = 10;

/// A stream of numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Each item has a signal, and as many again fall anywhere, over a month of which nothing is in order.
fn database(items: u64) -> TidalDb {
    let half_life = Duration::from_secs(7 * 86_400);
    let schema = Schema::builder().signal("view", half_life).build().unwrap();
    let db = TidalDb::builder().schema(schema).ephemeral().open().unwrap();
    let mut dice = Dice(1);
    for nth in 0..2 * items {
        let item = if nth < items { nth } else { dice.below(items) };
        let size = (1 + dice.below(8)) as f64;
        let weight = if dice.below(10) == 0 { -size } else { size };
        db.signal_at(7, item, "view", weight, FIRST_TIME_NS + dice.below(30 * DAY_NS)).unwrap();
    }
    db
}

/// The same by way of all aggregates of the scope.
fn sorted(db: &TidalDb, at_ns: u64) -> Vec<(u64, f64)> {
    let rows = db.aggregates_at(Some(&Scope::Global), at_ns).unwrap().map(|row| row.unwrap());
    let mut items: Vec<_> = rows.map(|row| (row.item, row.aggregate.score)).collect();
    items.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    items.truncate(K);
    items
}

fn top_items(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("top_items");
    for items in SIZES {
        let db = database(items);
        let at_ns = FIRST_TIME_NS + 30 * DAY_NS;
        assert_eq!(db.top_items_at(&Scope::Global, "view", K, at_ns).unwrap(), sorted(&db, at_ns));
        group.bench_function(BenchmarkId::new("best_10", items), |bench| {
            bench.iter(|| db.top_items(black_box(&Scope::Global), "view", K).unwrap());
        });
        let mut dice = Dice(2);
        group.bench_function(BenchmarkId::new("signal_then_best_10", items), |bench| {
            bench.iter(|| {
                let weight = if dice.below(10) == 0 { -40.0 } else { 4.0 };
                db.signal_at(7, dice.below(items), "view", weight, at_ns).unwrap();
                db.top_items(black_box(&Scope::Global), "view", K).unwrap()
            });
        });
        group.bench_function(BenchmarkId::new("sort_all", items), |bench| {
            bench.iter(|| sorted(black_box(&db), at_ns));
        });
        assert_eq!(db.top_items_at(&Scope::Global, "view", K, at_ns).unwrap(), sorted(&db, at_ns));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = top_items
}
criterion_main!(benches);
